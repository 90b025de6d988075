package main

import (
	"strings"

	"github.com/ledgerlake/ledgerlake/internal/reach"
)

const helpText = `ledgerlake-verify checks an archive from its bucket and a public key. It needs no Kafka, and never writes.

  ledgerlake-verify [flags] s3://BUCKET/PREFIX?endpoint=URL&region=NAME
  ledgerlake-verify [flags] FOLDER            a copy of a bucket as plain files; file:///FOLDER is the same
  ledgerlake-verify COMMAND …                 another task, each with a --help of its own:

{commands}

It hashes every object, decodes every row, and recomputes what can be recomputed: commitments, row hashes, the
chain and the tree of each tenant's log, what became of each Kafka offset, and what anchors state of all this. Then it
says what that proves, what it does not prove, and each fault with the first row that it touches.

  T0  consistent in itself      T2  and no shorter than a head from an independent place
  T1  signed by a known key     T3  and witnessed

  ledgerlake-verify --key auditor.vkey ./data/audit
  ledgerlake-verify --key example.org/audit+7201904f+AQER5Q… --tenant acme 's3://audit?endpoint=http://127.0.0.1:9000'
  ledgerlake-verify --allow-unsigned --json ./data/audit | jq .exit

Exit codes, the first that holds:
  2  cannot run: there is no archive, or the store does not answer; no verdict
  1  tampered or damaged: there are faults
  3  nothing, or less than was asked for, could be verified (no key, no anchor by a good key,
     no segments, no such tenant)
  4  proved, with something to look at: lost offsets, chain resets, objects that have no place, erasures and
     retention-cuts that are not receipted or anchored yet
  0  all that was asked for is proved
Rows that no anchor covers yet are reported and change nothing.

Flags:
  --key VKEY
        A public key that you know, as keygen prints it, or a file with one on each line. May be given more than once.
        Keys that these vouch for, by an anchor or by a key note, are found in the archive.
  --allow-unsigned
        Ask for consistency alone (T0): that nothing is signed by a known key is then not less than was asked for.
{logKeys}  --expect HEAD|FILE
        A head that the archive must have: tenant=NAME,topic=NAME,partition=N,size=ROWS,head=HEX (or root=HEX; topic-id=ID
        and archive=ID if you like; %2C is a comma). Or a file that you kept: an anchor, a checkpoint, the --json report or
        the state of an earlier verification. May be given more than once.
  --expect-from PLACE
        Where anchors are kept that nobody who can write to the bucket can change: kafka://HOST:PORT[/TOPIC] (default:
        ledgerlake.anchors), s3://BUCKET of copies, a folder or a file. The archive must hold at least what they say.
  --witness VKEY
        A witness whose cosignatures of checkpoints count (c2sp.org/tlog-cosignature), or a file with one on each line.
  --tenant NAME
        Check the rows of this tenant only. Objects are still hashed, and offsets still counted.
  --topic NAME, --partition N
        Check the lines of this topic, or of this partition, only.
  --from-seq N
        With --tenant: check rows from this one of each of its logs on. What an anchor covers before that is hashed only.
  --since TIME
        The same by when rows were archived: 2026-05-28T12:00:00Z, or a day.
  --state FILE
        Go on from where the last verification ended, and write there where this one ends. Whoever can change the file
        can have changes passed over: keep it where only you can write.
  --erasure-within TIME
        How long after it was archived a redaction may be without a receipt: 30d (the default), 36h. One that is older is
        something to look at.
  --json
        Print the report as one JSON object.
  --progress
        Tell on stderr how far it is, also where that is no terminal.
  --metrics-file FILE
        Write how the run ended as metrics of Prometheus, for node_exporter's textfile collector (docs/metrics.md): a name
        that ends with .prom. It is replaced whole. Where it cannot be, a run that went well ends with exit code 2.
  --memory SIZE
        What objects that are being checked may take together. Default: 256MiB.
  --cpuprofile FILE
        Write a CPU profile, for those who measure.
  --config FILE
        A YAML file with the settings below, as ledgerlake-ingest reads it. LEDGERLAKE_S3_REGION and so on work as well.
  --version
        Print the version.

`

// help is the text of --help.
func help() string {
	return strings.NewReplacer("{commands}", strings.TrimRight(commandList(), "\n"), "{logKeys}", reach.LogKeysHelp).Replace(helpText) + reach.StoreHelp() + "\n" + kafkaHelp()
}

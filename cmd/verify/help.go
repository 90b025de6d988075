package main

import "strings"

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
  4  proved, with something to look at: lost offsets, chain resets, objects that have no place
  0  all that was asked for is proved
Rows that no anchor covers yet are reported and change nothing.

Flags:
  --key VKEY
        A public key that you know, as keygen prints it, or a file with one on each line. May be given more than once.
        Keys that these vouch for, by an anchor or by a key note, are found in the archive.
  --allow-unsigned
        Ask for consistency alone (T0): that nothing is signed by a known key is then not less than was asked for.
{logKeys}  --tenant NAME
        Check the rows of this tenant only. Objects are still hashed, and offsets still counted.
  --json
        Print the report as one JSON object.
  --progress
        Tell on stderr how far it is, also where that is no terminal.
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
	return strings.NewReplacer("{commands}", strings.TrimRight(commandList(), "\n"), "{logKeys}", logKeysHelp).Replace(helpText) + storeHelp()
}

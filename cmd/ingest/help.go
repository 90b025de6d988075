package main

import (
	"fmt"
	"io"

	"github.com/ledgerlake/ledgerlake/config"
)

const helpText = `ledgerlake-ingest archives Kafka topics as hash-chained Parquet files in an S3 bucket.

  ledgerlake-ingest run           read topics and write segments, until it is told to stop
  ledgerlake-ingest doctor        probe a bucket: is it safe to keep an archive in?
  ledgerlake-ingest scrub         show what a policy of scrubbing makes of records, and store nothing
  ledgerlake-ingest versions      print what is known of the versions of AuditableCall
  ledgerlake-ingest reset-chain   declare a bad tail of a partition void, and begin its logs anew

Each command has a --help of its own. --version prints the version.

Exit codes:
  0  done, or stopped cleanly
  1  failed; the last line of stderr says why
  2  bad configuration: nothing was done; the line names the setting, where it was set, and what is allowed
  3  the bucket went back in time: it lacks what Kafka knows that it held; the line says what is missing and what to do
`

const runHelp = `ledgerlake-ingest run reads Kafka topics and writes each record, once, as a row of a hash chain in Parquet files.

Only --bucket and what to read (--topics, --topic-pattern or --assign) are needed. With a Kafka and an S3-compatible store on a laptop:

  export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...
  ledgerlake-ingest run --topics audit.calls --brokers 127.0.0.1:9092 \
    --bucket 's3://audit?endpoint=http://127.0.0.1:9000' --log-format console

(ledgerlake-devstack up brings both up, and prints the command with its own addresses.) Then, from the bucket alone:

  ledgerlake-verify 's3://audit?endpoint=http://127.0.0.1:9000'

It may be killed at any time: it goes on where the newest segment in the bucket ends, whatever Kafka's group offset
says. SIGTERM or SIGINT stops it cleanly within --shutdown-timeout; a second one ends it at once. Run several with one
--group to share the partitions. /healthz, /readyz and /metrics are at --http.listen; docs/operations.md explains them.

Any setting can also stand in a YAML file (--config FILE: batch: {rows: 64}) or in the environment
(LEDGERLAKE_BATCH_ROWS=64). Flags go before the environment, that before the file. Secrets have no flag.

Exit codes: 0 stopped cleanly, 1 failed (or stopped cleanly, but a partition had stopped before), 2 bad configuration,
3 the bucket went back in time (restored from a backup, say): restore what it lost, or start once with --trust-bucket.

`

const doctorHelp = `ledgerlake-ingest doctor tries on a bucket what an archive relies on, and says in one line each what it found.

  ledgerlake-ingest doctor --bucket 's3://audit?endpoint=http://127.0.0.1:9000'

It writes a few small objects under probe/ and deletes them. The settings are those of run; a YAML file
for run (--config FILE) serves as well.

Exit codes: 0 safe, 1 not safe or not to be reached, 2 bad configuration.

`

const scrubHelp = `ledgerlake-ingest scrub shows what a policy of scrubbing makes of records, and stores nothing.

  kcat -C -e -t audit.calls | ledgerlake-ingest scrub --scrub-policy policy.yaml

Each line of --in, or of standard input, is printed as it would be stored: JSON stays JSON, other text is scrubbed as such.
run scrubs slots alone, and no columns; docs/scrubbing.md says what each rule finds, and how a policy is written. The last
line of stderr has the policy's id, as rows state it, and how many lines were changed.

Exit codes: 0 done, 1 failed, 2 bad configuration or policy: the line names the member and its line.

`

const resetHelp = `ledgerlake-ingest reset-chain declares the newest segments of a partition void, from the first bad one on.

A partition whose newest segments are damaged, or say what Kafka never said, stops: nothing is built on them. The way out
is to restore the object. Where that cannot be, this command begins the partition's logs anew behind the last good row, in
a new epoch, and their records are read from Kafka again. It is never silent: each log gets a chain-reset row with the
reason, and ledgerlake-verify shows it for ever (exit code 4). What an anchor covers is never declared void.

  ledgerlake-ingest reset-chain --topic audit.calls --partition 3 --reason 'disk of store 2 failed' \
    --brokers 127.0.0.1:9092 --bucket 's3://audit?endpoint=http://127.0.0.1:9000'

prints what would be done; with --yes it is. Give it the settings of run (--config FILE), above all its group, keys and version: the group
vouches for the new segment in Kafka, and a reset that no voucher vouches for is believed by no start. Where it died half
way, or another operator was faster, run it again. The stopped processes have to be started again afterwards.

Exit codes: 0 shown, or done; 1 refused or failed; the last line of stderr says why. 2 bad configuration: nothing was done.

`

const versionsHelp = `ledgerlake-ingest versions prints what is known of each version of AuditableCall: when it landed, why, what it added.
What nobody wrote down is a dash, and absent from JSON. Records of any version are archived whole, also of later ones.

  --json
        Print it as a JSON array.
`

// writeHelp writes a command's text and its flags.
func writeHelp(w io.Writer, text string, sections []config.Section) error {
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	if _, err := fmt.Fprint(w, "Settings:\n\n  --config FILE\n        A YAML file of settings. In the environment: LEDGERLAKE_CONFIG.\n\n"); err != nil {
		return err
	}
	config.WriteHelp(w, sections)
	return nil
}

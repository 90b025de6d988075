package main

import (
	"fmt"
	"io"

	"github.com/ledgerlake/ledgerlake/config"
)

func helpText() string {
	return `ledgerlake-compact turns the segments of an archive into data files, and does what its control logs order.

` + commandList() + `
Each command has a --help of its own. --version prints the version. docs/compaction.md, docs/erasure.md and
docs/retention.md explain what is done when.

` + codesInWords
}

const runHelp = `ledgerlake-compact run compacts an archive, erases what is ordered, and lets expire what policies say.

Only --bucket and --topics (or --topic-pattern, or --compact.assign all) are needed:

  export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...
  ledgerlake-compact run --topics audit.calls --brokers 127.0.0.1:9092 \
    --bucket 's3://audit?endpoint=http://127.0.0.1:9000' --log-format console

It may be killed at any time, and several may run: those of one --compact.group share the lines. Where ledgerlake-ingest
signs anchors, --key (its vkey) and --catalog-key are needed too. Without --retention-file nothing ever goes that nobody
ordered.

A line that is halted (a damaged object, a catalog that nobody good signed) is told, and the others go on.

Any setting can also stand in a YAML file (--config FILE) or in the environment (LEDGERLAKE_PURGE_AFTER=7d), also in those
of ledgerlake-ingest. /healthz, /readyz and /metrics are at --http.listen.

` + codesInWords + `
`

const onceHelp = `ledgerlake-compact once does what run does, for all lines of the bucket, until nothing is left to do now.

What waits for its time (--purge-after, the grace of deletions, receipts that ingest has not archived yet) is left to the
next time: run it from a scheduler every few minutes, or at least as often as --erasure-within allows.

` + codesInWords + `
`

const planHelp = `ledgerlake-compact plan prints what the next pass over each line would do, and why. Nothing is written.

` + codesInWords + `
`

const statusHelp = `ledgerlake-compact status prints how far compaction of each line is: the catalog's version, segments that wait, data
files, orders and holds that the catalog lists. Nothing is written.

` + codesInWords + `
`

const eraseHelp = `ledgerlake-compact erase orders that content of rows is erased: it writes a record to the control topic.

  ledgerlake-compact erase --tenant acme --user u-4711 --reason 'request of the data subject' --request-ref DSR-2026-17 \
    --bucket s3://audit --brokers kafka:9092 --dry-run

prints what is meant now; without --dry-run it is ordered. It reaches all logs of the tenant, in all topics, also those
that are gone from Kafka. Readers hide the rows as soon as the order is archived; after --purge-after the rows are
rewritten, and after the grace the old objects deleted, all versions of them; then a receipt is archived. Until it is due
an order can be taken back: ledgerlake-compact cancel. Rows that the target means and that come later are erased too,
until --late-window after the receipt. Rejected records whose tenant could not be known need an order of their own, with
--tenant _unattributed. docs/erasure.md says what is not reached: Kafka, dead letters, exports, backups.

` + codesInWords + `
`

const cancelHelp = `ledgerlake-compact cancel takes an order of erasure back, until it is due (--purge-after).

  ledgerlake-compact cancel 01K... --tenant acme --reason 'wrong person' --bucket s3://audit --brokers kafka:9092

` + codesInWords + `
`

const holdHelp = `ledgerlake-compact hold sets a legal hold: rows in its scope are neither erased nor dropped, until it is lifted.

  ledgerlake-compact hold --tenant acme --session s-17 --reason 'case 2026-4' --bucket s3://audit --brokers kafka:9092

It is in force once the catalog of a line lists it (ledgerlake-compact status), which takes as long as an anchor and a pass.

` + codesInWords + `
`

const releaseHelp = `ledgerlake-compact release lifts a legal hold of the same scope. What was ordered of the rows meanwhile is done then.

` + codesInWords + `
`

const erasuresHelp = `ledgerlake-compact erasures prints the state of each order of erasure, line by line:

  ordered     archived; an anchor, or some line, is behind
  gated       each line lists it, and readers hide the rows; it can be taken back until it is due
  purged      the rows are rewritten; old objects wait for the grace
  gone        no version of an old object is left
  receipted   the receipt is archived; rows that come late are erased still
  closed      the order's own context is erased too
  cancelled   taken back in time
  held        a legal hold keeps it from being carried out
  refused     a retention policy forbids it for now
  unread      it orders nothing

` + codesInWords + `
`

const retentionHelp = `ledgerlake-compact retention orders what is due to go by --retention-file: cuts of whole rows, expiry of content. run does
the same by itself. --dry-run prints it, with rows, bytes, files and time range, and orders nothing.

` + codesInWords + `
`

const offboardHelp = `ledgerlake-compact offboard orders that all of a tenant goes: every data log is cut at its size, and the contexts of the
tenant's own redactions and holds are erased. Its control log stays as the receipt. What a legal hold or a statutory floor
keeps stays. It prints what would go; --yes orders it. Stop the tenant's producers first: rows that come later stay, until it
is run again.

` + codesInWords + `
`

const doctorHelp = `ledgerlake-compact doctor tries on a bucket what compaction and erasure rely on, and looks at the control topic: whether it
is there, and whether more than its operators may write to it.

` + codesInWords + `
`

const versionsHelp = `ledgerlake-compact versions lists versions and delete markers that the store keeps besides the newest version of each
object, and unfinished uploads: what somebody else deleted or wrote over, or what a lifecycle rule should have taken.
Objects that compaction deleted leave none. Exit code 4 where there are any.

` + codesInWords + `
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

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/internal/reach"
)

// commonHelp is the part of help of all commands that write rows.
const commonHelp = outputHelp + readHelp

const turnHelp = program + ` turn prints the records of a turn: what one message of a user set off, a decision, a trace.

  ` + program + ` turn [flags] --tenant NAME --turn ID TARGET

  ` + program + ` turn --tenant acme --turn 01KBCDEFGHM9S346Q3D2000007 --format table ./data/audit

They come as seqWithinTurn counts them, then by time, from all logs of the tenant. A turn that is unknown has none, and
that is no error. Of data files only those parts are read that may have it: docs/export.md says what that costs.

Flags:
  --tenant NAME
        Whose turn it is.
  --turn ID
        turnId; of decisions the decisionId, of interaction logs the traceId.
  --session ID
        Only records of this session, and those that name none.
` + commonHelp

func turn(ctx context.Context, c call) (int, error) {
	q := newQuery("turn")
	var id, session string
	q.StringVar(&id, "turn", "", "")
	q.StringVar(&session, "session", "", "")
	rest, err := q.Parse(c.args)
	switch {
	case err != nil:
		return showHelp(c, turnHelp, err)
	case id == "" || q.tenant == "":
		return exitCannotRun, fmt.Errorf("%w: want --tenant and --turn; --help says more", errUsage)
	}
	return q.answer(ctx, c, rest, func(a *export.Archive) iter.Seq2[*export.Row, error] {
		return found(a.Turn(ctx, q.tenant, session, id))
	})
}

const sessionHelp = program + ` session prints the records of a session, the newest first.

  ` + program + ` session [flags] --tenant NAME --session ID TARGET

  ` + program + ` session --tenant acme --session sess-7 --limit 20 ./data/audit
  ` + program + ` session --tenant acme --session sess-7 --limit 20 --before 01KBCDEFGHM9S346Q3D2000007 ./data/audit

The order is that of recordId; records without one stand by their time. For the next page give the recordId of the last
record as --before. Records with the recordId of the last one all come, so that a page may have some more.

Flags:
  --tenant NAME
        Whose session it is.
  --session ID
        sessionId; of decisions the conversationId.
  --limit N
        How many records. Default: 100.
  --before ULID
        Only records with a lesser recordId.
` + commonHelp

func session(ctx context.Context, c call) (int, error) {
	q := newQuery("session")
	var id string
	var page export.Page
	q.StringVar(&id, "session", "", "")
	q.IntVar(&page.Limit, "limit", export.DefaultLimit, "")
	q.StringVar(&page.Before, "before", "", "")
	rest, err := q.Parse(c.args)
	switch {
	case err != nil:
		return showHelp(c, sessionHelp, err)
	case id == "" || q.tenant == "":
		return exitCannotRun, fmt.Errorf("%w: want --tenant and --session; --help says more", errUsage)
	case page.Limit < 1:
		return exitCannotRun, fmt.Errorf("%w: --limit: want 1 or more", errUsage)
	case page.Before != "" && !export.IsCursor(page.Before):
		return exitCannotRun, fmt.Errorf("%w: --before: want a recordId, which is a ULID", errUsage)
	}
	return q.answer(ctx, c, rest, func(a *export.Archive) iter.Seq2[*export.Row, error] {
		return found(a.Session(ctx, q.tenant, id, page))
	})
}

const rangeHelp = program + ` range prints the records of a range of time, of one tenant or of all.

  ` + program + ` range [flags] [--tenant NAME] --from TIME --to TIME TARGET

  ` + program + ` range --tenant acme --from 2026-11-01 --to 2026-12-01 --format csv --output november.csv ./data/audit

A record is in the range by its createdAt, from the first moment up to, and without, the second; also where it was
archived long after that. One without createdAt, such as a rejected one, is by when it was archived. Records come log by
log, in the order of each chain; those of several tenants that are not compacted yet come mixed.

Flags:
  --tenant NAME
        Only this tenant's. Default: all.
  --from TIME, --to TIME
        2026-05-28T12:00:00Z, or a day, which begins in UTC. One of both may be left out.
  --chunk-size N
        After how many records what was written is handed on. Default: 500.
` + commonHelp

func timeRange(ctx context.Context, c call) (int, error) {
	q := newQuery("range")
	var r export.Range
	q.chunk = 500
	var from, to bool // are given
	q.Func("from", "", func(v string) (err error) { r.From, err = reach.ParseTime(v); from = true; return err })
	q.Func("to", "", func(v string) (err error) { r.To, err = reach.ParseTime(v); to = true; return err })
	q.Int64Var(&q.chunk, "chunk-size", q.chunk, "")
	rest, err := q.Parse(c.args)
	switch {
	case err != nil:
		return showHelp(c, rangeHelp, err)
	case !from && !to:
		return exitCannotRun, fmt.Errorf("%w: want --from, --to or both; --help says more", errUsage)
	case to && !r.To.After(r.From):
		return exitCannotRun, fmt.Errorf("%w: --to %s is not after --from %s", errUsage, r.To.Format(time.RFC3339Nano), r.From.Format(time.RFC3339Nano))
	case q.chunk < 1:
		return exitCannotRun, fmt.Errorf("%w: --chunk-size: want 1 or more", errUsage)
	}
	r.Tenant = q.tenant
	return q.answer(ctx, c, rest, func(a *export.Archive) iter.Seq2[*export.Row, error] { return a.Range(ctx, r) })
}

const recordHelp = program + ` record prints one record.

  ` + program + ` record [flags] RECORD-ID TARGET
  ` + program + ` record [flags] --tenant NAME --seq N [--topic NAME] [--partition N] TARGET

  ` + program + ` record --bare 01KBCDEFGHM9S346Q3D2000007 ./data/audit

With --bare it is what its producer sent, value for value, unless something of it was scrubbed or erased. Where a record
was archived twice, both rows come. Where there is none the exit code is 3. 'ledgerlake-verify prove' writes its proof.

Flags:
  --tenant NAME
        Whose record it is.
  --seq N
        In the place of RECORD-ID: the row of this seq in each log of the tenant.
  --topic NAME, --partition N
        With --seq: only the logs there.
` + commonHelp

func record(ctx context.Context, c call) (int, error) {
	q := newQuery("record")
	at := place{seq: -1}
	q.Func("seq", "", at.setSeq)
	q.StringVar(&at.topic, "topic", "", "")
	q.Func("partition", "", at.setPartition)
	rest, err := q.Parse(c.args)
	if err != nil {
		return showHelp(c, recordHelp, err)
	}
	ask, rest, err := q.which(ctx, &at, rest)
	if err != nil {
		return exitCannotRun, err
	}
	code, err := q.answer(ctx, c, rest, ask)
	if code == exitDone && err == nil && q.shown == 0 {
		_, err = fmt.Fprintf(c.stderr, "%s: no such record\n", program)
		return exitIncomplete, err
	}
	return code, err
}

// which says what record asks for, and what of the arguments is left.
func (q *query) which(ctx context.Context, at *place, rest []string) (ask func(*export.Archive) iter.Seq2[*export.Row, error], _ []string, err error) {
	switch {
	case at.seq >= 0 && q.tenant == "":
		return nil, nil, fmt.Errorf("%w: --seq counts the rows of a tenant: give --tenant too", errUsage)
	case at.seq >= 0:
		return func(a *export.Archive) iter.Seq2[*export.Row, error] {
			return found(a.At(ctx, q.tenant, at.has, at.seq))
		}, rest, nil
	case at.topic != "" || at.partition != nil:
		return nil, nil, fmt.Errorf("%w: --topic and --partition go with --seq", errUsage)
	case len(rest) == 0:
		return nil, nil, fmt.Errorf("%w: want a record id, or --seq; --help says more", errUsage)
	case !export.IsCursor(rest[0]):
		return nil, nil, fmt.Errorf("%w: %q is no record id, which is a ULID; rows without one are found by --seq", errUsage, rest[0])
	}
	return func(a *export.Archive) iter.Seq2[*export.Row, error] { return found(a.Record(ctx, q.tenant, rest[0])) }, rest[1:], nil
}

// A place is where a row of a log stands.
type place struct {
	seq       int64 // -1: not asked for
	topic     string
	partition *int32
}

func (p *place) setSeq(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return errors.New("want the seq of a row, which is 0 or more")
	}
	p.seq = n
	return nil
}

func (p *place) setPartition(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return errors.New("want the number of a partition")
	}
	p.partition = new(int32(n))
	return nil
}

func (p *place) has(l archive.Line) bool {
	return (p.topic == "" || l.Topic == p.topic) && (p.partition == nil || l.Partition == *p.partition)
}

const subjectHelp = program + ` subject prints all records of a person, for a request of access.

  ` + program + ` subject [flags] --user ID [--tenant NAME] TARGET

  ` + program + ` subject --tenant acme --user user-1003 --output answer.jsonl ./data/audit

These are the records with the userId, and the rejected ones whose bytes hold it, plain or escaped. What was erased of a
person, or is to be, is not shown. Records of others may name the person in their text: those are not searched.

Flags:
  --user ID
        userId.
  --tenant NAME
        Only this tenant's. Default: all.
` + commonHelp

func subject(ctx context.Context, c call) (int, error) {
	q := newQuery("subject")
	var user string
	q.StringVar(&user, "user", "", "")
	rest, err := q.Parse(c.args)
	switch {
	case err != nil:
		return showHelp(c, subjectHelp, err)
	case user == "":
		return exitCannotRun, fmt.Errorf("%w: want --user; --help says more", errUsage)
	}
	return q.answer(ctx, c, rest, func(a *export.Archive) iter.Seq2[*export.Row, error] { return a.Subject(ctx, q.tenant, user) })
}

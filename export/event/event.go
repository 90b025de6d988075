// Package event says what of an archive goes to a SIEM, and in which formats.
//
//	record    a row of the archive
//	pointer   a row that is too large for where it goes: all but its content
//	head      what an anchor says of a log, so that its receiver can hold the archive to it
//	erasure   rows that the receiver had were erased: what went, of which of them
//	check     a test, and nothing else
//
// An [Encoder] writes events in one [Format]; the tables by which it does so are
// in docs/export-mappings.md, which a test makes from them. Whatever a producer
// wrote stays a value: in no format can it become a member, a field or a line.
//
// Each record carries tenant, log, seq, prev_hash and row_hash: with them a
// receiver that has all of a log finds a hole, a repeat, a swap and a change
// without the bucket.
//
// The package is pure: no clock, no network, no randomness. It does not decide
// what of a row may be shown, checks no hash, and sends nothing.
package event

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Kind says what an event is about.
type Kind string

// The kinds of events.
const (
	KindRecord  Kind = "record"
	KindPointer Kind = "pointer"
	KindHead    Kind = "head"
	KindErasure Kind = "erasure"
	KindCheck   Kind = "check"
)

// An Event is one thing to tell a destination. [NewRecord], [NewHead],
// [NewErasure] and [NewCheck] make them; the zero Event is none.
//
// It does not change once it is made, and may be read by several goroutines.
type Event struct {
	Kind Kind
	// ID is 64 hex digits: the row_hash of a record and of its pointer, a hash
	// of what it says for all else. The same thing told again has the same ID.
	ID     string
	Tenant string // "" of a check
	Line   archive.Line
	Seq    int64 // of a record or pointer; of all else -1

	Row      *chain.Row // of a record or pointer: what of it may be shown
	Verified bool       // of a record or pointer: its hash was checked before it was sent
	Head     *Head
	Erasure  *Erasure
	Check    *Check

	// Time is when it happened: created_at of a row, or else its
	// kafka_timestamp, or else its archived_at; the time of the anchor, the
	// erasure or the check. UTC, to the microsecond.
	Time time.Time
}

// A Head is what an anchor says of one log.
type Head struct {
	Size   int64      // rows
	Hash   chain.Hash // row_hash of the last one
	Root   chain.Hash // of the log's tree
	Epoch  int32
	Anchor int64 // the anchor's number in its line
	Time   time.Time
	// Note is a signed statement that says the same, for who wants to keep one:
	// the log's C2SP checkpoint. "" where there is none.
	Note string
}

// An Erasure says that rows are no longer as they were sent.
type Erasure struct {
	// What says what went, and by which order: What.ID is the record_id of the
	// redaction.
	What       chain.Sentinel
	RequestRef string // of the order; "" where it has none
	// Ranges are the rows, first and last seq, both in it; at most MaxRanges.
	Ranges [][2]int64
	Time   time.Time // of the order
}

// MaxRanges is the number of ranges that one notice of an erasure has at most.
const MaxRanges = 5000

// A Check is a test of a destination.
type Check struct {
	Destination string // its name
	Nonce       string // tells this test from others
	Time        time.Time
}

// NewRecord returns the event of a row. It keeps row, which is not to change.
func NewRecord(line archive.Line, row *chain.Row, verified bool) *Event {
	return &Event{
		Kind: KindRecord, ID: row.RowHash.String(), Tenant: row.TenantID.S, Line: line, Seq: row.Seq.N,
		Row: row, Verified: verified, Time: timeOf(&row.Record),
	}
}

// NewHead returns the event of the head of a tenant's log.
func NewHead(line archive.Line, tenant string, h Head) *Event {
	id := newID(KindHead, line, tenant)
	id = chain.AppendInt(id, h.Anchor)
	id = chain.AppendInt(id, h.Size)
	id = append(append(id, h.Hash[:]...), h.Root[:]...)
	return &Event{Kind: KindHead, ID: sum(id), Tenant: tenant, Line: line, Seq: -1, Head: &h, Time: utc(h.Time)}
}

// NewErasure returns the notice of an erasure to who had rows of a tenant's
// log. It panics where e.What is not valid or there are more than [MaxRanges].
func NewErasure(line archive.Line, tenant string, e Erasure) *Event {
	if len(e.Ranges) > MaxRanges {
		panic("event: more ranges than one notice may have")
	}
	id := newID(KindErasure, line, tenant)
	id = chain.AppendString(id, e.What.String())
	for _, r := range e.Ranges {
		id = chain.AppendInt(chain.AppendInt(id, r[0]), r[1])
	}
	return &Event{Kind: KindErasure, ID: sum(id), Tenant: tenant, Line: line, Seq: -1, Erasure: &e, Time: utc(e.Time)}
}

// NewCheck returns a test of a destination.
func NewCheck(c Check) *Event {
	id := newID(KindCheck, archive.Line{}, "")
	id = chain.AppendString(chain.AppendString(id, c.Destination), c.Nonce)
	id = chain.AppendInt(id, c.Time.UnixMicro())
	return &Event{Kind: KindCheck, ID: sum(id), Seq: -1, Check: &c, Time: utc(c.Time)}
}

// Pointer returns the event of the same row without its content, for where the
// whole is too large: its ID is the same. Of what is no record it returns ev.
func (ev *Event) Pointer() *Event {
	if ev.Kind != KindRecord {
		return ev
	}
	p := *ev
	p.Kind = KindPointer
	return &p
}

// Split returns a notice of an erasure as notices of at most n ranges each, n
// being at least 1, and all else as it is.
func (ev *Event) Split(n int) []*Event {
	if ev.Erasure == nil || len(ev.Erasure.Ranges) <= n {
		return []*Event{ev}
	}
	var parts []*Event
	for ranges := range slices.Chunk(ev.Erasure.Ranges, n) {
		e := *ev.Erasure
		e.Ranges = ranges
		parts = append(parts, NewErasure(ev.Line, ev.Tenant, e))
	}
	return parts
}

// IsRow reports whether the event is about a row of the archive.
func (ev *Event) IsRow() bool { return ev.Row != nil }

// newID returns the beginning of what the ID of an event is the hash of.
func newID(k Kind, line archive.Line, tenant string) []byte {
	id := chain.AppendString([]byte("ledgerlake.event.v1\n"), string(k))
	id = chain.AppendString(chain.AppendString(id, line.Topic), line.TopicID)
	return chain.AppendString(chain.AppendInt(id, int64(line.Partition)), tenant)
}

func sum(b []byte) string { return chain.Hash(sha256.Sum256(b)).String() }

// timeOf returns when a record happened, as well as it says.
func timeOf(r *audit.Record) time.Time {
	for _, c := range []audit.Int{r.CreatedAt, r.KafkaTimestamp, r.ArchivedAt} {
		if c.Valid {
			return time.UnixMicro(c.N).UTC()
		}
	}
	return time.UnixMicro(0).UTC()
}

func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

package control

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Target says which rows of a tenant an order reaches. One form is set:
//
//	Record                        the row of a record id
//	Session, Turn, Stage, Within  the row of these coordinates
//	Turn | Session | User         all rows of one
//	Log, Offset                   the row of a Kafka offset
//	Log, Before                   the rows of a log whose seq is less: expiry by policy
//
// Source: docs/format.md, section 4.
type Target struct {
	Record, Session, Turn, Stage, User *string
	Within                             *int64 // seqWithinTurn
	Log                                *archive.Line
	Offset, Before                     *int64
}

// Valid reports whether the target has one of the forms.
func (t *Target) Valid() bool {
	form := ""
	for _, m := range []struct {
		letter string
		set    bool
	}{
		{"r", t.Record != nil},
		{"s", t.Session != nil},
		{"t", t.Turn != nil},
		{"g", t.Stage != nil},
		{"w", t.Within != nil},
		{"u", t.User != nil},
		{"l", t.Log != nil},
		{"o", t.Offset != nil},
		{"b", t.Before != nil},
	} {
		if m.set {
			form += m.letter
		}
	}
	return slices.Contains([]string{"r", "stgw", "t", "s", "u", "lo", "lb"}, form)
}

// Fits reports whether a row is one that the target means, as far as the columns
// that are left of it can tell; hard is whether its header went too.
func (t *Target) Fits(row *chain.Row, hard bool) bool {
	same := func(want *string, got audit.Text) bool { return want == nil || hard || got.Valid && got.S == *want }
	switch {
	case t.Log != nil && *t.Log != lineOf(row):
		return false
	case t.Before != nil:
		return row.Seq.N < *t.Before
	case t.Offset != nil:
		return row.KafkaOffset.Valid && row.KafkaOffset.N == *t.Offset
	case t.User != nil && row.UserID.Valid && row.Kind.S != audit.KindRejected:
		return row.UserID.S == *t.User
	case t.User != nil:
		// A rejected row may have held it in raw, whomever its user_id names.
		return row.UserCommit.Valid || row.Kind.S == audit.KindRejected
	case t.Within != nil && !hard && (!row.SeqWithinTurn.Valid || row.SeqWithinTurn.N != *t.Within):
		return false
	case t.Record != nil && !hard:
		return row.RecordID.Valid && strings.EqualFold(row.RecordID.S, *t.Record)
	}
	return same(t.Session, row.SessionID) && same(t.Turn, row.TurnID) && same(t.Stage, row.StageID)
}

func lineOf(row *chain.Row) archive.Line {
	return archive.Line{Topic: row.Topic.S, TopicID: row.TopicID.S, Partition: int32(row.Partition.N)}
}

// Means reports whether the target means a row that has what it goes by: rows
// of a user by user_id, and rejected rows whose raw, key or headers hold the id,
// plain or in any escaping of JSON. A row from which user_id went is no user's
// any more.
//
// What governs an archive, and what holds it together, is meant by no target:
// gap rows, chain resets, receipts, cuts and cancellations. Of control rows only
// a redaction or a hold is, and by its record id or its place alone: it may name
// the user or the session that it is about.
func (t *Target) Means(row *chain.Row) bool { return t.means(&rejectedRow{row: row}) }

func (t *Target) means(r *rejectedRow) bool {
	row := r.row
	switch kind := row.Kind.S; {
	case kind == audit.KindGap, kind == audit.KindChainReset:
		return false
	case audit.IsControlKind(kind) && (!erasable(kind) || t.Record == nil && t.Log == nil):
		return false
	case t.User != nil:
		return r.isOf(*t.User)
	}
	return t.Fits(row, false)
}

// erasable reports whether the context of control rows of a kind can be erased.
func erasable(kind string) bool {
	return kind == audit.KindRedaction || kind == audit.KindLegalHold
}

// Reaches reports whether a redaction is to erase something from a row: its
// target means the row, and the row is not younger than the request. A row that
// was archived after it is as young as its created_at, and as Kafka's timestamp
// where that is null; one that was archived before it is old, whatever it says
// of itself. A target that names a row or a place (record id, coordinates,
// offset, seq) reaches it whenever it was made.
//
// From a control row nothing goes but its context, so that only a redaction of
// exactly that reaches one.
func (r *Row) Reaches(row *chain.Row) bool { return r.reaches(&rejectedRow{row: row}) }

func (r *Row) reaches(asked *rejectedRow) bool {
	o, row := r.Redaction, asked.row
	if o == nil || r.Tenant != row.TenantID.S || !o.Target.means(asked) {
		return false
	}
	if audit.IsControlKind(row.Kind.S) && o.Erasure != (Erasure{Slots: chain.SlotSetOf(audit.SlotContext)}) {
		return false
	}
	return o.Target.exact() || row.ArchivedAt.N <= cmp.Or(r.reach, r.ArchivedAt) || madeAt(row) <= r.CreatedAt
}

// Bounds returns how old a row must be that the redaction reaches, by either of two
// times, in microseconds: archived until the first, or made, as created_at says,
// until the second. Where always is true, it reaches rows of any age.
func (r *Row) Bounds() (archived, made int64, always bool) {
	return cmp.Or(r.reach, r.ArchivedAt), r.CreatedAt, r.Redaction != nil && r.Redaction.Target.exact()
}

// exact reports whether the target names a row or a place.
func (t *Target) exact() bool { return t.Record != nil || t.Within != nil || t.Log != nil }

// madeAt returns when a row's record was made, in microseconds.
func madeAt(row *chain.Row) int64 {
	switch {
	case row.CreatedAt.Valid:
		return row.CreatedAt.N
	case row.KafkaTimestamp.Valid:
		return row.KafkaTimestamp.N
	}
	return row.ArchivedAt.N
}

// isOf reports whether the row is of a user.
func (r *rejectedRow) isOf(user string) bool {
	if r.row.UserID.Valid && r.row.UserID.S == user {
		return true
	}
	return r.row.Kind.S == audit.KindRejected && r.mentions(user)
}

package export

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Row is one row of the archive, as far as it may be shown. It is the caller's,
// and is not written to again.
type Row struct {
	chain.Row
	Line   archive.Line
	Scheme string // of its log: [chain.SchemeV1] or [chain.SchemeHMACv1]
	// Checked: all of it that the row itself can show was recomputed. Else its log
	// is keyed, and its key was not at hand: row_hash was left out.
	Checked bool
	// Gated are the ids of orders that are not carried out yet and took something
	// of it here, in the order in which they were archived.
	Gated []string
	Key   string // of the object that it was read from
}

// At returns the moment that a row is placed at: its created_at, or archived_at
// where it has none, as rejected rows have.
func (r *Row) At() time.Time { return time.UnixMicro(at(&r.Row)).UTC() }

func at(row *chain.Row) int64 {
	if row.CreatedAt.Valid {
		return row.CreatedAt.N
	}
	return row.ArchivedAt.N
}

// Place compares rows by where they stand: by line, tenant and seq.
func (r *Row) Place(o *Row) int {
	return cmp.Or(
		cmp.Compare(r.Line.Topic, o.Line.Topic), cmp.Compare(r.Line.TopicID, o.Line.TopicID), cmp.Compare(r.Line.Partition, o.Line.Partition),
		cmp.Compare(r.TenantID.S, o.TenantID.S), cmp.Compare(r.Seq.N, o.Seq.N),
	)
}

// inTurn compares rows of a turn: by seqWithinTurn, those without one behind the
// others, then by time.
func inTurn(a, b *Row) int {
	switch {
	case a.SeqWithinTurn.Valid && b.SeqWithinTurn.Valid:
		return cmp.Or(cmp.Compare(a.SeqWithinTurn.N, b.SeqWithinTurn.N), inTime(a, b))
	case a.SeqWithinTurn.Valid:
		return -1
	case b.SeqWithinTurn.Valid:
		return 1
	}
	return inTime(a, b)
}

func inTime(a, b *Row) int { return cmp.Or(cmp.Compare(at(&a.Row), at(&b.Row)), a.Place(b)) }

// Cursor returns what a row is ordered by among those of a session: its
// record_id, or where it has none, the least ULID of its moment. It is what
// [Page.Before] takes.
func (r *Row) Cursor() string {
	if r.RecordID.Valid {
		return strings.ToUpper(r.RecordID.S)
	}
	return ulidAt(at(&r.Row))
}

// IsCursor reports whether a text can be a [Row.Cursor]: a ULID, in either case.
func IsCursor(text string) bool {
	_, err := audit.ParseRecordID(text)
	return err == nil
}

// ulidAt returns the least ULID of a moment. Source: https://github.com/ulid/spec.
func ulidAt(micros int64) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	id := []byte(strings.Repeat("0", 26))
	ms := uint64(min(max(micros/1000, 0), 1<<48-1))
	for i := 9; i >= 0; i-- {
		id[i], ms = digits[ms%32], ms/32
	}
	return string(id)
}

// newestFirst compares rows of a session.
func newestFirst(a, b *Row) int {
	return cmp.Or(-cmp.Compare(a.Cursor(), b.Cursor()), inTime(b, a))
}

// keep makes what a row holds its own: what is decoded lies in the pages of a
// whole object, which a few rows must not hold in memory.
func (r *Row) keep() {
	for i := range audit.Header {
		if text := audit.Header[i].Text; text != nil {
			own(text(&r.Record))
		}
	}
	for _, t := range []*audit.Text{&r.UserID, &r.TopicID, &r.RequestedModel, &r.SelectedReason, &r.Residual, &r.Redaction, &r.RedactionID} {
		own(t)
	}
	for s := range r.Slots {
		r.Slots[s] = bytes.Clone(r.Slots[s])
	}
	if r.FallbackChain != nil {
		r.FallbackChain = slices.Clone(r.FallbackChain)
		for i := range r.FallbackChain {
			r.FallbackChain[i] = strings.Clone(r.FallbackChain[i])
		}
	}
}

func own(t *audit.Text) { t.S = strings.Clone(t.S) }

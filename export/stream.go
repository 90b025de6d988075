package export

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Range is what [Archive.Range] is asked for.
type Range struct {
	Tenant string // "" means all
	// From and To bound the moment of a row ([Row.At]): created_at in [From, To),
	// and archived_at of rows that have none. The zero times are no bounds.
	From, To time.Time
}

// Range yields the rows of a range of time, late ones too. They come line by line,
// each log in the order of its chain. Rows of several tenants that are not
// compacted yet come mixed, as they were archived.
//
// Data files that have no such row by their catalog are not read. All others are,
// and the segments that have the tenant.
func (a *Archive) Range(ctx context.Context, r Range) iter.Seq2[*Row, error] {
	from, to := r.bounds()
	return a.stream(ctx, ask{
		tenant: r.Tenant,
		match:  func(row *chain.Row) bool { return from <= at(row) && at(row) < to },
		skips:  func(f *archive.CatalogFile) bool { return !mayHave(f, from, to) },
	}, nil)
}

// bounds returns the range in microseconds.
func (r Range) bounds() (from, to int64) {
	from, to = minTime, maxTime
	if !r.From.IsZero() {
		from = ceilMicros(r.From)
	}
	if !r.To.IsZero() {
		to = ceilMicros(r.To)
	}
	return from, to
}

const (
	minTime = -1 << 63
	maxTime = 1<<63 - 1
)

// ceilMicros returns the first microsecond that is not before t.
func ceilMicros(t time.Time) int64 {
	micros := t.UnixMicro()
	if time.UnixMicro(micros).Before(t) {
		micros++
	}
	return micros
}

// mayHave reports whether a file can have a row of [from, to): by the created_at
// of those that have one, and by its day, as rows without are placed at
// archived_at.
func mayHave(f *archive.CatalogFile, from, to int64) bool {
	if f.MinCreatedAt != nil && f.MaxCreatedAt != nil && f.MinCreatedAt.UnixMicro() < to && f.MaxCreatedAt.UnixMicro() >= from {
		return true
	}
	first, end, ok := dayOf(f)
	return !ok || first < to && end > from
}

// dayOf returns the day of a file: archived_at of all of its rows is in [first,
// end).
func dayOf(f *archive.CatalogFile) (first, end int64, ok bool) {
	day, err := time.Parse(archive.DayLayout, f.Day)
	return day.UnixMicro(), day.AddDate(0, 0, 1).UnixMicro(), err == nil
}

// A Scan is what [Archive.Rows] is asked for: all rows of one line from a seq on.
type Scan struct {
	Line   archive.Line
	Tenant string      // "" means all logs of the line; From and Prev are then not used
	From   int64       // seq
	Prev   *chain.Hash // row_hash of the row before From, genesis where From is 0; nil asks for nothing
	// Unchecked: rows are neither recomputed nor held against the row before; they
	// come with Checked false.
	Unchecked bool
}

// Rows yields the rows of a log from a seq on, in chain order. A log that begins
// behind that, because a prefix of it was dropped, is yielded from its first row
// on. The error matches [ErrTampered] where Prev is not what the log has there, or
// where the log has fewer than From rows.
func (a *Archive) Rows(ctx context.Context, s Scan) iter.Seq2[*Row, error] {
	q := ask{tenant: s.Tenant, unchecked: s.Unchecked}
	if s.Tenant != "" {
		q.from, q.begins, q.ends = s.From, s.begins, s.ends
	}
	return a.stream(ctx, q, func(l archive.Line) bool { return l == s.Line })
}

// begins holds Prev against the row before From.
func (s *Scan) begins(row *chain.Row, before chain.Hash) error {
	if s.Prev == nil || before == *s.Prev {
		return nil
	}
	if row.Kind.S != audit.KindChainReset && row.PrevHash == *s.Prev {
		return nil
	}
	return fmt.Errorf("%w: the row before it has another row_hash than %s, which is asked for", ErrPosition, s.Prev)
}

// ends holds From and Prev against the end of the log.
func (s *Scan) ends(at *logAt) error {
	switch {
	case at.next < s.From && s.Prev != nil:
		return tampered("%w: the log of tenant %.80q in %s/%d has %d rows, and row %d is asked for", ErrPosition, s.Tenant, s.Line.Topic, s.Line.Partition, at.next, s.From)
	case at.next == s.From && s.Prev != nil && at.head != *s.Prev:
		return tampered("%w: the log of tenant %.80q in %s/%d ends with another row than %s, which is asked for", ErrPosition, s.Tenant, s.Line.Topic, s.Line.Partition, s.Prev)
	}
	return nil
}

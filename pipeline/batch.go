package pipeline

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// An item is one stretch of offsets of a batch and what became of it.
type item struct {
	from, to int64  // offsets, to is exclusive
	gap      string // why nothing came from them; "" for a record
	row      int    // index in the batch's rows, -1 where there is none
	record   *kgo.Record
	reject   *audit.Reject
	coord    audit.Fingerprint
	content  audit.Fingerprint
	hasCoord bool
	// conflict: the row has become a reject because of another row. It is
	// decoded again should that other row turn out not to be archived.
	conflict bool
}

// A batch is what the next segment of a line is made from: its items in offset
// order, without holes.
type batch struct {
	items     []item
	rows      []*chain.Row
	seen      map[audit.Fingerprint]audit.Fingerprint // coordinates → content
	fresh     int                                     // items that will be rows, as far as is known
	bytes     int64                                   // of records, as the budget counts them
	size      int64                                   // of records, as they are on the wire
	opened    time.Time                               // when the first item came
	firstRow  time.Time                               // when the first fresh item came
	endOfTurn bool
}

func newBatch() *batch { return &batch{seen: map[audit.Fingerprint]audit.Fingerprint{}} }

func (b *batch) empty() bool { return len(b.items) == 0 }

// reset empties the batch and keeps its memory, unless that has become large.
func (b *batch) reset() {
	const keep = 1024
	for _, r := range b.rows {
		*r = chain.Row{}
		rowPool.Put(r)
	}
	items, rows, seen := b.items, b.rows, b.seen
	if cap(items) > keep {
		items, rows, seen = nil, nil, map[audit.Fingerprint]audit.Fingerprint{}
	}
	clear(items)
	clear(rows)
	clear(seen)
	*b = batch{items: items[:0], rows: rows[:0], seen: seen}
}

// end returns the offset after the batch's last one.
func (b *batch) end() int64 { return b.items[len(b.items)-1].to }

// addGap adds offsets that no record came from. A lost stretch becomes a row.
func (b *batch) addGap(from, to int64, cause string, now time.Time) {
	if n := len(b.items); n > 0 && b.items[n-1].gap == cause && cause != archive.GapLost {
		b.items[n-1].to = to
		return
	}
	it := item{from: from, to: to, gap: cause, row: -1}
	if cause == archive.GapLost {
		it.row = b.newRow()
		audit.Gap(&b.rows[it.row].Record, from, to, cause)
	}
	b.add(it, now)
}

// add appends an item, which is fresh if it has a row.
func (b *batch) add(it item, now time.Time) {
	if b.empty() {
		b.opened = now
	}
	if it.row >= 0 {
		if b.fresh == 0 {
			b.firstRow = now
		}
		b.fresh++
	}
	b.items = append(b.items, it)
}

// rowPool has zero rows. A row is 1.5 KB: idle partitions hold none, and a batch
// that grows copies none.
var rowPool = sync.Pool{New: func() any { return new(chain.Row) }}

func (b *batch) newRow() int {
	b.rows = append(b.rows, rowPool.Get().(*chain.Row))
	return len(b.rows) - 1
}

// dropBefore takes away all that lies below an offset, which somebody else has
// archived, and returns the bytes of the budget that this gives back.
func (b *batch) dropBefore(offset int64) (given int64) {
	kept := b.items[:0]
	for _, it := range b.items {
		if it.to <= offset {
			if it.record != nil {
				given += cost(it.record)
			}
			continue
		}
		it.from = max(it.from, offset)
		kept = append(kept, it)
	}
	clear(b.items[len(kept):])
	b.items = kept
	b.bytes -= given
	if b.empty() {
		b.reset()
	}
	return given
}

// timestamps returns those of the batch's records, in milliseconds since 1970.
func (b *batch) timestamps() []int64 {
	ts := make([]int64, 0, len(b.items))
	for i := range b.items {
		if r := b.items[i].record; r != nil {
			ts = append(ts, r.Timestamp.UnixMilli())
		}
	}
	return ts
}

// What of a trace context is read, in bytes: a traceparent is 55 of them, and a
// tracestate that is longer need not be passed on.
const (
	mostTraceparent = 128
	mostTracestate  = 512
)

// contexts returns the trace contexts of the batch's records, each once, in the
// order of offsets, and no more than most.
func (b *batch) contexts(most int) (found []TraceContext) {
	if most <= 0 {
		return nil
	}
	seen := map[string]struct{}{}
	for i := range b.items {
		if len(found) == most {
			break
		}
		r := b.items[i].record
		if r == nil {
			continue
		}
		parent, state := traceHeaders(r.Headers)
		if _, known := seen[string(parent)]; known || len(parent) == 0 {
			continue
		}
		c := TraceContext{Parent: string(parent), State: string(state)}
		seen[c.Parent] = struct{}{}
		found = append(found, c)
	}
	return found
}

// traceHeaders returns the values of the first headers of those names.
func traceHeaders(headers []kgo.RecordHeader) (parent, state []byte) {
	for _, h := range headers {
		switch {
		case h.Key == "traceparent" && parent == nil && len(h.Value) <= mostTraceparent:
			parent = h.Value
		case h.Key == "tracestate" && state == nil && len(h.Value) <= mostTracestate:
			state = h.Value
		}
	}
	return parent, state
}

// due reports whether the batch is to be closed now, given that no PUT is in
// flight; if not, it returns when it will be (the zero time: not by itself).
func (b *batch) due(s *Batch, now time.Time, spent bool) (bool, time.Time) {
	switch {
	case b.empty():
		return false, time.Time{}
	case b.endOfTurn, b.fresh >= s.Rows, b.full(s), spent:
		return true, time.Time{}
	}
	at := b.opened.Add(s.EmptyAge)
	if b.fresh > 0 {
		at = b.firstRow.Add(s.Age)
	}
	return !now.Before(at), at
}

// full reports whether the batch may not grow, a PUT being in flight.
func (b *batch) full(s *Batch) bool {
	if s.Strict {
		return len(b.items) >= s.Rows || b.endOfTurn
	}
	return len(b.items) >= s.GrowRows || b.size >= s.GrowBytes
}

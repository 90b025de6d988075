package pipeline

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
)

var noon = time.Unix(1_780_000_000, 0)

// due is the batch rule as a table: what the batch holds, how long it has been
// open, and whether it closes.
func TestBatchDue(t *testing.T) {
	rule := Settings{}.withDefaults().Batch
	record := func(n int) func(*batch) {
		return func(b *batch) {
			for range n {
				b.add(item{record: &kgo.Record{}, row: b.newRow()}, noon)
			}
		}
	}
	gap := func(b *batch) { b.addGap(5, 6, archive.GapControl, noon) }
	repeat := func(b *batch) { b.add(item{record: &kgo.Record{}, row: b.newRow()}, noon); b.fresh-- }
	full := func(b *batch) {
		for range rule.GrowRows {
			repeat(b)
		}
	}
	for _, c := range []struct {
		name  string
		fill  func(*batch)
		after time.Duration
		spent bool
		due   bool
		wake  time.Duration // 0: not by itself
	}{
		{"empty", func(*batch) {}, time.Hour, true, false, 0},
		{"one row, young", record(1), 49 * time.Millisecond, false, false, 50 * time.Millisecond},
		{"one row, old", record(1), 50 * time.Millisecond, false, true, 50 * time.Millisecond},
		{"31 rows", record(31), 0, false, false, 50 * time.Millisecond},
		{"32 rows", record(32), 0, false, true, 0},
		{"end of turn", func(b *batch) { record(1)(b); b.endOfTurn = true }, 0, false, true, 0},
		{"bytes", func(b *batch) { record(1)(b); b.size = 8 << 20 }, 0, false, true, 0},
		{"a marker, young", gap, 9 * time.Second, false, false, 10 * time.Second},
		{"a marker, old", gap, 10 * time.Second, false, true, 10 * time.Second},
		{"a repeat, young", repeat, 9 * time.Second, false, false, 10 * time.Second},
		{"repeats that may not be more", full, 0, false, true, 0}, // else a fresh record behind them would wait
		{"memory is spent", repeat, 0, true, true, 0},
	} {
		b := newBatch()
		c.fill(b)
		due, wake := b.due(&rule, noon.Add(c.after), c.spent)
		var in time.Duration
		if !wake.IsZero() {
			in = wake.Sub(noon)
		}
		if due != c.due || in != c.wake {
			t.Errorf("%s: due %v, looks again after %v; want %v, %v", c.name, due, in, c.due, c.wake)
		}
	}
}

// What somebody else has archived leaves a batch, a stretch of skipped offsets
// also in part, and its bytes go back to the budget.
func TestBatchDropBefore(t *testing.T) {
	fill := func() *batch {
		b := newBatch()
		b.addGap(0, 10, archive.GapCompacted, noon)
		for at := int64(10); at < 13; at++ {
			r := &kgo.Record{Offset: at}
			b.add(item{from: at, to: at + 1, record: r, row: b.newRow()}, noon)
			b.bytes += cost(r)
		}
		return b
	}
	for offset, want := range map[int64]struct {
		from  int64
		items int
		given int64
	}{
		0: {0, 4, 0}, 4: {4, 4, 0}, 10: {10, 3, 0}, 12: {12, 1, 2 * recordOverhead}, 13: {0, 0, 3 * recordOverhead},
	} {
		b := fill()
		given := b.dropBefore(offset)
		if given != want.given || len(b.items) != want.items || b.bytes != 3*recordOverhead-given {
			t.Errorf("drop before %d: gave %d, left %d items and %d bytes", offset, given, len(b.items), b.bytes)
		}
		if want.items > 0 && b.items[0].from != want.from {
			t.Errorf("drop before %d: begins at %d, want %d", offset, b.items[0].from, want.from)
		}
	}
}

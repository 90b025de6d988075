package export_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// begunAnew returns a line with a log whose epoch 1 begins at seq 4, in segment 3:
// alone in it, or behind a row of epoch 0 and in front of one of its own.
func begunAnew(alone bool) (*prooftest.Archive, *prooftest.Line) {
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	for range 3 {
		l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("acme") })
	}
	voided := l.RollBack(2)
	if alone {
		l.Segment(func(b *prooftest.Batch) { b.Reset("acme", "operator", voided...) })
	} else {
		l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Reset("acme", "operator", voided...); b.Call("acme") })
	}
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("acme") })
	l.Anchor()
	return a, l
}

// shown returns the seqs of acme that a range shows, and that look-ups show one by
// one, with what each says is wrong.
func shown(t *testing.T, objects map[string][]byte, o export.Options, rows int64) (ranged, found []int64, faults, misses []error) {
	t.Helper()
	e := open(t, prooftest.Bucket(objects), o)
	for row, err := range e.Range(t.Context(), export.Range{}) {
		if err != nil {
			faults = append(faults, err)
			continue
		}
		ranged = append(ranged, row.Seq.N)
	}
	for seq := range rows {
		got, err := e.At(t.Context(), "acme", nil, seq)
		if err != nil {
			misses = append(misses, err)
		}
		for _, row := range got {
			found = append(found, row.Seq.N)
		}
	}
	return ranged, found, faults, misses
}

func upTo(n int64) (all []int64) {
	for seq := range n {
		all = append(all, seq)
	}
	return all
}

// No hash has epoch and repeat_of. What an object says of itself has, and a row that
// says otherwise is not shown.
func TestWhatNoHashHasIsChecked(t *testing.T) {
	segment := func(n, row int, change func(*chain.Row)) func(*prooftest.Archive, *prooftest.Line) string {
		return func(_ *prooftest.Archive, l *prooftest.Line) string {
			change(&l.Segments[n].Rows[row])
			l.Segments[n].Encode()
			return l.Key(n)
		}
	}
	file := func(seq int64, change func(*chain.Row)) func(*prooftest.Archive, *prooftest.Line) string {
		return func(a *prooftest.Archive, l *prooftest.Line) string {
			l.Compact(prooftest.Compaction{Watermark: 5, Change: func(row *chain.Row) {
				if row.Seq.N == seq {
					change(row)
				}
			}})
			last := 3
			if seq > 3 {
				last = 6
			}
			for key := range a.Objects() {
				if strings.HasPrefix(key, archive.DataPrefix) && strings.Contains(key, fmt.Sprintf("-%020d.", last)) {
					return key
				}
			}
			return "no data file has the row"
		}
	}
	epoch := func(n int64) func(*chain.Row) { return func(row *chain.Row) { row.Epoch = audit.I64(n) } }
	repeat := func(n int64) func(*chain.Row) { return func(row *chain.Row) { row.RepeatOf = audit.I64(n) } }
	for name, c := range map[string]struct {
		tamper func(*prooftest.Archive, *prooftest.Line) (key string)
		column string
		seq    int64 // of the row
	}{
		"segment, a later epoch":                   {segment(1, 0, epoch(1)), "epoch", 2},
		"segment, an earlier epoch":                {segment(4, 1, epoch(0)), "epoch", 6},
		"segment, a negative epoch":                {segment(0, 0, epoch(-1)), "epoch", 0},
		"segment, the row of a reset":              {segment(3, 0, epoch(0)), "epoch", 4},
		"segment, a repeat":                        {segment(1, 1, repeat(0)), "repeat_of", 3},
		"data file, a later epoch":                 {file(1, epoch(1)), "epoch", 1},
		"data file, an earlier epoch":              {file(5, epoch(0)), "epoch", 5},
		"data file, the row of a reset":            {file(4, epoch(0)), "epoch", 4},
		"data file, a repeat of itself":            {file(2, repeat(2)), "repeat_of", 2},
		"data file, a repeat of a row that is not": {file(2, repeat(-1)), "repeat_of", 2},
	} {
		for _, memory := range []int64{1, 0} { // in parts, and whole
			a, l := begunAnew(true)
			key := c.tamper(a, l)
			ranged, found, faults, misses := shown(t, a.Objects(), export.Options{Memory: memory}, 7)
			want := slices.DeleteFunc(upTo(7), func(seq int64) bool { return seq == c.seq })
			if !slices.Equal(ranged, upTo(c.seq)) || !slices.Equal(found, want) || len(faults) != 1 || len(misses) != 1 {
				t.Fatalf("%s: %v, %v; one by one %v, %v", name, ranged, faults, found, misses)
			}
			for _, err := range []error{faults[0], misses[0]} {
				if !errors.Is(err, export.ErrTampered) || !strings.Contains(err.Error(), key) ||
					!strings.Contains(err.Error(), fmt.Sprintf("seq %d of tenant \"acme\": column %s", c.seq, c.column)) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// Where an object says the same of its log as its rows do, the rows in front of it
// say otherwise.
func TestAnEpochBeginsWithAReset(t *testing.T) {
	for name, n := range map[string]int{"in front of a reset": 1, "behind one": 4, "the first": 0} {
		a, l := begunAnew(true)
		s := l.Segments[n]
		for i := range s.Rows {
			s.Rows[i].Epoch.N += 3
		}
		s.Meta.Logs[0].Epoch += 3
		s.Encode()
		first := s.Rows[0].Seq.N
		ranged, _, faults, _ := shown(t, a.Objects(), export.Options{}, 0)
		if !slices.Equal(ranged, upTo(first)) || len(faults) != 1 || !errors.Is(faults[0], export.ErrTampered) || !strings.Contains(faults[0].Error(), "column epoch") {
			t.Errorf("%s: %v, %v", name, ranged, faults)
		}
	}
}

// A log with a chain reset is read as it is, from wherever it is begun: by segments,
// by data files with marks of repeats, and by both.
func TestEpochsAndRepeatsAreRead(t *testing.T) {
	for _, alone := range []bool{true, false} {
		for _, watermark := range []int64{0, 2, 4, 5} {
			a, l := begunAnew(alone)
			if watermark > 0 {
				l.Compact(prooftest.Compaction{Watermark: watermark, Change: func(row *chain.Row) {
					if row.Seq.N > 0 && row.Kind.S != audit.KindChainReset {
						row.RepeatOf = audit.I64(row.Seq.N - 1)
					}
				}})
			}
			rows := l.Logs["acme"].Tree.Size
			for _, memory := range []int64{1, 0} {
				ranged, found, faults, misses := shown(t, a.Objects(), export.Options{Memory: memory}, rows)
				if !slices.Equal(ranged, upTo(rows)) || !slices.Equal(found, upTo(rows)) || len(faults)+len(misses) > 0 {
					t.Errorf("alone %v, watermark %d: %v, %v; one by one %v, %v", alone, watermark, ranged, faults, found, misses)
				}
				e := open(t, prooftest.Bucket(a.Objects()), export.Options{Memory: memory})
				for from := range rows {
					got := collect(t, e.Rows(t.Context(), export.Scan{Line: l.Line, Tenant: "acme", From: from}))
					if int64(len(got)) != rows-from || got[0].Seq.N != from {
						t.Errorf("alone %v, watermark %d, from %d: %v", alone, watermark, from, names(got))
					}
				}
			}
		}
	}
}

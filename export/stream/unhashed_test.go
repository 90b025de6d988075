package stream_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A row whose epoch or repeat_of is not as its object says ends its log, and no
// other; where rows are not to be verified, repeat_of is not looked at.
func TestWhatNoHashHasIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*chain.Row)
		column string
		file   bool
	}{
		"segment, a later epoch":       {func(row *chain.Row) { row.Epoch = audit.I64(1) }, "epoch", false},
		"segment, a negative epoch":    {func(row *chain.Row) { row.Epoch = audit.I64(-1) }, "epoch", false},
		"segment, a repeat":            {func(row *chain.Row) { row.RepeatOf = audit.I64(0) }, "repeat_of", false},
		"data file, a later epoch":     {func(row *chain.Row) { row.Epoch = audit.I64(1) }, "epoch", true},
		"data file, a negative epoch":  {func(row *chain.Row) { row.Epoch = audit.I64(-1) }, "epoch", true},
		"data file, a repeat":          {func(row *chain.Row) { row.RepeatOf = audit.I64(1) }, "repeat_of", true},
		"data file, one that is right": {func(row *chain.Row) { row.RepeatOf = audit.I64(0) }, "", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.calls.Segment(func(b *prooftest.Batch) {
				for range 3 {
					b.Call("acme")
					b.Call("umbrella")
				}
			})
			second := func(row *chain.Row) {
				if row.TenantID.S == "acme" && row.Seq.N == 1 {
					c.change(row)
				}
			}
			if s := w.calls.Segments[0]; c.file {
				w.calls.Anchor()
				w.calls.Compact(prooftest.Compaction{Watermark: 1, Change: second})
			} else {
				second(&s.Rows[2])
				s.Encode()
				w.calls.Anchor()
			}
			w.land()
			r, unverified := &receiver{}, &receiver{}
			w.export(20*time.Second, r.destination())
			want := map[bool]string{true: "[acme 0 acme 1 acme 2 umbrella 0 umbrella 1 umbrella 2]", false: "[acme 0 umbrella 0 umbrella 1 umbrella 2]"}[c.column == ""]
			if got := fmt.Sprint(slices.Sorted(slices.Values(r.places()))); got != want {
				t.Errorf("%s: delivered %s, stopped %v", name, got, w.stopped)
			}
			err := w.stopped["acme"]
			if (c.column == "") != (err == nil) || err != nil && (!errors.Is(err, export.ErrTampered) || !strings.Contains(err.Error(), "seq 1: column "+c.column)) {
				t.Errorf("%s: %v", name, err)
			}
			w.export(20*time.Second, unverified.destination(func(d *stream.Destination) { d.Name, d.Unverified = "unverified", true }))
			if n := len(unverified.places()); c.column == "repeat_of" && n != 6 {
				t.Errorf("%s: unverified, %d rows arrived", name, n)
			}
		})
	}
}

// Behind a chain reset, a row of the epoch before is not taken for one of a segment
// that was declared void.
func TestAnEpochThatWasLeftDoesNotComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme", "umbrella")
		w.rows("acme")
		voided := w.calls.RollBack(1)
		w.calls.Segment(func(b *prooftest.Batch) {
			b.Reset("acme", "test", voided...)
			b.Call("acme")
		})
		w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		s := w.calls.Segments[3]
		s.Rows[0].Epoch = audit.I64(0)
		s.Encode()
		w.land()
		r := &receiver{}
		w.export(20*time.Second, r.destination())
		err := w.stopped["acme"]
		if !errors.Is(err, export.ErrTampered) || !strings.Contains(err.Error(), w.calls.Key(3)) || !strings.Contains(err.Error(), "seq 3: column epoch") {
			t.Errorf("delivered %v, stopped %v", r.places(), err)
		}
		if slices.Contains(r.places(), "acme 3") {
			t.Errorf("delivered %v", r.places())
		}
	})
}

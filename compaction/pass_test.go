package compaction

import (
	"slices"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// newHistory returns a world with what compaction must not lose: several days,
// lost offsets, repeats, rejects, a chain reset, logs that end early. Anchors
// stand behind segments 1, 5 and 9 of 11.
func newHistory(t testing.TB) *world {
	w := newWorld(t)
	calls := w.calls
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("early"); b.Call("acme"); b.Call("globex") })
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Duplicate("acme", 0); b.Skip(2, archive.GapControl) })
	calls.Anchor()
	w.later(30 * time.Hour)
	calls.Segment(func(b *prooftest.Batch) {
		b.Lost(5)
		b.Call("globex")
		b.Reject("acme", audit.ReasonInvalidJSON, []byte("{"))
	})
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
	voided := calls.RollBack(4)
	calls.Segment(func(b *prooftest.Batch) {
		b.Reset("acme", "operator", voided...)
		b.Reset("globex", "operator", voided...)
		b.Call("globex")
		b.Call("acme")
	})
	calls.Anchor()
	for range 4 {
		w.later(7 * time.Hour)
		calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex"); b.Call("acme") })
	}
	calls.Anchor()
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	w.land()
	return w
}

// A compacted archive has the heads, roots and sizes that it had before, with its
// segments there and without them, whatever a pass takes at once.
func TestCompactionKeepsAllHeads(t *testing.T) {
	want := newHistory(t).wantExit(4)
	for _, memory := range []int64{0, 1, 40_000, 400_000} {
		w := newHistory(t)
		w.settings.Memory = memory
		e := New(w.settings)
		for range 3 {
			w.passes(e, w.calls.Line, nil)
			r := w.wantExit(4)
			if r.Tier != want.Tier || r.StrayCount > 0 || r.Totals.Rows != want.Totals.Rows {
				t.Errorf("memory %d: tier %s, strays %v, %+v", memory, r.Tier, r.Strays, r.Totals)
			}
			for i, l := range r.Lines[0].Logs {
				o := want.Lines[0].Logs[i]
				if l.Tenant != o.Tenant || l.Size != o.Size || l.Head != o.Head || l.Root != o.Root || l.Epoch != o.Epoch || l.Signed != o.Signed || l.Rows != o.Rows || !l.Proved {
					t.Errorf("memory %d: log %+v, want %+v", memory, l, o)
				}
			}
			w.later(2 * time.Hour)
		}
		if left := w.keys("log/"); !slices.Equal(left, []string{w.calls.Key(10)}) {
			t.Errorf("memory %d: segments %v are left", memory, left)
		}
	}
}

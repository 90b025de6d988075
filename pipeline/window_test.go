package pipeline

import (
	"encoding/binary"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

func coordinate(n int) (f audit.Fingerprint) {
	binary.BigEndian.PutUint64(f[:], uint64(n)+1)
	return f
}

// A window holds the newest coordinates and no more, and a repeat never moves
// or replaces the row that it repeats.
func TestWindowKeepsTheNewest(t *testing.T) {
	const limit = 100
	w := newWindow()
	for n := range 10_000 {
		w.add(coordinate(n), entry{seq: int64(n)}, limit)
		w.add(coordinate(n), entry{seq: -1}, limit)
		if len(w.entries) > limit || len(w.order) > 3*limit+2048 {
			t.Fatalf("after %d rows: %d entries, %d in order", n, len(w.entries), len(w.order))
		}
	}
	for n := range 10_000 {
		e, ok := w.lookup(coordinate(n))
		if want := n >= 10_000-limit; ok != want || ok && e.seq != int64(n) {
			t.Fatalf("coordinate %d: %v, %v", n, e, ok)
		}
	}
}

// A window that may hold less than it holds forgets the oldest.
func TestWindowShrinks(t *testing.T) {
	w := newWindow()
	for n := range 100 {
		w.add(coordinate(n), entry{seq: int64(n)}, 100)
	}
	w.add(coordinate(100), entry{seq: 100}, 10)
	if _, ok := w.lookup(coordinate(90)); ok || len(w.entries) != 10 {
		t.Errorf("%d entries, want the 10 newest", len(w.entries))
	}
}

// Content is learned for the row that was read, and for no other that came
// under the coordinates meanwhile.
func TestWindowLearnsTheRightRow(t *testing.T) {
	w := newWindow()
	w.add(coordinate(1), entry{seq: 7}, 10)
	w.learn(coordinate(1), audit.Fingerprint{9}, false, 8)
	w.learn(coordinate(2), audit.Fingerprint{9}, false, 7)
	if e, _ := w.lookup(coordinate(1)); e.content != (audit.Fingerprint{}) || len(w.entries) != 1 {
		t.Errorf("learned content %x of another row", e.content)
	}
	w.learn(coordinate(1), audit.Fingerprint{9}, false, 7)
	if e, _ := w.lookup(coordinate(1)); e.content != (audit.Fingerprint{9}) {
		t.Error("did not learn")
	}
}

// A row that is gone gives its coordinates to the next row that has them, which is
// then the newest.
func TestWindowReplacesARowThatIsGone(t *testing.T) {
	const limit = 10
	w := newWindow()
	for n := range limit {
		w.add(coordinate(n), entry{seq: int64(n), tenant: "acme"}, limit)
	}
	w.lose("other", func(int64) bool { return true })
	w.add(coordinate(0), entry{seq: 100, tenant: "acme"}, limit)
	if e, _ := w.lookup(coordinate(0)); e.seq != 0 || e.gone {
		t.Errorf("%+v, want the first row", e)
	}
	w.lose("acme", func(seq int64) bool { return seq == 0 })
	w.add(coordinate(0), entry{seq: 101, tenant: "acme"}, limit)
	for n := range limit - 1 {
		w.add(coordinate(limit+n), entry{seq: int64(200 + n), tenant: "acme"}, limit)
	}
	if e, ok := w.lookup(coordinate(0)); !ok || e.seq != 101 || len(w.entries) != limit {
		t.Errorf("%+v, %v of %d, want the row in the place of the one that is gone", e, ok, len(w.entries))
	}
	for n := range 10_000 {
		w.put(coordinate(0), entry{seq: int64(1000 + n)}, limit)
	}
	if len(w.order) > 2*limit+1024+1 {
		t.Errorf("%d in order", len(w.order))
	}
}

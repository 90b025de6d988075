package stream_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Every row arrives once, in the order of its log, whatever lies in data files and
// whatever in segments; and a second exporter goes on where the first one stopped.
func TestEveryRowArrivesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme", "umbrella", "acme")
		w.rows("acme")
		w.calls.Anchor()
		w.land()
		w.compact(w.calls.Line)
		w.rows("umbrella", "initech")
		r := &receiver{}
		w.export(10*time.Second, r.destination())
		if n := w.check(r); n != 0 {
			t.Errorf("%d rows came twice", n)
		}
		w.rows("acme", "hooli")
		w.calls.Anchor()
		w.land()
		w.compact(w.calls.Line)
		w.rows("acme", "hooli", "umbrella")
		w.export(10*time.Second, r.destination())
		if n := w.check(r); n != 0 {
			t.Errorf("%d rows came twice", n)
		}
		if len(w.stopped) > 0 || !r.closed {
			t.Errorf("stopped: %v; closed: %v", w.stopped, r.closed)
		}
		if want := []string{"siem 1 new", "siem 1 new"}; !slices.Equal(w.changes, want) {
			t.Errorf("changes %q, want %q", w.changes, want)
		}
	})
}

// What is archived while an exporter runs arrives soon, also while compaction goes
// on.
func TestRowsArriveAsTheyAreArchived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := &receiver{}
		stop := w.start(w.settings(), r.destination())
		defer stop()
		for i := range 40 {
			w.rows("acme", "umbrella", "acme")
			if i%5 == 4 {
				w.calls.Anchor()
				w.land()
			}
			if i%10 == 9 {
				w.compact(w.calls.Line)
			}
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		if n := w.check(r); n != 0 {
			t.Errorf("%d rows came twice", n)
		}
	})
}

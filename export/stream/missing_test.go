package stream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// take takes objects away, as who deletes them does, and returns how to put them
// back.
func (w *world) take(which func(key string) bool) (back func()) {
	w.t.Helper()
	gone := map[string][]byte{}
	for o, err := range w.store.Memory.List(context.Background(), "", "") {
		if err != nil {
			w.t.Fatal(err)
		}
		if which(o.Key) {
			body, err := w.store.Memory.Get(context.Background(), o.Key)
			if err != nil {
				w.t.Fatal(err)
			}
			gone[o.Key] = body
		}
	}
	if len(gone) == 0 {
		w.t.Fatal("nothing is there to be taken away")
	}
	for key := range gone {
		w.store.Memory.Remove(key)
	}
	return func() {
		for key, body := range gone {
			w.store.Memory.Overwrite(key, body)
		}
	}
}

func (w *world) newestCatalog() string {
	w.t.Helper()
	o, err := archive.NewestCatalogObject(context.Background(), w.store.Memory, w.calls.Line, -1)
	if err != nil || o == nil {
		w.t.Fatal("no catalog", err)
	}
	return o.Key
}

// hidden are ways in which a line loses its end without a hole: acme's row 2 in
// segment 1, behind which there is nothing.
var hidden = map[string]func(w *world) (back func()){
	"the newest segment of a line that was never compacted": func(w *world) func() {
		return w.take(func(key string) bool { return key == w.calls.Key(1) })
	},
	"the newest catalog, and its segments are gone": func(w *world) func() {
		before := w.newestCatalog()
		w.compact(w.calls.Line)
		w.take(func(key string) bool { return strings.HasPrefix(key, archive.SegmentPrefix(w.calls.Line)) })
		return w.take(func(key string) bool {
			return key > before && strings.HasPrefix(key, archive.CatalogPrefix(w.calls.Line)) && strings.HasSuffix(key, ".note")
		})
	},
	"all catalogs, and the segments are gone": func(w *world) func() {
		w.compact(w.calls.Line)
		w.take(func(key string) bool { return strings.HasPrefix(key, archive.SegmentPrefix(w.calls.Line)) })
		return w.take(func(key string) bool {
			return strings.HasPrefix(key, archive.CatalogPrefix(w.calls.Line)) && strings.HasSuffix(key, ".note")
		})
	},
}

// A line that ends in front of what its newest anchor covers looks like one that
// has no more. A destination that is new, one that begins at the end, a backfill
// and the status say so of the logs that miss rows; others go on, and so do these
// once it is mended.
func TestAnEndThatIsMissingIsFound(t *testing.T) {
	for name, hide := range hidden {
		for _, how := range []string{"new", "from now", "without keys", "heads", "backfill"} {
			synctest.Test(t, func(t *testing.T) { endIsMissing(t, name, how, hide) })
		}
	}
}

func endIsMissing(t *testing.T, name, how string, hide func(*world) func()) {
	w := newWorld(t)
	w.rows("acme", "umbrella", "acme")
	w.calls.Anchor()
	w.land()
	if strings.Contains(name, "newest catalog") {
		w.compact(w.calls.Line)
	}
	w.rows("acme")
	w.calls.Anchor()
	w.land()
	back := hide(w)
	if how == "without keys" {
		w.ring = nil
	}
	r := &receiver{}
	d := r.destination(func(d *stream.Destination) {
		d.FromNow, d.Heads = how == "from now" || how == "backfill", how == "heads"
	})
	if how == "backfill" {
		if err := stream.Backfill(t.Context(), w.store, stream.Job{Destination: d.Name, ID: jobID, Tenants: []string{"acme"}}); err != nil {
			t.Fatal(err)
		}
	}
	stop := w.start(w.settings(), d)
	time.Sleep(10 * time.Minute)
	if err := w.stopped["acme"]; !errors.Is(err, export.ErrTampered) || !strings.Contains(err.Error(), `anchor 1 (of `) || !strings.Contains(err.Error(), "states 3 rows") {
		t.Errorf("%s, %s: stopped %v; arrived %v", name, how, w.stopped, r.places())
	}
	if err := w.stopped["umbrella"]; (err != nil) != strings.HasPrefix(name, "all") {
		t.Errorf("%s, %s: the other log is stopped: %v", name, how, err)
	}
	s, err := stream.ReadStatus(t.Context(), w.store, w.root, w.ring, d.Name, time.Now)
	if err != nil || len(s.Lines[0].Misfits) == 0 || s.Lines[0].Misfits[0].Tenant != "acme" || s.Lines[0].Rows != 0 {
		t.Errorf("%s, %s: status says %+v, %v", name, how, s, err)
	}
	back()
	time.Sleep(2 * time.Hour)
	stop()
	if got, want := len(r.places()), map[string]int{"from now": 1, "backfill": 4}[how]; want > 0 && got != want && !strings.HasPrefix(name, "all") {
		t.Errorf("%s, %s: %v arrived once it was mended", name, how, r.places())
	}
	if how != "from now" && how != "backfill" {
		w.check(r)
	}
}

// What only looks like it stops nothing: an anchor that is newer than what was
// listed, rows that retention dropped, a chain reset, anchors of nobody.
func TestNothingIsMissing(t *testing.T) {
	for name, build := range map[string]func(w *world){
		"a reset": func(w *world) {
			w.rows("acme", "umbrella")
			w.calls.Anchor()
			w.rows("acme", "acme")
			voided := w.calls.RollBack(1)
			w.calls.Segment(func(b *prooftest.Batch) { b.Reset("acme", "operator", voided...) })
			w.calls.Anchor()
			w.land()
		},
		"a cut of all": func(w *world) {
			w.rows("acme", "umbrella")
			w.calls.Anchor()
			w.land()
			cut := w.calls.CutAt("acme", prooftest.OrderID(3), 1)
			w.order("acme", "retention-cut", cut.ID, w.calls.CutOrder(cut))
			w.compact(w.calls.Line)
		},
		"an anchor that no key of ours signed": func(w *world) {
			w.rows("acme", "umbrella")
			w.calls.Anchor()
			w.land()
			w.rows("acme")
			w.Signers = append(w.Signers[:0:0], prooftest.Signer("stranger.example"))
			w.calls.Anchor()
			w.land()
			w.take(func(key string) bool { return key == w.calls.Key(1) })
		},
	} {
		for _, heads := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				build(w)
				r := &receiver{}
				w.export(10*time.Minute, r.destination(func(d *stream.Destination) { d.Heads = heads }))
				if len(w.stopped) > 0 || len(r.events(event.KindRecord)) == 0 {
					t.Errorf("%s, heads %v: stopped %v, arrived %v", name, heads, w.stopped, r.places())
				}
			})
		}
	}
}

// An anchor and its segments that come between the listing and the look for the
// newest anchor are no hole.
func TestAnAnchorThatComesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme")
		w.calls.Anchor()
		w.land()
		late := map[string][]byte{}
		w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		w.calls.Anchor()
		for key, body := range w.Objects() {
			if !w.landed[key] {
				late[key] = body
			}
		}
		// They come once the first anchor was asked for.
		w.store.before = func(op, key string) error {
			if op == "tail" && strings.HasPrefix(key, "anchor/") {
				for key, body := range late {
					w.store.Memory.Overwrite(key, body)
				}
			}
			return nil
		}
		r := &receiver{}
		w.export(time.Minute, r.destination())
		if len(w.stopped) > 0 || fmt.Sprint(r.places()) != "[acme 0 acme 1]" {
			t.Errorf("stopped %v, arrived %v", w.stopped, r.places())
		}
	})
}

// To hold a line against its newest anchor costs two reads of a byte whenever its
// catalog is read, and no object while no anchor is new.
func TestWhatAnchorsCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const anchors = 300
		for range anchors {
			w.rows("acme")
			w.calls.Anchor()
		}
		w.land()
		r := &receiver{}
		stop := w.start(w.settings(), r.destination())
		time.Sleep(time.Minute)
		if n := w.store.countedOf("tail", "anchor/"); n > 2*9 {
			t.Errorf("the first look took %d reads of a byte", n)
		}
		if n := w.store.countedOf("get", archive.AnchorPrefix(w.calls.Line)); n != 1 {
			t.Errorf("the first look read %d anchors", n)
		}
		w.store.forget()
		time.Sleep(20 * time.Minute)
		stop()
		tails, gets := w.store.countedOf("tail", "anchor/"), w.store.countedOf("get", archive.AnchorPrefix(w.calls.Line))
		if tails == 0 || tails > 2*11 || gets > 10 {
			t.Errorf("in 20 minutes: %d reads of a byte, %d anchors", tails, gets)
		}
	})
}

// Where a destination gets heads, a log that is short within what the line has is
// found too: as a catalog would leave it that lists less than there is.
func TestALogThatIsShorterThanItsHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := newWorld(t), newWorld(t)
		for _, at := range []*world{w, other} {
			at.rows("acme", "umbrella")
		}
		w.rows("umbrella")
		other.rows("umbrella", "acme")
		anchor := other.calls.Anchor()
		w.store.Memory.Overwrite(w.calls.AnchorKey(0), anchor.Body)
		r := &receiver{}
		w.export(time.Minute, r.destination(func(d *stream.Destination) { d.Heads = true }))
		if err := w.stopped["acme"]; len(w.stopped) != 1 || !errors.Is(err, export.ErrTampered) || !strings.Contains(err.Error(), "ends at seq 1, and anchor 0") {
			t.Errorf("stopped %v", w.stopped)
		}
	})
}

// A catalog counts that a key signed which a good anchor introduces.
func TestACatalogByAnIntroducedKey(t *testing.T) {
	for _, introduced := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			compacts := prooftest.Signer("compact.example")
			if introduced {
				w.Keys.Catalog = []string{compacts.VKey()}
			}
			w.rows("acme", "umbrella")
			w.calls.Anchor()
			w.Signers = []*sign.Signer{compacts}
			w.calls.Compact(prooftest.Compaction{Watermark: 1})
			w.land()
			w.take(func(key string) bool { return key == w.calls.Key(0) })
			r := &receiver{}
			w.export(time.Minute, r.destination())
			if got := len(r.places()); (got == 2) != introduced || got != 0 && !introduced {
				t.Errorf("introduced %v: %v arrived", introduced, r.places())
			}
		})
	}
}

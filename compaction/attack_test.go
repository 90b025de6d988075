package compaction

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// Somebody who can write to the bucket, and has no key, plants something that
// looks like a line with the topic id of another one. The keys of data files name
// no topic, so that those of the true line would be strays of the false one.
func TestAPlantedLineSweepsNothing(t *testing.T) {
	w := newWorld(t)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	w.calls.Anchor()
	w.land()
	e := New(w.settings)
	w.passes(e, w.calls.Line, nil)
	w.later(2 * time.Hour)
	w.passes(e, w.calls.Line, nil)
	evil := w.calls.Line
	evil.Topic = "evil"
	w.store.Overwrite(archive.SegmentKey(evil, 0), []byte("nothing"))
	for range 4 {
		if _, err := New(w.settings).Pass(context.Background(), evil, nil); err != nil && !errors.Is(err, ErrHalted) {
			t.Fatal(err)
		}
		w.passes(e, w.calls.Line, nil)
		w.later(2 * time.Hour)
	}
	if left := w.keys("data/acme"); len(left) != 1 {
		t.Fatalf("data files: %v, catalogs %v", left, w.keys("catalog/"))
	}
}

// The same beside a hold, which each line's catalog lists: a line that no anchor
// vouches for has none.
func TestAPlantedLineHasNoCatalog(t *testing.T) {
	w := newWorld(t)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	w.calls.Anchor()
	w.land()
	evil := w.calls.Line
	evil.Topic = "evil"
	w.store.Overwrite(archive.SegmentKey(evil, 0), []byte("nothing"))
	w.order("acme", audit.KindLegalHold, prooftest.OrderID(1), map[string]any{"scope": map[string]any{"tenant": true}, "set": true, "reason": "case", "by": "test"})
	d := w.duties(evil)
	if len(d.Holds) != 1 {
		t.Fatal("no hold")
	}
	w.settings.Once = false
	if r, err := New(w.settings).Pass(context.Background(), evil, d); err != nil || r.Wrote {
		t.Fatalf("%+v %v", r, err)
	}
}

// Somebody who can delete without naming versions hides the newest versions of a
// catalog, so that an old one, which a lock keeps with its parts, is the newest
// again. Files that it does not name are live all the same: what it does name is
// gone.
func TestAHiddenCatalogSweepsNothing(t *testing.T) {
	w := newWorld(t)
	w.store.SetVersioning(archive.Versioned)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	w.calls.Anchor()
	w.land()
	w.passes(New(w.settings), w.calls.Line, nil)
	for _, key := range w.keys("catalog/") {
		w.store.Lock(key, true)
	}
	w.order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	for range 4 {
		w.govern(New(w.settings))
		w.later(2 * time.Hour)
	}
	live := w.filesOf(w.calls.Line, "acme")
	for _, key := range w.versions()[1:] {
		if strings.HasPrefix(key, archive.CatalogPrefix(w.calls.Line)) {
			w.store.Remove(key)
		}
	}
	for range 4 {
		if _, err := New(w.settings).Pass(context.Background(), w.calls.Line, nil); err != nil && !errors.Is(err, ErrHalted) {
			t.Fatal(err)
		}
		w.later(2 * time.Hour)
	}
	if _, err := w.store.Get(context.Background(), live[0].Key); err != nil {
		t.Fatal(err, w.versions())
	}
}

// The same where the hidden version had taken more segments, and the older one
// has no reason yet to compact.
func TestAHiddenWatermarkSweepsNothing(t *testing.T) {
	w := newWorld(t)
	w.store.SetVersioning(archive.Versioned)
	for range 2 {
		w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
		w.calls.Anchor()
		w.land()
		w.passes(New(w.settings), w.calls.Line, nil)
		w.later(2 * time.Hour)
		for _, key := range w.keys("catalog/") {
			w.store.Lock(key, true)
		}
	}
	w.passes(New(w.settings), w.calls.Line, nil)
	live := w.keys("data/")
	for _, key := range w.versions()[1:] {
		w.store.Remove(key)
	}
	w.settings.Once, w.settings.MaxAge, w.settings.SweepEvery = false, 1000*time.Hour, time.Second
	for range 4 {
		if _, err := New(w.settings).Pass(context.Background(), w.calls.Line, nil); err != nil && !errors.Is(err, ErrHalted) {
			t.Fatal(err)
		}
		w.later(2 * time.Hour)
	}
	if left := w.keys("data/"); !slices.Equal(left, live) {
		t.Fatal(left, live)
	}
}

// A receipt is a record that anybody could send who may write to the control
// topic, where there are no control keys: it may name any rows.
func TestAReceiptOfManyRowsCostsNothing(t *testing.T) {
	c := newCourt(t)
	c.fill()
	id := prooftest.OrderID(1)
	c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	c.days(18)
	c.want(id, StateClosed)
	other := prooftest.OrderID(2)
	c.order("acme", audit.KindRedaction, other, prooftest.Redaction(map[string]any{"turnId": "t-2"}, "*"))
	receipt, err := control.ReceiptID(other, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.order("acme", audit.KindErasureDone, receipt, c.control.Receipt(other, "*", [2]int64{0, math.MaxInt64}))
	c.cycle()
	c.want(id, StateClosed)
	if left := without([][2]int64{{3, 5}}, [][2]int64{{0, math.MaxInt64}}); left != nil {
		t.Error(left)
	}
}

// What somebody plants beside the control log keeps no order from being carried
// out, or stops all of it and is named: what looks like a damaged control log may
// have held a hold.
func TestAPlantedControlLineIsNamed(t *testing.T) {
	for name, plant := range map[string]func(c *court, l archive.Line){
		"garbage segment": func(c *court, l archive.Line) {
			c.store.Overwrite(archive.SegmentKey(l, 0), []byte("nothing"))
		},
		"garbage segment high": func(c *court, l archive.Line) {
			c.store.Overwrite(archive.SegmentKey(l, 7), []byte("nothing"))
		},
		"garbage catalog": func(c *court, l archive.Line) {
			c.store.Overwrite(archive.CatalogKey(l, 0), []byte("nothing"))
		},
		"garbage anchor": func(c *court, l archive.Line) {
			c.store.Overwrite(archive.AnchorKey(l, 0), []byte("nothing"))
		},
		"the true segment": func(c *court, l archive.Line) {
			body, err := c.store.Get(context.Background(), archive.SegmentKey(c.control.Line, 0))
			if err != nil {
				c.t.Fatal(err)
			}
			c.store.Overwrite(archive.SegmentKey(l, 0), body)
		},
		"the true anchor": func(c *court, l archive.Line) {
			body, err := c.store.Get(context.Background(), archive.AnchorKey(c.control.Line, 0))
			if err != nil {
				c.t.Fatal(err)
			}
			c.store.Overwrite(archive.AnchorKey(l, 0), body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			c.fill()
			id := prooftest.OrderID(1)
			c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
			l := c.control.Line
			l.TopicID = "AAAAAAAAAAAAAAAAAAAAAA"
			plant(c, l)
			for range 40 {
				c.later(6 * time.Hour)
				lines, err := c.governor.Lines(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.governor.Cycle(t.Context(), lines, true); err != nil {
					if !strings.Contains(err.Error(), l.TopicID) || len(c.find(secret)) == 0 {
						t.Fatal(err)
					}
					return
				}
				c.archive()
			}
			c.want(id, archive.RedactionReceipted)
		})
	}
}

// An order that was taken back stays so when its own context is erased.
func TestACancelledOrderMayBeErased(t *testing.T) {
	c := newCourt(t)
	c.fill()
	id, second := prooftest.OrderID(1), prooftest.OrderID(3)
	c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"userId": "user-of-t-1"}, "*"))
	c.order("acme", audit.KindRedactionCancelled, prooftest.OrderID(2), map[string]any{"redactionId": id, "reason": "oops", "by": "test"})
	c.order("acme", audit.KindRedaction, second, prooftest.Redaction(map[string]any{"recordId": id}, []any{"context"}))
	c.days(9)
	c.want(id, StateCancelled)
	c.want(second, archive.RedactionReceipted)
	if hits := c.find("user-of-t-1"); len(hits) != 1 || !strings.HasPrefix(hits[0], "data/acme") || len(c.find(secret)) == 0 {
		t.Errorf("beside the row itself: %q", hits)
	}
	c.wantExit(0)
}

// An order to erase the context of a hold waits for the hold to be lifted: else it
// would lift it.
func TestAHoldInForceIsNotErased(t *testing.T) {
	c := newCourt(t)
	c.fill()
	hold, id, second := prooftest.OrderID(1), prooftest.OrderID(2), prooftest.OrderID(3)
	scope := map[string]any{"userId": "user-of-t-1"}
	c.order("acme", audit.KindLegalHold, hold, map[string]any{"scope": scope, "set": true, "reason": "case", "by": "test"})
	c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"recordId": hold}, []any{"context"}))
	c.order("acme", audit.KindRedaction, second, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	c.days(20)
	c.want(id, StateHeld)
	c.want(second, StateHeld)
	if len(c.find(secret)) == 0 {
		t.Error("what was held is gone")
	}
	c.order("acme", audit.KindLegalHold, prooftest.OrderID(4), map[string]any{"scope": scope, "set": false, "reason": "case", "by": "test"})
	c.days(10)
	c.wantExit(0)
	for _, hit := range c.find(secret) {
		if strings.HasPrefix(hit, "data/acme/") {
			t.Error(hit)
		}
	}
}

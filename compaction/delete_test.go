package compaction

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// small returns a world of two segments of one day, which an anchor covers.
func small(t *testing.T) *world {
	w := newWorld(t)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	w.calls.Anchor()
	w.land()
	return w
}

// Nothing is deleted before the grace, by the store's clock: the compactor's own
// may say what it likes.
func TestNothingIsDeletedBeforeTheGrace(t *testing.T) {
	w := small(t)
	w.settings.Now = func() time.Time { return w.now.Add(1000 * time.Hour) }
	e := New(w.settings)
	w.passes(e, w.calls.Line, nil)
	w.later(time.Hour) // not more than the grace
	w.passes(e, w.calls.Line, nil)
	if left := w.keys("log/audit.calls"); len(left) != 2 {
		t.Fatalf("%v are left", left)
	}
	w.later(time.Second)
	w.passes(e, w.calls.Line, nil)
	if left := w.keys("log/audit.calls"); len(left) != 0 {
		t.Fatalf("%v are left", left)
	}
}

// Where nothing happens any more, nothing is written any more: no version of a
// catalog is there only to say that older ones are gone.
func TestAQuietLineComesToRest(t *testing.T) {
	w := small(t)
	e := New(w.settings)
	versions := 0
	for i := range 12 {
		for _, r := range w.passes(e, w.calls.Line, nil) {
			if r.Wrote {
				versions++
			}
			if r.Wrote && i > 4 {
				t.Fatalf("version %d is written %d hours after the last row", r.Catalog.Version, 2*i)
			}
		}
		w.later(2 * time.Hour)
	}
	if left := w.keys("catalog/"); len(left) != 3 || versions != 2 {
		t.Fatalf("%d versions, left %v", versions, left)
	}
	w.wantExit(0)
}

// What nothing names goes: a data file, a segment that was written where one had
// been compacted and deleted, a part, older versions below a delete marker,
// uploads. It is doomed first, by a version of its own.
func TestStraysGo(t *testing.T) {
	w := small(t)
	w.store.SetVersioning(archive.Versioned)
	e := New(w.settings)
	for range 3 {
		w.passes(e, w.calls.Line, nil)
		w.later(2 * time.Hour)
	}
	strays := []string{
		archive.DataKey(w.calls.Line, "acme", "2026-05-28", 0, 4, prooftest.ID),
		archive.DataKey(w.calls.Line, "gone", "2020-05-28", 0, 4, prooftest.ID),
		w.calls.Key(0),
		archive.CatalogPrefix(w.calls.Line) + "part/" + strings.Repeat("0", 64) + ".json",
	}
	for _, key := range strays {
		w.stray(key)
	}
	w.store.Remove(strays[1]) // a marker lies above it
	w.store.Begin(strays[0])
	w.store.Begin(strays[2])
	other := archive.DataKey(archive.Line{Topic: "other", TopicID: "AAAAAAAAAAAAAAAAAAAAAA"}, "acme", "2026-05-28", 0, 4, prooftest.ID)
	w.stray(other)
	r, err := e.Pass(context.Background(), w.calls.Line, nil)
	if err != nil || !r.Wrote || r.Strays != 4 || r.Deleted != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	w.later(2 * time.Hour)
	w.passes(e, w.calls.Line, nil)
	for v := range w.store.Everything() {
		if slices.Contains(strays, v.Key) {
			t.Errorf("%+v is left", v)
		}
	}
	if keys := w.keys(other); len(keys) != 1 {
		t.Error("a file of another line went")
	}
	for u, err := range w.store.Uploads(context.Background(), "") {
		t.Errorf("%+v, %v is left", u, err)
	}
}

// A key that a store does not delete is tried again, and keeps an order from
// being called gone; one that a lock keeps is named instead.
func TestWhatCannotGo(t *testing.T) {
	w := small(t)
	w.store.SetVersioning(archive.Versioned)
	failing := true
	w.store.DeleteFails = func(v archive.Version) error {
		if failing && v.Key == w.calls.Key(0) {
			return errors.New("SlowDown")
		}
		return nil
	}
	e := New(w.settings)
	id := prooftest.OrderID(1)
	w.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	w.govern(e)
	w.later(2 * time.Hour)
	r := w.passes(e, w.calls.Line, w.duties(w.calls.Line))
	if kept := r[len(r)-1].Kept; len(kept) != 1 || kept[0].Key != w.calls.Key(0) {
		t.Fatalf("kept %+v", kept)
	}
	if entry := w.entry(w.calls.Line, id); entry.State != archive.RedactionPurged || len(entry.Deleted) != 1 || len(entry.Deleted[0].Versions) != 1 {
		t.Fatalf("%+v", entry)
	}
	failing = false
	w.store.Lock(w.calls.Key(0), true)
	w.govern(e)
	entry := w.entry(w.calls.Line, id)
	if entry.State != archive.RedactionGone || len(entry.Kept) != 1 || !strings.Contains(entry.Kept[0], w.calls.Key(0)) || len(entry.Deleted) != 0 {
		t.Fatalf("%+v", entry)
	}
	w.store.Lock(w.calls.Key(0), false)
	w.govern(e)
	w.wantNowhere(secret)
}

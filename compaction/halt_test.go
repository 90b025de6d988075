package compaction

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// What is not as it must be halts the line, with a reason, and nothing is written
// or deleted; other lines go on.
func TestHalts(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *world)
		words string
	}{
		"a segment was changed":         {func(w *world) { w.spoil(w.calls.Key(3), 100) }, "segment 3"},
		"a segment is missing":          {func(w *world) { w.store.Remove(w.calls.Key(3)) }, "segment 3"},
		"a data file was changed":       {func(w *world) { w.spoil(w.filesOf(w.calls.Line, "acme")[0].Key, 100) }, "data/acme"},
		"a data file is missing":        {func(w *world) { w.store.Remove(w.filesOf(w.calls.Line, "acme")[0].Key) }, "data/acme"},
		"an anchor is missing":          {func(w *world) { w.store.Remove(w.calls.AnchorKey(0)) }, "anchor"},
		"an anchor was changed":         {func(w *world) { w.spoil(w.calls.AnchorKey(1), 200) }, ""},
		"the catalog was changed":       {func(w *world) { w.spoil(archive.CatalogKey(w.calls.Line, 0), 200) }, "catalog"},
		"a part was changed":            {func(w *world) { w.spoil(w.part(), 20) }, "part"},
		"a part is missing":             {func(w *world) { w.store.Remove(w.part()) }, "part"},
		"the catalog is nobody's":       {func(w *world) { w.forge() }, "nobody has signed it"},
		"the catalog is a stranger's":   {func(w *world) { w.forge(prooftest.Signer("stranger")) }, "stranger"},
		"our own key does not count":    {func(w *world) { w.settings.Signers = by(prooftest.Signer("stranger")) }, "the key that signs catalogs"},
		"we sign nothing where keys do": {func(w *world) { w.settings.Signers = nil }, "the key that signs catalogs"},
	} {
		w := newWorld(t)
		w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
		w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
		w.calls.Anchor()
		w.land()
		w.passes(New(w.settings), w.calls.Line, nil)
		w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
		w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
		w.calls.Anchor()
		w.land()
		w.order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
		d := w.duties(w.calls.Line)
		c.spoil(w)
		heard := error(nil)
		w.settings.Events.Halted = func(_ archive.Line, err error) { heard = err }
		before := w.versions()
		_, err := New(w.settings).Pass(context.Background(), w.calls.Line, d)
		if !errors.Is(err, ErrHalted) || heard == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(w.versions(), before) {
			t.Errorf("%s: a catalog was written", name)
		}
		if _, err := New(w.settings).Pass(context.Background(), w.control.Line, nil); err != nil && w.settings.Signers != nil && !strings.Contains(name, "our own") {
			t.Errorf("%s: the other line: %v", name, err)
		}
	}
}

// versions returns the keys of the versions of all catalogs.
func (w *world) versions() []string {
	return slices.DeleteFunc(w.keys("catalog/"), func(key string) bool { return !strings.HasSuffix(key, ".note") })
}

func by(signers ...*sign.Signer) func(time.Time) []note.Signer {
	return func(time.Time) (all []note.Signer) {
		for _, s := range signers {
			all = append(all, s)
		}
		return all
	}
}

// spoil flips a bit of an object.
func (w *world) spoil(key string, at int) {
	body, err := w.store.Get(context.Background(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	body[at] ^= 1
	w.store.Overwrite(key, body)
}

// part returns the key of the only part of the catalog.
func (w *world) part() string {
	keys := w.keys(archive.CatalogPrefix(w.calls.Line) + "part/")
	return keys[len(keys)-1]
}

// forge writes a next version of the catalog that moves the watermark back.
func (w *world) forge(signers ...*sign.Signer) {
	c, err := archive.NewestCatalog(context.Background(), w.store, w.calls.Line, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	next := *c.Catalog
	next.Version, next.Previous, next.Watermark = c.Version+1, &c.SHA256, 0
	text, err := archive.EncodeCatalog(&next)
	if err != nil {
		w.t.Fatal(err)
	}
	w.store.Overwrite(archive.CatalogKey(w.calls.Line, next.Version), prooftest.Signed(text, signers...))
}

// A row that is not what it commits to halts the line before anything is erased
// from it, though its object has the hash that the anchor states.
func TestRowsAreCheckedBeforeTheyAreErased(t *testing.T) {
	w := newWorld(t)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	s := w.calls.Segments[0]
	s.Rows[1].Slots[audit.SlotContext] = []byte(`{"said":"another thing"}`)
	s.Encode()
	w.calls.Anchor()
	w.land()
	w.order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	_, err := New(w.settings).Pass(context.Background(), w.calls.Line, w.duties(w.calls.Line))
	if !errors.Is(err, ErrHalted) || !strings.Contains(err.Error(), "payload_commit") {
		t.Fatal(err)
	}
}

// Keyed logs are compacted with their key and without; without, the rows are
// checked but for row_hash, and the pass says so. With another key it halts.
func TestKeyedLogs(t *testing.T) {
	for name, c := range map[string]struct {
		keys    chain.Keys
		keyless int
		halts   bool
	}{
		"key":     {func(chain.Log) ([]byte, bool) { return prooftest.LogKey, true }, 0, false},
		"none":    {nil, 1, false},
		"another": {func(chain.Log) ([]byte, bool) { return []byte("another key of a test"), true }, 0, true},
	} {
		w := newWorld(t)
		w.calls.Segment(func(b *prooftest.Batch) { b.Keyed("acme"); told(b, "acme", "t-1"); b.Call("globex") })
		w.calls.Anchor()
		w.land()
		w.settings.LogKeys = c.keys
		r, err := New(w.settings).Pass(context.Background(), w.calls.Line, nil)
		if c.halts {
			if !errors.Is(err, ErrHalted) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(r.Keyless) != c.keyless {
			t.Fatalf("%s: %v %+v", name, err, r.Keyless)
		}
		w.order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "t-1"}, []any{"context"}))
		w.govern(New(w.settings))
		w.later(2 * time.Hour)
		w.govern(New(w.settings))
		w.wantNowhere(secret)
		w.wantExit(3)
	}
}

// An archive that nobody signs is compacted, and its catalogs are notes without
// signatures.
func TestUnsignedArchives(t *testing.T) {
	w := newWorld(t)
	w.Archive.Signers, w.settings.Keys, w.settings.Signers = nil, nil, nil
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	w.calls.Anchor()
	w.land()
	for range 3 {
		w.passes(New(w.settings), w.calls.Line, nil)
		w.later(2 * time.Hour)
	}
	r, err := proof.Verify(context.Background(), w.store, proof.Options{Unsigned: true})
	if err != nil || r.ExitCode() != 0 || r.Totals.Segments != 0 || r.Totals.Rows != 3 {
		t.Fatalf("%v %+v", err, r)
	}
}

// A key that signs catalogs is good where a good anchor names it: for the process
// that signs with it, and for the next one.
func TestKeysThatAnchorsIntroduce(t *testing.T) {
	w := newWorld(t)
	catalogs := prooftest.Signer("catalogs.example")
	w.Keys.Catalog = []string{catalogs.VKey()}
	w.settings.Signers = by(catalogs)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	w.calls.Anchor()
	w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	w.calls.Anchor()
	w.land()
	for range 3 {
		w.passes(New(w.settings), w.calls.Line, nil)
		w.later(2 * time.Hour)
	}
	if r := w.wantExit(0); r.Totals.Segments != 0 {
		t.Fatalf("%+v", r.Totals)
	}
}

// Anchors above the newest that a good key signed are no reason to compact what
// they cover, and are told of.
func TestAnchorsOfStrangersDoNotCount(t *testing.T) {
	w := newWorld(t)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	w.calls.Anchor()
	w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	w.Archive.Signers = []*sign.Signer{prooftest.Signer("stranger")}
	w.calls.Anchor()
	w.land()
	warned := 0
	w.settings.Events.Warn = func(_ archive.Line, _ string, err error) {
		if strings.Contains(err.Error(), "stranger") {
			warned++
		}
	}
	e := New(w.settings)
	w.passes(e, w.calls.Line, nil)
	c, err := archive.NewestCatalog(context.Background(), w.store, w.calls.Line, nil)
	if err != nil || c.Watermark != 1 || warned != 1 {
		t.Fatalf("%v, watermark %d, %d warnings", err, c.Watermark, warned)
	}
}

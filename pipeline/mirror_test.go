package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// copiedKeys returns what a second bucket should hold.
func (w *world) copiedKeys() []string {
	return slices.DeleteFunc(w.memoryKeys(""), func(key string) bool { return strings.HasPrefix(key, "log/") })
}

// wantCopy requires that the second bucket holds the same as the first, but for
// segments.
func (w *world) wantCopy(second *archive.Memory) {
	w.t.Helper()
	if got, want := copyKeys(w.t, second), w.copiedKeys(); !slices.Equal(got, want) {
		w.t.Errorf("the second bucket holds\n got %q\nwant %q", got, want)
	}
	for _, key := range w.copiedKeys() {
		a, _ := w.memory.Get(context.Background(), key)
		if b, err := second.Get(context.Background(), key); err != nil || string(a) != string(b) {
			w.t.Errorf("%s: %v, or other bytes", key, err)
		}
	}
}

// certify puts a note by a key on another into the bucket.
func (w *world) certify(by, key *sign.Signer) {
	w.t.Helper()
	body, err := sign.Sign(sign.KeyNoteText(w.ledger(0).state.ArchiveID, key.VKey(), time.Now().Add(24*time.Hour)), by)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.memory.Create(context.Background(), sign.KeyNoteKey(key.VKey()), body); err != nil {
		w.t.Fatal(err)
	}
}

// The second bucket gets every anchor, and what is needed to check them: also
// those of the time before there was a second bucket, or while it was away, and
// then nothing else waits for it.
func TestTheSecondBucket(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		key := newKey(t, "k")
		w.archivedWith(signedBy(t, key), calls("s", 0, 3))
		w.certify(key, newKey(t, "short"))
		w.produce(1, calls("s", 0, 3)...)
		second := archive.NewMemory()
		away := &faulty{Bucket: second}
		with := func(s *pipeline.Settings) { signedBy(t, key)(s); s.AnchorCopy = away }
		w.tether().ingest(2, with).waitAndStop(3)
		w.wantCopy(second)

		away.set(func(string, string) error { return errors.New("away") }, nil)
		w.produce(0, calls("s", 3, 3)...)
		r := w.tether().ingest(3, with)
		time.Sleep(3 * time.Minute)
		w.produce(0, calls("s", 6, 3)...)
		time.Sleep(3 * time.Minute)
		r.waitAndStop(9)
		w.wantProved(key)
		if n := len(w.anchorsOf(0)); n != 3 {
			t.Errorf("%d anchors while the second bucket was away, want 3", n)
		}
		if len(r.notCopied) == 0 {
			t.Error("nobody was told")
		}
		away.set(nil, nil)
		w.tether().ingest(4, with).waitAndStop(9)
		w.wantCopy(second)
	})
}

// A second bucket that holds other bytes is left as it is, and that is told; one
// of another archive gets nothing.
func TestASecondBucketThatDiffers(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key := newKey(t, "k")
		w.archivedWith(signedBy(t, key), calls("s", 0, 3))
		second := copyOf(t, w.memory)
		anchor := archive.AnchorKey(w.lineOf(0), 0)
		second = without(t, second, anchor)
		if _, err := second.Create(context.Background(), anchor, []byte("another")); err != nil {
			t.Fatal(err)
		}
		r := w.tether().ingest(2, signedBy(t, key), func(s *pipeline.Settings) { s.AnchorCopy = second })
		w.produce(0, calls("s", 3, 3)...)
		r.waitAndStop(6)
		if !slices.ContainsFunc(r.notCopied, func(s string) bool { return strings.Contains(s, anchor) }) {
			t.Errorf("told %q", r.notCopied)
		}
		if _, err := second.Get(context.Background(), archive.AnchorKey(w.lineOf(0), 1)); err != nil {
			t.Errorf("the anchor after it: %v", err)
		}
		foreign := archive.NewMemory()
		if _, err := foreign.Create(context.Background(), archive.RootKey, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		r = w.tether().ingest(3, signedBy(t, key), func(s *pipeline.Settings) { s.AnchorCopy = foreign })
		w.produce(0, calls("s", 6, 3)...)
		r.waitAndStop(9)
		if keys := copyKeys(t, foreign); len(keys) != 1 || len(r.notCopied) == 0 {
			t.Errorf("another archive's bucket holds %q; told %q", keys, r.notCopied)
		}
		w.wantProved(key)
	})
}

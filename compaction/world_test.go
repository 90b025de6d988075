package compaction

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

var key = prooftest.Signer("anchors.example")

// A world is an archive that grows by hand, and the store that it lies in, whose
// clock the test moves.
type world struct {
	*prooftest.Archive
	t              testing.TB
	calls, control *prooftest.Line
	store          *archive.Memory
	landed         map[string]bool
	now            time.Time
	settings       Settings
}

func newWorld(t testing.TB) *world {
	a := prooftest.New()
	a.Signers = []*sign.Signer{key}
	w := &world{Archive: a, t: t, calls: a.Line("audit.calls", 0), control: a.Line(audit.ControlTopic, 0), landed: map[string]bool{}}
	w.now = time.UnixMicro(prooftest.Start).UTC()
	w.store = &archive.Memory{Clock: func() time.Time { return w.now }}
	ring := &sign.Ring{}
	if err := ring.Add(key.VKey(), sign.AllRoles, "test"); err != nil {
		t.Fatal(err)
	}
	root, err := archive.DecodeRoot(a.Root)
	if err != nil {
		t.Fatal(err)
	}
	w.settings = Settings{
		Archive: w.store, Root: root, Keys: ring, LogKeys: nil, Once: true, Now: func() time.Time { return w.now },
		Signers: func(time.Time) []note.Signer { return []note.Signer{key} }, Rand: rand.NewChaCha8([32]byte{1}), RepeatFiles: -1,
	}
	return w
}

// land writes what was built to the store: each object once.
func (w *world) land() {
	w.t.Helper()
	objects := w.Objects()
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if w.landed[key] {
			continue
		}
		w.landed[key] = true
		if _, err := w.store.Create(context.Background(), key, objects[key]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// later lets time pass for the store, the compactor and the next rows.
func (w *world) later(d time.Duration) {
	w.now = w.now.Add(d)
	w.Later(d)
}

// verify verifies what is in the store.
func (w *world) verify() *proof.Report {
	w.t.Helper()
	r, err := proof.Verify(context.Background(), w.store, proof.Options{Keys: w.settings.Keys})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// wantExit verifies and requires an exit code.
func (w *world) wantExit(exit int) *proof.Report {
	w.t.Helper()
	r := w.verify()
	if r.ExitCode() != exit {
		w.t.Fatalf("exit %d, want %d: faults %v, less %q, looks %q", r.ExitCode(), exit, r.Faults, r.Less, r.Looks)
	}
	return r
}

// pass makes one pass of a line by a new engine, which must go through.
func (w *world) pass(l archive.Line, d *Duties) Result {
	w.t.Helper()
	r, err := New(w.settings).Pass(context.Background(), l, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// passes makes passes until nothing is left to do.
func (w *world) passes(e *Engine, l archive.Line, d *Duties) (all []Result) {
	w.t.Helper()
	for range 100 {
		r, err := e.Pass(context.Background(), l, d)
		if err != nil {
			w.t.Fatal(err)
		}
		if all = append(all, r); !r.More && !r.Wrote {
			return all
		}
	}
	w.t.Fatal("passes without end")
	return nil
}

// keys returns the keys of the objects that are there.
func (w *world) keys(prefix string) (keys []string) {
	for o, err := range w.store.List(context.Background(), prefix, "") {
		if err != nil {
			w.t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

package compaction

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/internal/scan"
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
	reader         *control.Reader
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

// order archives a control record of a tenant, and an anchor that covers it.
func (w *world) order(tenant, kind, id string, members map[string]any) {
	w.control.Segment(func(b *prooftest.Batch) { b.Order(tenant, kind, id, members) })
	w.control.Anchor()
	w.land()
	w.later(time.Minute)
}

// duties returns what governs a line now, all of it due at once.
func (w *world) duties(l archive.Line) *Duties {
	w.t.Helper()
	if w.reader == nil {
		w.reader = control.NewReader(w.store, control.ReadOptions{Root: w.settings.Root, Keys: w.settings.Keys})
	}
	g, err := w.reader.Read(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	d := &Duties{Cuts: map[string]*control.Row{}}
	for _, name := range g.Tenants() {
		if err := g.Fault(name); err != nil {
			w.t.Fatal(err)
		}
		t := g.Tenant(name)
		d.Holds = append(d.Holds, t.Holds()...)
		for r := range t.Rows() {
			if r.Kind == audit.KindLegalHold {
				d.Seen = append(d.Seen, r)
			}
		}
		if cut := t.LastCut(l); cut != nil && cut.Anchored {
			d.Cuts[name] = cut
		}
		for o := range t.Orders() {
			if !o.Anchored || o.Cancelled {
				continue
			}
			duty := Duty{Row: o.Row, Due: o.Redaction != nil, DueAt: time.UnixMicro(o.ArchivedAt).UTC()}
			for _, n := range t.Named(l, 0, 1<<62) {
				if n.Anchored && n.Order == o.ID {
					duty.Receipts = append(duty.Receipts, [2]int64{n.First, n.Last})
				}
			}
			for _, r := range o.Rounds {
				duty.Receipted = duty.Receipted || r.Anchored
			}
			d.Orders = append(d.Orders, duty)
		}
	}
	slices.SortFunc(d.Orders, func(a, b Duty) int { return int(a.Row.Seq - b.Row.Seq) })
	return d
}

// govern makes passes of both lines, as duties are, until nothing is left to do.
func (w *world) govern(e *Engine) {
	w.t.Helper()
	for _, l := range []archive.Line{w.calls.Line, w.control.Line} {
		w.passes(e, l, w.duties(l))
	}
}

// entry returns what the newest catalog of a line says of an order.
func (w *world) entry(l archive.Line, id string) *archive.CatalogRedaction {
	w.t.Helper()
	c, err := archive.NewestCatalog(context.Background(), w.store, l, nil)
	if err != nil || c == nil {
		w.t.Fatal(c, err)
	}
	for i := range c.Redactions {
		if c.Redactions[i].ID == id {
			return &c.Redactions[i]
		}
	}
	return nil
}

// wantState requires the state of an order in both lines.
func (w *world) wantState(id, state string) {
	w.t.Helper()
	for _, l := range []archive.Line{w.calls.Line, w.control.Line} {
		if e := w.entry(l, id); e == nil || e.State != state {
			w.t.Fatalf("%s: order %s: %+v, want %s", l.Topic, id, e, state)
		}
	}
}

// receipt archives the receipt of an order, as the catalogs of both lines have
// it.
func (w *world) receipt(tenant, order string, round int) {
	w.t.Helper()
	members := w.calls.Receipt(order, "*")
	erased, deleted := []any{}, []any{}
	for _, l := range []archive.Line{w.calls.Line, w.control.Line} {
		e := w.entry(l, order)
		if e == nil || e.State != archive.RedactionGone && e.State != archive.RedactionReceipted {
			w.t.Fatalf("%s: order %s: %+v", l.Topic, order, e)
		}
		if len(e.Erased) > 0 {
			erased = append(erased, map[string]any{"topic": l.Topic, "topicId": l.TopicID, "partition": l.Partition, "ranges": e.Erased})
		}
		for _, d := range e.Deleted {
			deleted = append(deleted, map[string]any{"key": d.Key, "versions": append([]string{}, d.Versions...)})
		}
	}
	members["erased"], members["deleted"] = erased, deleted
	id, err := control.ReceiptID(order, round, 1)
	if err != nil {
		w.t.Fatal(err)
	}
	w.order(tenant, audit.KindErasureDone, id, members)
}

// wantNowhere requires that no version of any object holds a value.
func (w *world) wantNowhere(values ...string) {
	w.t.Helper()
	if hits := w.find(values...); len(hits) > 0 {
		w.t.Fatalf("still there: %v", hits)
	}
}

// find names the versions of objects that hold one of the values.
func (w *world) find(values ...string) (hits []string) {
	w.t.Helper()
	n, err := scan.NewNeedles(values)
	if err != nil {
		w.t.Fatal(err)
	}
	for v, body := range w.store.Everything() {
		found, err := n.Find(body)
		if err != nil {
			w.t.Fatal(v.Key, err)
		}
		if len(found) > 0 {
			hits = append(hits, fmt.Sprintf("%s %s: %+v", v.Key, v.ID, found[0]))
		}
	}
	return hits
}

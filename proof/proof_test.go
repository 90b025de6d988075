package proof_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A right archive is proved, and the report has the heads, roots and counts
// that the writer had.
func TestAGoodArchiveIsProved(t *testing.T) {
	w := newWorld()
	r := verify(t, w.Objects())
	wantExit(t, r, 0)
	if r.Tier != proof.TierT0 || r.ArchiveID != prooftest.ID || len(r.Lines) != 3 || r.StrayCount != 0 {
		t.Errorf("report %+v", r)
	}
	for i, line := range []*prooftest.Line{w.calls, w.other, w.control} {
		got := r.Lines[i]
		if got.Topic != line.Topic || got.TopicID != line.TopicID || got.Partition != line.Partition || !got.Proved {
			t.Errorf("line %d is %+v", i, got.Line)
		}
		if len(got.Logs) != len(line.Logs) {
			t.Errorf("%d logs, want %d", len(got.Logs), len(line.Logs))
		}
		for _, l := range got.Logs {
			want := line.Logs[l.Tenant]
			if !l.Proved || l.Size != want.Tree.Size || l.Rows != want.Tree.Size || l.Head != want.Head || l.Root != want.Tree.Root() || l.Scheme != chain.SchemeV1 {
				t.Errorf("log of %s is %+v", l.Tenant, l)
			}
		}
	}
	want := proof.Totals{
		Segments: 13, Bytes: r.Totals.Bytes, Rows: 27, Duplicates: 4,
		Gaps:    map[string]int64{archive.GapControl: 1, archive.GapCompacted: 3},
		Kinds:   map[string]int64{audit.KindCall: 21, audit.KindRejected: 3, audit.KindLegalHold: 3},
		Rejects: map[string]int64{"invalid_unicode": 1, "null_value": 1, "empty_value": 1},
	}
	if got := fmt.Sprintf("%+v", r.Totals); got != fmt.Sprintf("%+v", want) {
		t.Errorf("totals %s, want %+v", got, want)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "not anchored") {
		t.Errorf("notes %q do not say that the tail is not anchored", r.Notes)
	}
}

// Nothing is a fault that the format leaves free.
func TestWhatIsFree(t *testing.T) {
	start := func(offset int64) map[string][]byte { // Kafka's log start need not be 0
		a := prooftest.New()
		l := a.Line("t", 7)
		l.StartAt(offset)
		l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		return a.Objects()
	}
	for name, objects := range map[string]map[string][]byte{
		"a line begins at Kafka's log start": start(1 << 40),
		"a member that nobody knows": func() map[string][]byte {
			w := newWorld()
			s := w.calls.Segments[2]
			meta, _ := archive.EncodeSegment(&s.Meta)
			s.EncodeWith([]byte(`{"later":{"a":[1.5e9,null,{}]},` + string(meta[1:])))
			w.calls.Relink(3)
			return w.Objects()
		}(),
		"a topic with an odd name, and many partitions": func() map[string][]byte {
			a := prooftest.New()
			for i := range int32(3) {
				a.Line(strings.Repeat("ü", 200), i*100_000).Segment(func(b *prooftest.Batch) { b.Call("acme") })
			}
			return a.Objects()
		}(),
	} {
		t.Run(name, func(t *testing.T) { wantExit(t, verify(t, objects), 0) })
	}
}

// What is proved and should be looked at is exit 4, and named.
func TestThingsToLookAt(t *testing.T) {
	for _, c := range []struct {
		name, word string
		change     func(*world) map[string][]byte
	}{
		{"lost offsets", "Kafka had lost 4 offsets", func(w *world) map[string][]byte {
			w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Lost(3); b.Call("acme"); b.Lost(1) })
			return w.Objects()
		}},
		{"an object beside the others", "stray: 1 ", func(w *world) map[string][]byte { return with(w.Objects(), "log/readme.txt", "x") }},
		{"a segment's copy beside it", "stray: 1 ", func(w *world) map[string][]byte { return with(w.Objects(), w.calls.Key(1)+".bak", "x") }},
		{"a data file that no catalog lists", "data/acme/day=2026-05-28/x.parquet", func(w *world) map[string][]byte {
			return with(w.Objects(), "data/acme/day=2026-05-28/x.parquet", "x")
		}},
		{"an object at the root", "stray: 1 ", func(w *world) map[string][]byte { return with(w.Objects(), "notes", "x") }},
		{"a key that is not escaped as ours are", "stray: 1 ", func(w *world) map[string][]byte {
			return with(w.Objects(), "log/t/i/1/00000000000000000000.parquet", "x")
		}},
		{"a chain reset", "chain reset: 1 ", func(w *world) map[string][]byte {
			w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Reset("acme", "operator"); b.Call("acme"); b.Call("a/b") })
			w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
			return w.Objects()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := verify(t, c.change(newWorld()))
			wantExit(t, r, 4)
			if all := strings.Join(append(r.Looks, r.Strays...), "\n"); !strings.Contains(all, c.word) {
				t.Errorf("%q does not say %q", all, c.word)
			}
		})
	}
}

func with(objects map[string][]byte, key, body string) map[string][]byte {
	objects[key] = []byte(body)
	return objects
}

// Exporters keep cursors and dead letters in the bucket; they are no strays.
func TestExportersAreNoStrays(t *testing.T) {
	objects := with(newWorld().Objects(), "export/splunk/cursor/acme.json", "{}")
	wantExit(t, verify(t, objects), 0)
}

// Compactors keep lists of objects for engines of SQL; they are no strays. Whatever
// else lies there is.
func TestManifestsAreNoStrays(t *testing.T) {
	w := newWorld()
	l := w.Line("audit.calls", 0).Line
	objects := with(w.Objects(), archive.ManifestKey(l, "acme"), "s3://bucket/data/x\n")
	wantExit(t, verify(t, with(objects, archive.ManifestStateKey(l), "{}")), 0)
	wantExit(t, verify(t, with(objects, "sql/rows/tenant=acme/other", "")), 4)
}

// Verify never says yes to nothing.
func TestNothingIsNotProved(t *testing.T) {
	w := newWorld()
	keyed := prooftest.New()
	keyed.Line("t", 0).Segment(func(b *prooftest.Batch) { b.Keyed("acme"); b.Call("acme"); b.Call("a/b") })
	for _, c := range []struct {
		name, word string
		objects    map[string][]byte
		o          proof.Options
	}{
		{"an archive without segments", "there is no segment", prooftest.New().Objects(), proof.Options{Unsigned: true}},
		{"a tenant that is not there", "tenant nobody has no log", w.Objects(), proof.Options{Unsigned: true, Tenant: "nobody"}},
		{"a keyed log", "1 keyed log:", keyed.Objects(), proof.Options{Unsigned: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := verifyWith(t, c.objects, c.o)
			wantExit(t, r, 3)
			if !strings.Contains(strings.Join(r.Less, "\n"), c.word) {
				t.Errorf("%q does not say %q", r.Less, c.word)
			}
		})
	}
}

// Of a keyed log all but row_hash is checked.
func TestAKeyedLogIsCheckedButForRowHash(t *testing.T) {
	build := func() (*prooftest.Archive, *prooftest.Line) {
		a := prooftest.New()
		l := a.Line("t", 0)
		l.Segment(func(b *prooftest.Batch) { b.Keyed("acme"); b.Call("acme"); b.Call("acme") })
		l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		return a, l
	}
	a, l := build()
	l.Segments[0].Rows[1].Slots[audit.SlotTokenCost] = []byte("{}")
	l.Segments[0].Encode()
	l.Relink(1)
	wantFault(t, verify(t, a.Objects()), proof.FaultContent, "tenant acme, seq 1")
	a, l = build()
	l.Segments[0].Rows[1].PrevHash[0] ^= 1
	l.Segments[0].Encode()
	l.Relink(1)
	wantFault(t, verify(t, a.Objects()), proof.FaultLink, "tenant acme, seq 1")
}

// With its key, a keyed log is proved like any other; with another one, or read
// as if it had none, it is not.
func TestAKeyedLogIsProvedWithItsKey(t *testing.T) {
	own := func(chain.Log) ([]byte, bool) { return prooftest.LogKey, true }
	a := prooftest.New()
	l := a.Line("t", 0)
	l.Segment(func(b *prooftest.Batch) { b.Keyed("acme"); b.Call("acme"); b.Call("a/b"); b.Call("acme") })
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("a/b") })
	for _, c := range []struct {
		name string
		keys chain.Keys
		exit int
	}{
		{"its key", own, 0},
		{"no key", nil, 3},
		{"a key of another log alone", func(l chain.Log) ([]byte, bool) { return prooftest.LogKey, l.Tenant == "a/b" }, 3},
		{"another key", func(chain.Log) ([]byte, bool) { return []byte("another"), true }, 1},
	} {
		r := verifyWith(t, a.Objects(), proof.Options{Unsigned: true, LogKeys: c.keys})
		if r.ExitCode() != c.exit {
			t.Errorf("%s: exit %d: %v %v", c.name, r.ExitCode(), r.Faults, r.Less)
		}
	}
	wrong := verifyWith(t, a.Objects(), proof.Options{Unsigned: true, LogKeys: func(chain.Log) ([]byte, bool) { return []byte("another"), true }})
	wantFault(t, wrong, proof.FaultRowHash, "the key is another one")

	// A row that was changed and committed to again shows with the key alone.
	l.Segments[1].Rows[0].Status = audit.Str("good")
	l.Segments[1].Encode()
	wantExit(t, verifyWith(t, a.Objects(), proof.Options{Unsigned: true}), 3)
	wantFault(t, verifyWith(t, a.Objects(), proof.Options{Unsigned: true, LogKeys: own}), proof.FaultRowHash, "tenant acme, seq 2")

	// Read as unkeyed, the log has another genesis.
	for _, s := range l.Segments {
		s.Meta.Logs[0].Scheme = chain.SchemeV1
		s.Encode()
	}
	l.Relink(1)
	wantExit(t, verifyWith(t, a.Objects(), proof.Options{Unsigned: true, LogKeys: own}), 1)
}

// Where there is no archive there is no verdict.
func TestNoArchive(t *testing.T) {
	for name, objects := range map[string]map[string][]byte{
		"an empty bucket":  {},
		"a foreign bucket": {"index.html": []byte("x"), "logs/2026/a.gz": []byte("x")},
	} {
		r, err := proof.Verify(context.Background(), prooftest.Bucket(objects), proof.Options{Unsigned: true})
		if !errors.Is(err, proof.ErrNoArchive) || r != nil {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

// Asked for one tenant, verify checks that tenant's rows, still hashes all
// objects and counts all offsets, and says what it left out.
func TestOneTenant(t *testing.T) {
	acme := proof.Options{Unsigned: true, Tenant: "acme"}
	r := verifyWith(t, newWorld().Objects(), acme)
	wantExit(t, r, 0)
	if got := r.Tenants(); len(got) != 1 || got[0].Tenant != "acme" || got[0].Rows != 16 || got[0].Logs != 3 {
		t.Errorf("tenants %+v", got)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "only tenant acme") {
		t.Errorf("notes %q", r.Notes)
	}
	for _, c := range []struct {
		name   string
		change func(*world)
		exit   int
	}{
		{"a row of another tenant", func(w *world) { changeRow(w, "a/b") }, 0},
		{"a row of the tenant", func(w *world) { changeRow(w, "acme") }, 1},
		{"an object", func(w *world) { flip(w.calls.Segments[1].Body, 100) }, 1},
		{"an offset of another tenant", func(w *world) {
			s := w.calls.Segments[0]
			s.Rows[2].KafkaOffset.N++
			s.Encode()
			w.calls.Relink(1)
		}, 1},
	} {
		w := newWorld()
		c.change(w)
		if r := verifyWith(t, w.Objects(), acme); r.ExitCode() != c.exit {
			t.Errorf("%s changed: exit %d, want %d: %v", c.name, r.ExitCode(), c.exit, r.Faults)
		}
	}
}

// Rows of tenants that were not asked for are counted all the same.
func TestOtherTenantsAreCounted(t *testing.T) {
	w := newWorld()
	s := w.calls.Segments[0]
	for tenant, rows := range map[string]int64{"acme": 2, "a/b": 2} { // there are 3 and 1
		l := interval(s, tenant)
		l.Rows, l.Size, l.Frontier = rows, rows, l.Frontier[:1]
	}
	s.Encode()
	w.calls.Relink(1)
	r := verifyWith(t, w.Objects(), proof.Options{Unsigned: true, Tenant: "東京"})
	wantFault(t, r, proof.FaultMetadata, "tenant a/b", "the log has 1 rows here, logs says 2")
}

// changeRow changes the first row of a tenant and covers it by new hashes of
// objects.
func changeRow(w *world, tenant string) {
	s := w.calls.Segments[0]
	i := slices.IndexFunc(s.Rows, func(r chain.Row) bool { return r.TenantID.S == tenant })
	s.Rows[i].Status = audit.Str("changed")
	s.Encode()
	w.calls.Relink(1)
}

func flip(body []byte, bit int) { body[bit/8] ^= 1 << (bit % 8) }

// A fault in one segment hides nothing in another one, nor in another line, and
// is not told over and over in what follows it.
func TestAFaultHidesNothingAndDoesNotFlood(t *testing.T) {
	w := newWorld()
	flip(w.calls.Segments[1].Body, 1000)
	flip(w.calls.Segments[3].Body, 1000)
	flip(w.other.Segments[0].Body, 1000)
	r := verify(t, w.Objects())
	wantExit(t, r, 1)
	keys := map[string]bool{}
	for _, f := range r.Faults {
		keys[f.Key] = true
	}
	want := []string{w.calls.Key(1), w.calls.Key(3), w.other.Key(0)}
	if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, want) || len(r.Faults) != 3 {
		t.Errorf("faults %v, want one of each of %q", r.Faults, want)
	}
	w = newWorld()
	for i := range w.calls.Segments[0].Rows {
		w.calls.Segments[0].Rows[i].Status = audit.Str("changed")
	}
	w.calls.Segments[0].Encode()
	w.calls.Relink(1)
	r = verify(t, w.Objects())
	if len(r.Faults) != 3 || r.FaultCount != 5 {
		t.Errorf("%d faults of %d, want one for each of 3 logs, and 5 rows: %v", len(r.Faults), r.FaultCount, r.Faults)
	}
}

// What a missing or unreadable segment held is known from those around it: the
// first row that is touched is named.
func TestFaultsNameTheFirstRowThatTheyTouch(t *testing.T) {
	w := newWorld()
	objects := w.Objects()
	delete(objects, w.calls.Key(2))
	r := verify(t, objects)
	wantFault(t, r, proof.FaultMissing, "segment 2 is missing", "acme from seq 4 (2 rows)")
	f := r.Faults[0]
	if f.Tenant != "acme" || f.Seq == nil || *f.Seq != 4 || f.Key != w.calls.Key(2) || len(r.Faults) != 1 {
		t.Errorf("faults %v", r.Faults)
	}
	w = newWorld()
	flip(w.calls.Segments[2].Body, 100)
	wantFault(t, verify(t, w.Objects()), proof.FaultHash, "tenant acme, seq 4")
	w = newWorld()
	w.calls.Segments[6].Rows[0].Status = audit.Str("changed") // the newest: it is decoded
	w.calls.Segments[6].Encode()
	id := w.calls.Segments[6].Rows[0].RecordID.S
	wantFault(t, verify(t, w.Objects()), proof.FaultRowHash, "tenant acme, seq 9, record "+id)
}

// Whoever owns the bucket can make all of it anew: T0 does not see that, and
// the report says so.
func TestWhatT0DoesNotProve(t *testing.T) {
	w := newWorld()
	w.calls.Segments[0].Rows[0].Status = audit.Str("changed")
	w.calls.Restamp()
	r := verify(t, w.Objects())
	wantExit(t, r, 0)
	objects := newWorld().Objects()
	delete(objects, w.calls.Key(6))
	wantExit(t, verify(t, objects), 0)
	if !strings.Contains(strings.Join(r.Notes, "\n"), "there are no anchors") {
		t.Errorf("notes %q", r.Notes)
	}
}

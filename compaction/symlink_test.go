package compaction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// base is where engines find the archive of these tests.
const base = "s3://bucket/audit/"

func (c *cutter) GetTagged(ctx context.Context, key string) ([]byte, string, error) {
	if c.dead {
		return nil, "", errCut
	}
	return c.Store.(archive.Swapper).GetTagged(ctx, key)
}

func (c *cutter) Swap(ctx context.Context, key string, body []byte, tag string) (newTag string, err error) {
	err = c.write("swap "+key, func() (err error) {
		newTag, err = c.Store.(archive.Swapper).Swap(ctx, key, body, tag)
		return err
	})
	return newTag, err
}

// A queried is a store that an engine of SQL reads by manifests, before and after
// each write. It requires of each manifest that it names no row twice, no object
// that is gone, and none of the rows of an earlier one less; and that an object
// stays for the grace once no manifest names it any more.
type queried struct {
	*cutter
	mu    sync.Mutex // manifests are written at once
	one   sync.Mutex // the cutter counts one write after the other
	w     *world
	rows  map[string][]*chain.Row // by the key of their object, which never changes
	logs  map[string][2]int64     // by manifest: the first row that it had, and the one behind the last
	named map[string]time.Time    // when an object was last named
	asked int
}

func (q *queried) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	q.check()
	defer q.check()
	q.one.Lock()
	defer q.one.Unlock()
	return q.cutter.Create(ctx, key, body)
}

func (q *queried) Delete(ctx context.Context, versions []archive.Version) []archive.Kept {
	q.check()
	defer q.check()
	q.one.Lock()
	defer q.one.Unlock()
	return q.cutter.Delete(ctx, versions)
}

func (q *queried) Swap(ctx context.Context, key string, body []byte, tag string) (string, error) {
	q.check()
	defer q.check()
	q.one.Lock()
	defer q.one.Unlock()
	return q.cutter.Swap(ctx, key, body, tag)
}

func (q *queried) check() {
	q.w.t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked++
	there := map[string]bool{}
	for _, key := range q.w.keys("") {
		there[key] = true
	}
	for key := range there {
		if strings.HasPrefix(key, archive.ManifestPrefix) {
			q.manifest(key, there)
		}
	}
	grace := time.Duration(q.w.settings.Root.GraceSeconds) * time.Second
	for key, at := range q.named {
		if !there[key] && q.w.now.Sub(at) <= grace {
			q.w.t.Errorf("%s is gone %s after a manifest named it", key, q.w.now.Sub(at))
		}
	}
}

// manifest reads one manifest as an engine does.
func (q *queried) manifest(key string, there map[string]bool) {
	q.w.t.Helper()
	tenant, seqs := tenantOf(q.w.t, key), []int64{}
	for _, o := range namedBy(q.w.t, q.w.store, key) {
		if !there[o] {
			q.w.t.Errorf("%s names %s, which is gone", key, o)
			continue
		}
		q.named[o] = q.w.now
		for _, row := range q.read(o) {
			if row.TenantID.S == tenant {
				seqs = append(seqs, row.Seq.N)
			}
		}
	}
	slices.Sort(seqs)
	for i := 1; i < len(seqs); i++ {
		if seqs[i] != seqs[i-1]+1 {
			q.w.t.Fatalf("%s: seq %d behind %d: it names %q", key, seqs[i], seqs[i-1], namedBy(q.w.t, q.w.store, key))
		}
	}
	was, known := q.logs[key]
	if len(seqs) == 0 {
		if known {
			q.w.t.Fatalf("%s: had rows %v and has none", key, was)
		}
		return
	}
	is := [2]int64{seqs[0], seqs[len(seqs)-1] + 1}
	if known && (is[0] < was[0] || is[1] < was[1]) || !known && is[0] > 0 {
		q.w.t.Fatalf("%s: rows %v after %v", key, is, was)
	}
	q.logs[key] = is
}

func (q *queried) read(key string) []*chain.Row {
	if rows, ok := q.rows[key]; ok {
		return rows
	}
	body, err := q.w.store.Get(context.Background(), key)
	if err != nil {
		q.w.t.Fatal(err)
	}
	f, err := parquet.Open(body)
	if err != nil {
		q.w.t.Fatal(key, err)
	}
	for row, err := range f.Rows() {
		if err != nil {
			q.w.t.Fatal(key, err)
		}
		q.rows[key] = append(q.rows[key], &chain.Row{Record: row.Record})
	}
	return q.rows[key]
}

// namedBy returns the keys of the objects that a manifest names.
func namedBy(t testing.TB, src archive.Source, key string) (keys []string) {
	t.Helper()
	body, err := src.Get(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		k, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), base)
		if !ok {
			t.Fatalf("%s: %q is no address", key, line)
		}
		keys = append(keys, k)
	}
	return keys
}

func tenantOf(t testing.TB, key string) string {
	t.Helper()
	tenant, ok := chain.Unescape(strings.TrimPrefix(strings.Split(key, "/")[2], "tenant="))
	if !ok || !archive.IsManifest(key) {
		t.Fatalf("%s is no key of a manifest", key)
	}
	return tenant
}

func newQueried(t testing.TB, at int, behind, dies bool) (*story, *queried) {
	s := newStory(t, at, behind, dies)
	q := &queried{cutter: s.c, w: s.world, rows: map[string][]*chain.Row{}, logs: map[string][2]int64{}, named: map[string]time.Time{}}
	s.settings.Archive, s.settings.Manifests = q, &Manifests{Base: base, Store: q}
	s.e = New(s.settings)
	return s, q
}

// wantLinked requires that the manifests have all rows of a line, and only those.
func (s *story) wantLinked(q *queried) {
	s.t.Helper()
	q.check()
	for _, l := range []archive.Line{s.calls.Line, s.control.Line} {
		snap, err := archive.ReadSnapshot(context.Background(), s.store, l, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		want := map[string][]string{}
		for _, f := range snap.Files {
			want[f.Tenant] = append(want[f.Tenant], f.Key)
		}
		for _, key := range s.keys(archive.ManifestPrefix) {
			tenant := tenantOf(s.t, key)
			if key != archive.ManifestKey(l, tenant) {
				continue
			}
			if got := namedBy(s.t, s.store, key); !slices.Equal(got, want[tenant]) {
				s.t.Fatalf("%s names %q, want %q", key, got, want[tenant])
			}
			delete(want, tenant)
		}
		if len(want) > 0 || len(snap.Segments) > 0 {
			s.t.Fatalf("no manifests of %v; %d segments", want, len(snap.Segments))
		}
	}
}

// Every write of a pass can fail before it happens, or after, and the process can
// die of it: a reader by manifests loses no row, gets none twice, and finds every
// object.
func TestManifestsSurviveEveryCut(t *testing.T) {
	s, q := newQueried(t, -1, false, false)
	s.tell()
	s.wantEnd(t)
	s.wantLinked(q)
	writes, swaps := s.c.writes, 0
	for at, name := range writes {
		if !strings.HasPrefix(name, "swap ") && !strings.Contains(name, "/catalog/") && at%4 > 0 {
			continue // TestPassesSurviveEveryCut has these
		}
		swaps++
		for _, behind := range []bool{false, true} {
			for _, dies := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d %s behind=%t dies=%t", at, name, behind, dies), func(t *testing.T) {
					s, q := newQueried(t, at, behind, dies)
					s.tell()
					s.wantEnd(t)
					s.wantLinked(q)
				})
			}
		}
	}
	if swaps < 20 || q.asked < 2*len(writes) {
		t.Errorf("%d of %d writes, asked %d times", swaps, len(writes), q.asked)
	}
}

func (s *sleeper) GetTagged(ctx context.Context, key string) ([]byte, string, error) {
	s.call()
	return s.Store.(archive.Swapper).GetTagged(ctx, key)
}

func (s *sleeper) Swap(ctx context.Context, key string, body []byte, tag string) (string, error) {
	s.call()
	return s.Store.(archive.Swapper).Swap(ctx, key, body, tag)
}

// A compactor that falls asleep before any call of a pass, and wakes up when others
// have gone on for longer than the grace, brings no older manifest back.
func TestASleeperBringsNoManifestBack(t *testing.T) {
	tried := 0
	for at := int64(1); ; at++ {
		s, q := newQueried(t, -1, false, false)
		slept := false
		s.nap = func(n int) {
			if n != 3 {
				return
			}
			store := &sleeper{Store: q, at: at, sleep: func() {
				slept, s.nap = true, nil
				s.compact()
				s.later(2 * time.Hour)
				s.compact()
				s.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
				s.calls.Anchor()
				s.land()
				s.compact()
			}}
			settings := s.settings
			settings.Archive, settings.Manifests = store, &Manifests{Base: base, Store: store}
			_, err := New(settings).Pass(context.Background(), s.calls.Line, s.duties(s.calls.Line))
			if err != nil && !errors.Is(err, ErrRaced) && !errors.Is(err, archive.ErrNotFound) {
				t.Fatal(at, err)
			}
		}
		s.tell()
		s.wantLinked(q)
		if !slept {
			break
		}
		tried++
	}
	if tried < 30 {
		t.Errorf("slept before %d calls", tried)
	}
}

// What manifests cost: a pass reads the tags of what it changes once, makes sure by
// one LIST that no newer version is there, and writes one object for each log that
// it changed, and one for the line.
func TestWhatManifestsCost(t *testing.T) {
	w := newWorld(t)
	m := &meter{Store: w.store}
	w.settings.Archive, w.settings.Once, w.settings.MinSegments = m, false, 1
	w.settings.Manifests = &Manifests{Base: base, Store: m}
	for range 10 {
		w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex"); b.Call("initech") })
	}
	w.calls.Anchor()
	w.land()
	e := New(w.settings)
	step := func(what, want string) {
		t.Helper()
		if _, err := e.Pass(context.Background(), w.calls.Line, nil); err != nil {
			t.Fatal(err)
		}
		if got := m.take(); got != want {
			t.Errorf("%s: %swant %s", what, got, want)
		}
	}
	step("10 segments of 3 logs", "get 11, list 3, put 5, swap 4, tagged 4, tail 3, ")
	step("nothing to do, and a sweep", "get 2, list 2, tail 2, versions 2, ")
	for range 3 {
		w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	}
	w.calls.Anchor()
	w.land()
	step("3 segments of one log", "get 6, list 3, put 3, swap 2, tail 4, ")
	if e = New(w.settings); true {
		step("a new process", "get 4, list 2, tagged 1, tail 3, versions 2, ")
	}
}

func (m *meter) GetTagged(ctx context.Context, key string) ([]byte, string, error) {
	m.count("tagged")
	return m.Store.(archive.Swapper).GetTagged(ctx, key)
}

func (m *meter) Swap(ctx context.Context, key string, body []byte, tag string) (string, error) {
	m.count("swap")
	return m.Store.(archive.Swapper).Swap(ctx, key, body, tag)
}

// Rows that a pass leaves behind the watermark are in the manifests of their logs,
// as segments: by anchors, and only what one covers.
func TestManifestsNameSegmentsBehindTheWatermark(t *testing.T) {
	w := newWorld(t)
	w.settings.Once, w.settings.MinSegments = false, 1
	w.settings.Manifests = &Manifests{Base: base, Store: w.store}
	for i := range 6 {
		w.calls.Segment(func(b *prooftest.Batch) {
			b.Call([]string{"acme", "globex", "acme", "initech", "acme", "globex"}[i])
		})
		if i < 5 {
			w.calls.Anchor()
		}
	}
	w.land()
	e := New(w.settings)
	p := &pass{e: e, ctx: context.Background(), l: w.calls.Line, d: &Duties{}, m: e.memo(w.calls.Line), res: &Result{}}
	var err error
	if p.s, err = e.look(p.ctx, p.l, p.m, p.d); err != nil {
		t.Fatal(err)
	}
	l := newLister(p, &archive.Catalog{Watermark: 2}, []archive.CatalogFile{
		{Tenant: "acme", LastSeq: 0, Key: "data/a"}, {Tenant: "globex", LastSeq: 0, Key: "data/g"},
	}, p.s.Anchors)
	got := map[string]string{}
	for _, tenant := range slices.Sorted(maps.Keys(l.behind)) {
		got[tenant] = strings.ReplaceAll(strings.ReplaceAll(string(l.text(tenant)), base, ""), archive.SegmentPrefix(w.calls.Line), "log/")
	}
	want := map[string]string{
		"acme":    "data/a\nlog/00000000000000000002.parquet\nlog/00000000000000000004.parquet\n",
		"initech": "log/00000000000000000003.parquet\n", // globex's is not anchored
	}
	if !maps.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// A reader is behind for as long as a compactor was away between a version and its
// manifests. What the version doomed stays for the grace after that, too.
func TestManifestsGiveTheGrace(t *testing.T) {
	s, q := newQueried(t, -1, false, false)
	s.settings.MergeFiles = 3
	s.e = New(s.settings)
	pass := func() error { _, err := s.e.Pass(context.Background(), s.calls.Line, nil); return err }
	for range 3 {
		s.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		s.calls.Anchor()
		s.land()
		if err := pass(); err != nil {
			t.Fatal(err)
		}
	}
	s.c.at, s.c.dies = len(s.c.writes)+3, true // behind a file, a part and the version in which the three files are one
	if err := pass(); !errors.Is(err, errCut) || !strings.Contains(s.c.writes[s.c.at], "/tenant=acme/") {
		t.Fatal(err, s.c.writes)
	}
	s.c.dead, s.e = false, New(s.settings)
	for range 3 {
		s.later(2 * time.Hour)
		s.compact() // q checks
	}
	s.wantLinked(q)
	if left := s.keys("log/audit.calls"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// Where there is more than a pass takes, each pass leaves manifests that have every
// row that an anchor covers.
func TestManifestsOfABacklog(t *testing.T) {
	s, q := newQueried(t, -1, false, false)
	s.settings.Memory = 64 << 10
	s.e = New(s.settings)
	for i := range 60 {
		s.calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call([]string{"globex", "initech"}[i%2]) })
		s.calls.Anchor()
	}
	s.land()
	want := map[string][2]int64{
		archive.ManifestKey(s.calls.Line, "acme"): {0, 60}, archive.ManifestKey(s.calls.Line, "globex"): {0, 30}, archive.ManifestKey(s.calls.Line, "initech"): {0, 30},
	}
	passes := 0
	for more := true; more; passes++ {
		r, err := s.e.Pass(context.Background(), s.calls.Line, nil)
		if err != nil {
			t.Fatal(err)
		}
		if q.check(); !maps.Equal(q.logs, want) {
			t.Fatalf("pass %d: %v", passes, q.logs)
		}
		more = r.More
	}
	if passes < 3 {
		t.Errorf("%d passes", passes)
	}
}

// What a version dooms is free once manifests have followed that version, or a
// later one, for the grace; however many versions there were, few links are kept.
func TestLinks(t *testing.T) {
	root := archive.Root{ArchiveID: "a", GraceSeconds: 3600}
	at := time.UnixMicro(prooftest.Start).UTC()
	k := &links{}
	for v := range int64(20_000) {
		k = k.add(root, base, v, at)
		at = at.Add(time.Second)
		if len(k.Linked) > linkGrains+4 {
			t.Fatalf("%d links", len(k.Linked))
		}
		for age, want := range map[int64]bool{1: false, 3500: false, 3600: false, 3725: true, 10_000: true} {
			if s := v + 1 - age; s >= 0 && k.free(s, at, time.Hour) != want {
				t.Fatalf("version %d, %d seconds after it: free is %t", s, age, !want)
			}
		}
	}
	if !(*links)(nil).free(0, at, time.Hour) || (&links{}).free(0, at, time.Hour) {
		t.Error("without manifests all is free, without links nothing is")
	}
}

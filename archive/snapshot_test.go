package archive_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

const dataID = "01KBCDEFGHJKMNPQRSTVWXYZ09"

// A compacted is a line that the test compacts by hand.
type compacted struct {
	*archive.Memory
	t        *testing.T
	state    *archive.State
	rows     map[string][]chain.Row
	segments [][]byte
	previous *chain.Hash
	version  int64
}

func newCompacted(t *testing.T) *compacted {
	return &compacted{Memory: archive.NewMemory(), t: t, state: newLine(), rows: map[string][]chain.Row{}}
}

func (c *compacted) put(key string, body []byte) {
	c.t.Helper()
	if _, err := c.Create(c.t.Context(), key, body); err != nil {
		c.t.Fatal(err)
	}
}

// segment adds the next segment.
func (c *compacted) segment(tenants ...string) {
	key := archive.SegmentKey(line, c.state.Ordinal)
	body := segment(c.t, c.state, 1, tenants...)
	o := advance(c.t, c.state, body)
	for i := range o.Rows {
		tenant := o.Rows[i].TenantID.S
		c.rows[tenant] = append(c.rows[tenant], o.Rows[i])
	}
	c.segments = append(c.segments, body)
	c.put(key, body)
}

// dataFile writes one file of a tenant's rows first ≤ seq ≤ last.
func (c *compacted) dataFile(tenant string, first, last int64) archive.CatalogFile {
	c.t.Helper()
	var tree chain.Tree
	for i := range c.rows[tenant][:first] {
		tree.Append(c.rows[tenant][i].RowHash)
	}
	f, err := archivetest.PutDataFile(c.t.Context(), c, c.state.Log(tenant), chain.SchemeV1, &tree, c.rows[tenant][first:last+1], dataID)
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// catalog writes the next version, of these files.
func (c *compacted) catalog(watermark int64, files ...archive.CatalogFile) *archive.Catalog {
	c.t.Helper()
	doc := &archive.Catalog{
		ArchiveID: archiveID, Topic: line.Topic, TopicID: line.TopicID, Partition: line.Partition, Version: c.version, Previous: c.previous,
		Time: archive.Time{Time: time.UnixMicro(5).UTC()}, Watermark: watermark,
	}
	sum, err := archivetest.PutCatalog(c.t.Context(), c, doc, files)
	if err != nil {
		c.t.Fatal(err)
	}
	c.previous, c.version = &sum, doc.Version+1
	return doc
}

// remove takes objects out for good.
func (c *compacted) remove(keys ...string) {
	c.t.Helper()
	for _, key := range keys {
		for v, err := range c.Versions(c.t.Context(), key) {
			if err != nil || v.Key != key {
				continue
			}
			if kept := c.Delete(c.t.Context(), []archive.Version{v}); len(kept) > 0 {
				c.t.Fatal(kept)
			}
		}
	}
}

// Every row of a line is in a snapshot once, before compaction, between its
// writes and its deletes, and after it.
func TestSnapshotHasEveryRowOnce(t *testing.T) {
	c := newCompacted(t)
	check := func(when string) {
		t.Helper()
		s, err := archive.ReadSnapshot(t.Context(), c, line, nil)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got, want := rowsOf(t, c, s), hashesOf(c.rows); !slices.Equal(got, want) {
			t.Errorf("%s: rows\n%s\nwant\n%s", when, got, want)
		}
		if s.Next() != c.state.Ordinal {
			t.Errorf("%s: next ordinal %d, want %d", when, s.Next(), c.state.Ordinal)
		}
	}
	check("an empty line")
	for range 3 {
		c.segment("a", "b", "a")
	}
	check("no catalog")
	a, b := c.dataFile("a", 0, 3), c.dataFile("b", 0, 1)
	check("data files that no version names")
	c.catalog(2, b, a)
	check("a version")
	c.remove(archive.SegmentKey(line, 1))
	check("a half of the deletes")
	c.remove(archive.SegmentKey(line, 0))
	check("all deletes")
	c.segment("b")
	check("a segment more")
	c.catalog(4, a, c.dataFile("a", 4, 5), b, c.dataFile("b", 2, 3))
	c.remove(archive.SegmentKey(line, 2), archive.SegmentKey(line, 3), archive.CatalogKey(line, 0))
	check("no segment is left")
}

func hashesOf(rows map[string][]chain.Row) (all []string) {
	for tenant, rows := range rows {
		for i := range rows {
			all = append(all, fmt.Sprintf("%s %d %s\n", tenant, rows[i].Seq.N, rows[i].RowHash))
		}
	}
	slices.Sort(all)
	return all
}

// rowsOf reads all rows of a snapshot.
func rowsOf(t *testing.T, src archive.Source, s *archive.Snapshot) []string {
	t.Helper()
	rows := map[string][]chain.Row{}
	for i := range s.Files {
		body, err := src.Get(t.Context(), s.Files[i].Key)
		if err != nil {
			t.Fatal(err)
		}
		f, meta, err := archive.OpenDataFile(body, &s.Files[i])
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range f.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			rows[meta.Tenant] = append(rows[meta.Tenant], *row)
		}
	}
	for _, o := range s.Segments {
		body, err := src.Get(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		seg, err := archive.ReadSegment(body, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range seg.Rows {
			tenant := seg.Rows[i].TenantID.S
			rows[tenant] = append(rows[tenant], seg.Rows[i])
		}
	}
	return hashesOf(rows)
}

// A between is a source in which something happens before the n-th request.
type between struct {
	archive.Source
	n  int
	do func()
}

func (b *between) step() {
	if b.n--; b.n == 0 {
		b.do()
	}
}

func (b *between) Get(ctx context.Context, key string) ([]byte, error) {
	b.step()
	return b.Source.Get(ctx, key)
}

func (b *between) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	b.step()
	return b.Source.List(ctx, prefix, after)
}

// Whatever compaction does between two requests of a reader, also all of it with
// its deletes, the reader gets every row.
func TestSnapshotBesideACompaction(t *testing.T) {
	for n, more := 1, true; more; n++ {
		c := newCompacted(t)
		for range 4 {
			c.segment("a", "b")
		}
		a, b := c.dataFile("a", 0, 1), c.dataFile("b", 0, 1)
		c.catalog(2, a, b)
		c.remove(archive.SegmentKey(line, 0), archive.SegmentKey(line, 1))
		more = false
		src := &between{Source: c, n: n, do: func() {
			more = true
			old := c.partKey()
			c.catalog(4, c.dataFile("a", 0, 3), c.dataFile("b", 0, 3))
			c.remove(archive.SegmentKey(line, 3), archive.SegmentKey(line, 2), archive.CatalogKey(line, 0), old, a.Key, b.Key)
		}}
		s, err := archive.ReadSnapshot(t.Context(), src, line, nil)
		if err != nil {
			t.Fatalf("before request %d: %v", n, err)
		}
		if !more { // it was over before
			continue
		}
		got := s.Watermark()
		if s, err = archive.ReadSnapshot(t.Context(), c, line, nil); err != nil {
			t.Fatal(err)
		}
		if got != s.Watermark() {
			t.Errorf("before request %d: a snapshot of watermark %d, which is past", n, got)
		}
		if got, want := rowsOf(t, c, s), hashesOf(c.rows); !slices.Equal(got, want) {
			t.Errorf("before request %d: rows\n%s\nwant\n%s", n, got, want)
		}
	}
}

// partKey returns the key of the only part that is there.
func (c *compacted) partKey() (key string) {
	for o, err := range c.Memory.List(c.t.Context(), archive.CatalogPrefix(line)+"part/", "") {
		if err != nil || key != "" {
			c.t.Fatal("not one part", err)
		}
		key = o.Key
	}
	return key
}

// What is wrong with a catalog is said, and no row is left out in silence.
func TestSnapshotRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		damage func(*compacted, *archive.Catalog)
		want   error
	}{
		"a part that is gone":  {func(c *compacted, _ *archive.Catalog) { c.remove(c.partKey()) }, archive.ErrCatalog},
		"a hole in the tail":   {func(c *compacted, _ *archive.Catalog) { c.remove(archive.SegmentKey(line, 3)) }, archive.ErrBreaks},
		"a hole at the tail":   {func(c *compacted, _ *archive.Catalog) { c.remove(archive.SegmentKey(line, 2)) }, archive.ErrBreaks},
		"a version of garbage": {func(c *compacted, _ *archive.Catalog) { c.put(archive.CatalogKey(line, 1), []byte("x")) }, archive.ErrCatalog},
		"a version of elsewhere": {func(c *compacted, doc *archive.Catalog) {
			text, err := archive.EncodeCatalog(doc)
			if err != nil {
				c.t.Fatal(err)
			}
			body, _ := sign.Sign(text)
			c.put(archive.CatalogKey(line, 1), body)
		}, archive.ErrCatalog},
		"a row in no file": {func(c *compacted, _ *archive.Catalog) { c.catalog(3, c.dataFile("a", 1, 1)) }, archive.ErrCatalog},
		"a row in two": {func(c *compacted, _ *archive.Catalog) {
			c.catalog(3, c.dataFile("a", 0, 2), c.dataFile("a", 2, 2))
		}, archive.ErrCatalog},
	} {
		c := newCompacted(t)
		for range 5 {
			c.segment("a")
		}
		doc := c.catalog(2, c.dataFile("a", 0, 1))
		tc.damage(c, doc)
		if s, err := archive.ReadSnapshot(t.Context(), c, line, nil); !errors.Is(err, tc.want) {
			t.Errorf("%s: %+v, %v; want %v", name, s, err, tc.want)
		}
	}
}

// A note that does not count is no catalog, whatever lies below it.
func TestSnapshotAsksForSignatures(t *testing.T) {
	c := newCompacted(t)
	c.segment("a")
	c.catalog(1, c.dataFile("a", 0, 0))
	unsigned := errors.New("unsigned")
	check := func(_ context.Context, n *sign.Note, at time.Time) error {
		if at.UnixMicro() != 5 {
			t.Errorf("asked for a document of %v", at)
		}
		if len(n.Signatures) == 0 {
			return unsigned
		}
		return nil
	}
	if _, err := archive.ReadSnapshot(t.Context(), c, line, check); !errors.Is(err, unsigned) {
		t.Errorf("%v", err)
	}
}

// The newest version costs one LIST and one GET, however many there are.
func TestNewestCatalog(t *testing.T) {
	c := newCompacted(t)
	if got, err := archive.NewestCatalog(t.Context(), c, line, nil); got != nil || err != nil {
		t.Fatalf("of a line that was never compacted: %+v, %v", got, err)
	}
	c.segment("a")
	f := c.dataFile("a", 0, 0)
	for range 12 {
		c.catalog(1, f)
	}
	c.remove(archive.CatalogKey(line, 0), archive.CatalogKey(line, 5))
	requests := 0
	src := &counting{Source: c, n: &requests}
	got, err := archive.NewestCatalog(t.Context(), src, line, nil)
	if err != nil || got.Version != 11 || got.SHA256 != *c.previous || got.Modified.IsZero() || requests != 2 {
		t.Errorf("%+v, %v after %d requests", got, err, requests)
	}
	if o, err := archive.NewestCatalogObject(t.Context(), c, line, 11); o != nil || err != nil {
		t.Errorf("above the newest: %+v, %v", o, err)
	}
	if o, err := archive.NewestCatalogObject(t.Context(), c, line, 3); err != nil || o.Key != archive.CatalogKey(line, 11) {
		t.Errorf("above version 3: %+v, %v", o, err)
	}
}

// However many versions locks keep, and with whatever holes, the newest is found
// by few LISTs, none of which is read much further than one page.
func TestNewestCatalogOfMany(t *testing.T) {
	for _, versions := range []int64{0, 1, 999, 1000, 1001, 1999, 2000, 2001, 2500, 12_345} {
		for name, there := range map[string]func(int64) bool{
			"all":              func(int64) bool { return true },
			"every third":      func(n int64) bool { return n%3 == 0 },
			"the newest alone": func(n int64) bool { return n >= versions-2 },
			"few in between":   func(n int64) bool { return n < 1500 || n > versions-700 || n%100 == 0 },
		} {
			m, want := archive.NewMemory(), int64(-1)
			for n := range versions {
				if there(n) {
					want = n
					if _, err := m.Create(t.Context(), archive.CatalogKey(line, n), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, key := range []string{archive.CatalogPartKey(line, chain.Hash{}), archive.CatalogPrefix(line) + "0.note", archive.CatalogPrefix(line) + "stray"} {
				if _, err := m.Create(t.Context(), key, nil); err != nil {
					t.Fatal(err)
				}
			}
			requests := 0
			o, err := archive.NewestCatalogObject(t.Context(), &counting{Source: m, n: &requests}, line, -1)
			if err != nil {
				t.Fatal(err)
			}
			if got := o; (got == nil) != (want < 0) || got != nil && got.Key != archive.CatalogKey(line, want) {
				t.Errorf("%d versions, %s: %+v, want %d", versions, name, got, want)
			}
			if requests > 12 {
				t.Errorf("%d versions, %s: %d LISTs", versions, name, requests)
			}
		}
	}
}

type counting struct {
	archive.Source
	n *int
}

func (c *counting) Get(ctx context.Context, key string) ([]byte, error) {
	*c.n++
	return c.Source.Get(ctx, key)
}

func (c *counting) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	*c.n++
	return c.Source.List(ctx, prefix, after)
}

// A data file is opened only where it is the one that the catalog means.
func TestOpenDataFileRefuses(t *testing.T) {
	c := newCompacted(t)
	c.segment("a", "a", "b")
	good := c.dataFile("a", 0, 1)
	body, err := c.Get(t.Context(), good.Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, m, err := archive.OpenDataFile(body, &good); err != nil || m.Rows != 2 {
		t.Fatal(m, err)
	}
	for name, change := range map[string]func(f *archive.CatalogFile, body *[]byte){
		"other bytes":    func(_ *archive.CatalogFile, body *[]byte) { (*body)[9]++ },
		"cut off":        func(_ *archive.CatalogFile, body *[]byte) { *body = (*body)[:len(*body)-1] },
		"another size":   func(f *archive.CatalogFile, _ *[]byte) { f.Bytes++ },
		"another tenant": func(f *archive.CatalogFile, _ *[]byte) { f.Tenant = "b" },
		"another head":   func(f *archive.CatalogFile, _ *[]byte) { f.HeadOut = chain.Hash{} },
		"other rows":     func(f *archive.CatalogFile, _ *[]byte) { f.Rows = 3 },
		"another line": func(f *archive.CatalogFile, _ *[]byte) {
			f.Key = archive.DataKey(archive.Line{Topic: line.Topic, TopicID: line.TopicID, Partition: 4}, "a", f.Day, 0, 1, dataID)
		},
		"no data file": func(f *archive.CatalogFile, body *[]byte) {
			*body = []byte(strings.Repeat("x", 100))
			f.Bytes, f.SHA256 = 100, sha256.Sum256(*body)
		},
		"a segment": func(f *archive.CatalogFile, body *[]byte) {
			*body = c.segments[0]
			f.Bytes, f.SHA256 = int64(len(*body)), sha256.Sum256(*body)
		},
	} {
		f, b := good, bytes.Clone(body)
		change(&f, &b)
		if _, _, err := archive.OpenDataFile(b, &f); !errors.Is(err, archive.ErrDataFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every line is found by one key of it, also one whose name does not fit in a key.
func TestLines(t *testing.T) {
	m := archive.NewMemory()
	put := func(key string, body []byte) {
		t.Helper()
		if _, err := m.Create(t.Context(), key, body); err != nil {
			t.Fatal(err)
		}
	}
	long := archive.Line{Topic: strings.Repeat("ö", 100), TopicID: line.TopicID, Partition: 100000}
	var want []archive.Line
	for _, l := range []archive.Line{line, {Topic: line.Topic, TopicID: line.TopicID, Partition: 10000}, {Topic: line.Topic, TopicID: line.TopicID, Partition: 100000}, {Topic: "a/b", TopicID: "x", Partition: 0}} {
		put(archive.SegmentKey(l, 0), nil)
		put(archive.SegmentKey(l, 1), nil)
		put(archive.AnchorKey(l, 0), nil)
		want = append(want, l)
	}
	st := archive.NewState(archiveID, long)
	st.NextOffset = 0
	put(archive.SegmentKey(long, 0), segment(t, st, 1, "a"))
	put(archive.AnchorKey(long, 0), []byte("damaged"))
	put(archive.AnchorKey(archive.Line{Topic: "anchors alone", TopicID: "x"}, 7), nil)
	put("log/stray", nil)
	put("log/x/y/z/stray", nil)
	put("log/x/y/1/stray", nil)
	want = append(want, long, archive.Line{Topic: "anchors alone", TopicID: "x"})
	got, err := archive.Lines(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			t.Errorf("%v is missing", l)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d: %v", len(got), len(want), got)
	}
	gone := archive.Line{Topic: strings.Repeat("ä", 100), TopicID: line.TopicID}
	put(archive.SegmentKey(gone, 0), []byte("damaged"))
	if got, err := archive.Lines(t.Context(), m); err == nil || len(got) != len(want) {
		t.Errorf("with one whose name nothing says: %d lines, %v", len(got), err)
	}
}

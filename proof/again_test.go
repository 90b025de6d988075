package proof_test

import (
	"context"
	"iter"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A movingBucket becomes another one in front of its n-th call: what a compactor
// does to it, all at once.
type movingBucket struct {
	mu    sync.Mutex
	calls int
	at    int
	now   *archive.Memory
	then  map[string][]byte
}

func (m *movingBucket) call() *archive.Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls++; m.calls == m.at {
		m.now = prooftest.Bucket(m.then)
	}
	return m.now
}

func (m *movingBucket) Get(ctx context.Context, key string) ([]byte, error) {
	return m.call().Get(ctx, key)
}

func (m *movingBucket) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	return m.call().GetTail(ctx, key, n)
}

func (m *movingBucket) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	return m.call().List(ctx, prefix, after)
}

// Whenever a compactor goes on beside it, a verification says what it would say
// without one; and what is really missing is a fault still.
func TestVerifyBesideACompactor(t *testing.T) {
	id := prooftest.OrderID
	compact := func(watermark int64, ulid string) func(*history) {
		return func(h *history) {
			h.calls.Compact(prooftest.Compaction{Watermark: watermark, FileRows: 4, ULID: ulid})
		}
	}
	erase := func(h *history) {
		h.order(func(b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"))
		})
		h.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 4, ULID: id(8), Change: func(row *chain.Row) {
			if row.TenantID.S == "acme" && row.Seq.N == 0 {
				prooftest.Erase(row, id(1))
			}
		}})
		maps.DeleteFunc(h.Others, func(key string, _ []byte) bool {
			return strings.HasPrefix(key, "data/") && strings.HasSuffix(key, id(9)+".parquet")
		})
	}
	none := func(*history) {}
	for name, c := range map[string]struct {
		before, change func(*history)
		exit           int
	}{
		"the first compaction":                 {none, compact(9, ""), 4},
		"a further one":                        {compact(2, id(9)), compact(9, id(8)), 4},
		"an erasure that was ordered just now": {compact(9, id(9)), erase, 4},
		"a segment is gone": {none, func(h *history) {
			compact(7, "")(h)
			h.Gone[h.calls.Key(8)] = true
		}, 1},
		"a data file is gone": {compact(2, id(9)), func(h *history) {
			compact(9, id(8))(h)
			for key := range h.Others {
				if strings.HasPrefix(key, "data/globex/") && strings.HasSuffix(key, id(8)+".parquet") {
					delete(h.Others, key)
					return
				}
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.order(func(b *prooftest.Batch) { b.Control("acme") })
			c.before(h)
			now := h.Objects()
			c.change(h)
			then := h.Objects()
			end := &movingBucket{now: prooftest.Bucket(then)}
			want, err := proof.Verify(t.Context(), end, proof.Options{Keys: ring(t, keyA)})
			if err != nil {
				t.Fatal(err)
			}
			wantExit(t, want, c.exit)
			for at := 1; at <= end.calls+5; at++ {
				m := &movingBucket{at: at, now: prooftest.Bucket(now), then: then}
				r, err := proof.Verify(t.Context(), m, proof.Options{Keys: ring(t, keyA)})
				if err != nil {
					t.Fatal(err)
				}
				if r.ExitCode() != c.exit && (c.exit != 1 || r.ExitCode() != 4) { // it may have looked before it was gone
					t.Fatalf("at call %d: exit %d: %v, %v, strays %v", at, r.ExitCode(), r.Faults, r.Looks, r.Strays)
				}
				if r.StrayCount > 0 {
					t.Fatalf("at call %d: strays %v", at, r.Strays)
				}
			}
		})
	}
}

// What lies below the watermark and nothing lists is a stray, and changes
// nothing; that rows are in it that a receipt calls erased is said. What was
// doomed when the receipt came should have been gone.
func TestStraysBelowTheWatermark(t *testing.T) {
	id := prooftest.OrderID
	receipt := func(h *history, b *prooftest.Batch) {
		b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"))
		b.Order("acme", audit.KindErasureDone, id(2), h.calls.Receipt(id(1), "*", [2]int64{0, 0}))
	}
	erase := func(row *chain.Row) {
		if row.TenantID.S == "acme" && row.Seq.N == 0 {
			prooftest.Erase(row, id(1))
		}
	}
	for name, c := range map[string]struct {
		exit    int
		strays  int64
		doomed  string // by the catalog, "before" the receipt or "after" it
		receipt bool
		key     func(h *history) string             // of what is there though it should not
		body    func(h *history, old []byte) []byte // what stands there
	}{
		"a segment":                                     {4, 1, "", false, func(h *history) string { return h.calls.Key(1) }, nil},
		"a doomed segment":                              {4, 0, "before", false, func(h *history) string { return h.calls.Key(1) }, nil},
		"a segment with an erased row":                  {4, 1, "", true, func(h *history) string { return h.calls.Key(0) }, nil},
		"a doomed one with an erased row":               {1, 0, "before", true, func(h *history) string { return h.calls.Key(0) }, nil},
		"one doomed later, with an erased row":          {4, 0, "after", true, func(h *history) string { return h.calls.Key(0) }, nil},
		"a data file doomed before, with an erased row": {1, 0, "before", true, func(h *history) string { return dataKey(h, "acme", 0) }, nil},
		"a data file doomed later, with an erased row":  {4, 0, "after", true, func(h *history) string { return dataKey(h, "acme", 0) }, nil},
		"a doomed one without":                          {4, 0, "before", true, func(h *history) string { return h.calls.Key(1) }, nil},
		"a doomed one that a writer put there late": {4, 1, "before", false, func(h *history) string { return h.calls.Key(1) }, func(*history, []byte) []byte {
			other := newHistory()
			other.calls.Segments[1].Rows[0].ActorKind = audit.Str("other")
			other.calls.Restamp()
			return other.calls.Segments[1].Body
		}},
		"a doomed one that was changed": {1, 0, "before", false, func(h *history) string { return h.calls.Key(1) }, func(_ *history, old []byte) []byte {
			old = append([]byte{}, old...)
			old[len(old)/2] ^= 1
			return old
		}},
		"a data file":                    {4, 1, "", false, func(h *history) string { return dataKey(h, "acme", 0) }, nil},
		"a data file with an erased row": {4, 1, "", true, func(h *history) string { return dataKey(h, "acme", 0) }, nil},
		"a data file without":            {4, 1, "", true, func(h *history) string { return dataKey(h, "globex", 0) }, nil},
		"what is no data file":           {4, 1, "", true, func(h *history) string { return dataKey(h, "acme", 0) }, func(*history, []byte) []byte { return []byte("PAR1PAR1") }},
	} {
		t.Run(name, func(t *testing.T) {
			old := newHistory()
			old.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 2, ULID: id(7)})
			h := newHistory()
			change := func(row *chain.Row) {}
			if c.receipt {
				change = erase
			}
			compact := func() {
				h.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 2, ULID: id(8), Change: change, Catalog: func(cat *archive.Catalog) {
					if c.doomed != "" {
						cat.Doomed = append(cat.Doomed, archive.CatalogDoomed{Key: c.key(old)})
					}
				}})
			}
			if c.doomed == "before" {
				compact()
				h.Later(time.Minute)
			}
			h.order(func(b *prooftest.Batch) {
				if c.receipt {
					receipt(h, b)
				} else {
					b.Control("acme")
				}
			})
			if c.doomed != "before" {
				h.Later(time.Minute)
				compact()
			}
			key := c.key(old)
			body := old.Others[key]
			if strings.HasPrefix(key, "log/") {
				for i := range old.calls.Segments {
					if old.calls.Key(i) == key {
						body = old.calls.Segments[i].Body
					}
				}
			}
			if c.body != nil {
				body = c.body(old, body)
			}
			objects := h.Objects()
			objects[key] = body
			r := verifyWith(t, objects, proof.Options{Keys: ring(t, keyA)})
			wantExit(t, r, c.exit)
			if r.StrayCount != c.strays {
				t.Errorf("strays %v, want %d", r.Strays, c.strays)
			}
			said := strings.Contains(strings.Join(r.Looks, " "), "with rows that a receipt calls erased")
			if want := strings.Contains(name, "with an erased row") && c.exit == 4; said != want {
				t.Errorf("looks %q", r.Looks)
			}
		})
	}
}

// dataKey returns the key of the data file of a log with a seq.
func dataKey(h *history, tenant string, seq int64) string {
	for key := range h.Others {
		if n, ok := archive.ParseDataKey(key); ok && n.EscapedTenant == tenant && n.FirstSeq <= seq && seq <= n.LastSeq {
			return key
		}
	}
	return ""
}

// An object that a receipt calls deleted must be gone with all its versions; a
// store that does not let them be listed is said to.
func TestDeletedObjectsAreGone(t *testing.T) {
	id := prooftest.OrderID
	build := func() (*history, string) {
		h := newHistory()
		h.calls.Compact(prooftest.Compaction{Watermark: 9})
		key := h.calls.Key(0)
		h.order(func(b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(map[string]any{"turnId": "none"}, "*"))
			m := h.calls.Receipt(id(1), "*")
			m["deleted"] = []any{map[string]any{"key": key, "versions": []string{"v1"}}}
			b.Order("acme", audit.KindErasureDone, id(2), m)
		})
		return h, key
	}
	for name, c := range map[string]struct {
		exit    int
		says    string
		prepare func(m *archive.Memory, key string)
		hide    bool // the store lists no versions
	}{
		"gone":                         {4, "", func(*archive.Memory, string) {}, false},
		"gone, and nobody can tell":    {4, "was not looked at", func(*archive.Memory, string) {}, true},
		"there":                        {1, "that the object was deleted, and it is there", func(m *archive.Memory, key string) { put(m, key) }, false},
		"there, and nothing versioned": {1, "that the object was deleted, and it is there", func(m *archive.Memory, key string) { put(m, key) }, true},
		"an old version": {1, "and a version of it is there", func(m *archive.Memory, key string) {
			m.SetVersioning(archive.Versioned)
			put(m, key)
			m.Remove(key)
		}, false},
		"a marker alone": {4, "", func(m *archive.Memory, key string) {
			m.SetVersioning(archive.Versioned)
			put(m, key)
			m.Remove(key)
			for v, err := range m.Versions(t.Context(), key) {
				if err == nil && !v.Marker {
					m.Delete(t.Context(), []archive.Version{v})
				}
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, key := build()
			m := prooftest.Bucket(h.Objects())
			c.prepare(m, key)
			var src archive.Source = m
			if c.hide {
				src = struct{ archive.Source }{m}
			}
			r, err := proof.Verify(t.Context(), src, proof.Options{Keys: ring(t, keyA)})
			if err != nil {
				t.Fatal(err)
			}
			wantExit(t, r, c.exit)
			said := strings.Join(r.Notes, "\n")
			for _, f := range r.Faults {
				said += "\n" + f.String()
			}
			if !strings.Contains(said, c.says) || c.says == "" && strings.Contains(said, "was not looked at") {
				t.Errorf("%q does not say %q", said, c.says)
			}
		})
	}
}

func put(m *archive.Memory, key string) {
	if _, err := m.Create(context.Background(), key, []byte("x")); err != nil {
		panic(err)
	}
}

// A prover that is overtaken by a compactor takes the line anew, and says what it
// would have said.
func TestProveBesideACompactor(t *testing.T) {
	h := newHistory()
	h.calls.Compact(prooftest.Compaction{Watermark: 2, FileRows: 4, ULID: prooftest.OrderID(9)})
	now := h.Objects()
	h.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 3, ULID: prooftest.OrderID(8)})
	maps.DeleteFunc(h.Others, func(key string, _ []byte) bool {
		return strings.HasPrefix(key, "data/") && strings.HasSuffix(key, prooftest.OrderID(9)+".parquet")
	})
	then := h.Objects()
	find := func(m *movingBucket, seq int64) string {
		p, err := proof.NewProver(t.Context(), m, proof.ProveOptions{Newest: true})
		if err != nil {
			return err.Error()
		}
		f, err := p.Find(t.Context(), proof.Want{Tenant: "acme", Seq: &seq})
		if err != nil {
			return err.Error()
		}
		return string(bundled(t, f))
	}
	for _, seq := range []int64{0, 2, 7} {
		end := &movingBucket{now: prooftest.Bucket(then)}
		want := find(end, seq)
		if !strings.HasPrefix(want, "{") {
			t.Fatal(want)
		}
		for at := 1; at <= end.calls+5; at++ {
			if got := find(&movingBucket{at: at, now: prooftest.Bucket(now), then: then}, seq); got != want {
				t.Fatalf("seq %d, at call %d: %s", seq, at, got)
			}
		}
	}
}

// A compactor that was killed in its first pass leaves data files and parts, and
// no version: strays, and the line is what its segments say. Where versions were
// taken away, what they had compacted is missing.
func TestPartsWithoutAVersion(t *testing.T) {
	h := newHistory()
	h.calls.Compact(prooftest.Compaction{Watermark: 9, Doom: true})
	objects := h.Objects()
	delete(objects, archive.CatalogKey(h.calls.Line, 0))
	r := verifyWith(t, objects, proof.Options{Keys: ring(t, keyA)})
	wantExit(t, r, 4)
	want := int64(0)
	for key := range h.Others {
		if strings.HasPrefix(key, "data/") || strings.Contains(key, "/part/") {
			want++
		}
	}
	whole := newHistory().verify(t)
	if r.StrayCount != want || want < 4 || r.Totals.Rows != whole.Totals.Rows || r.Tier != whole.Tier {
		t.Errorf("strays %d, want %d; %d rows, %s", r.StrayCount, want, r.Totals.Rows, r.Tier)
	}
	for i := range 9 {
		delete(objects, h.calls.Key(i))
	}
	wantFault(t, verifyWith(t, objects, proof.Options{Keys: ring(t, keyA)}), proof.FaultMissing, "segments 0 to 8 are missing")
}

package export_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

var key = prooftest.Signer("anchors.example")

func ring() *sign.Ring {
	r := &sign.Ring{}
	if err := r.Add(key.VKey(), sign.AllRoles, "test"); err != nil {
		panic(err)
	}
	return r
}

// A world is an archive in a store whose clock the test moves, with a compactor.
type world struct {
	*prooftest.Archive
	t        testing.TB
	calls    *prooftest.Line
	store    *archive.Memory
	now      time.Time
	settings compaction.Settings
}

// newWorld returns a world with what compaction must not lose: two days, a repeat,
// rejects, a chain reset, a turn in two places. An anchor covers all segments but
// the last.
func newWorld(t testing.TB) *world {
	w := &world{Archive: prooftest.New(), t: t, now: time.UnixMicro(prooftest.Start).UTC()}
	w.Signers = []*sign.Signer{key}
	w.calls = w.Line("audit.calls", 0)
	l := w.calls
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex"); b.Call("acme"); b.Duplicate("acme", 0) })
	l.Segment(func(b *prooftest.Batch) {
		b.Reject("acme", audit.ReasonInvalidJSON, []byte(`{"userId":"user-1002"`))
		b.Call("acme")
	})
	w.later(30 * time.Hour)
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
	voided := l.RollBack(2)
	l.Segment(func(b *prooftest.Batch) {
		b.Reset("acme", "operator", voided...)
		b.Reset("globex", "operator", voided...)
		b.Call("globex")
		b.Call("acme")
	})
	l.Segment(func(b *prooftest.Batch) { b.Lost(3); b.Call("acme"); b.Call("acme") })
	l.Anchor()
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
	w.store = &archive.Memory{Clock: func() time.Time { return w.now }}
	objects := w.Objects()
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if _, err := w.store.Create(context.Background(), key, objects[key]); err != nil {
			t.Fatal(err)
		}
	}
	root, err := archive.DecodeRoot(w.Root)
	if err != nil {
		t.Fatal(err)
	}
	w.settings = compaction.Settings{
		Archive: w.store, Root: root, Keys: ring(), Once: true, Now: func() time.Time { return w.now },
		Signers: func(time.Time) []note.Signer { return []note.Signer{key} }, Rand: rand.NewChaCha8([32]byte{1}), RepeatFiles: -1,
	}
	return w
}

func (w *world) later(d time.Duration) {
	w.now = w.now.Add(d)
	w.Later(d)
}

// compact compacts all that can be, for hours, with all deletes.
func (w *world) compact(e *compaction.Engine) {
	for range 3 {
		for {
			r, err := e.Pass(context.Background(), w.calls.Line, nil)
			if err != nil {
				w.t.Fatal(err)
			}
			if !r.More && !r.Wrote {
				break
			}
		}
		w.later(2 * time.Hour)
	}
}

// A watched store calls f before each call.
type watched struct {
	archive.Store
	f func()
}

func (s *watched) Get(ctx context.Context, key string) ([]byte, error) {
	s.f()
	return s.Store.Get(ctx, key)
}

func (s *watched) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	s.f()
	return s.Store.GetTail(ctx, key, n)
}

func (s *watched) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	s.f()
	return s.Store.GetRange(ctx, key, offset, n)
}

func (s *watched) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	s.f()
	return s.Store.List(ctx, prefix, after)
}

// queries are those of a world, by name.
var queries = map[string]func(context.Context, *export.Archive, archive.Line) ([]*export.Row, error){
	"turn": func(ctx context.Context, a *export.Archive, _ archive.Line) ([]*export.Row, error) {
		return a.Turn(ctx, "acme", "", "turn-0")
	},
	"session": func(ctx context.Context, a *export.Archive, _ archive.Line) ([]*export.Row, error) {
		return a.Session(ctx, "acme", "sess-0", export.Page{Limit: 3})
	},
	"record": func(ctx context.Context, a *export.Archive, _ archive.Line) ([]*export.Row, error) {
		return a.Record(ctx, "", "01KBCDEFGHJKMNPQRSTV000002")
	},
	"seq": func(ctx context.Context, a *export.Archive, _ archive.Line) ([]*export.Row, error) {
		return a.At(ctx, "acme", nil, 4)
	},
	"range": func(ctx context.Context, a *export.Archive, _ archive.Line) ([]*export.Row, error) {
		return gather(a.Range(ctx, export.Range{}))
	},
	"range of a tenant": func(ctx context.Context, a *export.Archive, _ archive.Line) ([]*export.Row, error) {
		return gather(a.Range(ctx, export.Range{Tenant: "acme", From: time.UnixMicro(prooftest.Start)}))
	},
	"subject": func(ctx context.Context, a *export.Archive, _ archive.Line) ([]*export.Row, error) {
		return gather(a.Subject(ctx, "", "user-1002"))
	},
	"rows": func(ctx context.Context, a *export.Archive, l archive.Line) ([]*export.Row, error) {
		return gather(a.Rows(ctx, export.Scan{Line: l, Tenant: "acme", From: 1}))
	},
	"logs": func(ctx context.Context, a *export.Archive, _ archive.Line) ([]*export.Row, error) {
		logs, err := a.Logs(ctx, "")
		var rows []*export.Row
		for _, l := range logs { // as rows, to be compared like the others
			r := &export.Row{Line: l.Line}
			r.TenantID, r.Seq, r.RowHash = audit.Str(l.Tenant), audit.I64(l.First<<32|l.Next), l.Head
			rows = append(rows, r)
		}
		return rows, err
	},
}

func gather(seq iter.Seq2[*export.Row, error]) (rows []*export.Row, err error) {
	for row, err := range seq {
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// told writes rows with their hashes, each log in its order: those of several may
// be mixed.
func told(rows []*export.Row) (all []string) {
	slices.SortStableFunc(rows, func(a, b *export.Row) int {
		if a.TenantID.S < b.TenantID.S {
			return -1
		} else if a.TenantID.S > b.TenantID.S {
			return 1
		}
		return 0
	})
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%s/%d %s", r.TenantID.S, r.Seq.N, r.RowHash))
	}
	return all
}

// Whatever a compactor does between two calls of a reader, for hours and with all
// its deletes, each query gives every row once, and in its place.
func TestACompactorBetweenAllStepsOfAQuery(t *testing.T) {
	for name, query := range queries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []string
			for at := 0; ; at++ {
				w := newWorld(t)
				w.settings.Memory = 40_000
				small := compaction.New(w.settings)
				w.settings.Memory = 0
				e := compaction.New(w.settings)
				if at%2 == 0 { // one that was compacted in part
					if _, err := small.Pass(t.Context(), w.calls.Line, nil); err != nil {
						t.Fatal(err)
					}
				}
				calls, met := 0, at == 0
				src := &watched{w.store, nil}
				one := make(chan struct{}, 1)
				src.f = func() {
					one <- struct{}{} // calls come from several goroutines
					defer func() { <-one }()
					if calls++; calls == at || calls == at+5 {
						met = true
						w.compact(e)
					}
				}
				a, err := export.Open(t.Context(), src, export.Options{Keys: ring(), Memory: int64(1 + at%3*100_000)})
				if err != nil {
					t.Fatal(err)
				}
				rows, err := query(t.Context(), a, w.calls.Line)
				if err != nil {
					t.Fatalf("at call %d: %v", at, err)
				}
				got := told(rows)
				if at == 0 {
					if want = got; len(want) == 0 {
						t.Fatal("the query gives nothing")
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("at call %d:\n%q\nwant\n%q", at, got, want)
				}
				if !met {
					return
				}
			}
		})
	}
}

// Queries of several goroutines, while the archive is compacted and looked at anew,
// give what each gives alone.
func TestQueriesAtOnce(t *testing.T) {
	w := newWorld(t)
	a, err := export.Open(t.Context(), w.store, export.Options{Keys: ring(), Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for name, query := range queries {
		rows, err := query(t.Context(), a, w.calls.Line)
		if err != nil {
			t.Fatal(name, err)
		}
		want[name] = told(rows)
	}
	var group errgroup.Group
	for range 3 {
		for name, query := range queries {
			group.Go(func() error {
				for range 2 {
					rows, err := query(t.Context(), a, w.calls.Line)
					if err != nil || !slices.Equal(told(rows), want[name]) {
						return fmt.Errorf("%s: %q, %w", name, names(rows), err)
					}
				}
				return nil
			})
		}
	}
	group.Go(func() error { w.compact(compaction.New(w.settings)); return nil })
	group.Go(func() error {
		for range 5 {
			if err := a.Refresh(t.Context()); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

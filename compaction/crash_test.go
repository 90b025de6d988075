package compaction

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

var errCut = errors.New("cut off")

// A cutter is a store of which one write fails, before it happens or after; and,
// if the process dies with it, all that comes then.
type cutter struct {
	archive.Store
	at     int // the write that fails, from 0; -1: none does
	behind bool
	dies   bool
	writes []string
	dead   bool
}

// write makes a write, or not.
func (c *cutter) write(name string, do func() error) error {
	if c.dead {
		return errCut
	}
	n := len(c.writes)
	if c.writes = append(c.writes, name); n != c.at {
		return do()
	}
	c.dead = c.dies
	if c.behind {
		if err := do(); err != nil {
			return err
		}
	}
	return errCut
}

func (c *cutter) Create(ctx context.Context, key string, body []byte) (at time.Time, err error) {
	err = c.write("create "+key, func() (err error) {
		at, err = c.Store.Create(ctx, key, body)
		return err
	})
	return at, err
}

func (c *cutter) Delete(ctx context.Context, versions []archive.Version) (kept []archive.Kept) {
	if len(versions) == 0 {
		return nil
	}
	err := c.write(fmt.Sprintf("delete %d versions from %s on", len(versions), versions[0].Key), func() error {
		kept = c.Store.Delete(ctx, versions)
		return nil
	})
	if err != nil {
		kept = nil
		for _, v := range versions {
			kept = append(kept, archive.Kept{Version: v, Err: err})
		}
	}
	return kept
}

func (c *cutter) Abort(ctx context.Context, u archive.Upload) error {
	return c.write("abort "+u.Key, func() error { return c.Store.Abort(ctx, u) })
}

func (c *cutter) Get(ctx context.Context, key string) ([]byte, error) {
	if c.dead {
		return nil, errCut
	}
	return c.Store.Get(ctx, key)
}

// A story is what happens to an archive, step by step: what others write, and
// what compactors do between.
type story struct {
	*world
	c    *cutter
	e    *Engine
	nap  func(point int) // before others compact
	naps int
}

func newStory(t testing.TB, at int, behind, dies bool) *story {
	w := newWorld(t)
	w.store.SetVersioning(archive.Versioned)
	s := &story{world: w, c: &cutter{Store: w.store, at: at, behind: behind, dies: dies}}
	w.settings.Archive = s.c
	s.e = New(w.settings)
	return s
}

// compact makes passes of both lines until nothing is left to do. A process that
// died, or a pass that failed, is followed by another one.
func (s *story) compact() {
	s.t.Helper()
	if s.nap != nil {
		s.naps++
		s.nap(s.naps)
	}
	for _, l := range []archive.Line{s.calls.Line, s.control.Line} {
		for tries := 0; ; tries++ {
			if tries == 100 {
				s.t.Fatal("passes without end")
			}
			r, err := s.e.Pass(context.Background(), l, s.duties(l))
			if s.c.dead {
				s.c.dead = false
				s.e = New(s.settings)
				continue
			}
			if errors.Is(err, errCut) || errors.Is(err, ErrRaced) {
				continue
			}
			if err != nil {
				s.t.Fatal(err)
			}
			if !r.More && !r.Wrote && len(r.Kept) == 0 {
				break
			}
		}
	}
}

// tell tells the story: rows of several days, an erasure, a hold that is lifted,
// a cut, receipts, strays, an upload that nobody finished; and time goes on.
func (s *story) tell() {
	w := s.world
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1"); told(b, "globex", "t-2") })
	w.calls.Anchor()
	w.land()
	s.compact()
	w.later(26 * time.Hour)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1"); b.Call("globex") })
	w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex"); b.Call("acme") })
	w.calls.Anchor()
	w.land()
	w.store.Begin(archive.DataKey(w.calls.Line, "acme", "2026-05-29", 7, 9, prooftest.ID))
	w.stray(archive.DataKey(w.calls.Line, "acme", "2026-05-28", 0, 4, prooftest.ID))
	s.compact()
	id := prooftest.OrderID
	w.order("acme", audit.KindRedaction, id(1), prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	cut := w.calls.CutAt("globex", id(2), 2)
	w.order("globex", audit.KindRetentionCut, id(2), w.calls.CutOrder(cut))
	s.compact()
	for range 2 {
		w.later(2 * time.Hour)
		s.compact()
	}
	w.receipt("acme", id(1), 0)
	s.compact()
	w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	w.calls.Anchor()
	w.land()
	for range 3 {
		w.later(2 * time.Hour)
		s.compact()
	}
}

// stray writes an object that nothing names.
func (w *world) stray(key string) {
	if _, err := w.store.Create(context.Background(), key, []byte(secret)); err != nil {
		w.t.Fatal(err)
	}
}

// told's secrets of acme are gone, globex's went with the cut, and all else is
// proved.
func (s *story) wantEnd(t *testing.T) {
	t.Helper()
	s.wantNowhere(secret)
	r := s.wantExit(0)
	if r.StrayCount > 0 || r.Totals.Rows != 15 || r.Totals.Cut != 2 {
		t.Fatalf("strays %v, %+v", r.Strays, r.Totals)
	}
	if left := s.keys("log/audit.calls"); len(left) != 0 {
		t.Fatalf("segments %v are left", left)
	}
}

// Every write can fail before it happens, or after it has, and the process can
// die of it. TestPassesSurviveEveryCut tries all of that for every write of all
// passes of a story: it ends the same way.
func TestPassesSurviveEveryCut(t *testing.T) {
	s := newStory(t, -1, false, false)
	s.tell()
	s.wantEnd(t)
	writes := s.c.writes
	t.Logf("%d writes", len(writes))
	for at, name := range writes {
		for _, behind := range []bool{false, true} {
			for _, dies := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d %s behind=%t dies=%t", at, name, behind, dies), func(t *testing.T) {
					s := newStory(t, at, behind, dies)
					s.tell()
					s.wantEnd(t)
				})
			}
		}
	}
}

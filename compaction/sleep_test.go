package compaction

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A sleeper is a store before one call of which a compactor falls asleep. Others
// go on meanwhile.
type sleeper struct {
	archive.Store
	at    int64 // the call, from 1
	calls atomic.Int64
	sleep func()
}

func (s *sleeper) call() {
	if s.calls.Add(1) == s.at {
		s.sleep()
	}
}

func (s *sleeper) Get(ctx context.Context, key string) ([]byte, error) {
	s.call()
	return s.Store.Get(ctx, key)
}

func (s *sleeper) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	s.call()
	return s.Store.GetTail(ctx, key, n)
}

func (s *sleeper) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	s.call()
	return s.Store.GetRange(ctx, key, offset, n)
}

func (s *sleeper) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	s.call()
	return s.Store.List(ctx, prefix, after)
}

func (s *sleeper) Versions(ctx context.Context, prefix string) iter.Seq2[archive.Version, error] {
	s.call()
	return s.Store.Versions(ctx, prefix)
}

func (s *sleeper) Uploads(ctx context.Context, prefix string) iter.Seq2[archive.Upload, error] {
	s.call()
	return s.Store.Uploads(ctx, prefix)
}

func (s *sleeper) Now(ctx context.Context) (time.Time, error) {
	s.call()
	return s.Store.Now(ctx)
}

func (s *sleeper) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	s.call()
	return s.Store.Create(ctx, key, body)
}

func (s *sleeper) Delete(ctx context.Context, versions []archive.Version) []archive.Kept {
	s.call()
	return s.Store.Delete(ctx, versions)
}

func (s *sleeper) Abort(ctx context.Context, u archive.Upload) error {
	s.call()
	return s.Store.Abort(ctx, u)
}

var stride = flag.Int64("stride", 3, "sleep before every so many-th call; 1 takes all")

// A compactor can fall asleep before any call of a pass, for longer than the
// grace, while another one does all that there is to do, and wakes up.
// TestASleeperLosesNothing tries that for each call of a pass, at each point of a
// story: it ends the same way, and nothing that is live was deleted meanwhile.
func TestASleeperLosesNothing(t *testing.T) {
	for point := 1; point <= 6; point++ {
		for at := int64(1); ; at++ {
			slept := false
			t.Run(fmt.Sprintf("point %d call %d", point, at), func(t *testing.T) { slept = sleepAt(t, point, at) })
			if !slept {
				break
			}
			at += *stride - 1
		}
	}
}

// sleepAt tells the story with one such sleep. It reports whether the pass had so
// many calls.
func sleepAt(t *testing.T, point int, at int64) (slept bool) {
	s := newStory(t, -1, false, false)
	s.nap = func(n int) {
		if n != point {
			return
		}
		slept = false
		settings := s.settings
		store := &sleeper{Store: s.store, at: at, sleep: func() {
			slept = true
			s.nap = nil
			s.compact()
			s.later(2 * time.Hour)
			s.compact()
		}}
		settings.Archive = store
		_, err := New(settings).Pass(context.Background(), s.calls.Line, s.duties(s.calls.Line))
		if err != nil && !errors.Is(err, ErrRaced) && !errors.Is(err, archive.ErrNotFound) {
			t.Fatal(err)
		}
		if r := s.verify(); r.ExitCode() == 1 {
			t.Fatal(r.Faults)
		}
	}
	s.tell()
	s.wantEnd(t)
	return slept
}

// A compactor that slept until the version that it was about to write had come,
// been replaced, and been deleted, does not bring it back.
func TestASleeperBringsNoVersionBack(t *testing.T) {
	for at := int64(1); ; at++ {
		w := small(t)
		e := New(w.settings)
		w.passes(e, w.calls.Line, nil)
		w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		w.calls.Anchor()
		w.land()
		slept := false
		store := &sleeper{Store: w.store, at: at, sleep: func() {
			slept = true
			for range 6 {
				w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
				w.calls.Anchor()
				w.land()
				w.passes(e, w.calls.Line, nil)
				w.later(2 * time.Hour)
			}
		}}
		settings := w.settings
		settings.Archive = store
		_, err := New(settings).Pass(context.Background(), w.calls.Line, nil)
		if !slept {
			return
		}
		if r := w.verify(); r.ExitCode() == 1 {
			t.Fatalf("call %d: %v: %v", at, err, r.Faults)
		}
		for range 3 {
			w.passes(e, w.calls.Line, nil)
			w.later(2 * time.Hour)
		}
		w.wantExit(0)
	}
}

// Two compactors that work on one line at the same time get in each other's way,
// and in nobody else's.
func TestTwoCompactorsAtOnce(t *testing.T) {
	w := small(t)
	var engines []*Engine
	for i := range byte(2) {
		w.settings.Rand = rand.NewChaCha8([32]byte{i})
		engines = append(engines, New(w.settings))
	}
	raced := 0
	for range 8 {
		w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1"); b.Call("globex") })
		w.calls.Anchor()
		w.land()
		errs := make(chan error, len(engines))
		for _, e := range engines {
			go func() {
				_, err := e.Pass(context.Background(), w.calls.Line, nil)
				errs <- err
			}()
		}
		for range engines {
			if err := <-errs; errors.Is(err, ErrRaced) {
				raced++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if r := w.verify(); r.ExitCode() == 1 {
			t.Fatal(r.Faults)
		}
		w.later(40 * time.Minute)
	}
	for range 4 {
		w.passes(engines[0], w.calls.Line, nil)
		w.later(2 * time.Hour)
	}
	if r := w.wantExit(0); r.Totals.Rows != 4+8*4 || r.StrayCount > 0 {
		t.Fatalf("%+v, strays %v", r.Totals, r.Strays)
	}
	if raced == 0 {
		t.Log("nobody was overtaken")
	}
}

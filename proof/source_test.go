package proof_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A source is an archive whose reads can be made to fail.
type source struct {
	archive.Source
	get  func(key string, n int, body []byte) ([]byte, error) // n counts the reads of a key from 1
	list func(prefix string) error

	mu    sync.Mutex
	reads map[string]int
}

func (s *source) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := s.Source.Get(ctx, key)
	if s.get == nil || err != nil {
		return body, err
	}
	s.mu.Lock()
	if s.reads == nil {
		s.reads = map[string]int{}
	}
	s.reads[key]++
	n := s.reads[key]
	s.mu.Unlock()
	return s.get(key, n, body)
}

func (s *source) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	return func(yield func(archive.Object, error) bool) {
		for o, err := range s.Source.List(ctx, prefix, after) {
			if !yield(o, err) {
				return
			}
		}
		if s.list != nil {
			if err := s.list(prefix); err != nil {
				yield(archive.Object{}, err)
			}
		}
	}
}

// A store that does not answer gives no verdict: not "tampered", and not
// "proved".
func TestAStoreThatFailsGivesNoVerdict(t *testing.T) {
	w := newWorld()
	down := errors.New("connection reset")
	for name, s := range map[string]*source{
		"a read":                 {get: failAt(w.calls.Key(3), down)},
		"a read that is denied":  {get: failAt(w.calls.Key(3), archive.ErrDenied)},
		"the read of the root":   {get: failAt(archive.RootKey, down)},
		"the first listing":      {list: func(prefix string) error { return ifTrue(prefix == "", down) }},
		"the listing of a line":  {list: func(prefix string) error { return ifTrue(strings.HasPrefix(prefix, "log/"), down) }},
		"the newest of one line": {get: failAt(w.other.Key(2), down)},
	} {
		t.Run(name, func(t *testing.T) {
			s.Source = prooftest.Bucket(w.Objects())
			r, err := proof.Verify(context.Background(), s, proof.Options{Unsigned: true})
			if r != nil || !errors.Is(err, down) && !errors.Is(err, archive.ErrDenied) {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}

func failAt(key string, err error) func(string, int, []byte) ([]byte, error) {
	return func(k string, _ int, body []byte) ([]byte, error) {
		if k == key {
			return nil, fmt.Errorf("get: %w", err)
		}
		return body, nil
	}
}

func ifTrue(yes bool, err error) error {
	if yes {
		return err
	}
	return nil
}

// What is listed and then not there, or cut short, is read once more: a listing
// may be older than what it lists. Met again it is a fault, of that object alone.
func TestAnObjectThatComesLateIsNoFault(t *testing.T) {
	w := newWorld()
	key := w.calls.Key(3)
	for _, c := range []struct {
		name string
		bad  func(body []byte) ([]byte, error)
		kind proof.FaultKind
	}{
		{"not found", func([]byte) ([]byte, error) { return nil, archive.ErrNotFound }, proof.FaultMissing},
		{"cut by the connection", func(b []byte) ([]byte, error) { return nil, fmt.Errorf("read: %w", io.ErrUnexpectedEOF) }, proof.FaultUnreadable},
		{"damaged on the way", func([]byte) ([]byte, error) { return nil, fmt.Errorf("checksum: %w", archive.ErrDamaged) }, proof.FaultUnreadable},
		{"short", func(b []byte) ([]byte, error) { return b[:len(b)-1], nil }, proof.FaultHash},
	} {
		for times, exit := range map[int]int{1: 0, 2: 1} {
			s := &source{Source: prooftest.Bucket(w.Objects()), get: func(k string, n int, body []byte) ([]byte, error) {
				if k == key && n <= times {
					return c.bad(body)
				}
				return body, nil
			}}
			r, err := proof.Verify(context.Background(), s, proof.Options{Unsigned: true})
			if err != nil {
				t.Fatal(err)
			}
			if exit == 1 {
				wantFault(t, r, c.kind, key)
			}
			if r.ExitCode() != exit || len(r.Faults) != exit {
				t.Errorf("%s %d times: exit %d, faults %v", c.name, times, r.ExitCode(), r.Faults)
			}
		}
	}
}

// A verification that is told to stop stops, with the reason.
func TestAVerificationCanBeStopped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	enough := errors.New("enough")
	r, err := proof.Verify(ctx, prooftest.Bucket(newWorld().Objects()), proof.Options{Unsigned: true, Progress: func(done, _, _ int64) {
		if done == 3 {
			cancel(enough)
		}
	}})
	if r != nil || err == nil {
		t.Errorf("%v, %v", r, err)
	}
}

// Progress counts every object and row once.
func TestProgressCountsEverything(t *testing.T) {
	a, _ := anchored()
	var done, total, rows int64
	_, err := proof.Verify(context.Background(), prooftest.Bucket(a.Objects()), proof.Options{Unsigned: true, Progress: func(d, n, r int64) {
		if d != done+1 || n != 8 || r < rows {
			t.Errorf("%d of %d objects after %d, %d rows after %d", d, n, done, r, rows)
		}
		done, total, rows = d, n, r
	}})
	if err != nil || done != 8 || total != 8 || rows != 6 {
		t.Errorf("%v: %d of %d, %d rows", err, done, total, rows)
	}
}

// An archive that grows while it is verified is no fault: neither segments nor
// anchors that were written after the first listing.
func TestAnArchiveMayGrow(t *testing.T) {
	a, l := anchored()
	src := prooftest.Bucket(a.Objects())
	grown := sync.OnceFunc(func() {
		l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		l.Anchor()
		l.Segment(func(b *prooftest.Batch) { b.Call("new") })
		for key, body := range a.Objects() {
			_, _ = src.Create(context.Background(), key, body)
		}
	})
	s := &source{Source: src, list: func(prefix string) error { grown(); return nil }}
	r, err := proof.Verify(context.Background(), s, proof.Options{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, r, 0)
	if r.Totals.Segments != 6 || r.Lines[0].Anchored != 3 {
		t.Errorf("%d segments, anchored up to %d", r.Totals.Segments, r.Lines[0].Anchored)
	}
}

// Memory is bounded by a window: never more objects than fit, but always
// enough to go on.
func TestObjectsAreReadThroughAWindow(t *testing.T) {
	a := prooftest.New()
	l := a.Line("t", 0)
	for range 40 {
		l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	}
	var held, most atomic.Int64
	s := &source{Source: prooftest.Bucket(a.Objects()), get: func(key string, _ int, body []byte) ([]byte, error) {
		if strings.HasPrefix(key, "log/") {
			most.Store(max(most.Load(), held.Add(1)))
		}
		return body, nil
	}}
	_, err := proof.Verify(context.Background(), s, proof.Options{Unsigned: true, Memory: 1, Progress: func(done, _, _ int64) {
		if done > 1 { // the first is the root
			held.Add(-1)
		}
	}})
	if err != nil || most.Load() > 4 {
		t.Errorf("%v: %d objects at once, want 3, and one whose end is being told", err, most.Load())
	}
}

// Every fault is counted, and as many kept as were asked for.
func TestFaultsAreBounded(t *testing.T) {
	w := newWorld()
	for _, s := range w.calls.Segments {
		for i := range s.Rows {
			s.Rows[i].Status = audit.Str("changed")
		}
		s.Encode()
	}
	w.calls.Relink(1)
	objects := w.Objects()
	for i := range 9 {
		objects[fmt.Sprint("stray", i)] = nil
	}
	r := verifyWith(t, objects, proof.Options{Unsigned: true, Faults: 4})
	if len(r.Faults) != 4 || r.FaultCount != 18 || len(r.Strays) != 4 || r.StrayCount != 9 {
		t.Errorf("%d faults of %d, %d strays of %d", len(r.Faults), r.FaultCount, len(r.Strays), r.StrayCount)
	}
}

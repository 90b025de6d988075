package export_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A counting archive counts the bytes of objects that were read whole, by the counter
// of whoever asks.
type counting struct{ archive.Ranger }

type counter struct{}

func (c counting) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := c.Ranger.Get(ctx, key)
	if n, ok := ctx.Value(counter{}).(*atomic.Int64); ok {
		n.Add(int64(len(body)))
	}
	return body, err
}

// Streams whose consumers are slow do not hold the memory of one each: those who
// come later read less ahead.
func TestManySlowStreamsShareMemory(t *testing.T) {
	a := prooftest.New()
	line, random, size := a.Line("audit.calls", 0), uint64(1), int64(0)
	for range 8 {
		s := line.Segment(func(b *prooftest.Batch) {
			raw := make([]byte, 50_000) // that zstd makes nothing of
			for i := range raw {
				random = random*6364136223846793005 + 1442695040888963407
				raw[i] = byte(random >> 56)
			}
			b.Reject("acme", audit.ReasonInvalidJSON, raw)
		})
		size = max(size, int64(len(s.Body)))
	}
	e := open(t, counting{prooftest.Bucket(a.Objects())}, export.Options{Memory: 8 * size})
	for range 10 { // those that ended take nothing from others
		for range e.Range(t.Context(), export.Range{}) {
			break
		}
	}
	counts := make([]atomic.Int64, 8)
	var stops []func()
	for n := range counts {
		next, stop := iter.Pull2(e.Range(context.WithValue(t.Context(), counter{}, &counts[n]), export.Range{}))
		defer stop()
		if _, err, ok := next(); err != nil || !ok {
			t.Fatal(err, ok)
		}
		stops = append(stops, stop)
	}
	for n := range counts {
		part := 8 * size / int64(n+1)
		for counts[n].Load() < part-2*size {
			if t.Context().Err() != nil {
				t.Fatalf("stream %d does not read ahead", n)
			}
			runtime.Gosched()
		}
	}
	for n, stop := range stops {
		stop() // which waits for what is under way
		if got, part := counts[n].Load(), 8*size/int64(n+1); got > part {
			t.Errorf("stream %d holds %d bytes, and %d is its part", n, got, part)
		}
	}
}

// Whoever is asked to stop does so in the middle of an object too.
func TestAStreamStopsInsideAnObject(t *testing.T) {
	a := prooftest.New()
	a.Line("audit.calls", 0).Segment(func(b *prooftest.Batch) {
		for range 10 {
			b.Call("acme")
		}
	})
	e := open(t, prooftest.Bucket(a.Objects()), export.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rows, last := 0, error(nil)
	for _, err := range e.Range(ctx, export.Range{}) {
		if last = err; err == nil {
			rows++
			cancel()
		}
	}
	if rows != 1 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d rows, %v", rows, last)
	}
}

// An object of nothing but wrong rows, which zstd makes small, is not told of row by
// row.
func TestManyRowsThatDoNotCheck(t *testing.T) {
	e := forged(t, func(_, s *prooftest.Segment) {
		s.Rows[0].ModelID = audit.Str("another")
		s.Rows = slices.Repeat(s.Rows, 1000)
	})
	rows, err := e.Turn(t.Context(), "acme", "", "turn-0")
	if n := strings.Count(fmt.Sprint(err), "\n") + 1; n != 101 || !strings.Contains(fmt.Sprint(err), "more than 100 of its rows") || !errors.Is(err, export.ErrTampered) || len(rows) != 1 {
		t.Errorf("%d rows, %d faults: %.300v", len(rows), n, err)
	}
	if _, faults := faulty(t, e.Subject(t.Context(), "acme", "user-1001")); len(faults) != 101 {
		t.Errorf("subject: %d faults", len(faults))
	}
}

// A row that somebody copied, in its object or into another one, is shown once; one
// that was made anew in the place of another is a fault.
func TestCopiesOfRowsAreNotShown(t *testing.T) {
	for name, c := range map[string]struct {
		forge  func(first, s *prooftest.Segment)
		rows   int
		faults string
	}{
		"in its object": {func(_, s *prooftest.Segment) { s.Rows = slices.Repeat(s.Rows, 1000) }, 2, "<nil>"},
		"from another": {func(first, s *prooftest.Segment) {
			s.Rows = append(s.Rows, first.Rows[0])
		}, 2, "seq 0 of tenant \"acme\": the object says that it has no such row"},
		"made anew": {func(_, s *prooftest.Segment) {
			row := s.Rows[0]
			row.ModelID = audit.Str("another")
			chain.NewHasher(nil).Stamp(&row, row.PrevHash, row.RowSalt.Hash)
			s.Rows = append(s.Rows, row)
		}, 2, "another row stands in the same place"},
	} {
		e := forged(t, c.forge)
		for query, ask := range map[string]func() ([]*export.Row, error){
			"turn":    func() ([]*export.Row, error) { return e.Turn(t.Context(), "acme", "", "turn-0") },
			"session": func() ([]*export.Row, error) { return e.Session(t.Context(), "acme", "sess-0", export.Page{Limit: 7}) },
		} {
			rows, err := ask()
			if len(rows) != c.rows || !strings.Contains(fmt.Sprint(err), c.faults) || err != nil && !errors.Is(err, export.ErrTampered) {
				t.Errorf("%s: %s: %q, %v", name, query, names(rows), err)
			}
		}
	}
}

// forged opens an archive of two segments, the second of which was changed.
func forged(t *testing.T, change func(first, s *prooftest.Segment)) *export.Archive {
	a := prooftest.New()
	line := a.Line("audit.calls", 0)
	first := line.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	s := line.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	change(first, s)
	s.Encode()
	return open(t, prooftest.Bucket(a.Objects()), export.Options{})
}

// A store that lists an object and then denies it is not asked without an end.
func TestAnObjectThatIsListedAndNotThere(t *testing.T) {
	a := prooftest.New()
	line := a.Line("audit.calls", 0)
	line.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	e := open(t, denying{prooftest.Bucket(a.Objects()), line.Key(0)}, export.Options{})
	if logs, err := e.Logs(t.Context(), ""); len(logs) > 0 || !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("%v, %v", logs, err)
	}
}

type denying struct {
	archive.Ranger
	key string
}

func (d denying) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	if key == d.key {
		return nil, archive.ErrNotFound
	}
	return d.Ranger.GetRange(ctx, key, offset, n)
}

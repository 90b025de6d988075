package export

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A Cost is what reading has taken.
type Cost struct {
	Gets  int64 // of whole objects and of parts, those of segments too
	Lists int64 // listings; one of more than 1,000 keys is several requests
	Bytes int64 // of bodies

	SegmentGets  int64 // of segments, which are not compacted yet
	SegmentBytes int64
}

// Sub returns what was spent since earlier.
func (c Cost) Sub(earlier Cost) Cost {
	return Cost{
		Gets: c.Gets - earlier.Gets, Lists: c.Lists - earlier.Lists, Bytes: c.Bytes - earlier.Bytes,
		SegmentGets: c.SegmentGets - earlier.SegmentGets, SegmentBytes: c.SegmentBytes - earlier.SegmentBytes,
	}
}

// Cost returns what was read since Open, and by it.
func (a *Archive) Cost() Cost { return a.src.cost() }

// A meter counts what is read, and keeps the parts of catalogs, which never
// change, from one [Archive.Refresh] to the next: those that were asked for in the
// last one.
type meter struct {
	src                                            archive.Ranger
	gets, lists, bytes, segmentGets, segmentsBytes atomic.Int64

	mu        sync.Mutex
	kept, now map[string][]byte
}

func newMeter(src archive.Ranger) *meter { return &meter{src: src, now: map[string][]byte{}} }

func (m *meter) cost() Cost {
	return Cost{m.gets.Load(), m.lists.Load(), m.bytes.Load(), m.segmentGets.Load(), m.segmentsBytes.Load()}
}

func (m *meter) got(key string, n int) {
	m.gets.Add(1)
	m.bytes.Add(int64(n))
	if strings.HasPrefix(key, archive.LogPrefix) {
		m.segmentGets.Add(1)
		m.segmentsBytes.Add(int64(n))
	}
}

// turn lets go of parts that no catalog named since the last turn.
func (m *meter) turn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept, m.now = m.now, map[string][]byte{}
}

// Get implements [archive.Source].
func (m *meter) Get(ctx context.Context, key string) ([]byte, error) {
	if isPart(key) {
		return m.part(ctx, key)
	}
	return m.get(ctx, key)
}

func (m *meter) get(ctx context.Context, key string) ([]byte, error) {
	body, err := m.src.Get(ctx, key)
	m.got(key, len(body))
	return body, err
}

func isPart(key string) bool {
	return strings.HasPrefix(key, "catalog/") && strings.Contains(key, "/part/")
}

func (m *meter) part(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	body, ok := m.now[key]
	if !ok {
		body, ok = m.kept[key]
	}
	m.mu.Unlock()
	if !ok {
		var err error
		if body, err = m.get(ctx, key); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now[key] = body
	return body, nil
}

// GetTail implements [archive.Source].
func (m *meter) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	tail, size, err := m.src.GetTail(ctx, key, n)
	m.got(key, len(tail))
	return tail, size, err
}

// GetRange implements [archive.Ranger].
func (m *meter) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	b, err := m.src.GetRange(ctx, key, offset, n)
	m.got(key, len(b))
	return b, err
}

// List implements [archive.Source].
func (m *meter) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	m.lists.Add(1)
	return m.src.List(ctx, prefix, after)
}

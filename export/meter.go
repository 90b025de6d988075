package export

import (
	"context"
	"iter"
	"strings"
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

// A meter counts what is read, and keeps the parts of catalogs, which never change,
// from one [Archive.Refresh] to the next.
type meter struct {
	counter
	keeper *archive.Keeper
}

func newMeter(src archive.Ranger) *meter {
	m := &meter{counter: counter{src: src}}
	m.keeper = archive.NewKeeper(&m.counter, archive.IsCatalogPart)
	return m
}

// Get implements [archive.Source].
func (m *meter) Get(ctx context.Context, key string) ([]byte, error) { return m.keeper.Get(ctx, key) }

// A counter counts what is read.
type counter struct {
	src                                            archive.Ranger
	gets, lists, bytes, segmentGets, segmentsBytes atomic.Int64
}

func (c *counter) cost() Cost {
	return Cost{c.gets.Load(), c.lists.Load(), c.bytes.Load(), c.segmentGets.Load(), c.segmentsBytes.Load()}
}

func (c *counter) got(key string, n int) {
	c.gets.Add(1)
	c.bytes.Add(int64(n))
	if strings.HasPrefix(key, archive.LogPrefix) {
		c.segmentGets.Add(1)
		c.segmentsBytes.Add(int64(n))
	}
}

// Get implements [archive.Source].
func (c *counter) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := c.src.Get(ctx, key)
	c.got(key, len(body))
	return body, err
}

// GetTail implements [archive.Source].
func (c *counter) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	tail, size, err := c.src.GetTail(ctx, key, n)
	c.got(key, len(tail))
	return tail, size, err
}

// GetRange implements [archive.Ranger].
func (c *counter) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	b, err := c.src.GetRange(ctx, key, offset, n)
	c.got(key, len(b))
	return b, err
}

// List implements [archive.Source].
func (c *counter) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	c.lists.Add(1)
	return c.src.List(ctx, prefix, after)
}

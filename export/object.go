package export

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A piece is a data file or a segment of a snapshot.
type piece struct {
	key   string
	size  int64
	file  *archive.CatalogFile // or
	seg   *segment
	parts bool   // it is not read whole: it is too large, or
	start int64  // rows in front of this seq are not asked for
	body  []byte // where it was read whole
	gone  error  // why there is nothing of it
}

// says returns what a piece says of the log of a tenant's row; the scheme is "" where
// it says that it has no such row. whole is what a data file says of itself.
func (p *piece) says(tenant string, seq int64, whole *archive.DataFile) (scheme string, of Unhashed) {
	if f := p.file; f != nil {
		if tenant == f.Tenant && f.FirstSeq <= seq && seq <= f.LastSeq {
			return whole.Scheme, UnhashedIn(whole)
		}
		return "", of
	}
	if l := p.seg.log(tenant); l != nil && l.FirstSeq <= seq && seq-l.FirstSeq < l.Rows {
		return l.Scheme, UnhashedOf(l, p.seg.voided)
	}
	return "", of
}

// remote opens the end of an object, or remembers it.
func (a *Archive) remote(ctx context.Context, key string, size int64) (*parquet.Remote, error) {
	if r := a.ends.get(key); r != nil {
		return r, nil
	}
	r, err := parquet.OpenRemote(ctx, size, func(ctx context.Context, offset, n int64) ([]byte, error) {
		return a.src.GetRange(ctx, key, offset, n)
	})
	if err != nil {
		return nil, readFault(key, err)
	}
	a.ends.put(key, r, size, a.o.Memory/8)
	return r, nil
}

// readFault says what an error of reading an object means: [ErrTampered] where the
// object is wrong, else the store's.
func readFault(key string, err error) error {
	if err == nil || errors.Is(err, ErrTampered) {
		return err
	}
	if errors.Is(err, parquet.ErrMalformed) || errors.Is(err, archive.ErrDamaged) {
		return tampered("%s: %w", key, err)
	}
	return fmt.Errorf("%s: %w", key, err)
}

// An endCache keeps the ends of objects, which do not change.
type endCache struct {
	mu    sync.Mutex
	byKey map[string]*parquet.Remote
	bytes int64
	full  bool // one was not kept
}

func (c *endCache) get(key string) *parquet.Remote {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key]
}

// put keeps the end of an object of size bytes, as long as all of them take no more
// than limit, about. Which are kept does not change then, until a turn: who reads
// all of many again and again finds those at least.
func (c *endCache) put(key string, r *parquet.Remote, size, limit int64) {
	const footer = 64 << 10 // once it is decoded
	weight := min(size, max(64<<10, min(size/192, 1<<20))) + footer
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full = c.bytes+weight > limit; c.full {
		return
	}
	if c.byKey == nil {
		c.byKey = map[string]*parquet.Remote{}
	}
	c.byKey[key] = r
	c.bytes += weight
}

// turn makes room for the ends of new objects, where there is none left.
func (c *endCache) turn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		c.byKey, c.bytes, c.full = nil, 0, false
	}
}

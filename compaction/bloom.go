package compaction

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// filterBytes is how much of the end of a data file is read for its footer and
// its bloom filters.
const filterBytes = 256 << 10

// bloomColumns are the columns that are asked for.
var bloomColumns = []string{"record_id", "session_id", "turn_id", "user_id", "kind"}

// filters are the bloom filters of a data file, by column; a column that is not
// there may have any value.
type filters struct {
	columns map[string][][]byte
	bytes   int64
}

// mayHave reports whether a column may have a value.
func (f *filters) mayHave(column, value string) bool {
	all, ok := f.columns[column]
	if !ok {
		return true
	}
	for _, filter := range all {
		if has, err := parquet.BloomHas(filter, value); has || err != nil {
			return true
		}
	}
	return false
}

// mayMean reports whether a file may have rows that a target means.
func (f *filters) mayMean(t *control.Target) bool {
	switch {
	case t.Record != nil: // producers may write letters in either case; the column has upper ones
		return f.mayHave("record_id", strings.ToUpper(*t.Record)) || f.mayHave("record_id", *t.Record)
	case t.Turn != nil:
		return f.mayHave("turn_id", *t.Turn) && (t.Session == nil || f.mayHave("session_id", *t.Session))
	case t.Session != nil:
		return f.mayHave("session_id", *t.Session)
	case t.User != nil:
		return f.mayHave("user_id", *t.User) || f.mayHave("kind", audit.KindRejected)
	}
	return true
}

// mayHold reports whether a file may have rows that one of the orders means.
func (p *pass) mayHold(f *archive.CatalogFile, orders []*entry) (bool, error) {
	var x *filters
	for _, e := range orders {
		o := e.duty.Row.Redaction
		if e.duty.Closing || o == nil || o.Target.Log != nil {
			return true, nil // the catalog says that it is there
		}
		if x == nil {
			var err error
			if x, err = p.e.filters(p.ctx, f); err != nil {
				return false, err
			}
		}
		if x.mayMean(&o.Target) {
			return true, nil
		}
	}
	return false, nil
}

// filters reads the bloom filters of a file, or remembers them. A file whose
// filters cannot be read may hold anything: whoever then reads it finds out why.
func (e *Engine) filters(ctx context.Context, f *archive.CatalogFile) (*filters, error) {
	if x := e.blooms.get(f.Key); x != nil {
		return x, nil
	}
	x, err := e.readFilters(ctx, f.Key)
	if errors.Is(err, parquet.ErrMalformed) {
		return &filters{}, nil
	}
	if err != nil {
		return nil, err
	}
	e.blooms.put(f.Key, x)
	return x, nil
}

func (e *Engine) readFilters(ctx context.Context, key string) (*filters, error) {
	tail, size, footer, err := e.footer(ctx, key)
	if err != nil {
		return nil, err
	}
	return filtersBy(footer, func(s parquet.Span) ([]byte, error) { return e.span(ctx, key, tail, size, s) })
}

// remember keeps the filters of a file that was just made.
func (c *bloomCache) remember(key string, object []byte) {
	footer, err := parquet.ParseFooter(object, int64(len(object)))
	if err != nil {
		return // which its reader finds out
	}
	x, err := filtersBy(footer, func(s parquet.Span) ([]byte, error) {
		return append([]byte(nil), object[s.Offset:s.Offset+s.Size]...), nil
	})
	if err == nil {
		c.put(key, x)
	}
}

func filtersBy(footer *parquet.Footer, read func(parquet.Span) ([]byte, error)) (*filters, error) {
	x := &filters{columns: map[string][][]byte{}}
	for _, column := range bloomColumns {
		spans, ok, err := footer.Blooms(column)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		all := [][]byte{}
		for _, s := range spans {
			filter, err := read(s)
			if err != nil {
				return nil, err
			}
			all, x.bytes = append(all, filter), x.bytes+int64(len(filter))
		}
		x.columns[column] = all
	}
	return x, nil
}

func (e *Engine) footer(ctx context.Context, key string) (tail []byte, size int64, f *parquet.Footer, err error) {
	for n := int64(filterBytes); ; {
		if tail, size, err = e.Archive.GetTail(ctx, key, n); err != nil {
			return nil, 0, nil, fileFault(key, err)
		}
		f, err = parquet.ParseFooter(tail, size)
		var short *parquet.ShortTailError
		if !errors.As(err, &short) {
			return tail, size, f, err
		}
		n = short.Need
	}
}

// span returns a stretch of an object, of which the tail was read.
func (e *Engine) span(ctx context.Context, key string, tail []byte, size int64, s parquet.Span) ([]byte, error) {
	if at := s.Offset - (size - int64(len(tail))); at >= 0 {
		return append([]byte(nil), tail[at:at+s.Size]...), nil
	}
	b, err := e.Archive.GetRange(ctx, key, s.Offset, s.Size)
	if err != nil {
		return nil, fileFault(key, err)
	}
	if int64(len(b)) != s.Size {
		return nil, fmt.Errorf("%s: %w: it ends in a bloom filter", key, parquet.ErrMalformed)
	}
	return b, nil
}

// A bloomCache keeps the filters that were asked last.
type bloomCache struct {
	mu    sync.Mutex
	limit int64 // bytes
	size  int64
	byKey map[string]*list.Element
	order list.List // the last one asked in front
}

type bloomEntry struct {
	key string
	*filters
}

func newBloomCache(limit int64) *bloomCache {
	return &bloomCache{limit: limit, byKey: map[string]*list.Element{}}
}

func (c *bloomCache) get(key string) *filters {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.byKey[key]
	if at == nil {
		return nil
	}
	c.order.MoveToFront(at)
	return at.Value.(bloomEntry).filters
}

func (c *bloomCache) put(key string, f *filters) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[key] != nil {
		return
	}
	c.byKey[strings.Clone(key)] = c.order.PushFront(bloomEntry{key, f})
	c.size += f.bytes + 512
	for c.size > c.limit && c.order.Len() > 1 {
		last := c.order.Back()
		old := last.Value.(bloomEntry)
		c.order.Remove(last)
		delete(c.byKey, old.key)
		c.size -= old.bytes + 512
	}
}

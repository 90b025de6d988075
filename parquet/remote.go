package parquet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/ledgerlake/ledgerlake/chain"
)

// ErrWhole is matched by the error of [Remote.Find] where an object has pages of
// a kind that only other writers make: it is to be read whole, by [Open].
var ErrWhole = errors.New("pages of another writer: read the object whole")

// What [Remote.Find] keeps to as far as it can, of gets and of bytes for an object.
const (
	mostGets    = 8
	mostBytes   = 16 << 20
	roomForGaps = 1 << 20 // of mostBytes, at least
	keyBytes    = 6 << 20 // of pages in which rows are looked up, at a time
	pageBytes   = 8 << 20 // of pages of rows, where they must be read in portions
)

// A Remote finds rows of an object of which it reads as little as it can.
//
// Nothing vouches for a part of an object, as its hash is that of all of it:
// whoever uses a row checks it by its own hashes. A row that is there and that
// filters, bounds or indexes deny is not found. That, too, only those find out
// who read the object whole.
//
// It may be used by several goroutines at once, if its [Getter] may.
type Remote struct {
	file *File // without an object
	get  Getter
	tail part
	gets int // for the tail
}

// endSize returns how much of the end of an object is read at first, in bytes:
// footer and indexes of pages, and in most data files the bloom filters of turn_id
// and session_id, which lie before them. Where a row is 1.3 KB of JSON, these take
// a two-hundredth of the object. Small objects are read whole.
func endSize(size int64) int64 {
	if size <= 128<<10 {
		return size
	}
	return max(64<<10, min(size/128, 512<<10))
}

// OpenRemote reads the end of an object of size bytes, with one get, rarely two.
// An error of get is returned as it is, any other one matches [ErrMalformed].
func OpenRemote(ctx context.Context, size int64, get Getter) (r *Remote, err error) {
	p := parts{get: get}
	f, err := p.open(ctx, size)
	if err != nil {
		return nil, ofObject(err)
	}
	return &Remote{file: f, get: get, tail: p.have[0], gets: p.gets}, nil
}

func (p *parts) open(ctx context.Context, size int64) (f *File, err error) {
	defer caught(&err)
	raw, err := p.readEnd(ctx, size)
	if err != nil {
		return nil, err
	}
	return newFile(raw, size)
}

// readEnd reads the end of an object, and returns its footer. Where a long one
// takes a second get, that brings along what most likely lies before it.
func (p *parts) readEnd(ctx context.Context, size int64) (footer []byte, err error) {
	if size < int64(len(magic))+trailerSize {
		return nil, fmt.Errorf("%d bytes cannot be an object", size)
	}
	p.have = []part{{at: size}}
	n := endSize(size)
	for {
		head := Span{Offset: size - n, Size: p.have[0].at - (size - n)}
		b, err := p.one(ctx, head)
		if err != nil {
			return nil, err
		}
		p.gets, p.read = p.gets+1, p.read+head.Size
		p.have[0] = part{at: head.Offset, bytes: append(b.bytes, p.have[0].bytes...)}
		footer, err = splitFooter(p.have[0].bytes, size)
		var short *ShortTailError
		if !errors.As(err, &short) {
			return footer, err
		}
		n = min(size, 64<<10+6*short.Need)
	}
}

// caught makes a panic over hostile bytes an error, as [boundary] does.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
}

// ofObject makes an error match ErrMalformed, unless it is no fault of the object.
func ofObject(err error) error {
	var get *getError
	switch {
	case errors.As(err, &get):
		return get.error
	case errors.Is(err, ErrWhole):
		return err
	default:
		return malformed(err)
	}
}

// Metadata returns the value of the key "ledgerlake", and whether it is there.
func (r *Remote) Metadata() ([]byte, bool) { return r.file.Metadata() }

// NumRows returns how many rows the footer says that there are.
func (r *Remote) NumRows() int64 { return r.file.NumRows() }

// Bounds returns the smallest and the largest value of a text column, as the
// footer states them, and how many nulls it has. ok is false where no bounds are
// stated for a row group that has values, or there is no value at all. It takes no
// get.
func (r *Remote) Bounds(column string) (low, high string, nulls int64, ok bool) {
	found := false
	ok = true
	for i := range r.file.meta.RowGroups {
		g := &r.file.meta.RowGroups[i]
		m := chunkOf(g, column)
		if m == nil {
			return "", "", 0, false
		}
		s := &m.Statistics
		nulls += s.NullCount
		switch {
		case s.MinValue == nil || s.MaxValue == nil:
			ok = ok && s.NullCount == m.NumValues
		case !found:
			low, high, found = string(s.MinValue), string(s.MaxValue), true
		default:
			low, high = min(low, string(s.MinValue)), max(high, string(s.MaxValue))
		}
	}
	return low, high, nulls, ok && found
}

// Find yields the rows that one of the matches means, in the order of the object,
// each once. A *chain.Row is valid until the next step; its strings and slots may
// be kept, with the pages of some rows around it. An error ends the sequence: one
// of the Getter as it is, [ErrWhole], or what matches [ErrMalformed].
//
// A row group is passed over where bounds or bloom filters deny the first
// condition of each match, and so are the pages of that condition's column. Of the
// other columns the pages that hold the rows are read.
//
//	end of the object                                           1 get
//	bloom filters, of all row groups, if the end has them not   1
//	indexes of pages, if the end has them not                   1
//	pages of the column that is looked up in                    2
//	pages of the rows                                           what is left of 8
//
// An object that has none of the rows takes the first two; one in some thousand,
// where a filter errs, also the fourth. These numbers, and 16 MiB in all, are kept
// where the rows lie near each other, in one row group or in two that are
// neighbours, as those of a turn do, and their pages have less than about 14 MiB.
// Where they lie apart, gets are more rather than bytes; and where their pages have
// more, they are read 8 MiB after another, with up to 4 gets each time and at least
// one for each row group. No more memory is taken, unless a single row needs it.
func (r *Remote) Find(ctx context.Context, any ...Match) iter.Seq2[*chain.Row, error] {
	return func(yield func(*chain.Row, error) bool) {
		f := finder{ctx: ctx, file: r.file, any: any, yield: yield}
		f.parts = parts{get: r.get, have: []part{r.tail}, gets: r.gets, read: int64(len(r.tail.bytes))}
		if err := f.run(); err != nil {
			yield(nil, ofObject(err))
		}
	}
}

// A finder is one call of [Remote.Find].
type finder struct {
	ctx   context.Context
	file  *File
	any   []Match
	parts parts
	yield func(*chain.Row, error) bool
	batch []chain.Row
	done  bool // no more rows are wanted
}

// A groupFind is a row group that may have rows.
type groupFind struct {
	index   int
	matches []int       // that may mean some of them
	rows    []interval  // that they may be
	chunks  []*pieces   // by leaf; nil: not read
	keys    [][]rowPage // by match: where its first condition may hold
}

// A rowPage is where rows may be, and the piece of the key's column with them.
type rowPage struct {
	rows interval
	span Span
}

func (f *finder) run() error {
	for i := range f.any {
		for j := range f.any[i] {
			if err := f.any[i][j].check(); err != nil {
				return &getError{err} // of the caller, and no fault of the object
			}
		}
	}
	groups, err := f.candidates()
	if err != nil {
		return err
	}
	if err := f.index(groups); err != nil {
		return err
	}
	f.batch = make([]chain.Row, batchRows)
	kept := len(f.parts.have)
	for len(groups) > 0 && !f.done {
		n, err := f.lookUp(groups)
		if err != nil {
			return err
		}
		if err := f.read(groups[:n]); err != nil {
			return err
		}
		groups = groups[n:]
		f.parts.forget(kept)
	}
	return nil
}

// candidates returns the row groups that bounds and filters do not deny.
func (f *finder) candidates() (all []*groupFind, err error) {
	defer caught(&err)
	var filters []Span
	for i := range f.file.meta.RowGroups {
		g := &groupFind{index: i}
		for m := range f.any {
			if may, filter, err := f.mayBound(i, f.any[m]); err != nil {
				return nil, err
			} else if may {
				g.matches, filters = append(g.matches, m), append(filters, filter)
			}
		}
		if len(g.matches) > 0 {
			all = append(all, g)
		}
	}
	if err := f.parts.fetch(f.ctx, filters, 1, 2<<20); err != nil {
		return nil, err
	}
	for _, g := range all {
		kept := g.matches[:0]
		for _, m := range g.matches {
			if may, err := f.mayFilter(filters[0], f.any[m]); err != nil {
				return nil, err
			} else if may {
				kept = append(kept, m)
			}
			filters = filters[1:]
		}
		g.matches = kept
	}
	return slices.DeleteFunc(all, func(g *groupFind) bool { return len(g.matches) == 0 }), nil
}

// leaf returns the place of a column in the object, or -1.
func (f *finder) leaf(c *column) int {
	return slices.IndexFunc(f.file.leaves, func(l leaf) bool { return l.column >= 0 && &columns[l.column] == c })
}

// mayBound reports whether the bounds of a row group leave room for a match, and
// where the filter is that may deny it: empty for none.
func (f *finder) mayBound(group int, m Match) (may bool, filter Span, err error) {
	g := &f.file.meta.RowGroups[group]
	if g.NumRows == 0 {
		return false, filter, nil
	}
	if len(m) == 0 {
		return true, filter, nil
	}
	c, at := &m[0], f.leaf(m[0].column)
	if at < 0 {
		return c.null, filter, nil
	}
	meta := &g.Columns[at].MetaData
	s, bounded := &meta.Statistics, meta.Statistics.MinValue != nil && meta.Statistics.MaxValue != nil
	switch {
	case c.null:
		return s.NullCount > 0 || !bounded, filter, nil
	case nulls(&f.file.leaves[at], meta):
		return false, filter, nil
	case bounded && !c.mayLie(s.MinValue, s.MaxValue):
		return false, filter, nil
	case meta.BloomFilterLength == 0:
		return true, filter, nil
	}
	filter, err = f.span("bloom filter", meta.BloomFilterOffset, int64(meta.BloomFilterLength))
	return true, filter, err
}

// span is a stretch that an object says to have before its footer.
func (f *finder) span(what string, at, size int64) (Span, error) {
	if at < int64(len(magic)) || size < 0 || at > f.file.end-size {
		return Span{}, fmt.Errorf("%s of %d bytes at %d", what, size, at)
	}
	return Span{Offset: at, Size: size}, nil
}

func (f *finder) mayFilter(s Span, m Match) (bool, error) {
	if s.Size == 0 || m[0].column.text == nil {
		return true, nil
	}
	filter, err := f.parts.must(s)
	if err != nil {
		return false, err
	}
	for _, v := range m[0].texts {
		if has, err := BloomHas(filter, v); has || err != nil {
			return true, err
		}
	}
	return false, nil
}

package parquet

import (
	"errors"
	"fmt"
	"sort"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/chain"
)

// pieces are the parts of a column chunk that can be read one by one: its data
// pages, as an offset index lists them, or all of it at once where it has none.
type pieces struct {
	leaf  *leaf
	meta  *format.ColumnMetaData
	dict  Span // empty: none, or part of the piece
	all   []piece
	whole bool // without an index
}

// A piece is a stretch of a chunk, and the rows that it has.
type piece struct {
	Span
	first, end int64
}

// nulls reports whether a chunk has nothing but nulls, which are read nowhere.
func nulls(l *leaf, c *format.ColumnMetaData) bool {
	return l.maxDef > 0 && l.maxRep == 0 && !columns[l.column].required && c.Statistics.NullCount == c.NumValues
}

// wholeChunk returns the only piece of a chunk.
func wholeChunk(l *leaf, c *format.ColumnMetaData, rows int64) *pieces {
	s := Span{Offset: chunkStart(c), Size: c.TotalCompressedSize}
	return &pieces{leaf: l, meta: c, all: []piece{{Span: s, end: rows}}, whole: true}
}

// readPieces reads the offset index of a chunk.
func readPieces(index []byte, l *leaf, c *format.ColumnMetaData, rows int64) (*pieces, error) {
	r, x := thriftReader{b: index}, offsetIndex{}
	x.read(&r)
	if err := r.whole(); err != nil {
		return nil, fmt.Errorf("offset index: %w", err)
	}
	if len(x.places) == 0 {
		return nil, errors.New("offset index without a page")
	}
	start := chunkStart(c)
	p := &pieces{leaf: l, meta: c, dict: Span{Offset: start, Size: x.places[0].Offset - start}}
	at, end, row := start, start+c.TotalCompressedSize, int64(-1)
	for i, place := range x.places {
		size := int64(place.CompressedPageSize)
		switch {
		case i == 0 && place.FirstRowIndex != 0, place.FirstRowIndex <= row, place.FirstRowIndex >= rows:
			return nil, fmt.Errorf("offset index has page %d from row %d", i, place.FirstRowIndex)
		case size <= 0, place.Offset < at, place.Offset > end, size > end-place.Offset:
			return nil, fmt.Errorf("offset index has page %d of %d bytes at %d", i, size, place.Offset)
		}
		at, row = place.Offset+size, place.FirstRowIndex
		if i > 0 {
			p.all[i-1].end = row
		}
		p.all = append(p.all, piece{Span: Span{Offset: place.Offset, Size: size}, first: row, end: rows})
	}
	return p, nil
}

// with returns the index of the piece that has a row.
func (p *pieces) with(row int64) int {
	return sort.Search(len(p.all), func(i int) bool { return p.all[i].end > row })
}

// A cursor reads rows of one chunk in ascending order, from the pieces that have
// them. The values are read by a [chunkReader].
type cursor struct {
	*chunkReader
	parts   *parts
	pieces  *pieces
	row     int64 // the next one
	open    int   // the piece, from 1
	started bool  // the dictionary was read
}

func newCursor(p *parts, all *pieces) *cursor {
	r := readers.Get().(*chunkReader)
	r.leaf, r.column, r.codec, r.body.codec = all.leaf, &columns[all.leaf.column], all.meta.Codec, &pq.Zstd
	return &cursor{chunkReader: r, parts: p, pieces: all}
}

// fillAt fills the column in rows, the first of which is row from.
func (c *cursor) fillAt(rows []chain.Row, from int64) error {
	for len(rows) > 0 {
		if err := c.seek(from); err != nil {
			return err
		}
		n := min(int64(len(rows)), c.pieces.all[c.open-1].end-from)
		if err := c.fill(rows[:n]); err != nil {
			return err
		}
		from, rows = from+n, rows[n:]
		c.row = from
	}
	return nil
}

// seek goes to a row, which does not lie before the next one.
func (c *cursor) seek(row int64) error {
	if c.open == 0 || row >= c.pieces.all[c.open-1].end {
		if err := c.begin(c.pieces.with(row)); err != nil {
			return err
		}
	}
	err := c.skip(row - c.row)
	c.row = row
	return err
}

// begin begins with a piece.
func (c *cursor) begin(i int) error {
	if !c.started && c.pieces.dict.Size > 0 {
		if err := c.load(c.pieces.dict); err != nil {
			return err
		}
		more, err := c.more()
		if err == nil && more {
			err = errors.New("data page where a dictionary belongs")
		}
		if err != nil {
			return err
		}
	}
	c.started = true
	p := &c.pieces.all[i]
	if err := c.load(p.Span); err != nil {
		return err
	}
	c.open, c.row = i+1, p.first
	if c.pieces.whole {
		return nil
	}
	if err := c.need(); err != nil {
		return err
	}
	if got := c.rowsOfPage(); got != p.end-p.first || c.walk.more() {
		return fmt.Errorf("page of %d rows, the offset index says %d", got, p.end-p.first)
	}
	return nil
}

// load takes a stretch for the pages to come.
func (c *cursor) load(s Span) error {
	b, err := c.parts.must(s)
	if err != nil {
		return err
	}
	c.walk, c.at, c.n = pageWalk{object: b, end: int64(len(b))}, 0, 0
	if c.codec != format.Zstd && c.codec != format.Uncompressed {
		return fmt.Errorf("codec %v", c.codec)
	}
	values, foreign, err := checkWalk(c.walk, c.codec, c.leaf)
	switch {
	case err != nil:
		return err
	case foreign:
		return ErrWhole
	case c.pieces.whole && values != c.pieces.meta.NumValues:
		return fmt.Errorf("%d values in pages, %d in the footer", values, c.pieces.meta.NumValues)
	}
	return nil
}

// rowsOfPage returns how many rows begin in the page at hand, or -1 where it
// begins in the middle of one.
func (c *cursor) rowsOfPage() (n int64) {
	if c.column.list == nil {
		return int64(c.n)
	}
	if c.reps[0] != 0 {
		return -1
	}
	for _, r := range c.reps {
		if r == 0 {
			n++
		}
	}
	return n
}

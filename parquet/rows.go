package parquet

import (
	"fmt"
	"iter"

	pq "github.com/parquet-go/parquet-go"

	"github.com/ledgerlake/ledgerlake/chain"
)

// batchRows is how many rows are filled at a time, column by column: as many as
// a core's cache holds.
const batchRows = 64

// Rows yields all rows in order. A *chain.Row is valid until the next step; its
// strings and slots may be kept, and are not written to again. An error ends
// the sequence and matches [ErrMalformed].
func (f *File) Rows() iter.Seq2[*chain.Row, error] {
	wanted := make([]bool, len(columns))
	for i := range wanted {
		wanted[i] = true
	}
	return f.scan(wanted)
}

// Select is like [File.Rows] and fills only the named columns; the others are
// zero. Pages of other columns are not touched. A column that the object does
// not have is null; a name that the format does not have is an error.
func (f *File) Select(names ...string) iter.Seq2[*chain.Row, error] {
	wanted := make([]bool, len(columns))
	for _, name := range names {
		i, ok := columnByName[name]
		if !ok {
			return func(yield func(*chain.Row, error) bool) { yield(nil, fmt.Errorf("the format has no column %q", name)) }
		}
		wanted[i] = true
	}
	return f.scan(wanted)
}

func (f *File) scan(wanted []bool) iter.Seq2[*chain.Row, error] {
	return func(yield func(*chain.Row, error) bool) {
		batch := make([]chain.Row, min(batchRows, f.meta.NumRows))
		for i := range f.meta.RowGroups {
			if more, err := f.scanGroup(i, wanted, batch, yield); !more || err != nil {
				if err != nil {
					yield(nil, malformed(fmt.Errorf("row group %d: %w", i, err)))
				}
				return
			}
		}
	}
}

// scanGroup yields the rows of one row group, and reports whether more are
// wanted.
func (f *File) scanGroup(i int, wanted []bool, batch []chain.Row, yield func(*chain.Row, error) bool) (more bool, err error) {
	g := groupReader{left: f.meta.RowGroups[i].NumRows}
	defer g.close()
	if err := g.open(f, i, wanted); err != nil {
		return false, err
	}
	for g.left > 0 {
		rows := batch[:min(int64(len(batch)), g.left)]
		if err := g.fill(rows); err != nil {
			return false, err
		}
		for j := range rows {
			if !yield(&rows[j], nil) {
				return false, nil
			}
		}
	}
	return true, g.done()
}

// A groupReader reads one row group.
type groupReader struct {
	left    int64 // rows
	columns []*chunkReader
}

func (g *groupReader) open(f *File, i int, wanted []bool) error {
	for j := range f.leaves {
		l := &f.leaves[j]
		if l.column < 0 || !wanted[l.column] {
			continue
		}
		c := readers.Get().(*chunkReader)
		c.leaf, c.column = l, &columns[l.column]
		g.columns = append(g.columns, c)
		if err := c.guard(func() error { return c.open(f, i, j) }); err != nil {
			return err
		}
	}
	return nil
}

// open begins with the pages of chunk j of row group i.
func (r *chunkReader) open(f *File, i, j int) error {
	meta := &f.meta.RowGroups[i].Columns[j].MetaData
	foreign, err := checkPages(f.object, meta, r.leaf)
	if err != nil {
		return err
	}
	if !foreign {
		r.codec, r.walk, r.body.codec = meta.Codec, walk(f.object, meta), &pq.Zstd
		return nil
	}
	pages, err := f.pages()
	if err == nil {
		r.pages = pages.RowGroups()[i].ColumnChunks()[j].Pages()
	}
	return err
}

// fill fills rows, which are no more than are left.
func (g *groupReader) fill(rows []chain.Row) error {
	for _, c := range g.columns {
		if err := c.guard(func() error { return c.fill(rows) }); err != nil {
			return err
		}
	}
	g.left -= int64(len(rows))
	return nil
}

func (g *groupReader) done() error {
	for _, c := range g.columns {
		if err := c.guard(c.done); err != nil {
			return err
		}
	}
	return nil
}

func (g *groupReader) close() {
	for _, c := range g.columns {
		c.close()
	}
}

// guard names the column in an error of do, and catches its panic.
func (r *chunkReader) guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = fmt.Errorf("column %s: %w", r.leaf.path, err)
		}
	}()
	return do()
}

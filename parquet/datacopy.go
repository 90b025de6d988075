package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/chain"
)

// joinBelow is the size of the smallest page that is copied as it is, in bytes
// that are not compressed. The values of smaller ones are joined.
const joinBelow = 16 << 10

// File appends all rows of another object. The error matches [ErrMalformed] where
// the object is damaged; the writer is then to be reset.
//
// Where this package has written the object, rows are not decoded: plain pages
// are copied as they are stored, with their values read only where a bound or a
// bloom filter needs them; values of small pages, and the indexes of dictionaries,
// go into new pages column by column. What the writer says of the values is what
// it has read, but the number of nulls of a sealed column, which is that of the
// object's footer. Rows that do not fit into the open row group as a whole go the
// way of [DataWriter.Rows] where that group is not half full yet.
func (w *DataWriter) File(f *File) (err error) {
	defer boundary(&err)
	copies := f.own()
	for i := range f.meta.RowGroups {
		g := &f.meta.RowGroups[i]
		if g.NumRows == 0 {
			continue
		}
		fits := w.open+g.NumRows <= w.o.GroupRows && w.weight+g.TotalByteSize <= w.o.GroupBytes
		if !fits && (w.open >= w.o.GroupRows/2 || w.weight >= w.o.GroupBytes/2) {
			if err := w.endGroup(); err != nil {
				return err
			}
		}
		fits = w.open+g.NumRows <= w.o.GroupRows && (w.open == 0 || w.weight+g.TotalByteSize <= w.o.GroupBytes)
		if copies && fits {
			err = w.copyGroup(f, i)
		} else {
			err = w.groupRows(f, i)
		}
		if err != nil {
			return fmt.Errorf("row group %d: %w", i, err)
		}
	}
	return nil
}

// own reports whether the object is one that this package has written, of chunks
// that can be copied.
func (f *File) own() bool {
	footer, err := emptyFooter()
	if err != nil || f.meta.CreatedBy != footer.CreatedBy || f.checkSchema() != nil {
		return false
	}
	for i := range f.meta.RowGroups {
		for j := range f.meta.RowGroups[i].Columns {
			l, meta := &f.leaves[j], &f.meta.RowGroups[i].Columns[j].MetaData
			if meta.Codec != format.Zstd || l.maxDef != columns[l.column].maxDef() {
				return false
			}
			if foreign, err := checkPages(f.object, meta, l); foreign || err != nil {
				return false // which is found again where rows are read
			}
		}
	}
	return true
}

// groupRows appends the rows of a row group.
func (w *DataWriter) groupRows(f *File, i int) error {
	wanted := make([]bool, len(columns))
	for j := range wanted {
		wanted[j] = true
	}
	batch := make([]chain.Row, min(batchRows, f.meta.RowGroups[i].NumRows))
	one, failed := make([]*chain.Row, 1), error(nil)
	_, err := f.scanGroup(i, wanted, batch, func(r *chain.Row, _ error) bool {
		one[0] = r
		failed = w.Rows(one)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

// copyGroup appends the chunks of a row group to those of the open one.
func (w *DataWriter) copyGroup(f *File, i int) error {
	g := &f.meta.RowGroups[i]
	body := pageBody{codec: &w.codec}
	for j := range g.Columns {
		c := chunkCopy{w: w.chunks[f.leaves[j].column], leaf: &f.leaves[j], meta: &g.Columns[j].MetaData, body: &body}
		if err := c.run(f.object, g.NumRows); err != nil {
			return fmt.Errorf("column %s: %w", f.leaves[j].path, err)
		}
	}
	w.weight += g.TotalByteSize
	return w.added(g.NumRows)
}

// A chunkCopy appends one chunk to another.
type chunkCopy struct {
	w    *chunkWriter
	leaf *leaf
	meta *format.ColumnMetaData
	body *pageBody

	dict   [][]byte // of the chunk that is read
	places []int32  // of its values in the dictionary of the other, or -1
	nulls  int64    // of pages that were read
	unread bool     // there are pages that were not
}

func (c *chunkCopy) run(object []byte, rows int64) error {
	before := c.w.rows
	for p := walk(object, c.meta); p.more(); {
		h, stored, err := p.next()
		if err != nil {
			return err
		}
		if h.kind == format.DictionaryPage {
			err = c.learn(&h, stored)
		} else {
			err = c.page(&h, stored)
		}
		if err != nil {
			return err
		}
	}
	if got := c.w.rows - before; got != rows {
		return fmt.Errorf("%d rows, want %d", got, rows)
	}
	if c.unread {
		c.w.nulls += c.meta.Statistics.NullCount - c.nulls
	}
	return nil
}

// learn reads the dictionary.
func (c *chunkCopy) learn(h *pageHeader, stored []byte) error {
	if err := c.body.inflate(h, stored, c.meta.Codec); err != nil {
		return err
	}
	rest := append([]byte(nil), c.body.b...)
	for range h.values {
		v, after, err := nextBytes(rest)
		if err != nil {
			return err
		}
		c.dict, c.places, rest = append(c.dict, v), append(c.places, -1), after
	}
	return nil
}

// page appends a data page: as it is, or its values.
func (c *chunkCopy) page(h *pageHeader, stored []byte) error {
	w := c.w
	joins := w.column.dict || w.column.kind == kindList || int(h.size) < joinBelow || w.open.rows > 0 && len(w.open.values) < joinBelow
	looks := joins || w.bloom != nil || !w.column.unbounded()
	if !joins {
		if err := w.endPage(); err != nil {
			return err
		}
	}
	if !looks {
		c.unread = true
		return w.copyPage(h, stored, pageBounds{})
	}
	if err := c.body.data(h, stored, c.meta.Codec, c.leaf); err != nil {
		return err
	}
	c.nulls += int64(c.body.n - c.body.present)
	if joins {
		return c.join()
	}
	limits, err := c.look()
	if err != nil {
		return err
	}
	return w.copyPage(h, stored, pageBounds{limits: limits, nulls: int64(c.body.n - c.body.present)})
}

// copyPage appends a page as it is stored.
func (w *chunkWriter) copyPage(h *pageHeader, stored []byte, b pageBounds) error {
	if h.encoding != format.Plain || h.values == 0 {
		return errors.New("page is not plain")
	}
	w.store(h, stored, w.rows)
	w.plainPages = true
	w.bounds = append(w.bounds, b)
	w.nulls += b.nulls
	w.count += int64(h.values)
	w.rows += int64(h.values)
	w.open.reset(w.rows)
	return nil
}

// look reads the values of a page for its bounds and for the bloom filter.
func (c *chunkCopy) look() (l limits, err error) {
	for rest, i := c.body.values, 0; i < c.body.present; i++ {
		var v []byte
		if v, rest, err = c.next(rest); err != nil {
			return l, err
		}
		if c.w.bloom != nil {
			c.w.bloom.add(v)
		}
		if !c.w.column.unbounded() {
			c.w.column.widen(&l, v)
		}
	}
	return l, nil
}

// next returns the plain value that b begins with.
func (c *chunkCopy) next(b []byte) (v, rest []byte, err error) {
	size := c.w.column.kind.size()
	if size == 0 {
		return nextBytes(b)
	}
	if len(b) < size {
		return nil, nil, errors.New("value ends early")
	}
	return b[:size], b[size:], nil
}

// widen widens limits by a plain value.
func (c *column) widen(l *limits, v []byte) {
	switch c.kind {
	case kindInt32:
		l.number(int64(int32(binary.LittleEndian.Uint32(v))))
	case kindInt64, kindTime:
		l.number(int64(binary.LittleEndian.Uint64(v)))
	default:
		l.text(v)
	}
}

// join adds the values of a page to the open one.
func (c *chunkCopy) join() error {
	rest := c.body.values
	for i, at := 0, 0; i < c.body.n; i++ {
		if c.body.defs != nil && c.body.defs[i] != c.leaf.maxDef {
			c.rep(i)
			c.w.null(c.body.defs[i])
		} else {
			v, after, err := c.value(rest, at)
			if err != nil {
				return err
			}
			c.rep(i)
			c.add(v, at)
			rest, at = after, at+1
		}
		if c.body.reps != nil && i+1 < c.body.n && c.body.reps[i+1] != 0 {
			continue // of the same row
		}
		if err := c.w.endRow(); err != nil {
			return err
		}
	}
	return nil
}

func (c *chunkCopy) rep(i int) {
	if c.body.reps != nil {
		c.w.open.reps = append(c.w.open.reps, c.body.reps[i])
	}
}

// value returns value at of the page, which rest begins with if it is plain.
func (c *chunkCopy) value(rest []byte, at int) (v, after []byte, err error) {
	if !c.body.indexed {
		return c.next(rest)
	}
	i := c.body.index[at]
	if i < 0 || int(i) >= len(c.dict) {
		return nil, nil, fmt.Errorf("value %d of a dictionary of %d", i, len(c.dict))
	}
	return c.dict[i], nil, nil
}

// add adds a value, of which the place in the dictionary may be known.
func (c *chunkCopy) add(v []byte, at int) {
	w := c.w
	switch {
	case w.column.kind == kindHash:
		w.hash(v)
	case w.column.num != nil:
		w.fixed(v)
	case c.body.indexed && w.column.dict && !w.dict.full() && len(w.open.values) == 0:
		i := c.body.index[at]
		if c.places[i] < 0 {
			c.places[i] = w.dict.place(v)
		}
		w.present()
		w.indexed(c.places[i], v)
	default:
		w.bytesValue(v)
	}
}

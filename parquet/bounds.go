package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// CheckBounds checks that no statistic makes an engine skip a row that is
// there, and returns the first fault, which matches [ErrMalformed]: bounds in
// the footer and in column indexes hold every value of their chunk or page,
// null counts and null pages are right, bloom filters have every value, and
// pages of lists begin with the rows that the offset index says.
// Bounds may be wider than the values. An absent null count cannot be told from
// 0; it is let pass where a chunk has no bounds either.
//
// It decodes every page of the columns that have any of these. The object is
// one that [CheckLayout] has passed.
func CheckBounds(object []byte) (err error) {
	defer boundary(&err)
	f, err := pq.OpenFile(bytes.NewReader(object), int64(len(object)))
	if err != nil {
		return err
	}
	groups := f.Metadata().RowGroups
	for i, g := range f.RowGroups() {
		for j, chunk := range g.ColumnChunks() {
			meta := &groups[i].Columns[j]
			c := boundsCheck{chunk: chunk, meta: &meta.MetaData, stats: &meta.MetaData.Statistics, indexed: meta.ColumnIndexLength > 0, placed: meta.OffsetIndexLength > 0}
			if err := c.check(); err != nil {
				return fmt.Errorf("row group %d: column %s: %w", i, meta.MetaData.PathInSchema[0], err)
			}
		}
	}
	return nil
}

// A boundsCheck holds what is said of one chunk against its pages.
type boundsCheck struct {
	chunk   pq.ColumnChunk
	meta    *format.ColumnMetaData
	stats   *format.Statistics
	indexed bool
	index   pq.ColumnIndex
	nulls   int64
	placed  bool           // there is an offset index
	places  pq.OffsetIndex // of a list in several pages: which rows they have takes decoding
	rows    int64
}

func (c *boundsCheck) check() (err error) {
	bloom := c.chunk.BloomFilter()
	if err := c.place(); err != nil {
		return err
	}
	if !c.bounded() && !c.indexed && bloom == nil && c.stats.NullCount == 0 && c.places == nil {
		return nil
	}
	if c.indexed {
		if c.index, err = c.chunk.ColumnIndex(); err != nil {
			return err
		}
	}
	pages := c.chunk.Pages()
	defer pages.Close()
	n := 0
	for ; ; n++ {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		err = c.page(n, page, bloom)
		pq.Release(page)
		if err != nil {
			return fmt.Errorf("page %d: %w", n, err)
		}
	}
	if c.index != nil && c.index.NumPages() != n {
		return fmt.Errorf("the column index has %d pages of %d", c.index.NumPages(), n)
	}
	return c.nullCount()
}

// place opens the offset index of a list in several pages.
func (c *boundsCheck) place() error {
	if !c.placed || !c.list() {
		return nil
	}
	places, err := c.chunk.OffsetIndex()
	if err == nil && places.NumPages() > 1 {
		c.places = places
	}
	return err
}

// bounded reports whether the footer has a bound of the chunk.
func (c *boundsCheck) bounded() bool {
	s := c.stats
	return s.MinValue != nil || s.MaxValue != nil || s.Min != nil || s.Max != nil
}

func (c *boundsCheck) page(n int, page pq.Page, bloom pq.BloomFilter) error {
	c.nulls += page.NumNulls()
	if c.places != nil && (n >= c.places.NumPages() || c.places.FirstRowIndex(n) != c.rows) {
		return fmt.Errorf("it begins with row %d, the offset index says another", c.rows)
	}
	c.rows += page.NumRows()
	low, high, ok := page.Bounds()
	kind := c.chunk.Type().Kind()
	for _, bound := range [][]byte{c.stats.MinValue, c.stats.Min} {
		if ok && bound != nil && c.chunk.Type().Compare(kind.Value(bound), low) > 0 {
			return errors.New("a value lies below the minimum in the footer")
		}
	}
	for _, bound := range [][]byte{c.stats.MaxValue, c.stats.Max} {
		if ok && bound != nil && c.chunk.Type().Compare(kind.Value(bound), high) < 0 {
			return errors.New("a value lies above the maximum in the footer")
		}
	}
	if c.index != nil {
		if err := c.indexEntry(n, page.NumNulls(), low, high, ok); err != nil {
			return err
		}
	}
	return inFilter(bloom, page)
}

// indexEntry holds a page against what the column index says of it. ok is
// whether the page has a value.
func (c *boundsCheck) indexEntry(n int, nulls int64, low, high pq.Value, ok bool) error {
	compare := c.chunk.Type().Compare
	switch {
	case n >= c.index.NumPages():
		return errors.New("the column index does not have it")
	case c.index.NullPage(n) && ok:
		return errors.New("the column index says that it has nulls alone")
	case c.index.NullCount(n) != 0 && c.index.NullCount(n) != nulls && !c.list():
		return fmt.Errorf("%d nulls, the column index says %d", nulls, c.index.NullCount(n))
	case !ok:
		return nil
	case compare(c.index.MinValue(n), low) > 0:
		return errors.New("a value lies below the minimum in the column index")
	case compare(c.index.MaxValue(n), high) < 0:
		return errors.New("a value lies above the maximum in the column index")
	}
	return nil
}

// list reports whether the chunk is of a list, of which writers count nulls in
// several ways.
func (c *boundsCheck) list() bool { return len(c.meta.PathInSchema) > 1 }

func (c *boundsCheck) nullCount() error {
	said := c.stats.NullCount
	if c.list() || said == c.nulls || said == 0 && !c.bounded() {
		return nil
	}
	return fmt.Errorf("%d nulls, the footer says %d", c.nulls, said)
}

// inFilter requires that a bloom filter has every value of a page.
func inFilter(bloom pq.BloomFilter, page pq.Page) error {
	if bloom == nil {
		return nil
	}
	values := make([]pq.Value, page.NumValues())
	n, err := page.Values().ReadValues(values)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, v := range values[:n] {
		if v.IsNull() {
			continue
		}
		if in, err := bloom.Check(v); err != nil || !in {
			return fmt.Errorf("a value is not in the bloom filter (%v)", err)
		}
	}
	return nil
}

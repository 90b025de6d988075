package parquet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// CheckLayout checks that an object is laid out as docs/format.md wants it, and
// returns the first fault, which matches [ErrMalformed]:
//
//   - magic, column chunks, page indexes, bloom filters and footer lie one after
//     another, without a hole, an overlap or a byte after the end, and pages fill
//     their chunk;
//   - the columns are those of the format, all of them, each of its type; and
//     there is no key-value but "ledgerlake" and "ARROW:schema", once each;
//   - sealed columns have no bounds, in footer, page header or column index, no
//     distinct count and no dictionary. How many nulls or bytes there are may
//     stand anywhere: that tells no value;
//   - text is PLAIN or in a dictionary, data pages are of version 1 and zstd or
//     not compressed, and bloom filters are on text alone, and not on slots,
//     residual and redaction;
//   - offset indexes list exactly the data pages that are there.
//
// It decodes no page, and allocates no more than some multiple of the footer's
// bytes.
func CheckLayout(object []byte) (err error) {
	defer boundary(&err)
	f, err := Open(object)
	if err != nil {
		return err
	}
	if err := f.checkSchema(); err != nil {
		return err
	}
	if err := checkKeys(f.meta.KeyValueMetadata); err != nil {
		return err
	}
	t := tiling{object: object}
	t.add("magic", 0, int64(len(magic)))
	for i := range f.meta.RowGroups {
		for j := range f.meta.RowGroups[i].Columns {
			c := chunkCheck{t: &t, leaf: &f.leaves[j], column: &columns[f.leaves[j].column], chunk: &f.meta.RowGroups[i].Columns[j]}
			if err := c.check(f.meta.RowGroups[i].NumRows); err != nil {
				return fmt.Errorf("row group %d: column %s: %w", i, c.column.name, err)
			}
		}
	}
	return t.check(f.end)
}

// checkSchema requires all columns of the format and no others.
func (f *File) checkSchema() error {
	seen := make([]bool, len(columns))
	for i := range f.leaves {
		l := &f.leaves[i]
		if l.column < 0 {
			return fmt.Errorf("the format has no column %s", l.path)
		}
		if err := l.check(&columns[l.column]); err != nil {
			return fmt.Errorf("column %s: %w", l.path, err)
		}
		seen[l.column] = true
	}
	if i := slices.Index(seen, false); i >= 0 {
		return fmt.Errorf("no column %s", columns[i].name)
	}
	return nil
}

// check holds a leaf against the column that it is.
func (l *leaf) check(c *column) error {
	want := format.Optional
	if c.required {
		want = format.Required
	}
	if c.kind == kindList {
		return l.checkList()
	}
	if l.node.RepetitionType.V != want {
		return fmt.Errorf("%v, want %v", l.node.RepetitionType.V, want)
	}
	return checkLogical(&l.node, c.kind)
}

// checkList wants the three levels of a list.
func (l *leaf) checkList() error {
	group, list := l.around[0], l.around[1]
	_, named := group.LogicalType.Value.(*format.ListType)
	switch {
	case group.RepetitionType.V != format.Optional || list.RepetitionType.V != format.Repeated || l.node.RepetitionType.V == format.Repeated:
		return fmt.Errorf("levels %v, %v, %v", group.RepetitionType.V, list.RepetitionType.V, l.node.RepetitionType.V)
	case !named || list.LogicalType.Value != nil:
		return errors.New("not a list")
	}
	return checkLogical(&l.node, kindText)
}

// checkLogical wants the logical type of a kind, and a converted type that says
// the same, if any. An integer may say that it is one.
func checkLogical(e *format.SchemaElement, k kind) error {
	ok := false
	switch t := e.LogicalType.Value.(type) {
	case nil:
		ok = k == kindBinary || k == kindHash || k == kindInt32 || k == kindInt64
	case *format.StringType:
		ok = k == kindText
	case *format.TimestampType:
		_, micros := t.Unit.Value.(*format.MicroSeconds)
		ok = k == kindTime && t.IsAdjustedToUTC && micros
	case *format.IntType:
		ok = t.IsSigned && (k == kindInt32 && t.BitWidth == 32 || k == kindInt64 && t.BitWidth == 64)
	}
	if !ok {
		return fmt.Errorf("logical type %q", e.LogicalType.String())
	}
	if e.ConvertedType.Valid && !slices.Contains(convertedTypes[k], e.ConvertedType.V) {
		return fmt.Errorf("converted type %d", e.ConvertedType.V)
	}
	return nil
}

// convertedTypes are the older names of logical types.
var convertedTypes = map[kind][]deprecated.ConvertedType{
	kindText:  {deprecated.UTF8},
	kindTime:  {deprecated.TimestampMicros},
	kindInt32: {deprecated.Int32},
	kindInt64: {deprecated.Int64},
}

func checkKeys(all []format.KeyValue) error {
	seen := map[string]bool{}
	for _, kv := range all {
		if kv.Key != metadataKey && kv.Key != arrowSchemaKey || seen[kv.Key] {
			return fmt.Errorf("key-value %q", kv.Key)
		}
		seen[kv.Key] = true
	}
	return nil
}

// A tiling collects the parts of an object, which must fill it.
type tiling struct {
	object []byte
	parts  []tile
}

type tile struct {
	name     string
	at, size int64
}

func (t *tiling) add(name string, at, size int64) {
	t.parts = append(t.parts, tile{name: name, at: at, size: size})
}

// bytes returns size bytes at a place, or nil where these do not lie inside.
func (t *tiling) bytes(at, size int64) []byte {
	if at < 0 || size < 0 || at > int64(len(t.object)) || size > int64(len(t.object))-at {
		return nil
	}
	return t.object[at:][:size]
}

// check requires that the parts fill the object up to end, where the footer
// begins. What is behind that was checked when it was opened.
func (t *tiling) check(end int64) error {
	slices.SortFunc(t.parts, func(a, b tile) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.size, b.size))
	})
	at := int64(0)
	for _, p := range t.parts {
		if p.at != at {
			return fmt.Errorf("%s at %d, where %d was to follow", p.name, p.at, at)
		}
		at += p.size
	}
	if at != end {
		return fmt.Errorf("parts end at %d, and the footer begins at %d", at, end)
	}
	return nil
}

// A chunkCheck checks one chunk and what belongs to it.
type chunkCheck struct {
	t      *tiling
	leaf   *leaf
	column *column
	chunk  *format.ColumnChunk
	pages  []format.PageLocation // of data; first rows only where each row has one value
}

func (c *chunkCheck) check(rows int64) error {
	meta := &c.chunk.MetaData
	s := &meta.Statistics
	switch {
	case len(meta.KeyValueMetadata) > 0:
		return errors.New("key-values of its own")
	case c.column.sealed && (s.Min != nil || s.Max != nil || s.MinValue != nil || s.MaxValue != nil || s.DistinctCount != 0):
		return errors.New("statistics of a sealed column in the footer")
	}
	c.t.add("chunk of "+c.column.name, chunkStart(meta), meta.TotalCompressedSize)
	for _, check := range []func() error{c.checkPages, c.checkColumnIndex, func() error { return c.checkOffsetIndex(rows) }, c.checkBloom} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkPages goes through the chunk's pages, which must fill it.
func (c *chunkCheck) checkPages() error {
	w := walk(c.t.object, &c.chunk.MetaData)
	row := int64(0)
	for first := true; w.more(); first = false {
		at := w.at
		h, _, err := w.next()
		if err != nil {
			return err
		}
		if err := c.checkPage(&h, first); err != nil {
			return fmt.Errorf("page at %d: %w", at, err)
		}
		if h.kind == format.DataPage {
			c.pages = append(c.pages, format.PageLocation{Offset: at, CompressedPageSize: int32(w.at - at), FirstRowIndex: row})
			row += int64(h.values)
		}
	}
	if w.unknown > 0 {
		return errors.New("page header with an unknown field")
	}
	_, err := checkPages(c.t.object, &c.chunk.MetaData, c.leaf)
	return err
}

// plainDictionary is what older writers call RLE_DICTIONARY.
const plainDictionary format.Encoding = 2

func (c *chunkCheck) checkPage(h *pageHeader, first bool) error {
	dict := h.encoding == format.RLEDictionary || h.encoding == plainDictionary
	text := c.column.kind == kindText || c.column.kind == kindList || c.column.kind == kindBinary
	switch {
	case h.kind == format.DictionaryPage && c.column.sealed:
		return errors.New("dictionary of a sealed column")
	case h.kind == format.DictionaryPage && !first:
		return errors.New("dictionary that is not the first page")
	case c.column.sealed && (h.stats.bounds || h.stats.distinct):
		return errors.New("statistics of a sealed column in a page header")
	case text && !dict && h.encoding != format.Plain:
		return fmt.Errorf("text in encoding %v", h.encoding)
	}
	return nil
}

func (c *chunkCheck) checkColumnIndex() error {
	at, size := c.chunk.ColumnIndexOffset, int64(c.chunk.ColumnIndexLength)
	if at == 0 && size == 0 {
		return nil
	}
	c.t.add("column index of "+c.column.name, at, size)
	r := thriftReader{b: c.t.bytes(at, size)}
	x := columnIndex{}
	x.read(&r)
	switch {
	case r.whole() != nil:
		return fmt.Errorf("column index: %w", r.whole())
	case x.pages != len(c.pages):
		return fmt.Errorf("column index of %d pages, there are %d", x.pages, len(c.pages))
	case c.column.sealed && x.bounds > 0:
		return errors.New("bounds of a sealed column in the column index")
	}
	return nil
}

// checkOffsetIndex wants the data pages, each with the row that it begins with.
func (c *chunkCheck) checkOffsetIndex(rows int64) error {
	at, size := c.chunk.OffsetIndexOffset, int64(c.chunk.OffsetIndexLength)
	if at == 0 && size == 0 {
		return nil
	}
	c.t.add("offset index of "+c.column.name, at, size)
	r := thriftReader{b: c.t.bytes(at, size)}
	x := offsetIndex{}
	x.read(&r)
	if err := r.whole(); err != nil {
		return fmt.Errorf("offset index: %w", err)
	}
	if len(x.places) != len(c.pages) {
		return fmt.Errorf("offset index of %d pages, there are %d", len(x.places), len(c.pages))
	}
	last := int64(-1)
	for i, p := range x.places {
		want := c.pages[i]
		if c.column.kind == kindList && i > 0 {
			want.FirstRowIndex = p.FirstRowIndex // CheckBounds counts the rows
		}
		if p != want || p.FirstRowIndex <= last || p.FirstRowIndex > max(0, rows-1) {
			return fmt.Errorf("offset index has page %d at %d, from row %d", i, p.Offset, p.FirstRowIndex)
		}
		last = p.FirstRowIndex
	}
	return nil
}

func (c *chunkCheck) checkBloom() error {
	meta := &c.chunk.MetaData
	if meta.BloomFilterOffset == 0 && meta.BloomFilterLength == 0 {
		return nil
	}
	if !c.column.bloom {
		return errors.New("bloom filter")
	}
	rest := c.t.bytes(meta.BloomFilterOffset, int64(len(c.t.object))-meta.BloomFilterOffset)
	size, err := bloomSize(rest)
	if err != nil {
		return fmt.Errorf("bloom filter: %w", err)
	}
	if meta.BloomFilterLength != 0 && int64(meta.BloomFilterLength) != size {
		return fmt.Errorf("bloom filter of %d bytes, %d in the footer", size, meta.BloomFilterLength)
	}
	c.t.add("bloom filter of "+c.column.name, meta.BloomFilterOffset, size)
	return nil
}

// A columnIndex is what an object says of the values of a chunk's pages. What it
// lists for each page is as long as the file says, which may be wrong.
type columnIndex struct {
	pages     int
	bounds    int    // how many are not empty
	nullPages []bool // without a value
	low, high [][]byte
	nulls     []int64
}

func (x *columnIndex) read(r *thriftReader) {
	for t := (thriftField{}); r.next(&t); {
		switch t.id {
		case 1:
			x.pages = r.list(t, thriftTrue)
			for range x.pages {
				x.nullPages = append(x.nullPages, r.byte() == thriftTrue)
			}
		case 2:
			x.low = x.readBounds(r, t)
		case 3:
			x.high = x.readBounds(r, t)
		case 5:
			for n := r.list(t, thriftI64); n > 0 && r.err == nil; n-- {
				x.nulls = append(x.nulls, r.varint(math.MinInt64, math.MaxInt64))
			}
		case 4, 6, 7: // order; values by level
			r.skip(t.typ, false, maxThriftDepth)
		default:
			r.stranger(t)
		}
	}
}

func (x *columnIndex) readBounds(r *thriftReader, t thriftField) (all [][]byte) {
	for n := r.list(t, thriftBinary); n > 0 && r.err == nil; n-- {
		b := r.bytes()
		if len(b) > 0 {
			x.bounds++
		}
		all = append(all, b)
	}
	return all
}

// An offsetIndex lists the data pages of a chunk.
type offsetIndex struct{ places []format.PageLocation }

func (x *offsetIndex) read(r *thriftReader) {
	for t := (thriftField{}); r.next(&t); {
		switch t.id {
		case 1:
			for n := r.list(t, thriftStruct); n > 0 && r.err == nil; n-- {
				x.places = append(x.places, readPlace(r))
			}
		case 2: // sizes of the values
			r.skip(t.typ, false, maxThriftDepth)
		default:
			r.stranger(t)
		}
	}
}

func readPlace(r *thriftReader) (p format.PageLocation) {
	for t := (thriftField{}); r.next(&t); {
		switch t.id {
		case 1:
			p.Offset = r.i64(t)
		case 2:
			p.CompressedPageSize = r.i32(t)
		case 3:
			p.FirstRowIndex = r.i64(t)
		default:
			r.stranger(t)
		}
	}
	return p
}

// bloomSize reads the header of a bloom filter and returns the size of header
// and filter.
func bloomSize(b []byte) (int64, error) {
	r := thriftReader{b: b}
	bits := int32(0)
	for t := (thriftField{}); r.next(&t); {
		switch t.id {
		case 1:
			bits = r.i32(t)
		case 2, 3, 4: // algorithm, hash, compression
			r.skip(t.typ, false, maxThriftDepth)
		default:
			r.stranger(t)
		}
	}
	if bits < 0 || int(bits) > len(b)-r.at {
		r.fail("filter of %d bytes in %d", bits, len(b)-r.at)
	}
	if r.unknown > 0 {
		r.fail("unknown field")
	}
	return int64(r.at) + int64(bits), r.err
}

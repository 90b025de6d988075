package parquet

import (
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// A Footer is what the end of an object says of the rest, to a reader that does
// not have the rest. Nothing vouches for it but the object's hash.
type Footer struct {
	meta *format.FileMetaData
	end  int64 // where the footer begins
}

// A Span is a stretch of an object, in bytes.
type Span struct{ Offset, Size int64 }

// ParseFooter reads the footer of an object of size bytes from its last bytes:
// 256 KiB are nearly always enough. If tail is too short the error is a
// [*ShortTailError], else it matches [ErrMalformed].
func ParseFooter(tail []byte, size int64) (f *Footer, err error) {
	defer boundary(&err)
	raw, err := splitFooter(tail, size)
	if err != nil {
		return nil, err
	}
	meta, err := readFooter(raw)
	if err != nil {
		return nil, err
	}
	return &Footer{meta: meta, end: size - int64(len(raw)) - trailerSize}, nil
}

// NumRows returns how many rows the footer says that there are.
func (f *Footer) NumRows() int64 { return f.meta.NumRows }

// Blooms returns where the bloom filters of a column are, one for each row group
// that has a value in it; [DataWriter] puts them side by side. What [BloomHas]
// finds in none of them is not in the column.
//
// ok is false where that cannot be said: some row group has values and no filter.
// The error matches [ErrMalformed]: a filter lies outside the object.
func (f *Footer) Blooms(column string) (spans []Span, ok bool, err error) {
	for i := range f.meta.RowGroups {
		m := chunkOf(&f.meta.RowGroups[i], column)
		switch {
		case m == nil:
			return nil, false, nil
		case m.BloomFilterLength == 0 && m.Statistics.NullCount == m.NumValues:
			continue
		case m.BloomFilterLength == 0:
			return nil, false, nil
		}
		s := Span{Offset: m.BloomFilterOffset, Size: int64(m.BloomFilterLength)}
		if s.Offset < int64(len(magic)) || s.Size < 0 || s.Offset > f.end-s.Size {
			return nil, false, fmt.Errorf("%w: row group %d: column %s: bloom filter of %d bytes at %d", ErrMalformed, i, column, s.Size, s.Offset)
		}
		spans = append(spans, s)
	}
	return spans, true, nil
}

// chunkOf returns the chunk of a column that is no list, or nil.
func chunkOf(g *format.RowGroup, column string) *format.ColumnMetaData {
	for i := range g.Columns {
		if m := &g.Columns[i].MetaData; len(m.PathInSchema) == 1 && m.PathInSchema[0] == column {
			return m
		}
	}
	return nil
}

package parquet

import (
	"bytes"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// readOwn decodes a footer as this package writes it, which reflection takes a
// fifth of a small segment's verification for. It knows the fields that stand in
// one, the schema and what parquet-go says of the order of values; ok is false
// where there is anything else, or anything is wrong: who reads such a footer
// decodes it by reflection. What it returns shares no memory with b.
func readOwn(b []byte) (_ *format.FileMetaData, ok bool) {
	frame, err := frameOnce()
	if err != nil || !bytes.HasPrefix(b, frame.front) {
		return nil, false
	}
	r := ownReader{thriftReader: thriftReader{b: bytes.Clone(b), at: len(frame.front)}, ok: true}
	meta := &format.FileMetaData{Version: frame.meta.Version, Schema: frame.meta.Schema}
	seen := fields(0)
	for f := (thriftField{id: 2}); f.id < 6 && r.more(&f, &seen, needsFooter); {
		switch f.id {
		case 3:
			meta.NumRows = r.i64(f)
		case 4:
			meta.RowGroups = make([]format.RowGroup, r.upTo(r.elements(f, thriftStruct), len(b)/leastGroup))
			for i := range meta.RowGroups {
				r.rowGroup(&meta.RowGroups[i])
			}
		case 5:
			meta.KeyValueMetadata = make([]format.KeyValue, r.upTo(r.some(f, thriftStruct), 8))
			for i := range meta.KeyValueMetadata {
				r.keyValue(&meta.KeyValueMetadata[i])
			}
		case 6:
			r.want(f, thriftBinary)
			meta.CreatedBy, meta.ColumnOrders = string(r.bytes()), frame.meta.ColumnOrders
		default:
			r.ok = false
		}
	}
	return meta, r.ok && r.err == nil && seen&needsFooter == needsFooter && bytes.Equal(r.b[r.at:], frame.back)
}

// An ownReader reads a footer, until it meets what it does not know.
type ownReader struct {
	thriftReader
	ok bool
}

// fields are ids of a struct's fields, as bits.
type fields uint32

func has(ids ...int) (all fields) {
	for _, id := range ids {
		all |= 1 << id
	}
	return all
}

// What must be there.
var (
	needsFooter = has(3, 4, 6)
	needsPair   = has(1)
	needsGroup  = has(1, 2, 3)
	needsChunk  = has(2, 3)
	needsMeta   = has(1, 2, 3, 4, 5, 6, 7, 9)
)

// more goes to the next field of a struct, and notes that it was there. At the end
// of the struct it requires those that must be.
func (r *ownReader) more(f *thriftField, seen *fields, needs fields) bool {
	if !r.ok {
		return false
	}
	if r.next(f) {
		*seen |= 1 << min(f.id, 31)
		return true
	}
	r.ok = *seen&needs == needs
	return false
}

// leastGroup is less than what a row group takes in a footer: a byte for each of
// eleven fields of each column, and its name.
const leastGroup = 1000

// upTo returns n, which must be no more than most: memory is taken for so many.
func (r *ownReader) upTo(n, most int) int {
	r.ok = r.ok && n <= most
	return min(n, most)
}

// elements reads the header of a list of exactly this type.
func (r *ownReader) elements(f thriftField, elem byte) int {
	r.ok = r.ok && r.at < len(r.b) && r.b[r.at]&0xF == elem
	return r.list(f, elem)
}

// some reads the header of a list that is not empty.
func (r *ownReader) some(f thriftField, elem byte) int {
	n := r.elements(f, elem)
	r.ok = r.ok && n > 0
	return n
}

func (r *ownReader) keyValue(kv *format.KeyValue) {
	seen := fields(0)
	for f := (thriftField{}); r.more(&f, &seen, needsPair); {
		r.want(f, thriftBinary)
		switch f.id {
		case 1:
			kv.Key = string(r.bytes())
		case 2:
			kv.Value = string(r.bytes())
		default:
			r.ok = false
		}
	}
}

func (r *ownReader) rowGroup(g *format.RowGroup) {
	seen := fields(0)
	for f := (thriftField{}); r.more(&f, &seen, needsGroup); {
		switch f.id {
		case 1:
			if r.ok = r.ok && r.some(f, thriftStruct) == len(columns); !r.ok {
				return
			}
			g.Columns = make([]format.ColumnChunk, len(columns))
			for i := 0; i < len(g.Columns) && r.ok; i++ {
				r.chunk(&g.Columns[i], i)
			}
		case 2:
			g.TotalByteSize = r.i64(f)
		case 3:
			g.NumRows = r.i64(f)
		case 5:
			g.FileOffset = r.i64(f)
		case 6:
			g.TotalCompressedSize = r.i64(f)
		case 7:
			r.want(f, thriftI16)
			g.Ordinal = int16(r.varint(math.MinInt16, math.MaxInt16))
		default:
			r.ok = false
		}
	}
}

func (r *ownReader) chunk(c *format.ColumnChunk, column int) {
	seen := fields(0)
	for f := (thriftField{}); r.more(&f, &seen, needsChunk); {
		switch f.id {
		case 2:
			c.FileOffset = r.i64(f)
		case 3:
			r.want(f, thriftStruct)
			r.chunkMeta(&c.MetaData, column)
		case 4:
			c.OffsetIndexOffset = r.i64(f)
		case 5:
			c.OffsetIndexLength = r.i32(f)
		case 6:
			c.ColumnIndexOffset = r.i64(f)
		case 7:
			c.ColumnIndexLength = r.i32(f)
		default:
			r.ok = false
		}
	}
}

func (r *ownReader) chunkMeta(m *format.ColumnMetaData, column int) {
	seen := fields(0)
	for f := (thriftField{}); r.more(&f, &seen, needsMeta); {
		switch f.id {
		case 1:
			m.Type = format.Type(r.i32(f))
		case 2:
			m.Encoding = r.encodings(f)
		case 3:
			m.PathInSchema = r.path(f, column)
		case 4:
			m.Codec = format.CompressionCodec(r.i32(f))
		case 5:
			m.NumValues = r.i64(f)
		case 6:
			m.TotalUncompressedSize = r.i64(f)
		case 7:
			m.TotalCompressedSize = r.i64(f)
		case 9:
			m.DataPageOffset = r.i64(f)
		case 11:
			m.DictionaryPageOffset = r.i64(f)
		case 12:
			r.want(f, thriftStruct)
			r.statistics(&m.Statistics)
		case 14:
			m.BloomFilterOffset = r.i64(f)
		case 15:
			m.BloomFilterLength = r.i32(f)
		default:
			r.ok = false
		}
	}
}

// encodings reads a list that most chunks have one of two of.
func (r *ownReader) encodings(f thriftField) []format.Encoding {
	var read [4]format.Encoding
	n := r.some(f, thriftI32)
	if r.ok = r.ok && n <= len(read); !r.ok {
		return nil
	}
	for i := range n {
		read[i] = format.Encoding(r.varint(math.MinInt32, math.MaxInt32))
	}
	for _, known := range [][]format.Encoding{plainEncodings, dictEncodings} {
		if slices.Equal(read[:n], known) {
			return known
		}
	}
	return slices.Clone(read[:n])
}

// path reads the path of a column, which it must be.
func (r *ownReader) path(f thriftField, column int) []string {
	path := paths[column]
	if r.ok = r.ok && r.some(f, thriftBinary) == len(path); !r.ok {
		return nil
	}
	for _, name := range path {
		r.ok = string(r.bytes()) == name && r.ok
	}
	return path
}

// paths are those of all columns.
var paths = func() [][]string {
	all := make([][]string, len(columns))
	for i := range columns {
		all[i] = columns[i].path()
	}
	return all
}()

func (r *ownReader) statistics(s *format.Statistics) {
	seen := fields(0)
	for f := (thriftField{}); r.more(&f, &seen, 0); {
		switch f.id {
		case 3:
			s.NullCount = r.i64(f)
		case 5:
			r.want(f, thriftBinary)
			s.MaxValue = r.bytes()
		case 6:
			r.want(f, thriftBinary)
			s.MinValue = r.bytes()
		default:
			r.ok = false
		}
	}
}

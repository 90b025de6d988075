package parquet

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/parquet-go/parquet-go/format"
)

// A thriftWriter appends structs in Thrift's compact protocol, as thrift.Marshal
// does by reflection: a test holds the two against each other. Of a footer it
// writes the fields that objects of this package have.
type thriftWriter struct {
	b    []byte
	last int // id of the field before, in the struct that is open
}

func (w *thriftWriter) field(id int, typ byte) {
	if d := id - w.last; d > 0 && d < 16 {
		w.b = append(w.b, byte(d)<<4|typ)
	} else {
		w.b = binary.AppendVarint(append(w.b, typ), int64(id))
	}
	w.last = id
}

func (w *thriftWriter) i16(id int, n int16) {
	w.field(id, thriftI16)
	w.b = binary.AppendVarint(w.b, int64(n))
}

func (w *thriftWriter) i32(id int, n int32) {
	w.field(id, thriftI32)
	w.b = binary.AppendVarint(w.b, int64(n))
}

func (w *thriftWriter) i64(id int, n int64) {
	w.field(id, thriftI64)
	w.b = binary.AppendVarint(w.b, n)
}

// some is i64 for a field that is left out where it is 0.
func (w *thriftWriter) some(id int, n int64) {
	if n != 0 {
		w.i64(id, n)
	}
}

// some32 is i32 for a field that is left out where it is 0.
func (w *thriftWriter) some32(id int, n int32) {
	if n != 0 {
		w.i32(id, n)
	}
}

// bytes appends the value of a field or an element of a list.
func (w *thriftWriter) bytes(v []byte) {
	w.b = append(binary.AppendUvarint(w.b, uint64(len(v))), v...)
}

func (w *thriftWriter) text(v string) {
	w.b = append(binary.AppendUvarint(w.b, uint64(len(v))), v...)
}

func (w *thriftWriter) list(id int, elem byte, n int) {
	w.field(id, thriftList)
	if n < 15 {
		w.b = append(w.b, byte(n)<<4|elem)
	} else {
		w.b = binary.AppendUvarint(append(w.b, 15<<4|elem), uint64(n))
	}
}

// begin begins a struct, in a list or, after field, in a struct; end is given what
// it returns.
func (w *thriftWriter) begin() (outer int) {
	outer, w.last = w.last, 0
	return outer
}

func (w *thriftWriter) end(outer int) { w.b, w.last = append(w.b, thriftStop), outer }

// appendOffsetIndex appends the places of pages, moved by base.
func appendOffsetIndex(b []byte, places []format.PageLocation) []byte {
	w := thriftWriter{b: b}
	w.list(1, thriftStruct, len(places))
	for i := range places {
		outer := w.begin()
		w.i64(1, places[i].Offset)
		w.i32(2, places[i].CompressedPageSize)
		w.i64(3, places[i].FirstRowIndex)
		w.end(outer)
	}
	return append(w.b, thriftStop)
}

// appendColumnIndex appends a column index without histograms.
func appendColumnIndex(b []byte, x *format.ColumnIndex) []byte {
	w := thriftWriter{b: b}
	w.list(1, thriftFalse, len(x.NullPages)) // in lists, either stands for booleans
	for _, null := range x.NullPages {
		v := byte(0)
		if null {
			v = thriftTrue
		}
		w.b = append(w.b, v)
	}
	for i, all := range [][][]byte{x.MinValues, x.MaxValues} {
		w.list(2+i, thriftBinary, len(all))
		for _, v := range all {
			w.bytes(v)
		}
	}
	w.i32(4, int32(x.BoundaryOrder))
	w.list(5, thriftI64, len(x.NullCounts))
	for _, n := range x.NullCounts {
		w.b = binary.AppendVarint(w.b, n)
	}
	return append(w.b, thriftStop)
}

// A footerFrame is what all footers of this package have in common.
type footerFrame struct {
	meta  format.FileMetaData // of an object without rows
	front []byte              // version and schema
	back  []byte              // from the order of values on
}

var frameOnce = sync.OnceValues(func() (*footerFrame, error) {
	var object bytes.Buffer
	w := newWriter(&object)
	if err := w.Close(); err != nil {
		return nil, err
	}
	raw, err := splitFooter(object.Bytes(), int64(object.Len()))
	if err != nil {
		return nil, err
	}
	meta, err := reflectFooter(raw)
	if err != nil {
		return nil, err
	}
	// Fields stand in the order of their ids: 3 is the number of rows, 7 the order
	// of values.
	frame, r := &footerFrame{meta: *meta}, thriftReader{b: raw}
	for f := (thriftField{}); ; {
		at := r.at
		if !r.next(&f) {
			return frame, r.err
		}
		switch f.id {
		case 3:
			frame.front = raw[:at:at]
		case 7:
			frame.back = raw[at:]
		}
		r.skip(f.typ, false, maxThriftDepth)
	}
})

// appendFooter appends footer, length and magic.
func appendFooter(object []byte, meta *format.FileMetaData) ([]byte, error) {
	frame, err := frameOnce()
	if err != nil {
		return nil, err
	}
	at := len(object)
	w := thriftWriter{b: append(object, frame.front...), last: 2}
	w.i64(3, meta.NumRows)
	w.list(4, thriftStruct, len(meta.RowGroups))
	for i := range meta.RowGroups {
		w.rowGroup(&meta.RowGroups[i])
	}
	w.keyValues(meta.KeyValueMetadata)
	w.field(6, thriftBinary)
	w.text(meta.CreatedBy)
	w.list(7, thriftStruct, len(meta.ColumnOrders))
	for range meta.ColumnOrders {
		outer := w.begin()
		w.field(1, thriftStruct) // the order of the type
		w.end(w.begin())
		w.end(outer)
	}
	object = append(w.b, thriftStop)
	object = binary.LittleEndian.AppendUint32(object, uint32(len(object)-at))
	return append(object, magic...), nil
}

func (w *thriftWriter) keyValues(all []format.KeyValue) {
	if len(all) == 0 {
		return
	}
	w.list(5, thriftStruct, len(all))
	for i := range all {
		outer := w.begin()
		w.field(1, thriftBinary)
		w.text(all[i].Key)
		w.field(2, thriftBinary)
		w.text(all[i].Value)
		w.end(outer)
	}
}

func (w *thriftWriter) rowGroup(g *format.RowGroup) {
	outer := w.begin()
	w.list(1, thriftStruct, len(g.Columns))
	for i := range g.Columns {
		w.chunk(&g.Columns[i])
	}
	w.i64(2, g.TotalByteSize)
	w.i64(3, g.NumRows)
	w.some(5, g.FileOffset)
	w.some(6, g.TotalCompressedSize)
	w.i16(7, g.Ordinal)
	w.end(outer)
}

func (w *thriftWriter) chunk(c *format.ColumnChunk) {
	outer := w.begin()
	w.i64(2, c.FileOffset)
	w.field(3, thriftStruct)
	w.chunkMeta(&c.MetaData)
	w.some(4, c.OffsetIndexOffset)
	w.some32(5, c.OffsetIndexLength)
	w.some(6, c.ColumnIndexOffset)
	w.some32(7, c.ColumnIndexLength)
	w.end(outer)
}

func (w *thriftWriter) chunkMeta(m *format.ColumnMetaData) {
	outer := w.begin()
	w.i32(1, int32(m.Type))
	w.list(2, thriftI32, len(m.Encoding))
	for _, e := range m.Encoding {
		w.b = binary.AppendVarint(w.b, int64(e))
	}
	w.list(3, thriftBinary, len(m.PathInSchema))
	for _, name := range m.PathInSchema {
		w.text(name)
	}
	w.i32(4, int32(m.Codec))
	w.i64(5, m.NumValues)
	w.i64(6, m.TotalUncompressedSize)
	w.i64(7, m.TotalCompressedSize)
	w.i64(9, m.DataPageOffset)
	w.some(11, m.DictionaryPageOffset)
	w.field(12, thriftStruct)
	w.statistics(&m.Statistics)
	w.some(14, m.BloomFilterOffset)
	w.some32(15, m.BloomFilterLength)
	w.end(outer)
}

func (w *thriftWriter) statistics(s *format.Statistics) {
	outer := w.begin()
	w.i64(3, s.NullCount)
	if s.MaxValue != nil {
		w.field(5, thriftBinary)
		w.bytes(s.MaxValue)
	}
	if s.MinValue != nil {
		w.field(6, thriftBinary)
		w.bytes(s.MinValue)
	}
	w.end(outer)
}

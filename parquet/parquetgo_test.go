package parquet

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"unicode/utf8"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/chain"
)

// Segments were written by parquet-go until there was a writer of our own, and lie
// in archives: what reads objects must read them. Here they are still made.

// Sizes of the buffers of a goEncoder in bytes. A page ends at pageSize.
const (
	pageSize  = 64 << 10
	chunkSize = 4 << 10
)

func newCodec() *zstd.Codec { return &zstd.Codec{Level: zstd.SpeedFastest} }

// buffers keeps finished pages until their chunk is written.
var buffers = pq.NewChunkBufferPool(chunkSize)

// A goEncoder writes objects by parquet-go.
type goEncoder struct {
	writer *pq.GenericWriter[any]
	object bytes.Buffer
	values []pq.Value
	text   []byte // of the values
}

// goEncode returns rows as segments had them.
func goEncode(t testing.TB, rows []chain.Row, metadata []byte) []byte {
	t.Helper()
	object, err := new(goEncoder).Encode(rows, metadata)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func newGoWriter() *pq.GenericWriter[any] {
	options := []pq.WriterOption{
		schema,
		pq.DataPageVersion(1), // older Spark readers refuse strings of version 2
		pq.DataPageStatistics(false),
		pq.Compression(newCodec()),
		pq.PageBufferSize(pageSize),
		pq.WriteBufferSize(0),
		pq.ColumnPageBuffers(buffers),
		pq.ColumnIndexSizeLimit(func([]string) int { return maxBound }),
	}
	for i := range columns {
		if columns[i].unbounded() {
			options = append(options, pq.SkipPageBounds(columns[i].path()...), pq.SkipPageStatistics(columns[i].path()...))
		}
	}
	return pq.NewGenericWriter[any](io.Discard, options...)
}

// Encode writes an object. The error is a [*RowError].
func (e *goEncoder) Encode(rows []chain.Row, metadata []byte) ([]byte, error) {
	if e.writer == nil {
		e.writer = newGoWriter()
	}
	e.object.Reset()
	e.writer.Reset(&e.object)
	if len(rows) > 0 {
		if err := e.group(refs(rows), 0); err != nil {
			return nil, err
		}
	}
	if err := e.writer.Close(); err != nil {
		return nil, err
	}
	return seal(e.object.Bytes(), e.writer.File().Metadata(), metadata)
}

// group writes one row group. base is the index of its first row among all.
func (e *goEncoder) group(rows []*chain.Row, base int) error {
	writers := e.writer.ColumnWriters()
	for i := range columns {
		if err := e.column(writers[i], i, rows, base); err != nil {
			return err
		}
	}
	return e.writer.Flush()
}

// column writes the values of one column. It hands them over a page at a time:
// parquet-go ends a page only between two calls.
func (e *goEncoder) column(w *pq.ColumnWriter, index int, rows []*chain.Row, base int) error {
	c := &columns[index]
	size := 0
	e.values, e.text = e.values[:0], e.text[:0]
	for i := range rows {
		n, reason := e.append(c, index, rows[i])
		if reason != "" {
			return &RowError{Row: base + i, Column: c.name, Reason: reason}
		}
		if size += n + 4; size < pageSize && i < len(rows)-1 {
			continue
		}
		if _, err := w.WriteRowValues(e.values); err != nil {
			return err
		}
		size, e.values, e.text = 0, e.values[:0], e.text[:0]
	}
	return nil
}

// append adds what a row has in a column to e.values, and returns its size, or
// the reason why it cannot be written.
func (e *goEncoder) append(c *column, index int, r *chain.Row) (size int, reason string) {
	if c.list != nil {
		return e.appendList(*c.list(r), index)
	}
	v, reason := e.value(c, r)
	level := 1
	switch {
	case reason != "":
		return 0, reason
	case v.IsNull() && c.required:
		return 0, reasonNull
	case v.IsNull() || c.required:
		level = 0
	}
	e.values = append(e.values, v.Level(0, level, index))
	if k := v.Kind(); k == pq.ByteArray || k == pq.FixedLenByteArray {
		size = len(v.ByteArray())
	}
	return size + 4, ""
}

// value returns what a row has in a column. The zero Value is null.
func (e *goEncoder) value(c *column, r *chain.Row) (v pq.Value, reason string) {
	switch {
	case c.text != nil:
		return e.textValue(c.text(r).S, c.text(r).Valid)
	case c.slot != nil:
		return slotValue(c, *c.slot(r))
	case c.num != nil:
		return numValue(c, c.num(r).N, c.num(r).Valid)
	case c.hash != nil:
		return pq.FixedLenByteArrayValue(c.hash(r)[:]), ""
	default:
		if n := c.null(r); n.Valid {
			v = pq.FixedLenByteArrayValue(n.Hash[:])
		}
		return v, ""
	}
}

func (e *goEncoder) textValue(s string, valid bool) (v pq.Value, reason string) {
	switch {
	case !valid:
		return v, ""
	case len(s) > maxValue:
		return v, reasonLong
	case !utf8.ValidString(s):
		return v, reasonUTF8
	}
	from := len(e.text)
	e.text = append(e.text, s...)
	return pq.ByteArrayValue(e.text[from:]), ""
}

func slotValue(c *column, slot []byte) (v pq.Value, reason string) {
	switch {
	case slot == nil:
		return v, ""
	case len(slot) > maxValue:
		return v, reasonLong
	case c.kind == kindText && !utf8.Valid(slot):
		return v, reasonUTF8
	}
	return pq.ByteArrayValue(slot), ""
}

func numValue(c *column, n int64, valid bool) (v pq.Value, reason string) {
	switch {
	case !valid:
		return v, ""
	case c.kind != kindInt32:
		return pq.Int64Value(n), ""
	case int64(int32(n)) != n:
		return v, reasonRange
	}
	return pq.Int32Value(int32(n)), ""
}

func (e *goEncoder) appendList(list []string, index int) (size int, reason string) {
	if len(list) == 0 {
		level := levelEmpty
		if list == nil {
			level = levelNull
		}
		e.values = append(e.values, pq.Value{}.Level(0, level, index))
		return 1, ""
	}
	for i, s := range list {
		v, reason := e.textValue(s, true)
		if reason != "" {
			return 0, reason
		}
		e.values = append(e.values, v.Level(min(i, 1), levelElement, index))
		size += len(s) + 4
	}
	return size, ""
}

// seal returns a copy of an object that parquet-go has written, with another
// end. meta is its footer and is changed.
//
//	pages | column indexes        | offset indexes | footer
//	pages | those that are wanted | offset indexes | new footer
//
// parquet-go writes a column index for every column. Where it was told to skip
// the bounds there stand empty ones, and to a reader that means that no value
// of the page is greater than "": Spark 4.1 answers no row to user_id = 'x'. An
// index that is not there is not trusted.
func seal(object []byte, meta *format.FileMetaData, metadata []byte) ([]byte, error) {
	sealed := make([]byte, 0, len(object)+len(metadata))
	sealed = append(sealed, object[:pagesEnd(object, meta)]...)
	sealed = moveIndexes(sealed, object, meta)
	slim(meta)
	if metadata != nil {
		meta.KeyValueMetadata = []format.KeyValue{{Key: metadataKey, Value: string(metadata)}}
	}
	sealed, err := marshalFooter(sealed, meta)
	detach(meta)
	return sealed, err
}

// detach takes the names of columns out of a footer that the writer's next Reset
// will clear in place: they are the writer's own, and without this every object
// but its first would have columns without a name.
func detach(meta *format.FileMetaData) {
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			meta.RowGroups[i].Columns[j].MetaData.PathInSchema = nil
		}
	}
}

// pagesEnd returns where the last page ends: where the first index begins, or
// the footer of an object without rows.
func pagesEnd(object []byte, meta *format.FileMetaData) int64 {
	if len(meta.RowGroups) > 0 {
		return meta.RowGroups[0].Columns[0].ColumnIndexOffset
	}
	return int64(len(magic))
}

// moveIndexes appends the indexes and writes down where they are now.
func moveIndexes(sealed, object []byte, meta *format.FileMetaData) []byte {
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j]
			from, n := c.ColumnIndexOffset, int64(c.ColumnIndexLength)
			if columns[j].unbounded() {
				c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0
				continue
			}
			c.ColumnIndexOffset = int64(len(sealed))
			sealed = append(sealed, object[from:from+n]...)
		}
	}
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j]
			from, n := c.OffsetIndexOffset, int64(c.OffsetIndexLength)
			c.OffsetIndexOffset = int64(len(sealed))
			sealed = append(sealed, object[from:from+n]...)
		}
	}
	return sealed
}

// slim takes out of a footer what no reader needs: it is paid for with every 32
// rows. Long bounds go too.
func slim(meta *format.FileMetaData) {
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j].MetaData
			c.SizeStatistics = format.SizeStatistics{}
			c.EncodingStats = nil
			if len(c.Statistics.MinValue) > maxBound || len(c.Statistics.MaxValue) > maxBound {
				c.Statistics.MinValue, c.Statistics.MaxValue = nil, nil
			}
		}
	}
}

// marshalFooter is appendFooter for any footer, by reflection.
func marshalFooter(object []byte, meta *format.FileMetaData) ([]byte, error) {
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return nil, err
	}
	object = append(object, footer...)
	object = binary.LittleEndian.AppendUint32(object, uint32(len(footer)))
	return append(object, magic...), nil
}

package parquet

import (
	"bytes"
	"io"
	"unicode/utf8"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/ledgerlake/ledgerlake/chain"
)

// A row group ends at this many rows or bytes of content, whichever comes
// first. DuckDB scans row groups of 122,880 rows in parallel.
const (
	maxGroupRows  = 122_880
	maxGroupBytes = 32 << 20
)

// Sizes of an Encoder's buffers in bytes. A page ends at pageSize, which zstd
// compresses as one block; chunkSize is what a finished page is kept in, 65
// times. After a large object the Encoder lets go of the buffer that held it, and
// after a huge one of the writer as well: its columns keep what they have held.
const (
	pageSize    = 64 << 10
	chunkSize   = 4 << 10
	largeObject = 256 << 10
	hugeObject  = 1 << 20
)

// maxValue is the longest value that can be written, in bytes.
const maxValue = 1 << 30

// newCodec returns the compressor of one Encoder. It is not shared: its pool
// would carry channels from one testing/synctest bubble into the next. Of rows
// in small objects its higher levels save 2 % more, at twice the CPU.
func newCodec() *zstd.Codec { return &zstd.Codec{Level: zstd.SpeedFastest} }

// buffers keeps finished pages, for all Encoders, until their chunk is written.
var buffers = pq.NewChunkBufferPool(chunkSize)

// An Encoder writes Parquet objects. It keeps one parquet-go writer from one
// object to the next, for that is slow to make, and nothing of the rows. It is
// not for concurrent use.
type Encoder struct {
	writer *pq.GenericWriter[any]
	object bytes.Buffer
	values []pq.Value
	text   []byte // of the values
}

// NewEncoder returns an Encoder.
func NewEncoder() *Encoder { return new(Encoder) }

func newWriter() *pq.GenericWriter[any] {
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

// Encode returns one Parquet object that holds rows in order, and metadata as
// the value of the key "ledgerlake" unless it is nil. The object is the caller's
// own memory. The error is a [*RowError]: a required column is null, a number
// does not fit its column, or a string is not UTF-8, and no reader could open
// the object.
func (e *Encoder) Encode(rows []chain.Row, metadata []byte) ([]byte, error) {
	return e.EncodeRefs(refs(rows), metadata)
}

func refs(rows []chain.Row) []*chain.Row {
	all := make([]*chain.Row, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	return all
}

// EncodeRefs is [Encoder.Encode] for rows that do not lie side by side.
func (e *Encoder) EncodeRefs(rows []*chain.Row, metadata []byte) ([]byte, error) {
	if e.writer == nil {
		e.writer = newWriter()
	}
	e.object.Reset()
	e.writer.Reset(&e.object)
	object, err := e.encode(rows, metadata)
	e.release(err)
	return object, err
}

func (e *Encoder) encode(rows []*chain.Row, metadata []byte) ([]byte, error) {
	for done := 0; done < len(rows); {
		n := groupLength(rows[done:])
		if err := e.group(rows[done:done+n], done); err != nil {
			return nil, err
		}
		done += n
	}
	if err := e.writer.Close(); err != nil {
		return nil, err
	}
	return seal(e.object.Bytes(), e.writer.File().Metadata(), metadata)
}

// release lets go of what has grown large, and after an error of the writer,
// which was left in the middle of an object. Rows are let go of by themselves:
// of them e.values has the numbers of the last column, and writers have copies.
func (e *Encoder) release(err error) {
	size := e.object.Cap()
	if size > largeObject {
		e.object = bytes.Buffer{}
	}
	if err != nil || size > hugeObject {
		*e = Encoder{}
	}
}

// groupLength returns how many of the rows make the next row group.
func groupLength(rows []*chain.Row) int {
	size := 0
	for i := range rows {
		if i == maxGroupRows || size >= maxGroupBytes {
			return i
		}
		size += contentSize(rows[i])
	}
	return len(rows)
}

// contentSize is about what a row weighs: its slots, and a fixed part for ids,
// hashes and names.
func contentSize(r *chain.Row) int {
	n := 500
	for i := range r.Slots {
		n += len(r.Slots[i])
	}
	return n
}

// group writes one row group. base is the index of its first row among all.
func (e *Encoder) group(rows []*chain.Row, base int) error {
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
func (e *Encoder) column(w *pq.ColumnWriter, index int, rows []*chain.Row, base int) error {
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

// The reasons of a [RowError].
const (
	reasonNull  = "null in a required column"
	reasonRange = "does not fit in 32 bits"
	reasonUTF8  = "not valid UTF-8"
	reasonLong  = "longer than 1 GiB"
)

// append adds what a row has in a column to e.values, and returns its size, or
// the reason why it cannot be written.
func (e *Encoder) append(c *column, index int, r *chain.Row) (size int, reason string) {
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
func (e *Encoder) value(c *column, r *chain.Row) (v pq.Value, reason string) {
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

func (e *Encoder) textValue(s string, valid bool) (v pq.Value, reason string) {
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

// The definition levels of a list: null, empty, and an element that is there.
const (
	levelNull    = 0
	levelEmpty   = 1
	levelElement = 3
)

func (e *Encoder) appendList(list []string, index int) (size int, reason string) {
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

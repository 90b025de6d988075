package parquet

import (
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/chain"
)

// DataOptions say how a [DataWriter] writes. The zero DataOptions are good.
type DataOptions struct {
	// GroupRows and GroupBytes end a row group, whichever comes first: rows, and
	// bytes of content, not compressed. Zero: 122,880 rows, which DuckDB scans in
	// parallel, and 32 MiB.
	GroupRows  int64
	GroupBytes int64
	// Target is about how long the longest object will be, in bytes: what is
	// taken at once for one that grows beyond 32 MiB. A longer one costs a copy
	// of itself. Zero: 128 MiB.
	Target int64
}

// A DataWriter writes data files: large objects of the rows of one log.
//
//	object = "PAR1" { row group } { bloom filter } { column index } { offset index } footer length "PAR1"
//
// In memory it keeps the object, whose buffer is never more than an eighth longer
// than Target unless the object is, and one row group: full pages, compressed, and
// in each of the 65 columns an open page (128 KiB), a dictionary (256 KiB and
// what finds its values) where there is one, and the hashes of a bloom filter (8
// bytes a value). That is some 30 MiB with a row group of 32 MiB that does not
// compress, and never rows. Bloom filters are on record_id, kind, user_id, session_id
// and turn_id, in this order; those of one column lie side by side. Equal rows, given in equal portions, give
// equal bytes. It is not for concurrent use.
type DataWriter struct {
	o      DataOptions
	chunks []*chunkWriter
	scratch

	object []byte
	tail   []byte // of what stands behind row groups
	groups []writtenGroup
	rows   int64 // in all
	open   int64 // of them, in the open row group
	weight int64 // bytes of content in the open row group
}

// A writtenGroup is a row group that is in the object, and what stands behind
// all of them, by column.
type writtenGroup struct {
	meta    format.RowGroup
	blooms  [][]byte
	indexes [][]byte // of columns
	offsets [][]byte
}

// nextGroup returns an empty row group, in the memory of an earlier object's if
// there is one.
func (w *DataWriter) nextGroup() (g writtenGroup) {
	n := len(w.groups)
	if n < cap(w.groups) {
		g = w.groups[:n+1][n]
	}
	if g.meta.Columns == nil {
		g.meta.Columns = make([]format.ColumnChunk, 0, len(columns))
		parts := make([][]byte, 3*len(columns))
		g.blooms, g.indexes, g.offsets = parts[:0:len(columns)], parts[len(columns):len(columns):2*len(columns)], parts[2*len(columns):2*len(columns)]
	}
	g.meta = format.RowGroup{Columns: g.meta.Columns[:0], NumRows: w.open, FileOffset: int64(len(w.object)), Ordinal: int16(n)}
	g.blooms, g.indexes, g.offsets = g.blooms[:0], g.indexes[:0], g.offsets[:0]
	return g
}

// behind returns the size of what stands behind the row groups.
func (g *writtenGroup) behind() (n int) {
	for _, parts := range [][][]byte{g.blooms, g.indexes, g.offsets} {
		for _, part := range parts {
			n += len(part)
		}
	}
	return n
}

// NewDataWriter returns a DataWriter.
func NewDataWriter(o DataOptions) *DataWriter { return newWriterOf(o, dataPageSize, true) }

// newWriterOf returns a writer of objects with bloom filters or without.
func newWriterOf(o DataOptions, pageSize int, blooms bool) *DataWriter {
	w := &DataWriter{o: o, scratch: scratch{codec: zstd.Codec{Level: zstd.SpeedFastest}, pageSize: pageSize}}
	if w.o.GroupRows == 0 {
		w.o.GroupRows = maxGroupRows
	}
	if w.o.GroupBytes == 0 {
		w.o.GroupBytes = maxGroupBytes
	}
	if w.o.Target == 0 {
		w.o.Target = 128 << 20
	}
	for i := range columns {
		w.chunks = append(w.chunks, newChunkWriter(&columns[i], &w.scratch, blooms))
	}
	w.Reset()
	return w
}

// Reset begins a new object, and keeps what memory it can. It is needed after an
// error alone: Close leaves the writer as new.
func (w *DataWriter) Reset() { w.begin(nil) }

// begin begins a new object in the memory of buffer.
func (w *DataWriter) begin(buffer []byte) {
	w.object, w.groups, w.tail, w.rows = append(buffer, magic...), w.groups[:0], w.tail[:0], 0
	for _, c := range w.chunks {
		c.held = c.held[:0]
	}
	w.resetGroup()
}

func (w *DataWriter) resetGroup() {
	w.open, w.weight = 0, 0
	for _, c := range w.chunks {
		c.reset()
	}
}

// NumRows returns how many rows were written.
func (w *DataWriter) NumRows() int64 { return w.rows }

// Size returns about how long the object is, in bytes, as if it ended here.
func (w *DataWriter) Size() int64 {
	n := int64(len(w.object))
	for _, c := range w.chunks {
		n += c.buffered()
	}
	return n
}

// Rows appends rows, of which it keeps nothing. The error is a [*RowError], whose
// Row is an index into rows: then nothing was written.
func (w *DataWriter) Rows(rows []*chain.Row) error {
	for i, r := range rows {
		for j := range columns {
			if reason := columns[j].refuses(r); reason != "" {
				return &RowError{Row: i, Column: columns[j].name, Reason: reason}
			}
		}
	}
	for len(rows) > 0 {
		n := w.fitting(rows)
		for _, c := range w.chunks {
			if err := c.addRows(rows[:n]); err != nil {
				return err
			}
		}
		rows = rows[n:]
		if err := w.added(int64(n)); err != nil {
			return err
		}
	}
	return nil
}

// fitting returns how many of the rows go into the open row group: one at least.
func (w *DataWriter) fitting(rows []*chain.Row) int {
	for i, r := range rows {
		if w.open+int64(i) >= w.o.GroupRows || w.weight >= w.o.GroupBytes {
			return i
		}
		w.weight += int64(contentSize(r))
	}
	return len(rows)
}

// added counts rows that all chunks have, and ends the row group if it is full.
func (w *DataWriter) added(rows int64) error {
	w.rows, w.open = w.rows+rows, w.open+rows
	if w.open < w.o.GroupRows && w.weight < w.o.GroupBytes {
		return nil
	}
	return w.endGroup()
}

// addRows adds what rows have in the column.
func (w *chunkWriter) addRows(rows []*chain.Row) error {
	for _, r := range rows {
		w.addRow(r)
		if err := w.endRow(); err != nil {
			return err
		}
	}
	return nil
}

func (w *chunkWriter) addRow(r *chain.Row) {
	switch c := w.column; {
	case c.text != nil:
		if t := c.text(r); t.Valid {
			w.text = append(w.text[:0], t.S...)
			w.bytesValue(w.text)
			return
		}
	case c.slot != nil:
		if slot := *c.slot(r); slot != nil {
			w.bytesValue(slot)
			return
		}
	case c.num != nil:
		if n := c.num(r); n.Valid {
			w.number(n.N)
			return
		}
	case c.hash != nil:
		w.hash(c.hash(r)[:])
		return
	case c.null != nil:
		if n := c.null(r); n.Valid {
			w.hash(n.Hash[:])
			return
		}
	default:
		w.listValue(*c.list(r))
		return
	}
	w.null(0)
}

// endGroup writes the open row group.
func (w *DataWriter) endGroup() error {
	if w.open == 0 {
		return nil
	}
	g := w.nextGroup()
	for _, c := range w.chunks {
		if err := w.endChunk(&g, c); err != nil {
			return err
		}
	}
	w.groups = append(w.groups, g)
	w.resetGroup()
	return nil
}

// smallObject is the size in bytes up to which an object's buffer doubles.
const smallObject = 32 << 20

// reserve makes room for n bytes more.
func (w *DataWriter) reserve(n int) {
	need := len(w.object) + n
	if need <= cap(w.object) {
		return
	}
	size := max(need, min(2*cap(w.object), smallObject))
	if need > smallObject {
		size = max(need+need/8, int(w.o.Target+w.o.Target/8))
	}
	w.object = append(make([]byte, 0, size), w.object...)
}

func (w *DataWriter) endChunk(g *writtenGroup, c *chunkWriter) error {
	w.reserve(c.pending())
	object, meta, err := c.finish(w.object)
	if err != nil {
		return err
	}
	w.object = object
	bloom, err := c.filter()
	if err != nil {
		return err
	}
	g.blooms = append(g.blooms, bloom)
	g.indexes = append(g.indexes, w.keep(c.columnIndex))
	g.offsets = append(g.offsets, w.keep(func(b []byte) []byte { return appendOffsetIndex(b, c.places) }))
	g.meta.Columns = append(g.meta.Columns, format.ColumnChunk{MetaData: meta})
	g.meta.TotalByteSize += meta.TotalUncompressedSize
	g.meta.TotalCompressedSize += meta.TotalCompressedSize
	return nil
}

// keep returns what is appended to the memory of what stands behind row groups.
func (w *DataWriter) keep(appendTo func([]byte) []byte) []byte {
	at := len(w.tail)
	w.tail = appendTo(w.tail)
	return w.tail[at:len(w.tail):len(w.tail)]
}

// Close returns the object, which is the caller's own memory, with metadata as
// the value of the key "ledgerlake" unless it is nil. The writer is then as new.
func (w *DataWriter) Close(metadata []byte) ([]byte, error) {
	defer w.Reset()
	return w.finish(metadata)
}

// finish ends the object, which is still in the writer's buffer.
func (w *DataWriter) finish(metadata []byte) ([]byte, error) {
	if err := w.endGroup(); err != nil {
		return nil, err
	}
	w.appendBehind()
	meta, err := emptyFooter()
	if err != nil {
		return nil, err
	}
	meta.NumRows = w.rows
	for i := range w.groups {
		meta.RowGroups = append(meta.RowGroups, w.groups[i].meta)
	}
	if metadata != nil {
		meta.KeyValueMetadata = []format.KeyValue{{Key: metadataKey, Value: string(metadata)}}
	}
	return appendFooter(w.object, &meta)
}

// appendBehind appends bloom filters and indexes, column by column, and writes
// down where they are.
func (w *DataWriter) appendBehind() {
	n := 16 << 10 // and a footer has 32 KiB for each row group at most
	for i := range w.groups {
		n += w.groups[i].behind() + 32<<10
	}
	w.reserve(n)
	for _, f := range filters {
		j := columnByName[f.column]
		for i := range w.groups {
			m := &w.groups[i].meta.Columns[j].MetaData
			at, n := w.behind(w.groups[i].blooms[j])
			m.BloomFilterOffset, m.BloomFilterLength = at, n
		}
	}
	for i := range w.groups {
		for j := range columns {
			c := &w.groups[i].meta.Columns[j]
			c.ColumnIndexOffset, c.ColumnIndexLength = w.behind(w.groups[i].indexes[j])
		}
	}
	for i := range w.groups {
		for j := range columns {
			c := &w.groups[i].meta.Columns[j]
			c.OffsetIndexOffset, c.OffsetIndexLength = w.behind(w.groups[i].offsets[j])
		}
	}
}

// behind appends a part, and returns its place: 0, 0 for none.
func (w *DataWriter) behind(part []byte) (at int64, n int32) {
	if len(part) == 0 {
		return 0, 0
	}
	at = int64(len(w.object))
	w.object = append(w.object, part...)
	return at, int32(len(part))
}

// emptyFooter returns the footer of an object without rows.
func emptyFooter() (format.FileMetaData, error) {
	frame, err := frameOnce()
	if err != nil {
		return format.FileMetaData{}, err
	}
	return frame.meta, nil
}

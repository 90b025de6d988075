package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// A page of a data file ends at this many bytes or rows, whichever comes first;
// a page of a dictionary's indexes by rows alone. Pages of an [Encoder] are half as
// long.
const (
	dataPageSize = 128 << 10
	dataPageRows = 20_480
)

// maxDictionary is the size of the largest dictionary in bytes. A chunk whose
// values need a longer one goes on in plain pages.
const maxDictionary = 256 << 10

// A chunkWriter writes the column chunk of one column in one row group. Pages
// are compressed as they become full; of the open page it has levels and plain
// values, or indexes into the dictionary.
type chunkWriter struct {
	column *column
	path   []string
	maxDef byte
	*scratch

	open   page
	pages  []byte // header and body of each, one after another
	places []format.PageLocation
	bounds []pageBounds

	dict       dictionary
	bloom      *bloomMaker // of values that are in no dictionary; nil: no filter
	rows       int64
	count      int64 // of values, with nulls
	nulls      int64
	plainPages bool
	dictPages  bool
	size       int64 // of headers and bodies, not compressed

	held  []byte // bounds, which the open page would change
	index format.ColumnIndex
}

// A scratch is what the chunks of a writer share.
type scratch struct {
	codec    zstd.Codec
	pageSize int

	text, body, packed []byte
}

// A page is what a page that is not written yet holds.
type page struct {
	first  int64  // row
	rows   int64  // begun in it
	reps   []byte // of a list
	defs   []byte // where a value may be null
	values []byte // PLAIN
	index  []int32
	nulls  int64
	limits limits
}

func (p *page) reset(first int64) {
	*p = page{first: first, reps: p.reps[:0], defs: p.defs[:0], values: p.values[:0], index: p.index[:0], limits: p.limits.reset()}
}

func newChunkWriter(c *column, s *scratch, bloom bool) *chunkWriter {
	w := &chunkWriter{column: c, path: c.path(), scratch: s, maxDef: c.maxDef()}
	if bloom {
		w.bloom = bloomOf(c.name)
	}
	w.reset()
	return w
}

// maxDef returns the definition level of a value that is there.
func (c *column) maxDef() byte {
	switch {
	case c.kind == kindList:
		return levelElement
	case !c.required:
		return 1
	default:
		return 0
	}
}

func (w *chunkWriter) reset() {
	w.open.reset(0)
	w.pages, w.places, w.bounds = w.pages[:0], w.places[:0], w.bounds[:0]
	w.dict.reset()
	if w.bloom != nil {
		w.bloom.hashes = w.bloom.hashes[:0]
	}
	w.rows, w.count, w.nulls, w.size = 0, 0, 0, 0
	w.plainPages, w.dictPages = false, false
}

// hold returns a copy of b that lasts until the object is written.
func (w *chunkWriter) hold(b []byte) []byte {
	at := len(w.held)
	w.held = append(w.held, b...)
	return w.held[at:len(w.held):len(w.held)]
}

// pending returns how many bytes the chunk takes at most.
func (w *chunkWriter) pending() int {
	p := &w.open
	return len(w.pages) + len(w.dict.values) + len(p.values) + 4*len(p.index) + len(p.defs) + len(p.reps) + 256
}

// buffered returns about how many bytes the chunk takes in an object.
func (w *chunkWriter) buffered() int64 {
	return int64(len(w.pages) + len(w.dict.values) + len(w.open.values)/4 + len(w.open.index)/2)
}

// null adds a null, or the level of a list without elements.
func (w *chunkWriter) null(level byte) {
	w.open.defs = append(w.open.defs, level)
	w.open.nulls++
	w.count++
}

// present adds the level of a value that is there.
func (w *chunkWriter) present() {
	if w.maxDef > 0 {
		w.open.defs = append(w.open.defs, w.maxDef)
	}
	w.count++
}

// bytesValue adds a value of text or bytes.
func (w *chunkWriter) bytesValue(v []byte) {
	w.present()
	if w.column.dict && !w.dict.full() {
		w.indexed(w.dict.place(v), v)
		return
	}
	if len(w.open.index) > 0 {
		w.spill()
	}
	w.open.values = binary.LittleEndian.AppendUint32(w.open.values, uint32(len(v)))
	w.open.values = append(w.open.values, v...)
	if !w.column.unbounded() {
		w.open.limits.text(v)
	}
	if w.bloom != nil {
		w.bloom.add(v)
	}
}

// indexed adds the value that has place i in the dictionary.
func (w *chunkWriter) indexed(i int32, v []byte) {
	w.open.index = append(w.open.index, i)
	if w.dict.unseen(i, len(w.places)) {
		w.open.limits.text(v)
	}
}

// spill makes the open page one of plain values: the dictionary is full, and a
// page is of one kind.
func (w *chunkWriter) spill() {
	for _, i := range w.open.index {
		w.open.values = append(w.open.values, w.dict.plain(i)...)
	}
	w.open.index = w.open.index[:0]
}

func (w *chunkWriter) number(n int64) {
	w.present()
	if w.column.kind == kindInt32 {
		w.open.values = binary.LittleEndian.AppendUint32(w.open.values, uint32(n))
	} else {
		w.open.values = binary.LittleEndian.AppendUint64(w.open.values, uint64(n))
	}
	w.open.limits.number(n)
}

// fixed adds a number as it is stored.
func (w *chunkWriter) fixed(v []byte) {
	w.present()
	w.open.values = append(w.open.values, v...)
	w.column.widen(&w.open.limits, v)
}

func (w *chunkWriter) hash(h []byte) {
	w.present()
	w.open.values = append(w.open.values, h...)
}

func (w *chunkWriter) listValue(list []string) {
	if len(list) == 0 {
		level := byte(levelEmpty)
		if list == nil {
			level = levelNull
		}
		w.open.reps = append(w.open.reps, 0)
		w.null(level)
		return
	}
	for i, s := range list {
		w.open.reps = append(w.open.reps, byte(min(i, 1)))
		w.present()
		w.open.values = binary.LittleEndian.AppendUint32(w.open.values, uint32(len(s)))
		w.open.values = append(w.open.values, s...)
	}
}

// endRow ends a row, and the page if it is full.
func (w *chunkWriter) endRow() error {
	w.rows++
	w.open.rows++
	if len(w.open.values) < w.pageSize && w.open.rows < dataPageRows {
		return nil
	}
	return w.endPage()
}

var (
	repLevels  = rle.Encoding{BitWidth: 1}
	defLevels  = rle.Encoding{BitWidth: 1}
	listLevels = rle.Encoding{BitWidth: 2}
	indexes    rle.DictionaryEncoding
)

// endPage compresses the open page and begins another. A page without a row is
// none.
func (w *chunkWriter) endPage() error {
	p := &w.open
	if p.rows == 0 {
		return nil
	}
	h := pageHeader{kind: format.DataPage, values: int32(p.rows), encoding: format.Plain}
	if w.column.kind == kindList {
		h.values = int32(len(p.reps))
	}
	if len(p.index) > 0 {
		h.encoding = format.RLEDictionary
	}
	if err := w.encode(p); err != nil {
		return err
	}
	if err := w.page(&h, w.body); err != nil {
		return err
	}
	w.plainPages = w.plainPages || h.encoding == format.Plain
	w.dictPages = w.dictPages || h.encoding != format.Plain
	b := pageBounds{limits: p.limits, nulls: p.nulls}
	b.limits.low, b.limits.high = w.hold(p.limits.low), w.hold(p.limits.high)
	w.bounds = append(w.bounds, b)
	w.nulls += p.nulls
	p.reset(w.rows)
	return nil
}

// encode makes the body of a page.
func (w *chunkWriter) encode(p *page) (err error) {
	w.body = w.body[:0]
	levels := &defLevels
	if w.column.kind == kindList {
		levels = &listLevels
		if err := w.levels(&repLevels, p.reps); err != nil {
			return err
		}
	}
	if w.maxDef > 0 {
		if err := w.levels(levels, p.defs); err != nil {
			return err
		}
	}
	if len(p.index) == 0 {
		w.body = append(w.body, p.values...)
		return nil
	}
	w.packed, err = indexes.EncodeInt32(w.packed, p.index)
	w.body = append(w.body, w.packed...)
	return err
}

// page appends a page and its place.
func (w *chunkWriter) page(h *pageHeader, body []byte) (err error) {
	if err := w.compress(body); err != nil {
		return err
	}
	h.size, h.compressed = int32(len(body)), int32(len(w.packed))
	w.store(h, w.packed, w.open.first)
	return nil
}

// compress makes packed of a body. Hashes do not compress, and short bodies grow.
func (w *chunkWriter) compress(body []byte) (err error) {
	if len(body) < rawBelow || w.column.kind == kindHash {
		w.packed = appendRawFrame(w.packed[:0], body)
		return nil
	}
	w.packed, err = w.codec.Encode(w.packed, body)
	return err
}

// store appends a page as it is stored.
func (w *chunkWriter) store(h *pageHeader, packed []byte, first int64) {
	at := len(w.pages)
	w.pages = append(h.append(w.pages), packed...)
	size := len(w.pages) - at
	w.size += int64(size) - int64(h.compressed) + int64(h.size)
	w.places = append(w.places, format.PageLocation{Offset: int64(at), CompressedPageSize: int32(size), FirstRowIndex: first})
}

// levels appends levels to the body, their length before them.
func (w *chunkWriter) levels(e *rle.Encoding, levels []byte) (err error) {
	if w.packed, err = e.EncodeLevels(w.packed, levels); err != nil {
		return err
	}
	w.body = binary.LittleEndian.AppendUint32(w.body, uint32(len(w.packed)))
	w.body = append(w.body, w.packed...)
	return nil
}

// mapFrom is how many values a dictionary has before it is looked up by a map: most
// of the small objects have fewer, and going through them takes no memory.
const mapFrom = 12

// A dictionary holds the values of a chunk that is written with one.
type dictionary struct {
	values []byte           // PLAIN
	at     []int            // where each begins
	byText map[string]int32 // of all values, from mapFrom on
	seen   []int            // the page, from 1, that had the value last
	last   int32
	hot    bool // last is valid
}

func (d *dictionary) reset() {
	clear(d.byText)
	*d = dictionary{values: d.values[:0], at: d.at[:0], byText: d.byText, seen: d.seen[:0]}
}

func (d *dictionary) full() bool { return len(d.values) > maxDictionary }

// place returns the index of a value, a new one for a new value. Rows beside each
// other often have the same one.
func (d *dictionary) place(v []byte) int32 {
	if d.hot && bytes.Equal(d.plain(d.last)[4:], v) {
		return d.last
	}
	i, ok := d.find(v)
	if !ok {
		i = int32(len(d.at))
		d.at = append(d.at, len(d.values))
		d.seen = append(d.seen, 0)
		d.values = binary.LittleEndian.AppendUint32(d.values, uint32(len(v)))
		d.values = append(d.values, v...)
		d.index(i)
	}
	d.last, d.hot = i, true
	return i
}

func (d *dictionary) find(v []byte) (int32, bool) {
	if len(d.at) >= mapFrom {
		i, ok := d.byText[string(v)]
		return i, ok
	}
	for i := range int32(len(d.at)) {
		if bytes.Equal(d.plain(i)[4:], v) {
			return i, true
		}
	}
	return 0, false
}

// index puts value i, the newest, into the map, and all before it once there is one.
func (d *dictionary) index(i int32) {
	if int(i)+1 < mapFrom {
		return
	}
	if d.byText == nil {
		d.byText = map[string]int32{}
	}
	first := i
	if int(i)+1 == mapFrom {
		first = 0
	}
	for ; first <= i; first++ {
		d.byText[string(d.plain(first)[4:])] = first
	}
}

// plain returns a value, its length before it.
func (d *dictionary) plain(i int32) []byte {
	if int(i) == len(d.at)-1 {
		return d.values[d.at[i]:]
	}
	return d.values[d.at[i]:d.at[i+1]]
}

// unseen reports whether a page did not have the value yet, and marks it.
func (d *dictionary) unseen(i int32, page int) bool {
	if d.seen[i] == page+1 {
		return false
	}
	d.seen[i] = page + 1
	return true
}

// finish appends the chunk to an object, and returns what the footer says of it.
func (w *chunkWriter) finish(object []byte) ([]byte, format.ColumnMetaData, error) {
	if err := w.endPage(); err != nil {
		return nil, format.ColumnMetaData{}, err
	}
	meta := format.ColumnMetaData{
		Type: w.column.kind.physical(), Encoding: w.encodings(), PathInSchema: w.path, Codec: format.Zstd,
		NumValues: w.count, Statistics: w.statistics(),
	}
	start := len(object)
	if w.dictPages {
		var err error
		if object, err = w.appendDictionary(object); err != nil {
			return nil, meta, err
		}
		meta.DictionaryPageOffset = int64(start)
	}
	meta.DataPageOffset = int64(len(object))
	for i := range w.places {
		w.places[i].Offset += meta.DataPageOffset
	}
	object = append(object, w.pages...)
	meta.TotalUncompressedSize, meta.TotalCompressedSize = w.size, int64(len(object)-start)
	if len(w.places) == 0 {
		return nil, meta, errors.New("chunk without a page")
	}
	return object, meta, nil
}

// filter returns the bloom filter of the chunk, or nil.
func (w *chunkWriter) filter() ([]byte, error) {
	if w.bloom == nil {
		return nil, nil
	}
	for i := range w.dict.at {
		w.bloom.add(w.dict.plain(int32(i))[4:])
	}
	return w.bloom.append(nil)
}

func (w *chunkWriter) appendDictionary(object []byte) (_ []byte, err error) {
	if err := w.compress(w.dict.values); err != nil {
		return nil, err
	}
	h := pageHeader{kind: format.DictionaryPage, size: int32(len(w.dict.values)), compressed: int32(len(w.packed)), values: int32(len(w.dict.at)), encoding: format.Plain}
	at := len(object)
	object = append(h.append(object), w.packed...)
	w.size += int64(len(object)-at) - int64(h.compressed) + int64(h.size)
	return object, nil
}

// The encodings of chunks: levels are RLE, and a dictionary is plain too.
var (
	plainEncodings = []format.Encoding{format.RLE, format.Plain}
	dictEncodings  = []format.Encoding{format.RLE, format.Plain, format.RLEDictionary}
)

func (w *chunkWriter) encodings() []format.Encoding {
	if w.dictPages {
		return dictEncodings
	}
	return plainEncodings
}

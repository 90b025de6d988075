package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A chunkReader reads the values of one column in one row group, in order. Pages
// of the kinds that a [pageBody] knows it decodes itself; chunks that have others
// are left to parquet-go.
type chunkReader struct {
	leaf   *leaf
	column *column
	codec  format.CompressionCodec

	walk  pageWalk
	body  pageBody
	words pageBody // of the dictionary
	// of a chunk that parquet-go reads
	pages pq.Pages
	page  pq.Page

	at, n   int // values read of the page, and in it, with nulls
	present int // values read of the page, without nulls
	defs    []byte
	reps    []byte
	plain   valueSlice
	indexed bool    // the page has indexes into dict
	index   []int32 // these
	dict    valueSlice
	learnt  bool // dict is there
}

// A valueSlice holds the values of a page or a dictionary, without nulls, as one
// of these. Text and slots have memory of their own; the rest is the page's.
type valueSlice struct {
	n       int
	offsets []uint32 // of text and slots: where each begins, and the last one ends
	skip    uint32   // how many bytes of each are its length
	text    string
	slots   []byte
	nums    []int64
	fixed   []byte
}

// load takes the values as parquet-go has them.
func (v *valueSlice) load(c *column, data encoding.Values) {
	switch {
	case c.kind == kindInt32:
		v.nums = v.nums[:0]
		for _, n := range data.Int32() {
			v.nums = append(v.nums, int64(n))
		}
		v.n = len(v.nums)
	case c.num != nil:
		v.nums = append(v.nums[:0], data.Int64()...)
		v.n = len(v.nums)
	case c.kind == kindHash:
		v.fixed, _ = data.FixedLenByteArray()
		v.n = len(v.fixed) / hashSize
	default:
		b, offsets := data.ByteArray()
		v.n, v.offsets, v.skip = max(0, len(offsets)-1), append(v.offsets[:0], offsets...), 0
		v.keep(c, bytes.Clone(b))
	}
}

// loadPlain takes n plain values, which must fill b.
func (v *valueSlice) loadPlain(c *column, b []byte, n int) error {
	v.n = n
	switch size := c.kind.size(); {
	case size == 0:
		return v.loadBytes(c, b)
	case len(b) != n*size:
		return fmt.Errorf("%d values in %d bytes", n, len(b))
	case c.kind == kindHash:
		v.fixed = b
	default:
		v.loadNums(b, size)
	}
	return nil
}

func (v *valueSlice) loadNums(b []byte, size int) {
	v.nums = slices.Grow(v.nums[:0], v.n)
	for ; len(b) > 0; b = b[size:] {
		if size == 4 {
			v.nums = append(v.nums, int64(int32(binary.LittleEndian.Uint32(b))))
		} else {
			v.nums = append(v.nums, int64(binary.LittleEndian.Uint64(b)))
		}
	}
}

func (v *valueSlice) loadBytes(c *column, b []byte) error {
	v.offsets, v.skip = append(slices.Grow(v.offsets[:0], v.n+1), 0), 4
	at := 0
	for range v.n {
		if len(b)-at < 4 || uint64(len(b)-at-4) < uint64(binary.LittleEndian.Uint32(b[at:])) {
			return errors.New("value ends early")
		}
		at += 4 + int(binary.LittleEndian.Uint32(b[at:]))
		v.offsets = append(v.offsets, uint32(at))
	}
	if at != len(b) {
		return fmt.Errorf("%d bytes after the last value", len(b)-at)
	}
	v.keep(c, b)
	return nil
}

// keep takes what rows will point to: b itself for slots, which is no page's.
func (v *valueSlice) keep(c *column, b []byte) {
	if c.slot != nil {
		v.slots = b
	} else {
		v.text = string(b)
	}
}

// place returns where value i of text or slots is.
func (v *valueSlice) place(i int) (from, to uint32) { return v.offsets[i] + v.skip, v.offsets[i+1] }

// fill sets the column in each of rows. Rows are read in order.
func (r *chunkReader) fill(rows []chain.Row) error {
	switch {
	case r.column.list != nil:
		return r.lists(rows)
	case r.column.text != nil:
		return r.texts(rows)
	case r.column.slot != nil:
		return r.slots(rows)
	case r.column.num != nil:
		return r.nums(rows)
	default:
		return r.hashes(rows)
	}
}

// done checks that nothing is left: a value that no row has would go unseen.
func (r *chunkReader) done() error {
	more, err := r.more()
	if err == nil && more {
		err = errors.New("more values than rows")
	}
	return err
}

// readers keeps the memory of pages from one chunk to the next.
var readers = sync.Pool{New: func() any { return new(chunkReader) }}

// largeBody is the size in bytes up to which a page's memory is kept.
const largeBody = 1 << 20

// close gives the pages' memory back. The chunkReader is not to be used again.
func (r *chunkReader) close() {
	if r.pages != nil {
		pq.Release(r.page)
		_ = r.pages.Close() // of memory: nothing can fail
	}
	if r.column.slot != nil {
		r.body.b, r.words.b = nil, nil // rows keep it
	}
	*r = chunkReader{body: r.body.kept(), words: r.words.kept(), plain: r.plain.kept(), dict: r.dict.kept()}
	readers.Put(r)
}

func (p *pageBody) kept() pageBody {
	if cap(p.b)+cap(p.repBuf)+cap(p.defBuf)+4*cap(p.index) > largeBody {
		return pageBody{}
	}
	return pageBody{b: p.b, index: p.index, repBuf: p.repBuf, defBuf: p.defBuf}
}

func (v *valueSlice) kept() valueSlice {
	if 4*cap(v.offsets)+8*cap(v.nums) > largeBody {
		return valueSlice{}
	}
	return valueSlice{offsets: v.offsets[:0], nums: v.nums[:0]}
}

// more reports whether there is another value, and moves on to its page.
func (r *chunkReader) more() (more bool, err error) {
	for r.at == r.n {
		if r.pages != nil {
			more, err = r.foreignPage()
		} else {
			more, err = r.ownPage()
		}
		if !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// skip passes over n rows.
func (r *chunkReader) skip(n int64) error {
	for ; n > 0 && r.column.list != nil; n-- {
		if _, err := r.nextList(); err != nil {
			return err
		}
	}
	for n > 0 {
		if err := r.need(); err != nil {
			return err
		}
		step := int(min(n, int64(r.n-r.at)))
		if r.leaf.maxDef > 0 {
			r.present += countLevel(r.defs[r.at:r.at+step], r.leaf.maxDef)
		} else {
			r.present += step
		}
		r.at, n = r.at+step, n-int64(step)
	}
	return nil
}

// need is more where there must be another value.
func (r *chunkReader) need() error {
	more, err := r.more()
	if err == nil && !more {
		err = errors.New("fewer values than rows")
	}
	return err
}

// ownPage decodes the next data page.
func (r *chunkReader) ownPage() (more bool, err error) {
	for r.walk.more() {
		h, stored, err := r.walk.next()
		if err != nil {
			return false, err
		}
		if h.kind == format.DictionaryPage {
			if err := r.learn(&h, stored); err != nil {
				return false, err
			}
			continue
		}
		if r.column.slot != nil {
			r.body.b = nil // rows keep it
		}
		if err := r.body.data(&h, stored, r.codec, r.leaf); err != nil {
			return false, err
		}
		r.at, r.n, r.present = 0, r.body.n, 0
		r.defs, r.reps, r.indexed, r.index = r.body.defs, r.body.reps, r.body.indexed, r.body.index
		if !r.indexed {
			return true, r.plain.loadPlain(r.column, r.body.values, r.body.present)
		}
		if !r.learnt && r.body.present > 0 {
			return false, errors.New("indexes without a dictionary")
		}
		return true, nil
	}
	return false, nil
}

func (r *chunkReader) learn(h *pageHeader, stored []byte) error {
	if r.learnt || r.n > 0 {
		return errors.New("dictionary that is not the first page")
	}
	r.words.codec = r.body.codec
	if r.column.slot != nil {
		r.words.b = nil // rows keep it
	}
	if err := r.words.inflate(h, stored, r.codec); err != nil {
		return err
	}
	r.learnt = true
	return r.dict.loadPlain(r.column, r.words.b, int(h.values))
}

// foreignPage has parquet-go decode the next page.
func (r *chunkReader) foreignPage() (more bool, err error) {
	page, err := r.pages.ReadPage()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	pq.Release(r.page)
	r.page, r.at, r.n, r.present = page, 0, int(page.NumValues()), 0
	r.defs, r.reps = page.DefinitionLevels(), page.RepetitionLevels()
	data, dict := page.Data(), page.Dictionary()
	if r.indexed = dict != nil; !r.indexed {
		r.plain.load(r.column, data)
		return true, nil
	}
	r.index = data.Int32()
	if !r.learnt {
		r.dict.load(r.column, dict.Page().Data())
		r.learnt = true
	}
	return true, nil
}

// next returns where the next value is, in one of the two slices. ok is false
// where it is null.
func (r *chunkReader) next() (v *valueSlice, i int, ok bool, err error) {
	if err := r.need(); err != nil {
		return nil, 0, false, err
	}
	r.at++
	if r.leaf.maxDef > 0 && r.defs[r.at-1] != r.leaf.maxDef {
		if r.column.required {
			return nil, 0, false, errors.New("null in a required column")
		}
		return nil, 0, false, nil
	}
	v, i = &r.plain, r.present
	r.present++
	if r.indexed {
		if i >= len(r.index) {
			return nil, 0, false, fmt.Errorf("index %d of %d that are there", i, len(r.index))
		}
		v, i = &r.dict, int(r.index[i])
	}
	if i < 0 || i >= v.n {
		return nil, 0, false, fmt.Errorf("value %d of %d that are there", i, v.n)
	}
	return v, i, true, nil
}

func (r *chunkReader) texts(rows []chain.Row) error {
	for i := range rows {
		v, at, ok, err := r.next()
		if err != nil {
			return err
		}
		t := r.column.text(&rows[i])
		*t = audit.Text{Valid: ok}
		if ok {
			from, to := v.place(at)
			t.S = v.text[from:to]
			if !utf8.ValidString(t.S) {
				return errNotUTF8
			}
		}
	}
	return nil
}

var errNotUTF8 = errors.New("text is not UTF-8")

func (r *chunkReader) slots(rows []chain.Row) error {
	for i := range rows {
		v, at, ok, err := r.next()
		if err != nil {
			return err
		}
		slot := r.column.slot(&rows[i])
		*slot = nil
		if ok {
			from, to := v.place(at)
			*slot = v.slots[from:to:to]
			if r.column.kind == kindText && !utf8.Valid(*slot) {
				return errNotUTF8
			}
		}
	}
	return nil
}

func (r *chunkReader) nums(rows []chain.Row) error {
	for i := range rows {
		v, at, ok, err := r.next()
		if err != nil {
			return err
		}
		n := r.column.num(&rows[i])
		*n = audit.Int{}
		if ok {
			*n = audit.I64(v.nums[at])
		}
	}
	return nil
}

func (r *chunkReader) hashes(rows []chain.Row) error {
	for i := range rows {
		v, at, ok, err := r.next()
		if err != nil {
			return err
		}
		var h chain.Hash
		if ok {
			h = chain.Hash(v.fixed[at*hashSize:])
		}
		if r.column.hash != nil {
			*r.column.hash(&rows[i]) = h
		} else {
			*r.column.null(&rows[i]) = chain.NullHash{Hash: h, Valid: ok}
		}
	}
	return nil
}

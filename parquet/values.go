package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A chunkReader reads the values of one column in one row group, in order.
type chunkReader struct {
	leaf   *leaf
	column *column
	pages  pq.Pages

	page    pq.Page
	at, n   int // values read of the page, and in it, with nulls
	present int // values read of the page, without nulls
	defs    []byte
	reps    []byte
	plain   valueSlice
	index   []int32 // into dict, where the page has indexes
	dict    valueSlice
	learnt  bool // dict is there
}

// A valueSlice holds the values of a page or a dictionary, without nulls, as one
// of these. Text and slots have memory of their own; the rest is the page's.
type valueSlice struct {
	n       int
	offsets []uint32
	text    string
	slots   []byte
	int32s  []int32
	int64s  []int64
	fixed   []byte
}

func (v *valueSlice) load(c *column, data encoding.Values) {
	*v = valueSlice{}
	switch {
	case c.kind == kindInt32:
		v.int32s = data.Int32()
		v.n = len(v.int32s)
	case c.num != nil:
		v.int64s = data.Int64()
		v.n = len(v.int64s)
	case c.kind == kindHash:
		v.fixed, _ = data.FixedLenByteArray()
		v.n = len(v.fixed) / hashSize
	default:
		v.loadBytes(c, data)
	}
}

func (v *valueSlice) loadBytes(c *column, data encoding.Values) {
	b, offsets := data.ByteArray()
	v.n, v.offsets = max(0, len(offsets)-1), offsets
	if c.slot != nil {
		v.slots = bytes.Clone(b)
	} else {
		v.text = string(b)
	}
}

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

// close gives the pages' memory back.
func (r *chunkReader) close() {
	pq.Release(r.page)
	r.page = nil
	_ = r.pages.Close() // of memory: nothing can fail
}

// more reports whether there is another value, and moves on to its page.
func (r *chunkReader) more() (bool, error) {
	for r.at == r.n {
		page, err := r.pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		pq.Release(r.page)
		r.start(page)
	}
	return true, nil
}

// need is more where there must be another value.
func (r *chunkReader) need() error {
	more, err := r.more()
	if err == nil && !more {
		err = errors.New("fewer values than rows")
	}
	return err
}

func (r *chunkReader) start(page pq.Page) {
	r.page, r.at, r.n, r.present = page, 0, int(page.NumValues()), 0
	r.defs, r.reps = page.DefinitionLevels(), page.RepetitionLevels()
	r.plain, r.index = valueSlice{}, nil
	data, dict := page.Data(), page.Dictionary()
	if dict == nil {
		r.plain.load(r.column, data)
		return
	}
	r.index = data.Int32()
	if !r.learnt {
		r.dict.load(r.column, dict.Page().Data())
		r.learnt = true
	}
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
	if r.index != nil {
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
			t.S = v.text[v.offsets[at]:v.offsets[at+1]]
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
			from, to := v.offsets[at], v.offsets[at+1]
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
		switch {
		case !ok:
			*n = audit.Int{}
		case v.int32s != nil:
			*n = audit.I64(int64(v.int32s[at]))
		default:
			*n = audit.I64(v.int64s[at])
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

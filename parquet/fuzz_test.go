package parquet

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
)

// Hostile bytes end in an error. FuzzObject keeps magic and footer length right,
// so that what changes is what stands behind them.
func FuzzObject(f *testing.F) {
	for name := range golden {
		f.Add(readGolden(f, name))
	}
	f.Add(encode(f, turnRows(2), []byte("{}")))
	f.Add(encode(f, nil, nil))
	f.Fuzz(func(t *testing.T, object []byte) {
		readQuietly(object)
		if len(object) > trailerSize+len(magic) {
			object = bytes.Clone(object)
			copy(object, magic)
			copy(object[len(object)-len(magic):], magic)
			readQuietly(object)
		}
	})
}

// A footer alone, in an object of any size.
func FuzzTailMetadata(f *testing.F) {
	object := encode(f, turnRows(1), []byte("{}"))
	f.Add(object[len(object)/2:], int64(len(object)))
	f.Fuzz(func(t *testing.T, tail []byte, size int64) {
		metadata, rows, err := TailMetadata(tail, size)
		if err == nil && rows < 0 || err != nil && metadata != nil {
			t.Errorf("%q, %d, %v", metadata, rows, err)
		}
	})
}

// Whatever it reads, the Thrift reader goes forward, stays inside its bytes, and
// keeps to them what it returns.
func FuzzThrift(f *testing.F) {
	object := encode(f, turnRows(1), nil)
	f.Add(object[len(object)/2:])
	f.Fuzz(func(t *testing.T, b []byte) {
		r := thriftReader{b: b}
		r.skip(thriftStruct, false, maxThriftDepth)
		if r.at > len(b) {
			t.Errorf("read %d of %d bytes", r.at, len(b))
		}
		for _, read := range []func(*thriftReader){new(pageHeader).read, new(columnIndex).read, new(offsetIndex).read} {
			r := thriftReader{b: b}
			if read(&r); r.at > len(b) {
				t.Errorf("read %d of %d bytes", r.at, len(b))
			}
		}
		if size, err := bloomSize(b); err == nil && size > int64(len(b)) {
			t.Errorf("bloom filter of %d in %d bytes", size, len(b))
		}
	})
}

// A hostile object is refused by a merge, or gives an object that is laid out
// well.
func FuzzMerge(f *testing.F) {
	w := NewDataWriter(DataOptions{GroupRows: 1000})
	f.Add(dataFile(f, w, turnRows(3), 64, "{}"))
	f.Add(dataFile(f, w, newRowMaker(1).rows(2), 64, "{}"))
	f.Add(encode(f, turnRows(2), nil))
	f.Fuzz(func(t *testing.T, object []byte) {
		defer w.Reset()
		file, err := Open(object)
		if err != nil || file.NumRows() > 1000 || w.File(file) != nil {
			return
		}
		if got, err := w.Close(nil); err != nil || CheckLayout(got) != nil {
			t.Errorf("%v, %v", err, CheckLayout(got))
		}
	})
}

// FuzzRemote looks up rows in any bytes: it asks for no byte outside of them,
// never panics, and where all of an object is right it finds what those find who
// read it whole.
func FuzzRemote(f *testing.F) {
	rows := newRowMaker(3).rows(40)
	f.Add(encode(f, turnRows(3), []byte("{}")))
	f.Add(encode(f, rows, nil))
	f.Add(dataFile(f, NewDataWriter(DataOptions{GroupRows: 15}), rows, 64, "{}"))
	f.Add(dataFile(f, NewDataWriter(DataOptions{}), turnRows(30), 64, "{}"))
	f.Fuzz(func(t *testing.T, object []byte) {
		c := &counter{object: object}
		r, err := OpenRemote(t.Context(), int64(len(object)), c.get)
		if err != nil {
			notOfGetter(t, err)
			return
		}
		if len(object)%2 == 0 { // the footer alone was read
			r.tail = part{at: r.file.end, bytes: r.tail.bytes[r.file.end-r.tail.at:]}
		}
		right := CheckLayout(object) == nil && CheckBounds(object) == nil && lastErrorOf(object) == nil
		for _, any := range [][]Match{{{}}, {{Is("turn_id", "turn-00000000")}, {Is("kind", "call")}}, {{Between("seq", 0, 10)}}, {{Null("session_id")}}} {
			var got []chain.Row
			var last error
			for row, err := range r.Find(t.Context(), any...) {
				if last = err; err != nil || len(got) > 10_000 {
					break
				}
				got = append(got, *row)
			}
			if last != nil {
				notOfGetter(t, last)
				if right && !errors.Is(last, ErrWhole) {
					t.Errorf("%v, and the object is right", last)
				}
				continue
			}
			if right {
				sameRows(t, got, meant(readAll(t, object), any...))
			}
		}
	})
}

func notOfGetter(t *testing.T, err error) {
	if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrWhole) {
		t.Error(err)
	}
}

func lastErrorOf(object []byte) error {
	f, err := Open(object)
	if err != nil {
		return err
	}
	return lastError(f)
}

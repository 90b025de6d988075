package parquet

import (
	"bytes"
	"testing"
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

package parquet

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

// A footer that is read without reflection says what reflection says: those of all
// kinds of our objects, of parquet-go's as segments were, and with any byte of it
// changed. Where it is not sure it leaves the footer to reflection.
func TestOwnFootersAreThoseOfReflection(t *testing.T) {
	odd := turnRows(3)
	for i := range odd {
		odd[i].ToolName.Valid, odd[i].ToolName.S = true, ""
	}
	rng := rand.New(rand.NewPCG(4, 4))
	for name, object := range map[string][]byte{
		"none":       encode(t, nil, nil),
		"document":   encode(t, nil, []byte(`{"rows":0}`)),
		"segment":    encode(t, turnRows(32), []byte("{}")),
		"parquet-go": goEncode(t, turnRows(32), []byte("{}")),
		"random":     encode(t, newRowMaker(3).rows(500), []byte("{}")),
		"empty":      encode(t, odd, nil),
		"data file":  dataFile(t, NewDataWriter(DataOptions{GroupRows: 100}), turnRows(1000), 64, "{}"),
	} {
		raw, err := splitFooter(object, int64(len(object)))
		if err != nil {
			t.Fatal(err)
		}
		if !sameFooter(t, raw) && name != "parquet-go" {
			t.Errorf("%s: left to reflection", name)
		}
		for range 500 {
			changed := bytes.Clone(raw)
			changed[rng.IntN(len(changed))] ^= 1 << rng.IntN(8)
			sameFooter(t, changed)
		}
	}
	for _, name := range []string{"segment.parquet", "erased.parquet"} {
		object := readGolden(t, name)
		raw, err := splitFooter(object, int64(len(object)))
		if err != nil {
			t.Fatal(err)
		}
		sameFooter(t, raw)
	}
}

// sameFooter reports whether a footer was read without reflection; then both must
// be equal. Like readFooter it looks at footers alone that fill their bytes.
func sameFooter(t *testing.T, raw []byte) bool {
	t.Helper()
	r := thriftReader{b: raw}
	r.skip(thriftStruct, false, maxThriftDepth)
	if r.whole() != nil {
		return false
	}
	got, ok := readOwn(raw)
	if !ok {
		return false
	}
	want, err := reflectFooter(raw)
	if !reflect.DeepEqual(got.Schema, want.Schema) {
		t.Fatal("another schema")
	}
	if err != nil {
		t.Fatalf("reflection refuses: %v", err)
	}
	for i := range want.RowGroups {
		for j := range want.RowGroups[i].Columns {
			if a, b := &got.RowGroups[i].Columns[j], &want.RowGroups[i].Columns[j]; !reflect.DeepEqual(a, b) {
				t.Fatalf("row group %d, column %d: %+v, reflection: %+v", i, j, a, b)
			}
		}
		got.RowGroups[i].Columns, want.RowGroups[i].Columns = nil, nil
	}
	if got.Schema, want.Schema = nil, nil; !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, reflection: %+v", got, want)
	}
	return true
}

// A footer that promises more than it has takes no more memory than it is long, some
// times over, before it is left to reflection.
func TestOwnFootersTakeLittleMemory(t *testing.T) {
	frame, err := frameOnce()
	if err != nil {
		t.Fatal(err)
	}
	long := make([]byte, 1<<20)
	for name, write := range map[string]func(*thriftWriter){
		"row groups": func(w *thriftWriter) { w.list(4, thriftStruct, len(long)/2) },
		"columns": func(w *thriftWriter) {
			w.list(4, thriftStruct, 1)
			w.begin()
			w.list(1, thriftStruct, len(long)/2)
		},
		"pairs": func(w *thriftWriter) {
			w.list(4, thriftStruct, 0)
			w.list(5, thriftStruct, len(long)/2)
		},
	} {
		w := thriftWriter{b: bytes.Clone(frame.front), last: 2}
		w.i64(3, 1)
		write(&w)
		raw := append(w.b, long...)
		before := allocated()
		if _, ok := readOwn(raw); ok {
			t.Errorf("%s: taken for a footer of ours", name)
		}
		if took := allocated() - before; took > uint64(2*len(raw)) {
			t.Errorf("%s: %d bytes for a footer of %d", name, took, len(raw))
		}
	}
}

// FuzzOwnFooter holds what is read without reflection against reflection, whatever
// the footer is.
func FuzzOwnFooter(f *testing.F) {
	for _, object := range [][]byte{encode(f, turnRows(2), []byte("{}")), encode(f, nil, nil), readGolden(f, "segment.parquet")} {
		raw, err := splitFooter(object, int64(len(object)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { sameFooter(t, raw) })
}

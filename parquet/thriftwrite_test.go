package parquet

import (
	"bytes"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// A footer is the one that reflection makes of the same document, byte for byte:
// of no rows, of few, of many row groups with bloom filters, and of columns whose
// bounds are empty or left out.
func TestFootersAreThoseOfReflection(t *testing.T) {
	odd := turnRows(3)
	for i := range odd {
		odd[i].ToolName.Valid, odd[i].ToolName.S = true, ""
	}
	for name, object := range map[string][]byte{
		"none":      encode(t, nil, nil),
		"document":  encode(t, nil, []byte(`{"rows":0}`)),
		"segment":   encode(t, turnRows(32), []byte("{}")),
		"random":    encode(t, newRowMaker(3).rows(500), []byte("{}")),
		"empty":     encode(t, odd, nil),
		"data file": dataFile(t, NewDataWriter(DataOptions{GroupRows: 100}), turnRows(2000), 64, "{}"),
	} {
		meta, before := footerOf(t, object)
		if got := reFooter(t, before, meta); !bytes.Equal(got, object) {
			t.Errorf("%s: another footer", name)
		}
	}
}

// So are the indexes.
func TestIndexesAreThoseOfReflection(t *testing.T) {
	for name, x := range map[string]*format.ColumnIndex{
		"one page":  {NullPages: []bool{false}, MinValues: [][]byte{{}}, MaxValues: [][]byte{[]byte("z")}, BoundaryOrder: format.Ascending, NullCounts: []int64{3}},
		"two pages": {NullPages: []bool{true, false}, MinValues: [][]byte{{}, {1}}, MaxValues: [][]byte{{}, {2}}, NullCounts: []int64{0, 1 << 40}},
		"many": {
			NullPages: make([]bool, 200), MinValues: make([][]byte, 200), MaxValues: make([][]byte, 200), BoundaryOrder: format.Descending, NullCounts: make([]int64, 200),
		},
	} {
		if got := appendColumnIndex(nil, x); !bytes.Equal(got, marshal(t, x)) {
			t.Errorf("%s: another column index", name)
		}
	}
	for _, n := range []int{0, 1, 14, 15, 300} {
		x := format.OffsetIndex{PageLocations: make([]format.PageLocation, n)}
		for i := range x.PageLocations {
			x.PageLocations[i] = format.PageLocation{Offset: int64(i) << 33, CompressedPageSize: int32(i), FirstRowIndex: int64(i * 7)}
		}
		if got := appendOffsetIndex(nil, x.PageLocations); !bytes.Equal(got, marshal(t, &x)) {
			t.Errorf("%d pages: another offset index", n)
		}
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

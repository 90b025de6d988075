package parquet

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
)

// firstDifference returns the name of the first column in which two rows
// differ. nil and empty differ.
func firstDifference(a, b *chain.Row) string {
	for i := range columns {
		c := &columns[i]
		if !reflect.DeepEqual(c.of(a), c.of(b)) {
			return c.name
		}
	}
	return ""
}

// of returns what a row has in a column.
func (c *column) of(r *chain.Row) any {
	switch {
	case c.text != nil:
		return *c.text(r)
	case c.slot != nil:
		return *c.slot(r)
	case c.num != nil:
		return *c.num(r)
	case c.hash != nil:
		return *c.hash(r)
	case c.null != nil:
		return *c.null(r)
	default:
		return *c.list(r)
	}
}

// What is written comes back, whatever it is: TestRoundTrip makes rows of every
// type with nulls, odd texts and the ends of every range, in sizes around those
// of batches and pages.
func TestRoundTrip(t *testing.T) {
	e := NewEncoder()
	for seed, n := range []int{0, 1, 2, 31, 32, 63, 64, 65, 128, 500, 2048, 10_000} {
		rows := newRowMaker(uint64(seed)).rows(n)
		object, err := e.Encode(rows, []byte(`{"n":1}`))
		if err != nil {
			t.Fatal(err)
		}
		sameRows(t, readAll(t, object), rows)
		f, err := Open(object)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := f.Metadata(); !ok || !bytes.Equal(got, []byte(`{"n":1}`)) {
			t.Errorf("%d rows: metadata %q, %v", n, got, ok)
		}
		if f.NumRows() != int64(n) {
			t.Errorf("NumRows %d, want %d", f.NumRows(), n)
		}
	}
}

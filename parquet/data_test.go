package parquet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// dataFile writes rows in portions of n.
func dataFile(t testing.TB, w *DataWriter, rows []chain.Row, n int, metadata string) []byte {
	t.Helper()
	for all := refs(rows); len(all) > 0; all = all[min(n, len(all)):] {
		if err := w.Rows(all[:min(n, len(all))]); err != nil {
			t.Fatal(err)
		}
	}
	object, err := w.Close([]byte(metadata))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// sound requires the layout of the format, bounds that are true, and the rows.
func sound(t testing.TB, object []byte, rows []chain.Row) {
	t.Helper()
	if err := CheckLayout(object); err != nil {
		t.Fatal(err)
	}
	if err := CheckBounds(object); err != nil {
		t.Fatal(err)
	}
	sameRows(t, readAll(t, object), rows)
}

// What is written comes back, whatever it is, and the object is laid out as the
// format says: TestDataRoundTrip makes rows of every type with nulls, odd texts
// and the ends of every range, in sizes around those of pages and row groups.
func TestDataRoundTrip(t *testing.T) {
	w := NewDataWriter(DataOptions{GroupRows: 700})
	for seed, n := range []int{0, 1, 2, 63, 65, 699, 700, 701, 2500} {
		for _, portion := range []int{1, 64, 5000} {
			rows := newRowMaker(uint64(seed)).rows(n)
			object := dataFile(t, w, rows, portion, `{"n":1}`)
			sound(t, object, rows)
			f, err := Open(object)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := f.Metadata(); !ok || string(got) != `{"n":1}` {
				t.Errorf("%d rows: metadata %q, %v", n, got, ok)
			}
			if got, want := len(f.meta.RowGroups), (n+699)/700; got != want {
				t.Errorf("%d rows: %d row groups, want %d", n, got, want)
			}
		}
	}
}

// Columns that are null in every row, and columns that never are.
func TestDataNullsEverywhereAndNowhere(t *testing.T) {
	for _, nulls := range []float64{0, 1} {
		m := newRowMaker(4)
		m.nulls = nulls
		rows := m.rows(200)
		if nulls == 1 {
			for i := range rows {
				rows[i].Slots[audit.SlotRaw] = nil
			}
		}
		sound(t, dataFile(t, NewDataWriter(DataOptions{}), rows, 64, "{}"), rows)
	}
}

// Many pages in a chunk, of values of any length; a dictionary that becomes too
// long; and bounds that have to be cut.
func TestDataLongColumns(t *testing.T) {
	rows := turnRows(30_000)
	for i := range rows {
		switch {
		case i%3 == 0:
			rows[i].ModelID = audit.Str(fmt.Sprintf("%d%s", i, strings.Repeat("model", 10)))
		case i%7 == 0:
			rows[i].TurnID = audit.Str(strings.Repeat("\U0010FFFF", 16+i%4))
		case i%11 == 0:
			rows[i].SessionID = audit.Str(strings.Repeat("long", i%100) + "é")
		}
	}
	object := dataFile(t, NewDataWriter(DataOptions{}), rows, 64, "{}")
	sound(t, object, rows)
	if n := bytes.Count(outsidePages(t, object), []byte(strings.Repeat("long", 17))); n != 0 {
		t.Errorf("a bound of more than 64 bytes stands %d times outside pages", n)
	}
}

// Equal rows in equal portions give equal bytes, whatever the writer wrote
// before.
func TestDataIsDeterministic(t *testing.T) {
	rows, w := newRowMaker(5).rows(900), NewDataWriter(DataOptions{GroupRows: 400})
	dataFile(t, w, turnRows(3000), 64, "{}")
	if got, want := dataFile(t, w, rows, 64, "{}"), dataFile(t, NewDataWriter(DataOptions{GroupRows: 400}), rows, 64, "{}"); !bytes.Equal(got, want) {
		t.Error("the second object of a writer differs from the first of another")
	}
}

// A row that cannot be written is refused before anything is written.
func TestDataRefuses(t *testing.T) {
	good, w := turnRows(3), NewDataWriter(DataOptions{})
	for _, c := range []struct {
		column, reason string
		spoil          func(*chain.Row)
	}{
		{"tenant_id", reasonNull, func(r *chain.Row) { r.TenantID = audit.Text{} }},
		{"seq", reasonNull, func(r *chain.Row) { r.Seq = audit.Int{} }},
		{"partition", reasonRange, func(r *chain.Row) { r.Partition = audit.I64(1 << 40) }},
		{"user_id", reasonUTF8, func(r *chain.Row) { r.UserID = audit.Str("\xff") }},
		{"context", reasonUTF8, func(r *chain.Row) { r.Slots[audit.SlotContext] = []byte("\xff") }},
		{"fallback_chain", reasonUTF8, func(r *chain.Row) { r.FallbackChain = []string{"a", "\xff"} }},
	} {
		bad := turnRows(3)
		c.spoil(&bad[2])
		err := w.Rows(refs(bad))
		if e, ok := err.(*RowError); !ok || e.Row != 2 || e.Column != c.column || e.Reason != c.reason {
			t.Errorf("%v, want row 2: column %s: %s", err, c.column, c.reason)
		}
	}
	sound(t, dataFile(t, w, good, 2, "{}"), good)
}

// Files are joined as if their rows had been written one after another.
func TestDataFile(t *testing.T) {
	rows := newRowMaker(8).rows(1900)
	w := NewDataWriter(DataOptions{GroupRows: 300})
	parts := [][]byte{
		dataFile(t, NewDataWriter(DataOptions{}), rows[:500], 64, "{}"),
		encode(t, rows[500:600], nil),
		dataFile(t, NewDataWriter(DataOptions{GroupRows: 100}), rows[600:1000], 64, "{}"),
		dataFile(t, NewDataWriter(DataOptions{}), nil, 64, "{}"),
	}
	for _, part := range parts {
		f, err := Open(part)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.File(f); err != nil {
			t.Fatal(err)
		}
	}
	if w.NumRows() != 1000 {
		t.Errorf("NumRows %d, want 1000", w.NumRows())
	}
	sound(t, dataFile(t, w, rows[1000:], 64, "{}"), rows)
}

// A bloom filter has every value that is there, and by it most of those that are
// not are known to be absent. It is found and asked without the object.
func TestBloomHas(t *testing.T) {
	rows := turnRows(5000)
	for i := range rows {
		if i >= 2000 && i < 3000 {
			rows[i].UserID = audit.Text{}
		}
	}
	object := dataFile(t, NewDataWriter(DataOptions{GroupRows: 1000}), rows, 64, "{}")
	for _, f := range filters {
		column := f.column
		has, spans := asker(t, object, column)
		want := 5
		if column == "user_id" {
			want = 4 // a row group has none
		}
		if len(spans) != want {
			t.Errorf("%s: %d filters, want %d", column, len(spans), want)
		}
		for i := range rows {
			if v := columns[columnByName[column]].text(&rows[i]); v.Valid && !has(v.S) {
				t.Fatalf("%s: %q is not in the filter", column, v.S)
			}
		}
		wrong := 0
		for i := range 1000 {
			if has(fmt.Sprintf("absent-%d", i)) {
				wrong++
			}
		}
		if wrong > 80 {
			t.Errorf("%s: %d of 1000 absent values seem to be there", column, wrong)
		}
	}
}

// asker returns what the filters of a column say of a value.
func asker(t testing.TB, object []byte, column string) (has func(string) bool, spans []Span) {
	t.Helper()
	f, err := ParseFooter(object[len(object)-min(len(object), 256<<10):], int64(len(object)))
	if err != nil {
		t.Fatal(err)
	}
	spans, ok, err := f.Blooms(column)
	if err != nil || !ok {
		t.Fatalf("%s: filters %v, %v", column, ok, err)
	}
	return func(value string) bool {
		for _, s := range spans {
			in, err := BloomHas(object[s.Offset:s.Offset+s.Size], value)
			if err != nil {
				t.Fatal(err)
			}
			if in {
				return true
			}
		}
		return false
	}, spans
}

// Of an object without filters nothing can be said.
func TestNoBlooms(t *testing.T) {
	object := encode(t, turnRows(10), nil)
	f, err := ParseFooter(object, int64(len(object)))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := f.Blooms("turn_id"); ok || err != nil {
		t.Errorf("filters %v, %v", ok, err)
	}
}

// held returns how many bytes of memory the writer's buffers are, without the
// object.
func (w *DataWriter) held() (n int) {
	for _, c := range w.chunks {
		n += cap(c.pages) + cap(c.body) + cap(c.packed) + cap(c.text)
		n += cap(c.open.values) + cap(c.open.defs) + cap(c.open.reps) + 4*cap(c.open.index)
		n += cap(c.dict.values) + 8*cap(c.dict.at) + 8*cap(c.dict.seen) + 2*len(c.dict.values) // and the map
		if c.bloom != nil {
			n += 8 * cap(c.bloom.hashes)
		}
	}
	return n
}

// However many rows a file has, the writer holds one row group and the object:
// TestDataMemory writes rows that hardly compress, by rows and by files, until
// the object has 80 MiB, and counts the bytes of all buffers.
func TestDataMemory(t *testing.T) {
	const groupBytes, target = 8 << 20, 80 << 20
	m := newRowMaker(3)
	rows := turnRows(1000)
	for i := range rows {
		for range 150 {
			h := m.hash()
			rows[i].Slots[audit.SlotExt] = append(rows[i].Slots[audit.SlotExt], h[:]...)
		}
		for j, b := range rows[i].Slots[audit.SlotExt] {
			rows[i].Slots[audit.SlotExt][j] = b & 0x7F
		}
	}
	w := NewDataWriter(DataOptions{GroupBytes: groupBytes, Target: target})
	part, err := Open(dataFile(t, NewDataWriter(DataOptions{}), rows, 64, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	most, buffers := 0, map[*byte]bool{}
	for i := 0; w.Size() < target; i++ {
		if i%2 == 0 {
			err = w.Rows(refs(rows))
		} else {
			err = w.File(part)
		}
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, w.held())
		if cap(w.object) > smallObject {
			buffers[&w.object[:1][0]] = true
		}
	}
	if limit := 2*groupBytes + 65*2*dataPageSize; most > limit {
		t.Errorf("buffers of %d bytes, want %d at most", most, limit)
	}
	size := w.Size()
	object := closed(t, w)
	if len(buffers) != 1 || cap(object) > target+target/8 {
		t.Errorf("%d large buffers, the last one of %d bytes", len(buffers), cap(object))
	}
	if d := int64(len(object)) - size; d < -size/20 || d > size/20 {
		t.Errorf("Size said %d of an object of %d bytes", size, len(object))
	}
}

func closed(t *testing.T, w *DataWriter) []byte {
	t.Helper()
	object, err := w.Close(nil)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

package parquet

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/chain"
)

// merge joins objects by File.
func merge(t testing.TB, w *DataWriter, objects ...[]byte) []byte {
	t.Helper()
	for _, object := range objects {
		f, err := Open(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.File(f); err != nil {
			t.Fatal(err)
		}
	}
	object, err := w.Close([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// bodies returns the stored bodies of the data pages of a column.
func bodies(t testing.TB, object []byte, name string) (all [][]byte) {
	t.Helper()
	f, err := Open(object)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.meta.RowGroups {
		for w := walk(object, chunkOf(&f.meta.RowGroups[i], name)); w.more(); {
			h, body, err := w.next()
			if err != nil {
				t.Fatal(err)
			}
			if h.kind == format.DataPage {
				all = append(all, body)
			}
		}
	}
	return all
}

// Pages of a size are copied as they are stored, and small ones are joined:
// merged files have the rows of all, in pages of a size, under the row groups'
// limits. Sizes of the parts are chosen so that pages and row groups end within
// them.
func TestMergeCopiesPages(t *testing.T) {
	rows := turnRows(20_000)
	for i := range rows {
		if i%2 == 0 {
			rows[i].UserID.Valid, rows[i].UserID.S = false, ""
		}
	}
	w := NewDataWriter(DataOptions{})
	var parts [][]byte
	for _, r := range [][2]int{{0, 7000}, {7000, 7003}, {7003, 7700}, {7700, 15_000}, {15_000, 15_040}, {15_040, 20_000}} {
		parts = append(parts, dataFile(t, w, rows[r[0]:r[1]], 512, "{}"))
	}
	object := merge(t, w, parts...)
	sound(t, object, rows)
	if f, err := Open(object); err != nil || len(f.meta.RowGroups) != 1 {
		t.Fatalf("%v: not one row group", err)
	}
	for _, name := range []string{"row_hash", "ext", "turn_id", "user_id", "row_salt", "kafka_offset"} {
		copied, from := 0, bodies(t, parts[0], name)
		into := bodies(t, object, name)
		for _, body := range from {
			if slices.ContainsFunc(into, func(b []byte) bool { return bytes.Equal(b, body) }) {
				copied++
			}
		}
		if copied < len(from)-1 || copied == 0 {
			t.Errorf("%s: %d of %d pages were copied as they are", name, copied, len(from))
		}
	}
	if got, want := len(bodies(t, object, "prompts")), 1; got != want {
		t.Errorf("a column of nulls has %d pages, want %d", got, want)
	}
}

// How many nulls a chunk has is known of pages that were not read, too: engines
// answer IS NULL by it.
func TestMergeCountsNulls(t *testing.T) {
	rows := turnRows(9000)
	w := NewDataWriter(DataOptions{})
	object := merge(t, w, dataFile(t, w, rows[:4000], 64, "{}"), dataFile(t, w, rows[4000:4010], 64, "{}"), encode(t, rows[4010:], nil))
	whole := dataFile(t, w, rows, 64, "{}")
	f, err := Open(object)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	for j := range columns {
		got, want := f.meta.RowGroups[0].Columns[j].MetaData.Statistics, g.meta.RowGroups[0].Columns[j].MetaData.Statistics
		if got.NullCount != want.NullCount || !bytes.Equal(got.MinValue, want.MinValue) || !bytes.Equal(got.MaxValue, want.MaxValue) {
			t.Errorf("%s: statistics are %+v, of the rows at once %+v", columns[j].name, got, want)
		}
	}
}

// A row group takes no more than it may, and one that is not half full takes rows
// of the next part one by one rather than end.
func TestMergeFillsRowGroups(t *testing.T) {
	rows, w := turnRows(3000), NewDataWriter(DataOptions{GroupRows: 1000})
	var parts [][]byte
	for _, r := range [][2]int{{0, 300}, {300, 1200}, {1200, 1900}, {1900, 2000}, {2000, 3000}} {
		parts = append(parts, dataFile(t, w, rows[r[0]:r[1]], 64, "{}"))
	}
	object := merge(t, w, parts...)
	sound(t, object, rows)
	f, err := Open(object)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for i := range f.meta.RowGroups {
		got = append(got, f.meta.RowGroups[i].NumRows)
	}
	if want := []int64{1000, 1000, 1000}; !slices.Equal(got, want) {
		t.Errorf("row groups of %d rows, want %d", got, want)
	}
	var heavy []chain.Row
	for range 3 {
		heavy = append(heavy, turnRows(1500)...)
	}
	w = NewDataWriter(DataOptions{GroupBytes: 1 << 20})
	object = merge(t, w, dataFile(t, w, heavy[:400], 64, "{}"), dataFile(t, w, heavy[400:3000], 64, "{}"), dataFile(t, w, heavy[3000:], 64, "{}"))
	sound(t, object, heavy)
	if f, err = Open(object); err != nil {
		t.Fatal(err)
	}
	for i := range f.meta.RowGroups {
		if g := &f.meta.RowGroups[i]; g.TotalByteSize > 2<<20 {
			t.Errorf("row group of %d bytes", g.TotalByteSize)
		}
	}
}

// Objects of other libraries are merged by their rows.
func TestMergeOfForeignObjects(t *testing.T) {
	var rows []chain.Row
	var parts [][]byte
	for name := range golden {
		parts = append(parts, readGolden(t, name))
		rows = append(rows, readAll(t, parts[len(parts)-1])...)
	}
	deltas := with("seq", pq.Encoded(pq.Leaf(bare{pq.Int64Type}), &pq.DeltaBinaryPacked))
	for _, group := range []pq.Group{formatGroup(), deltas} {
		parts = append(parts, foreign(t, turnRows(40), group, sealing()...))
		rows = append(rows, turnRows(40)...)
	}
	sound(t, merge(t, NewDataWriter(DataOptions{}), parts...), rows)
}

// A damaged object is refused, or is one of the same length that readers refuse:
// nothing is counted that was not read. The writer is good for another object
// after a Reset.
func TestMergeOfDamagedObjects(t *testing.T) {
	rows, w := turnRows(64), NewDataWriter(DataOptions{})
	object := dataFile(t, w, rows, 64, "{}")
	refused := 0
	for at := 4; at < len(object)-8; at += 7 {
		bad := bytes.Clone(object)
		bad[at] ^= 0x41
		f, err := Open(bad)
		if err == nil {
			err = w.File(f)
			w.Reset()
		}
		if err != nil {
			refused++
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("byte %d: %v does not match ErrMalformed", at, err)
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d damaged objects were refused", refused)
	}
	sound(t, dataFile(t, w, rows, 64, "{}"), rows)
}

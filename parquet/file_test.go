package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// The document and the number of rows are read from the end of an object alone,
// and a tail that is too short says how long it has to be.
func TestTailMetadata(t *testing.T) {
	document := []byte(strings.Repeat(`{"logs":[]}`, 200))
	object := encode(t, turnRows(32), document)
	size := int64(len(object))

	_, _, err := TailMetadata(object[size-20:], size)
	short := new(ShortTailError)
	if !errors.As(err, &short) || short.Need > size || short.Need < 2200 {
		t.Fatalf("%v, want a ShortTailError", err)
	}
	if want := fmt.Sprintf("the footer needs the last %d bytes of the object", short.Need); err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, n := range []int64{short.Need, short.Need + 1, size} {
		got, rows, err := TailMetadata(object[size-n:], size)
		if err != nil || rows != 32 || !bytes.Equal(got, document) {
			t.Errorf("%d bytes: %d rows, %d bytes of document, %v", n, rows, len(got), err)
		}
	}
	for n := range short.Need {
		_, _, err := TailMetadata(object[size-n:], size)
		if again := new(ShortTailError); !errors.As(err, &again) || again.Need > short.Need {
			t.Fatalf("%d bytes: %v, want a ShortTailError", n, err)
		}
	}
}

// A segment of a batch has its footer in what one read of the tail gives.
func TestFooterIsShort(t *testing.T) {
	object := encode(t, turnRows(32), []byte(strings.Repeat("d", 4096)))
	raw, err := splitFooter(object, int64(len(object)))
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 16<<10 {
		t.Errorf("footer of %d bytes with a document of 4 KiB, want 16 KiB at most", len(raw))
	}
}

func TestTailMetadataRefuses(t *testing.T) {
	object := encode(t, turnRows(3), nil)
	size := int64(len(object))
	for name, c := range map[string]struct {
		tail []byte
		size int64
	}{
		"longer than the object": {object, size - 1},
		"empty object":           {nil, 0},
		"smaller than a trailer": {object[size-5:], 5},
		"no magic":               {object[:size-1], size},
		"not even that":          {[]byte("an error page of some proxy"), 27},
	} {
		_, _, err := TailMetadata(c.tail, c.size)
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
	got, rows, err := TailMetadata(object, size)
	if got != nil || rows != 3 || err != nil {
		t.Errorf("no document: %q, %d, %v", got, rows, err)
	}
}

// A footer that says what cannot be is refused before a page is looked at, and
// before anything is allocated by it.
func TestOpenRefuses(t *testing.T) {
	object := encode(t, turnRows(300), []byte("{}"))
	for name, change := range map[string]func(m *format.FileMetaData){
		"more rows than groups have":   func(m *format.FileMetaData) { m.NumRows++ },
		"fewer rows than none":         func(m *format.FileMetaData) { m.NumRows, m.RowGroups[0].NumRows = -1, -1 },
		"rows beyond all numbers":      func(m *format.FileMetaData) { m.RowGroups[0].NumRows = math.MaxInt64; m.NumRows = math.MaxInt64 },
		"a group with a chunk too few": func(m *format.FileMetaData) { m.RowGroups[0].Columns = m.RowGroups[0].Columns[1:] },
		"chunks in another order":      func(m *format.FileMetaData) { c := m.RowGroups[0].Columns; c[0], c[1] = c[1], c[0] },
		"a chunk before the object":    func(m *format.FileMetaData) { m.RowGroups[0].Columns[9].MetaData.DataPageOffset = 0 },
		"a chunk at a negative place":  func(m *format.FileMetaData) { m.RowGroups[0].Columns[9].MetaData.DataPageOffset = -8 },
		"a chunk beyond the object":    func(m *format.FileMetaData) { m.RowGroups[0].Columns[9].MetaData.DataPageOffset = 1 << 40 },
		"a chunk that ends beyond it":  func(m *format.FileMetaData) { m.RowGroups[0].Columns[9].MetaData.TotalCompressedSize = math.MaxInt64 },
		"a chunk of negative size":     func(m *format.FileMetaData) { m.RowGroups[0].Columns[9].MetaData.TotalCompressedSize = -1 },
		"a chunk of another type":      func(m *format.FileMetaData) { m.RowGroups[0].Columns[9].MetaData.Type = format.Int64 },
		"a value too few":              func(m *format.FileMetaData) { m.RowGroups[0].Columns[9].MetaData.NumValues-- },
		"negative values":              func(m *format.FileMetaData) { m.RowGroups[0].Columns[9].MetaData.NumValues = -1 },
		"a column twice": func(m *format.FileMetaData) {
			turn := columnByName["turn_id"]
			m.Schema[1+turn].Name = "session_id"
			m.RowGroups[0].Columns[turn].MetaData.PathInSchema[0] = "session_id"
		},
		"a required column by another name": func(m *format.FileMetaData) { m.Schema[1].Name = "tenant" },
		"no schema":                         func(m *format.FileMetaData) { m.Schema = nil },
		"a root that is a column":           func(m *format.FileMetaData) { m.Schema = m.Schema[1:] },
		"columns without a parent":          func(m *format.FileMetaData) { m.Schema[0].NumChildren.Set(3) },
		"more columns than there are":       func(m *format.FileMetaData) { m.Schema[0].NumChildren.Set(math.MaxInt32) },
		"fewer than no columns":             func(m *format.FileMetaData) { m.Schema[0].NumChildren.Set(-1) },
		"two documents":                     func(m *format.FileMetaData) { m.KeyValueMetadata = append(m.KeyValueMetadata, m.KeyValueMetadata[0]) },
	} {
		meta, before := footerOf(t, object)
		change(meta)
		if f, err := Open(reFooter(t, before, meta)); !errors.Is(err, ErrMalformed) || f != nil {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
}

// Lists that claim to be long must cost no memory: the whole footer here is a
// dozen bytes that ask for two thousand million columns.
func TestOpenAllocatesByWhatIsThere(t *testing.T) {
	long := []byte{0x15, 4, 0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 7} // version, and a list of 2^31-1 structs
	deep := append([]byte{0x15, 4}, bytes.Repeat([]byte{0x1C}, 10_000)...)
	for name, footer := range map[string][]byte{"a long list": long, "a deep struct": deep, "nothing": nil, "a length only": {0x18, 0xFF, 0xFF, 0xFF, 0xFF, 7}} {
		object := append([]byte(magic), footer...)
		object = append(object, byte(len(footer)), byte(len(footer)>>8), 0, 0)
		object = append(object, magic...)
		before := allocated()
		_, err := Open(object)
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
		if got := allocated() - before; got > 1<<20 {
			t.Errorf("%s: %d KiB allocated", name, got>>10)
		}
	}
}

// Pages that do not have what the footer says are found while reading.
func TestRowsRefuses(t *testing.T) {
	object := encode(t, turnRows(300), nil)
	for name, change := range map[string]func(m *format.FileMetaData){
		"a row less": func(m *format.FileMetaData) { addRows(m, -1) },
		"a row more": func(m *format.FileMetaData) { addRows(m, 1) },
		"a list with a value less": func(m *format.FileMetaData) {
			m.RowGroups[0].Columns[columnByName["fallback_chain"]].MetaData.NumValues--
		},
		"a required column with nulls": func(m *format.FileMetaData) {
			m.Schema[1].RepetitionType.Set(format.Optional)
		},
		"another codec": func(m *format.FileMetaData) { m.RowGroups[0].Columns[4].MetaData.Codec = format.Gzip },
		"no codec":      func(m *format.FileMetaData) { m.RowGroups[0].Columns[4].MetaData.Codec = 77 },
	} {
		meta, before := footerOf(t, object)
		change(meta)
		f, err := Open(reFooter(t, before, meta))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := lastError(f); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
}

// Values that the format does not have, which another writer could write.
func TestRowsRefusesValues(t *testing.T) {
	value := func(s string, rep, def int) []pq.Value {
		return []pq.Value{pq.ByteArrayValue([]byte(s)).Level(rep, def, 0)}
	}
	null := func(def int) []pq.Value { return []pq.Value{pq.Value{}.Level(0, def, 0)} }
	for name, c := range map[string]struct {
		column string
		values []pq.Value
		words  string
	}{
		"an id that is not UTF-8":      {"turn_id", value("\xff", 0, 1), "not UTF-8"},
		"a slot that is not UTF-8":     {"ext", value("\xff", 0, 1), "not UTF-8"},
		"an element that is not UTF-8": {"fallback_chain", value("\xff", 0, 3), "not UTF-8"},
		"a null in a list":             {"fallback_chain", null(2), "null in a list"},
		"a list more than rows": {
			"fallback_chain", append(value("a", 0, 3), value("b", 0, 3)...), "more values than rows",
		},
	} {
		object := foreignValues(t, turnRows(1), formatGroup(), map[string][]pq.Value{c.column: c.values}, sealing()...)
		f, err := Open(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := lastError(f); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "column "+c.column) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want %s: %s", name, err, c.column, c.words)
		}
	}
}

// A column that must have a value may be stored as one that need not.
func TestRowsRefusesNulls(t *testing.T) {
	for _, name := range []string{"tenant_id", "archived_at", "row_hash"} {
		node := pq.Optional(columns[columnByName[name]].kind.node())
		null := map[string][]pq.Value{name: {pq.Value{}.Level(0, 0, 0)}}
		f, err := Open(foreignValues(t, turnRows(1), with(name, node), null, sealing()...))
		if err != nil {
			t.Fatal(err)
		}
		if err := lastError(f); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "null in a required column") {
			t.Errorf("%s: %v, want a null in a required column", name, err)
		}
	}
}

// A list may be required, and so may its elements: it is read all the same.
func TestListsOfOtherShapes(t *testing.T) {
	for name, c := range map[string]struct {
		node  pq.Node
		empty int // definition level of a list without elements
	}{
		"required elements":      {pq.Optional(pq.List(pq.String())), 1},
		"a required list":        {pq.List(pq.Optional(pq.String())), 0},
		"required, both of them": {pq.List(pq.String()), 0},
	} {
		most := c.empty + 1
		if name == "a required list" {
			most++ // an element may be null
		}
		values := []pq.Value{
			pq.ByteArrayValue([]byte("a")).Level(0, most, 0), pq.ByteArrayValue([]byte("b")).Level(1, most, 0),
			pq.Value{}.Level(0, c.empty, 0),
		}
		object := foreignValues(t, turnRows(2), with("fallback_chain", c.node), map[string][]pq.Value{"fallback_chain": values}, sealing()...)
		rows := readAll(t, object)
		if !slices.Equal(rows[0].FallbackChain, []string{"a", "b"}) || rows[1].FallbackChain == nil || len(rows[1].FallbackChain) != 0 {
			t.Errorf("%s: %q, %q", name, rows[0].FallbackChain, rows[1].FallbackChain)
		}
	}
}

// addRows changes the number of rows wherever the footer has it.
func addRows(m *format.FileMetaData, n int64) {
	m.NumRows += n
	m.RowGroups[0].NumRows += n
	for i := range m.RowGroups[0].Columns {
		m.RowGroups[0].Columns[i].MetaData.NumValues += n
	}
}

func lastError(f *File) (last error) {
	for _, err := range f.Rows() {
		last = err
	}
	return last
}

// A document is metadata, and an object without one is none.
func TestMetadata(t *testing.T) {
	for _, want := range [][]byte{nil, {}, []byte("{}"), bytes.Repeat([]byte{0, 0xFF}, 50_000)} {
		f, err := Open(encode(t, nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := f.Metadata(); ok != (want != nil) || !bytes.Equal(got, want) {
			t.Errorf("%d bytes come back as %d, %v", len(want), len(got), ok)
		}
	}
}

// Every cut of an object, and flipped bits all over it, give an error or rows;
// never a panic, and never memory for what is not there. FuzzObject tries the
// rest.
func TestDamage(t *testing.T) {
	object := encode(t, turnRows(2), []byte("{}"))
	for n := range object {
		if _, err := Open(object[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes opened", n, len(object))
		}
	}
	for i := 0; i < len(object); i += 7 {
		object[i] ^= 1 << (i % 8)
		readQuietly(object)
		object[i] ^= 1 << (i % 8)
	}
}

// readQuietly does with an object all that this package can.
func readQuietly(object []byte) {
	_ = CheckLayout(object)
	_, _, _ = TailMetadata(object, int64(len(object)))
	f, err := Open(object)
	if err != nil {
		return
	}
	n := 0
	for _, err := range f.Rows() {
		if n++; err != nil || n > 10_000 {
			return
		}
	}
}

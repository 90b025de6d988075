package parquet

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// tokenRows makes rows in which every sealed column has a value that is found
// nowhere else, and returns these values.
func tokenRows(n int) (rows []chain.Row, tokens map[string][]string) {
	m := newRowMaker(99)
	rows, tokens = turnRows(n), map[string][]string{}
	for i := range rows {
		for j := range columns {
			if c := &columns[j]; c.sealed {
				token := m.hash()
				c.setToken(&rows[i], token)
				tokens[c.name] = append(tokens[c.name], c.tokenText(token))
			}
		}
	}
	return rows, tokens
}

func (c *column) setToken(r *chain.Row, token chain.Hash) {
	switch {
	case c.hash != nil:
		*c.hash(r) = token
	case c.null != nil:
		*c.null(r) = chain.NullHash{Hash: token, Valid: true}
	case c.slot != nil:
		*c.slot(r) = []byte(c.tokenText(token))
	default:
		*c.text(r) = audit.Str(c.tokenText(token))
	}
}

// tokenText is what of a token stands in a file: hashes as bytes, the rest in
// hex. The first half is enough, as bounds are cut.
func (c *column) tokenText(token chain.Hash) string {
	if c.kind == kindHash {
		return string(token[:16])
	}
	return token.String()[:32]
}

// outsidePages returns all bytes of an object but the bodies of pages.
func outsidePages(t *testing.T, object []byte) []byte {
	t.Helper()
	f, err := Open(object)
	if err != nil {
		t.Fatal(err)
	}
	rest := bytes.Clone(object)
	for i := range f.meta.RowGroups {
		for j := range f.meta.RowGroups[i].Columns {
			for w := walk(object, &f.meta.RowGroups[i].Columns[j].MetaData); w.more(); {
				_, body, err := w.next()
				if err != nil {
					t.Fatal(err)
				}
				clear(rest[w.at-int64(len(body)) : w.at])
			}
		}
	}
	return rest
}

// leaks returns the columns of which a value stands outside pages. The first 8
// bytes of one are enough: bounds may be cut.
func leaks(t *testing.T, object []byte, tokens map[string][]string) []string {
	t.Helper()
	const window = 8
	owner := map[string]string{}
	for name, all := range tokens {
		for _, token := range all {
			owner[token[:window]] = name
		}
	}
	found := map[string]bool{}
	rest := outsidePages(t, object)
	for i := range len(rest) - window {
		if name, ok := owner[string(rest[i:i+window])]; ok {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// What was erased must be gone: no value of a slot, no user id, hash or salt may
// stand in a footer, a page header or an index, where rewriting pages would leave
// it. TestNoSealedValueOutsidePages scans every byte that is not a page's body.
func TestNoSealedValueOutsidePages(t *testing.T) {
	for _, n := range []int{1, 32, 3000} {
		rows, tokens := tokenRows(n)
		if got := leaks(t, encode(t, rows, []byte("{}")), tokens); got != nil {
			t.Errorf("%d rows: %s leak", n, strings.Join(got, ", "))
		}
	}
}

// The scan finds what it looks for: with the statistics of parquet-go on, each
// of these columns leaks.
func TestScanFindsLeaks(t *testing.T) {
	rows, tokens := tokenRows(32)
	object := foreign(t, rows, formatGroup(), pq.DataPageStatistics(true))
	if got := leaks(t, object, tokens); len(got) != len(tokens) {
		t.Errorf("found %d of %d columns: %s", len(got), len(tokens), strings.Join(got, ", "))
	}
	if err := CheckLayout(object); err == nil || !strings.Contains(err.Error(), "sealed") {
		t.Errorf("CheckLayout: %v, want a sealed column", err)
	}
}

// A reader that prunes pages by the column index takes empty bounds for real
// ones and finds nothing: Spark and Trino do. So sealed columns have no column
// index at all, and every chunk has an offset index.
func TestSealedColumnsHaveNoColumnIndex(t *testing.T) {
	f, err := Open(encode(t, turnRows(3000), nil))
	if err != nil {
		t.Fatal(err)
	}
	for j := range f.leaves {
		chunk, c := &f.meta.RowGroups[0].Columns[j], &columns[f.leaves[j].column]
		if got := chunk.ColumnIndexOffset != 0; got == c.unbounded() {
			t.Errorf("%s: column index %v", c.name, got)
		}
		if chunk.OffsetIndexOffset == 0 {
			t.Errorf("%s: no offset index", c.name)
		}
	}
}

// This is the fault that seal mends. When the test fails, parquet-go has mended
// it, and seal can go.
func TestParquetGoIndexesSkippedBounds(t *testing.T) {
	object := foreign(t, turnRows(32), formatGroup(), sealing()...)
	f, err := pq.OpenFile(bytes.NewReader(object), int64(len(object)))
	if err != nil {
		t.Fatal(err)
	}
	x := columnIndexOf(f, "user_id")
	if x == nil || len(x.MaxValues) != 1 || len(x.MaxValues[0]) != 0 || x.NullPages[0] {
		t.Errorf("column index of user_id is %+v: no page of values with empty bounds", x)
	}
}

func columnIndexOf(f *pq.File, name string) *format.ColumnIndex {
	for j, c := range f.Metadata().RowGroups[0].Columns {
		if c.MetaData.PathInSchema[0] == name {
			return &f.ColumnIndexes()[j]
		}
	}
	return nil
}

// Bounds are cut at 64 bytes in the column index, and longer ones are left out
// of the footer, so that an id of a kilobyte is not paid for four times.
func TestLongBoundsAreLeftOut(t *testing.T) {
	long := strings.Repeat("long", 250)
	for _, ids := range [][]string{{long, long}, {"a", long}, {long, "z"}} {
		rows := turnRows(2)
		for i := range rows {
			rows[i].SessionID = audit.Str(ids[i])
		}
		object := encode(t, rows, nil)
		if n := bytes.Count(outsidePages(t, object), []byte(strings.Repeat("long", 17))); n != 0 {
			t.Errorf("a bound of more than 64 bytes stands %d times outside pages", n)
		}
		sameRows(t, readAll(t, object), rows)
	}
}

// footerOf returns the footer of an object to be changed, and what is before it.
func footerOf(t testing.TB, object []byte) (*format.FileMetaData, []byte) {
	t.Helper()
	raw, err := splitFooter(object, int64(len(object)))
	if err != nil {
		t.Fatal(err)
	}
	meta := new(format.FileMetaData)
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), raw, meta); err != nil {
		t.Fatal(err)
	}
	return meta, bytes.Clone(object[:len(object)-len(raw)-trailerSize])
}

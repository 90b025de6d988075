package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// The least and the greatest time that the format can hold in years of four
// digits: 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z, in microseconds.
const (
	firstTime = -62_135_596_800_000_000
	lastTime  = 253_402_300_799_999_999
)

// oddTexts are texts that some library or other stumbles over.
var oddTexts = []string{
	"", " ", "\x00", "a\x00b", "null", "NULL", "\n", "\r\n", `"`, `\`, "'", ",", "🦆", "e\u0301", "\u00e9", "\ufeffbom",
	"\u202eright to left", "\U0010FFFF", "a very long one: " + strings.Repeat("x", 300),
}

// A rowMaker makes rows in which any column that may be null is so at times.
type rowMaker struct {
	*rand.Rand
	nulls float64
}

func newRowMaker(seed uint64) rowMaker {
	return rowMaker{Rand: rand.New(rand.NewPCG(seed, 7)), nulls: 0.3}
}

func (m rowMaker) rows(n int) []chain.Row {
	rows := make([]chain.Row, n)
	for i := range rows {
		m.fill(&rows[i])
	}
	return rows
}

func (m rowMaker) fill(r *chain.Row) {
	for i := range columns {
		c := &columns[i]
		if !c.required && m.Float64() < m.nulls {
			continue
		}
		switch {
		case c.text != nil:
			*c.text(r) = audit.Str(m.text())
		case c.slot != nil:
			*c.slot(r) = []byte(m.text())
		case c.num != nil:
			*c.num(r) = audit.I64(m.num(c.kind))
		case c.hash != nil:
			*c.hash(r) = m.hash()
		case c.null != nil:
			*c.null(r) = chain.NullHash{Hash: m.hash(), Valid: true}
		case c.list != nil:
			*c.list(r) = m.list()
		}
	}
	if m.IntN(2) == 0 {
		r.Slots[audit.SlotRaw] = []byte{0xFF, 0xFE, byte(m.Uint32())}
	}
}

func (m rowMaker) text() string {
	if m.IntN(2) == 0 {
		return oddTexts[m.IntN(len(oddTexts))]
	}
	return fmt.Sprintf(`{"n":%d}`, m.IntN(100))
}

func (m rowMaker) num(k kind) int64 {
	switch k {
	case kindInt32:
		return []int64{math.MinInt32, -1, 0, 1, math.MaxInt32}[m.IntN(5)]
	case kindTime:
		return []int64{firstTime, -1, 0, 1_779_000_000_123_456, lastTime}[m.IntN(5)]
	default:
		return []int64{math.MinInt64, -1, 0, int64(m.IntN(1000)), math.MaxInt64}[m.IntN(5)]
	}
}

func (m rowMaker) hash() (h chain.Hash) {
	for i := 0; i < len(h); i += 8 {
		binary.LittleEndian.PutUint64(h[i:], m.Uint64())
	}
	return h
}

func (m rowMaker) list() []string {
	list := []string{}
	for range m.IntN(4) {
		list = append(list, m.text())
	}
	return list
}

// readAll returns copies of all rows of an object.
func readAll(t testing.TB, object []byte) []chain.Row {
	t.Helper()
	f, err := Open(object)
	if err != nil {
		t.Fatal(err)
	}
	var rows []chain.Row
	for r, err := range f.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, *r)
	}
	return rows
}

func encode(t testing.TB, rows []chain.Row, metadata []byte) []byte {
	t.Helper()
	object, err := NewEncoder().Encode(rows, metadata)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func sameRows(t testing.TB, got, want []chain.Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		if name := firstDifference(&got[i], &want[i]); name != "" {
			t.Fatalf("row %d: column %s differs", i, name)
		}
	}
}

// firstDifference returns the name of the first column in which two rows
// differ. nil and empty differ.
func firstDifference(a, b *chain.Row) string {
	for i := range columns {
		if !columns[i].same(a, b) {
			return columns[i].name
		}
	}
	return ""
}

func (c *column) same(a, b *chain.Row) bool {
	switch {
	case c.text != nil:
		return *c.text(a) == *c.text(b)
	case c.slot != nil:
		s, t := *c.slot(a), *c.slot(b)
		return bytes.Equal(s, t) && (s == nil) == (t == nil)
	case c.num != nil:
		return *c.num(a) == *c.num(b)
	case c.hash != nil:
		return *c.hash(a) == *c.hash(b)
	case c.null != nil:
		return *c.null(a) == *c.null(b)
	default:
		s, t := *c.list(a), *c.list(b)
		return slices.Equal(s, t) && (s == nil) == (t == nil)
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
		if err := CheckLayout(object); err != nil {
			t.Errorf("%d rows: %v", n, err)
		}
		sameRows(t, readAll(t, object), rows)
		f, err := Open(object)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := f.Metadata(); !ok || string(got) != `{"n":1}` {
			t.Errorf("%d rows: metadata %q, %v", n, got, ok)
		}
		if f.NumRows() != int64(n) {
			t.Errorf("NumRows %d, want %d", f.NumRows(), n)
		}
	}
}

// Columns that are null in every row, and columns that never are.
func TestNullsEverywhereAndNowhere(t *testing.T) {
	for _, nulls := range []float64{0, 1} {
		m := newRowMaker(4)
		m.nulls = nulls
		rows := m.rows(200)
		if nulls == 1 {
			for i := range rows {
				rows[i].Slots[audit.SlotRaw] = nil
			}
		}
		sameRows(t, readAll(t, encode(t, rows, nil)), rows)
	}
}

// A list is null, empty, or has elements, of which any may be empty: four
// things, and a row that is next to another kind of list does not change.
func TestLists(t *testing.T) {
	kinds := [][]string{nil, {}, {""}, {"a"}, {"", ""}, {"a", "", "c"}, slices.Repeat([]string{"many"}, 5000)}
	rows := turnRows(3 * len(kinds) * len(kinds))
	for i := range rows {
		rows[i].FallbackChain = kinds[i/3%len(kinds)]
		if i%2 == 0 {
			rows[i].FallbackChain = kinds[i/len(kinds)%len(kinds)]
		}
	}
	sameRows(t, readAll(t, encode(t, rows, nil)), rows)
}

// Of text, empty is not null, and nothing is trimmed, folded or normalised.
func TestTexts(t *testing.T) {
	all := append([]string{strings.Repeat("🦆", 1<<18)}, oddTexts...)
	rows := turnRows(len(all))
	for i, s := range all {
		for j := range columns {
			switch c := &columns[j]; {
			case c.text != nil:
				*c.text(&rows[i]) = audit.Str(s)
			case c.slot != nil:
				*c.slot(&rows[i]) = []byte(s)
			}
		}
	}
	sameRows(t, readAll(t, encode(t, rows, nil)), rows)
}

// Select fills the named columns alone, and does not touch the pages of others:
// they may be damaged.
func TestSelect(t *testing.T) {
	rows := newRowMaker(11).rows(300)
	object := encode(t, rows, nil)
	names := []string{"seq", "turn_id", "fallback_chain", "raw", "user_commit"}
	breakOthers(t, object, names)
	f, err := Open(object)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for r, err := range f.Select(names...) {
		if err != nil {
			t.Fatal(err)
		}
		var want chain.Row
		for _, name := range names {
			columns[columnByName[name]].copyTo(&want, &rows[i])
		}
		if name := firstDifference(r, &want); name != "" {
			t.Fatalf("row %d: column %s differs", i, name)
		}
		i++
	}
	if i != len(rows) {
		t.Errorf("%d rows, want %d", i, len(rows))
	}
	for _, err := range f.Rows() {
		if err == nil {
			t.Error("Rows did not see the damage")
		}
		break
	}
}

// breakOthers overwrites the pages of all columns but the named.
func breakOthers(t *testing.T, object []byte, names []string) {
	t.Helper()
	meta, _ := footerOf(t, object)
	for _, c := range meta.RowGroups[0].Columns {
		if slices.Contains(names, c.MetaData.PathInSchema[0]) {
			continue
		}
		from := chunkStart(&c.MetaData)
		for i := from; i < from+c.MetaData.TotalCompressedSize; i++ {
			object[i] = 0xFF
		}
	}
}

func (c *column) copyTo(to, from *chain.Row) {
	switch {
	case c.text != nil:
		*c.text(to) = *c.text(from)
	case c.slot != nil:
		*c.slot(to) = *c.slot(from)
	case c.num != nil:
		*c.num(to) = *c.num(from)
	case c.hash != nil:
		*c.hash(to) = *c.hash(from)
	case c.null != nil:
		*c.null(to) = *c.null(from)
	default:
		*c.list(to) = *c.list(from)
	}
}

func TestSelectOfNoColumnOfTheFormat(t *testing.T) {
	f, err := Open(encode(t, turnRows(1), nil))
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range f.Select("seq", "sequel") {
		if r != nil || err == nil {
			t.Errorf("%v, %v: want an error", r, err)
		}
	}
}

// Slots may be appended to: what follows in a page's memory is not theirs.
func TestSlotsDoNotTouchEachOther(t *testing.T) {
	rows := turnRows(100)
	got := readAll(t, encode(t, rows, nil))
	for i := range got {
		for s := range got[i].Slots {
			got[i].Slots[s] = append(got[i].Slots[s], "overwritten"...)
		}
	}
	for i := range got {
		for s := range got[i].Slots {
			want := append(bytes.Clone(rows[i].Slots[s]), "overwritten"...)
			if !bytes.Equal(got[i].Slots[s], want) {
				t.Fatalf("row %d: slot %v is %q, want %q", i, audit.Slot(s), got[i].Slots[s], want)
			}
		}
	}
}

// A loop may end early, begin again, and run beside others.
func TestFileIsReadByMany(t *testing.T) {
	rows := turnRows(500)
	f, err := Open(encode(t, rows, nil))
	if err != nil {
		t.Fatal(err)
	}
	for range f.Rows() {
		break
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			i := 0
			for r, err := range f.Rows() {
				if err != nil || firstDifference(r, &rows[i]) != "" {
					t.Errorf("row %d: %v", i, err)
					return
				}
				i++
			}
		})
	}
	all.Wait()
}

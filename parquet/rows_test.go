package parquet

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
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

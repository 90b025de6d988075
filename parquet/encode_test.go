package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A row that could not be read by everybody is refused, and named.
func TestEncodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*chain.Row)
		column string
		reason string
	}{
		"no tenant":               {func(r *chain.Row) { r.TenantID = audit.Text{} }, "tenant_id", reasonNull},
		"no seq":                  {func(r *chain.Row) { r.Seq = audit.Int{} }, "seq", reasonNull},
		"no epoch":                {func(r *chain.Row) { r.Epoch = audit.Int{} }, "epoch", reasonNull},
		"partition of 33 bits":    {func(r *chain.Row) { r.Partition = audit.I64(math.MaxInt32 + 1) }, "partition", reasonRange},
		"version below 32 bits":   {func(r *chain.Row) { r.AuditRecordVersion = audit.I64(math.MinInt32 - 1) }, "audit_record_version", reasonRange},
		"a value of a gigabyte":   {func(r *chain.Row) { r.Slots[audit.SlotRaw] = make([]byte, maxValue+1) }, "raw", reasonLong},
		"bad UTF-8 in an id":      {func(r *chain.Row) { r.TurnID = audit.Str("a\xffb") }, "turn_id", reasonUTF8},
		"bad UTF-8 in a name":     {func(r *chain.Row) { r.ToolName = audit.Str("\xc3") }, "tool_name", reasonUTF8},
		"surrogate in a slot":     {func(r *chain.Row) { r.Slots[audit.SlotExt] = []byte("\xed\xa0\x80") }, "ext", reasonUTF8},
		"bad UTF-8 in a list":     {func(r *chain.Row) { r.FallbackChain = []string{"ok", "\x80"} }, "fallback_chain", reasonUTF8},
		"bad UTF-8 in a user":     {func(r *chain.Row) { r.UserID = audit.Str("\xfe") }, "user_id", reasonUTF8},
		"bad UTF-8 in a residual": {func(r *chain.Row) { r.Residual = audit.Str("\xfe") }, "residual", reasonUTF8},
	} {
		t.Run(name, func(t *testing.T) {
			rows := turnRows(300)
			c.change(&rows[271])
			_, err := NewEncoder().Encode(rows, nil)
			want := RowError{Row: 271, Column: c.column, Reason: c.reason}
			if got := new(RowError); !errors.As(err, &got) || *got != want {
				t.Errorf("%v, want %v", err, &want)
			}
			if want := "row 271: column " + c.column + ": " + c.reason; err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// Bytes that are not UTF-8 may stand in raw alone.
func TestRawIsBinary(t *testing.T) {
	rows := turnRows(1)
	rows[0].Slots[audit.SlotRaw] = []byte{0, 0xFF, 0xC3, '\n'}
	sameRows(t, readAll(t, encode(t, rows, nil)), rows)
}

// Equal rows are equal bytes: segments of two writers are compared by their
// hash. So what an Encoder has written before must not show, nor a row that it
// has refused.
func TestEncodeIsDeterministic(t *testing.T) {
	rows := newRowMaker(5).rows(200)
	want := encode(t, rows, []byte(`{"a":1}`))
	refused := turnRows(40)
	refused[39].Seq = audit.Int{}

	e := NewEncoder()
	for i, before := range [][]chain.Row{nil, {}, turnRows(1), newRowMaker(6).rows(3000), refused, turnRows(2048), rows} {
		_, _ = e.Encode(before, []byte(strings.Repeat("m", i)))
		got, err := e.Encode(rows, []byte(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("object %d differs from the one of a new Encoder", i)
		}
	}
}

// Rows that lie apart make the same object as rows side by side.
func TestEncodeRefs(t *testing.T) {
	rows := newRowMaker(12).rows(100)
	got, err := NewEncoder().EncodeRefs(refs(rows), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, encode(t, rows, []byte("{}"))) {
		t.Error("another object")
	}
}

// An object is the caller's own: the next one does not change it.
func TestEncodeGivesTheObjectAway(t *testing.T) {
	e := NewEncoder()
	first, err := e.Encode(turnRows(50), nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := bytes.Clone(first)
	if _, err := e.Encode(newRowMaker(8).rows(50), nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, kept) {
		t.Error("the next object was written over this one")
	}
}

// An Encoder keeps no row alive: a batch may be most of a process's memory.
func TestEncoderForgetsRows(t *testing.T) {
	e, rows := NewEncoder(), turnRows(40)
	slot := &rows[39].Slots[audit.SlotDecision][0]
	first := weak.Make(slot)
	if _, err := e.Encode(rows, nil); err != nil {
		t.Fatal(err)
	}
	rows, slot = nil, nil
	runtime.GC()
	if first.Value() != nil {
		t.Error("a slot is still held")
	}
	runtime.KeepAlive(e)
}

// Large values and many rows: row groups end at 32 MiB, pages at some 64 KiB,
// and a value may be larger than either.
func TestLargeObjects(t *testing.T) {
	rows := newRowMaker(3).rows(40)
	for i := range rows {
		rows[i].Slots[audit.SlotContext] = bytes.Repeat([]byte{'a' + byte(i%26)}, 1<<20)
	}
	rows[7].Slots[audit.SlotRaw] = bytes.Repeat([]byte{0xFF, 1, 2}, 16<<20/3)
	object := encode(t, rows, nil)
	if err := CheckLayout(object); err != nil {
		t.Error(err)
	}
	f, err := Open(object)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.meta.RowGroups); n != 2 {
		t.Errorf("%d row groups, want 2", n)
	}
	sameRows(t, readAll(t, object), rows)
}

func TestManyRows(t *testing.T) {
	if testing.Short() {
		t.Skip("50,000 rows")
	}
	rows := turnRows(50_000)
	object := encode(t, rows, nil)
	if err := CheckLayout(object); err != nil {
		t.Error(err)
	}
	sameRows(t, readAll(t, object), rows)
}

// TestGroupLength pins where row groups end, without the rows that it takes.
func TestGroupLength(t *testing.T) {
	small, large := make([]chain.Row, 70_000), make([]chain.Row, 5)
	for i := range large {
		large[i].Slots[audit.SlotRaw] = make([]byte, maxGroupBytes/2)
	}
	for name, c := range map[string]struct {
		rows []chain.Row
		want int
	}{
		"none":  {nil, 0},
		"few":   {small[:100], 100},
		"small": {small, maxGroupBytes/500 + 1},
		"large": {large, 2},
	} {
		if got := NewDataWriter(DataOptions{}).fitting(refs(c.rows)); got != c.want {
			t.Errorf("%s: %d rows, want %d", name, got, c.want)
		}
	}
}

// Allocations are counted, for they are paid for with every row: of an object a
// handful, however many rows it has.
func TestEncodeAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, c := range []struct {
		rows int
		most float64 // allocations a row
	}{{32, 1}, {2048, 0.02}} {
		e, rows := NewEncoder(), turnRows(c.rows)
		allocs := testing.AllocsPerRun(5, func() {
			if _, err := e.Encode(rows, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		})
		if got := allocs / float64(c.rows); got > c.most {
			t.Errorf("%d rows: %.2f allocations a row, want %v at most", c.rows, got, c.most)
		}
	}
}

// An idle Encoder is cheap to hold: most of it are open pages, one of each column,
// and one that has written more is emptied.
func TestIdleEncoderIsSmall(t *testing.T) {
	for _, c := range []struct{ rows, most int }{{32, 256 << 10}, {2048, 2560 << 10}, {20_000, 64 << 10}} {
		rows := turnRows(c.rows)
		before := heap()
		e := NewEncoder()
		if _, err := e.Encode(rows, nil); err != nil {
			t.Fatal(err)
		}
		got := int(heap() - before)
		runtime.KeepAlive(e)
		runtime.KeepAlive(rows)
		if got > c.most {
			t.Errorf("after %d rows an Encoder holds %d KiB, want %d at most", c.rows, got>>10, c.most>>10)
		}
		t.Logf("after %d rows an Encoder holds %d KiB", c.rows, got>>10)
	}
}

// allocated returns how many bytes were ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first empties pools, the second frees what was in them
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func ExampleEncoder() {
	row := chain.Row{Record: audit.Record{
		TenantID: audit.Str("acme"), Topic: audit.Str("audit.calls"), TopicID: audit.Str("kTq2VqYJQ0mFvY8v2b3m0A"),
		Partition: audit.I64(0), Epoch: audit.I64(0), Seq: audit.I64(7), ArchivedAt: audit.I64(0), Kind: audit.Str(audit.KindCall),
	}}
	object, err := NewEncoder().Encode([]chain.Row{row}, []byte(`{"rows":1}`))
	if err != nil {
		panic(err)
	}
	f, err := Open(object)
	if err != nil {
		panic(err)
	}
	for r, err := range f.Select("tenant_id", "seq") {
		fmt.Println(r.TenantID.S, r.Seq.N, err)
	}
	// Output: acme 7 <nil>
}

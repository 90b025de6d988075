package parquet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A counter is an object that counts what is read of it.
type counter struct {
	object         []byte
	mu             sync.Mutex
	gets           int
	bytes, largest int64
}

func (c *counter) get(_ context.Context, offset, n int64) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if offset < 0 || n <= 0 || offset+n > int64(len(c.object)) {
		return nil, fmt.Errorf("%d bytes at %d of %d", n, offset, len(c.object))
	}
	c.gets, c.bytes, c.largest = c.gets+1, c.bytes+n, max(c.largest, n)
	return append([]byte(nil), c.object[offset:offset+n]...), nil
}

func openRemote(t testing.TB, object []byte) (*Remote, *counter) {
	t.Helper()
	c := &counter{object: object}
	r, err := OpenRemote(t.Context(), int64(len(object)), c.get)
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

// find returns copies of the rows that are found.
func find(t testing.TB, r *Remote, any ...Match) (rows []chain.Row) {
	t.Helper()
	for row, err := range r.Find(t.Context(), any...) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, *row)
	}
	return rows
}

// meant returns those rows that matches mean.
func meant(rows []chain.Row, any ...Match) (all []chain.Row) {
	for i := range rows {
		for _, m := range any {
			if m.holds(&rows[i]) {
				all = append(all, rows[i])
				break
			}
		}
	}
	return all
}

// sameFound looks up rows from afar and in all that there are.
func sameFound(t testing.TB, object []byte, rows []chain.Row, any ...Match) *counter {
	t.Helper()
	want := meant(rows, any...)
	r, c := openRemote(t, object)
	sameRows(t, find(t, r, any...), want)
	spent := &counter{gets: c.gets, bytes: c.bytes, largest: c.largest}
	// And where the end that was read has nothing but the footer.
	r.tail = part{at: r.file.end, bytes: r.tail.bytes[r.file.end-r.tail.at:]}
	sameRows(t, find(t, r, any...), want)
	return spent
}

// oddMatches mean rows of a rowMaker in every way there is.
func oddMatches(m rowMaker, rows []chain.Row) (all [][]Match) {
	one := func(match ...Cond) { all = append(all, []Match{match}) }
	one()
	for i := range columns {
		c := &columns[i]
		if c.text == nil && c.num == nil {
			continue
		}
		one(Null(c.name))
		r := &rows[m.IntN(len(rows))]
		if c.text != nil {
			one(Is(c.name, c.text(r).S, "absent"))
			one(Is(c.name, "nowhere"))
			continue
		}
		one(Between(c.name, c.num(r).N, c.num(r).N))
		one(OneOf(c.name, c.num(r).N, 12345, -7))
		one(Between(c.name, -5, 500), Is("kind", rows[0].Kind.S))
	}
	return append(all,
		nil,
		[]Match{{Is("user_id", rows[0].UserID.S)}, {Is("kind", rows[1].Kind.S)}},
		[]Match{{Is("turn_id", rows[2].TurnID.S), Is("session_id", rows[2].SessionID.S)}, {Null("created_at"), Between("kafka_timestamp", 0, 1<<60)}, {}},
	)
}

// Whatever is asked of whatever rows, it is answered as by one who reads them all.
func TestRemoteFindsWhatIsThere(t *testing.T) {
	for seed, n := range []int{3, 4, 65, 700, 2500} {
		m := newRowMaker(uint64(seed))
		m.nulls = []float64{0.3, 1, 0, 0.9, 0.5}[seed]
		rows := m.rows(n)
		for name, object := range map[string][]byte{
			"data file": dataFile(t, NewDataWriter(DataOptions{GroupRows: 700}), rows, 64, "{}"),
			"segment":   encode(t, rows, []byte("{}")),
		} {
			for i, any := range oddMatches(m, rows) {
				t.Run(fmt.Sprintf("%d %s %d", n, name, i), func(t *testing.T) { sameFound(t, object, rows, any...) })
			}
		}
	}
}

// agentRows makes rows of turns, five rows each, whose ids come in an order of
// their own or in none.
func agentRows(n int, ordered bool) []chain.Row {
	rows := turnRows(n)
	for i := range rows {
		turn, session := uint32(i/5), uint32(i/20)
		if !ordered {
			turn, session = turn*2654435761, session*2654435761
		}
		rows[i].TurnID, rows[i].SessionID = audit.Str(fmt.Sprintf("t-%08x", turn)), audit.Str(fmt.Sprintf("s-%08x", session))
	}
	return rows
}

// fatten gives a slot of every row n bytes that hardly compress.
func fatten(rows []chain.Row, slot audit.Slot, n int) []chain.Row {
	m := newRowMaker(11)
	for i := range rows {
		b := make([]byte, 0, n)
		for len(b) < n {
			h := m.hash()
			b = append(b, h[:]...)
		}
		for j := range b {
			b[j] &= 0x7F
		}
		rows[i].Slots[slot] = b
	}
	return rows
}

// An object without the turn takes two gets, and one with it six more and 16 MiB,
// whether its rows lie in one row group or in two, and whatever lies between them.
func TestRemoteKeepsItsLimits(t *testing.T) {
	for name, c := range map[string]struct {
		o    DataOptions
		rows []chain.Row
		meta int // bytes
	}{
		"ids in order":          {DataOptions{GroupBytes: 8 << 20}, agentRows(12_000, true), 2},
		"ids in none":           {DataOptions{}, agentRows(30_000, false), 2},
		"many groups":           {DataOptions{GroupRows: 3001}, agentRows(10_000, false), 2},
		"long rows":             {DataOptions{}, fatten(agentRows(12_000, false), audit.SlotContext, 5000), 2},
		"prompts":               {DataOptions{}, fatten(fatten(agentRows(1600, false), audit.SlotRaw, 20_000), audit.SlotExt, 20_000), 2},
		"turns of 9 MiB":        {DataOptions{}, fatten(agentRows(40, false), audit.SlotRaw, 1800<<10), 2},
		"a footer beyond a get": {DataOptions{GroupRows: 1001}, agentRows(2500, false), 300_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := dataFile(t, NewDataWriter(c.o), c.rows, 64, strings.Repeat("x", c.meta))
			f, err := Open(object)
			if err != nil {
				t.Fatal(err)
			}
			border := int(f.meta.RowGroups[0].NumRows) - 1
			if border+1 == len(c.rows) {
				t.Fatal("one row group")
			}
			doubts, asked := 0, 20
			if raceEnabled {
				asked = 3
			}
			for i := range asked {
				row := &c.rows[(i*len(c.rows)/asked+border)%len(c.rows)]
				found := sameFound(t, object, c.rows, Match{Is("turn_id", row.TurnID.S), Is("session_id", row.SessionID.S)})
				if found.gets > 8 || found.bytes > mostBytes {
					t.Errorf("turn of row %d: %d gets of %d bytes", row.Seq.N, found.gets, found.bytes)
				}
				if sameFound(t, object, c.rows, Match{Is("turn_id", row.TurnID.S+"0")}).gets > 2 {
					doubts++
				}
			}
			if doubts > 1 {
				t.Errorf("%d of %d turns that are not there take more than 2 gets", doubts, asked)
			}
		})
	}
}

// Rows that lie everywhere are found in gets of no more than 16 MiB, in order.
func TestRemoteFindsScatteredRows(t *testing.T) {
	rows := fatten(agentRows(7000, false), audit.SlotContext, 8000)
	for i := range rows {
		if i%49 == 0 {
			rows[i].TurnID = audit.Str("everywhere")
		}
	}
	object := dataFile(t, NewDataWriter(DataOptions{GroupRows: 1000}), rows, 64, "{}")
	for name, any := range map[string][]Match{
		"a turn":    {{Is("turn_id", "everywhere")}},
		"seqs":      {{OneOf("seq", 3, 6999, 2000, 1999, 3)}},
		"times":     {{Between("created_at", rows[500].CreatedAt.N, rows[5000].CreatedAt.N), Is("kind", audit.KindCall)}},
		"all":       {{}},
		"overlaps":  {{Between("seq", 10, 100)}, {Between("seq", 50, 150)}, {Is("turn_id", rows[60].TurnID.S)}},
		"no column": {{Is("user_id", rows[7].UserID.S)}, {Is("kind", audit.KindRejected)}},
	} {
		c := sameFound(t, object, rows, any...)
		if c.largest > mostBytes || c.gets > 60 {
			t.Errorf("%s: %d gets of %d bytes, one of them of %d", name, c.gets, c.bytes, c.largest)
		}
	}
	// Who has enough reads no more.
	r, c := openRemote(t, object)
	for range r.Find(t.Context(), Match{}) {
		break
	}
	if c.bytes > int64(len(object))/3 {
		t.Errorf("the first row took %d of %d bytes", c.bytes, len(object))
	}
}

func TestRemoteSaysWhatItHas(t *testing.T) {
	rows := agentRows(2500, true)
	rows[7].RecordID, rows[9].RecordID = audit.Text{}, audit.Text{}
	r, c := openRemote(t, dataFile(t, NewDataWriter(DataOptions{GroupRows: 1000}), rows, 64, `{"n":1}`))
	low, high, nulls, ok := r.Bounds("record_id")
	want := [2]string{rows[0].RecordID.S, rows[0].RecordID.S}
	for i := range rows {
		if v := rows[i].RecordID; v.Valid {
			want[0], want[1] = min(want[0], v.S), max(want[1], v.S)
		}
	}
	if low != want[0] || high != want[1] || nulls != 2 || !ok {
		t.Errorf("bounds %q, %q, %d nulls, %v; want %q", low, high, nulls, ok, want)
	}
	if _, _, _, ok := r.Bounds("user_id"); ok {
		t.Error("a sealed column has bounds")
	}
	if meta, ok := r.Metadata(); string(meta) != `{"n":1}` || !ok || r.NumRows() != 2500 || c.gets != 1 {
		t.Errorf("%q, %d rows in %d gets", meta, r.NumRows(), c.gets)
	}
}

// An error of the getter is no fault of the object, and the other way round.
func TestRemoteErrors(t *testing.T) {
	object := dataFile(t, NewDataWriter(DataOptions{}), agentRows(9000, false), 64, "{}")
	size, down := int64(len(object)), errors.New("down")
	broken := func(context.Context, int64, int64) ([]byte, error) { return nil, down }
	short := func(_ context.Context, offset, n int64) ([]byte, error) { return object[offset:][:n-1], nil }
	if _, err := OpenRemote(t.Context(), size, broken); !errors.Is(err, down) || errors.Is(err, ErrMalformed) {
		t.Errorf("OpenRemote: %v, want the getter's", err)
	}
	if _, err := OpenRemote(t.Context(), size, short); !errors.Is(err, ErrMalformed) {
		t.Errorf("OpenRemote of less than was asked for: %v", err)
	}
	for _, wrong := range []int64{-1, 0, 11, size - 1} {
		if _, err := OpenRemote(t.Context(), wrong, (&counter{object: object}).get); !errors.Is(err, ErrMalformed) {
			t.Errorf("OpenRemote of %d bytes: %v", wrong, err)
		}
	}
	r, _ := openRemote(t, object)
	for _, c := range []struct {
		get   Getter
		match Match
		want  error
		not   error
	}{
		{broken, Match{}, down, ErrMalformed},
		{short, Match{}, ErrMalformed, down},
		{broken, Match{Is("no such column", "x")}, nil, ErrMalformed},
		{broken, Match{Is("seq", "1")}, nil, ErrMalformed},
		{broken, Match{Between("turn_id", 1, 2)}, nil, ErrMalformed},
		{broken, Match{Null("row_hash")}, nil, ErrMalformed},
	} {
		r.get = c.get
		n := 0
		for row, err := range r.Find(t.Context(), c.match) {
			if n++; err == nil || row != nil || c.want != nil && !errors.Is(err, c.want) || errors.Is(err, c.not) {
				t.Errorf("%v, want %v and not %v", err, c.want, c.not)
			}
		}
		if n != 1 {
			t.Errorf("%d steps, want the error alone", n)
		}
	}
}

// What the format leaves to other writers is found as well, or read whole.
func TestRemoteOfOtherWriters(t *testing.T) {
	rows := newRowMaker(2).rows(300)
	whole := 0
	for name, object := range layoutChoices(t, rows) {
		r, _ := openRemote(t, object)
		all := readAll(t, object)
		for _, any := range [][]Match{{{}}, {{Is("kind", rows[0].Kind.S)}}, {{Between("seq", 0, 500)}}, {{Null("turn_id")}}} {
			var got []chain.Row
			var last error
			for row, err := range r.Find(t.Context(), any...) {
				if last = err; err == nil {
					got = append(got, *row)
				}
			}
			switch {
			case errors.Is(last, ErrWhole):
				whole++
			case last != nil:
				t.Errorf("%s: %v", name, last)
			default:
				sameRows(t, got, meant(all, any...))
			}
		}
	}
	if whole == 0 || whole > 20 {
		t.Errorf("%d look-ups are for whole reading", whole)
	}
}

// An offset index that is not that of the pages is found out.
func TestRemoteOfWrongIndexes(t *testing.T) {
	object := encode(t, turnRows(10_000), []byte("{}")) // seq has two pages, partition one
	partition, seq := columnByName["partition"], columnByName["seq"]
	for name, change := range map[string]func(all []format.ColumnChunk){
		"of more pages":  func(all []format.ColumnChunk) { copyIndex(&all[partition], &all[seq]) },
		"of fewer pages": func(all []format.ColumnChunk) { copyIndex(&all[seq], &all[partition]) },
		"of another":     func(all []format.ColumnChunk) { copyIndex(&all[seq], &all[seq+1]) },
		"beyond the end": func(all []format.ColumnChunk) { all[seq].OffsetIndexOffset = 1 << 40 },
		"before it":      func(all []format.ColumnChunk) { all[seq].OffsetIndexOffset = -5 },
		"cut":            func(all []format.ColumnChunk) { all[seq].OffsetIndexLength-- },
		"of bounds":      func(all []format.ColumnChunk) { all[seq].ColumnIndexLength-- },
		"a filter":       func(all []format.ColumnChunk) { all[seq].MetaData.BloomFilterLength = 9 },
	} {
		meta, before := footerOf(t, object)
		change(meta.RowGroups[0].Columns)
		r, _ := openRemote(t, reFooter(t, before, meta))
		var last error
		for _, err := range r.Find(t.Context(), Match{Between("seq", 0, 9999)}) {
			last = err
		}
		if !errors.Is(last, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, last)
		}
	}
}

func copyIndex(to, from *format.ColumnChunk) {
	to.OffsetIndexOffset, to.OffsetIndexLength = from.OffsetIndexOffset, from.OffsetIndexLength
}

// Nothing that an object claims costs memory before it is there.
func TestRemoteAllocatesByWhatIsThere(t *testing.T) {
	object := encode(t, turnRows(50), []byte("{}"))
	for name, change := range map[string]func(m *format.FileMetaData){
		"rows": func(m *format.FileMetaData) {
			m.NumRows, m.RowGroups[0].NumRows = 1<<50, 1<<50
			for j := range m.RowGroups[0].Columns {
				c := &m.RowGroups[0].Columns[j]
				c.MetaData.NumValues, c.OffsetIndexLength = 1<<50, 0
			}
		},
		"nulls": func(m *format.FileMetaData) {
			m.NumRows, m.RowGroups[0].NumRows = 1<<50, 1<<50
			for j := range m.RowGroups[0].Columns {
				c := &m.RowGroups[0].Columns[j]
				c.MetaData.NumValues, c.MetaData.Statistics.NullCount = 1<<50, 1<<50
			}
		},
	} {
		meta, before := footerOf(t, object)
		change(meta)
		r, _ := openRemote(t, reFooter(t, before, meta))
		start := allocated()
		n, last := 0, error(nil)
		for _, err := range r.Find(t.Context(), Match{Null("turn_id")}, Match{Between("seq", 0, 1000)}) {
			n++
			last = err
		}
		if n != 1 || !errors.Is(last, ErrMalformed) {
			t.Errorf("%s: %d rows, %v", name, n, last)
		}
		if got := allocated() - start; got > 4<<20 {
			t.Errorf("%s: %d KiB allocated", name, got>>10)
		}
	}
}

// plan takes no more ranges than it may, and of these the least bytes.
func TestPlan(t *testing.T) {
	m := newRowMaker(5)
	for range 300 {
		var spans []Span
		at := int64(0)
		for range 1 + m.IntN(9) {
			at += int64(m.IntN(3 << 20))
			spans = append(spans, Span{Offset: at, Size: int64(1 + m.IntN(1000))})
			at += int64(m.IntN(1200)) // they may overlap
		}
		m.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
		most, limit := 1+m.IntN(4), int64(1+m.IntN(12<<20))
		got := plan(spans, most, limit)
		total := int64(0)
		for i, r := range got {
			if total += r.Size; i > 0 && r.Offset-got[i-1].end() <= smallGap {
				t.Errorf("ranges %v: a small gap", got)
			}
		}
		for _, s := range spans {
			if !slices.ContainsFunc(got, func(r Span) bool { return r.Offset <= s.Offset && s.end() <= r.end() }) {
				t.Fatalf("plan(%v) = %v misses %v", spans, got, s)
			}
		}
		if best := bestPlan(joined(spans, smallGap), most); len(got) <= most && total != best && total <= limit {
			t.Errorf("plan(%v, %d) = %v: %d bytes, want %d", spans, most, got, total, best)
		} else if len(got) > most && best <= limit {
			t.Errorf("plan(%v, %d) has %d ranges, and %d bytes would do", spans, most, len(got), best)
		}
	}
	if got := plan(nil, 1, 1); len(got) != 0 {
		t.Errorf("plan of nothing is %v", got)
	}
}

// bestPlan tries every way to cover spans by so many ranges.
func bestPlan(spans []Span, most int) int64 {
	if len(spans) == 0 {
		return 0
	}
	best := spans[len(spans)-1].end() - spans[0].Offset
	for i := 1; i < len(spans) && most > 1; i++ {
		best = min(best, spans[i-1].end()-spans[0].Offset+bestPlan(spans[i:], most-1))
	}
	return best
}

// Conditions hold as they say, at the ends of what numbers there are too.
func TestConditions(t *testing.T) {
	row := &chain.Row{}
	row.Seq, row.TurnID = audit.I64(math.MaxInt64), audit.Str("t")
	for _, c := range []struct {
		cond Cond
		want bool
	}{
		{Between("seq", math.MinInt64, math.MaxInt64), true},
		{Between("seq", math.MaxInt64, math.MaxInt64), true},
		{Between("seq", math.MinInt64, math.MaxInt64-1), false},
		{Between("seq", math.MaxInt64, 0), false},
		{OneOf("seq", 5, math.MaxInt64, -1), true},
		{OneOf("seq"), false},
		{Is("turn_id"), false},
		{Is("turn_id", "", "t"), true},
		{Is("session_id", ""), false},
		{Null("session_id"), true},
		{Null("turn_id"), false},
		{Null("kafka_offset"), true},
		{Between("kafka_offset", math.MinInt64, math.MaxInt64), false},
	} {
		if err := c.cond.check(); err != nil {
			t.Fatal(err)
		}
		if got := c.cond.holds(row); got != c.want {
			t.Errorf("%+v holds: %v", c.cond, got)
		}
	}
}

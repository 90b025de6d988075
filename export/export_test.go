package export_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// small returns an archive of two lines: one compacted in part, one not.
func small() (*prooftest.Archive, *prooftest.Line, *prooftest.Line) {
	a := prooftest.New()
	one, two := a.Line("audit.calls", 0), a.Line("audit.calls", 1)
	for range 4 {
		one.Segment(func(b *prooftest.Batch) {
			for range 10 {
				b.Call("acme")
				b.Call("other")
			}
			b.Reject("acme", audit.ReasonInvalidJSON, []byte(`{"userId":"user-1003"`))
		})
	}
	two.Segment(func(b *prooftest.Batch) {
		for range 10 {
			b.Call("acme")
		}
	})
	one.Anchor()
	two.Anchor()
	one.Compact(prooftest.Compaction{Watermark: 2})
	return a, one, two
}

func open(t *testing.T, src archive.Ranger, o export.Options) *export.Archive {
	t.Helper()
	a, err := export.Open(t.Context(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// names writes rows as LINE/TENANT/SEQ.
func names(rows []*export.Row) (all []string) {
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%d/%s/%d", r.Line.Partition, r.TenantID.S, r.Seq.N))
	}
	return all
}

func collect(t *testing.T, seq iter.Seq2[*export.Row, error]) (rows []*export.Row) {
	t.Helper()
	for row, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// What nobody has archived is an empty answer, and no error.
func TestWhatIsUnknownIsEmpty(t *testing.T) {
	a, _, _ := small()
	e, ctx := open(t, prooftest.Bucket(a.Objects()), export.Options{}), t.Context()
	for name, ask := range map[string]func() ([]*export.Row, error){
		"turn":            func() ([]*export.Row, error) { return e.Turn(ctx, "acme", "", "no-such-turn") },
		"turn of nobody":  func() ([]*export.Row, error) { return e.Turn(ctx, "nobody", "", "turn-0") },
		"turn of another": func() ([]*export.Row, error) { return e.Turn(ctx, "acme", "sess-9", "turn-0") },
		"session":         func() ([]*export.Row, error) { return e.Session(ctx, "acme", "no-such", export.Page{}) },
		"session, before": func() ([]*export.Row, error) {
			return e.Session(ctx, "acme", "sess-0", export.Page{Before: "00000000000000000000000000"})
		},
		"record":           func() ([]*export.Row, error) { return e.Record(ctx, "", "01KBCDEFGHJKMNPQRSTV999999") },
		"record, no ULID":  func() ([]*export.Row, error) { return e.Record(ctx, "", "x") },
		"seq":              func() ([]*export.Row, error) { return e.At(ctx, "acme", nil, 1000) },
		"range of nothing": func() ([]*export.Row, error) { return collect(t, e.Range(ctx, export.Range{To: time.Unix(0, 0)})), nil },
		"user":             func() ([]*export.Row, error) { return collect(t, e.Subject(ctx, "", "nobody-1")), nil },
		"line":             func() ([]*export.Row, error) { return collect(t, e.Rows(ctx, export.Scan{Tenant: "acme"})), nil },
	} {
		if rows, err := ask(); len(rows) > 0 || err != nil {
			t.Errorf("%s: %v, %v", name, names(rows), err)
		}
	}
}

// All queries over an archive of both levels find what a plain reading finds.
func TestQueriesFindWhatIsThere(t *testing.T) {
	a, one, two := small()
	e, ctx := open(t, prooftest.Bucket(a.Objects()), export.Options{}), t.Context()
	var all []*export.Row
	for _, l := range []*prooftest.Line{one, two} {
		for _, s := range l.Segments {
			for i := range s.Rows {
				all = append(all, &export.Row{Row: s.Rows[i], Line: l.Line})
			}
		}
	}
	want := func(match func(*chain.Row) bool) []string {
		var rows []*export.Row
		for _, r := range all {
			if match(&r.Row) {
				rows = append(rows, r)
			}
		}
		slices.SortFunc(rows, (*export.Row).Place)
		return names(rows)
	}
	check := func(name string, rows []*export.Row, err error, match func(*chain.Row) bool) {
		t.Helper()
		slices.SortFunc(rows, (*export.Row).Place)
		if got, want := names(rows), want(match); err != nil || !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, want)
		}
	}
	for _, turn := range []string{"turn-0", "turn-1", "turn-7"} {
		rows, err := e.Turn(ctx, "acme", "", turn)
		check(turn, rows, err, func(r *chain.Row) bool { return r.TenantID.S == "acme" && r.TurnID == audit.Str(turn) })
	}
	rows, err := e.Session(ctx, "acme", "sess-0", export.Page{Limit: 1000})
	check("session", rows, err, func(r *chain.Row) bool { return r.TenantID.S == "acme" && r.SessionID == audit.Str("sess-0") })
	rows, err = e.Record(ctx, "", "01kbcdefghjkmnpqrstv000003")
	check("record", rows, err, func(r *chain.Row) bool { return r.RecordID == audit.Str("01KBCDEFGHJKMNPQRSTV000003") })
	for _, seq := range []int64{0, 3, 9, 15, 38, 43} {
		rows, err = e.At(ctx, "acme", nil, seq)
		check(fmt.Sprint("seq ", seq), rows, err, func(r *chain.Row) bool { return r.TenantID.S == "acme" && r.Seq.N == seq })
	}
	check("range", collect(t, e.Range(ctx, export.Range{})), nil, func(*chain.Row) bool { return true })
	check("subject", collect(t, e.Subject(ctx, "", "user-1003")), nil, func(r *chain.Row) bool {
		return r.UserID == audit.Str("user-1003") || r.Kind.S == audit.KindRejected
	})
	check("rows", collect(t, e.Rows(ctx, export.Scan{Line: one.Line, Tenant: "acme", From: 7})), nil, func(r *chain.Row) bool {
		return r.Partition.N == 0 && r.TenantID.S == "acme" && r.Seq.N >= 7
	})
}

// A turn of several logs is one: by seqWithinTurn, whatever log a row is in. A row
// that repeats another is shown, and says so.
func TestATurnOfSeveralLogs(t *testing.T) {
	a := prooftest.New()
	row := func(b *prooftest.Batch, seq int64, createdAt int64) {
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.RedactionPolicy, r.TurnID = audit.Str(audit.KindCall), audit.Str(audit.PolicyNone), audit.Str("t")
			r.CreatedAt = audit.I64(createdAt)
			if seq >= 0 {
				r.SeqWithinTurn = audit.I64(seq)
			}
		})
	}
	calls, other := a.Line("audit.calls", 3), a.Line("audit.more", 0)
	calls.Segment(func(b *prooftest.Batch) { row(b, 3, 9); row(b, 1, 9); row(b, -1, 5); row(b, 1, 9) })
	other.Segment(func(b *prooftest.Batch) { row(b, 2, 1); row(b, 0, 9); row(b, -1, 4) })
	calls.Anchor()
	calls.Compact(prooftest.Compaction{Watermark: 1, Change: func(row *chain.Row) {
		if row.Seq.N == 3 {
			row.RepeatOf = audit.I64(1)
		}
	}})
	rows, err := open(t, prooftest.Bucket(a.Objects()), export.Options{}).Turn(t.Context(), "acme", "", "t")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.Topic.S, " ", r.Seq.N, " ", r.RepeatOf.Valid))
	}
	want := []string{
		"audit.more 1 false", "audit.calls 1 false", "audit.calls 3 true", "audit.more 0 false", "audit.calls 0 false", // 0, 1, 1, 2, 3
		"audit.more 2 false", "audit.calls 2 false", // those without, by their times
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// A range has the rows whose created_at is in it, however late they were archived;
// its end is not in it. Those without are placed by when they were archived.
func TestARangeHasLateRows(t *testing.T) {
	at := time.Date(2026, 5, 28, 20, 0, 0, 0, time.UTC)
	a := prooftest.New()
	row := func(b *prooftest.Batch, createdAt audit.Int) {
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.RedactionPolicy, r.CreatedAt = audit.Str(audit.KindCall), audit.Str(audit.PolicyNone), createdAt
		})
	}
	l := a.Line("audit.calls", 0)
	for range 2 { // both files and a segment
		l.Segment(func(b *prooftest.Batch) {
			row(b, audit.I64(at.UnixMicro()))
			row(b, audit.I64(at.UnixMicro()-1))
			row(b, audit.I64(at.Add(time.Hour).UnixMicro()-1))
			row(b, audit.I64(at.Add(time.Hour).UnixMicro()))
			row(b, audit.Int{}) // archived at 20:26
		})
		a.Later(40 * 24 * time.Hour)
	}
	l.Segment(func(b *prooftest.Batch) { row(b, audit.I64(at.UnixMicro())) })
	l.Anchor()
	l.Compact(prooftest.Compaction{Watermark: 2})
	e := open(t, prooftest.Bucket(a.Objects()), export.Options{})
	for _, c := range []struct {
		from, to time.Time
		want     string
		gets     int64 // of data files and segments
	}{
		{at, at.Add(time.Hour), "[0/acme/0 0/acme/2 0/acme/4 0/acme/5 0/acme/7 0/acme/10]", 3},
		{at.Add(time.Nanosecond), at.Add(time.Hour), "[0/acme/2 0/acme/4 0/acme/7]", 3},
		{at.Add(time.Hour), time.Time{}, "[0/acme/3 0/acme/8 0/acme/9]", 3},
		{time.Time{}, at, "[0/acme/1 0/acme/6]", 3},
		{at.Add(-time.Hour), at.Add(-time.Minute), "[]", 2}, // the file of the other day is not read
		{at.Add(80 * 24 * time.Hour), time.Time{}, "[]", 1},
	} {
		before := e.Cost()
		if got := fmt.Sprint(names(collect(t, e.Range(t.Context(), export.Range{From: c.from, To: c.to})))); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.from, c.to, got, c.want)
		}
		if n := e.Cost().Sub(before).Gets; n > c.gets+1 { // the end of the segment, once
			t.Errorf("%v to %v: %d GETs", c.from, c.to, n)
		}
	}
}

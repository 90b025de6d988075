package export_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// cutOff returns an archive of which acme's last row, in segment 1 of line 0, is
// gone, without a hole: as if the newest catalog were hidden, of which the segments
// are gone, or the newest segment. An anchor covers it.
func cutOff(compacted, signed bool) (*prooftest.Archive, *archive.Memory, *prooftest.Line) {
	a := prooftest.New()
	if signed {
		a.Signers = []*sign.Signer{key}
	}
	one, two := a.Line("audit.calls", 0), a.Line("audit.calls", 1)
	one.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex"); b.Call("acme") })
	one.Anchor()
	two.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	two.Anchor()
	if compacted {
		one.Compact(prooftest.Compaction{Watermark: 1})
	}
	one.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	one.Anchor()
	m := prooftest.Bucket(a.Objects())
	m.Remove(one.Key(1))
	return a, m, one
}

// Where a line ends in front of what its newest good anchor covers, every question
// to a log that lacks rows is answered with what there is and an error; others are
// answered as ever, and so are these once the rows are back.
func TestAnEndThatIsMissing(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		for _, signed := range []bool{false, true} {
			a, m, line := cutOff(compacted, signed)
			o := export.Options{}
			if signed {
				o.Keys = ring()
			}
			e := open(t, m, o)
			told := func(what string, rows []*export.Row, err error, want ...string) {
				t.Helper()
				if fmt.Sprint(names(rows)) != fmt.Sprint(want) || !errors.Is(err, export.ErrTampered) ||
					strings.Count(fmt.Sprint(err), `the log of tenant "acme" ends at seq 2, and anchor 1 (of 2026-`) != 1 || strings.Contains(fmt.Sprint(err), "globex") {
					t.Errorf("compacted %v, signed %v: %s: %v, %v", compacted, signed, what, names(rows), err)
				}
			}
			for what, ask := range asks(e, line, "acme") {
				rows, err := all(ask)
				slices.SortFunc(rows, (*export.Row).Place)
				want := []string{"0/acme/0", "0/acme/1", "1/acme/0"}
				switch what {
				case "rows":
					want = want[:2]
				case "subject":
					want = []string{"0/acme/0", "1/acme/0"}
				case "at 2", "no such record", "no such turn":
					want = nil
				case "range of all":
					want = []string{"0/acme/0", "0/acme/1", "0/globex/0", "1/acme/0"}
				}
				told(what, rows, err, want...)
			}
			for what, ask := range asks(e, line, "globex") {
				if _, err := all(ask); err != nil && what != "range of all" {
					t.Errorf("compacted %v, signed %v: the other log: %s: %v", compacted, signed, what, err)
				}
			}
			logs, err := e.Logs(t.Context(), "acme")
			if !errors.Is(err, export.ErrTampered) || len(logs) != 2 || logs[0].Lacks == nil || logs[1].Lacks != nil {
				t.Errorf("logs: %+v, %v", logs, err)
			}
			for tenant, lacks := range map[string]bool{"": true, "acme": true, "globex": false} {
				if _, err := e.Objects(t.Context(), tenant); errors.Is(err, export.ErrTampered) != lacks || (err != nil) != lacks {
					t.Errorf("objects of %q: %v", tenant, err)
				}
			}
			m.Overwrite(line.Key(1), a.Objects()[line.Key(1)])
			if err := e.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if rows := names(collect(t, e.Rows(t.Context(), export.Scan{Line: line.Line, Tenant: "acme"}))); len(rows) != 3 {
				t.Errorf("once it is back: %v", rows)
			}
		}
	}
}

// all returns rows, and all that was wrong.
func all(seq iter.Seq2[*export.Row, error]) (rows []*export.Row, err error) {
	for row, fault := range seq {
		if fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		rows = append(rows, row)
	}
	return rows, err
}

// asks are all questions to the archive about a tenant.
func asks(e *export.Archive, line *prooftest.Line, tenant string) map[string]iter.Seq2[*export.Row, error] {
	ctx := context.Background()
	list := func(rows []*export.Row, err error) iter.Seq2[*export.Row, error] {
		return func(yield func(*export.Row, error) bool) {
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
			}
		}
	}
	return map[string]iter.Seq2[*export.Row, error]{
		"range":          e.Range(ctx, export.Range{Tenant: tenant}),
		"range of all":   e.Range(ctx, export.Range{}),
		"rows":           e.Rows(ctx, export.Scan{Line: line.Line, Tenant: tenant}),
		"session":        list(e.Session(ctx, tenant, "sess-0", export.Page{})),
		"subject":        e.Subject(ctx, tenant, "user-1000"),
		"at 2":           list(e.At(ctx, tenant, nil, 2)),
		"no such turn":   list(e.Turn(ctx, tenant, "", "nowhere")),
		"no such record": list(e.Record(ctx, tenant, prooftest.OrderID(7))),
	}
}

// What only looks like a missing end is none: an anchor whose key is not good, an
// anchor that comes while the archive is looked at, a cut, a chain reset.
func TestNoEndIsMissing(t *testing.T) {
	_, m, _ := cutOff(false, false)
	if rows := names(collect(t, open(t, m, export.Options{Keys: ring()}).Range(t.Context(), export.Range{}))); len(rows) != 4 {
		t.Errorf("an anchor that nobody signed: %v", rows)
	}

	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
	l.Anchor()
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("acme") })
	voided := l.RollBack(1)
	l.Segment(func(b *prooftest.Batch) { b.Reset("acme", "operator", voided...) })
	l.Anchor()
	cut := l.CutAt("globex", prooftest.OrderID(3), 1)
	l.Compact(prooftest.Compaction{Watermark: 3, Drop: map[string]*prooftest.Cut{"globex": cut}})
	if rows := names(collect(t, open(t, prooftest.Bucket(a.Objects()), export.Options{}).Range(t.Context(), export.Range{}))); len(rows) != 2 {
		t.Errorf("a reset, and a cut of all: %v", rows)
	}
}

// An anchor and its segments that come behind the listing are no hole.
func TestAnAnchorThatComesMeanwhile(t *testing.T) {
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	l.Anchor()
	m := prooftest.Bucket(a.Objects())
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	l.Anchor()
	late := a.Objects()
	src := &tailed{Memory: m, before: func(key string) {
		if strings.HasPrefix(key, "anchor/") {
			for key, body := range late {
				m.Overwrite(key, body)
			}
		}
	}}
	if rows := names(collect(t, open(t, src, export.Options{}).Range(t.Context(), export.Range{}))); len(rows) != 2 {
		t.Errorf("%v", rows)
	}
}

// To hold a line against its newest anchor costs two reads of a byte for each
// doubling of their number, once; and two, and no object, where nothing is new.
func TestWhatAnchorsCost(t *testing.T) {
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) { b.Reject("acme", audit.ReasonInvalidJSON, []byte("{")) })
	for range 300 {
		l.Anchor()
	}
	src := &tailed{Memory: prooftest.Bucket(a.Objects())}
	e := open(t, src, export.Options{})
	if src.tails > 2*9 {
		t.Errorf("open took %d reads of a byte", src.tails)
	}
	before := e.Cost()
	src.tails = 0
	if err := e.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := e.Cost().Sub(before).Gets; n != 2 || src.tails != 2 {
		t.Errorf("a look without news took %d GETs, %d of them of a byte", n, src.tails)
	}
}

// A tailed store counts reads of ends, and calls before in front of each.
type tailed struct {
	*archive.Memory
	before func(key string)
	tails  int
}

func (s *tailed) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	s.tails++
	if s.before != nil {
		s.before(key)
	}
	return s.Memory.GetTail(ctx, key, n)
}

// A catalog counts that a key signed which a good anchor introduces, and none by a
// key that nobody introduces, nor one that a stranger's anchor does.
func TestACatalogByAnIntroducedKey(t *testing.T) {
	compacts, stranger := prooftest.Signer("compact.example"), prooftest.Signer("stranger.example")
	for name, c := range map[string]struct {
		anchors    *sign.Signer
		introduced []string
		ok         bool
	}{
		"introduced":                        {key, []string{compacts.VKey()}, true},
		"by nobody":                         {key, []string{}, false},
		"introduced, by a stranger's word":  {stranger, []string{compacts.VKey()}, false},
		"introduced, and only for anchors":  {key, nil, false},
		"another one is, beside a good key": {key, []string{stranger.VKey()}, false},
	} {
		a := prooftest.New()
		a.Signers, a.Keys.Catalog = []*sign.Signer{c.anchors}, c.introduced
		if c.introduced == nil {
			a.Keys.Anchor, a.Keys.Catalog = []string{compacts.VKey()}, []string{}
		}
		l := a.Line("audit.calls", 0)
		l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		l.Anchor()
		a.Signers = []*sign.Signer{compacts}
		l.Compact(prooftest.Compaction{Watermark: 1})
		rows, err := all(open(t, prooftest.Bucket(a.Objects()), export.Options{Keys: ring()}).Range(t.Context(), export.Range{}))
		if c.ok != (len(rows) == 1 && err == nil) || !c.ok && !errors.Is(err, export.ErrTampered) {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
}

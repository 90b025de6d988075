package export_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// governed returns an archive whose rows 0 to 9 of acme an order reaches, which
// none or an anchor covers.
func governed(members map[string]any, compacted bool) archive.Ranger {
	a := prooftest.New()
	calls, governs := a.Line("audit.calls", 0), a.Line(audit.ControlTopic, 0)
	calls.Segment(func(b *prooftest.Batch) {
		for range 10 {
			b.Call("acme")
			b.Call("other")
		}
		b.Reject("acme", audit.ReasonInvalidJSON, []byte(`{"user\u0049d":"user-1004"`))
	})
	calls.Anchor()
	if compacted {
		calls.Compact(prooftest.Compaction{Watermark: 1})
	}
	governs.Segment(func(b *prooftest.Batch) {
		b.Order("acme", audit.KindRedaction, prooftest.OrderID(1), members)
	})
	return prooftest.Bucket(a.Objects())
}

func redaction(target map[string]any, hard bool) map[string]any {
	m := prooftest.Redaction(target, "*")
	m["user"], m["hard"] = hard, hard
	return m
}

// What an order reaches is shown to nobody, though nothing was erased yet and no
// anchor covers the order: the sentinel stands where the content was, and the row
// is not found by what is to go.
func TestWhatIsToBeErasedIsNotShown(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		target := map[string]any{"userId": "user-1004"}
		soft := open(t, governed(redaction(target, false), compacted), export.Options{})
		hard := open(t, governed(redaction(target, true), compacted), export.Options{})

		rows := collect(t, soft.Range(t.Context(), export.Range{}))
		gated := 0
		for _, r := range rows {
			reached := r.TenantID.S == "acme" && (r.UserID.S == "user-1004" || r.Kind.S == audit.KindRejected)
			if reached != (len(r.Gated) > 0) || reached != r.Redaction.Valid || reached == r.RowSalt.Valid {
				t.Errorf("%v: seq %d of %s, user %s: gated %q, redaction %q", compacted, r.Seq.N, r.TenantID.S, r.UserID.S, r.Gated, r.Redaction.S)
			}
			if !reached {
				continue
			}
			gated++
			if !empty(r) || r.FallbackChain != nil || r.RedactionID.S != prooftest.OrderID(1) {
				t.Errorf("%v: seq %d still says something", compacted, r.Seq.N)
			}
		}
		if len(rows) != 22 || gated != 3 {
			t.Errorf("%v: %d rows, %d of them gated", compacted, len(rows), gated)
		}
		// user_id stays in a soft erasure that does not name it: the person is found.
		if n := names(collect(t, soft.Subject(t.Context(), "acme", "user-1004"))); !slices.Equal(n, []string{"0/acme/2", "0/acme/9"}) {
			t.Errorf("%v: subject, soft: %q", compacted, n)
		}
		if n := names(collect(t, hard.Subject(t.Context(), "acme", "user-1004"))); len(n) > 0 {
			t.Errorf("%v: subject, hard: %q", compacted, n)
		}
		for name, ask := range map[string]func(*export.Archive) ([]*export.Row, error){
			"turn": func(a *export.Archive) ([]*export.Row, error) { return a.Turn(t.Context(), "acme", "", "turn-0") },
			"session": func(a *export.Archive) ([]*export.Row, error) {
				return a.Session(t.Context(), "acme", "sess-0", export.Page{})
			},
			"record": func(a *export.Archive) ([]*export.Row, error) {
				return a.Record(t.Context(), "", "01KBCDEFGHJKMNPQRSTV000004")
			},
		} {
			before, err := ask(soft)
			after, fault := ask(hard)
			if err != nil || fault != nil {
				t.Fatal(err, fault)
			}
			has := func(rows []*export.Row) bool {
				return slices.ContainsFunc(rows, func(r *export.Row) bool { return r.Seq.N == 2 })
			}
			if !has(before) || has(after) {
				t.Errorf("%v: %s: %q, hard %q", compacted, name, names(before), names(after))
			}
		}
		if rows, err := hard.At(t.Context(), "acme", nil, 2); err != nil || len(rows) != 1 || rows[0].TurnID.Valid || len(rows[0].Gated) != 1 {
			t.Errorf("%v: %v, %v", compacted, names(rows), err)
		}
	}
}

func empty(r *export.Row) bool {
	return !slices.ContainsFunc(r.Slots[:], func(s []byte) bool { return s != nil })
}

// Where the control log cannot be read, nobody is shown anything.
func TestNothingIsShownWhereOrdersCannotBeRead(t *testing.T) {
	for name, damage := range map[string]func(objects map[string][]byte, l *prooftest.Line){
		"a segment that is gone": func(objects map[string][]byte, l *prooftest.Line) { delete(objects, l.Key(0)) },
		"one that is none":       func(objects map[string][]byte, l *prooftest.Line) { objects[l.Key(0)] = []byte("PAR1, it says") },
		"one of another place":   func(objects map[string][]byte, l *prooftest.Line) { objects[l.Key(0)] = objects[l.Key(1)] },
	} {
		a := prooftest.New()
		a.Line("audit.calls", 0).Segment(func(b *prooftest.Batch) { b.Call("acme") })
		governs := a.Line(audit.ControlTopic, 0)
		governs.Segment(func(b *prooftest.Batch) { b.Control("acme") })
		governs.Segment(func(b *prooftest.Batch) { b.Control("acme") })
		governs.Anchor()
		objects := a.Objects()
		damage(objects, governs)
		if _, err := export.Open(t.Context(), prooftest.Bucket(objects), export.Options{}); !errors.Is(err, export.ErrTampered) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A row that was erased, all of it or in part, comes as it is.
func TestErasedRows(t *testing.T) {
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) {
		for range 4 {
			b.Call("acme")
		}
	})
	l.Anchor()
	l.Compact(prooftest.Compaction{Watermark: 1, Change: func(row *chain.Row) {
		switch row.Seq.N {
		case 1:
			prooftest.Erase(row, prooftest.OrderID(1))
		case 2:
			prooftest.Erase(row, prooftest.OrderID(2), audit.SlotDecision)
		}
	}})
	rows, err := open(t, prooftest.Bucket(a.Objects()), export.Options{}).Turn(t.Context(), "acme", "", "turn-0")
	if err != nil || len(rows) != 4 {
		t.Fatal(names(rows), err)
	}
	for i, want := range []chain.State{chain.Live, chain.Erased, chain.PartlyErased, chain.Live} {
		if state, err := chain.StateOf(&rows[i].Row); state != want || err != nil || len(rows[i].Gated) > 0 || !rows[i].Checked {
			t.Errorf("row %d: %v, %v, gated %q", i, state, err, rows[i].Gated)
		}
	}
}

// Rows of a keyed log are checked with its key. Without it they come, marked; with
// a wrong one, not.
func TestKeyedLogs(t *testing.T) {
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) { b.Keyed("acme"); b.Call("acme"); b.Call("other"); b.Call("acme") })
	src := prooftest.Bucket(a.Objects())
	with := func(key string) chain.Keys {
		return func(l chain.Log) ([]byte, bool) { return []byte(key), l.Tenant == "acme" && key != "" }
	}
	for key, want := range map[string]string{"": "[0 unchecked 2 unchecked]", string(prooftest.LogKey): "[0 2]", "another key": "[tampered]"} {
		e := open(t, src, export.Options{LogKeys: with(key)})
		var got []string
		for row, err := range e.Range(t.Context(), export.Range{Tenant: "acme"}) {
			switch {
			case errors.Is(err, export.ErrTampered):
				got = append(got, "tampered")
			case err != nil:
				t.Fatal(err)
			case row.Checked:
				got = append(got, fmt.Sprint(row.KafkaOffset.N))
			default:
				got = append(got, fmt.Sprint(row.KafkaOffset.N), "unchecked")
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("key %q: %v, want %s", key, got, want)
		}
	}
}

// No query for one tenant says a byte of another, though their ids are the same.
func TestATenantSeesNothingOfAnother(t *testing.T) {
	mark := func(b *prooftest.Batch, tenant, text string) {
		b.Row(tenant, func(r *audit.Record) {
			r.Kind, r.RecordID = audit.Str(audit.KindCall), audit.Str("01KBCDEFGHJKMNPQRSTV000007")
			r.SessionID, r.TurnID, r.UserID = audit.Str("s"), audit.Str("t"), audit.Str("u")
			r.ParentTurnID, r.ModelID = audit.Str("t"), audit.Str(text)
			r.RedactionPolicy = audit.Str(audit.PolicyNone)
			r.Slots[audit.SlotExt] = []byte(`{"x":"` + text + `"}`)
		})
	}
	for _, watermark := range []int64{0, 1, 2} {
		a := prooftest.New()
		l := a.Line("audit.calls", 0)
		for range 2 {
			l.Segment(func(b *prooftest.Batch) {
				mark(b, "acme", "mine")
				mark(b, "acme2", "theirs")
				mark(b, "ACME", "theirs")
			})
		}
		l.Anchor()
		if watermark > 0 {
			l.Compact(prooftest.Compaction{Watermark: watermark})
		}
		e, ctx := open(t, prooftest.Bucket(a.Objects()), export.Options{}), t.Context()
		for name, ask := range map[string]func() ([]*export.Row, error){
			"turn":    func() ([]*export.Row, error) { return e.Turn(ctx, "acme", "", "t") },
			"session": func() ([]*export.Row, error) { return e.Session(ctx, "acme", "s", export.Page{}) },
			"record":  func() ([]*export.Row, error) { return e.Record(ctx, "acme", "01KBCDEFGHJKMNPQRSTV000007") },
			"range":   func() ([]*export.Row, error) { return gather(e.Range(ctx, export.Range{Tenant: "acme"})) },
			"subject": func() ([]*export.Row, error) { return gather(e.Subject(ctx, "acme", "u")) },
			"rows":    func() ([]*export.Row, error) { return gather(e.Rows(ctx, export.Scan{Line: l.Line, Tenant: "acme"})) },
		} {
			rows, err := ask()
			if err != nil || len(rows) != 2 {
				t.Errorf("%d: %s: %q, %v", watermark, name, names(rows), err)
			}
			for _, r := range rows {
				if r.TenantID.S != "acme" || strings.Contains(fmt.Sprintf("%+v", r), "theirs") {
					t.Errorf("%d: %s: a row of %s", watermark, name, r.TenantID.S)
				}
			}
		}
	}
}

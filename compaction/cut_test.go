package compaction

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

func logReport(t *testing.T, r *proof.Report, tenant string) proof.LogReport {
	t.Helper()
	for _, l := range r.Lines[0].Logs {
		if l.Tenant == tenant {
			return l
		}
	}
	t.Fatalf("no log of %s", tenant)
	return proof.LogReport{}
}

// A cut drops a prefix, at any size, from files and from what is still in
// segments; what is left keeps its proofs, and a log goes on behind it.
func TestCuts(t *testing.T) {
	for _, size := range []int64{1, 3, 4, 5, 7, 8, 14} {
		for _, compacted := range []bool{false, true} {
			w := newHistory(t)
			e := New(w.settings)
			if compacted {
				w.passes(e, w.calls.Line, nil)
			}
			cut := w.calls.CutAt("acme", prooftest.OrderID(1), size)
			w.order("acme", audit.KindRetentionCut, cut.ID, w.calls.CutOrder(cut))
			w.govern(e)
			r := w.wantExit(4)
			if l := logReport(t, r, "acme"); l.FirstSeq != size || !l.Proved || r.Totals.Cut != size {
				t.Fatalf("cut at %d: %+v, %d cut", size, l, r.Totals.Cut)
			}
			w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
			w.calls.Anchor()
			w.land()
			w.later(2 * time.Hour)
			w.govern(e)
			later := w.calls.CutAt("acme", prooftest.OrderID(2), 17)
			w.order("acme", audit.KindRetentionCut, later.ID, w.calls.CutOrder(later))
			w.govern(e)
			w.later(2 * time.Hour)
			w.govern(e)
			r = w.wantExit(4)
			if l := logReport(t, r, "acme"); l.FirstSeq != 17 || l.Size != 17 || r.StrayCount > 0 {
				t.Fatalf("cut at %d and 17: %+v, strays %v", size, l, r.Strays)
			}
			w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
			w.calls.Anchor()
			w.land()
			w.passes(New(w.settings), w.calls.Line, w.duties(w.calls.Line))
			if l := logReport(t, w.wantExit(4), "acme"); l.FirstSeq != 17 || l.Size != 18 || !l.Proved {
				t.Fatalf("behind a cut of all rows: %+v", l)
			}
		}
	}
}

// A cut that does not say what the log is there is not carried out.
func TestCutsThatLie(t *testing.T) {
	for name, lie := range map[string]func(*prooftest.Cut){
		"head":     func(c *prooftest.Cut) { c.Head = chain.Hash{1} },
		"frontier": func(c *prooftest.Cut) { c.Frontier = append([]chain.Hash{{1}}, c.Frontier[1:]...) },
	} {
		w := newHistory(t)
		cut := w.calls.CutAt("acme", prooftest.OrderID(1), 5)
		lie(cut)
		w.order("acme", audit.KindRetentionCut, cut.ID, w.calls.CutOrder(cut))
		all := w.passes(New(w.settings), w.calls.Line, w.duties(w.calls.Line))
		if last := all[len(all)-1]; len(last.Refused) != 1 || !strings.Contains(last.Refused[0], "head or frontier") {
			t.Errorf("%s: %q", name, last.Refused)
		}
		if l := logReport(t, w.wantExit(4), "acme"); l.FirstSeq != 0 {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// What a hold reaches is neither erased nor cut, as long as it is in force; what
// it does not reach is. Once it is lifted, both are carried out.
func TestHolds(t *testing.T) {
	w := newWorld(t)
	e := New(w.settings)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1"); b.Call("acme") })
	w.calls.Segment(func(b *prooftest.Batch) {
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.SessionID, r.TurnID, r.RedactionPolicy = audit.Str(audit.KindToolCall), audit.Str("held"), audit.Str("t-1"), audit.Str(audit.PolicyNone)
			r.Slots[audit.SlotContext] = []byte(`{"held":"what is kept for the court"}`)
		})
	})
	w.calls.Anchor()
	w.land()
	w.later(time.Hour)
	id := prooftest.OrderID
	hold := map[string]any{"scope": map[string]any{"sessionId": "held"}, "set": true, "reason": "case 7", "by": "counsel"}
	before := w.duties(w.calls.Line)
	w.order("acme", audit.KindLegalHold, id(1), hold)
	w.order("acme", audit.KindRedaction, id(2), prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	cut := w.calls.CutAt("acme", id(3), 5)
	w.order("acme", audit.KindRetentionCut, id(3), w.calls.CutOrder(cut))
	for range 3 {
		w.govern(e)
		w.later(2 * time.Hour)
	}
	if entry := w.entry(w.calls.Line, id(2)); entry.State != archive.RedactionGated || len(entry.Kept) != 1 || len(entry.Erased) != 1 {
		t.Fatalf("%+v", entry)
	}
	// A compactor that has not heard of the hold yet does nothing.
	if _, err := New(w.settings).Pass(context.Background(), w.calls.Line, before); !errors.Is(err, ErrRaced) {
		t.Fatal(err)
	}
	w.wantNowhere(secret)
	if hits := w.find("what is kept for the court"); len(hits) != 1 {
		t.Fatalf("held: %v", hits)
	}
	w.wantExit(4)
	hold["set"] = false
	w.order("acme", audit.KindLegalHold, id(4), hold)
	for range 3 {
		w.govern(e)
		w.later(2 * time.Hour)
	}
	w.wantNowhere(secret, "what is kept for the court")
	w.receipt("acme", id(2), 0)
	w.govern(e)
	if r := w.wantExit(0); r.Totals.Cut != 5 {
		t.Fatalf("%+v", r.Totals)
	}
}

package proof_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A history is an archive with what compaction must not lose: several days,
// lost offsets, repeats, rejects, a chain reset, logs that end early; anchors
// stand behind segments 1, 5 and 9 of 11.
type history struct {
	*prooftest.Archive
	calls, control *prooftest.Line
}

func newHistory() *history {
	a := prooftest.New()
	a.Signers = []*sign.Signer{keyA}
	h := &history{a, a.Line("audit.calls", 0), a.Line(audit.ControlTopic, 0)}
	calls := h.calls
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("early"); b.Call("acme"); b.Call("globex") })
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Duplicate("acme", 0); b.Skip(2, archive.GapControl) })
	calls.Anchor()
	a.Later(30 * time.Hour)
	calls.Segment(func(b *prooftest.Batch) {
		b.Lost(5)
		b.Call("globex")
		b.Reject("acme", audit.ReasonInvalidJSON, []byte("{"))
	})
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
	voided := calls.RollBack(4)
	calls.Segment(func(b *prooftest.Batch) {
		b.Reset("acme", "operator", voided...)
		b.Reset("globex", "operator", voided...)
		b.Call("globex")
		b.Call("acme")
	})
	calls.Anchor()
	for range 4 {
		a.Later(7 * time.Hour)
		calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex"); b.Call("acme") })
	}
	calls.Anchor()
	calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	return h
}

// order adds control rows, and an anchor.
func (h *history) order(fill func(*prooftest.Batch)) {
	h.control.Segment(fill)
	h.control.Anchor()
}

func (h *history) verify(t *testing.T) *proof.Report {
	t.Helper()
	return verifyWith(t, h.Objects(), proof.Options{Keys: ring(t, keyA)})
}

// Wherever the watermark stands, between anchors too, and however rows are
// split into files, a compacted archive has the same heads as before.
func TestCompactionAnywhere(t *testing.T) {
	want := newHistory().verify(t)
	wantExit(t, want, 4)
	for watermark := range int64(11) {
		if watermark == 5 {
			continue // between a void segment and the one that declares it void
		}
		for _, rows := range []int{0, 1, 2} {
			h := newHistory()
			h.calls.Compact(prooftest.Compaction{Watermark: watermark, FileRows: rows, Doom: rows == 2})
			r := h.verify(t)
			if wantExit(t, r, 4); r.Tier != want.Tier || r.StrayCount > 0 || r.Totals.Rows != want.Totals.Rows {
				t.Errorf("watermark %d: tier %s, strays %v, %+v", watermark, r.Tier, r.Strays, r.Totals)
			}
			for i, l := range r.Lines[0].Logs {
				w := want.Lines[0].Logs[i]
				if l.Tenant != w.Tenant || l.Size != w.Size || l.Head != w.Head || l.Root != w.Root || l.Epoch != w.Epoch || l.Signed != w.Signed || l.NotAnchored != w.NotAnchored || l.Rows != w.Rows || !l.Proved {
					t.Errorf("watermark %d: log %+v, want %+v", watermark, l, w)
				}
			}
			if r.Lines[0].FirstOffset != want.Lines[0].FirstOffset || r.Lines[0].NextOffset != want.Lines[0].NextOffset || r.Totals.Gaps[archive.GapLost] != 5 {
				t.Errorf("watermark %d: %+v", watermark, r.Lines[0])
			}
		}
	}
}

// What anchors do not cover cannot have been compacted.
func TestCompactionOfWhatNoAnchorCovers(t *testing.T) {
	h := newHistory()
	h.calls.Compact(prooftest.Compaction{Watermark: 11})
	wantFault(t, h.verify(t), proof.FaultCatalog, archive.CatalogKey(h.calls.Line, 0))
}

// Rows may be missing where an archived order dropped them, and nowhere else.
func TestRetentionCuts(t *testing.T) {
	cut := func(size int64, ordered, listed bool) *proof.Report {
		h := newHistory()
		c := h.calls.CutAt("acme", prooftest.OrderID(1), size)
		h.order(func(b *prooftest.Batch) {
			if ordered {
				b.Order("acme", audit.KindRetentionCut, c.ID, h.calls.CutOrder(c))
			} else {
				b.Control("acme")
			}
		})
		h.calls.Compact(prooftest.Compaction{Watermark: 10, FileRows: 3, Drop: map[string]*prooftest.Cut{"acme": c}, Catalog: func(cat *archive.Catalog) {
			if !listed {
				cat.Cuts = nil
			}
		}})
		return h.verify(t)
	}
	for _, size := range []int64{1, 3, 4, 5, 6, 7, 14} {
		r := cut(size, true, true)
		wantExit(t, r, 4)
		log := r.Lines[0].Logs[slices.IndexFunc(r.Lines[0].Logs, func(l proof.LogReport) bool { return l.Tenant == "acme" })]
		if !log.Proved || log.FirstSeq != size || r.Totals.Cut != size {
			t.Errorf("cut at %d: %+v", size, log)
		}
	}
	wantExit(t, cut(4, true, false), 4)
	wantExit(t, cut(4, false, true), 1)
	wantExit(t, cut(4, false, false), 1)
	wantExit(t, cut(14, false, true), 1)
}

// What goes from rows takes an order, and in the end a receipt.
func TestErasures(t *testing.T) {
	id := prooftest.OrderID
	turn := map[string]any{"turnId": "turn-0"}
	log := func(h *history, before int64) map[string]any {
		return map[string]any{"topic": h.calls.Topic, "topicId": h.calls.TopicID, "partition": 0, "seqBefore": before}
	}
	first := func(row *chain.Row) bool { return row.TenantID.S == "acme" && row.Seq.N == 0 }
	all := func(row *chain.Row) {
		if first(row) {
			prooftest.Erase(row, id(1))
		}
	}
	slots := func(row *chain.Row) {
		if first(row) {
			prooftest.Erase(row, id(1), audit.SlotDecision, audit.SlotTokenCost)
		}
	}
	for name, c := range map[string]struct {
		exit   int
		says   string
		change func(*chain.Row)
		orders func(*history, *prooftest.Batch)
	}{
		"no order": {1, "which no control row gives", all, func(_ *history, b *prooftest.Batch) { b.Control("acme") }},
		"an order": {4, "no receipt yet", all, func(_ *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, "*"))
		}},
		"an order of a log": {4, "no receipt yet", all, func(h *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(log(h, 1), "*"))
		}},
		"an order of nothing": {1, "covered by no receipt", all, func(h *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(log(h, 0), "*"))
		}},
		"another tenant's order": {1, "which no control row gives", all, func(_ *history, b *prooftest.Batch) {
			b.Order("globex", audit.KindRedaction, id(1), prooftest.Redaction(turn, "*"))
		}},
		"an order of other slots": {1, "covered by no receipt", slots, func(_ *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, []string{"decision"}))
		}},
		"two orders": {4, "no receipt yet", slots, func(_ *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, []string{"decision"}))
			b.Order("acme", audit.KindRedaction, id(2), prooftest.Redaction(map[string]any{"userId": "user-1000"}, []string{"token_cost"}))
		}},
		"an order and its receipt": {4, "1 row erased, of which", all, func(h *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, "*"))
			b.Order("acme", audit.KindErasureDone, id(2), h.calls.Receipt(id(1), "*", [2]int64{0, 0}))
		}},
		"a receipt of other rows": {1, "covered by no receipt", all, func(h *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, "*"))
			b.Order("acme", audit.KindErasureDone, id(2), h.calls.Receipt(id(1), "*"))
		}},
		"a receipt of another order": {1, "which no control row gives", all, func(h *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindErasureDone, id(2), h.calls.Receipt(id(3), "*", [2]int64{0, 0}))
		}},
		"a receipt of rows that are there": {1, "is still there", all, func(h *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, "*"))
			b.Order("acme", audit.KindErasureDone, id(2), h.calls.Receipt(id(1), "*", [2]int64{0, 1}))
		}},
		"a receipt of rows in a segment": {1, "is still there", all, func(h *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, "*"))
			b.Order("acme", audit.KindErasureDone, id(2), h.calls.Receipt(id(1), "*", [2]int64{0, 0}, [2]int64{14, 14}))
		}},
		"a receipt of which a part is missing": {4, "no receipt yet", all, func(h *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, "*"))
			half := h.calls.Receipt(id(1), "*", [2]int64{0, 0})
			half["parts"] = 2
			b.Order("acme", audit.KindErasureDone, id(2), half)
		}},
		"a receipt in parts": {4, "1 row erased, of which", all, func(h *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, "*"))
			for part := 1; part <= 2; part++ {
				half := h.calls.Receipt(id(1), "*", [2]int64{0, 0})
				half["part"], half["parts"] = part, 2
				b.Order("acme", audit.KindErasureDone, id(1+part), half)
			}
		}},
		"an order that says nothing": {1, "covered by no receipt", all, func(_ *history, b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(map[string]any{}, "*"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.order(func(b *prooftest.Batch) { c.orders(h, b) })
			h.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 2, Change: c.change})
			r := h.verify(t)
			wantExit(t, r, c.exit)
			said := strings.Join(slices.Concat(r.Looks, r.Notes), "\n")
			for _, f := range r.Faults {
				said += "\n" + f.String()
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("%q does not say %q", said, c.says)
			}
		})
	}
}

// A control topic may have another name, and be compacted itself: its orders are
// found, also those whose own context went after their receipt.
func TestAControlLogThatIsCompacted(t *testing.T) {
	id := prooftest.OrderID
	for name, receipt := range map[string]bool{"before its last receipt": false, "with its last receipt": true} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.control.Topic, h.control.TopicID = "rules", "ruLesrulesrulesrulesrA"
			h.order(func(b *prooftest.Batch) {
				b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"))
			})
			h.order(func(b *prooftest.Batch) {
				b.Order("acme", audit.KindErasureDone, id(2), h.calls.Receipt(id(1), "*", [2]int64{0, 0}))
			})
			if receipt {
				h.order(func(b *prooftest.Batch) {
					b.Order("acme", audit.KindErasureDone, id(3), h.control.Receipt(id(1), []string{"context"}, [2]int64{0, 0}))
				})
			}
			h.calls.Compact(prooftest.Compaction{Watermark: 9, Change: func(row *chain.Row) {
				if row.TenantID.S == "acme" && row.Seq.N == 0 {
					prooftest.Erase(row, id(1))
				}
			}})
			h.control.Compact(prooftest.Compaction{Watermark: 2, Change: func(row *chain.Row) {
				if row.RecordID.S == id(1) {
					prooftest.Erase(row, id(1), audit.SlotContext)
				}
			}})
			r := h.verify(t)
			wantExit(t, r, 4)
			if open := strings.Contains(strings.Join(r.Looks, "\n"), "no receipt yet"); open == receipt {
				t.Errorf("looks %v", r.Looks)
			}
		})
	}
}

// A row that a later compaction marks as a repeat has the coordinates of the row
// that it repeats.
func TestRepeatsAreMarked(t *testing.T) {
	for of, exit := range map[int64]int{0: 4, 1: 1} {
		h := newHistory()
		h.calls.Segment(func(b *prooftest.Batch) {
			b.Row("acme", func(r *audit.Record) {
				first := h.calls.Segments[0].Rows[0].Record
				r.Kind, r.SessionID, r.TurnID, r.StageID, r.SeqWithinTurn, r.RedactionPolicy = first.Kind, first.SessionID, first.TurnID, first.StageID, first.SeqWithinTurn, first.RedactionPolicy
			})
		})
		h.calls.Anchor()
		h.calls.Compact(prooftest.Compaction{Watermark: 12, FileRows: 4, Change: func(row *chain.Row) {
			if row.TenantID.S == "acme" && row.Seq.N == 16 {
				row.RepeatOf = audit.I64(of)
			}
		}})
		wantExit(t, h.verify(t), exit)
	}
}

// A log all of whose rows were dropped goes on from its size.
func TestALogThatIsCutWhole(t *testing.T) {
	for _, tenant := range []string{"early", "globex", "acme"} {
		for _, watermark := range []int64{2, 4, 7, 10} {
			h := newHistory()
			size := int64(0)
			for _, s := range h.calls.Segments[:watermark] {
				for _, l := range s.Meta.Logs {
					if l.Tenant == tenant && (s.Meta.Ordinal != 4 && s.Meta.Ordinal != 5 || watermark == 4) {
						size = l.Size
					}
				}
			}
			c := h.calls.CutAt(tenant, prooftest.OrderID(1), size)
			h.order(func(b *prooftest.Batch) { b.Order(tenant, audit.KindRetentionCut, c.ID, h.calls.CutOrder(c)) })
			h.calls.Compact(prooftest.Compaction{Watermark: watermark, Drop: map[string]*prooftest.Cut{tenant: c}})
			r := h.verify(t)
			wantExit(t, r, 4)
			if !strings.Contains(strings.Join(r.Notes, "\n"), tenant+" starts after a cut at") {
				t.Errorf("notes %v", r.Notes)
			}
		}
	}
}

// Keyed logs are checked in data files as well: with their keys whole, without
// them all but row_hash.
func TestKeyedLogsInDataFiles(t *testing.T) {
	a := prooftest.New()
	a.Signers = []*sign.Signer{keyA}
	l := a.Line("audit.calls", 0)
	for i := range 3 {
		l.Segment(func(b *prooftest.Batch) {
			if i == 0 {
				b.Keyed("acme")
			}
			b.Call("acme")
		})
		l.Anchor()
	}
	l.Compact(prooftest.Compaction{Watermark: 2, Change: func(row *chain.Row) {
		if row.Seq.N == 1 {
			row.ModelID = audit.Str("other")
		}
	}})
	o := proof.Options{Keys: ring(t, keyA)}
	wantExit(t, verifyWith(t, a.Objects(), o), 3)
	o.LogKeys = func(chain.Log) ([]byte, bool) { return prooftest.LogKey, true }
	r := verifyWith(t, a.Objects(), o)
	wantExit(t, r, 1)
	if len(r.Faults) == 0 || r.Faults[0].Kind != proof.FaultRowHash || *r.Faults[0].Seq != 1 {
		t.Errorf("%v", r.Faults)
	}
}

// Once anchors of the control line list control keys, its rows must be signed by
// one.
func TestControlKeysInForce(t *testing.T) {
	id := prooftest.OrderID(1)
	for name, c := range map[string]struct {
		exit int
		by   *sign.Signer // of the row; nil leaves it unsigned
		when time.Duration
		of   string // the record that the signature is of
	}{
		"signed":                    {0, keyB, time.Hour, id},
		"not signed":                {1, nil, time.Hour, id},
		"not signed, and before":    {0, nil, 0, id},
		"signed by another key":     {1, prooftest.Signer("other.example/key"), time.Hour, id},
		"signed for another record": {1, keyB, time.Hour, prooftest.OrderID(2)},
	} {
		t.Run(name, func(t *testing.T) {
			a := prooftest.New()
			a.Signers = []*sign.Signer{keyA}
			l := a.Line(audit.ControlTopic, 0)
			a.Keys.Control = []string{keyB.VKey()}
			if c.when > 0 {
				l.Anchor()
			}
			a.Later(c.when)
			l.Segment(func(b *prooftest.Batch) {
				b.OrderSigned("acme", audit.KindRedaction, id, c.of, prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"), c.by)
			})
			l.Anchor()
			wantExit(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA)}), c.exit)
		})
	}
}

// A file that was replaced may lie there, until a receipt says that what went
// from its rows is gone.
func TestReplacedFiles(t *testing.T) {
	id := prooftest.OrderID
	for name, c := range map[string]struct {
		exit    int
		receipt bool
		remove  bool
		damage  bool
	}{
		"no receipt":             {4, false, false, false},
		"no receipt, and damage": {1, false, false, true},
		"a receipt":              {1, true, false, false},
		"a receipt, and gone":    {4, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.order(func(b *prooftest.Batch) {
				b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"))
				if c.receipt {
					b.Order("acme", audit.KindErasureDone, id(2), h.calls.Receipt(id(1), "*", [2]int64{0, 0}))
				}
			})
			h.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 2})
			h.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 2, ULID: id(9), Change: func(row *chain.Row) {
				if row.TenantID.S == "acme" && row.Seq.N == 0 {
					prooftest.Erase(row, id(1))
				}
			}})
			for key := range h.Others {
				if strings.HasPrefix(key, "data/acme/") && strings.Contains(key, "00000-00000000000000000001."+prooftest.ID) {
					if c.damage {
						flip(h.Others[key], 5000)
					}
					if c.remove {
						delete(h.Others, key)
					}
				}
			}
			r := h.verify(t)
			if wantExit(t, r, c.exit); r.StrayCount > 0 || r.Totals.Catalogs != 2 {
				t.Errorf("%v %+v", r.Strays, r.Totals)
			}
		})
	}
}

// A row that came while the receipt was on its way is erased after it, and the
// next receipt names it: until then the catalog lists it for that one. By the
// word of no catalog an erasure passes that no order means.
func TestLateRows(t *testing.T) {
	id := prooftest.OrderID
	for name, c := range map[string]struct {
		exit   int
		listed bool // in the catalog
		turn   string
		second bool // a second receipt
	}{
		"listed for the next receipt":   {4, true, "turn-0", false},
		"not listed":                    {1, false, "turn-0", false},
		"listed, and not meant":         {1, true, "turn-x", false},
		"named by the second receipt":   {4, false, "turn-0", true},
		"named by it, and listed still": {4, true, "turn-0", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.order(func(b *prooftest.Batch) {
				b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(map[string]any{"turnId": c.turn}, "*"))
				b.Order("acme", audit.KindErasureDone, id(2), h.calls.Receipt(id(1), "*"))
				if c.second {
					b.Order("acme", audit.KindErasureDone, id(3), h.calls.Receipt(id(1), "*", [2]int64{0, 0}))
				}
			})
			h.calls.Compact(prooftest.Compaction{Watermark: 9, Change: func(row *chain.Row) {
				if row.TenantID.S == "acme" && row.Seq.N == 0 {
					prooftest.Erase(row, id(1))
				}
			}, Catalog: func(cat *archive.Catalog) {
				r := archive.CatalogRedaction{Tenant: "acme", ID: id(1), State: archive.RedactionPurged}
				if c.listed {
					r.Erased = [][2]int64{{0, 0}}
				}
				cat.Redactions = append(cat.Redactions, r)
			}})
			r := h.verify(t)
			wantExit(t, r, c.exit)
			if open := r.Totals.Unreceipted > 0; open != (c.exit == 4 && !c.second) {
				t.Errorf("%d rows without a receipt", r.Totals.Unreceipted)
			}
		})
	}
}

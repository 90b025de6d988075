package compaction

import (
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

const secret = "what nobody may read"

// told adds a row whose content is a secret of a turn.
func told(b *prooftest.Batch, tenant, turn string) {
	b.Call(tenant)
	b.Row(tenant, func(r *audit.Record) {
		r.Kind, r.RecordID, r.CreatedAt = audit.Str(audit.KindToolCall), audit.Str("01KBCDEFGHJKMNPQRSTV999999"), r.KafkaTimestamp
		r.TurnID, r.SeqWithinTurn, r.RedactionPolicy = audit.Str(turn), audit.I64(r.KafkaOffset.N), audit.Str(audit.PolicyNone)
		r.UserID = audit.Str("user-of-" + turn)
		r.Slots[audit.SlotContext] = []byte(`{"said":"` + secret + `"}`)
	})
	b.Call(tenant)
}

// The life of an erasure: rows in data files and in segments, in a bucket that
// keeps versions; and late rows, which have a receipt of their own.
func TestErasure(t *testing.T) {
	for _, versioning := range []archive.Versioning{archive.Unversioned, archive.Versioned, archive.Suspended} {
		w := newWorld(t)
		w.store.SetVersioning(versioning)
		e := New(w.settings)
		w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1"); told(b, "globex", "t-2") })
		w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		w.calls.Anchor()
		w.land()
		w.govern(e)
		w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
		w.calls.Anchor()
		w.land()
		w.later(time.Hour)

		id := prooftest.OrderID(1)
		w.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
		w.govern(e)
		w.wantState(id, archive.RedactionPurged)
		w.wantExit(4)
		w.later(2 * time.Hour)
		w.govern(e)
		w.wantState(id, archive.RedactionGone)
		if hits := w.find(secret); len(hits) != 1 { // globex's
			t.Fatal(hits)
		}
		w.receipt("acme", id, 0)
		w.govern(e)
		w.wantState(id, archive.RedactionReceipted)
		w.wantExit(0)

		late(t, w, e, id)
		w.order("globex", audit.KindRedaction, prooftest.OrderID(2), prooftest.Redaction(map[string]any{"userId": "user-of-t-2"}, "*"))
		w.govern(e)
		w.later(2 * time.Hour)
		w.govern(e)
		w.wantNowhere(secret)
		w.wantExit(4)
		w.receipt("globex", prooftest.OrderID(2), 0)
		w.govern(e)
		w.wantExit(0)
	}
}

// late lets a row come that was made before the order, and is archived long after
// its receipt.
func late(t *testing.T, w *world, e *Engine, id string) {
	t.Helper()
	w.calls.Segment(func(b *prooftest.Batch) {
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.TurnID, r.RedactionPolicy = audit.Str(audit.KindToolCall), audit.Str("t-1"), audit.Str(audit.PolicyNone)
			r.CreatedAt = audit.I64(prooftest.Start)
			r.Slots[audit.SlotContext] = []byte(`{"said":"` + secret + `"}`)
		})
	})
	w.calls.Anchor()
	w.land()
	w.govern(e)
	if got := w.entry(w.calls.Line, id); got.State != archive.RedactionPurged || len(got.Erased) != 1 {
		t.Fatalf("%+v", got)
	}
	w.later(2 * time.Hour)
	w.govern(e)
	if hits := w.find(secret); len(hits) != 1 {
		t.Fatal(hits)
	}
	w.receipt("acme", id, 1)
	w.govern(e)
	w.wantState(id, archive.RedactionReceipted)
	w.wantExit(0)
}

// A stray that holds what was erased is found by a sweep behind the purge, while
// the order still waits for other objects: the order waits for it too.
func TestAnOrderWaitsForStrays(t *testing.T) {
	w := small(t)
	e := New(w.settings)
	id := prooftest.OrderID(1)
	w.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	w.govern(e)
	w.later(30 * time.Minute)
	key := archive.DataKey(w.calls.Line, "acme", "2026-05-28", 0, 4, prooftest.ID)
	w.stray(key)
	w.govern(e)
	w.later(45 * time.Minute)
	w.govern(e)
	if entry := w.entry(w.calls.Line, id); entry.State != archive.RedactionPurged {
		t.Fatalf("%+v, and a stray is there", entry)
	}
	w.later(time.Hour)
	w.govern(e)
	w.wantNowhere(secret)
	w.wantState(id, archive.RedactionGone)
}

// Whoever slept may write a segment again that was compacted and deleted. While an
// order has no receipt, what a sweep finds has to go first, also where the order
// was gone already.
func TestWhatIsBroughtBackGoesFirst(t *testing.T) {
	w := small(t)
	e := New(w.settings)
	id := prooftest.OrderID(1)
	w.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	w.govern(e)
	w.later(2 * time.Hour)
	w.govern(e)
	w.wantState(id, archive.RedactionGone)
	w.stray(w.calls.Key(0))
	w.govern(e)
	if entry := w.entry(w.calls.Line, id); entry.State != archive.RedactionPurged || len(entry.Erased) != 1 || len(entry.Deleted) != 1 {
		t.Fatalf("%+v, and %s is there again", entry, w.calls.Key(0))
	}
	w.later(2 * time.Hour)
	w.govern(e)
	w.wantNowhere(secret)
	w.wantState(id, archive.RedactionGone)
	w.receipt("acme", id, 1)
	w.govern(e)
	w.wantState(id, archive.RedactionReceipted)
	w.wantExit(0)
}

// An order that had taken something, and waited for a hold, goes on to its receipt
// also where its context has gone meanwhile: what it means is not looked for again.
func TestTakenBeforeItsContextWent(t *testing.T) {
	w := small(t)
	e := New(w.settings)
	id := prooftest.OrderID(1)
	w.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"recordId": "01KBCDEFGHJKMNPQRSTV999999"}, "*"))
	w.govern(e)
	hold := map[string]any{"scope": map[string]any{"userId": "user-of-t-1"}, "set": true, "reason": "r", "by": "b"}
	w.order("acme", audit.KindLegalHold, prooftest.OrderID(2), hold)
	w.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	w.calls.Anchor()
	w.land()
	w.govern(e)
	if got := w.entry(w.calls.Line, id); got.State != archive.RedactionGated || len(got.Erased) != 1 {
		t.Fatalf("%+v, and a hold keeps a row", got)
	}
	hold["set"] = false
	w.order("acme", audit.KindLegalHold, prooftest.OrderID(3), hold)
	d := w.duties(w.calls.Line)
	row := *d.Orders[0].Row
	row.Gone, row.Redaction = true, nil
	d.Orders[0].Row, d.Orders[0].Due = &row, false
	for range 3 {
		w.passes(e, w.calls.Line, d)
		w.later(2 * time.Hour)
	}
	if got := w.entry(w.calls.Line, id); got.State != archive.RedactionGone || len(got.Erased) != 1 {
		t.Fatalf("%+v", got)
	}
}

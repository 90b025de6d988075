package stream_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// turns archives a call of each turn, all of one tenant.
func (w *world) turns(tenant string, turns ...string) {
	w.t.Helper()
	w.calls.Segment(func(b *prooftest.Batch) {
		for _, turn := range turns {
			b.Row(tenant, func(r *audit.Record) {
				r.Kind, r.SessionID, r.TurnID = audit.Str(audit.KindCall), audit.Str("s"), audit.Str(turn)
				r.Slots[audit.SlotDecision] = []byte(`{"secret":"` + turn + `"}`)
			})
		}
	})
	w.land()
}

// What an order is to erase does not leave, whether it was ordered before the row
// was read or while it waited for a destination that is busy; its place does.
func TestWhatIsOrderedToBeErasedDoesNotLeave(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.turns("acme", "t-1", "t-2", "t-3")
			order := func() {
				w.order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "t-2"}, "*"))
			}
			if !late {
				order()
			}
			r := &receiver{}
			var busy atomic.Bool
			busy.Store(late)
			var bodies []string
			r.answer = func(batch []sink.Message) sink.Result {
				if busy.Load() {
					return sink.All(len(batch), sink.Verdict{Reason: "busy"})
				}
				for _, m := range batch {
					bodies = append(bodies, string(m.Body))
				}
				return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
			}
			stop := w.start(w.settings(), r.destination(func(d *stream.Destination) { d.Filter.Kinds = []string{audit.KindCall} }))
			time.Sleep(time.Minute)
			if late {
				order()
				time.Sleep(time.Minute)
				busy.Store(false)
			}
			time.Sleep(10 * time.Minute)
			stop()
			w.check(r)
			for i, body := range bodies {
				if erased := i == 1; erased == strings.Contains(body, `"secret"`) {
					t.Errorf("late %v: row %d says %s", late, i, body)
				}
			}
			if ev := r.events(event.KindRecord)[1]; ev.Row.RedactionID.S != prooftest.OrderID(1) {
				t.Errorf("late %v: the erased row has the sentinel %q", late, ev.Row.Redaction.S)
			}
		})
	}
}

// A receipt is told to every destination that had some of the rows, with those that
// it had; not to one that had none of them, nor one whose filter has not the
// tenant.
func TestErasuresAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.turns("acme", "t-1", "t-2", "t-3", "t-4")
		had, none, others := &receiver{}, &receiver{}, &receiver{}
		all := []stream.Destination{
			had.destination(func(d *stream.Destination) { d.Name, d.Filter.Kinds = "had", []string{audit.KindCall} }),
			others.destination(func(d *stream.Destination) { d.Name, d.Filter.Tenants = "others", []string{"umbrella"} }),
		}
		w.export(20*time.Second, all...)
		w.order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "t-2"}, "*"))
		w.turns("acme", "t-5", "t-6")
		w.order("acme", audit.KindErasureDone, prooftest.OrderID(2), w.calls.Receipt(prooftest.OrderID(1), "*", [2]int64{1, 2}, [2]int64{4, 9}))
		all = append(all, none.destination(func(d *stream.Destination) { d.Name, d.FromNow = "none", true }))
		w.export(20*time.Second, all...)
		w.export(20*time.Second, all...)
		notices := had.events(event.KindErasure)
		if len(notices) != 1 {
			t.Fatalf("%d notices, want 1", len(notices))
		}
		n := notices[0]
		if got := fmt.Sprint(n.Tenant, n.Line.Topic, n.Erasure.Ranges, n.Erasure.What.ID, n.Erasure.What.All); got != fmt.Sprint("acme", "audit.calls", "[[1 2]]", prooftest.OrderID(1), true) &&
			got != fmt.Sprint("acme", "audit.calls", "[[1 2] [4 5]]", prooftest.OrderID(1), true) {
			t.Errorf("the notice says %s", got)
		}
		for name, r := range map[string]*receiver{"none": none, "others": others} {
			if n := len(r.events(event.KindErasure)); n != 0 {
				t.Errorf("%s got %d notices", name, n)
			}
		}
		for _, ev := range had.events(event.KindRecord) {
			if ev.Row.Kind.S != audit.KindCall {
				t.Errorf("a row of kind %s got through the filter", ev.Row.Kind.S)
			}
		}
	})
}

// A receipt that no control key signed, where one must, tells nobody to erase
// anything.
func TestAForgedReceiptTellsNobody(t *testing.T) {
	for _, signed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			governor := prooftest.Signer("governor.example")
			w.Keys = archive.AnchorKeys{Anchor: []string{}, Catalog: []string{}, Control: []string{governor.VKey()}}
			w.control.Segment(func(b *prooftest.Batch) { b.Control("acme") })
			w.control.Anchor()
			w.Advance(time.Hour)
			w.turns("acme", "t-1")
			r := &receiver{}
			calls := func(d *stream.Destination) { d.Filter.Kinds = []string{audit.KindCall} }
			w.export(20*time.Second, r.destination(calls))
			by := governor
			if !signed {
				by = nil
			}
			w.control.Segment(func(b *prooftest.Batch) {
				id := prooftest.OrderID(2)
				b.OrderSigned("acme", audit.KindErasureDone, id, id, w.calls.Receipt(prooftest.OrderID(1), "*", [2]int64{0, 0}), by)
			})
			w.control.Anchor()
			w.land()
			w.export(time.Minute, r.destination(calls))
			w.check(r)
			if n := len(r.events(event.KindErasure)); (n == 1) != signed {
				t.Errorf("signed %v: %d notices", signed, n)
			}
		})
	}
}

// Rows that retention dropped before they were delivered are a gap that the
// receiver can tell from a hole: a head says where the log goes on. A catalog that
// says so without an order stops the log.
func TestCuts(t *testing.T) {
	for _, order := range []string{"it", "none", "another"} {
		ordered := order == "it"
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.turns("acme", "t-1", "t-2", "t-3")
			w.calls.Anchor()
			w.land()
			r := &receiver{limits: sink.Limits{Events: 1}}
			taken := 0
			r.answer = func(batch []sink.Message) sink.Result {
				if taken++; taken > 1 {
					return sink.All(len(batch), sink.Verdict{Reason: "busy"})
				}
				return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
			}
			w.export(10*time.Second, r.destination())
			w.Advance(24 * time.Hour)
			w.turns("acme", "t-4", "t-5")
			w.calls.Anchor()
			w.land()
			cut := w.calls.CutAt("acme", prooftest.OrderID(3), 3)
			if order != "none" {
				says := *cut
				if order == "another" {
					says.Head[0] ^= 1
				}
				w.order("acme", audit.KindRetentionCut, cut.ID, w.calls.CutOrder(&says))
			}
			w.calls.Compact(prooftest.Compaction{Watermark: 2, Drop: map[string]*prooftest.Cut{"acme": cut}})
			w.land()
			w.turns("acme", "t-6")
			r.answer = nil
			w.export(time.Minute, r.destination(func(d *stream.Destination) { d.Filter.Kinds = []string{audit.KindCall} }))
			got := fmt.Sprint(r.places())
			if !ordered {
				if got != "[acme 0]" || !errors.Is(w.stopped["acme"], export.ErrTampered) {
					t.Errorf("ordered is %s: %s, stopped %v", order, got, w.stopped)
				}
				return
			}
			if got != "[acme 0 acme 3 acme 4 acme 5]" || fmt.Sprint(w.dropped) != "[acme 1-3]" {
				t.Errorf("delivered %s, dropped %v, stopped %v", got, w.dropped, w.stopped)
			}
			heads := r.events(event.KindHead)
			if len(heads) != 1 || heads[0].Head.Size != 3 || heads[0].Head.Hash != cut.Head || heads[0].Head.Anchor != -1 {
				t.Errorf("heads %+v", heads)
			}
			if c := w.cursors("siem", "").Of("acme"); c.Dropped != 2 || c.Delivered != 4 {
				t.Errorf("the cursor says %+v", c)
			}
		})
	}
}

// A row that does not check stops its log in front of it; others go on. Unverified,
// it is sent, and says so.
func TestATamperedRow(t *testing.T) {
	for _, unverified := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rows("acme", "umbrella")
			s := w.calls.Segment(func(b *prooftest.Batch) {
				for _, tenant := range []string{"acme", "umbrella", "acme"} {
					b.Call(tenant)
				}
			})
			s.Rows[0].ModelID = audit.Str("another")
			s.Encode()
			w.land()
			r := &receiver{}
			w.export(20*time.Second, r.destination(func(d *stream.Destination) { d.Unverified = unverified }))
			got := fmt.Sprint(r.places())
			if !unverified && (got != "[acme 0 umbrella 0 umbrella 1]" || !errors.Is(w.stopped["acme"], export.ErrTampered) || !strings.Contains(w.stopped["acme"].Error(), "seq 1")) {
				t.Errorf("delivered %s, stopped %v", got, w.stopped)
			}
			if unverified && (got != "[acme 0 umbrella 0 acme 1 umbrella 1 acme 2]" || r.events()[0].Verified) {
				t.Errorf("unverified: delivered %s, stopped %v", got, w.stopped)
			}
		})
	}
}

// What anchors say of each log is sent behind the rows that it covers, the newest
// that covers no more, once.
func TestHeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := &receiver{}
		heads := func(d *stream.Destination) { d.Heads = true }
		for range 3 {
			w.rows("acme", "umbrella")
			w.rows("acme")
			w.calls.Anchor()
			w.land()
		}
		w.rows("acme")
		w.export(time.Minute, r.destination(heads))
		w.export(time.Minute, r.destination(heads))
		var got []string
		for _, ev := range r.events(event.KindHead) {
			got = append(got, fmt.Sprint(ev.Tenant, " ", ev.Head.Size, " of anchor ", ev.Head.Anchor))
		}
		if want := []string{"acme 6 of anchor 2", "umbrella 3 of anchor 2"}; !slices.Equal(got, want) {
			t.Errorf("heads %q, want %q", got, want)
		}
		w.rows("umbrella")
		w.calls.Anchor()
		w.land()
		w.export(time.Minute, r.destination(heads))
		all := r.events(event.KindHead)[2:]
		if len(all) != 2 || all[0].Head.Size != 7 || all[1].Head.Size != 4 {
			t.Errorf("then %d heads: %+v", len(all), all)
		}
		last := w.calls.Logs["acme"]
		if all[0].Head.Hash != last.Head || all[0].Head.Root != last.Tree.Root() || all[0].Head.Note == "" {
			t.Errorf("the head says %+v", all[0].Head)
		}
		w.check(r)
	})
}

// Rows that a filter drops move the cursor too, so that nothing is looked at twice.
func TestFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme", "umbrella", "acme")
		w.turns("acme", "t-1")
		r := &receiver{}
		only := func(d *stream.Destination) {
			d.Filter = stream.Filter{Tenants: []string{"acme"}, Stages: []string{"tool-loop"}}
		}
		w.export(20*time.Second, r.destination(only))
		if got := fmt.Sprint(r.places()); got != "[acme 0 acme 1]" {
			t.Errorf("delivered %s", got)
		}
		c := w.cursors("siem", "")
		if at := c.Of("acme"); at.Next != 3 || at.Delivered != 2 || c.Of("umbrella") != nil {
			t.Errorf("cursors %+v", c.Logs)
		}
		// What another filter lets through is delivered from where its logs begin.
		w.export(20*time.Second, r.destination(func(d *stream.Destination) { d.Spec = "all" }))
		if got := fmt.Sprint(r.places()[2:]); got != "[umbrella 0]" {
			t.Errorf("then delivered %s", got)
		}
	})
}

// A destination that begins with what is archived from now on gets nothing older,
// and every row that is newer, also of logs that begin.
func TestFromNow(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rows("acme", "umbrella", "acme")
			w.calls.Anchor()
			w.land()
			if compacted {
				w.compact(w.calls.Line)
			}
			w.rows("acme")
			r := &receiver{}
			now := func(d *stream.Destination) { d.FromNow = true }
			w.export(20*time.Second, r.destination(now))
			w.rows("acme", "umbrella", "hooli")
			w.export(20*time.Second, r.destination(now))
			if got := fmt.Sprint(r.places()); got != "[acme 3 umbrella 1 hooli 0]" {
				t.Errorf("compacted %v: delivered %s, stopped %v", compacted, got, w.stopped)
			}
		})
	}
}

// What a chain reset declares void does not stop a log that has it already: the
// reset's own row says where the log goes on.
func TestAChainReset(t *testing.T) {
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rows("acme", "umbrella")
			w.rows("acme", "acme", "acme")
			r := &receiver{}
			if before {
				w.export(20*time.Second, r.destination())
			}
			voided := w.calls.RollBack(1)
			w.calls.Segment(func(b *prooftest.Batch) {
				b.Reset("acme", "test", voided...)
				b.Call("acme")
			})
			w.land()
			w.export(20*time.Second, r.destination())
			w.export(20*time.Second, r.destination())
			got := fmt.Sprint(r.places())
			want := map[bool]string{true: "[acme 0 umbrella 0 acme 1 acme 2 acme 3 acme 1 acme 2]"}
			if before && got != want[true] || len(w.stopped) > 0 {
				t.Errorf("before %v: delivered %s, stopped %v", before, got, w.stopped)
			}
			w.rows("umbrella")
			w.export(20*time.Second, r.destination(func(d *stream.Destination) { d.Spec = "looks at all again" }))
			if len(w.stopped) > 0 {
				t.Errorf("before %v: then stopped %v", before, w.stopped)
			}
			if last := r.places()[len(r.places())-2]; last != "acme 2" {
				t.Errorf("before %v: delivered %s", before, got)
			}
		})
	}
}

package compaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
	"github.com/ledgerlake/ledgerlake/retention"
)

// A court is a world whose control records go through a stand-in of ingest: what
// is sent lies in a topic until it is archived, once, and a second record of an
// id that says something else is a conflict.
type court struct {
	*world
	topic     []audit.Message
	said      map[string][]byte
	conflicts []string
	governor  *Governor
}

const day = 24 * time.Hour

func newCourt(t testing.TB) *court {
	c := &court{world: newWorld(t), said: map[string][]byte{}}
	c.governor = c.restart()
	return c
}

// restart returns a governor of another process.
func (c *court) restart() *Governor {
	return NewGovernor(New(c.settings), Rules{
		Topic: audit.ControlTopic, PurgeAfter: 7 * day, LateWindow: 7 * day, Within: 30 * day, By: "test",
		Send: func(_ context.Context, records []audit.Message) error {
			c.topic = append(c.topic, records...)
			return nil
		},
		Warn: func(text string, err error) { c.t.Log(text, err) },
	})
}

// archive archives what lies in the topic, and anchors it.
func (c *court) archive() {
	c.t.Helper()
	var rows []func(*prooftest.Batch)
	for _, m := range c.topic {
		tenant, kind := header(m, audit.HeaderTenant), header(m, audit.HeaderKind)
		id := m.Value[bytes.Index(m.Value, []byte(`"recordId":"`))+12:][:26]
		if before, ok := c.said[string(id)]; ok {
			if !bytes.Equal(before, m.Value) {
				c.conflicts = append(c.conflicts, fmt.Sprintf("%s\n%s", before, m.Value))
			}
			continue
		}
		c.said[string(id)] = m.Value
		rows = append(rows, func(b *prooftest.Batch) {
			b.Row(tenant, func(r *audit.Record) {
				r.Kind, r.RecordID, r.CreatedAt = audit.Str(kind), audit.Str(string(id)), r.KafkaTimestamp
				r.Slots[audit.SlotContext] = m.Value
			})
		})
	}
	c.topic = nil
	if rows == nil {
		return
	}
	c.control.Segment(func(b *prooftest.Batch) {
		for _, add := range rows {
			add(b)
		}
	})
	c.control.Anchor()
	c.land()
}

func header(m audit.Message, name string) string {
	i := slices.IndexFunc(m.Headers, func(h audit.MessageHeader) bool { return h.Name == name })
	return string(m.Headers[i].Value)
}

// cycle makes one cycle over all lines, and archives what it sent.
func (c *court) cycle() *Cycle {
	c.t.Helper()
	r := c.cycleOf(c.governor)
	c.archive()
	return r
}

func (c *court) cycleOf(g *Governor) *Cycle {
	c.t.Helper()
	lines, err := g.Lines(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := g.Cycle(c.t.Context(), lines, true)
	if err != nil {
		c.t.Fatal(err)
	}
	for l, err := range r.Failed {
		c.t.Fatalf("%v: %v", l, err)
	}
	return r
}

// days lets time pass, with cycles every few hours.
func (c *court) days(n int) {
	c.t.Helper()
	for range 4 * n {
		c.later(6 * time.Hour)
		c.cycle()
	}
}

// state returns how an order stands.
func (c *court) state(id string) Standing {
	c.t.Helper()
	all, err := c.restart().Standing(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s Standing) bool { return s.Order.ID == id })
	if i < 0 {
		c.t.Fatalf("no order %s in %+v", id, all)
	}
	return all[i]
}

func (c *court) want(id, state string) {
	c.t.Helper()
	if s := c.state(id); s.State != state {
		c.t.Fatalf("order %s is %s (%s), want %s; lines %+v", id, s.State, s.Why, state, s.Lines)
	}
}

// fill archives rows of two tenants, with a secret.
func (c *court) fill() {
	c.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1"); told(b, "globex", "t-2") })
	c.calls.Anchor()
	c.land()
	c.later(time.Hour)
	c.cycle()
}

// An order is gated at once, carried out after purge-after, receipted after the
// grace, and closed after the late window; its own context is then gone as well.
// Nothing of it is said twice, whoever says it.
func TestLifeOfAnOrder(t *testing.T) {
	c := newCourt(t)
	c.fill()
	id := prooftest.OrderID(1)
	members := prooftest.Redaction(map[string]any{"userId": "user-of-t-1"}, "*")
	members["user"] = true
	c.order("acme", audit.KindRedaction, id, members)
	c.cycle()
	c.want(id, archive.RedactionGated)
	if hits := c.find(secret); len(hits) == 0 {
		t.Fatal("it is gone at once")
	}
	c.days(6)
	c.want(id, archive.RedactionGated)
	c.days(2)
	c.want(id, archive.RedactionReceipted)
	if hits := c.find("user-of-t-1"); len(hits) != 1 {
		t.Errorf("beside the order's own context: %q", hits)
	}
	c.wantExit(0)
	c.days(6)
	c.want(id, archive.RedactionReceipted)
	c.days(3)
	c.want(id, StateClosed)
	c.wantNowhere("user-of-t-1")
	c.wantExit(0)
	for _, l := range []archive.Line{c.calls.Line, c.control.Line} {
		if e := c.entry(l, id); e != nil {
			t.Errorf("%v still lists it: %+v", l, e)
		}
	}
	n := len(c.said)
	c.days(3)
	if len(c.said) != n || len(c.conflicts) > 0 {
		t.Errorf("%d more records, conflicts %q", len(c.said)-n, c.conflicts)
	}
}

// Two compactors that both lead, one of which knows nothing, send the same bytes
// under the same ids.
func TestTwoLeads(t *testing.T) {
	c := newCourt(t)
	c.fill()
	id := prooftest.OrderID(1)
	members := prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*")
	members["hard"], members["user"] = true, true
	c.order("acme", audit.KindRedaction, id, members)
	for range 40 {
		c.later(30 * time.Minute)
		other := c.restart()
		c.cycleOf(c.governor)
		c.cycleOf(other)
		if len(c.topic) > 2 {
			c.archive() // late: several are sent before one is archived
		}
		if len(c.conflicts) > 0 {
			t.Fatalf("conflicts: %q", c.conflicts)
		}
	}
	c.archive()
	c.cycle()
	c.want(id, archive.RedactionReceipted)
	c.wantExit(0)
}

// An order that is taken back before it is due erases nothing; afterwards it is
// too late, and it goes on to its end.
func TestTakenBack(t *testing.T) {
	for _, late := range []bool{false, true} {
		c := newCourt(t)
		c.fill()
		id := prooftest.OrderID(1)
		c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
		c.days(5)
		if late {
			c.days(3)
		}
		c.order("acme", audit.KindRedactionCancelled, prooftest.OrderID(2), map[string]any{"redactionId": id, "reason": "r", "by": "dpo"})
		c.days(5)
		if late {
			c.want(id, archive.RedactionReceipted)
			continue
		}
		c.want(id, StateCancelled)
		if hits := c.find(secret); len(hits) == 0 {
			t.Error("it was erased all the same")
		}
		if e := c.entry(c.calls.Line, id); e != nil {
			t.Errorf("the catalog lists it: %+v", e)
		}
		c.wantExit(0)
	}
}

// What a hold keeps is not erased, and nothing says that it was; once the hold is
// lifted it is.
func TestHeldOrders(t *testing.T) {
	for name, scope := range map[string]map[string]any{"tenant": {"tenant": true}, "user": {"userId": "user-of-t-1"}, "session": {"sessionId": "s-1"}} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			c.calls.Segment(func(b *prooftest.Batch) {
				b.Row("acme", func(r *audit.Record) {
					r.Kind, r.SessionID, r.TurnID, r.UserID, r.RedactionPolicy = audit.Str(audit.KindToolCall), audit.Str("s-1"), audit.Str("t-1"), audit.Str("user-of-t-1"), audit.Str(audit.PolicyNone)
					r.Slots[audit.SlotContext] = []byte(`{"said":"` + secret + `"}`)
				})
			})
			c.calls.Anchor()
			c.land()
			c.order("acme", audit.KindLegalHold, prooftest.OrderID(3), map[string]any{"scope": scope, "set": true, "reason": "r", "by": "dpo"})
			id := prooftest.OrderID(1)
			c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
			c.days(10)
			c.want(id, StateHeld)
			if hits := c.find(secret); len(hits) == 0 {
				t.Fatal("it was erased all the same")
			}
			if len(c.said) > 0 {
				t.Errorf("something was said: %q", c.said)
			}
			c.order("acme", audit.KindLegalHold, prooftest.OrderID(4), map[string]any{"scope": scope, "set": false, "reason": "r", "by": "dpo"})
			c.days(2)
			c.want(id, archive.RedactionReceipted)
			c.wantNowhere(secret)
			c.days(9)
			c.want(id, StateClosed)
			c.wantExit(0)
		})
	}
}

// A row that comes in the late window is erased, and has a receipt of its own; the
// order is closed after that.
func TestLateRows(t *testing.T) {
	c := newCourt(t)
	c.fill()
	id := prooftest.OrderID(1)
	c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	c.days(8)
	c.want(id, archive.RedactionReceipted)
	c.calls.Segment(func(b *prooftest.Batch) {
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.TurnID, r.RedactionPolicy = audit.Str(audit.KindToolCall), audit.Str("t-1"), audit.Str(audit.PolicyNone)
			r.CreatedAt = audit.I64(prooftest.Start)
			r.Slots[audit.SlotContext] = []byte(`{"said":"a late ` + secret + `"}`)
		})
	})
	c.calls.Anchor()
	c.land()
	c.days(2)
	c.wantNowhere("a late " + secret)
	if s := c.state(id); receipts(s.Order) != 2 {
		t.Errorf("%d receipts", receipts(s.Order))
	}
	c.wantExit(0)
	c.days(9)
	c.want(id, StateClosed)
	c.wantExit(0)
	if len(c.conflicts) > 0 {
		t.Errorf("conflicts: %q", c.conflicts)
	}
}

// An order that is not receipted in time is overdue, and one that nothing but its
// time keeps is not.
func TestOverdue(t *testing.T) {
	c := newCourt(t)
	c.fill()
	id := prooftest.OrderID(1)
	c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	c.later(29 * day)
	if s := c.state(id); s.Overdue {
		t.Errorf("overdue early: %+v", s)
	}
	c.later(2 * day)
	s := c.state(id)
	if !s.Overdue || Oldest([]Standing{s}, c.now) < 30*day {
		t.Errorf("%+v", s)
	}
	c.days(1)
	if s := c.state(id); s.Overdue || s.State != archive.RedactionReceipted || Oldest([]Standing{s}, c.now) != 0 {
		t.Errorf("%+v", s)
	}
}

func policies(t testing.TB, text string) *retention.Policies {
	t.Helper()
	p, err := retention.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Rows go after their period, by a cut that is archived first; payload before that;
// what no policy names stays, and so does another tenant's.
func TestRetention(t *testing.T) {
	c := newCourt(t)
	c.governor.Policies = policies(t, "tenants: {acme: {rows: 20d, payload: 10d}}")
	c.fill()
	c.days(9)
	if len(c.said) > 0 {
		t.Fatalf("something is said early: %q", c.said)
	}
	c.days(3)
	if hits := c.find(secret); len(hits) != 1 {
		t.Errorf("after the payload's period: %q", hits)
	}
	c.wantExit(0)
	c.days(10)
	r := c.wantExit(0)
	if r.Totals.Cut == 0 {
		t.Errorf("nothing was cut: %+v", r.Totals)
	}
	for _, l := range r.Lines {
		for i := range l.Logs {
			if log := &l.Logs[i]; l.Line.Topic == "audit.calls" && (log.Tenant == "acme") != (log.FirstSeq > 0) {
				t.Errorf("log of %s begins at %d", log.Tenant, log.FirstSeq)
			}
		}
	}
	if hits := c.find(secret); len(hits) != 1 {
		t.Errorf("another tenant's: %q", hits)
	}
	n := len(c.said)
	c.days(5)
	if len(c.said) != n || len(c.conflicts) > 0 {
		t.Errorf("%d more records, conflicts %q", len(c.said)-n, c.conflicts)
	}
}

// A hold stops a cut, whatever the policy says.
func TestRetentionAndHolds(t *testing.T) {
	c := newCourt(t)
	c.governor.Policies = policies(t, "default: {rows: 20d}")
	c.fill()
	c.order("acme", audit.KindLegalHold, prooftest.OrderID(3), map[string]any{"scope": map[string]any{"userId": "user-of-t-1"}, "set": true, "reason": "r", "by": "dpo"})
	c.days(30)
	if hits := c.find(secret); len(hits) != 1 {
		t.Errorf("%q", hits)
	}
	c.wantExit(4) // what is due behind the held row is erased, and not receipted before that one is
	c.order("acme", audit.KindLegalHold, prooftest.OrderID(4), map[string]any{"scope": map[string]any{"userId": "user-of-t-1"}, "set": false, "reason": "r", "by": "dpo"})
	c.days(2)
	c.wantNowhere(secret)
	c.wantExit(0)
}

// An offboarded tenant has no rows any more, and nothing in its control log names
// anybody; others have theirs.
func TestOffboarding(t *testing.T) {
	c := newCourt(t)
	c.fill()
	c.order("acme", audit.KindLegalHold, prooftest.OrderID(3), map[string]any{"scope": map[string]any{"userId": "someone-who-was-held"}, "set": true, "reason": "r", "by": "dpo"})
	c.order("acme", audit.KindLegalHold, prooftest.OrderID(4), map[string]any{"scope": map[string]any{"userId": "someone-who-was-held"}, "set": false, "reason": "r", "by": "dpo"})
	c.order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"userId": "user-of-t-1"}, "*"))
	c.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-9") }) // not compacted yet
	c.calls.Anchor()
	c.land()
	o, err := c.governor.Offboard(c.t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Expiries) != 1 || o.Expiries[0].Cut.Size != 6 || len(o.Contexts) != 2 || len(o.Waiting) != 1 {
		t.Fatalf("%+v", o)
	}
	o.Reason("the contract ended")
	records, err := c.governor.Records(c.t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.topic = append(c.topic, records...)
	c.archive()
	c.days(20)
	c.wantNowhere("user-of-t-1", "user-of-t-9", "someone-who-was-held")
	if hits := c.find(secret); len(hits) != 1 {
		t.Errorf("another tenant's: %q", hits)
	}
	c.wantExit(0)
	if o, err = c.governor.Offboard(c.t.Context(), "acme"); err != nil || len(o.Expiries)+len(o.Contexts)+len(o.Waiting) > 0 {
		t.Errorf("%v: again %+v", err, o)
	}
}

// An order of expiry is refused where a floor keeps the rows, and one by hand too.
func TestRefusedOrders(t *testing.T) {
	c := newCourt(t)
	c.governor.Policies = policies(t, "default: {profile: sec17a4}")
	c.fill()
	id := prooftest.OrderID(1)
	c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	c.days(9)
	all, err := c.governor.Standing(t.Context())
	if err != nil || len(all) != 1 || all[0].State != StateRefused || !strings.Contains(all[0].Why, "sec17a4") || all[0].Overdue {
		t.Errorf("%+v, %v", all, err)
	}
	if hits := c.find(secret); len(hits) == 0 {
		t.Error("it was erased all the same")
	}
}

// What a target means now is what would be erased: in data files and in segments.
func TestFind(t *testing.T) {
	c := newCourt(t)
	c.fill()
	c.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	c.calls.Anchor()
	c.land()
	row := func(target control.Target) *control.Row {
		return &control.Row{Tenant: "acme", ID: prooftest.OrderID(1), Kind: audit.KindRedaction, ArchivedAt: c.now.Add(time.Hour).UnixMicro(), CreatedAt: c.now.UnixMicro(), Redaction: &control.Redaction{Target: target, Erasure: control.Erasure{All: true}}}
	}
	str := func(s string) *string { return &s }
	offset := int64(1)
	for _, tt := range []struct {
		target control.Target
		rows   int64
		files  int64
	}{
		{control.Target{Turn: str("t-1")}, 2, 2},
		{control.Target{User: str("user-of-t-1")}, 2, 2},
		{control.Target{Turn: str("t-2")}, 0, 0},
		{control.Target{Record: str("01KBCDEFGHJKMNPQRSTV999999")}, 2, 2},
		{control.Target{Log: &c.calls.Line, Offset: &offset}, 1, 1},
	} {
		found, err := c.governor.Find(t.Context(), row(tt.target))
		if err != nil {
			t.Fatal(err)
		}
		var rows, files int64
		for _, f := range found {
			rows, files = rows+f.Rows, files+f.Files
		}
		if rows != tt.rows || files != tt.files {
			t.Errorf("%+v: %d rows in %d objects, want %d in %d", tt.target, rows, files, tt.rows, tt.files)
		}
	}
}

// An order that names a place is closed like any other, though its own row lies
// in another line.
func TestPlacesAreClosed(t *testing.T) {
	c := newCourt(t)
	c.fill()
	id := prooftest.OrderID(1)
	c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"topic": c.calls.Line.Topic, "topicId": c.calls.Line.TopicID, "partition": c.calls.Line.Partition, "offset": 1}, "*"))
	c.days(8)
	c.want(id, archive.RedactionReceipted)
	c.days(9)
	c.want(id, StateClosed)
	c.wantExit(0)
	for _, l := range []archive.Line{c.calls.Line, c.control.Line} {
		if e := c.entry(l, id); e != nil {
			t.Errorf("%v still lists it: %+v", l, e)
		}
	}
}

// The first receipt of an order of expiry closes it: it waits for all rows below
// its seq, also where none, or only some, were archived when it was given.
func TestExpiryWaitsForItsRows(t *testing.T) {
	for _, there := range []int{0, 1} {
		c := newCourt(t)
		more := func() {
			c.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
			c.calls.Anchor()
			c.land()
		}
		for range there {
			more()
		}
		c.cycle()
		id := prooftest.OrderID(1)
		c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"topic": c.calls.Line.Topic, "topicId": c.calls.Line.TopicID, "partition": c.calls.Line.Partition, "seqBefore": 5}, "*"))
		c.days(2)
		if s := c.state(id); s.State == StateClosed || receipts(s.Order) != 0 {
			t.Fatalf("with %d rows there it is %s", there, s.State)
		}
		for range 2 - there {
			more()
		}
		c.days(2)
		c.want(id, StateClosed)
		c.wantNowhere(secret)
		c.wantExit(0)
	}
}

// No receipt is sent while a segment is there that somebody brought back who had
// slept, whether or not a sweep has found it yet.
func TestReceiptWaitsForWhatIsBroughtBack(t *testing.T) {
	c := newCourt(t)
	c.settings.Once = false
	c.governor = c.restart()
	c.fill()
	id := prooftest.OrderID(1)
	c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	c.cycle()
	send, away := c.governor.Send, errors.New("Kafka is away")
	c.governor.Send = func(context.Context, []audit.Message) error { return away }
	lines, err := c.governor.Lines(t.Context())
	for i := 0; !errors.Is(err, away); i++ {
		if c.later(6 * time.Hour); i > 40 {
			t.Fatalf("no receipt is due: %v", err)
		}
		_, err = c.governor.Cycle(t.Context(), lines, true)
	}
	c.governor.Send = send
	c.stray(c.calls.Key(0))
	if c.cycle(); receipts(c.state(id).Order) > 0 {
		t.Fatalf("the receipt is sent, and %s is there again", c.calls.Key(0))
	}
	c.days(1)
	c.want(id, archive.RedactionReceipted)
	c.wantExit(0)
}

// An order may be closed by who has not seen yet that its tenant has rows in a new
// line, where another compactor has just listed it: what it means is not known any
// more, and it is closed all the same.
func TestListedWhileItIsClosed(t *testing.T) {
	c := newCourt(t)
	c.fill()
	id := prooftest.OrderID(1)
	c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	for c.days(1); c.state(id).State != archive.RedactionReceipted; c.days(1) {
	}
	over := time.UnixMicro(c.state(id).Order.Receipted).Add(c.governor.LateWindow)
	for c.now.Before(over) {
		c.later(6 * time.Hour)
		c.cycle()
	}
	other := c.Line("audit.other", 0)
	for range 2 {
		other.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	}
	other.Anchor()
	c.land()
	d, err := c.restart().Duties(t.Context(), []archive.Line{other.Line})
	if err != nil {
		t.Fatal(err)
	}
	small := c.settings
	small.Memory = 1
	if _, err := New(small).Pass(t.Context(), other.Line, d[other.Line]); err != nil {
		t.Fatal(err)
	}
	if e := c.entry(other.Line, id); e == nil || e.State != archive.RedactionGated {
		t.Fatalf("%+v", e)
	}
	if _, err := c.governor.Cycle(t.Context(), []archive.Line{c.control.Line}, true); err != nil {
		t.Fatal(err)
	}
	if s := c.state(id); !s.Order.Gone || s.State == StateClosed {
		t.Fatalf("it is %s, gone %v", s.State, s.Order.Gone)
	}
	c.days(2)
	c.want(id, StateClosed)
	for _, l := range []archive.Line{c.calls.Line, other.Line, c.control.Line} {
		if e := c.entry(l, id); e != nil {
			t.Errorf("%v still lists it: %+v", l, e)
		}
	}
	c.wantExit(0)
}

// A row that an order means, and that was archived before the time for late rows
// was over, is erased, however late the anchor that covers it, and however long
// segments wait to be compacted.
func TestLateRowsWaitForTheirAnchor(t *testing.T) {
	for _, anchored := range []bool{false, true} {
		c := newCourt(t)
		c.settings.Once, c.settings.MaxAge = !anchored, 1000*day
		c.governor = c.restart()
		c.fill()
		id := prooftest.OrderID(1)
		c.order("acme", audit.KindRedaction, id, prooftest.Redaction(map[string]any{"recordId": "01KBCDEFGHJKMNPQRSTV999999"}, "*"))
		for c.days(1); c.state(id).State != archive.RedactionReceipted; c.days(1) {
		}
		c.days(6)
		c.calls.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
		if anchored {
			c.calls.Anchor()
		}
		c.land()
		c.days(3)
		if s := c.state(id); s.Order.Gone {
			t.Fatalf("anchored %v: it is %s, and a row that is not compacted yet may be one that it means", anchored, s.State)
		}
		c.calls.Anchor()
		c.land()
		c.days(12)
		c.want(id, StateClosed)
		for _, hit := range c.find(secret) {
			if !strings.Contains(hit, "/globex/") {
				t.Errorf("anchored %v: %s", anchored, hit)
			}
		}
		c.wantExit(0)
	}
}

// A line that is halted keeps only those waiting that have rows in it: the orders
// of others are carried out and receipted.
func TestHaltedLineStopsNoOthers(t *testing.T) {
	c := newCourt(t)
	other := c.Line("audit.more", 0)
	other.Segment(func(b *prooftest.Batch) { told(b, "acme", "t-1") })
	other.Anchor()
	c.fill()
	c.cycle()
	// Somebody who is not known signs the newest catalog of that line.
	newest, err := archive.NewestCatalogObject(t.Context(), c.store, other.Line, -1)
	if err != nil || newest == nil {
		t.Fatal(newest, err)
	}
	body, err := c.store.Get(t.Context(), newest.Key)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(body), "\n\n")
	c.store.Overwrite(newest.Key, prooftest.Signed(text+"\n", prooftest.Signer("mallory.example")))
	c.order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "t-1"}, "*"))
	c.order("globex", audit.KindRedaction, prooftest.OrderID(2), prooftest.Redaction(map[string]any{"turnId": "t-2"}, "*"))
	for range 40 {
		c.later(6 * time.Hour)
		lines, err := c.governor.Lines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.governor.Cycle(t.Context(), lines, true)
		if err != nil || len(r.Failed) != 1 || !errors.Is(r.Failed[other.Line], ErrHalted) {
			t.Fatalf("%v, %v", err, r.Failed)
		}
		c.archive()
	}
	c.want(prooftest.OrderID(2), archive.RedactionReceipted)
	if s := c.state(prooftest.OrderID(1)); receipts(s.Order) != 0 || !s.Overdue && c.now.Sub(time.UnixMicro(s.Order.ArchivedAt)) > 30*day {
		t.Errorf("%+v", s)
	}
}

// However much went, every row and every object stands in one part, and no part is
// longer than a reader or a broker takes.
func TestReceiptParts(t *testing.T) {
	l := archive.Line{Topic: "audit.calls", TopicID: "kTqBbX2gT0uYv1sO4cW9Zg"}
	m := archive.Line{Topic: "audit.more", TopicID: "kTqBbX2gT0uYv1sO4cW9Zg", Partition: 7}
	for _, n := range []int64{0, 1, 5000, 5001, 12345} {
		order := &control.Order{Row: &control.Row{ID: prooftest.OrderID(1), Redaction: &control.Redaction{Erasure: control.Erasure{All: true}}}}
		b := receiptOf(order, false)
		for _, line := range []archive.Line{l, m} {
			var erased [][2]int64
			e := &archive.CatalogRedaction{}
			for i := range n {
				erased = append(erased, [2]int64{3 * i, 3*i + 1})
				e.Deleted = append(e.Deleted, archive.CatalogDeleted{Key: archive.DataKey(line, "acme", "2026-05-28", i, i, prooftest.OrderID(int(i))), Versions: []string{strings.Repeat("v", 32)}})
			}
			b.line(line, erased, e)
		}
		parts := b.end()
		ranges, deleted := map[archive.Line]int64{}, map[string]bool{}
		for i, p := range parts {
			if p.Part != int64(i+1) || p.Parts != int64(len(parts)) {
				t.Errorf("part %d of %d stands at %d of %d", p.Part, p.Parts, i+1, len(parts))
			}
			value, err := p.Value("acme", prooftest.OrderID(1), time.Now())
			if err != nil || len(value) > 1_000_000 {
				t.Errorf("a part of %d bytes: %v", len(value), err)
			}
			for _, e := range p.Erased {
				ranges[e.Log] += int64(len(e.Ranges))
			}
			for _, d := range p.Deleted {
				if deleted[d.Key] {
					t.Errorf("%s stands there twice", d.Key)
				}
				deleted[d.Key] = true
			}
		}
		if ranges[l] != n || ranges[m] != n || int64(len(deleted)) != 2*n || len(parts) == 0 {
			t.Errorf("of %d: %v ranges, %d objects in %d parts", n, ranges, len(deleted), len(parts))
		}
	}
}

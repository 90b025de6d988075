package emit

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerlake/ledgerlake/ledger"
)

// A time that an application says becomes a column, and nothing else: brokers refuse
// times to come, and the whole batch that one is in, and delete what is old; a record
// goes as soon as any other, and ids stay where they are.
func TestTimesOfApplications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(truck)
		e := startOn(Options{Topic: topic}, k)
		e.StartTurn("msg-1", acme())
		began := time.Now()
		for _, at := range []time.Time{time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC), began.Add(-time.Hour), began.Add(-time.Second), {}} {
			e.Record(t.Context(), "msg-1", &ledger.Call{CreatedAt: at})
			e.RecordEntry(t.Context(), "msg-1", &ledger.Entry{Kind: "tool-call", TS: at})
			e.RecordDecision(t.Context(), "msg-1", &ledger.DecisionRecord{DecisionID: "d", Timestamp: at})
			if err := e.RecordSync(t.Context(), "msg-1", &ledger.Call{CreatedAt: at}); err != nil {
				t.Error(err)
			}
			time.Sleep(linger)
			synctest.Wait()
			if s := e.Stats(); s.Waiting != 0 {
				t.Errorf("%v: %d records wait", at, s.Waiting)
			}
		}
		for _, r := range k.records() {
			row := decoded(t, r)
			if age := r.Timestamp.Sub(began); age < -time.Minute || age > time.Second {
				t.Errorf("made at %v, and is %v for Kafka", time.UnixMicro(row.CreatedAt.N), r.Timestamp)
			}
			id, err := ulid.ParseStrict(row.RecordID.S)
			if age := id.Timestamp().Sub(began); err != nil || age < -time.Minute || age > time.Second {
				t.Errorf("%s is of %v: %v", row.RecordID.S, id.Timestamp(), err)
			}
		}
		if len(k.records()) != 20 {
			t.Errorf("%d records", len(k.records()))
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A record that is larger than the queue goes alone, and takes no other with it.
func TestTooLargeGoesAlone(t *testing.T) {
	q := newQueue(100, 10_000)
	for range 10 {
		q.add(entry{tenant: "acme", value: make([]byte, 100)})
	}
	if q.add(entry{tenant: "huge", value: make([]byte, 10_001)}) {
		t.Error("nothing was dropped")
	}
	if s := q.stats(); s.Dropped != 1 || s.Waiting != 10 || s.WaitingBytes != 1000 || q.told["acme"] != nil {
		t.Errorf("%+v", s)
	}
	if q.add(entry{tenant: "acme", value: make([]byte, 9_950)}) {
		t.Error("nothing was dropped")
	}
	if s := q.stats(); s.Dropped != 11 || s.Waiting != 1 || s.WaitingBytes != 9_950 || q.waiting.bytes != 9_950 {
		t.Errorf("%+v", s)
	}
	taken, _ := q.take(nil, 1, time.Now().Add(time.Hour))
	if q.add(entry{tenant: "acme", value: make([]byte, 51)}) {
		t.Error("what is away leaves room for 50 bytes")
	}
	q.settle(&taken[0], nil)
	if s := q.stats(); s.Dropped != 12 || s.Waiting != 0 || s.WaitingBytes != 0 || q.waiting.bytes != 0 {
		t.Errorf("%+v", s)
	}
}

// Who flushes with a deadline while brokers are away leaves nothing behind, and who
// waits hears of exactly what came before.
func TestFlushesThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &truck{keeps: true}
		e := startOn(Options{Topic: topic, Queue: 50}, k)
		e.StartTurn("msg-1", acme())
		record := func() {
			e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1"}, ledger.TokenCost{})
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 1000 {
			record()
			if err := e.Flush(gone); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		if len(e.queue.flushes) != 0 || len(e.queue.open) > 50 {
			t.Errorf("%d flushes, %d epochs", len(e.queue.flushes), len(e.queue.open))
		}
		heard := make(chan int, 3)
		flush := func(n int) {
			if err := e.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			heard <- n
		}
		go flush(1)
		synctest.Wait()
		go flush(2) // nothing came since: it is the same
		synctest.Wait()
		if len(e.queue.flushes) != 1 || e.queue.flushes[0].asked != 2 {
			t.Errorf("%d flushes", len(e.queue.flushes))
		}
		record()
		go flush(3)
		synctest.Wait()
		if len(heard) != 0 || len(e.queue.flushes) != 2 {
			t.Errorf("%d are done, %d are not", len(heard), len(e.queue.flushes))
		}
		for len(heard) < 3 {
			k.answer(nil)
			synctest.Wait()
		}
		if s := e.Stats(); s.Waiting != 0 || len(e.queue.flushes) != 0 || len(e.queue.open) != 0 {
			t.Errorf("%+v, %d flushes", s, len(e.queue.flushes))
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		k.mu.Lock()
		k.keeps = false
		k.mu.Unlock()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		for range 100 {
			if err := e.Flush(t.Context()); err != nil {
				t.Fatalf("all was acknowledged before it was closed: %v", err)
			}
		}
	})
}

type panicking struct{ ledger.NoRedactor }

func (panicking) Redact(*ledger.Call) (*ledger.Call, error) { panic("a policy") }

// What the application brings may panic: who waits for a record has an error of it,
// and who is told of trouble ends nothing.
func TestPanicsOfApplications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		e := startOn(Options{Topic: topic, Redactor: panicking{}, Trouble: func(error) { told++; panic("a log") }}, new(truck))
		e.StartTurn("msg-1", acme())
		if err := e.RecordSync(t.Context(), "msg-1", new(ledger.Call)); err == nil || !strings.Contains(err.Error(), "a policy") {
			t.Error(err)
		}
		if c, err := e.Fill("msg-1", new(ledger.Call)); c != nil || err == nil {
			t.Error(c, err)
		}
		if err := e.RecordSync(t.Context(), "msg-1", nil); err == nil {
			t.Error("nil is no call")
		}
		e.Record(t.Context(), "msg-1", new(ledger.Call))
		synctest.Wait()
		e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "unknown"}, ledger.TokenCost{})
		synctest.Wait()
		if s := e.Stats(); s.Swallowed != 4 || s.Recorded != 0 || told != 2 {
			t.Errorf("%+v, told %d times", s, told)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Whatever a slot of the application's own holds, an archive takes the record.
func TestSlotsThatNoArchiveWouldTake(t *testing.T) {
	k := new(truck)
	e := startOn(Options{Topic: topic}, k)
	e.StartTurn("msg-1", acme())
	for _, text := range []string{`{"a":1,"a":2}`, `{"a":"\ud800"}`, strings.Repeat("[", 100) + strings.Repeat("]", 100), `{`, ``, `null`, `"x"`, `{"a":1}`} {
		e.RecordInterruptDecisionDecision(t.Context(), Site{TurnKey: "msg-1", Extra: ledger.Members{{Name: "x", Value: json.RawMessage(text)}}}, json.RawMessage(text))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range k.records() {
		decoded(t, r)
	}
	if len(k.records()) != 8 {
		t.Errorf("%d records", len(k.records()))
	}
}

// What names another tenant than its turn does is that one's, and gets no user of the
// turn's; what names another user is that one's.
func TestAnotherPrincipalThanTheTurns(t *testing.T) {
	k := new(truck)
	e := startOn(Options{Topic: topic}, k)
	e.StartTurn("msg-1", acme())
	of := ledger.Principal{TenantID: "other"}
	e.RecordDecision(t.Context(), "msg-1", &ledger.DecisionRecord{DecisionID: "d", TenantID: "other"})
	e.RecordDecision(t.Context(), "msg-1", &ledger.DecisionRecord{DecisionID: "d", Principal: of})
	e.RecordEntry(t.Context(), "msg-1", &ledger.Entry{Kind: "tool-call", TenantID: "other"})
	e.RecordEntry(t.Context(), "msg-1", &ledger.Entry{Kind: "tool-call", Principal: of})
	e.RecordEntry(t.Context(), "msg-1", &ledger.Entry{Kind: "tool-call"})
	e.Record(t.Context(), "msg-1", &ledger.Call{Principal: ledger.Principal{UserID: "somebody"}})
	e.Record(t.Context(), "msg-1", &ledger.Call{Principal: ledger.Principal{ActorKind: "system"}})
	e.Record(t.Context(), "msg-1", &ledger.Call{Extra: ledger.Members{{Name: "tenantId", Value: json.RawMessage(`"other"`)}}})
	e.RecordDecision(t.Context(), "msg-1", &ledger.DecisionRecord{DecisionID: "d", Principal: ledger.Principal{UserID: "somebody"}})
	e.Record(t.Context(), "msg-1", new(ledger.Call))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	want := [][2]string{
		{"other"},
		{"other"},
		{"other"},
		{"other"},
		{"acme", "user-4711"},
		{"acme", "somebody"},
		{"acme"},
		{"other"},
		{"acme", "somebody"},
		{"acme", "user-4711"},
	}
	if len(k.records()) != len(want) {
		t.Fatalf("%d records", len(k.records()))
	}
	for i, r := range k.records() {
		if row := decoded(t, r); row.TenantID.S != want[i][0] || string(r.Key) != want[i][0] || row.UserID.S != want[i][1] {
			t.Errorf("%d: tenant %q, key %q, user %q", i, row.TenantID.S, r.Key, row.UserID.S)
		}
	}
}

// A first number of which the next ones would not be numbers of an archive is none.
func TestFirstNumbersThatAreNone(t *testing.T) {
	for _, first := range []int64{-1, 1 << 53, math.MaxInt64} {
		k := new(truck)
		e := startOn(Options{Topic: topic}, k)
		as := acme()
		as.FirstSeq = &first
		e.StartTurn("msg-1", as)
		e.Record(t.Context(), "msg-1", new(ledger.Call))
		e.Record(t.Context(), "msg-1", new(ledger.Call))
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		for _, r := range k.records() {
			if n := decoded(t, r).SeqWithinTurn.N; n < 1e15 || n >= 1<<53 {
				t.Errorf("from %d on: %d", first, n)
			}
		}
	}
}

package emit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/ledger"
)

const topic = "audit.calls"

// A truck is a carrier that a test holds up. It may be used at once with an
// emitter.
type truck struct {
	mu       sync.Mutex
	carried  []*kgo.Record
	promises []func(error)
	keeps    bool          // promises are kept for answer
	blocks   chan struct{} // Produce waits for it to be closed; nil does not
	looks    func()        // called by Produce
	closed   bool
}

func (k *truck) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	if k.looks != nil {
		k.looks()
	}
	if k.blocks != nil {
		<-k.blocks
	}
	k.mu.Lock()
	k.carried = append(k.carried, r)
	if k.keeps {
		k.promises = append(k.promises, func(err error) { promise(r, err) })
		k.mu.Unlock()
		return
	}
	k.mu.Unlock()
	promise(r, nil)
}

func (k *truck) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
}

// answer keeps all promises that are open.
func (k *truck) answer(err error) {
	k.mu.Lock()
	open := k.promises
	k.promises = nil
	k.mu.Unlock()
	for _, promise := range open {
		promise(err)
	}
}

// records returns what was carried.
func (k *truck) records() []*kgo.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.carried)
}

// startOn returns an emitter whose records go by truck.
func startOn(o Options, k *truck) *Emitter {
	e := made(o)
	e.run(k)
	return e
}

// decoded returns the row that an archive makes of a record.
func decoded(t *testing.T, r *kgo.Record) *audit.Record {
	t.Helper()
	m := audit.Message{Topic: r.Topic, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, audit.MessageHeader{Name: h.Key, Value: h.Value})
	}
	row := new(audit.Record)
	if reject := new(audit.Decoder).Decode(row, &m); reject != nil {
		t.Fatalf("an archive rejects %s: %s: %s", r.Value, reject.Reason, reject.Detail)
	}
	return row
}

// acme is a turn of a test.
func acme() Turn {
	return Turn{
		Session:   "s-1",
		Principal: ledger.Principal{TenantID: "acme", UserID: "user-4711", ActorKind: "user", SessionAuthMethod: "clerk"},
		Stage:     "post-turn", FirstSeq: new(int64(0)),
	}
}

// losses returns the counts of the records that tell of losses, by tenant, the
// last of each.
func losses(t *testing.T, records []*kgo.Record) map[string]int64 {
	t.Helper()
	last := map[string]int64{}
	for _, r := range records {
		row := decoded(t, r)
		if row.Kind.S != audit.KindQueueDropped {
			continue
		}
		var context struct {
			ResultDetail struct{ Count int64 }
		}
		if err := json.Unmarshal(row.Slots[audit.SlotContext], &context); err != nil {
			t.Fatal(err)
		}
		if n := context.ResultDetail.Count; n <= last[row.TenantID.S] {
			t.Errorf("%s: count %d after %d", row.TenantID.S, n, last[row.TenantID.S])
		}
		last[row.TenantID.S] = context.ResultDetail.Count
	}
	return last
}

// alias says in ext which of several members a column came by.
var alias = regexp.MustCompile(`"\$alias":{[^}]*}`)

// Each of the ten methods makes a row whose slot, and no other, is what was given,
// with the turn's session and principal, and what the site knows in its columns.
func TestTenMethods(t *testing.T) {
	free := map[string]any{"a": 1}
	for _, c := range []struct {
		name  string
		call  func(*Emitter, context.Context, Site)
		slot  audit.Slot
		says  string
		stage string
	}{
		{"FamilyLock", func(e *Emitter, ctx context.Context, at Site) {
			e.RecordFamilyLockDecision(ctx, at, ledger.FamilyLock{ResolverPath: "x", ByokActive: new(true)})
		}, audit.SlotFamilyLock, `{"resolverPath":"x","byokActive":true}`, "post-turn"},
		{"FallbackStep", func(e *Emitter, ctx context.Context, at Site) {
			e.RecordFallbackStepDecision(ctx, at, ledger.FallbackStep{AttemptIndex: new(int64(0))})
		}, audit.SlotFallbackStep, `{"attemptIndex":0}`, "post-turn"},
		{"CacheHit", func(e *Emitter, ctx context.Context, at Site) {
			e.RecordCacheHitDecision(ctx, at, ledger.CacheBreakpoint{HitPct: new(12.5)})
		}, audit.SlotCacheBreakpoint, `{"hitPct":12.5}`, "post-turn"},
		{"ProviderCascade", func(e *Emitter, ctx context.Context, at Site) {
			e.RecordProviderCascadeDecision(ctx, at, ledger.ProviderCascade{Trigger: "timeout"})
		}, audit.SlotProviderCascade, `{"trigger":"timeout"}`, "post-turn"},
		{"ToolFallbackStep", func(e *Emitter, ctx context.Context, at Site) {
			e.RecordToolFallbackStepDecision(ctx, at, ledger.ToolFallbackStep{OriginalTool: "a", CascadedTo: "b"})
		}, audit.SlotToolFallbackStep, `{"originalTool":"a","cascadedTo":"b"}`, "tool-loop"},
		{"InterruptDecision", func(e *Emitter, ctx context.Context, at Site) { e.RecordInterruptDecisionDecision(ctx, at, free) }, audit.SlotInterruptDecision, `{"a":1}`, "post-turn"},
		{"TokenCost", func(e *Emitter, ctx context.Context, at Site) {
			e.RecordTokenCostDecision(ctx, at, ledger.TokenCost{InputTokens: new(int64(7)), OutputTokens: new(int64(0)), Extra: ledger.Members{{Name: "microUsd", Value: json.RawMessage("3")}}})
		}, audit.SlotTokenCost, `{"inputTokens":7,"outputTokens":0,"microUsd":3}`, "post-turn"},
		{"ToolSelection", func(e *Emitter, ctx context.Context, at Site) { e.RecordToolSelectionDecision(ctx, at, free) }, audit.SlotToolSelection, `{"a":1}`, "tool-loop"},
		{"PlanGeneration", func(e *Emitter, ctx context.Context, at Site) { e.RecordPlanGenerationDecision(ctx, at, free) }, audit.SlotPlanGeneration, `{"a":1}`, "anchor-plan"},
		{"SynthesisQuality", func(e *Emitter, ctx context.Context, at Site) {
			e.RecordSynthesisQualityDecision(ctx, at, json.RawMessage(`{"a":1}`))
		}, audit.SlotSynthesisQuality, `{"a":1}`, "synthesize"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &truck{}
			e := startOn(Options{Topic: topic, Traceparent: func(context.Context) string { return "00-trace" }}, k)
			e.StartTurn("msg-1", acme())
			c.call(e, RetainPrompts(t.Context()), Site{TurnKey: "msg-1", Provider: "anthropic", Model: "m-1", CallClass: "worker", Transport: "native", ToolName: "search"})
			c.call(e, t.Context(), Site{TurnKey: "msg-1", Stage: "anchor-plan"})
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			records := k.records()
			if len(records) != 2 {
				t.Fatalf("%d records", len(records))
			}
			row := decoded(t, records[0])
			for s := range audit.NumSlots {
				if want := map[audit.Slot]string{c.slot: c.says, audit.SlotExt: `{"$alias":{…},"$headers":[["traceparent","00-trace"]]}`}[s]; alias.ReplaceAllString(string(row.Slots[s]), `"$$alias":{…}`) != want {
					t.Errorf("%s: %s, want %s", s, row.Slots[s], want)
				}
			}
			text := func(column audit.Text) string { return column.S }
			got := []string{
				text(row.Kind), text(row.TenantID), text(row.UserID), text(row.ActorKind), text(row.SessionAuthMethod), text(row.SessionID), text(row.TurnID),
				text(row.Family), text(row.ModelID), text(row.CallClass), text(row.Transport), text(row.ToolName), text(row.StageID),
			}
			want := []string{"call", "acme", "user-4711", "user", "clerk", "s-1", "msg-1", "anthropic", "m-1", "worker", "native", "search", c.stage}
			if !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			second := decoded(t, records[1])
			if row.SeqWithinTurn != audit.I64(0) || second.SeqWithinTurn != audit.I64(1) || row.AuditRecordVersion.N != audit.LatestVersion || second.RecordID.S <= row.RecordID.S || second.StageID.S != "anchor-plan" {
				t.Errorf("got %+v and %+v", row, second)
			}
			if h := records[0].Headers; len(h) != 3 || h[0].Key != audit.HeaderKind || h[1].Key != audit.HeaderRetainPrompts || string(h[1].Value) != "true" {
				t.Errorf("headers %v", h)
			}
			if string(records[0].Key) != "acme" || row.CreatedAt.N != row.KafkaTimestamp.N || records[0].Topic != topic {
				t.Errorf("%+v", records[0])
			}
		})
	}
}

// A whole call, a decision and an entry come with what they say, and what they do
// not say is filled in, in copies.
func TestWholeRecords(t *testing.T) {
	k := &truck{}
	e := startOn(Options{Topic: topic}, k)
	e.StartTurn("msg-1", Turn{Session: "s-1", TurnID: "turn-7", Principal: acme().Principal, FirstSeq: new(int64(5)), ParentTurnID: "turn-6", SubagentDepth: new(int64(1))})
	call := ledger.Call{ModelID: "m", Outcome: ledger.Outcome{Status: "ok"}}
	decision := ledger.DecisionRecord{DecisionID: "d-1", Verdict: "allowed"}
	entry := ledger.Entry{Kind: "ToolCall", ToolName: "search", Result: "ok"}
	e.Record(t.Context(), "msg-1", &call)
	e.RecordDecision(t.Context(), "msg-1", &decision)
	e.RecordEntry(t.Context(), "msg-1", &entry)
	own := ledger.Call{RecordID: "01KBCDEFGHJKMNPQRSTVWXYZ01", SessionID: "s", TurnID: "t", StageID: "x", SeqWithinTurn: 9, CreatedAt: time.UnixMilli(5), Principal: ledger.Principal{TenantID: "beta"}}
	//lint:ignore SA1012 a nil context must not lose a record
	e.Record(nil, "", &own)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if call.RecordID != "" || decision.RecordID != "" || entry.RecordID != "" || !call.CreatedAt.IsZero() {
		t.Error("the caller's record was changed")
	}
	var got []string
	for _, r := range k.records() {
		row := decoded(t, r)
		got = append(got, fmt.Sprint(row.Kind.S, row.TenantID.S, row.SessionID.S, row.TurnID.S, row.SeqWithinTurn, row.Status.S, row.UserID.S, row.ParentTurnID.S, row.RecordID.Valid, row.CreatedAt.Valid))
	}
	want := []string{
		"callacmes-1turn-7{5 true}okuser-4711turn-6true true",
		"decisionacmes-1d-1{0 false}alloweduser-4711true true",
		"tool-callacmes-1turn-7{6 true}okuser-4711true true",
		"callbetast{9 true}true true",
	}
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], " true true", "true true")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// What cannot be JSON, and what panics, costs no caller anything; and a slot that
// is no object costs no record.
func TestNothingFailsTheCaller(t *testing.T) {
	k := &truck{}
	var told []error
	var mu sync.Mutex
	e := startOn(Options{Topic: topic, Trouble: func(err error) { mu.Lock(); told = append(told, err); mu.Unlock() }}, k)
	e.StartTurn("msg-1", acme())
	e.StartTurn("bad", Turn{Principal: ledger.Principal{TenantID: "_partition"}})
	at := Site{TurnKey: "msg-1"}
	for _, d := range []any{func() {}, nil, 3, "text", []int{1}, json.RawMessage(`{"broken`), map[string]any{"a": make(chan int)}, "\xff"} {
		e.RecordInterruptDecisionDecision(t.Context(), at, d)
	}
	e.RecordInterruptDecisionDecision(t.Context(), at, panics{})
	e.RecordFamilyLockDecision(t.Context(), Site{TurnKey: "bad"}, ledger.FamilyLock{})
	e.RecordFamilyLockDecision(t.Context(), Site{}, ledger.FamilyLock{})
	e.Record(t.Context(), "", &ledger.Call{})
	e.Record(t.Context(), "msg-1", nil)
	e.RecordDecision(t.Context(), "nowhere", &ledger.DecisionRecord{})
	e.RecordEntry(t.Context(), "", nil)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	e.RecordFamilyLockDecision(t.Context(), at, ledger.FamilyLock{})
	if err := e.RecordSync(t.Context(), "msg-1", &ledger.Call{}); !errors.Is(err, ErrClosed) {
		t.Errorf("RecordSync after Close: %v", err)
	}
	for _, r := range k.records() {
		decoded(t, r)
	}
	if s := e.Stats(); s != (Stats{Recorded: 8, Acknowledged: 8, Unattributed: 4, Swallowed: 3, Refused: 2}) {
		t.Errorf("%+v", s)
	}
	if err := e.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	var none *Emitter
	none.StartTurn("t", acme())
	none.RecordPlanGenerationDecision(t.Context(), at, panics{})
	none.Record(t.Context(), "t", nil)
	none.EndTurn("t")
	if err := errors.Join(none.RecordSync(t.Context(), "", nil), none.Flush(t.Context()), none.Close()); err != nil || none.NewTurn(Turn{TurnID: "x"}) != "x" {
		t.Errorf("the nil Emitter: %v", err)
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }

// hides takes the tool out of calls, and cannot take some.
type hides struct{ ledger.NoRedactor }

func (hides) Redact(c *ledger.Call) (*ledger.Call, error) {
	if c.ToolName == "bad" {
		return nil, errors.New("cannot")
	}
	redacted := *c
	redacted.ToolName = ""
	return &redacted, nil
}

// What the redactor takes out is sent by no way, and a call that it cannot take is
// not sent.
func TestRedactor(t *testing.T) {
	k := &truck{}
	e := startOn(Options{Topic: topic, Redactor: hides{}}, k)
	e.StartTurn("msg-1", acme())
	for _, tool := range []string{"secret", "bad"} {
		e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1", ToolName: tool}, ledger.TokenCost{})
		e.Record(t.Context(), "msg-1", &ledger.Call{ToolName: tool})
		if err := e.RecordSync(t.Context(), "msg-1", &ledger.Call{ToolName: tool}); (err != nil) != (tool == "bad") {
			t.Error(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if s := e.Stats(); s.Acknowledged != 3 || s.Swallowed != 2 {
		t.Errorf("%+v", s)
	}
	for _, r := range k.records() {
		if row := decoded(t, r); row.ToolName.Valid {
			t.Errorf("%s", r.Value)
		}
	}
}

// Fewer than 32 records wait for 50 ms, 32 go at once, and so does what there is
// at the end of a turn.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &truck{}
		e := startOn(Options{Topic: topic}, k)
		e.StartTurn("msg-1", acme())
		emit := func(n int) {
			for range n {
				e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1"}, ledger.TokenCost{})
			}
			synctest.Wait()
		}
		carried := func(want int, when string) {
			t.Helper()
			if got := len(k.records()); got != want {
				t.Errorf("%s: %d are carried, want %d", when, got, want)
			}
		}
		emit(31)
		carried(0, "31 records")
		emit(1)
		carried(32, "32 records")
		emit(3)
		time.Sleep(49 * time.Millisecond)
		synctest.Wait()
		carried(32, "after 49 ms")
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		carried(35, "after 51 ms")
		emit(2)
		e.EndTurn("msg-1")
		synctest.Wait()
		carried(37, "at the end of the turn")
		emit(1) // what comes late waits again
		carried(37, "after the end of the turn")
		if err := e.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		carried(38, "flushed")
		if err := e.Close(); err != nil || !k.closed {
			t.Error(err)
		}
	})
}

// A carrier that blocks for ever holds up the sender, and no caller: not in
// recording, not in the end of a turn. Nor does the emitter hold its lock while
// the carrier is at work.
func TestBlockedCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &truck{blocks: make(chan struct{})}
		e := startOn(Options{Topic: topic, Queue: 10}, k)
		k.looks = func() {
			if !e.queue.mu.TryLock() {
				t.Error("the queue's lock is held while the carrier works")
				return
			}
			e.queue.mu.Unlock()
			if !e.turns.mu.TryLock() {
				t.Error("the turns' lock is held while the carrier works")
				return
			}
			e.turns.mu.Unlock()
		}
		e.StartTurn("msg-1", acme())
		before := time.Now()
		for range 1000 {
			e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1"}, ledger.TokenCost{})
		}
		e.EndTurn("msg-1")
		synctest.Wait()
		e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1"}, ledger.TokenCost{})
		e.EndTurn("msg-1")
		if time.Now() != before {
			t.Errorf("the calls took %v", time.Since(before))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.RecordSync(ctx, "msg-1", &ledger.Call{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("RecordSync: %v", err)
		}
		if err := e.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: %v", err)
		}
		closing := time.Now()
		var left *Undelivered
		if err := e.Close(); !errors.As(err, &left) || time.Since(closing) != DefaultCloseTimeout {
			t.Errorf("Close: %v after %v", err, time.Since(closing))
		}
		if s := e.Stats(); s.Recorded != 1002 || s.Acknowledged+s.Dropped+s.Failed != s.Recorded || left.Records != s.Failed || left.Uncounted != s.Dropped {
			t.Errorf("%+v, %v", s, left)
		}
		if err := e.Flush(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Flush after Close: %v", err)
		}
		close(k.blocks)
	})
}

// However much is recorded while brokers are away: what was carried and what the
// last queue-dropped records say is what was recorded, for each tenant.
func TestWhatIsDroppedIsCounted(t *testing.T) {
	const tenants, each = 5, 3000
	k := &truck{keeps: true}
	e := startOn(Options{Topic: topic, Queue: 100}, k)
	var all sync.WaitGroup
	for i := range tenants {
		key := fmt.Sprint("tenant-", i)
		e.StartTurn(key, Turn{Session: "s", FirstSeq: new(int64(0)), Principal: ledger.Principal{TenantID: key}})
		all.Go(func() {
			for n := range each {
				e.RecordTokenCostDecision(context.Background(), Site{TurnKey: key}, ledger.TokenCost{})
				if n%500 == 0 {
					k.answer(nil)
				}
			}
		})
	}
	all.Wait()
	if s := e.Stats(); s.Waiting > 100 || s.Recorded != tenants*each || s.Recorded != s.Acknowledged+s.Dropped+s.Failed+s.Waiting || s.Dropped == 0 {
		t.Errorf("%+v", s)
	}
	k.mu.Lock()
	k.keeps = false
	k.mu.Unlock()
	k.answer(nil)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s := e.Stats()
	if s.Waiting != 0 || s.WaitingBytes != 0 || s.Failed != 0 || s.Acknowledged+s.Dropped != tenants*each {
		t.Errorf("%+v", s)
	}
	lost, carried := losses(t, k.records()), map[string]int64{}
	seen := map[audit.Fingerprint]bool{}
	for _, r := range k.records() {
		row := decoded(t, r)
		at, ok := row.Coordinates()
		if !ok || seen[at] {
			t.Errorf("%s comes twice, or has no place", r.Value)
		}
		seen[at] = true
		if row.Kind.S == audit.KindCall {
			carried[row.TenantID.S]++
		}
	}
	for i := range tenants {
		tenant := fmt.Sprint("tenant-", i)
		if carried[tenant]+lost[tenant] != each {
			t.Errorf("%s: %d carried and %d told of, want %d together", tenant, carried[tenant], lost[tenant], each)
		}
	}
}

// Where more tenants lose records than may be told of at a time, all of them are told
// of in the end.
func TestManyTenantsLose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tenants = 3*maxTelling + 7
		k := &truck{keeps: true}
		e := startOn(Options{Topic: topic, Queue: 2}, k)
		for i := range tenants {
			key := fmt.Sprint("tenant-", i)
			e.StartTurn(key, Turn{Session: "s", Principal: ledger.Principal{TenantID: key}})
			for range 2 {
				e.RecordTokenCostDecision(t.Context(), Site{TurnKey: key}, ledger.TokenCost{})
			}
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(k.records()); n > maxTelling+2 {
			t.Errorf("%d records are on their way", n)
		}
		k.mu.Lock()
		k.keeps = false
		k.mu.Unlock()
		k.answer(nil)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		var told int64
		lost := losses(t, k.records())
		for _, n := range lost {
			told += n
		}
		if s := e.Stats(); told != s.Dropped || s.Dropped+s.Acknowledged != 2*tenants || len(lost) < tenants-2 {
			t.Errorf("%d of %d tenants are told of %d records; %+v", len(lost), tenants, told, s)
		}
	})
}

// The oldest go first, by count and by bytes; one that is larger than the whole
// queue goes itself.
func TestOldestGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, o := range map[string]Options{"records": {Topic: topic, Queue: 10}, "bytes": {Topic: topic, QueueBytes: 2500}} {
			k := &truck{blocks: make(chan struct{})}
			e := startOn(o, k)
			e.StartTurn("msg-1", acme())
			pad := ledger.TokenCost{Extra: ledger.Members{{Name: "pad", Value: json.RawMessage(`"` + strings.Repeat("x", 20) + `"`)}}}
			for range 20 {
				e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1"}, pad)
			}
			if name == "bytes" {
				huge := json.RawMessage(`{"x":"` + strings.Repeat("x", 3000) + `"}`)
				before := e.Stats()
				e.RecordPlanGenerationDecision(t.Context(), Site{TurnKey: "msg-1"}, huge)
				if s := e.Stats(); s.WaitingBytes > 2500 || s.Dropped <= before.Dropped {
					t.Errorf("%+v", s)
				}
				for range 20 {
					e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1"}, pad)
				}
			}
			waiting := e.Stats().Waiting
			close(k.blocks)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			var seqs []int64
			for _, r := range k.records() {
				if row := decoded(t, r); row.Kind.S == audit.KindCall {
					seqs = append(seqs, row.SeqWithinTurn.N)
				}
			}
			last := e.Stats().Recorded - 1
			if int64(len(seqs)) != waiting || waiting < 2 || seqs[0] != last-waiting+1 || !slices.IsSorted(seqs) || seqs[len(seqs)-1] != last {
				t.Errorf("%s: %v of %d", name, seqs, last+1)
			}
		}
	})
}

// What brokers refuse is told of, as what is dropped is; while they are away, one
// record of it for each tenant is on its way, and no more than one a second is
// sent.
func TestRefusedIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &truck{keeps: true}
		e := startOn(Options{Topic: topic}, k)
		e.StartTurn("msg-1", acme())
		for range 5 {
			e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1"}, ledger.TokenCost{})
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			k.answer(errors.New("refused"))
		}
		var notes int
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			k.answer(errors.New("refused")) // those that tell it, too
		}
		for _, r := range k.records() {
			if decoded(t, r).Kind.S == audit.KindQueueDropped {
				notes++
			}
		}
		if notes < 4 || notes > 7 {
			t.Errorf("%d records in 5.5 s tell of it", notes)
		}
		k.mu.Lock()
		k.keeps, k.carried = false, nil
		k.mu.Unlock()
		k.answer(nil)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		records := k.records()
		if s := e.Stats(); s.Failed != 5 || s.Recorded != 5 || s.Acknowledged != 0 {
			t.Errorf("%+v", s)
		}
		if len(records) > 0 {
			if lost := losses(t, records); lost["acme"] != 5 || !bytes.Contains(records[0].Value, []byte(`"reason":"refused by brokers"`)) {
				t.Errorf("%v: %s", lost, records[0].Value)
			}
		}
	})
}

// Trouble is told what goes wrong, each thing once in a while, and by a goroutine
// of its own: one that blocks holds up nothing.
func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		release := make(chan struct{})
		k := &truck{blocks: make(chan struct{})}
		e := startOn(Options{Topic: topic, Queue: 10, Trouble: func(err error) { told = append(told, err.Error()); <-release }}, k)
		e.StartTurn("msg-1", acme())
		flood := func() {
			for range 100 {
				e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1"}, ledger.TokenCost{})
			}
			synctest.Wait()
		}
		flood()
		flood()
		close(release)
		flood()
		e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "nowhere"}, ledger.TokenCost{})
		synctest.Wait()
		time.Sleep(again)
		flood()
		want := []string{ErrDropped.Error(), `no such turn was started: key "nowhere"`, ErrDropped.Error()}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		close(k.blocks)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// RecordSync says what brokers say, after they said it; and what an archive would
// reject is not sent.
func TestRecordSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &truck{keeps: true}
		e := startOn(Options{Topic: topic}, k)
		e.StartTurn("msg-1", acme())
		for _, want := range []error{nil, errors.New("no")} {
			got := make(chan error)
			go func() { got <- e.RecordSync(t.Context(), "msg-1", &ledger.Call{}) }()
			synctest.Wait()
			select {
			case err := <-got:
				t.Fatalf("it returned before: %v", err)
			default:
			}
			k.answer(want)
			if err := <-got; !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if err := e.RecordSync(t.Context(), "nowhere", &ledger.Call{}); !errors.Is(err, ErrUnknownTurn) {
			t.Error(err)
		}
		if err := e.RecordSync(t.Context(), "msg-1", &ledger.Call{PlanGeneration: json.RawMessage("3")}); !errors.Is(err, ledger.ErrNoRecord) {
			t.Error(err)
		}
		filled, err := e.Fill("msg-1", &ledger.Call{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the same record, both times
			go func() { _ = e.RecordSync(t.Context(), "", filled) }()
		}
		synctest.Wait()
		k.answer(nil)
		records := k.records()
		one, two := records[len(records)-2], records[len(records)-1]
		if !bytes.Equal(one.Value, two.Value) || len(records) != 4 {
			t.Errorf("%s\n%s", one.Value, two.Value)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// No more than maxSync records are on their way that somebody waits for, and a
// caller that gives up does not make room for the next one.
func TestRecordSyncIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &truck{keeps: true}
		e := startOn(Options{Topic: topic}, k)
		e.StartTurn("msg-1", acme())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 2 * maxSync {
			go func() { _ = e.RecordSync(ctx, "msg-1", &ledger.Call{}) }()
		}
		synctest.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := e.Stats(); s.Waiting != maxSync {
			t.Errorf("%+v", s)
		}
		if err := e.Close(); err == nil {
			t.Error("nothing was left")
		}
	})
}

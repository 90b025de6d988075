package emit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/ledger"
)

// A Site is what the place knows that records something. TurnKey is required.
type Site struct {
	TurnKey string
	// Stage is the stageId: anchor-plan, tool-loop, synthesize, post-turn. "" is
	// the stage that the method says, then that of the turn, then tool-loop.
	Stage string

	Provider  string // what ran
	Model     string
	CallClass string
	Transport string
	ToolName  string

	Decision *ledger.Decision // why the model was picked; nil is unknown
	Outcome  ledger.Outcome   // how the call ended; zero is unknown
	Extra    ledger.Members   // more members of the record
}

// stages are the stageIds of sites that do not say theirs.
const (
	planStage       = "anchor-plan"
	toolStage       = "tool-loop"
	synthesizeStage = "synthesize"
)

// RecordFamilyLockDecision records that a family of models was resolved.
func (e *Emitter) RecordFamilyLockDecision(ctx context.Context, at Site, d ledger.FamilyLock) {
	e.slot(ctx, &at, "", &ledger.Call{FamilyLock: &d})
}

// RecordFallbackStepDecision records what came of a rung of the ladder of models.
func (e *Emitter) RecordFallbackStepDecision(ctx context.Context, at Site, d ledger.FallbackStep) {
	e.slot(ctx, &at, "", &ledger.Call{FallbackStep: &d})
}

// RecordCacheHitDecision records what a provider's cache did (slot
// cacheBreakpoint).
func (e *Emitter) RecordCacheHitDecision(ctx context.Context, at Site, d ledger.CacheBreakpoint) {
	e.slot(ctx, &at, "", &ledger.Call{CacheBreakpoint: &d})
}

// RecordProviderCascadeDecision records that work went from one provider to
// another.
func (e *Emitter) RecordProviderCascadeDecision(ctx context.Context, at Site, d ledger.ProviderCascade) {
	e.slot(ctx, &at, "", &ledger.Call{ProviderCascade: &d})
}

// RecordToolFallbackStepDecision records that a tool gave way to another, or that
// a class of tools is exhausted. The stage is tool-loop.
func (e *Emitter) RecordToolFallbackStepDecision(ctx context.Context, at Site, d ledger.ToolFallbackStep) {
	e.slot(ctx, &at, toolStage, &ledger.Call{ToolFallbackStep: &d})
}

// RecordInterruptDecisionDecision records that a human was asked. d is an object:
// a struct, a map or a json.RawMessage.
func (e *Emitter) RecordInterruptDecisionDecision(ctx context.Context, at Site, d any) {
	e.free(ctx, &at, "", d, func(c *ledger.Call) *json.RawMessage { return &c.InterruptDecision })
}

// RecordTokenCostDecision records what a call used.
func (e *Emitter) RecordTokenCostDecision(ctx context.Context, at Site, d ledger.TokenCost) {
	e.slot(ctx, &at, "", &ledger.Call{TokenCost: &d})
}

// RecordToolSelectionDecision records which tool was picked. d is an object. The
// stage is tool-loop.
func (e *Emitter) RecordToolSelectionDecision(ctx context.Context, at Site, d any) {
	e.free(ctx, &at, toolStage, d, func(c *ledger.Call) *json.RawMessage { return &c.ToolSelection })
}

// RecordPlanGenerationDecision records a plan. d is an object. The stage is
// anchor-plan.
func (e *Emitter) RecordPlanGenerationDecision(ctx context.Context, at Site, d any) {
	e.free(ctx, &at, planStage, d, func(c *ledger.Call) *json.RawMessage { return &c.PlanGeneration })
}

// RecordSynthesisQualityDecision records how good an answer is. d is an object.
// The stage is synthesize.
func (e *Emitter) RecordSynthesisQualityDecision(ctx context.Context, at Site, d any) {
	e.free(ctx, &at, synthesizeStage, d, func(c *ledger.Call) *json.RawMessage { return &c.SynthesisQuality })
}

// object returns the JSON of a slot, which must be an object for an archive to
// take the record: what is none stands in one, so that the record is not lost.
func object(d any) json.RawMessage {
	text, err := json.Marshal(d)
	switch {
	case err != nil:
		text, _ = json.Marshal(map[string]string{"$unencodable": err.Error()})
	case text[0] != '{':
		text = fmt.Appendf(nil, `{"value":%s}`, text)
	}
	return text
}

// free records a call of which a slot of the application's own form is known.
func (e *Emitter) free(ctx context.Context, at *Site, stage string, d any, slot func(*ledger.Call) *json.RawMessage) {
	if e == nil {
		return
	}
	defer e.swallow()
	var c ledger.Call
	*slot(&c) = object(d)
	e.slot(ctx, at, stage, &c)
}

// slot records a call of which one slot is known.
func (e *Emitter) slot(ctx context.Context, at *Site, stage string, c *ledger.Call) {
	if e == nil {
		return
	}
	defer e.swallow()
	c.ToolName, c.Decision, c.Outcome, c.Extra = at.ToolName, at.Decision, at.Outcome, at.Extra
	c.Ran = ledger.Ran{CallClass: at.CallClass, Provider: at.Provider, Model: at.Model, Transport: at.Transport}
	c.StageID = or(at.Stage, stage)
	if t, ok := e.turn(at.TurnKey); ok {
		e.call(ctx, t, c)
	}
}

// swallow keeps a panic from the caller.
func (e *Emitter) swallow() {
	if p := recover(); p != nil {
		e.queue.swallowed()
		e.trouble(aboutPanics, fmt.Errorf("swallowed a panic: %v", p))
	}
}

// caught makes an error of a panic, for who gets errors.
func (e *Emitter) caught(err *error) {
	if p := recover(); p != nil {
		e.queue.swallowed()
		*err = fmt.Errorf("no record was made, for it panicked: %v", p)
	}
}

// stamp returns when a record goes to Kafka, and what its id is made from: when it
// was made, where that is now or less than a minute ago. Another time that an
// application may say is no time of Kafka's: brokers refuse one that is to come, and
// all that comes in its batch, and delete what is older than they keep.
func (e *Emitter) stamp(made time.Time) time.Time {
	now := e.now()
	if age := now.Sub(made); age < 0 || age > time.Minute {
		return now
	}
	return made
}

// Record records a whole call. What it does not say is filled in, in a copy: the
// record id, the time and the version; and from the turn, the session, the turn's
// id, the principal, the stage and always the number. turnKey "" means that the
// call says all of that itself.
func (e *Emitter) Record(ctx context.Context, turnKey string, c *ledger.Call) {
	if e == nil {
		return
	}
	defer e.swallow()
	t, ok := e.ownTurn(turnKey)
	if !ok {
		return
	}
	filled := *c
	e.call(ctx, t, &filled)
}

// call fills in a call and queues it. t is nil for one that says all itself.
func (e *Emitter) call(ctx context.Context, t *turn, c *ledger.Call) {
	e.fill(t, c)
	if e.o.Redactor != nil {
		redacted, err := e.redact(c)
		if err != nil {
			e.queue.swallowed()
			e.trouble(aboutRedact, err)
			return
		}
		c = redacted
	}
	if b, ok := e.begin(c.Tenant()); ok {
		*b = c.AppendJSON((*b)[:0])
		e.put(ctx, audit.KindCall, c.Tenant(), c.CreatedAt, b)
	}
}

// redact applies the redactor to a copy: what is handed to it must live longer than
// what is not.
func (e *Emitter) redact(c *ledger.Call) (*ledger.Call, error) {
	given := *c
	return e.o.Redactor.Redact(&given)
}

// RecordSync records a whole call as Record does, and returns nil once brokers have
// acknowledged it. It does not go through the queue, is never dropped, and is
// checked first: a call that an archive would reject is an error that matches
// [ledger.ErrNoRecord]. After an error of ctx nobody knows whether it will be
// archived: record the same call again, with the ids that it was given, and it is
// archived once.
func (e *Emitter) RecordSync(ctx context.Context, turnKey string, c *ledger.Call) (err error) {
	if e == nil {
		return nil
	}
	defer e.caught(&err)
	filled, err := e.Fill(turnKey, c)
	if err != nil {
		return err
	}
	if err := filled.Check(); err != nil {
		return err
	}
	return e.sync(ctx, entry{tenant: filled.Tenant(), value: filled.AppendJSON(nil), headers: e.headers(ctx, audit.KindCall), at: e.stamp(filled.CreatedAt)})
}

// maxSync is how many records may be on their way that somebody waits for.
const maxSync = 256

// sync queues a record in front of all others, and waits for it.
func (e *Emitter) sync(ctx context.Context, n entry) error {
	if e.queue.refuses() {
		return ErrClosed
	}
	select {
	case e.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("not sent, for %d records are waited for already: %w", maxSync, ctx.Err())
	case <-e.queue.gone:
		return ErrClosed
	}
	done := make(chan error, 1)
	n.done = func(err error) { <-e.slots; done <- err }
	if !e.queue.addUrgent(n) {
		<-e.slots
		return ErrClosed
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("not acknowledged yet, and may still be: %w", ctx.Err())
	case <-e.queue.gone:
		return fmt.Errorf("not acknowledged: %w", ErrClosed)
	}
}

// Fill returns a copy of a call with everything filled in, as Record does it: what
// is recorded with RecordSync and may have to be recorded again after an error must
// be the same record, and so is to be filled in once, before.
func (e *Emitter) Fill(turnKey string, c *ledger.Call) (_ *ledger.Call, err error) {
	if e == nil {
		return new(*c), nil
	}
	defer e.caught(&err)
	filled := *c
	var t *turn
	if turnKey != "" {
		if t = e.turns.find(turnKey); t == nil {
			return nil, fmt.Errorf("%w: key %q", ErrUnknownTurn, turnKey)
		}
	}
	e.fill(t, &filled)
	if e.o.Redactor != nil {
		return e.redact(&filled)
	}
	return &filled, nil
}

func (e *Emitter) fill(t *turn, c *ledger.Call) {
	if t != nil {
		t.fill(c)
	}
	if c.AuditRecordVersion == 0 {
		c.AuditRecordVersion = audit.LatestVersion
	}
	c.StageID = or(c.StageID, toolStage)
	if c.CreatedAt.IsZero() {
		c.CreatedAt = e.now().Truncate(time.Millisecond)
	}
	if c.RecordID == "" {
		c.RecordID = e.ids.next(e.stamp(c.CreatedAt))
	}
}

// fill fills in what the turn knows.
func (t *turn) fill(c *ledger.Call) {
	c.SessionID = or(c.SessionID, t.Session)
	c.TurnID = or(c.TurnID, t.TurnID)
	c.StageID = or(c.StageID, t.Stage)
	c.ParentTurnID = or(c.ParentTurnID, t.ParentTurnID)
	if c.SubagentDepth == nil {
		c.SubagentDepth = t.SubagentDepth
	}
	switch p := &c.Principal; {
	case p.TenantID != "", c.Extra.Get("tenantId") != nil:
	case saysNothing(p):
		*p = t.Principal
	default: // another user of the tenant
		p.TenantID = t.Principal.TenantID
	}
	c.SeqWithinTurn = t.next()
}

// attribute says whose a decision or an entry is, where it does not say so itself. One
// that names another tenant than the turn's gets nothing of the turn's: no user of one
// tenant comes into a record of another, which an archive would reject besides.
func (t *turn) attribute(tenant *string, p *ledger.Principal) {
	*tenant = or(*tenant, or(p.TenantID, t.Principal.TenantID))
	if saysNothing(p) && *tenant == t.Principal.TenantID {
		*p = t.Principal
	}
}

func saysNothing(p *ledger.Principal) bool {
	return p.TenantID == "" && p.UserID == "" && p.ActorKind == "" && p.SessionAuthMethod == "" && len(p.Extra) == 0
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// RecordDecision records a decision of an agent. What it does not say is filled in,
// in a copy: the record id and the time; and from the turn, the conversation and
// the principal. decisionId is the application's to say.
func (e *Emitter) RecordDecision(ctx context.Context, turnKey string, d *ledger.DecisionRecord) {
	if e == nil {
		return
	}
	defer e.swallow()
	filled := *d
	t, ok := e.ownTurn(turnKey)
	if !ok {
		return
	}
	if t != nil {
		t.attribute(&filled.TenantID, &filled.Principal)
		filled.ConversationID = or(filled.ConversationID, t.Session)
	}
	if filled.Timestamp.IsZero() {
		filled.Timestamp = e.now().Truncate(time.Millisecond)
	}
	if filled.RecordID == "" {
		filled.RecordID = e.ids.next(e.stamp(filled.Timestamp))
	}
	if b, ok := e.begin(filled.Tenant()); ok {
		*b = filled.AppendJSON((*b)[:0])
		e.put(ctx, audit.KindDecision, filled.Tenant(), filled.Timestamp, b)
	}
}

// RecordEntry records an entry of an interaction log. What it does not say is
// filled in, in a copy: the record id and the time; and from the turn, traceId,
// the session, the principal and always the number.
func (e *Emitter) RecordEntry(ctx context.Context, turnKey string, n *ledger.Entry) {
	if e == nil {
		return
	}
	defer e.swallow()
	filled := *n
	t, ok := e.ownTurn(turnKey)
	if !ok {
		return
	}
	if t != nil {
		t.attribute(&filled.TenantID, &filled.Principal)
		filled.SessionID = or(filled.SessionID, t.Session)
		filled.TraceID = or(filled.TraceID, t.TurnID)
		filled.Seq = t.next()
	}
	if filled.TS.IsZero() {
		filled.TS = e.now().Truncate(time.Millisecond)
	}
	if filled.RecordID == "" {
		filled.RecordID = e.ids.next(e.stamp(filled.TS))
	}
	kind, _ := audit.ParseKind(filled.Kind)
	if b, ok := e.begin(filled.Tenant()); ok {
		*b = filled.AppendJSON((*b)[:0])
		e.put(ctx, kind, filled.Tenant(), filled.TS, b)
	}
}

// turn returns the turn of a key, and false where it is unknown.
func (e *Emitter) turn(key string) (*turn, bool) {
	t := e.turns.find(key)
	if t == nil {
		e.queue.unattributed()
		e.trouble(aboutTurns, fmt.Errorf("%w: key %q", ErrUnknownTurn, key))
	}
	return t, t != nil
}

// ownTurn is turn for records that may say all themselves: of the key "" the turn
// is nil.
func (e *Emitter) ownTurn(key string) (*turn, bool) {
	if key == "" {
		return nil, true
	}
	return e.turn(key)
}

// scratch are buffers that values are made in: their size is not known before.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// maxScratch is the size of a buffer that is kept.
const maxScratch = 64 << 10

// begin returns a buffer to make a value in. It reports false where no archive
// would know whose record it is.
func (e *Emitter) begin(tenant string) (b *[]byte, ok bool) {
	if err := audit.ValidTenant(tenant); err != nil {
		e.queue.unattributed()
		e.trouble(aboutTurns, err)
		return nil, false
	}
	return scratch.Get().(*[]byte), true
}

// put queues a record whose value was made in b, and gives b back.
func (e *Emitter) put(ctx context.Context, kind, tenant string, at time.Time, b *[]byte) {
	n := entry{tenant: tenant, value: bytes.Clone(*b), headers: e.headers(ctx, kind), at: e.stamp(at)}
	if cap(*b) <= maxScratch {
		scratch.Put(b)
	}
	if !e.queue.add(n) {
		e.trouble(aboutDrops, ErrDropped)
	}
}

// The header of a trace's context. Source: W3C Trace Context.
const headerTraceparent = "traceparent"

type retainKey struct{}

// RetainPrompts returns a context with which records keep the text of their
// prompts in an archive that does not keep all of them (header
// ledgerlake-retain-prompts).
func RetainPrompts(ctx context.Context) context.Context {
	return context.WithValue(ctx, retainKey{}, true)
}

// headers returns the headers of a record.
func (e *Emitter) headers(ctx context.Context, kind string) []kgo.RecordHeader {
	trace := ""
	if ctx == nil {
		return headersOf(kind, false, trace)
	}
	if e.o.Traceparent != nil {
		trace = e.o.Traceparent(ctx)
	}
	return headersOf(kind, ctx.Value(retainKey{}) != nil, trace)
}

func headersOf(kind string, retain bool, trace string) []kgo.RecordHeader {
	if !retain && trace == "" {
		if known := plainHeaders[kind]; known != nil {
			return known
		}
	}
	headers := []kgo.RecordHeader{{Key: audit.HeaderKind, Value: []byte(kind)}}
	if retain {
		headers = append(headers, kgo.RecordHeader{Key: audit.HeaderRetainPrompts, Value: []byte("true")})
	}
	if trace != "" {
		headers = append(headers, kgo.RecordHeader{Key: headerTraceparent, Value: []byte(trace)})
	}
	return headers
}

// plainHeaders are those of records that need the kind alone.
var plainHeaders = makePlainHeaders()

func makePlainHeaders() map[string][]kgo.RecordHeader {
	plain := map[string][]kgo.RecordHeader{}
	for _, kind := range []string{
		audit.KindCall, audit.KindDecision, audit.KindLLMRequest, audit.KindLLMResponse, audit.KindToolCall,
		audit.KindWorldMutation, audit.KindPolicyDecision, audit.KindSourceChainReset, audit.KindSourceRotation, audit.KindQueueDropped,
	} {
		plain[kind] = []kgo.RecordHeader{{Key: audit.HeaderKind, Value: []byte(kind)}}
	}
	return plain
}

// AsLedger returns the emitter as a [ledger.Ledger]: RecordCall is RecordSync of a
// call that says its own turn. With wait false it is Record, which knows of no
// error.
func (e *Emitter) AsLedger(wait bool) ledger.Ledger { return asLedger{e, wait} }

type asLedger struct {
	e    *Emitter
	wait bool
}

func (l asLedger) RecordCall(ctx context.Context, c *ledger.Call) error {
	if l.wait {
		return l.e.RecordSync(ctx, "", c)
	}
	l.e.Record(ctx, "", c)
	return nil
}

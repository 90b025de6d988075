package ledger

import (
	"encoding/json"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A Call is one AuditableCall: one LLM call, retry, fallback rung or tool step.
//
// A text that is "" and a pointer that is nil are absent. Enums are texts: a
// value that a version does not know is archived all the same. What no field
// holds is in Extra, of the record and of each of its objects, so that a call
// that was read is written again value for value.
//
// An archive requires RecordID, SessionID, TurnID, StageID, CreatedAt and
// Principal.TenantID: see [Call.Check]. Source: docs/wire-columns.md,
// AuditableCall.
type Call struct {
	AuditRecordVersion int    // of the record's form: 8 to [audit.LatestVersion] are known; 0 is absent
	RecordID           string // a ULID: the order of ids is the order of time
	SessionID          string
	TurnID             string // what served one message of a user
	StageID            string // anchor-plan, tool-loop, synthesize, post-turn
	SeqWithinTurn      int64  // not negative; always written
	CreatedAt          time.Time

	ToolName      string
	SubagentDepth *int64
	ParentTurnID  string
	ModelID       string // an alias of Ran.Model
	Family        string // an alias of Ran.Provider
	InputTokens   *int64
	OutputTokens  *int64
	TokenUsage    TokenUsage

	Principal Principal
	Ran       Ran       // member "call"
	Decision  *Decision // nil is absent
	Outcome   Outcome

	FamilyLock        *FamilyLock
	FallbackStep      *FallbackStep
	ProviderCascade   *ProviderCascade
	CacheBreakpoint   *CacheBreakpoint
	ToolFallbackStep  *ToolFallbackStep
	TokenCost         *TokenCost
	SynthesisQuality  json.RawMessage // an object of the producer's own form
	ToolSelection     json.RawMessage // an object
	PlanGeneration    json.RawMessage // an object
	InterruptDecision json.RawMessage // an object
	PluginPayloads    []PluginPayload

	Extra Members
}

// TokenUsage is what a call used.
type TokenUsage struct {
	InputTokens  *int64
	OutputTokens *int64
	Extra        Members
}

// A Principal is on whose behalf a call ran.
type Principal struct {
	TenantID          string // opaque: see [audit.ValidTenant]
	UserID            string // "" for anonymous and guest
	ActorKind         string // user, guest, scheduled, system
	SessionAuthMethod string // clerk, api-key, guest-token, internal
	Extra             Members
}

// Ran says what ran.
type Ran struct {
	CallClass string
	Provider  string
	Model     string // "unresolved" where none did
	Transport string // native, openrouter, byok-native, byok-openrouter
	Extra     Members
}

// A Decision says why a model was picked.
type Decision struct {
	RequestedModel string
	SelectedReason string   // family-lock, fallback-rung, matrix-pick, user-explicit
	RungOrdinal    *int64   // 0: the first pick
	FallbackChain  []string // models tried before; nil is absent
	Extra          Members
}

// An Outcome says how a call ended.
type Outcome struct {
	Status       string   // ok, provider-error, guard-rejected, timeout, user-aborted
	LatencyMS    *float64 // milliseconds
	FinishReason string
	HTTPStatus   *int64
	Why          json.RawMessage // an object, since version 19
	Extra        Members
}

func (c *Call) walk(o *codec) {
	o.begin(c.Extra)
	o.version("auditRecordVersion", &c.AuditRecordVersion)
	o.text("recordId", &c.RecordID)
	o.text("sessionId", &c.SessionID)
	o.text("turnId", &c.TurnID)
	o.text("stageId", &c.StageID)
	o.number("seqWithinTurn", &c.SeqWithinTurn)
	o.time("createdAt", &c.CreatedAt)
	o.text("toolName", &c.ToolName)
	o.int("subagentDepth", &c.SubagentDepth)
	o.text("parentTurnId", &c.ParentTurnID)
	o.text("modelId", &c.ModelID)
	o.text("family", &c.Family)
	o.int("inputTokens", &c.InputTokens)
	o.int("outputTokens", &c.OutputTokens)
	if o.open("tokenUsage", true) {
		c.TokenUsage.walk(o)
		o.close(false)
	}
	if o.open("principal", true) {
		c.Principal.walk(o)
		o.close(false)
	}
	if o.open("call", true) {
		c.Ran.walk(o)
		o.close(false)
	}
	if o.open("decision", c.Decision != nil) {
		there(&c.Decision).walk(o)
		o.close(true)
	}
	if o.open("outcome", true) {
		c.Outcome.walk(o)
		o.close(false)
	}
	c.walkSlots(o)
	o.end(&c.Extra)
}

func (c *Call) walkSlots(o *codec) {
	if o.open("familyLock", c.FamilyLock != nil) {
		there(&c.FamilyLock).walk(o)
		o.close(true)
	}
	if o.open("fallbackStep", c.FallbackStep != nil) {
		there(&c.FallbackStep).walk(o)
		o.close(true)
	}
	if o.open("providerCascade", c.ProviderCascade != nil) {
		there(&c.ProviderCascade).walk(o)
		o.close(true)
	}
	if o.open("cacheBreakpoint", c.CacheBreakpoint != nil) {
		there(&c.CacheBreakpoint).walk(o)
		o.close(true)
	}
	if o.open("toolFallbackStep", c.ToolFallbackStep != nil) {
		there(&c.ToolFallbackStep).walk(o)
		o.close(true)
	}
	if o.open("tokenCost", c.TokenCost != nil) {
		there(&c.TokenCost).walk(o)
		o.close(true)
	}
	o.free("synthesisQuality", &c.SynthesisQuality)
	o.free("toolSelection", &c.ToolSelection)
	o.free("planGeneration", &c.PlanGeneration)
	o.free("interruptDecision", &c.InterruptDecision)
	list(o, "pluginPayloads", &c.PluginPayloads, (*PluginPayload).walk)
}

func (u *TokenUsage) walk(o *codec) {
	o.begin(u.Extra)
	o.int("inputTokens", &u.InputTokens)
	o.int("outputTokens", &u.OutputTokens)
	o.end(&u.Extra)
}

func (p *Principal) walk(o *codec) {
	o.begin(p.Extra)
	o.text("tenantId", &p.TenantID)
	o.text("userId", &p.UserID)
	o.text("actorKind", &p.ActorKind)
	o.text("sessionAuthMethod", &p.SessionAuthMethod)
	o.end(&p.Extra)
}

func (r *Ran) walk(o *codec) {
	o.begin(r.Extra)
	o.text("callClass", &r.CallClass)
	o.text("provider", &r.Provider)
	o.text("model", &r.Model)
	o.text("transport", &r.Transport)
	o.end(&r.Extra)
}

func (d *Decision) walk(o *codec) {
	o.begin(d.Extra)
	o.text("requestedModel", &d.RequestedModel)
	o.text("selectedReason", &d.SelectedReason)
	o.int("rungOrdinal", &d.RungOrdinal)
	o.texts("fallbackChain", &d.FallbackChain)
	o.end(&d.Extra)
}

func (u *Outcome) walk(o *codec) {
	o.begin(u.Extra)
	o.text("status", &u.Status)
	o.float("latencyMs", &u.LatencyMS)
	o.text("finishReason", &u.FinishReason)
	o.int("httpStatus", &u.HTTPStatus)
	o.free("why", &u.Why)
	o.end(&u.Extra)
}

// Tenant returns the tenant that the call names: that of its principal, or of
// a member tenantId beside it, as some producers have it; "" if none.
func (c *Call) Tenant() string {
	if c.Principal.TenantID != "" {
		return c.Principal.TenantID
	}
	s, _ := stringOf(c.Extra.Get("tenantId"))
	return s
}

// AppendJSON appends the call as it goes over the wire, in one line. Text that
// is not UTF-8 has U+FFFD in its place, and an object of the producer's own that
// is not JSON stands as {"$unencodable": text}.
func (c *Call) AppendJSON(dst []byte) []byte {
	o := codec{dst: dst}
	c.walk(&o)
	return o.dst
}

// MarshalJSON returns what [Call.AppendJSON] appends.
func (c *Call) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil), nil }

// UnmarshalJSON reads a call, and forgets what it was before. Text that is not
// one JSON object, names a member twice at any depth, or is not UTF-8 is an
// error matching [ErrNoRecord]; nothing else is: see [Call.Check].
func (c *Call) UnmarshalJSON(text []byte) error {
	in, err := read(text)
	if err != nil {
		return err
	}
	*c = Call{}
	c.walk(&codec{reading: true, in: in})
	return nil
}

// Check returns an error matching [ErrNoRecord] that says why an archive would
// reject the call, and nil if it would take it.
func (c *Call) Check() error { return check(c.Tenant(), audit.KindCall, c.AppendJSON(nil)) }

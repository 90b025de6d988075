package ledger

import "encoding/json"

// A FamilyLock is written when a family of models is resolved.
type FamilyLock struct {
	ResolverPath       string
	EmitSite           string
	RequestedFamily    string
	FamilyMismatch     *bool
	ByokActive         *bool // the customer's own key is used
	ByokKeyID          string
	ResolvedViaAlias   *bool
	LegacyDefaultModel string
	Extra              Members
}

// A FallbackStep is written after each rung of a ladder of models.
type FallbackStep struct {
	OriginalFamily     string
	OriginalModel      string
	OriginalCallClass  string
	AttemptFamily      string
	AttemptModel       string
	AttemptCallClass   string
	AttemptIndex       *int64
	Reason             string
	InFamily           *bool
	OriginalLadderStep *int64
	LadderStep         *int64
	LadderRegression   *bool
	Extra              Members
}

// A ProviderCascade is written when work goes from one provider to another.
type ProviderCascade struct {
	Source         string // graph, imperative-carve-out
	Trigger        string // decision-throw, decision-retry, stream-error, max-retries, timeout, user-abort-confirmed
	ErrorType      string
	ProviderFrom   string
	ProviderTo     string
	AttemptN       *int64
	UserAbortValid *bool
	Extra          Members
}

// A CacheBreakpoint is written when a provider answered, and says what its
// cache did.
type CacheBreakpoint struct {
	FingerprintComposite string
	CacheReadTokens      *int64
	CacheCreationTokens  *int64
	InputTokens          *int64
	HitPct               *float64 // 0 to 100
	Extra                Members
}

// A ToolFallbackStep is written when a tool gave way to another one, or all of
// a class failed.
type ToolFallbackStep struct {
	OriginalTool   string
	CascadedTo     string
	CapabilityID   string
	FailureClass   string
	AttemptIndex   *int64
	TriedToolCount *int64
	InClass        *bool
	CascadeApplied *bool
	TriggerSite    string
	Extra          Members
}

// A TokenCost is what a call used. What else it has (prices, cached tokens) is
// in Extra.
type TokenCost struct {
	InputTokens  *int64
	OutputTokens *int64
	Extra        Members
}

// A PluginPayload is what a plugin adds to a call. Data is the plugin's.
type PluginPayload struct {
	PluginID string
	SubKind  string
	Data     json.RawMessage
	Extra    Members
}

func (l *FamilyLock) walk(o *codec) {
	o.begin(l.Extra)
	o.text("resolverPath", &l.ResolverPath)
	o.text("emitSite", &l.EmitSite)
	o.text("requestedFamily", &l.RequestedFamily)
	o.bool("familyMismatch", &l.FamilyMismatch)
	o.bool("byokActive", &l.ByokActive)
	o.text("byokKeyId", &l.ByokKeyID)
	o.bool("resolvedViaAlias", &l.ResolvedViaAlias)
	o.text("legacyDefaultModel", &l.LegacyDefaultModel)
	o.end(&l.Extra)
}

func (s *FallbackStep) walk(o *codec) {
	o.begin(s.Extra)
	o.text("originalFamily", &s.OriginalFamily)
	o.text("originalModel", &s.OriginalModel)
	o.text("originalCallClass", &s.OriginalCallClass)
	o.text("attemptFamily", &s.AttemptFamily)
	o.text("attemptModel", &s.AttemptModel)
	o.text("attemptCallClass", &s.AttemptCallClass)
	o.int("attemptIndex", &s.AttemptIndex)
	o.text("reason", &s.Reason)
	o.bool("inFamily", &s.InFamily)
	o.int("originalLadderStep", &s.OriginalLadderStep)
	o.int("ladderStep", &s.LadderStep)
	o.bool("ladderRegression", &s.LadderRegression)
	o.end(&s.Extra)
}

func (p *ProviderCascade) walk(o *codec) {
	o.begin(p.Extra)
	o.text("source", &p.Source)
	o.text("trigger", &p.Trigger)
	o.text("errorType", &p.ErrorType)
	o.text("providerFrom", &p.ProviderFrom)
	o.text("providerTo", &p.ProviderTo)
	o.int("attemptN", &p.AttemptN)
	o.bool("userAbortValid", &p.UserAbortValid)
	o.end(&p.Extra)
}

func (b *CacheBreakpoint) walk(o *codec) {
	o.begin(b.Extra)
	o.text("fingerprintComposite", &b.FingerprintComposite)
	o.int("cacheReadTokens", &b.CacheReadTokens)
	o.int("cacheCreationTokens", &b.CacheCreationTokens)
	o.int("inputTokens", &b.InputTokens)
	o.float("hitPct", &b.HitPct)
	o.end(&b.Extra)
}

func (s *ToolFallbackStep) walk(o *codec) {
	o.begin(s.Extra)
	o.text("originalTool", &s.OriginalTool)
	o.text("cascadedTo", &s.CascadedTo)
	o.text("capabilityId", &s.CapabilityID)
	o.text("failureClass", &s.FailureClass)
	o.int("attemptIndex", &s.AttemptIndex)
	o.int("triedToolCount", &s.TriedToolCount)
	o.bool("inClass", &s.InClass)
	o.bool("cascadeApplied", &s.CascadeApplied)
	o.text("triggerSite", &s.TriggerSite)
	o.end(&s.Extra)
}

func (t *TokenCost) walk(o *codec) {
	o.begin(t.Extra)
	o.int("inputTokens", &t.InputTokens)
	o.int("outputTokens", &t.OutputTokens)
	o.end(&t.Extra)
}

func (p *PluginPayload) walk(o *codec) {
	o.begin(p.Extra)
	o.text("pluginId", &p.PluginID)
	o.text("subKind", &p.SubKind)
	o.free("data", &p.Data)
	o.end(&p.Extra)
}

package workload

import (
	"slices"
	"time"
)

// record writes the record of one step.
func (g *Generator) record(t *tenant, s step) Record {
	o := object{b: append(g.scratch[:0], '{')}
	r := Record{Tenant: t.id, Key: []byte(t.id), Time: g.now, Kind: s.kind, Headers: []Header{{"tenant", []byte(t.id)}}}
	switch s.kind {
	case "call":
		g.call(&o, t.id, s)
	case "decision":
		g.decision(&o, &r, s)
	default:
		g.entry(&o, &r, s)
	}
	if g.chance(0.05) {
		r.Headers = append(r.Headers, Header{"traceparent", g.appendHex([]byte("00-"), 32)})
	}
	g.scratch = o.b
	r.Value = slices.Clone(o.b)
	return r
}

// call writes an AuditableCall. Old producers have some members at the top
// level, under their old names.
func (g *Generator) call(o *object, tenant string, s step) {
	old := s.turn.version < 18
	g.identity(o, s)
	g.structure(o, s, old)
	o.open("principal")
	o.str("tenantId", tenant)
	o.maybe("userId", s.turn.who.user)
	o.str("actorKind", s.turn.who.actor)
	o.str("sessionAuthMethod", s.turn.who.auth)
	o.close()
	g.how(o, s, old)
	g.why(o, s, old)
	g.outcome(o, s)
	g.slots(o, s, old)
	if s.turn.version > 19 {
		o.raw("routing", `{"region":"eu-central-1","policy":"latency","candidates":[{"pool":"a","weight":0.7},{"pool":"b","weight":0.3}]}`)
	}
	o.close()
}

func (g *Generator) identity(o *object, s step) {
	o.int("auditRecordVersion", s.turn.version)
	o.name("recordId")
	o.b = append(o.b, '"')
	o.b = g.ulids.append(o.b, g.now, g.idRNG)
	o.b = append(o.b, '"')
	o.str("sessionId", s.turn.who.id)
	o.str("turnId", s.turn.id)
	o.str("stageId", s.stage)
	o.int("seqWithinTurn", s.turn.seq)
	o.time("createdAt", g.now)
	s.turn.seq++
}

func (g *Generator) structure(o *object, s step, old bool) {
	if s.tool != "" {
		o.str("toolName", s.tool)
	}
	if s.turn.depth > 0 {
		o.int("subagentDepth", s.turn.depth)
		o.str("parentTurnId", s.turn.parent)
	}
	if old {
		o.str("modelId", s.model())
		o.str("family", s.turn.family.provider)
		o.raw("tokenUsage", `{"inputTokens":1840,"outputTokens":96}`)
	}
}

func (s step) model() string {
	if s.stage == "post-turn" {
		return "unresolved"
	}
	return s.turn.family.models[min(s.rung, len(s.turn.family.models)-1)]
}

func (g *Generator) how(o *object, s step, old bool) {
	o.open("call")
	o.str("callClass", map[string]string{"anchor-plan": "planner", "tool-loop": "worker", "synthesize": "writer", "post-turn": "housekeeping"}[s.stage])
	if !old {
		o.str("provider", s.turn.family.provider)
		o.str("model", s.model())
	}
	o.str("transport", s.turn.transport)
	if s.slots&prompts != 0 && g.chance(0.1) {
		o.raw("messages", `[{"role":"system","content":"`+pick(g, sentences)+`"},{"role":"user","content":"`+pick(g, sentences)+`"}]`)
	}
	o.close()
}

// why writes the decision slot: which model was asked for, and why this one ran.
func (g *Generator) why(o *object, s step, old bool) {
	o.open("decision")
	if !old {
		o.maybe("requestedModel", pick(g, []string{"", s.turn.family.models[0]}))
	}
	reason := pick(g, []string{"family-lock", "matrix-pick", "matrix-pick", "user-explicit"})
	if s.rung > 0 {
		reason = "fallback-rung"
	}
	o.str("selectedReason", reason)
	o.int("rungOrdinal", s.rung)
	o.strs("fallbackChain", s.turn.family.models[:min(s.rung, len(s.turn.family.models))])
	o.close()
}

// An ending is how a call came out.
type ending struct {
	status, finish string
	http           string // JSON
}

var (
	goodEndings = []ending{{"ok", "stop", "200"}, {"ok", "stop", "200"}, {"ok", "end_turn", "200"}, {"ok", "tool_use", "200"}, {"ok", "max_tokens", "200"}}
	rareEndings = []ending{{"guard-rejected", "content_filter", "200"}, {"user-aborted", "", "null"}}
	badEndings  = []ending{{"provider-error", "error", "529"}, {"provider-error", "error", "503"}, {"provider-error", "", "429"}, {"timeout", "", "null"}}
)

func (g *Generator) outcome(o *object, s step) {
	end := pick(g, goodEndings)
	if s.failed {
		end = pick(g, badEndings)
	} else if s.stage == "synthesize" && g.chance(0.05) {
		end = pick(g, rareEndings)
	}
	o.open("outcome")
	o.str("status", end.status)
	o.tenths("latencyMs", g.between(400, 90_000))
	o.maybe("finishReason", end.finish)
	o.raw("httpStatus", end.http)
	if s.turn.version >= 19 {
		g.outcomeWhy(o, s, end)
	}
	o.close()
}

func (g *Generator) outcomeWhy(o *object, s step, end ending) {
	if s.stage == "post-turn" {
		o.raw("why", "null")
		return
	}
	o.open("why")
	o.maybe("nativeFinishReason", end.finish)
	o.str("servingProvider", s.turn.family.provider)
	o.int("gatewayAttempt", s.rung+1)
	o.open("statistics")
	o.int("timeToFirstTokenMs", g.between(90, 2400))
	o.tenths("tokensPerSecond", g.between(150, 1800))
	o.close()
	o.close()
}

// slots writes the typed slots of a step.
func (g *Generator) slots(o *object, s step, old bool) {
	for _, slot := range slotWriters {
		if s.slots&slot.is != 0 && !(old && slot.is == tokenCost) {
			slot.write(g, o, s)
		}
	}
}

var slotWriters = []struct {
	is    slots
	write func(*Generator, *object, step)
}{
	{familyLock, (*Generator).familyLock},
	{fallbackStep, (*Generator).fallbackStep},
	{providerCascade, (*Generator).providerCascade},
	{cacheBreakpoint, (*Generator).cacheBreakpoint},
	{toolFallbackStep, (*Generator).toolFallbackStep},
	{tokenCost, (*Generator).tokenCost},
	{synthesisQuality, (*Generator).synthesisQuality},
	{toolSelection, (*Generator).toolSelection},
	{planGeneration, (*Generator).planGeneration},
	{interruptDecision, (*Generator).interruptDecision},
	{pluginPayloads, (*Generator).pluginPayloads},
}

func (g *Generator) familyLock(o *object, s step) {
	o.open("familyLock")
	o.str("resolverPath", "session>tenant>matrix")
	o.str("emitSite", "planner.resolve")
	o.str("requestedFamily", s.turn.family.provider)
	o.bool("familyMismatch", false)
	byok := s.turn.transport == "byok-native" || s.turn.transport == "byok-openrouter"
	o.bool("byokActive", byok)
	o.maybe("byokKeyId", map[bool]string{true: "key_7Q2", false: ""}[byok])
	o.bool("resolvedViaAlias", g.chance(0.2))
	o.raw("legacyDefaultModel", "null")
	o.close()
}

func (g *Generator) fallbackStep(o *object, s step) {
	models := s.turn.family.models
	o.open("fallbackStep")
	o.str("originalFamily", s.turn.family.provider)
	o.str("originalModel", models[0])
	o.str("originalCallClass", "planner")
	o.str("attemptFamily", s.turn.family.provider)
	o.str("attemptModel", s.model())
	o.str("attemptCallClass", "planner")
	o.int("attemptIndex", s.rung)
	o.str("reason", pick(g, []string{"overloaded", "rate-limited", "context-too-long", "deadline"}))
	o.bool("inFamily", true)
	o.int("originalLadderStep", 0)
	o.int("ladderStep", s.rung)
	o.bool("ladderRegression", s.rung > 2)
	o.close()
}

func (g *Generator) providerCascade(o *object, s step) {
	o.open("providerCascade")
	o.str("source", pick(g, []string{"graph", "imperative-carve-out"}))
	o.str("trigger", pick(g, []string{"decision-throw", "decision-retry", "stream-error", "max-retries", "timeout", "user-abort-confirmed"}))
	o.str("errorType", pick(g, []string{"OverloadedError", "RateLimitError", "StreamReset", "DeadlineExceeded"}))
	o.str("providerFrom", s.turn.family.provider)
	o.str("providerTo", pick(g, families).provider)
	o.int("attemptN", s.rung+1)
	o.bool("userAbortValid", false)
	o.close()
}

func (g *Generator) cacheBreakpoint(o *object, s step) {
	in := g.between(800, 24_000)
	hit := g.between(0, in)
	o.open("cacheBreakpoint")
	o.hex64("fingerprintComposite", g)
	o.int("cacheReadTokens", hit)
	o.int("cacheCreationTokens", g.between(0, 900))
	o.int("inputTokens", in)
	o.tenths("hitPct", 1000*hit/in)
	o.close()
}

func (g *Generator) toolFallbackStep(o *object, s step) {
	o.open("toolFallbackStep")
	o.str("originalTool", s.tool)
	o.maybe("cascadedTo", s.next)
	o.str("capabilityId", "cap."+s.tool)
	o.str("failureClass", pick(g, []string{"upstream-5xx", "quota", "schema-mismatch", "timeout"}))
	o.int("attemptIndex", g.between(0, 2))
	o.int("triedToolCount", g.between(1, 3))
	o.bool("inClass", true)
	o.bool("cascadeApplied", s.next != "")
	o.str("triggerSite", "tool-loop.dispatch")
	o.close()
}

func (g *Generator) tokenCost(o *object, s step) {
	in, out := g.between(200, 24_000), g.between(1, 1800)
	o.open("tokenCost")
	o.int("inputTokens", in)
	o.int("outputTokens", out)
	o.int("cachedInputTokens", in/3)
	o.int("microUsd", in*3+out*15)
	o.str("priceTable", "2026-05")
	o.close()
}

func (g *Generator) synthesisQuality(o *object, s step) {
	o.open("synthesisQuality")
	o.raw("score", `0.8725`)
	o.int("citations", g.between(0, 9))
	o.int("unsupportedClaims", g.between(0, 1))
	o.strs("checks", []string{"grounded", "complete", "tone"})
	o.str("note", pick(g, sentences))
	o.close()
}

func (g *Generator) toolSelection(o *object, s step) {
	o.open("toolSelection")
	o.str("chosen", s.tool)
	o.strs("candidates", tools[:g.between(2, 5)])
	o.str("argsDigest", "sha256:"+string(g.appendHex(nil, 16)))
	o.raw("args", `{"query":"`+pick(g, sentences)+`","limit":20,"filters":{"since":"2026-04-01","lang":["de","en"]}}`)
	o.str("rationale", pick(g, sentences))
	o.close()
}

func (g *Generator) planGeneration(o *object, s step) {
	o.open("planGeneration")
	o.int("revision", g.between(0, 2))
	o.name("steps")
	o.b = append(o.b, '[')
	for i := range g.between(2, 3) {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = append(o.b, '{')
		o.int("id", i+1)
		o.str("tool", pick(g, tools))
		o.str("goal", pick(g, sentences))
		o.close()
	}
	o.b = append(o.b, ']')
	o.int("tokenBudget", 32_000)
	o.close()
}

func (g *Generator) interruptDecision(o *object, s step) {
	o.open("interruptDecision")
	o.str("question", pick(g, sentences))
	o.strs("options", []string{"approve", "edit", "reject"})
	o.str("answer", pick(g, []string{"approve", "approve", "edit", "reject"}))
	o.time("askedAt", g.now.Add(-time.Duration(g.between(2, 240))*time.Second))
	o.str("channel", "inline")
	o.close()
}

func (g *Generator) pluginPayloads(o *object, s step) {
	o.name("pluginPayloads")
	o.b = append(o.b, `[{"pluginId":"pii-guard","subKind":"scan","data":{"findings":`...)
	o.b = append(o.b, byte('0'+g.between(0, 3)))
	o.b = append(o.b, `,"elapsedMs":3.25,"rules":["SSN-US","Luhn"]}},{"pluginId":"budget","subKind":"turn-total","data":{"turn":"`...)
	o.b = append(o.b, s.turn.id...)
	o.b = append(o.b, `","remaining":1e6,"currency":"EUR"}}]`...)
}

// sentences are JSON text between quotes: plain, escaped, and in several scripts.
var sentences = []string{
	`Compare the three quotes with last quarter's invoices and say which supplier got dearer.`,
	`Der Kunde m\u00f6chte wissen, warum die Lieferung für Größe 42 zweimal berechnet wurde.`,
	`First list open incidents, then draft a reply;\nkeep it under 120 words and name the owner.`,
	`売上の集計は四半期ごとに行い、前年同期と比較してください。`,
	`Find contracts that renew before \"2026-09-30\" and flag those without a price cap.`,
	`The second source contradicts the first about the date, so a third one has to decide.`,
	`Проверь остатки на складе и предложи замену для трёх позиций, которых нет в наличии.`,
	`Route \\\\fileserver\\finance is unavailable; fall back to the cached copy of Tuesday. 🙂`,
	`No tool is needed: the answer stands in the conversation already, two messages above.`,
	`Résumer le compte rendu en cinq points et proposer une date pour la prochaine réunion.`,
}

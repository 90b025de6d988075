package sqlview

import (
	"fmt"
	"strings"
)

// A view is one of the typed views: rows that have a slot, and its members as
// columns.
type view struct {
	name    string
	about   string
	slot    string // the column that the members are of
	where   string // besides; in the names of columns
	columns []string
	members []member
}

// A member is one of a slot's JSON.
type member struct {
	name string // of the column
	path string // names, joined by dots
	kind kind   // text, int64Kind, double or boolean
	part bool   // the member as JSON
}

// identity is what each typed view begins with.
var identity = []string{
	"tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn",
	"family", "model_id", "status",
}

func texts(names ...string) []member  { return membersOf(text, false, names) }
func ints(names ...string) []member   { return membersOf(int64Kind, false, names) }
func floats(names ...string) []member { return membersOf(double, false, names) }
func bools(names ...string) []member  { return membersOf(boolean, false, names) }
func parts(names ...string) []member  { return membersOf(text, true, names) }

func membersOf(k kind, part bool, paths []string) (all []member) {
	for _, path := range paths {
		all = append(all, member{snake(path), path, k, part})
	}
	return all
}

// snake makes of originalFamily original_family, and of a path its names.
func snake(path string) string {
	var b strings.Builder
	for _, r := range path {
		switch {
		case r == '.':
			b.WriteByte('_')
		case r >= 'A' && r <= 'Z':
			b.WriteByte('_')
			b.WriteRune(r + 'a' - 'A')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func join(all ...[]member) (joined []member) {
	for _, m := range all {
		joined = append(joined, m...)
	}
	return joined
}

// views are the typed views. Members are those that producers are known to send;
// the slot itself is there too, for all others.
var views = []view{
	{
		name: "v_calls", about: "calls of models and tools: one row a call, retry, rung or step", where: "kind = 'call'",
		columns: []string{
			"user_id", "actor_kind", "session_auth_method", "call_class", "transport", "tool_name", "subagent_depth", "parent_turn_id", "input_tokens", "output_tokens",
			"latency_us", "finish_reason", "http_status", "requested_model", "selected_reason", "rung_ordinal", "fallback_chain",
		},
	},
	{
		name: "v_decision", about: "why a model ran", slot: "decision",
		members: join(texts("requestedModel", "selectedReason"), ints("rungOrdinal"), parts("fallbackChain")),
	},
	{
		name: "v_outcome_why", about: "why a call came out as it did", slot: "outcome_why",
		members: join(texts("nativeFinishReason", "servingProvider"), ints("gatewayAttempt"), parts("statistics")),
	},
	{
		name: "v_family_lock", about: "how a family of models was resolved", slot: "family_lock",
		members: join(texts("resolverPath", "emitSite", "requestedFamily"), bools("familyMismatch", "byokActive"), texts("byokKeyId"), bools("resolvedViaAlias"), texts("legacyDefaultModel")),
	},
	{
		name: "v_fallback_step", about: "rungs of ladders of models", slot: "fallback_step",
		members: join(texts("originalFamily", "originalModel", "originalCallClass", "attemptFamily", "attemptModel", "attemptCallClass"), ints("attemptIndex"), texts("reason"),
			bools("inFamily"), ints("originalLadderStep", "ladderStep"), bools("ladderRegression")),
	},
	{
		name: "v_provider_cascade", about: "pivots between providers", slot: "provider_cascade",
		members: join(texts("source", "trigger", "errorType", "providerFrom", "providerTo"), ints("attemptN"), bools("userAbortValid")),
	},
	{
		name: "v_cache_breakpoint", about: "what providers read from caches", slot: "cache_breakpoint",
		members: join(texts("fingerprintComposite"), ints("cacheReadTokens", "cacheCreationTokens", "inputTokens"), floats("hitPct")),
	},
	{
		name: "v_tool_fallback_step", about: "tools that were tried after others", slot: "tool_fallback_step",
		members: join(texts("originalTool", "cascadedTo", "capabilityId", "failureClass"), ints("attemptIndex", "triedToolCount"), bools("inClass", "cascadeApplied"), texts("triggerSite")),
	},
	{
		name: "v_token_cost", about: "use of tokens, as the producer has it", slot: "token_cost",
		members: ints("inputTokens", "outputTokens"),
	},
	{name: "v_synthesis_quality", about: "of answers; members are free", slot: "synthesis_quality"},
	{name: "v_tool_selection", about: "of tool loops; members are free", slot: "tool_selection"},
	{name: "v_plan_generation", about: "of plans; members are free", slot: "plan_generation"},
	{name: "v_interrupt", about: "humans that were asked; members are free", slot: "interrupt_decision"},
	{name: "v_plugin_payloads", about: "what plugins wrote: a JSON array of {pluginId, subKind, data}", slot: "plugin_payloads"},
	{
		name: "v_decisions", about: "decisions of agents, those not to act too", slot: "context", where: "kind = 'decision'",
		columns: []string{"input_tokens", "output_tokens"},
		members: join(texts("inputs.intent", "inputs.satelliteId"), texts("outcome"), parts("action", "calls")),
	},
	{
		name: "v_entries", about: "entries of interaction logs", slot: "context",
		where:   "kind IN ('llm-request', 'llm-response', 'tool-call', 'world-mutation', 'policy-decision')",
		columns: []string{"kind", "actor_kind", "tool_name", "latency_us"},
		members: join(texts("promptHash", "policyDecision", "sourceTag", "rollbackHandle"), parts("args", "worldDiff", "resultDetail")),
	},
	{
		name: "v_rejected", about: "records that could not be archived as they were", slot: "context", where: "kind = 'rejected'",
		columns: []string{"archived_at", "kafka_offset"},
		members: join(texts("reason", "detail"), ints("size"), texts("sha256")),
	},
	{
		name: "v_erasures", about: "requests for erasure, their receipts and cancellations", slot: "context", where: "kind IN ('redaction', 'redaction-cancelled', 'erasure-done')",
		columns: []string{"kind", "archived_at"},
		members: join(texts("redactionId", "reason", "requestRef"), parts("target", "slots"),
			[]member{{"ordered_by", "by", text, false}, {"takes_user", "user", boolean, false}, {"is_hard", "hard", boolean, false}}),
	},
}

// view writes one view.
func (w *writer) view(v *view) {
	w.comment("%s: %s", v.name, v.about)
	w.f("%s %s AS\nSELECT", w.d.view, v.name)
	names := append(append([]string{}, identity...), v.columns...)
	for i, name := range names {
		w.f("%s %s", strings.Repeat(",", min(i, 1)), w.d.ident(name))
	}
	for _, m := range v.members {
		w.f(",\n  %s AS %s", w.d.member(v.slot, &m), w.d.ident(m.name+taken(m.name, names)))
	}
	if v.slot != "" {
		w.f(",\n  %s AS %s", w.d.ident(v.slot), w.d.ident("slot_json"))
	}
	w.f("\nFROM %s\nWHERE %s;\n\n", Rows, v.condition(w.d))
}

// taken tells a member from a column of the same name.
func taken(name string, names []string) string {
	for _, n := range names {
		if n == name {
			return "_told"
		}
	}
	return ""
}

func (v *view) condition(d *Engine) string {
	if v.where != "" {
		return strings.Replace(v.where, "kind", d.ident("kind"), 1)
	}
	return d.ident(v.slot) + " IS NOT NULL"
}

// member returns the expression of a member.
func (e *Engine) member(slot string, m *member) string {
	path := "$." + m.path
	if m.part {
		return e.jsonPart(e.ident(slot), path)
	}
	text := e.json(e.ident(slot), path)
	if m.kind == 0 {
		return text
	}
	return e.cast(text, e.types[m.kind])
}

// ViewNames returns the names of the views that [Views] makes, and what each has.
func ViewNames() [][2]string {
	all := [][2]string{{Rows, "every row that is shown, once"}, {Places, "where each row stands, hidden ones too; no content"}, {Prices, "prices of models, from --prices"}}
	for _, v := range views {
		all = append(all, [2]string{v.name, v.about})
	}
	return all
}

// prices writes the view of prices.
func (w *writer) prices() {
	w.comment("%s: from the file of --prices; empty without one", Prices)
	w.f("%s %s AS\n", w.d.view, Prices)
	for i := range w.o.Prices {
		w.f("%sSELECT %s\n", []string{"", "UNION ALL "}[min(i, 1)], w.price(&w.o.Prices[i]))
	}
	if len(w.o.Prices) == 0 {
		w.f("SELECT %s WHERE false\n", w.price(&Price{}))
	}
	w.b.Truncate(w.b.Len() - 1)
	w.f(";\n\n")
}

func (w *writer) price(p *Price) string {
	number := func(v, name string) string {
		if v == "" {
			v = "NULL"
		}
		return fmt.Sprintf("CAST(%s AS %s) AS %s", v, w.d.types[double], name)
	}
	from := "NULL"
	if p.From != "" {
		from = w.d.literal(p.From)
	}
	return strings.Join([]string{
		fmt.Sprintf("CAST(%s AS %s) AS provider", w.d.literal(p.Provider), w.d.types[text]),
		fmt.Sprintf("CAST(%s AS %s) AS model", w.d.literal(p.Model), w.d.types[text]),
		fmt.Sprintf("CAST(%s AS %s) AS valid_from", from, w.d.types[date]),
		number(p.Input, "input_per_million"), number(p.Output, "output_per_million"),
		number(p.CacheRead, "cache_read_per_million"), number(p.CacheWrite, "cache_write_per_million"),
		fmt.Sprintf("CAST(%s AS %s) AS currency", w.d.literal(p.Currency), w.d.types[text]),
	}, ", ")
}

package audit

import (
	"slices"
	"strings"
)

// A conversion says how the value of a member becomes that of a column.
type conversion int

const (
	asText         conversion = iota // a string
	asInt32                          // a number, exactly integral, within 32 bits
	asInt64                          // a number, exactly integral, within 64 bits
	asOrdinal                        // asInt64, not negative
	asMillis                         // a number of milliseconds, kept as microseconds
	asTime                           // a string that ParseTime reads
	asTimeOrMillis                   // asTime, or an integral number of milliseconds since 1970
	asRecordID                       // a string that ParseRecordID reads
	asTenant                         // a string that ValidTenant lets pass
	asKind                           // a string that ParseKind reads
	asActor                          // a string, one of the four values; else the member stays with the rest
	asVerdict                        // a string; else the member stays with the rest
	asFirstCall                      // a string in the first element of calls
	asCallSum                        // the sum over all elements of calls
)

// A source says by which members a column comes. Where several are there, the
// first wins; paths are those of docs/format.md, section 3.3, with [] for
// every element of an array.
type source struct {
	column   string
	as       conversion
	required bool
	paths    []string
}

// A slotSource says which member a slot holds.
type slotSource struct {
	slot Slot
	path string
}

// A shape is the form on the wire that several kinds share. What it does not
// list is the rest, and is kept too.
type shape struct {
	title   string
	kinds   []string
	sources []source
	slots   []slotSource
	groups  []string // objects that are taken apart, member by member
	kept    []string // members that stay whole in the rest; their columns are copies
	rest    Slot     // SlotExt: under its path; SlotContext: as members of one object
	whole   bool     // the rest is the value itself, with the columns left in

	columns []columnPlan
	members map[string]*memberPlan
	created string // path of the column created_at
}

var (
	tenantPaths = []string{"tenantId", "principal.tenantId"}
	userPaths   = []string{"principal.userId", "userId"}
)

// callShape is AuditableCall.
var callShape = compile(shape{
	title: "AuditableCall",
	kinds: []string{KindCall},
	sources: []source{
		{"tenant_id", asTenant, true, tenantPaths},
		{"audit_record_version", asInt32, false, []string{"auditRecordVersion"}},
		{"record_id", asRecordID, true, []string{"recordId"}},
		{"session_id", asText, true, []string{"sessionId"}},
		{"turn_id", asText, true, []string{"turnId"}},
		{"stage_id", asText, true, []string{"stageId"}},
		{"seq_within_turn", asOrdinal, true, []string{"seqWithinTurn"}},
		{"created_at", asTime, true, []string{"createdAt"}},
		{"actor_kind", asText, false, []string{"principal.actorKind"}},
		{"session_auth_method", asText, false, []string{"principal.sessionAuthMethod"}},
		{"call_class", asText, false, []string{"call.callClass"}},
		{"family", asText, false, []string{"call.provider", "family"}},
		{"model_id", asText, false, []string{"call.model", "modelId"}},
		{"transport", asText, false, []string{"call.transport"}},
		{"tool_name", asText, false, []string{"toolName"}},
		{"subagent_depth", asInt64, false, []string{"subagentDepth"}},
		{"parent_turn_id", asText, false, []string{"parentTurnId"}},
		{"input_tokens", asInt64, false, []string{"inputTokens", "tokenUsage.inputTokens", "tokenCost.inputTokens"}},
		{"output_tokens", asInt64, false, []string{"outputTokens", "tokenUsage.outputTokens", "tokenCost.outputTokens"}},
		{"status", asText, false, []string{"outcome.status"}},
		{"latency_us", asMillis, false, []string{"outcome.latencyMs"}},
		{"finish_reason", asText, false, []string{"outcome.finishReason"}},
		{"http_status", asInt64, false, []string{"outcome.httpStatus"}},
		{"user_id", asText, false, userPaths},
	},
	slots: []slotSource{
		{SlotDecision, "decision"},
		{SlotOutcomeWhy, "outcome.why"},
		{SlotFamilyLock, "familyLock"},
		{SlotFallbackStep, "fallbackStep"},
		{SlotProviderCascade, "providerCascade"},
		{SlotCacheBreakpoint, "cacheBreakpoint"},
		{SlotToolFallbackStep, "toolFallbackStep"},
		{SlotTokenCost, "tokenCost"},
		{SlotSynthesisQuality, "synthesisQuality"},
		{SlotToolSelection, "toolSelection"},
		{SlotPlanGeneration, "planGeneration"},
		{SlotInterruptDecision, "interruptDecision"},
		{SlotPluginPayloads, "pluginPayloads"},
	},
	groups: []string{"principal", "call", "outcome", "tokenUsage"},
	rest:   SlotExt,
})

// decisionShape is the decision record.
var decisionShape = compile(shape{
	title: "Decision record",
	kinds: []string{KindDecision},
	sources: []source{
		{"tenant_id", asTenant, true, tenantPaths},
		{"audit_record_version", asInt32, false, []string{"auditRecordVersion"}},
		{"record_id", asRecordID, false, []string{"recordId"}},
		{"session_id", asText, false, []string{"conversationId", "inputs.conversationId", "sessionId"}},
		{"turn_id", asText, true, []string{"decisionId"}},
		{"created_at", asTimeOrMillis, true, []string{"timestamp"}},
		{"family", asFirstCall, false, []string{"calls.0.provider"}},
		{"model_id", asFirstCall, false, []string{"calls.0.model"}},
		{"input_tokens", asCallSum, false, []string{"calls[].inputTokens"}},
		{"output_tokens", asCallSum, false, []string{"calls[].outputTokens"}},
		{"status", asVerdict, false, []string{"verdict"}},
		{"user_id", asText, false, userPaths},
	},
	groups: []string{"principal"},
	kept:   []string{"inputs", "calls"},
	rest:   SlotContext,
})

// entryShape is the interaction entry.
var entryShape = compile(entryTable(shape{
	title: "Interaction entry",
	kinds: []string{KindLLMRequest, KindLLMResponse, KindToolCall, KindWorldMutation, KindPolicyDecision},
}, true))

// administrativeShape is the administrative entry of an interaction log. It
// belongs to the log and not to a trace, so little is required of it.
var administrativeShape = compile(entryTable(shape{
	title: "Administrative entry",
	kinds: []string{KindSourceChainReset, KindSourceRotation, KindQueueDropped},
}, false))

func entryTable(s shape, required bool) shape {
	s.sources = []source{
		{"tenant_id", asTenant, true, tenantPaths},
		{"kind", asKind, true, []string{"kind"}},
		{"audit_record_version", asInt32, false, []string{"auditRecordVersion"}},
		{"record_id", asRecordID, false, []string{"recordId"}},
		{"session_id", asText, false, []string{"sessionId"}},
		{"turn_id", asText, required, []string{"traceId"}},
		{"seq_within_turn", asInt64, required, []string{"seq"}},
		{"created_at", asTimeOrMillis, required, []string{"ts"}},
		{"actor_kind", asActor, false, []string{"actor"}},
		{"model_id", asText, false, []string{"model"}},
		{"tool_name", asText, false, []string{"toolName"}},
		{"status", asText, false, []string{"result"}},
		{"latency_us", asMillis, false, []string{"durationMs"}},
		{"user_id", asText, false, userPaths},
	}
	s.groups = []string{"principal"}
	s.rest = SlotContext
	return s
}

// controlShape is the control record. Its value is its context, whole.
var controlShape = compile(shape{
	title: "Control record",
	kinds: []string{KindRedaction, KindRedactionCancelled, KindErasureDone, KindRetentionCut, KindLegalHold},
	sources: []source{
		{"tenant_id", asTenant, true, []string{"tenantId"}},
		{"record_id", asRecordID, true, []string{"recordId"}},
		{"created_at", asTime, true, []string{"createdAt"}},
	},
	rest:  SlotContext,
	whole: true,
})

var shapes = []*shape{callShape, decisionShape, entryShape, administrativeShape, controlShape}

// groupNames are the members of which some shape takes members.
var groupNames = namesOfGroups()

func namesOfGroups() map[string]bool {
	names := map[string]bool{}
	for _, s := range shapes {
		for name, p := range s.members {
			names[name] = names[name] || p.group || p.subs != nil
		}
	}
	return names
}

// shapeOf returns the shape of a kind that can arrive.
func shapeOf(kind string) *shape {
	for _, s := range shapes {
		if slices.Contains(s.kinds, kind) {
			return s
		}
	}
	return callShape
}

// actorKinds are the values of actor_kind that an entry's actor may have.
var actorKinds = []string{"user", "guest", "scheduled", "system"}

// A columnPlan is a source, ready for use. Its paths are the ports from first
// on: places where reading the members leaves what it finds.
type columnPlan struct {
	source
	text  func(*Record) *Text // or nil
	int   func(*Record) *Int  // or nil
	first int
	echo  bool // must not hold what identifies a person
}

// maxPorts is how many paths the columns of a shape may have.
const maxPorts = 40

const none = -1

// A memberPlan says what a member is for.
type memberPlan struct {
	path  string
	port  int // none, or a column comes by it
	slot  Slot
	group bool
	kept  bool
	subs  map[string]*memberPlan
}

// compile makes a shape ready for use.
func compile(s shape) *shape {
	s.members = map[string]*memberPlan{}
	ports := 0
	for _, src := range s.sources {
		c := columnPlan{source: src, first: ports, echo: echoColumn(src.column)}
		c.text, c.int = fieldOf(src.column)
		s.columns = append(s.columns, c)
		if src.column == "created_at" {
			s.created = src.paths[0]
		}
		if src.as == asFirstCall || src.as == asCallSum {
			continue
		}
		for _, path := range src.paths {
			s.plan(path).port = ports
			ports++
		}
	}
	for _, slot := range s.slots {
		s.plan(slot.path).slot = slot.slot
	}
	for _, name := range s.groups {
		s.plan(name).group = true
	}
	for _, name := range s.kept {
		s.plan(name).kept = true
	}
	return &s
}

// plan returns the plan of the member at a path of one or two names.
func (s *shape) plan(path string) *memberPlan {
	name, sub, nested := strings.Cut(path, ".")
	p := planIn(s.members, name, name)
	if !nested {
		return p
	}
	if p.subs == nil {
		p.subs = map[string]*memberPlan{}
	}
	return planIn(p.subs, sub, path)
}

func planIn(m map[string]*memberPlan, name, path string) *memberPlan {
	if m[name] == nil {
		m[name] = &memberPlan{path: path, port: none, slot: none}
	}
	return m[name]
}

// inside says whether the member at path stays inside one that is kept as it
// is, so that it needs no other place.
func (s *shape) inside(path string) bool {
	name, _, nested := strings.Cut(path, ".")
	p := s.members[name]
	return nested && p != nil && (p.kept || p.slot != none)
}

// fieldOf returns where a Record keeps a column.
func fieldOf(column string) (func(*Record) *Text, func(*Record) *Int) {
	if column == "user_id" {
		return func(r *Record) *Text { return &r.UserID }, nil
	}
	i := columnIndex(column)
	return Header[i].Text, Header[i].Int
}

// columnIndex returns the index in Header of a column, which must be there.
func columnIndex(column string) int {
	return slices.IndexFunc(Header[:], func(c Column) bool { return c.Name == column })
}

// echoColumn says whether a column of strings must not hold what identifies a
// person: it cannot be erased, and producers give no promise for it. Source:
// docs/format.md, section 3.2, last paragraph.
func echoColumn(column string) bool {
	switch column {
	case "actor_kind", "session_auth_method", "call_class", "family", "model_id", "transport", "tool_name",
		"parent_turn_id", "status", "finish_reason":
		return true
	}
	return false
}

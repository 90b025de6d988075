package event

import (
	"math"

	"github.com/ledgerlake/ledgerlake/audit"
)

// ecsVersion is the version of the Elastic Common Schema. Source: the field
// reference of ECS 9.4, and its guidelines for custom fields: they stand in an
// object of the product's own name.
const ecsVersion = "9.4.0"

// ecsText is the length of the longest keyword that Lucene takes, in bytes.
const ecsText = 32766

var ecs = newTable(ecsText, "ledgerlake.cut", append([]field{
	{path: "@timestamp", source: date(eventTime)},
	{path: "ecs.version", source: constant(ecsVersion)},
	{path: "message", source: message},
	{path: "event.kind", source: source{"`state` of a head, else `event`", func(v *view) value {
		if v.ev.Kind == KindHead {
			return textOf("state")
		}
		return textOf("event")
	}}},
	{path: "event.category", source: source{"category of the kind, see below", func(v *view) value { return listOf(v.mapped.category) }}, typ: listValue},
	{path: "event.type", source: source{"type of the kind, see below; of decisions `allowed` or `denied` too", ecsType}, typ: listValue},
	{path: "event.action", source: kindName},
	{path: "event.code", source: operation},
	{path: "event.outcome", source: source{"outcome, see below", func(v *view) value { return textOf(outcomes[v.outcome].ecs) }}},
	{path: "event.severity", source: ten, typ: numberValue},
	{path: "event.reason", source: detail},
	{path: "event.id", source: eventID},
	{path: "event.hash", source: rowHash},
	{path: "event.sequence", source: seq, typ: numberValue},
	{path: "event.module", source: constant(productName)},
	{path: "event.dataset", source: constant(productName + ".audit")},
	{path: "event.provider", source: origin},
	{path: "event.created", source: date(column("kafka_timestamp"))},
	{path: "event.duration", source: nanos(column("latency_us")), typ: numberValue},
	{path: "event.original", source: asText(wire), limit: unlimited},
	{path: "organization.id", source: tenant, limit: unlimited},
	{path: "service.name", source: origin},
	{path: "user.id", source: column("user_id")},
	{path: "trace.id", source: column("turn_id")},
	{path: "http.response.status_code", source: column("http_status"), typ: numberValue},
	{path: "gen_ai.operation.name", source: genAIOperation},
	{path: "gen_ai.system", source: column("family")},
	{path: "gen_ai.request.model", source: genAIRequestModel},
	{path: "gen_ai.response.model", source: genAIResponseModel},
	{path: "gen_ai.usage.input_tokens", source: integer(column("input_tokens")), typ: numberValue},
	{path: "gen_ai.usage.output_tokens", source: integer(column("output_tokens")), typ: numberValue},
	{path: "gen_ai.tool.name", source: column("tool_name")},
}, append([]field{{path: "ledgerlake.archived_at", source: date(column("archived_at"))}}, unmapped("ledgerlake.")...)...))

func ecsType(v *view) value {
	decides := v.kind == audit.KindDecision || v.kind == audit.KindPolicyDecision
	switch {
	case decides && v.outcome == success:
		return listOf(v.mapped.typ, "allowed")
	case decides && v.outcome == failure:
		return listOf(v.mapped.typ, "denied")
	}
	return listOf(v.mapped.typ)
}

// What OpenTelemetry's GenAI conventions call things, which ECS follows.
var (
	genAIOperation = source{"operation of the kind, see below; `execute_tool` where there is a `tool_name`", func(v *view) value {
		switch {
		case v.r.ToolName.Valid:
			return textOf("execute_tool")
		case !v.r.ModelID.Valid:
			return value{}
		}
		return filled(v.mapped.genAI)
	}}
	genAIRequestModel = source{"`requested_model`; of an llm-request `model_id`", func(v *view) value {
		if v.kind == audit.KindLLMRequest {
			return text(v.r.ModelID)
		}
		return text(v.r.RequestedModel)
	}}
	genAIResponseModel = source{"`model_id`; not of an llm-request", func(v *view) value {
		if v.kind == audit.KindLLMRequest {
			return value{}
		}
		return text(v.r.ModelID)
	}}
)

// integer is a number that is left out where 32 bits do not hold it.
func integer(s source) source {
	return source{s.says + "; left out where it has more than 32 bits", func(v *view) value {
		x := s.get(v)
		if x.n > math.MaxInt32 || x.n < math.MinInt32 {
			return value{}
		}
		return x
	}}
}

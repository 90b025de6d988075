package event

import "github.com/ledgerlake/ledgerlake/audit"

// The versions of OCSF. Source: schema.ocsf.io, class API Activity (6003) of
// the category Application Activity (6).
const (
	ocsf18Version = "1.8.0"
	ocsf13Version = "1.3.0"
)

const (
	ocsfCategory = 6
	ocsfClass    = 6003
	// ocsf13Text is the length of the longest string in OCSF 1.3, in
	// characters; ours count bytes.
	ocsf13Text = 65535
)

var (
	ocsf18 = newTable(0, "unmapped.cut", ocsfFields(ocsf18Version))
	ocsf13 = newTable(ocsf13Text, "unmapped.cut", ocsfFields(ocsf13Version))
)

// ocsfFields returns the fields of a version of OCSF. What only 1.8 knows is the
// profile ai_operation (the model and its tokens), and in metadata the id that
// the producer gave and whether it was cut.
func ocsfFields(version string) []field {
	is18 := version == ocsf18Version
	var fields []field
	add := func(more ...field) { fields = append(fields, more...) }
	add(ocsfClassification...)
	add(ocsfMetadata(version, is18)...)
	add(
		field{path: "actor.user.uid", source: column("user_id")},
		field{path: "actor.user.type_id", source: ofUser("kind of actor, see below", func(v *view) value { return numberOf(actors[v.r.ActorKind.S].id) }), typ: numberValue},
		field{path: "actor.user.type", source: ofUser("kind of actor, see below", func(v *view) value { return filled(actors[v.r.ActorKind.S].name) })},
		field{path: "actor.session.uid", source: column("session_id")},
		field{path: "actor.app_name", source: origin},
		field{path: "api.operation", source: operation},
		field{path: "api.service.name", source: column("family")},
		field{path: "api.service.uid", source: column("model_id")},
		field{path: "api.request.uid", source: column("record_id")},
		field{path: "api.response.code", source: column("http_status"), typ: numberValue},
		field{path: "api.response.error", source: source{"`status`, where the outcome is a failure", func(v *view) value {
			if v.outcome != failure {
				return value{}
			}
			return text(v.r.Status)
		}}},
		field{path: "api.response.message", source: column("finish_reason")},
		field{path: "src_endpoint.svc_name", source: origin},
	)
	if is18 {
		add(ocsfModel...)
		add(field{path: "raw_data", source: asText(wire)})
	} else {
		add(field{path: "raw_data", source: within(ocsf13Text, asText(wire))})
	}
	add(ocsfUnmapped...)
	return fields
}

var ocsfClassification = []field{
	{path: "activity_id", source: source{"activity of the kind, see below", func(v *view) value { return numberOf(v.mapped.activity) }}, typ: numberValue},
	{path: "activity_name", source: source{"activity of the kind, see below", func(v *view) value { return textOf(v.mapped.doing) }}},
	{path: "category_uid", source: constantNumber(ocsfCategory), typ: numberValue},
	{path: "category_name", source: constant("Application Activity")},
	{path: "class_uid", source: constantNumber(ocsfClass), typ: numberValue},
	{path: "class_name", source: constant("API Activity")},
	{path: "type_uid", source: source{"`class_uid` × 100 + `activity_id`", func(v *view) value { return numberOf(ocsfClass*100 + v.mapped.activity) }}, typ: numberValue},
	{path: "severity_id", source: source{"severity, see below", func(v *view) value { return numberOf(int64(v.severity)) }}, typ: numberValue},
	{path: "severity", source: source{"severity, see below", func(v *view) value { return textOf(severities[v.severity].name) }}},
	{path: "status_id", source: source{"outcome, see below", func(v *view) value { return numberOf(outcomes[v.outcome].ocsf) }}, typ: numberValue},
	{path: "status", source: source{"outcome, see below; where it is other, `status` itself", func(v *view) value {
		if v.outcome == otherOutcome && v.r.Status.Valid {
			return textOf(v.r.Status.S)
		}
		return textOf(outcomes[v.outcome].name)
	}}},
	{path: "status_code", source: column("status")},
	{path: "status_detail", source: detail},
	{path: "time", source: millis(eventTime), typ: numberValue},
	{path: "duration", source: millis(column("latency_us")), typ: numberValue},
	{path: "message", source: message},
}

func ocsfMetadata(version string, is18 bool) []field {
	fields := []field{
		{path: "metadata.version", source: constant(version)},
		{path: "metadata.uid", source: eventID},
		{path: "metadata.sequence", source: seq, typ: numberValue},
		{path: "metadata.tenant_uid", source: tenant, limit: unlimited},
		{path: "metadata.event_code", source: kindName},
		{path: "metadata.correlation_uid", source: column("turn_id")},
		{path: "metadata.log_name", source: topic},
		{path: "metadata.log_provider", source: constant(productName)},
		{path: "metadata.original_time", source: date(column("created_at"))},
		{path: "metadata.logged_time", source: millis(column("archived_at")), typ: numberValue},
		{path: "metadata.product.name", source: constant(productName)},
		{path: "metadata.product.vendor_name", source: constant(productName)},
		{path: "metadata.product.version", source: versionOfProduct},
	}
	if !is18 {
		return fields
	}
	return append(
		fields,
		field{path: "metadata.profiles", source: source{"`[\"ai_operation\"]`", func(*view) value { return listOf("ai_operation") }}, typ: listValue},
		field{path: "metadata.original_event_uid", source: column("record_id")},
		field{path: "metadata.is_truncated", source: source{"`true` of a pointer", func(v *view) value {
			if v.ev.Kind != KindPointer {
				return value{}
			}
			return truthOf(true)
		}}, typ: truthValue},
	)
}

// ocsfModel is what the profile ai_operation of OCSF 1.8 adds.
var ocsfModel = []field{
	{path: "ai_model.name", source: column("model_id")},
	{path: "ai_model.ai_provider", source: source{"`family`, else `\"unknown\"`; where there is a `model_id`", func(v *view) value {
		switch {
		case !v.r.ModelID.Valid:
			return value{}
		case !v.r.Family.Valid:
			return textOf("unknown")
		}
		return text(v.r.Family)
	}}},
	{path: "message_context.application.name", source: ofTokens(origin)},
	{path: "message_context.prompt_tokens", source: column("input_tokens"), typ: numberValue},
	{path: "message_context.completion_tokens", source: column("output_tokens"), typ: numberValue},
}

var ocsfUnmapped = unmapped("unmapped.")

// unmapped is what has no field of its own in a schema: coordinates, the chain,
// and the terms of agents.
func unmapped(at string) []field {
	fields := []field{
		{path: "event", source: eventKind},
		{path: "archive_id", source: archiveID},
		{path: "topic", source: topic},
		{path: "topic_id", source: topicID},
		{path: "partition", source: partition, typ: numberValue},
		{path: "seq", source: seq, typ: numberValue},
		{path: "epoch", source: epoch, typ: numberValue},
		{path: "offset", source: column("kafka_offset"), typ: numberValue},
		{path: "prev_hash", source: prevHash},
		{path: "row_hash", source: rowHash},
		{path: "verified", source: verified, typ: truthValue},
		{path: "repeat_of", source: repeatOf, typ: numberValue},
		{path: "redaction_policy", source: column("redaction_policy")},
		{path: "redaction", source: asText(redaction)},
		{path: "redaction_id", source: redactionID},
		{path: "record_id", source: column("record_id")},
		{path: "audit_record_version", source: column("audit_record_version"), typ: numberValue},
		{path: "session_id", source: column("session_id")},
		{path: "turn_id", source: column("turn_id")},
		{path: "parent_turn_id", source: column("parent_turn_id")},
		{path: "stage_id", source: column("stage_id")},
		{path: "seq_within_turn", source: column("seq_within_turn"), typ: numberValue},
		{path: "subagent_depth", source: column("subagent_depth"), typ: numberValue},
		{path: "actor_kind", source: column("actor_kind")},
		{path: "session_auth_method", source: column("session_auth_method")},
		{path: "call_class", source: column("call_class")},
		{path: "family", source: column("family")},
		{path: "model_id", source: column("model_id")},
		{path: "transport", source: column("transport")},
		{path: "tool_name", source: column("tool_name")},
		{path: "requested_model", source: requestedModel},
		{path: "selected_reason", source: selectedReason},
		{path: "rung_ordinal", source: rungOrdinal, typ: numberValue},
		{path: "fallback_chain", source: fallbackChain, typ: listValue},
		{path: "input_tokens", source: column("input_tokens"), typ: numberValue},
		{path: "output_tokens", source: column("output_tokens"), typ: numberValue},
		{path: "token_cost", source: withContent(asText(slot(audit.SlotTokenCost)))},
		{path: "latency_us", source: column("latency_us"), typ: numberValue},
		{path: "finish_reason", source: column("finish_reason")},
		{path: "policy_decision", source: verdict},
		{path: "reject_reason", source: reject},
		{path: "head.size", source: headSize, typ: numberValue},
		{path: "head.hash", source: headHash},
		{path: "head.root", source: headRoot},
		{path: "head.epoch", source: headEpoch, typ: numberValue},
		{path: "head.anchor", source: headAnchor, typ: numberValue},
		{path: "head.note", source: headNote},
		{path: "erasure.order", source: erasureOrder},
		{path: "erasure.what", source: asText(erasureWhat)},
		{path: "erasure.request_ref", source: erasureRef, limit: refLimit},
		{path: "erasure.ranges", source: asText(erasureRanges), limit: unlimited},
		{path: "check.test", source: checkTest, typ: truthValue},
		{path: "check.destination", source: checkDestination, limit: refLimit},
		{path: "check.nonce", source: checkNonce, limit: refLimit},
	}
	for i := range fields {
		fields[i].path = at + fields[i].path
	}
	return fields
}

// versionOfProduct is the product's version, which OCSF recommends.
var versionOfProduct = source{version.says + ", where it is known", version.get}

func ofUser(says string, get func(v *view) value) source {
	return source{says + "; where there is a `user_id`", func(v *view) value {
		if !v.r.UserID.Valid || !v.r.ActorKind.Valid {
			return value{}
		}
		return get(v)
	}}
}

func ofTokens(s source) source {
	return source{s.says + "; where there are tokens", func(v *view) value {
		if !v.r.InputTokens.Valid && !v.r.OutputTokens.Valid {
			return value{}
		}
		return s.get(v)
	}}
}

// withContent is what is left out where content is not wanted.
func withContent(s source) source {
	return source{s.says, func(v *view) value {
		if v.o.WithoutContent {
			return value{}
		}
		return s.get(v)
	}}
}

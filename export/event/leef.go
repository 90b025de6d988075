package event

import (
	"strings"
	"unicode/utf8"
)

// appendLEEF appends an event of QRadar's Log Event Extended Format 2.0, with a tab
// between its attributes:
//
//	LEEF:2.0|vendor|product|version|kind|x09|key=value<tab>key=value …
//
// A key ends at the first =, a value at the tab; LEEF has no escapes, so that
// what is no printable character is written as in JSON (\t, \n, \u0085), and \
// as \\. Source: IBM's QRadar LEEF guide, version 2.
func appendLEEF(dst []byte, v *view) []byte {
	dst = append(dst, "LEEF:2.0|"+vendor+"|"+product+"|"...)
	for _, s := range []string{productVersion(v), v.kind} {
		s, _ = cut(strings.ReplaceAll(s, "|", "/"), 256)
		dst = append(appendLEEFValue(dst, s), '|')
	}
	dst = append(dst, "x09|"...)
	return appendFields(dst, leef, v, '\t', appendLEEFValue)
}

// leef is the attributes of LEEF: predefined keys where there is one, and our
// own.
var leef = []field{
	{path: "devTime", source: millis(eventTime), limit: 20},
	{path: "sev", source: ten, limit: 2},
	{path: "cat", source: source{"outcome, see below", func(v *view) value { return textOf(outcomes[v.outcome].inLEEF) }}, limit: 16},
	{path: "usrName", source: column("user_id"), limit: 255},
	{path: "role", source: column("actor_kind"), limit: 63},
	{path: "resource", source: operation, limit: 128},
	{path: "policy", source: verdict, limit: 64},
	{path: "event", source: eventKind, limit: 16},
	{path: "archiveId", source: archiveID, limit: 32},
	{path: "tenant", source: tenant, limit: 384},
	{path: "topic", source: topic, limit: 255},
	{path: "topicId", source: topicID, limit: 32},
	{path: "partition", source: partition, limit: 20},
	{path: "seq", source: seq, limit: 20},
	{path: "epoch", source: epoch, limit: 20},
	{path: "rowHash", source: rowHash, limit: 64},
	{path: "prevHash", source: prevHash, limit: 64},
	{path: "verified", source: verified, limit: 5},
	{path: "offset", source: column("kafka_offset"), limit: 20},
	{path: "repeatOf", source: repeatOf, limit: 20},
	{path: "redactionId", source: redactionID, limit: 32},
	{path: "redacted", source: redactedSlots, limit: 320},
	{path: "redactionPolicy", source: column("redaction_policy"), limit: 64},
	{path: "recordId", source: column("record_id"), limit: 40},
	{path: "archivedAt", source: date(column("archived_at")), limit: 40},
	{path: "sessionId", source: column("session_id"), limit: 256},
	{path: "turnId", source: column("turn_id"), limit: 256},
	{path: "parentTurnId", source: column("parent_turn_id"), limit: 256},
	{path: "stage", source: column("stage_id"), limit: 64},
	{path: "seqWithinTurn", source: column("seq_within_turn"), limit: 20},
	{path: "subagentDepth", source: column("subagent_depth"), limit: 20},
	{path: "authMethod", source: column("session_auth_method"), limit: 64},
	{path: "callClass", source: column("call_class"), limit: 64},
	{path: "family", source: column("family"), limit: 128},
	{path: "modelId", source: column("model_id"), limit: 256},
	{path: "transport", source: column("transport"), limit: 64},
	{path: "toolName", source: column("tool_name"), limit: 128},
	{path: "requestedModel", source: requestedModel, limit: 128},
	{path: "selectedReason", source: selectedReason, limit: 64},
	{path: "rungOrdinal", source: rungOrdinal, limit: 20},
	{path: "inputTokens", source: column("input_tokens"), limit: 20},
	{path: "outputTokens", source: column("output_tokens"), limit: 20},
	{path: "status", source: column("status"), limit: 64},
	{path: "reason", source: detail, limit: 256},
	{path: "latencyUs", source: column("latency_us"), limit: 20},
	{path: "httpStatus", source: column("http_status"), limit: 20},
	{path: "headSize", source: headSize, limit: 20},
	{path: "headHash", source: headHash, limit: 64},
	{path: "headRoot", source: headRoot, limit: 64},
	{path: "headEpoch", source: headEpoch, limit: 20},
	{path: "anchor", source: headAnchor, limit: 20},
	{path: "erasureOrder", source: erasureOrder, limit: 32},
	{path: "erasureSlots", source: erasureSlots, limit: 320},
	{path: "erasureRef", source: erasureRef, limit: 256},
	{path: "erasureRows", source: ranges, limit: lineRanges * 40},
	{path: "test", source: checkTest, limit: 5},
	{path: "destination", source: checkDestination, limit: 256},
	{path: "nonce", source: checkNonce, limit: 128},
}

// appendLEEFValue appends the value of an attribute.
func appendLEEFValue(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '\\' || isControl(r) || breaksLine(r):
			dst = appendEscape(dst, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

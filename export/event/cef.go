package event

import (
	"strconv"
	"unicode/utf8"
)

// appendCEF appends a version 0 event of ArcSight's Common Event Format:
//
//	CEF:0|vendor|product|version|kind|title|severity|key=value key=value …
//
// In the header \ and | are escaped, in values \ and = and line breaks (\n, \r);
// no other character could end a value. Source: Implementing ArcSight Common
// Event Format, version 25.
func appendCEF(dst []byte, v *view) []byte {
	dst = append(dst, "CEF:0|"+vendor+"|"+product+"|"...)
	for _, s := range []string{productVersion(v), v.kind, v.mapped.title} {
		s, _ = cut(s, 256)
		dst = append(appendHeader(dst, s), '|')
	}
	dst = strconv.AppendInt(dst, severities[v.severity].ten, 10)
	dst = append(dst, '|')
	return appendFields(dst, cef, v, ' ', appendCEFValue)
}

// cef is the extension of CEF: keys of ArcSight's dictionary where there is one
// for it, custom strings and numbers with their labels, and keys of our own,
// named as the format asks: vendor, product, name. Limits are in bytes, escapes
// included, and at most those of the dictionary.
var cef = []field{
	{path: "rt", source: millis(source{"`archived_at`; of others the event's time", func(v *view) value {
		if v.r.ArchivedAt.Valid {
			return number(v.r.ArchivedAt)
		}
		return eventTime.get(v)
	}}), limit: 20},
	{path: "start", source: millis(eventTime), limit: 20},
	{path: "externalId", source: column("record_id"), limit: 40},
	{path: "act", source: operation, limit: 63},
	{path: "outcome", source: column("status"), limit: 63},
	{path: "reason", source: detail, limit: 256},
	{path: "suid", source: column("user_id"), limit: 384},
	{path: "spriv", source: column("actor_kind"), limit: 63},
	{path: "sourceServiceName", source: origin, limit: 255},
	{path: "destinationServiceName", source: column("family"), limit: 128},
	{path: "deviceExternalId", source: line, limit: 255},
	{path: "cs1", source: tenant, limit: 384, label: "tenant"},
	{path: "cs2", source: rowHash, limit: 64, label: "rowHash"},
	{path: "cs3", source: prevHash, limit: 64, label: "prevHash"},
	{path: "cs4", source: column("turn_id"), limit: 256, label: "turnId"},
	{path: "cs5", source: column("session_id"), limit: 256, label: "sessionId"},
	{path: "cs6", source: column("model_id"), limit: 256, label: "modelId"},
	{path: "cn1", source: seq, limit: 20, label: "seq"},
	{path: "cn2", source: column("input_tokens"), limit: 20, label: "inputTokens"},
	{path: "cn3", source: column("output_tokens"), limit: 20, label: "outputTokens"},
	{path: "LedgerlakeExportEvent", source: eventKind, limit: 16},
	{path: "LedgerlakeExportArchiveId", source: archiveID, limit: 32},
	{path: "LedgerlakeExportVerified", source: verified, limit: 5},
	{path: "LedgerlakeExportEpoch", source: epoch, limit: 20},
	{path: "LedgerlakeExportOffset", source: column("kafka_offset"), limit: 20},
	{path: "LedgerlakeExportRepeatOf", source: repeatOf, limit: 20},
	{path: "LedgerlakeExportRedactionId", source: redactionID, limit: 32},
	{path: "LedgerlakeExportRedacted", source: redactedSlots, limit: 320},
	{path: "LedgerlakeExportRedactionPolicy", source: column("redaction_policy"), limit: 64},
	{path: "LedgerlakeExportStage", source: column("stage_id"), limit: 64},
	{path: "LedgerlakeExportSeqWithinTurn", source: column("seq_within_turn"), limit: 20},
	{path: "LedgerlakeExportParentTurnId", source: column("parent_turn_id"), limit: 256},
	{path: "LedgerlakeExportSubagentDepth", source: column("subagent_depth"), limit: 20},
	{path: "LedgerlakeExportToolName", source: column("tool_name"), limit: 128},
	{path: "LedgerlakeExportCallClass", source: column("call_class"), limit: 64},
	{path: "LedgerlakeExportTransport", source: column("transport"), limit: 64},
	{path: "LedgerlakeExportAuthMethod", source: column("session_auth_method"), limit: 64},
	{path: "LedgerlakeExportRequestedModel", source: requestedModel, limit: 128},
	{path: "LedgerlakeExportSelectedReason", source: selectedReason, limit: 64},
	{path: "LedgerlakeExportRungOrdinal", source: rungOrdinal, limit: 20},
	{path: "LedgerlakeExportLatencyUs", source: column("latency_us"), limit: 20},
	{path: "LedgerlakeExportHttpStatus", source: column("http_status"), limit: 20},
	{path: "LedgerlakeExportPolicyDecision", source: verdict, limit: 64},
	{path: "LedgerlakeExportHeadSize", source: headSize, limit: 20},
	{path: "LedgerlakeExportHeadHash", source: headHash, limit: 64},
	{path: "LedgerlakeExportHeadRoot", source: headRoot, limit: 64},
	{path: "LedgerlakeExportHeadEpoch", source: headEpoch, limit: 20},
	{path: "LedgerlakeExportAnchor", source: headAnchor, limit: 20},
	{path: "LedgerlakeExportErasureOrder", source: erasureOrder, limit: 32},
	{path: "LedgerlakeExportErasureSlots", source: erasureSlots, limit: 320},
	{path: "LedgerlakeExportErasureRef", source: erasureRef, limit: 256},
	{path: "LedgerlakeExportErasureRows", source: ranges, limit: lineRanges * 40},
	{path: "LedgerlakeExportTest", source: checkTest, limit: 5},
	{path: "LedgerlakeExportDestination", source: checkDestination, limit: 256},
	{path: "LedgerlakeExportNonce", source: checkNonce, limit: 128},
}

// appendHeader appends a field of CEF's header.
func appendHeader(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '\\' || r == '|':
			dst = append(dst, '\\', byte(r))
		case isControl(r) || breaksLine(r):
			dst = append(dst, ' ')
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// appendCEFValue appends the value of an extension. What could end a line and
// has no escape of its own becomes \n, other control characters a space.
func appendCEFValue(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '\\' || r == '=':
			dst = append(dst, '\\', byte(r))
		case r == '\r':
			dst = append(dst, `\r`...)
		case breaksLine(r):
			dst = append(dst, `\n`...)
		case isControl(r):
			dst = append(dst, ' ')
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

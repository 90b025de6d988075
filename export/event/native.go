package event

// Version is the member "v" of our own JSON. Members may be added to a version;
// none is taken away, renamed or given another meaning.
const Version = 1

// native is our own JSON.
var native = newTable(0, "cut", []field{
	{path: "v", source: constantNumber(Version), typ: numberValue},
	{path: "event", source: eventKind},
	{path: "id", source: eventID},
	{path: "time", source: date(eventTime)},
	{path: "archiveId", source: archiveID},
	{path: "tenant", source: tenant, limit: unlimited},
	{path: "topic", source: topic},
	{path: "topicId", source: topicID},
	{path: "partition", source: partition, typ: numberValue},
	{path: "seq", source: seq, typ: numberValue},
	{path: "epoch", source: epoch, typ: numberValue},
	{path: "prevHash", source: prevHash},
	{path: "rowHash", source: rowHash},
	{path: "verified", source: verified, typ: truthValue},
	{path: "offset", source: column("kafka_offset"), typ: numberValue},
	{path: "repeatOf", source: repeatOf, typ: numberValue},
	{path: "kind", source: ofRow("`kind`", func(v *view) value { return textOf(v.kind) })},
	{path: "recordId", source: column("record_id")},
	{path: "sessionId", source: column("session_id")},
	{path: "turnId", source: column("turn_id")},
	{path: "createdAt", source: date(column("created_at"))},
	{path: "archivedAt", source: date(column("archived_at"))},
	{path: "redactionPolicy", source: column("redaction_policy")},
	{path: "redaction", source: redaction},
	{path: "record", source: wire},
	{path: "head.size", source: headSize, typ: numberValue},
	{path: "head.hash", source: headHash},
	{path: "head.root", source: headRoot},
	{path: "head.epoch", source: headEpoch, typ: numberValue},
	{path: "head.anchor", source: headAnchor, typ: numberValue},
	{path: "head.note", source: headNote},
	{path: "erasure.order", source: erasureOrder},
	{path: "erasure.redaction", source: erasureWhat},
	{path: "erasure.requestRef", source: erasureRef, limit: refLimit},
	{path: "erasure.ranges", source: erasureRanges},
	{path: "check.test", source: checkTest, typ: truthValue},
	{path: "check.destination", source: checkDestination, limit: refLimit},
	{path: "check.nonce", source: checkNonce, limit: refLimit},
})

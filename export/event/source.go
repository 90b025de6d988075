package event

import (
	"strconv"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// productName is what we call ourselves where a format asks for a product.
const productName = "ledgerlake"

// What every event has.
var (
	eventKind = source{"the event's kind: record, pointer, head, erasure, check", func(v *view) value { return textOf(string(v.ev.Kind)) }}
	eventID   = source{"the event's id: `row_hash` of a row", func(v *view) value { return textOf(v.ev.ID) }}
	eventTime = source{"`created_at`, else `kafka_timestamp`, else `archived_at`; of others the event's time", func(v *view) value { return numberOf(v.ev.Time.UnixMicro()) }}
	archiveID = source{"the archive's id", func(v *view) value { return filled(v.o.ArchiveID) }}
	version   = source{"the version of ledgerlake", func(v *view) value { return filled(v.o.Version) }}
	tenant    = source{"`tenant_id`", func(v *view) value { return filled(v.ev.Tenant) }}
	topic     = source{"`topic`", func(v *view) value { return filled(v.ev.Line.Topic) }}
	topicID   = source{"`topic_id`", func(v *view) value { return filled(v.ev.Line.TopicID) }}
	partition = source{"`partition`", func(v *view) value {
		if v.ev.Kind == KindCheck {
			return value{}
		}
		return numberOf(int64(v.ev.Line.Partition))
	}}
	line = source{"`topic`/`topic_id`/`partition`", func(v *view) value {
		if v.ev.Kind == KindCheck {
			return value{}
		}
		return textOf(v.ev.Line.Topic + "/" + v.ev.Line.TopicID + "/" + strconv.Itoa(int(v.ev.Line.Partition)))
	}}
)

// What every row has.
var (
	rowHash  = ofRow("`row_hash`", func(v *view) value { return textOf(v.row.RowHash.String()) })
	prevHash = ofRow("`prev_hash`", func(v *view) value { return textOf(v.row.PrevHash.String()) })
	seq      = ofRow("`seq`", func(v *view) value { return numberOf(v.ev.Seq) })
	epoch    = ofRow("`epoch`", func(v *view) value { return number(v.r.Epoch) })
	repeatOf = ofRow("`repeat_of`", func(v *view) value { return number(v.r.RepeatOf) })
	verified = ofRow("whether its hash was checked before it was sent", func(v *view) value { return truthOf(v.ev.Verified) })
	// redaction is the sentinel; redactionID and redactedSlots are its parts.
	redaction = ofRow("`redaction`, the sentinel of an erased row", func(v *view) value {
		if !v.row.Redaction.Valid {
			return value{}
		}
		return value{typ: jsonValue, raw: appendRaw(nil, []byte(v.row.Redaction.S))}
	})
	redactionID   = ofRow("`redaction_id`", func(v *view) value { return text(v.row.RedactionID) })
	redactedSlots = ofRow("what of `redaction` went: names of slots or `*`, `user`, `hard`", func(v *view) value {
		s, err := chain.ParseSentinel(v.row.Redaction.S)
		if err != nil {
			return value{}
		}
		return textOf(slotNames(&s))
	})
)

func ofRow(says string, get func(v *view) value) source {
	return source{says, func(v *view) value {
		if v.row == nil {
			return value{}
		}
		return get(v)
	}}
}

// slotNames returns what of a row a sentinel says went, in a few words.
func slotNames(s *chain.Sentinel) string {
	names := ""
	if s.All {
		names = "*"
	}
	for slot := range audit.NumSlots {
		if s.Slots.Has(slot) {
			names = join(names, slot.String())
		}
	}
	if s.User {
		names = join(names, "user")
	}
	if s.Hard {
		names = join(names, "hard")
	}
	return names
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "," + b
}

// What follows from a row.
var (
	kindName  = source{"`kind`; of others the event's kind", func(v *view) value { return textOf(v.kind) }}
	message   = source{"a line for people: title, tool, model, status", func(v *view) value { return textOf(v.message()) }}
	operation = source{"`tool_name`, else `call_class`, else `kind`", func(v *view) value { return textOf(v.operation()) }}
	origin    = source{"`topic`; `ledgerlake` of rows that ingest made, and of what is no row", func(v *view) value { return textOf(v.source()) }}
	verdict   = source{"`policyDecision` in slot `context`", func(v *view) value { return filled(v.verdict) }}
	reject    = source{"`reason` of a reject", func(v *view) value { return filled(v.reason) }}
	detail    = source{"`finish_reason`; of a reject its reason", func(v *view) value {
		if v.reason != "" {
			return textOf(v.reason)
		}
		return text(v.r.FinishReason)
	}}
	ten  = source{"severity, from 0 to 10", func(v *view) value { return numberOf(severities[v.severity].ten) }}
	wire = source{"the record as it was sent", func(v *view) value {
		if v.o.WithoutContent {
			return value{}
		}
		return v.wire()
	}}

	requestedModel = source{"`requested_model`", func(v *view) value { return text(v.r.RequestedModel) }}
	selectedReason = source{"`selected_reason`", func(v *view) value { return text(v.r.SelectedReason) }}
	rungOrdinal    = source{"`rung_ordinal`", func(v *view) value { return number(v.r.RungOrdinal) }}
	fallbackChain  = source{"`fallback_chain`", func(v *view) value {
		if v.r.FallbackChain == nil || v.ev.Kind == KindPointer {
			return value{}
		}
		return listOf(v.r.FallbackChain...)
	}}
)

// What the events say that are no rows.
var (
	headSize   = ofHead("rows of the log", func(h *Head) value { return numberOf(h.Size) })
	headHash   = ofHead("`row_hash` of its last row", func(h *Head) value { return textOf(h.Hash.String()) })
	headRoot   = ofHead("root of its tree", func(h *Head) value { return textOf(h.Root.String()) })
	headEpoch  = ofHead("epoch of the log", func(h *Head) value { return numberOf(int64(h.Epoch)) })
	headAnchor = ofHead("number of the anchor that says so", func(h *Head) value { return numberOf(h.Anchor) })
	headNote   = ofHead("the signed checkpoint, where there is one", func(h *Head) value { return filled(h.Note) })

	erasureOrder  = ofErasure("`record_id` of the redaction", func(e *Erasure) value { return textOf(e.What.ID) })
	erasureWhat   = ofErasure("what went, as a sentinel", func(e *Erasure) value { return value{typ: jsonValue, raw: []byte(e.What.String())} })
	erasureSlots  = ofErasure("what went: names of slots or `*`, `user`, `hard`", func(e *Erasure) value { return textOf(slotNames(&e.What)) })
	erasureRef    = ofErasure("`requestRef` of the order", func(e *Erasure) value { return filled(e.RequestRef) })
	erasureRanges = ofErasure("the rows: [[first seq, last seq], …]", func(e *Erasure) value {
		return value{typ: jsonValue, raw: appendRanges(nil, e.Ranges)}
	})

	checkDestination = ofCheck("name of the destination that is tested", func(c *Check) value { return textOf(c.Destination) })
	checkNonce       = ofCheck("what tells the test from others", func(c *Check) value { return textOf(c.Nonce) })
	checkTest        = ofCheck("`true`: a test, and nothing else", func(*Check) value { return truthOf(true) })
)

func ofHead(says string, get func(h *Head) value) source {
	return source{says, func(v *view) value {
		if v.ev.Head == nil {
			return value{}
		}
		return get(v.ev.Head)
	}}
}

func ofErasure(says string, get func(e *Erasure) value) source {
	return source{says, func(v *view) value {
		if v.ev.Erasure == nil {
			return value{}
		}
		return get(v.ev.Erasure)
	}}
}

func ofCheck(says string, get func(c *Check) value) source {
	return source{says, func(v *view) value {
		if v.ev.Check == nil {
			return value{}
		}
		return get(v.ev.Check)
	}}
}

// appendRanges appends [[first, last], …].
func appendRanges(dst []byte, ranges [][2]int64) []byte {
	dst = append(dst, '[')
	for i, r := range ranges {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendRange(append(dst, '['), r, ','), ']')
	}
	return append(dst, ']')
}

func appendRange(dst []byte, r [2]int64, between byte) []byte {
	dst = append(strconv.AppendInt(dst, r[0], 10), between)
	return strconv.AppendInt(dst, r[1], 10)
}

// timeLayout is RFC 3339 to the microsecond, UTC.
const timeLayout = "2006-01-02T15:04:05.000000Z"

func appendTime(dst []byte, t time.Time) []byte { return t.AppendFormat(dst, timeLayout) }

package audit

import (
	"crypto/sha256"
	"fmt"
	"strconv"
)

// Reasons lists the reasons of rejects. Source: docs/format.md, section 4.
var Reasons = []Reason{
	ReasonNullValue, ReasonEmptyValue, ReasonInvalidJSON, ReasonInvalidUnicode, ReasonDuplicateKey, ReasonMissingField,
	ReasonWrongType, ReasonOutOfRange, ReasonBadTenantID, ReasonTenantMismatch, ReasonBadRecordID, ReasonBadTimestamp,
	ReasonUnknownKind, ReasonReservedKind, ReasonUnauthorised, ReasonTooDeep, ReasonTooLarge, ReasonConflict,
}

// Error returns the reject as one line. It never shows the payload.
func (r *Reject) Error() string { return string(r.Reason) + ": " + r.Detail }

// Conflict turns dst, which [Decoder.Decode] made of m, into the rejected row
// of a record that says something else than an earlier one with the same
// coordinates. detail says which one that is, and must not show the payload.
func Conflict(dst *Record, m *Message, detail string) *Reject {
	return Refuse(dst, m, ReasonConflict, detail)
}

// Refuse turns dst, which [Decoder.Decode] made of m, into the rejected row of
// a record that was found wanting for another reason than its form.
func Refuse(dst *Record, m *Message, reason Reason, detail string) *Reject {
	r := &Reject{Reason: reason, Detail: detail}
	dst.becomeRejected(m, r)
	return r
}

// withheld stands for bytes that must not be stored.
const withheld = "[withheld]"

// Withhold is [Refuse] for a message whose bytes must not be stored: neither its
// value, in whose place raw holds a text that says so, nor its key and headers.
// size and sha256 in context are those of raw.
func Withhold(dst *Record, m *Message, reason Reason, detail string) *Reject {
	return Refuse(dst, &Message{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp, Value: []byte(withheld)}, reason, detail)
}

// becomeRejected makes a row the rejected row of a message. Of what was
// decoded, the tenant, columns 10 to 15 and the user stay.
func (r *Record) becomeRejected(m *Message, why *Reject) {
	*r = Record{
		TenantID: r.TenantID, Topic: r.Topic, Partition: r.Partition, Seq: r.Seq,
		KafkaOffset: r.KafkaOffset, KafkaTimestamp: r.KafkaTimestamp, ArchivedAt: r.ArchivedAt,
		Kind:     Str(KindRejected),
		RecordID: r.RecordID, SessionID: r.SessionID, TurnID: r.TurnID,
		StageID: r.StageID, SeqWithinTurn: r.SeqWithinTurn, CreatedAt: r.CreatedAt,
		UserID:  r.UserID,
		TopicID: r.TopicID, Epoch: r.Epoch,
	}
	if millis := m.Timestamp.UnixMilli(); isFar(millis) {
		why.Detail = fmt.Sprintf("%s; Kafka's timestamp is %d ms", why.Detail, millis)
	}
	r.Slots[SlotContext] = rejectContext(m, why)
	if n := len(m.Value); n <= MaxValueBytes {
		r.Slots[SlotRaw] = m.Value[:n:n]
	}
}

// rejectContext returns the context of a rejected row. Key and headers that are
// too large are not in it; detail says so.
func rejectContext(m *Message, why *Reject) []byte {
	var o objectText
	o.name("reason")
	o.b = appendQuoted(o.b, string(why.Reason))
	o.name("detail")
	o.b = appendQuoted(o.b, why.Detail)
	o.name("size")
	o.b = strconv.AppendInt(o.b, int64(len(m.Value)), 10)
	o.name("sha256")
	if m.Value == nil {
		o.b = append(o.b, "null"...)
	} else {
		o.b = fmt.Appendf(o.b, `"%x"`, sha256.Sum256(m.Value))
	}
	key, headers := m.Key, m.Headers
	if envelopeBytes(m) > MaxValueBytes {
		key, headers = nil, nil
	}
	o.name("key")
	o.b = appendBytes(o.b, key)
	o.name("headers")
	o.b = appendHeaders(o.b, headers, func(MessageHeader) bool { return true })
	return append(o.b, '}')
}

// Gap makes dst the row that says: the offsets from (in it) to to (not in it) of
// a partition are not in the archive, for Kafka no longer had them. Topic,
// partition and all that stamping fills in stay null.
func Gap(dst *Record, from, to int64, cause string) {
	*dst = Record{TenantID: Str(TenantPartition), Kind: Str(KindGap)}
	context := fmt.Appendf(nil, `{"from":%d,"to":%d,"cause":`, from, to)
	dst.Slots[SlotContext] = append(appendQuoted(context, cause), '}')
}

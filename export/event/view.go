package event

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A view is an event as the tables of the formats see it: what it says, and
// what follows from that.
type view struct {
	o        *EncoderOptions
	ev       *Event
	r        *audit.Record // of a row; else one with every column null
	row      *chain.Row    // nil where there is none
	kind     string        // of the row; else of the event
	mapped   *mappedKind
	verdict  string // policyDecision of an entry
	reason   string // of a reject
	outcome  outcome
	severity severity
	cut      []string // fields that are there in part alone
	buf      []byte   // of the record; good until the next one
}

var nullRecord audit.Record

func (v *view) set(o *EncoderOptions, ev *Event) {
	*v = view{o: o, ev: ev, r: &nullRecord, kind: string(ev.Kind), cut: v.cut[:0], buf: v.buf[:0]}
	if ev.Row != nil {
		v.row, v.r, v.kind = ev.Row, &ev.Row.Record, ev.Row.Kind.S
		v.lookInside()
	}
	if v.mapped = kindByName[v.kind]; v.mapped == nil {
		v.mapped = &unknownKind
	}
	v.judge()
}

// lookInside finds what only the context says of a row.
func (v *view) lookInside() {
	context := v.r.Slots[audit.SlotContext]
	switch v.kind {
	case audit.KindRejected:
		v.reason = member(context, "reason")
	case audit.KindLLMRequest, audit.KindLLMResponse, audit.KindToolCall, audit.KindWorldMutation, audit.KindPolicyDecision:
		v.verdict = member(context, "policyDecision")
	}
}

// judge says how it ended and how much that matters: the most that kind,
// status, verdict or reason makes of it.
func (v *view) judge() {
	v.outcome, v.severity = v.mapped.outcome, v.mapped.severity
	if v.reason != "" {
		v.severity = max(v.severity, reasons[audit.Reason(v.reason)])
	}
	if v.r.Status.Valid {
		v.add(v.r.Status.S)
	}
	if v.verdict != "" {
		v.add(v.verdict)
	}
}

// add takes in a status: a failure stays one.
func (v *view) add(status string) {
	s, ok := statuses[status]
	if !ok {
		s = mappedStatus{otherOutcome, informational}
	}
	if v.outcome != failure {
		v.outcome = s.outcome
	}
	v.severity = max(v.severity, s.severity)
}

// operation returns what was called: a tool, a class of calls, or else the kind.
func (v *view) operation() string {
	for _, t := range []audit.Text{v.r.ToolName, v.r.CallClass} {
		if t.Valid && t.S != "" {
			return t.S
		}
	}
	return v.kind
}

// source returns who wrote it: the topic of a producer's row, else ourselves.
func (v *view) source() string {
	if v.row == nil || audit.IsMadeKind(v.kind) || v.ev.Line.Topic == "" {
		return productName
	}
	return v.ev.Line.Topic
}

// message returns the event in a line for people, without what may be long or
// private.
func (v *view) message() string {
	var b strings.Builder
	b.WriteString(v.mapped.title)
	add := func(before string, t audit.Text) {
		if t.Valid && t.S != "" {
			s, _ := cut(t.S, 128)
			b.WriteString(before + s)
		}
	}
	add(" ", v.r.ToolName)
	add(" to ", v.r.ModelID)
	switch {
	case v.reason != "":
		b.WriteString(": " + v.reason)
	case v.verdict != "":
		add(": ", audit.Str(v.verdict))
	default:
		add(": ", v.r.Status)
	}
	if v.ev.Kind == KindPointer {
		b.WriteString(" (too large to be sent whole)")
	}
	return b.String()
}

// wire returns the record as it was sent, on one line, with sentinels where
// content went. It returns none of what is no whole record.
func (v *view) wire() value {
	if v.ev.Kind != KindRecord {
		return value{}
	}
	restorer := audit.Restorer{Marks: marks(v.row)}
	record, err := restorer.Append(v.buf[:0], v.r)
	if err != nil {
		return value{typ: jsonValue, raw: v.appendColumns(nil)} // of a writer that is not ours
	}
	v.buf = record
	if !isLine(record) {
		record = appendLine(nil, record)
	}
	return value{typ: jsonValue, raw: record}
}

// marks returns what stands where a row's slots were.
func marks(row *chain.Row) *[audit.NumSlots][]byte {
	if !row.Redaction.Valid {
		return nil
	}
	sentinel, err := chain.ParseSentinel(row.Redaction.S)
	if err != nil {
		return nil
	}
	marks := new([audit.NumSlots][]byte)
	for s := range audit.NumSlots {
		if sentinel.All || sentinel.Slots.Has(s) {
			marks[s] = []byte(row.Redaction.S)
		}
	}
	return marks
}

// appendColumns appends a row as it is stored: its columns and slots that are
// not null, by their names, in {"$columns": {…}}.
func (v *view) appendColumns(dst []byte) []byte {
	o := object{dst: dst}
	o.open()
	o.object("$columns")
	for i := range audit.Header {
		c := &audit.Header[i]
		if c.Text != nil {
			o.text(c.Name, *c.Text(v.r))
		} else {
			o.number(c.Name, *c.Int(v.r))
		}
	}
	o.text("user_id", v.r.UserID)
	for s, content := range v.r.Slots {
		if content != nil {
			o.raw(audit.Slot(s).String(), content)
		}
	}
	o.close()
	o.close()
	return o.dst
}

// member returns the string that a JSON object has under a name, or "".
func member(object []byte, name string) string {
	if !bytes.Contains(object, []byte(name)) {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return ""
		}
		var content json.RawMessage
		if d.Decode(&content) != nil {
			return ""
		}
		if key == name {
			var s string
			_ = json.Unmarshal(content, &s) // "" where it is no string
			return s
		}
	}
	return ""
}

package audit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A workspace is what decoding one message needs besides the message. It is
// borrowed for one Decode; nothing in it outlives that.
type workspace struct {
	d          *Decoder
	m          *Message
	dst        *Record
	promptRoot *promptNode

	scan   scanner
	shape  *shape
	kind   string
	schema []byte            // id of Confluent's framing, 4 bytes, or nil
	ports  [maxPorts]*member // what was found for the columns
	calls  *member           // of a decision
	users  []string          // who must not be named in a column
	reject *Reject           // the first fault

	ext     objectText
	context objectText
	group   objectText
	alias   objectText
	lift    lifter
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// bigBuffer is the size above which a buffer is not kept for the next message,
// in bytes or members.
const bigBuffer = 64 << 10

// release empties a workspace and gives it back.
func (w *workspace) release() {
	w.d, w.m, w.dst, w.promptRoot, w.shape, w.calls, w.schema, w.reject = nil, nil, nil, nil, nil, nil, nil, nil
	clear(w.ports[:])
	clear(w.users)
	w.users = w.users[:0]
	for _, o := range []*objectText{&w.ext, &w.context, &w.group, &w.alias, &w.lift.prompts} {
		o.reset()
		if cap(o.b) > bigBuffer {
			o.b = nil
		}
	}
	w.lift.path, w.lift.count = w.lift.path[:0], 0
	w.scan.release()
	workspaces.Put(w)
}

func (s *scanner) release() {
	s.reset(nil, 0)
	if cap(s.top)+cap(s.subs)+cap(s.names)+cap(s.table)+cap(s.decoded) > bigBuffer {
		*s = scanner{}
	}
}

// fail notes a fault; the first one stays.
func (w *workspace) fail(reason Reason, format string, args ...any) {
	if w.reject == nil {
		w.reject = &Reject{Reason: reason, Detail: fmt.Sprintf(format, args...)}
	}
}

// decode fills dst, and notes what is wrong with the message. After a fault it
// goes on, for a reject has columns too, as many as can be read.
func (w *workspace) decode() {
	if w.reject = w.open(); w.reject != nil {
		w.fillTenant(nil)
		return
	}
	w.readKind()
	w.readMembers()
	w.fillColumns()
	if isFar(w.m.Timestamp.UnixMilli()) {
		w.fail(ReasonOutOfRange, "Kafka's timestamp is outside the years 0001 to 9999")
	}
	w.fillSlots()
}

// open finds the JSON text in the value, and scans it.
func (w *workspace) open() *Reject {
	value := w.m.Value
	switch {
	case value == nil:
		return &Reject{ReasonNullValue, "no value: a tombstone"}
	case len(value) == 0:
		return &Reject{ReasonEmptyValue, "a value of zero bytes"}
	case len(value) > MaxValueBytes:
		return &Reject{ReasonTooLarge, fmt.Sprintf("a value of %d bytes, at most %d are archived", len(value), MaxValueBytes)}
	case envelopeBytes(w.m) > MaxValueBytes:
		return &Reject{ReasonTooLarge, fmt.Sprintf("key and headers of %d bytes, at most %d are kept", envelopeBytes(w.m), MaxValueBytes)}
	}
	text := value
	if len(value) >= 5 && value[0] == 0 {
		w.schema, text = value[1:5], value[5:]
	}
	return w.scan.scan(text, len(value)-len(text))
}

// envelopeBytes returns the size of what surrounds a message's value.
func envelopeBytes(m *Message) int {
	n := len(m.Key)
	for _, h := range m.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return n
}

// header returns the value of a header that must not have two. Null is absent.
func (w *workspace) header(name string) (value []byte, found, unanimous bool) {
	unanimous = true
	for _, h := range w.m.Headers {
		if h.Name != name || h.Value == nil {
			continue
		}
		if found && !bytes.Equal(h.Value, value) {
			unanimous = false
		}
		value, found = h.Value, true
	}
	return value, found, unanimous
}

// readKind finds the kind, and with it the shape. A message whose kind is no
// good is read like the nearest that is.
func (w *workspace) readKind() {
	kind, known := w.statedKind()
	w.kind, w.shape = kind, shapeOf(kind)
	switch {
	case !known:
		w.fail(ReasonUnknownKind, "the header %s names no kind", HeaderKind)
	case kind == "":
		w.fail(ReasonUnknownKind, "no kind: a control record needs one")
	case IsMadeKind(kind):
		w.fail(ReasonReservedKind, "rows of kind %s are made by ingest alone", kind)
	case IsControlKind(kind) && !w.d.Control:
		w.fail(ReasonReservedKind, "kind %s on a topic that is not the control topic", kind)
	case !IsControlKind(kind) && w.d.Control:
		w.fail(ReasonUnknownKind, "kind %s on the control topic", kind)
	}
	if w.d.Control && !IsControlKind(kind) {
		w.shape = controlShape
	}
	w.dst.Kind = Str(kind)
}

// statedKind returns the kind that the header states, else the member, else
// the default: call on a data topic, "" on the control topic.
func (w *workspace) statedKind() (kind string, known bool) {
	if value, found, unanimous := w.header(HeaderKind); found {
		kind, known = ParseKind(string(value))
		return kind, known && unanimous
	}
	if m := w.scan.find("kind"); m != nil && m.typ == typeString {
		if kind, known = ParseKind(w.scan.stringOf(m)); known {
			return kind, true
		}
	}
	if w.d.Control {
		return "", true
	}
	return KindCall, true
}

// readMembers sorts the members: to the ports of columns, into slots, and the
// rest to the rest.
func (w *workspace) readMembers() {
	if w.scan.root != typeObject {
		w.fail(ReasonWrongType, "the value is not an object")
		return
	}
	for i := range w.scan.top {
		m := &w.scan.top[i]
		name := w.scan.nameOf(m)
		w.readMember(m, w.shape.members[string(name)], name)
	}
}

func (w *workspace) readMember(m *member, p *memberPlan, name []byte) {
	switch {
	case p == nil:
		w.keep("", m, name)
	case p.kept:
		w.keep("", m, name)
		w.readKept(m, p)
	case m.typ == typeNull:
	case p.group:
		w.readGroup(m, p, name)
	case p.slot != none:
		w.readSlot(m, p, w.promptRoot.member(name))
		w.readSubs(m, p)
	case p.port != none:
		w.ports[p.port] = m
	}
}

// readKept takes copies out of a member that stays whole.
func (w *workspace) readKept(m *member, p *memberPlan) {
	w.readSubs(m, p)
	if p.path != "calls" {
		return
	}
	w.calls = m
	if m.typ != typeArray && m.typ != typeNull {
		w.fail(ReasonWrongType, "calls: not an array")
		w.calls = nil
	}
}

// readSubs finds the members of m that columns come by.
func (w *workspace) readSubs(m *member, p *memberPlan) {
	if len(p.subs) == 0 {
		return
	}
	for i := m.subs.from; i < m.subs.to; i++ {
		sub := &w.scan.subs[i]
		if sp := p.subs[string(w.scan.nameOf(sub))]; sp != nil && sub.typ != typeNull {
			w.ports[sp.port] = sub
		}
	}
}

// readGroup takes a group apart. One that has nothing in it is kept as it is,
// so that it comes back.
func (w *workspace) readGroup(m *member, p *memberPlan, name []byte) {
	if m.typ != typeObject {
		w.fail(ReasonWrongType, "%s: not an object", p.path)
		return
	}
	w.group.reset()
	empty := true
	for i := m.subs.from; i < m.subs.to; i++ {
		sub := &w.scan.subs[i]
		subName := w.scan.nameOf(sub)
		sp := p.subs[string(subName)]
		if sp != nil && sub.typ == typeNull {
			continue
		}
		empty = false
		w.readSub(sub, sp, p.path, subName)
	}
	switch {
	case empty:
		w.keep("", m, name)
	case len(w.group.b) > 0:
		w.context.member(p.path, append(w.group.b, '}'))
	}
}

func (w *workspace) readSub(sub *member, p *memberPlan, group string, name []byte) {
	switch {
	case p == nil:
		w.keep(group, sub, name)
	case p.slot != none:
		w.readSlot(sub, p, w.promptRoot.member([]byte(group)).member(name))
	default:
		w.ports[p.port] = sub
	}
}

func (w *workspace) readSlot(m *member, p *memberPlan, prompts *promptNode) {
	want, what := typeObject, "an object"
	if p.slot == SlotPluginPayloads {
		want, what = typeArray, "an array"
	}
	if m.typ != want {
		w.fail(ReasonWrongType, "%s: not %s", p.path, what)
		return
	}
	w.lift.path = append(w.lift.path[:0], p.path...)
	w.dst.Slots[p.slot] = w.lift.slot(w.scan.raw(m), prompts)
}

// keep puts a member to the rest: into ext under its path, or into context,
// under its name and inside its group. group is "" at the top level.
func (w *workspace) keep(group string, m *member, name []byte) {
	if w.shape.whole {
		return
	}
	w.lift.path = w.lift.path[:0]
	prompts := w.promptRoot
	if group != "" {
		w.lift.path = append(append(w.lift.path, group...), '.')
		prompts = prompts.member([]byte(group))
	}
	w.lift.path = appendPathName(w.lift.path, share(name))
	o := &w.ext
	switch {
	case w.shape.rest == SlotExt:
		o.open()
		o.b = append(o.b, w.lift.path...)
	case group != "":
		o = &w.group
		o.open()
		o.b = append(o.b, w.scan.text[m.name.from:m.name.to]...)
	default:
		o = &w.context
		o.open()
		o.b = append(o.b, w.scan.text[m.name.from:m.name.to]...)
	}
	o.close()
	o.b = w.lift.value(o.b, w.scan.raw(m), prompts.member(name))
}

// fillSlots writes the slots that are made here.
func (w *workspace) fillSlots() {
	if w.reject != nil {
		return
	}
	w.dst.Derived = derive(w.dst.Slots[SlotDecision])
	switch {
	case w.shape.whole:
		w.dst.Slots[SlotContext] = slices.Clip(w.scan.text)
	case w.shape.rest == SlotContext:
		w.dst.Slots[SlotContext] = w.context.take()
	}
	if !w.shape.whole {
		w.dst.RedactionPolicy = Str(PolicyNone)
	}
	if w.lift.count > 0 && w.retains() {
		w.dst.Slots[SlotPrompts] = w.lift.prompts.take()
	}
	w.fillEnvelope()
	w.dst.Slots[SlotExt] = w.ext.take()
}

// PolicyNone is the redaction policy of a row that no policy was applied to.
const PolicyNone = "none"

// retains says whether the text of this message's prompts is kept.
func (w *workspace) retains() bool {
	if value, found, unanimous := w.header(HeaderRetainPrompts); found {
		return unanimous && string(value) == "true"
	}
	return w.d.RetainPrompts != nil && w.d.RetainPrompts(w.dst.TenantID.S)
}

// fillEnvelope writes into ext what surrounded the value.
func (w *workspace) fillEnvelope() {
	if len(w.alias.b) > 0 {
		w.ext.member("$alias", append(w.alias.b, '}'))
	}
	if w.schema != nil {
		w.ext.name("$schemaId")
		w.ext.b = fmt.Append(w.ext.b, binary.BigEndian.Uint32(w.schema))
	}
	if w.m.Key == nil || string(w.m.Key) != w.dst.TenantID.S {
		w.ext.name("$key")
		w.ext.b = appendBytes(w.ext.b, w.m.Key)
	}
	if slices.ContainsFunc(w.m.Headers, isForeign) {
		w.ext.name("$headers")
		w.ext.b = appendHeaders(w.ext.b, w.m.Headers, isForeign)
	}
}

// isForeign says whether a header is one that a decoder does not read.
func isForeign(h MessageHeader) bool {
	return h.Name != HeaderTenant && h.Name != HeaderKind && h.Name != HeaderRetainPrompts
}

// appendHeaders appends [[name, value], …] of the headers that keep says.
func appendHeaders(dst []byte, headers []MessageHeader, keep func(MessageHeader) bool) []byte {
	dst = append(dst, '[')
	for _, h := range headers {
		if !keep(h) {
			continue
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		dst = appendBytes(dst, []byte(h.Name))
		dst = append(dst, ',')
		dst = appendBytes(dst, h.Value)
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

// namesUser says whether text holds one of the record's user ids. Ids of fewer
// than 6 bytes are too likely to be part of something else.
func (w *workspace) namesUser(text string) bool {
	return slices.ContainsFunc(w.users, func(user string) bool {
		return len(user) >= minEchoBytes && strings.Contains(text, user)
	})
}

const (
	minEchoBytes   = 6   // of a user id that is looked for
	maxColumnBytes = 256 // of a string in a column that cannot be erased
)

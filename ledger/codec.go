package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A Member is one member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage // valid JSON
}

// Members are those members of an object that no field has, in their order:
// unknown ones, and known ones whose value the field cannot hold, or not in
// full (a time with an offset, null, a number where a text belongs). They are
// written where the field is zero, or says the same; else the field is. Of two of
// one name the first is written, and what is no JSON as {"$unencodable": text}.
type Members []Member

// Get returns the value of a member, nil if there is none of that name.
func (m Members) Get(name string) json.RawMessage {
	if i := m.index(name); i >= 0 {
		return m[i].Value
	}
	return nil
}

// index returns where a member stands first, -1 where there is none of that name.
func (m Members) index(name string) int {
	for i := range m {
		if m[i].Name == name {
			return i
		}
	}
	return -1
}

// A codec goes through the fields of a record, in one order for both ways:
// each walk method is the table of its object. It either writes them to dst, or
// fills them from in.
//
// Its methods are called statically, so that what is written stays on its
// caller's stack.
type codec struct {
	dst     []byte
	reading bool
	in      Members  // reading: what no field has taken yet
	extra   Members  // writing: the members beside the fields, of the object at hand
	said    []bool   // writing: which of them a field has said
	frames  [2]frame // of the objects around the one at hand
	depth   int
	above   int // levels of the record above the object that was begun with
}

// A frame is an object that waits while one of its members is gone through.
type frame struct {
	in, extra Members
	said      []bool
	name      string
	raw       json.RawMessage
	from      int // writing: where the member begins in dst
}

// begin begins an object: the first statement of a walk method.
func (o *codec) begin(extra Members) {
	if o.reading {
		return
	}
	o.dst = append(o.dst, '{')
	o.extra, o.said = extra, nil
	if len(extra) > 0 {
		o.said = make([]bool, len(extra))
	}
}

// end takes what is left, or writes what no field has said, and closes the
// object. It is the last statement of a walk method.
func (o *codec) end(extra *Members) {
	if o.reading {
		*extra = o.in
		o.in = nil
		return
	}
	o.extra.skipRepeats(o.said)
	for i := range o.extra {
		if !o.said[i] {
			o.name(o.extra[i].Name)
			o.appendFree(o.extra[i].Value)
		}
	}
	o.dst = append(o.dst, '}')
}

// skipRepeats marks members that have the name of one before, as names are written.
func (m Members) skipRepeats(said []bool) {
	const few = 16 // so many are compared one by one
	if len(m) <= few && !slices.ContainsFunc(m, func(one Member) bool { return !utf8.ValidString(one.Name) }) {
		for i := range m {
			said[i] = said[i] || m.index(m[i].Name) < i
		}
		return
	}
	seen := make(map[string]bool, len(m))
	for i := range m {
		name := valid(m[i].Name)
		said[i] = said[i] || seen[name]
		seen[name] = true
	}
}

func (o *codec) name(name string) {
	if o.dst[len(o.dst)-1] != '{' {
		o.dst = append(o.dst, ',')
	}
	o.dst = appendString(o.dst, name)
	o.dst = append(o.dst, ':')
}

// field begins a member that a field says.
func (o *codec) field(name string) {
	if i := o.extra.index(name); i >= 0 {
		o.said[i] = true
	}
	o.name(name)
}

// peek returns the text of a member that is being read, nil if there is none.
func (o *codec) peek(name string) json.RawMessage { return o.in.Get(name) }

// take removes a member that a field has taken. Order stays.
func (o *codec) take(name string) {
	i := o.in.index(name)
	o.in = append(o.in[:i], o.in[i+1:]...)
	if len(o.in) == 0 {
		o.in = nil
	}
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte { return audit.AppendString(dst, valid(s)) }

// valid returns text with U+FFFD in the place of what is not UTF-8, as encoding/json
// does it: a reader would refuse the record.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// text is a string; "" is none.
func (o *codec) text(name string, p *string) {
	if !o.reading {
		if *p != "" {
			o.field(name)
			o.dst = appendString(o.dst, *p)
		}
		return
	}
	if s, ok := stringOf(o.peek(name)); ok && s != "" {
		*p = s
		o.take(name)
	}
}

// stringOf returns the text of a JSON string.
func stringOf(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// texts is an array of strings; nil is none.
func (o *codec) texts(name string, p *[]string) {
	if !o.reading {
		if *p != nil {
			o.field(name)
			o.dst = append(o.dst, '[')
			for i, s := range *p {
				if i > 0 {
					o.dst = append(o.dst, ',')
				}
				o.dst = appendString(o.dst, s)
			}
			o.dst = append(o.dst, ']')
		}
		return
	}
	var all []*string // null is no string
	raw := o.peek(name)
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &all) != nil {
		return
	}
	texts := make([]string, len(all))
	for i, s := range all {
		if s == nil {
			return
		}
		texts[i] = *s
	}
	*p = texts
	o.take(name)
}

// number is an integer that is always there.
func (o *codec) number(name string, p *int64) {
	if !o.reading {
		if *p != 0 || o.extra.index(name) < 0 {
			o.field(name)
			o.dst = strconv.AppendInt(o.dst, *p, 10)
		}
		return
	}
	if n, ok := intOf(o.peek(name)); ok {
		*p = n
		o.take(name)
	}
}

// version is an integer; 0 is none.
func (o *codec) version(name string, p *int) {
	if !o.reading {
		if *p != 0 {
			o.field(name)
			o.dst = strconv.AppendInt(o.dst, int64(*p), 10)
		}
		return
	}
	if n, ok := intOf(o.peek(name)); ok && n != 0 && int64(int(n)) == n {
		*p = int(n)
		o.take(name)
	}
}

// intOf returns the integer of a number that is written as one.
func intOf(raw json.RawMessage) (int64, bool) {
	if string(raw) == "-0" {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// int is an integer; nil is none.
func (o *codec) int(name string, p **int64) {
	if !o.reading {
		if *p != nil {
			o.field(name)
			o.dst = strconv.AppendInt(o.dst, **p, 10)
		}
		return
	}
	if n, ok := intOf(o.peek(name)); ok {
		*p = &n
		o.take(name)
	}
}

// bool is true or false; nil is none.
func (o *codec) bool(name string, p **bool) {
	if !o.reading {
		if *p != nil {
			o.field(name)
			o.dst = strconv.AppendBool(o.dst, **p)
		}
		return
	}
	if raw := o.peek(name); string(raw) == "true" || string(raw) == "false" {
		*p = new(string(raw) == "true")
		o.take(name)
	}
}

// float is a number; nil is none. One that has more digits than a float64 says
// is kept as it is beside the field.
func (o *codec) float(name string, p **float64) {
	if o.reading {
		raw := o.peek(name)
		if f, ok := floatOf(raw); ok {
			*p = &f
			if text, ok := appendFloat(nil, f); ok && bytes.Equal(text, raw) {
				o.take(name)
			}
		}
		return
	}
	if *p == nil {
		return
	}
	if f, ok := floatOf(o.extra.Get(name)); ok && f == **p {
		return // its text is written
	}
	if text, ok := appendFloat(nil, **p); ok {
		o.field(name)
		o.dst = append(o.dst, text...)
	}
}

func floatOf(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// appendFloat appends the shortest text of f, without an exponent where it is
// of a usual size. It reports false for what JSON has no number for.
func appendFloat(dst []byte, f float64) ([]byte, bool) {
	switch abs := max(f, -f); {
	case f != f || abs > 1.7976931348623157e308:
		return dst, false
	case abs != 0 && (abs < 1e-6 || abs >= 1e21):
		return strconv.AppendFloat(dst, f, 'e', -1, 64), true
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64), true
}

// time is an instant; the zero time is none. One that is not written as
// YYYY-MM-DDTHH:MM:SS.mmmZ is kept as it is beside the field.
func (o *codec) time(name string, p *time.Time) {
	if o.reading {
		if at, plain, ok := timeOf(o.peek(name)); ok {
			*p = at
			if plain {
				o.take(name)
			}
		}
		return
	}
	if p.IsZero() {
		return
	}
	if raw := o.extra.Get(name); raw != nil {
		if at, _, ok := timeOf(raw); ok && at.Equal(*p) {
			return // its text is written
		}
	}
	o.field(name)
	o.dst = append(o.dst, '"')
	o.dst = audit.AppendTime(o.dst, p.UnixMicro())
	o.dst = append(o.dst, '"')
}

// timeOf returns the instant of a text; plain says that the text comes back.
func timeOf(raw json.RawMessage) (at time.Time, plain, ok bool) {
	s, ok := stringOf(raw)
	if !ok {
		return at, false, false
	}
	micros, plain, reason := audit.ParseTime(s)
	at = time.UnixMicro(micros).UTC()
	return at, plain, reason == "" && !at.IsZero()
}

// free is any value, as text; nil is none.
func (o *codec) free(name string, p *json.RawMessage) {
	if !o.reading {
		if *p != nil {
			o.field(name)
			o.appendFree(*p)
		}
		return
	}
	if raw := o.peek(name); raw != nil && string(raw) != "null" {
		*p = raw
		o.take(name)
	}
}

// appendFree appends a text that should be JSON of which an archive takes a record;
// where it is not, the record must not be lost for it.
func (o *codec) appendFree(text json.RawMessage) {
	switch {
	case text == nil:
		o.dst = append(o.dst, "null"...)
	case audit.CheckPart(text, o.above+o.depth+2) == nil:
		o.dst = append(o.dst, text...)
	default:
		o.dst = append(o.dst, `{"$unencodable":`...)
		o.dst = append(appendString(o.dst, string(text)), '}')
	}
}

// open goes into a member that is an object. It reports false where there is
// nothing to go into: writing, where there is none to write; reading, where the
// member is none. present is for writing alone.
func (o *codec) open(name string, present bool) bool {
	if !o.reading {
		if !present {
			return false
		}
		o.push(frame{extra: o.extra, said: o.said, name: name, from: len(o.dst)})
		o.name(name)
		return true
	}
	raw := o.peek(name)
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	o.take(name)
	o.push(frame{in: o.in, name: name, raw: raw})
	o.in = membersOf(raw)
	return true
}

func (o *codec) push(f frame) {
	o.frames[o.depth] = f
	o.depth++
}

// close comes back from a member. keep says whether an object without members
// is there all the same.
func (o *codec) close(keep bool) {
	o.depth--
	f := o.frames[o.depth]
	if o.reading {
		o.in = f.in
		if !keep && len(membersOf(f.raw)) == 0 {
			o.in = append(o.in, Member{f.name, f.raw})
		}
		return
	}
	o.extra, o.said = f.extra, f.said
	if !keep && bytes.HasSuffix(o.dst[f.from:], []byte(":{}")) {
		o.dst = o.dst[:f.from]
		return
	}
	if i := o.extra.index(f.name); i >= 0 {
		o.said[i] = true
	}
}

// there returns what *p points to, new if need be.
func there[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// list is an array of objects; nil is none. One that has something else in it
// stays as it is, whole.
func list[T any](o *codec, name string, p *[]T, walk func(*T, *codec)) {
	if !o.reading {
		if *p != nil {
			o.field(name)
			appendList(o, *p, walk)
		}
		return
	}
	var elements []json.RawMessage
	raw := o.peek(name)
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &elements) != nil {
		return
	}
	all := make([]T, len(elements))
	for i, e := range elements {
		if e[0] != '{' {
			return
		}
		walk(&all[i], &codec{reading: true, in: membersOf(e)})
	}
	*p = all
	o.take(name)
}

func appendList[T any](o *codec, all []T, walk func(*T, *codec)) {
	o.dst = append(o.dst, '[')
	for i := range all {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		inner := &codec{dst: o.dst, above: o.above + o.depth + 2}
		walk(&all[i], inner)
		o.dst = inner.dst
	}
	o.dst = append(o.dst, ']')
}

// membersOf returns the members of an object that is valid.
func membersOf(object []byte) (all Members) {
	for name, value := range audit.Members(object) {
		all = append(all, Member{name, value})
	}
	return all
}

// ErrNoRecord is matched by errors of reading what is no record: it is not the
// text of one JSON object, or of one that an archive would refuse whole.
var ErrNoRecord = errors.New("no record")

// read returns the members of a text, which it copies.
func read(text []byte) (Members, error) {
	text = bytes.TrimSpace(bytes.Clone(text))
	var r audit.Record
	reject := new(audit.Decoder).Decode(&r, &audit.Message{Value: text})
	if reject != nil {
		switch reject.Reason {
		case audit.ReasonNullValue, audit.ReasonEmptyValue, audit.ReasonInvalidJSON, audit.ReasonInvalidUnicode, audit.ReasonDuplicateKey, audit.ReasonTooDeep, audit.ReasonTooLarge:
			return nil, fmt.Errorf("%w: %s: %s", ErrNoRecord, reject.Reason, reject.Detail)
		}
	}
	if text[0] != '{' {
		return nil, fmt.Errorf("%w: not an object", ErrNoRecord)
	}
	return membersOf(text), nil
}

// check says why an archive would reject a value of a kind, nil if it would not.
func check(tenant, kind string, value []byte) error {
	var r audit.Record
	m := audit.Message{Key: []byte(tenant), Value: value, Headers: []audit.MessageHeader{{Name: audit.HeaderKind, Value: []byte(kind)}}}
	if reject := new(audit.Decoder).Decode(&r, &m); reject != nil {
		return fmt.Errorf("%w that an archive would take: %s: %s", ErrNoRecord, reject.Reason, reject.Detail)
	}
	return nil
}

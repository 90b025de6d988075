package audit

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// This file proves that nothing a producer sends is lost: Restore makes the
// message again from the columns, the user and the slots of a row, and from
// nothing else. Two values are equal if they are so member by member, number
// by number and character by character; members that are null may be missing.

// restore makes the whole message again, of a row that is not rejected and whose
// prompts were kept.
func restore(r *Record) (*Message, error) {
	m := &Message{Topic: r.Topic.S, Partition: int32(r.Partition.N), Offset: r.KafkaOffset.N, Timestamp: time.UnixMicro(r.KafkaTimestamp.N)}
	e, err := RestoreEnvelope(r)
	if err != nil {
		return nil, err
	}
	m.Key, m.Headers = e.Key, e.Headers
	if e.SchemaID.Valid {
		m.Value = binary.BigEndian.AppendUint32([]byte{0}, uint32(e.SchemaID.N))
	}
	m.Value, err = Restore(m.Value, r)
	return m, err
}

// tree returns the value of a text, numbers being json.Number.
func tree(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	return value
}

// canonical returns a value without members that are null, and with numbers in
// one form, so that reflect.DeepEqual says whether two values are the same.
func canonical(value any) any {
	switch value := value.(type) {
	case map[string]any:
		object := map[string]any{}
		for name, member := range value {
			if member != nil {
				object[name] = canonical(member)
			}
		}
		return object
	case []any:
		array := make([]any, len(value))
		for i := range value {
			array[i] = canonical(value[i])
		}
		return array
	case json.Number:
		return json.Number(normal(string(value)))
	}
	return value
}

// storedCopy returns a record that has nothing but what is stored: columns,
// user and slots.
func storedCopy(r *Record) *Record {
	var stored Record
	for _, c := range Header {
		if c.Text != nil {
			*c.Text(&stored) = *c.Text(r)
		} else {
			*c.Int(&stored) = *c.Int(r)
		}
	}
	stored.UserID = r.UserID
	for s := range r.Slots {
		stored.Slots[s] = bytes.Clone(r.Slots[s])
	}
	return &stored
}

// checkLossless fails unless m comes back from r.
func checkLossless(t *testing.T, m *Message, r *Record) {
	t.Helper()
	back, err := restore(storedCopy(r))
	if err != nil {
		t.Fatalf("%v\nvalue   %s\next     %s\ncontext %s", err, m.Value, r.Slots[SlotExt], r.Slots[SlotContext])
	}
	frame := 0
	if m.Value[0] == 0 {
		frame = 5
	}
	sent, got := canonical(tree(m.Value[frame:])), canonical(tree(back.Value[frame:]))
	if !bytes.Equal(m.Value[:frame], back.Value[:frame]) || !reflect.DeepEqual(sent, got) {
		t.Fatalf("%s does not come back\nsent    %s\ngot     %s\next     %s\ncontext %s", r.Kind.S, m.Value, back.Value, r.Slots[SlotExt], r.Slots[SlotContext])
	}
	if (m.Key == nil) != (back.Key == nil) || !bytes.Equal(m.Key, back.Key) {
		t.Fatalf("key %q comes back as %q", m.Key, back.Key)
	}
	var foreign []MessageHeader
	for _, h := range m.Headers {
		if isForeign(h) {
			foreign = append(foreign, h)
		}
	}
	if !slices.EqualFunc(foreign, back.Headers, func(a, b MessageHeader) bool {
		return a.Name == b.Name && bytes.Equal(a.Value, b.Value) && (a.Value == nil) == (b.Value == nil)
	}) {
		t.Fatalf("headers %q come back as %q", foreign, back.Headers)
	}
	if back.Topic != m.Topic || back.Partition != m.Partition || back.Offset != m.Offset || !back.Timestamp.Equal(m.Timestamp) {
		t.Fatalf("%+v comes back as %+v", m, back)
	}
}

// Whatever a producer sends, of any kind and in any of the forms that are
// allowed, comes back from the row. The records are made up at random, from the
// tables of the wire and beside them.
func TestNothingIsLost(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(6000) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		m, control := g.message()
		d := Decoder{Control: control, KeyIsTenant: true, RetainPrompts: func(string) bool { return true }}
		var r Record
		if reject := d.Decode(&r, m); reject != nil {
			seen[string(reject.Reason)]++
			continue
		}
		checkLossless(t, m, &r)
		seen["kind "+r.Kind.S]++
		for s := range NumSlots {
			if r.Slots[s] != nil {
				seen["slot "+s.String()]++
			}
		}
		for _, special := range []string{"$alias", "$key", "$headers", "$schemaId", "~2E", "~24", `":[]`} {
			if bytes.Contains(r.Slots[SlotExt], []byte(special)) {
				seen["ext "+special]++
			}
		}
	}
	// The generator must reach everything, or the test would prove little.
	want := []string{"ext $alias", "ext $key", "ext $headers", "ext $schemaId", "ext ~2E", "ext ~24", `ext ":[]`, "out_of_range", "wrong_type"}
	for _, s := range shapes {
		for _, kind := range s.kinds {
			want = append(want, "kind "+kind)
		}
	}
	for s := range SlotRaw {
		want = append(want, "slot "+s.String())
	}
	for _, w := range want {
		if seen[w] < 10 {
			t.Errorf("%s was made %d times", w, seen[w])
		}
	}
}

// A generator makes up messages, most of which are good.
type generator struct{ *rand.Rand }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }
func (g generator) chance(p float64) bool   { return g.Float64() < p }

// message makes up a message; control says that it is for the control topic.
func (g generator) message() (m *Message, control bool) {
	s := shapes[g.IntN(len(shapes))]
	kind := g.one(s.kinds...)
	m = &Message{Topic: "audit.calls", Partition: 3, Offset: g.Int64N(1 << 40), Timestamp: time.UnixMilli(g.Int64N(1 << 41))}
	o := map[string]string{}
	users := []string{g.one("u-1", "user-42", "system", "", "someone else")}
	for i := range s.columns {
		g.column(o, &s.columns[i], kind, users)
	}
	for _, slot := range s.slots {
		if g.chance(0.3) {
			g.put(o, slot.path, g.slot(slot.slot))
		}
	}
	g.strangers(o, s)
	if spelling := g.spelling(kind); s == entryShape || s == administrativeShape || s.whole {
		if g.chance(0.5) {
			o["kind"] = g.quoted(spelling)
		} else {
			m.Headers = append(m.Headers, MessageHeader{HeaderKind, []byte(spelling)})
		}
	} else if kind != KindCall || g.chance(0.3) {
		m.Headers = append(m.Headers, MessageHeader{HeaderKind, []byte(spelling)})
	}
	g.envelope(m)
	m.Value = append(m.Value, g.object(o)...)
	return m, s.whole
}

func (g generator) spelling(kind string) string {
	for spelling, k := range kindSpellings {
		if k == kind && g.chance(0.5) {
			return spelling
		}
	}
	return kind
}

// envelope makes up what surrounds the value.
func (g generator) envelope(m *Message) {
	if g.chance(0.5) {
		m.Headers = append(m.Headers, MessageHeader{HeaderTenant, []byte("acme")})
	}
	for g.chance(0.3) {
		m.Headers = append(m.Headers, MessageHeader{g.one("traceparent", "", "a\"b", "\xff", "Tenant"), [][]byte{nil, {}, []byte("00-4bf9"), {0xff, 0}, []byte("\u0000\"é")}[g.IntN(5)]})
	}
	m.Key = [][]byte{nil, {}, []byte("acme"), []byte("k"), {0xfe}, []byte("acme"), []byte("acme")}[g.IntN(7)]
	if g.chance(0.1) {
		m.Value = []byte{0, 0, 0, byte(g.IntN(3)), byte(g.IntN(256))}
	}
}

// column makes up the members that a column comes by.
func (g generator) column(o map[string]string, c *columnPlan, kind string, users []string) {
	if c.as == asKind {
		return
	}
	if c.as == asFirstCall || c.as == asCallSum {
		if c.column == "family" && g.chance(0.8) {
			o["calls"] = g.calls()
		}
		return
	}
	value := g.valueFor(c, users)
	for i, path := range c.paths {
		switch {
		case c.required && i == 0 && c.as != asTenant && g.chance(0.99):
		case c.required && c.as == asTenant && len(c.paths) == 1:
		case g.chance(0.6):
			if g.chance(0.2) {
				g.put(o, path, "null")
			}
			continue
		}
		if g.chance(0.15) && c.as != asTenant {
			value = g.valueFor(c, users) // another than by the path before
		}
		g.put(o, path, value)
	}
}

// valueFor makes up a value for a column.
func (g generator) valueFor(c *columnPlan, users []string) string {
	switch c.as {
	case asInt32, asInt64:
		return g.one("0", "19", "-1", "1e2", "812.0", "9007199254740993", "9223372036854775807", "2147483647", "1200e-2", "-0", "9223372036854775808", "1.5")
	case asOrdinal:
		return g.one("0", "1", "17", "3.0", "1e3", "9223372036854775807")
	case asMillis:
		return g.one("0", "812", "812.5", "0.0001", "-3", "1e400", "1e-400", "17.123456", "9223372036854775.807")
	case asTime:
		return g.quoted(g.one("2026-05-15T12:00:00.000Z", "2026-05-15T12:00:00.123Z", "2026-05-15T14:00:00+02:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "2026-05-15T12:00:00.123456789Z"))
	case asTimeOrMillis:
		return g.one(`"2026-05-15T12:00:00.000Z"`, "1778846400000", "-62135596800000", "1.7788464e12", `"2026-05-15t12:00:00z"`)
	case asRecordID:
		return g.quoted(g.one("01KRNR3ZG00000000000000001", "01krnr3zg0000000000000000a", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"))
	case asTenant:
		return g.quoted("acme")
	case asActor, asVerdict:
		if g.chance(0.3) {
			return g.value(2)
		}
		return g.quoted(g.one("user", "guest", "scheduled", "system", "robot", "allowed"))
	}
	if c.column == "user_id" {
		return g.quoted(users[0])
	}
	return g.quoted(g.one("", "stop", "anthropic", "model of "+users[0], "é\u0000😀", strings.Repeat("x", 257), strings.Repeat("é", 128), "line\nbreak"))
}

// calls makes up the calls of a decision.
func (g generator) calls() string {
	var calls []string
	for g.chance(0.7) {
		o := map[string]string{"provider": g.one(`"anthropic"`, "null", `"user-42 inc"`), "model": g.one(`"m"`, `""`)}
		for _, name := range []string{"inputTokens", "outputTokens"} {
			if g.chance(0.8) {
				o[name] = g.one("1", "12", "1e1", "null")
			}
		}
		if g.chance(0.3) {
			o[g.one("prompt", "messages", "else")] = g.value(2)
		}
		calls = append(calls, g.object(o))
	}
	return "[" + strings.Join(calls, " ,") + "]"
}

func (g generator) slot(s Slot) string {
	if s == SlotPluginPayloads {
		return "[" + g.value(2) + "]"
	}
	o := map[string]string{}
	for g.chance(0.6) {
		o[g.one("inputTokensX", "reason", "rungOrdinal", "a.b", "fallbackChain")] = g.value(2)
	}
	return g.object(o)
}

// strangers adds members that nobody knows, and prompts.
func (g generator) strangers(o map[string]string, s *shape) {
	for g.chance(0.5) {
		name := g.one("foo", "context", "action", "", "a.b", "$alias", "$key", "~", "x~2Ey", "é\"\\", "0", "$")
		if g.chance(0.3) && len(s.groups) > 0 {
			g.put(o, g.one(s.groups...)+"\x00"+name, g.value(3))
		} else if _, taken := o[name]; !taken {
			o[name] = g.value(3)
		}
	}
	for g.chance(0.4) {
		g.put(o, g.one("prompt", "messages", "call\x00prompt", "responseText", "systemPrompt"), g.value(3))
	}
	for _, group := range s.groups {
		if _, taken := o[group]; !taken && g.chance(0.1) {
			o[group] = g.one("{}", "null")
		}
	}
	if _, taken := o["calls"]; !taken && g.chance(0.1) {
		o["calls"] = g.calls()
	}
}

// put notes a member at a path of one or two names, joined by "." or, where a
// name has one, by a zero byte. Members of groups are gathered under
// "group\x00name" and put together by object.
func (g generator) put(o map[string]string, path, value string) {
	group, name, nested := strings.Cut(path, "\x00")
	if !nested {
		group, name, nested = strings.Cut(path, ".")
	}
	if !nested {
		o[path] = value
		return
	}
	if _, whole := o[group]; !whole {
		o[group+"\x00"+name] = value
	}
}

// object writes an object with its members in any order and any spelling.
func (g generator) object(members map[string]string) string {
	groups := map[string]map[string]string{}
	flat := map[string]string{}
	for name, value := range members {
		group, sub, nested := strings.Cut(name, "\x00")
		switch _, whole := members[group]; {
		case !nested:
			flat[name] = value
		case !whole:
			if groups[group] == nil {
				groups[group] = map[string]string{}
			}
			groups[group][sub] = value
		}
	}
	for _, name := range sortedKeys(groups) {
		flat[name] = g.object(groups[name])
	}
	names := sortedKeys(flat)
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var parts []string
	for _, name := range names {
		parts = append(parts, g.blank()+g.quoted(name)+g.blank()+":"+g.blank()+flat[name]+g.blank())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (g generator) blank() string { return g.one("", "", "", "", " ", "\n\t") }

// quoted writes a string, sometimes with escapes that nobody needs.
func (g generator) quoted(text string) string {
	if !g.chance(0.2) {
		return string(appendQuoted(nil, text))
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04X\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3ff)
		case g.chance(0.5) || r < 0x20 || r == '"' || r == '\\':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// value makes up any value of at most depth levels.
func (g generator) value(depth int) string {
	switch n := g.IntN(8); {
	case n == 0 && depth > 0:
		o := map[string]string{}
		for g.chance(0.5) {
			o[g.one("a", "b", "promptBytes", "prompt", "0", "")] = g.value(depth - 1)
		}
		return g.object(o)
	case n == 1 && depth > 0:
		var elements []string
		for g.chance(0.5) {
			elements = append(elements, g.value(depth-1))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case n < 4:
		return g.one("0", "1.10", "1e400", "-0.0", "18446744073709551615", "327267367867168100000", "1e-999999")
	case n < 6:
		return g.quoted(g.one("", "text", "NaN", "\u0000", "a\"b", "😀"))
	}
	return g.one("true", "false", "null", "{}", "[]")
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

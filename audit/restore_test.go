package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func decoded(t *testing.T, m *Message, control bool) *Record {
	t.Helper()
	d := Decoder{Control: control, RetainPrompts: func(string) bool { return true }}
	var r Record
	if reject := d.Decode(&r, m); reject != nil {
		t.Fatal(reject)
	}
	return storedCopy(&r)
}

func restored(t *testing.T, r *Record) string {
	t.Helper()
	text, err := Restore(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A slot that no decoder wrote restores nothing, and leaves dst alone; it never
// panics, and never gives text that is not JSON.
func TestRestoreRefusesWhatNoDecoderWrites(t *testing.T) {
	for _, c := range []struct {
		slot Slot
		text string
	}{
		{SlotExt, ``},
		{SlotExt, `[]`},
		{SlotExt, `{"a":1`},
		{SlotExt, `{"a":1}{`},
		{SlotExt, `{"a":1,"a":2}`},
		{SlotExt, `{"$alias":{"family":1}}`},
		{SlotDecision, `7`},
		{SlotDecision, `{"a":}`},
		{SlotDecision, "{\"a\":\"\xff\"}"},
		{SlotPluginPayloads, `{}`},
		{SlotContext, `"x"`},
		{SlotPrompts, `{"prompt":1,}`},
		{SlotPrompts, `[]`},
	} {
		r := decoded(t, usualMessage(), false)
		r.Slots[c.slot] = []byte(c.text)
		text, err := Restore([]byte("before"), r)
		if !errors.Is(err, ErrRestore) || string(text) != "before" {
			t.Errorf("%s = %s: %q, %v", c.slot, c.text, text, err)
		}
	}
	for _, ext := range []string{`{"$key":1}`, `{"$key":{}}`, `{"$key":{"base64":"?"}}`, `{"$headers":{}}`, `{"$headers":[["a"]]}`, `{"$headers":[[null,"a"]]}`, `{"$headers":[["a","b","c"]]}`, `{"$schemaId":"1"}`, `[`} {
		r := decoded(t, usualMessage(), false)
		r.Slots[SlotExt] = []byte(ext)
		if _, err := RestoreEnvelope(r); !errors.Is(err, ErrRestore) {
			t.Errorf("%s: %v", ext, err)
		}
	}
}

// Members come in the order of the tables, numbers and strings as they were
// written, blanks and nulls not at all.
func TestRestoreOrder(t *testing.T) {
	m := usualMessage()
	m.Headers = append(m.Headers, MessageHeader{HeaderRetainPrompts, []byte("true")})
	m.Value = []byte("{\r\n\"outcome\" : {\"latencyMs\": 812.50, \"status\":\"ok\", \"why\":{ \"é\\u00e9\\n\u2028\" : 1.10e+2 }, \"odd.name\" : [ 1 , 2 ]},\n" +
		` "later":{ "a" : [ ] },"calls":[{"prompt":" a b ","n":1}],"userId":null,"createdAt":"2026-05-15T14:00:00.5+02:00","seqWithinTurn":3e0,"stageId":"tool-loop","turnId":"t",` +
		`"sessionId":"s","recordId":"01KRNR3ZG00000000000000001","principal":{"tenantId":"acme","actorKind":"user"}}`)
	const want = `{"principal":{"tenantId":"acme","actorKind":"user"},"recordId":"01KRNR3ZG00000000000000001","sessionId":"s","turnId":"t","stageId":"tool-loop","seqWithinTurn":3,` +
		`"createdAt":"2026-05-15T14:00:00.5+02:00","outcome":{"status":"ok","latencyMs":812.5,"why":{"é\u00e9\n` + "\u2028" + `":1.10e+2},"odd.name":[1,2]},"later":{"a":[]},"calls":[{"prompt":" a b ","n":1}]}`
	if got := restored(t, decoded(t, m, false)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What a row says that no producer sent as it is, is one object too.
func TestRestoreOtherRows(t *testing.T) {
	const order = "{\"recordId\":\"01KRNR3ZG00000000000000001\",\n\"tenantId\":\"acme\", \"createdAt\":\"2026-05-15T12:00:00.000Z\",\"target\":{\"userId\":\"u\"},\"$x\":1.0}"
	control := decoded(t, &Message{Topic: ControlTopic, Timestamp: time.UnixMilli(1), Value: []byte(order), Headers: []MessageHeader{{HeaderKind, []byte(KindRedaction)}}}, true)
	erased := storedCopy(control)
	erased.Slots = [NumSlots][]byte{}
	var gap Record
	Gap(&gap, 5, 9, "log start\n")
	reject := func(value []byte) *Record {
		var r Record
		m := usualMessage()
		m.Value = value
		if new(Decoder).Decode(&r, m) == nil {
			t.Fatal("no reject")
		}
		return storedCopy(&r)
	}
	bad := reject([]byte(strings.Replace(usualCall, `"subagentDepth":0`, `"subagentDepth":"x"`, 1)))
	bytesOnly := reject([]byte("\xff\"\n"))
	hard := storedCopy(bad)
	*hard = Record{TenantID: hard.TenantID, Kind: hard.Kind}
	for _, c := range []struct {
		name string
		r    *Record
		want string
	}{
		{"control", control, `{"recordId":"01KRNR3ZG00000000000000001","tenantId":"acme","createdAt":"2026-05-15T12:00:00.000Z","target":{"userId":"u"},"$x":1.0}`},
		{"control, erased", erased, `{"tenantId":"acme","recordId":"01KRNR3ZG00000000000000001","createdAt":"2026-05-15T12:00:00.000Z"}`},
		{"gap", &gap, `{"kind":"gap","tenantId":"_partition","from":5,"to":9,"cause":"log start\u000a"}`},
		{"rejected", bad, `{"kind":"rejected","tenantId":"acme","recordId":"01KRNR3ZG00000000000000001","sessionId":"sess-4f1c2b","turnId":"turn-000017","stageId":"tool-loop","seqWithinTurn":3,"createdAt":"2026-05-15T12:00:00.123Z","userId":"user-8841",` +
			`"reason":"wrong_type","detail":"subagentDepth: not a number",` + restOf(t, bad, "size") + `,"raw":` + string(appendQuoted(nil, string(bad.Slots[SlotRaw]))) + `}`},
		{"rejected bytes", bytesOnly, `{"kind":"rejected","tenantId":"acme","reason":"invalid_unicode","detail":"byte 0: not UTF-8",` + restOf(t, bytesOnly, "size") + `,"raw":{"base64":"/yIK"}}`},
		{"rejected, erased hard", hard, `{"kind":"rejected","tenantId":"acme"}`},
	} {
		if got := restored(t, c.r); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// restOf returns the text of a context from a member on.
func restOf(t *testing.T, r *Record, name string) string {
	t.Helper()
	context := string(r.Slots[SlotContext])
	i := strings.Index(context, `"`+name+`"`)
	if i < 0 {
		t.Fatal(context)
	}
	return context[i : len(context)-1]
}

// Of a row from which something was erased, what is left comes back: marks stand
// where slots were, and prompts whose place is gone by their paths.
func TestRestoreOfWhatIsLeft(t *testing.T) {
	m := usualMessage()
	m.Value = bytes.Replace(m.Value, []byte(`"toolName"`), []byte(`"$prompts":1,"$$x":2,"prompt":"p","messages":["m"],"calls":[{"prompt":"c"}],"call":{"prompt":"d"},"toolName"`), 1)
	m.Value = bytes.Replace(m.Value, []byte(`"call":{"callClass"`), []byte(`"call":{"systemPrompt":"s","callClass"`), 1)
	m.Value = bytes.Replace(m.Value, []byte(`"call":{"prompt":"d"},`), nil, 1)
	whole := decoded(t, m, false)
	left := storedCopy(whole)
	left.Slots[SlotExt], left.Slots[SlotOutcomeWhy], left.Slots[SlotDecision], left.UserID = nil, nil, nil, Text{}
	var p Restorer
	p.Marks = new([NumSlots][]byte)
	p.Marks[SlotOutcomeWhy], p.Marks[SlotExt] = []byte(`{"redacted":true}`), []byte(`{"redacted":true}`)
	got, err := p.Append(nil, left)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"principal":{"actorKind":"user","sessionAuthMethod":"api-key"}`, `"why":{"redacted":true}`, `"systemPrompt":"s"`, `"prompt":"p","messages":["m"]`,
		`,"$prompts":{"calls.0.prompt":"c"}}`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if !json.Valid(got) || bytes.Contains(got, []byte(`"decision":`)) || bytes.Contains(got, []byte(`"ext"`)) {
		t.Errorf("%s", got)
	}
	if got := restored(t, whole); !strings.Contains(got, `"$prompts":1,"$$x":2,`) {
		t.Errorf("a producer's own members: %s", got)
	}
	p = Restorer{Reserve: true}
	if got, err = p.Append(nil, whole); err != nil || !bytes.Contains(got, []byte(`"$$prompts":1,"$$$x":2,`)) {
		t.Errorf("reserved: %s, %v", got, err)
	}
}

// What is restored decodes to a record of the same columns, and restores to the
// same bytes.
func TestRestoreIsTheInverse(t *testing.T) {
	for seed := range uint64(2000) {
		g := generator{newRand(seed)}
		m, control := g.message()
		checkRestore(t, m, control)
	}
}

func checkRestore(t *testing.T, m *Message, control bool) {
	d := Decoder{Control: control, KeyIsTenant: true, RetainPrompts: func(string) bool { return true }}
	retain := *m
	retain.Headers = nil
	for _, h := range m.Headers {
		if h.Name != HeaderRetainPrompts {
			retain.Headers = append(retain.Headers, h)
		}
	}
	m = &retain
	var first, second Record
	if d.Decode(&first, m) != nil {
		text, err := Restore(nil, &first)
		if err != nil || !json.Valid(text) || bytes.ContainsAny(text, "\r\n") {
			t.Fatalf("rejected: %s, %v", text, err)
		}
		return
	}
	once, err := restore(storedCopy(&first))
	if err != nil {
		t.Fatalf("%v: %s", err, m.Value)
	}
	again := *m
	again.Value = once.Value
	if reject := d.Decode(&second, &again); reject != nil {
		t.Fatalf("%v\nof   %s\nfrom %s", reject, once.Value, m.Value)
	}
	for i := range Header {
		c := &Header[i]
		if c.Text != nil && *c.Text(&first) != *c.Text(&second) || c.Int != nil && *c.Int(&first) != *c.Int(&second) {
			t.Fatalf("%s differs\nfirst  %s\nsecond %s", c.Name, m.Value, once.Value)
		}
	}
	twice, err := restore(&second)
	if err != nil || !bytes.Equal(once.Value, twice.Value) || once.Value[0] == '{' && bytes.ContainsAny(once.Value, "\r\n") {
		t.Fatalf("%v\nonce  %s\ntwice %s", err, once.Value, twice.Value)
	}
}

// Columns are written as producers write them, and as exactly as they say it.
func TestAppendColumns(t *testing.T) {
	for micros, want := range map[int64][2]string{
		0:                   {"1970-01-01T00:00:00.000Z", "0"},
		-5000:               {"1969-12-31T23:59:59.995Z", "-5"},
		-1:                  {"1969-12-31T23:59:59.999999Z", "-0.001"},
		812_500:             {"1970-01-01T00:00:00.812500Z", "812.5"},
		812_050:             {"1970-01-01T00:00:00.812050Z", "812.05"},
		minMicros:           {"0001-01-01T00:00:00.000Z", "-62135596800000"},
		maxMicros:           {"9999-12-31T23:59:59.999999Z", "253402300799999.999"},
		math.MinInt64 + 808: {"", "-9223372036854775"},
	} {
		if got := string(AppendMillis(nil, micros)); got != want[1] {
			t.Errorf("%d µs are %s ms, want %s", micros, got, want[1])
		}
		if got := string(AppendTime(nil, micros)); got != want[0] && want[0] != "" {
			t.Errorf("%d µs are %s, want %s", micros, got, want[0])
		}
	}
	for text, want := range map[string]string{"a\n\r\t\b\f\"\\\x00\x1fé": `"a\n\r\t\b\f\"\\\u0000\u001fé"`, "\xff": `{"base64":"/w=="}`, strings.Repeat("\x01", 20): `{"base64":"AQEBAQEBAQEBAQEBAQEBAQEBAQE="}`, "\x01": `"\u0001"`} {
		if got := string(AppendRaw(nil, []byte(text))); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(usualCall), "", []byte("acme"), false)
	for seed := range uint64(40) {
		g := generator{newRand(seed)}
		m, control := g.message()
		kind := ""
		for _, h := range m.Headers {
			if h.Name == HeaderKind {
				kind = string(h.Value)
			}
		}
		f.Add(m.Value, kind, m.Key, control)
	}
	f.Fuzz(func(t *testing.T, value []byte, kind string, key []byte, control bool) {
		m := usualMessage()
		m.Value, m.Key = value, key
		if kind != "" {
			m.Headers = append(m.Headers, MessageHeader{HeaderKind, []byte(kind)})
		}
		checkRestore(t, m, control)
	})
}

// FuzzRestoreSlots restores rows that anybody could have written.
func FuzzRestoreSlots(f *testing.F) {
	f.Add(KindCall, []byte(`{"a.b":1,"$alias":{"family":["family"]},"calls":[{}]}`), []byte(`{"calls.0.prompt":1,"principal.tenantId.x":2}`), []byte(`{"principal":{}}`))
	f.Fuzz(func(t *testing.T, kind string, ext, prompts, context []byte) {
		r := Record{TenantID: Str("acme"), Kind: Str(kind), CreatedAt: I64(1), LatencyUS: I64(-1), Family: Str("f")}
		r.Slots[SlotExt], r.Slots[SlotPrompts], r.Slots[SlotContext] = ext, prompts, context
		text, err := Restore(nil, &r)
		if err == nil && !json.Valid(text) {
			t.Fatalf("%s", text)
		}
	})
}

func BenchmarkRestore(b *testing.B) {
	var r Record
	new(Decoder).Decode(&r, usualMessage())
	var dst []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(usualCall)))
	for b.Loop() {
		var err error
		if dst, err = Restore(dst[:0], &r); err != nil {
			b.Fatal(err)
		}
	}
}

package ledger_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/ledger"
)

// A record in Go is written as the wire has it: the names and types of
// docs/wire-columns.md, what is absent left out, an ordinal 0 not.
func TestWhatIsWritten(t *testing.T) {
	c := ledger.Call{
		AuditRecordVersion: 19, RecordID: "01KBCDEFGHJKMNPQRSTVWXYZ01", SessionID: "s-1", TurnID: "t-1", StageID: "tool-loop",
		CreatedAt: time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC),
		Principal: ledger.Principal{TenantID: "acme", ActorKind: "user"},
		Ran:       ledger.Ran{Provider: "anthropic", Model: "m\"1\x00", Extra: ledger.Members{{Name: "region", Value: json.RawMessage(`"eu"`)}}},
		Decision:  &ledger.Decision{RungOrdinal: new(int64(0)), FallbackChain: []string{}},
		Outcome:   ledger.Outcome{Status: "ok", LatencyMS: new(812.5), HTTPStatus: new(int64(200))},

		FamilyLock:      &ledger.FamilyLock{ByokActive: new(false)},
		CacheBreakpoint: &ledger.CacheBreakpoint{HitPct: new(1e-9)},
		TokenCost:       &ledger.TokenCost{},
		PlanGeneration:  json.RawMessage(`{"steps":[1, 2]}`),
		ToolSelection:   json.RawMessage(`{"broken`),
		PluginPayloads:  []ledger.PluginPayload{{PluginID: "pii", Data: json.RawMessage(`3`)}},
		Extra:           ledger.Members{{Name: "later", Value: json.RawMessage(`1.10`)}, {Name: "toolName", Value: json.RawMessage(`null`)}},
	}
	const want = `{"auditRecordVersion":19,"recordId":"01KBCDEFGHJKMNPQRSTVWXYZ01","sessionId":"s-1","turnId":"t-1","stageId":"tool-loop",` +
		`"seqWithinTurn":0,"createdAt":"2026-11-30T12:00:00.123456Z","principal":{"tenantId":"acme","actorKind":"user"},` +
		`"call":{"provider":"anthropic","model":"m\"1\u0000","region":"eu"},"decision":{"rungOrdinal":0,"fallbackChain":[]},` +
		`"outcome":{"status":"ok","latencyMs":812.5,"httpStatus":200},"familyLock":{"byokActive":false},"cacheBreakpoint":{"hitPct":1e-09},` +
		`"tokenCost":{},"toolSelection":{"$unencodable":"{\"broken"},"planGeneration":{"steps":[1, 2]},` +
		`"pluginPayloads":[{"pluginId":"pii","data":3}],"later":1.10,"toolName":null}`
	if got := string(c.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	c.SessionID, c.Ran.Model = "", "\xff"
	if err := c.Check(); !errors.Is(err, ledger.ErrNoRecord) || !strings.Contains(err.Error(), "missing_field") {
		t.Errorf("a call without a session: %v", err)
	}
	if got := string(c.AppendJSON([]byte("before "))); !strings.HasPrefix(got, `before {"auditRecordVersion"`) || !strings.Contains(got, `"model":"`+"\uFFFD"+`"`) {
		t.Errorf("got %s", got)
	}
}

// odd are records with members that no field can hold, or not in full.
var odd = []string{
	`{}`,
	`{"seqWithinTurn":0}`,
	`{"toolName":null,"principal":{"userId":null},"decision":null,"outcome":{"why":null,"httpStatus":null}}`,
	`{"toolName":"","sessionId":7,"turnId":{"a":1},"stageId":["x"],"parentTurnId":true}`,
	`{"inputTokens":1e2,"outputTokens":8092.0,"subagentDepth":-0,"seqWithinTurn":1e1,"auditRecordVersion":0}`,
	`{"inputTokens":"7","outputTokens":99999999999999999999,"auditRecordVersion":1e1}`,
	`{"createdAt":"2026-11-30T12:00:00Z"}`,
	`{"createdAt":"2026-11-30T12:00:00.123+02:00"}`,
	`{"createdAt":"2026-11-30T12:00:00.123456789Z"}`,
	`{"createdAt":1796000000000}`,
	`{"createdAt":"yesterday"}`,
	`{"createdAt":"0001-01-01T00:00:00.000Z"}`,
	`{"outcome":{"latencyMs":812.1234567890123456789}}`,
	`{"outcome":{"latencyMs":1.50},"cacheBreakpoint":{"hitPct":-0}}`,
	`{"outcome":{"latencyMs":1e400}}`,
	`{"outcome":{"latencyMs":"fast"}}`,
	`{"principal":{},"call":{},"outcome":{},"tokenUsage":{},"decision":{},"familyLock":{}}`,
	`{"principal":5,"call":[],"outcome":"x","tokenUsage":false,"decision":1,"familyLock":"lock","tokenCost":[]}`,
	`{"familyLock":{"byokActive":"yes","resolverPath":3,"x":{"y":[1.10,-0.0]}},"fallbackStep":{"attemptIndex":1.5}}`,
	`{"decision":{"fallbackChain":["a",null]}}`,
	`{"decision":{"fallbackChain":["a",1]}}`,
	`{"decision":{"fallbackChain":"a"}}`,
	`{"pluginPayloads":[]}`,
	`{"pluginPayloads":[{"pluginId":"p","subKind":"","data":null,"more":1},{}]}`,
	`{"pluginPayloads":[{"pluginId":"p"},3]}`,
	`{"pluginPayloads":{"pluginId":"p"}}`,
	`{"toolSelection":[1],"planGeneration":"x","synthesisQuality":null}`,
	`{"unknown":{"a":[{"b":null}]},"tenantId":"acme","recordId":"01kbcdefghjkmnpqrstvwxyz01"}`,
	"\n{ \"toolName\" : \"\\u00e9\\ud83d\\ude00\" , \"\\u0074urnId\" : \"t\" }\t",
}

// What is read is written again value for value, numbers in their own digits.
func TestWhatIsReadComesBack(t *testing.T) {
	for _, text := range odd {
		comesBack(t, []byte(text))
	}
	for _, text := range sample(1000) {
		comesBack(t, text)
	}
}

// sample returns plausible records of all kinds.
func sample(n int) (all [][]byte) {
	g := workload.New(8, 5)
	for len(all) < n {
		if r := g.Next(); r.Class == workload.Good {
			all = append(all, r.Value)
		}
	}
	return all
}

// comesBack reads a text in all three forms, and writes it again.
func comesBack(t *testing.T, text []byte) {
	t.Helper()
	var c ledger.Call
	var d ledger.DecisionRecord
	var e ledger.Entry
	for _, form := range []interface {
		json.Unmarshaler
		AppendJSON([]byte) []byte
	}{&c, &d, &e} {
		before := bytes.Clone(text)
		if err := form.UnmarshalJSON(text); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again := form.AppendJSON(nil)
		if !same(t, text, again, form) {
			t.Errorf("%T\n  of %s\n got %s", form, text, again)
		}
		if !bytes.Equal(before, text) {
			t.Errorf("%T changed the text that it read", form)
		}
	}
}

// same reports whether two texts are the same value. seqWithinTurn and seq are
// written where they are absent.
func same(t *testing.T, text, again []byte, form any) bool {
	t.Helper()
	was, is := value(t, text), value(t, again)
	name := "seq"
	if _, ok := form.(*ledger.Call); ok {
		name = "seqWithinTurn"
	}
	if _, ok := form.(*ledger.DecisionRecord); !ok && was[name] == nil {
		if _, there := was[name]; !there && is[name] == json.Number("0") {
			delete(is, name)
		}
	}
	return reflect.DeepEqual(was, is)
}

func value(t *testing.T, text []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Known members are in their fields.
func TestFieldsAreFilled(t *testing.T) {
	const text = `{"auditRecordVersion":18,"recordId":"R","seqWithinTurn":7,"createdAt":"2026-11-30T12:00:00.5+01:00","inputTokens":0,
		"tokenUsage":{"outputTokens":3},"principal":{"tenantId":"acme","team":"x"},"call":{"model":"m"},"decision":{"fallbackChain":["a"]},
		"outcome":{"latencyMs":2.50,"why":{"a":1}},"fallbackStep":{"inFamily":false},"pluginPayloads":[{"pluginId":"p"}],"new":1}`
	var c ledger.Call
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	want := ledger.Call{
		AuditRecordVersion: 18, RecordID: "R", SeqWithinTurn: 7, CreatedAt: time.Date(2026, 11, 30, 11, 0, 0, 5e8, time.UTC), InputTokens: new(int64(0)),
		TokenUsage: ledger.TokenUsage{OutputTokens: new(int64(3))},
		Principal:  ledger.Principal{TenantID: "acme", Extra: ledger.Members{{Name: "team", Value: json.RawMessage(`"x"`)}}},
		Ran:        ledger.Ran{Model: "m"}, Decision: &ledger.Decision{FallbackChain: []string{"a"}},
		Outcome:        ledger.Outcome{LatencyMS: new(2.5), Why: json.RawMessage(`{"a":1}`), Extra: ledger.Members{{Name: "latencyMs", Value: json.RawMessage("2.50")}}},
		FallbackStep:   &ledger.FallbackStep{InFamily: new(false)},
		PluginPayloads: []ledger.PluginPayload{{PluginID: "p"}},
		Extra: ledger.Members{
			{Name: "createdAt", Value: json.RawMessage(`"2026-11-30T12:00:00.5+01:00"`)}, {Name: "new", Value: json.RawMessage("1")},
		},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
}

// A field that was changed goes before the text that it was read from.
func TestFieldsGoBeforeWhatWasRead(t *testing.T) {
	var c ledger.Call
	if err := c.UnmarshalJSON([]byte(`{"seqWithinTurn":1e1,"createdAt":"2026-11-30T12:00:00Z","toolName":null,"outcome":{"latencyMs":2.50}}`)); err != nil {
		t.Fatal(err)
	}
	c.SeqWithinTurn, c.ToolName, c.CreatedAt, c.Outcome.LatencyMS = 11, "search", c.CreatedAt.Add(time.Second), new(3.0)
	const want = `{"seqWithinTurn":11,"createdAt":"2026-11-30T12:00:01.000Z","toolName":"search","outcome":{"latencyMs":3}}`
	if got := string(c.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Extra members that a caller made up break no record: of two of one name the first
// counts, a member that a field says comes once, and what is no JSON is a text.
func TestExtraBreaksNothing(t *testing.T) {
	extra := ledger.Members{{Name: "a", Value: json.RawMessage("1")}, {Name: "a", Value: json.RawMessage("2")}, {Name: "toolName", Value: json.RawMessage(`"x"`)}, {Name: "b"}, {Name: "c", Value: json.RawMessage("}")}}
	c := ledger.Call{ToolName: "search", Extra: extra}
	const want = `{"seqWithinTurn":0,"toolName":"search","a":1,"b":null,"c":{"$unencodable":"}"}}`
	if got := string(c.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	odd := ledger.Call{Extra: ledger.Members{{Name: "a\xff", Value: json.RawMessage("1")}, {Name: "a\xfe", Value: json.RawMessage("2")}, {Name: "a\uFFFD", Value: json.RawMessage("3")}}}
	if got := string(odd.AppendJSON(nil)); got != "{\"seqWithinTurn\":0,\"a\uFFFD\":1}" {
		t.Errorf("names that are written alike: %s", got)
	}
	for n := range 40 {
		c.Extra = append(c.Extra, ledger.Member{Name: fmt.Sprint("m", n%20), Value: json.RawMessage("1")})
	}
	var again ledger.Call
	if err := again.UnmarshalJSON(c.AppendJSON(nil)); err != nil || len(again.Extra) != 23 {
		t.Errorf("%d members, %v", len(again.Extra), err)
	}
}

// A value of the application's own breaks no record either, whatever makes archives
// refuse one; and one that they take stays as it is, as deep as it may be.
func TestFreeValuesBreakNothing(t *testing.T) {
	nested := func(levels int) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels))
	}
	for value, kept := range map[string]bool{
		`{"a":1,"\u0061":2}`: false, `{"a":[{"b":1,"b":2}]}`: false, `{"a":"\ud83d"}`: false, `{"a":"\ud83d\ude42"}`: true, "{\"a\":\"\xff\"}": false, "{": false, "": false,
		string(nested(audit.MaxDepth - 3)): true, string(nested(audit.MaxDepth)): false,
	} {
		v := json.RawMessage(value)
		c := ledger.Call{
			RecordID: "01KBCDEFGHJKMNPQRSTVWXYZ00", SessionID: "s", TurnID: "t", StageID: "g", CreatedAt: time.UnixMilli(1780000000000), Principal: ledger.Principal{TenantID: "acme"},
			Outcome: ledger.Outcome{Why: v}, InterruptDecision: v, PluginPayloads: []ledger.PluginPayload{{PluginID: "p", Data: json.RawMessage("1"), Extra: ledger.Members{{Name: "x", Value: v[:min(len(v), 90)]}}}},
			Extra: ledger.Members{{Name: "more", Value: v}},
		}
		text := c.AppendJSON(nil)
		if err := c.Check(); err != nil {
			t.Errorf("%.60s: %v", value, err)
		}
		if is := bytes.Contains(text, []byte(`"interruptDecision":`+value+`,`)); is != kept {
			t.Errorf("%.60s: kept %v, want %v: %s", value, is, kept, text)
		}
	}
	// The levels of a record are counted as an archive counts them.
	for _, c := range []*ledger.Call{
		{InterruptDecision: nested(audit.MaxDepth - 1)},
		{Outcome: ledger.Outcome{Why: nested(audit.MaxDepth - 2)}},
		{PluginPayloads: []ledger.PluginPayload{{Data: nested(audit.MaxDepth - 3)}}},
		{Extra: ledger.Members{{Name: "x", Value: nested(audit.MaxDepth - 1)}}},
	} {
		if text := c.AppendJSON(nil); bytes.Contains(text, []byte("unencodable")) || new(ledger.Call).UnmarshalJSON(text) != nil {
			t.Errorf("%.200s: an archive takes it as it is", text)
		}
	}
	for _, c := range []*ledger.Call{
		{InterruptDecision: nested(audit.MaxDepth)},
		{Outcome: ledger.Outcome{Why: nested(audit.MaxDepth - 1)}},
		{PluginPayloads: []ledger.PluginPayload{{Data: nested(audit.MaxDepth - 2)}}},
		{Extra: ledger.Members{{Name: "x", Value: nested(audit.MaxDepth)}}},
	} {
		if text := c.AppendJSON(nil); !bytes.Contains(text, []byte("unencodable")) || new(ledger.Call).UnmarshalJSON(text) != nil {
			t.Errorf("%.200s: an archive takes no such record", text)
		}
	}
}

// What an archive would refuse as text is refused here; all else is read.
func TestWhatIsNoRecord(t *testing.T) {
	for text, why := range map[string]string{
		"": "null_value", " ": "null_value", "null": "not an object", "[]": "not an object", `"x"`: "not an object", "{": "invalid_json", "{}{}": "invalid_json",
		`{"a":1,"a":2}`: "duplicate_key", `{"call":{"b":{"a":1,"\u0061":2}}}`: "duplicate_key", "{\"a\":\"\xff\"}": "invalid_unicode",
		`{"a":"\ud800"}`: "invalid_unicode", strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70): "too_deep",
	} {
		var c ledger.Call
		if err := c.UnmarshalJSON([]byte(text)); !errors.Is(err, ledger.ErrNoRecord) || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40q: %v, want %s", text, err, why)
		}
	}
}

// An archive makes the same row of what was read and written again.
func FuzzCall(f *testing.F) {
	for _, text := range odd {
		f.Add([]byte(text))
	}
	for _, text := range sample(200) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c ledger.Call
		if c.UnmarshalJSON(text) != nil {
			return
		}
		again := c.AppendJSON(nil)
		if !same(t, text, again, &c) {
			t.Errorf("of %s\n got %s", text, again)
		}
		var was, is audit.Record
		if reject := new(audit.Decoder).Decode(&was, &audit.Message{Value: bytes.TrimSpace(text)}); reject != nil {
			return
		}
		if reject := new(audit.Decoder).Decode(&is, &audit.Message{Value: again}); reject != nil {
			t.Fatalf("%s: %v", again, reject)
		}
		was.Slots, is.Slots = [audit.NumSlots][]byte{}, [audit.NumSlots][]byte{} // of the same value, as was seen
		if column := audit.FirstDifference(&was, &is); column != "" {
			t.Errorf("of %s\n got %s\n which differs in %s", text, again, column)
		}
	})
}

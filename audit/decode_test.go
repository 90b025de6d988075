package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// bareCall has what a call must have, and nothing else.
const bareCall = `{"recordId":"01KRNR3ZG00000000000000001","sessionId":"s","turnId":"t","stageId":"synthesize","seqWithinTurn":0,"createdAt":"2026-05-15T12:00:00.000Z","tenantId":"acme"}`

// bareDecision and bareEntry likewise.
const (
	bareDecision = `{"decisionId":"d","timestamp":"2026-05-15T12:00:00.000Z","tenantId":"acme"}`
	bareEntry    = `{"kind":"tool-call","traceId":"tr","seq":7,"ts":"2026-05-15T12:00:00.000Z","tenantId":"acme"}`
	bareControl  = `{"kind":"redaction","recordId":"01KRNR3ZG00000000000000002","tenantId":"acme","createdAt":"2026-05-15T12:00:00.000Z","target":{"userId":"user-42"},"slots":"*"}`
)

// with adds members to an object.
func with(object, members string) string { return object[:len(object)-1] + "," + members + "}" }

// without takes away the member of a bare object, whose values are strings and
// numbers without commas.
func without(object, name string) string {
	from := strings.Index(object, `"`+name+`":`)
	to := from + strings.IndexAny(object[from:], ",}")
	if object[to] == ',' {
		return object[:from] + object[to+1:]
	}
	return object[:from-1] + object[to:]
}

// as changes the value of such a member.
func as(object, name, value string) string {
	return with(without(object, name), `"`+name+`":`+value)
}

// message returns a message of a value whose key is the tenant.
func message(value string, headers ...MessageHeader) *Message {
	return &Message{
		Topic: "audit.calls", Partition: 3, Offset: 812, Timestamp: time.UnixMilli(1778846400456),
		Key: []byte("acme"), Value: []byte(value), Headers: headers,
	}
}

func header(name, value string) MessageHeader { return MessageHeader{name, []byte(value)} }

// accept decodes a message that must be good.
func accept(t *testing.T, d *Decoder, m *Message) *Record {
	t.Helper()
	var r Record
	if reject := d.Decode(&r, m); reject != nil {
		t.Fatalf("%v: %s", reject, m.Value)
	}
	if !d.Control {
		checkLossless(t, m, &r)
	}
	return &r
}

// dump lists what a record has: one column, user, slot or derived column a
// line.
func dump(r *Record) string {
	var b strings.Builder
	for _, c := range Header {
		switch {
		case c.Text != nil && c.Text(r).Valid:
			fmt.Fprintf(&b, "%s %q\n", c.Name, c.Text(r).S)
		case c.Int != nil && c.Int(r).Valid:
			fmt.Fprintf(&b, "%s %d\n", c.Name, c.Int(r).N)
		}
	}
	if r.UserID.Valid {
		fmt.Fprintf(&b, "user_id %q\n", r.UserID.S)
	}
	for s, slot := range r.Slots {
		if slot != nil {
			fmt.Fprintf(&b, "%s %s\n", Slot(s), slot)
		}
	}
	if d := r.Derived; d.RequestedModel.Valid || d.SelectedReason.Valid || d.RungOrdinal.Valid || d.FallbackChain != nil {
		fmt.Fprintf(&b, "derived %v %v %v %q\n", d.RequestedModel, d.SelectedReason, d.RungOrdinal, d.FallbackChain)
	}
	return b.String()
}

const fromKafka = `tenant_id "acme"
topic "audit.calls"
partition 3
kafka_offset 812
kafka_timestamp 1778846400456000
`

func checkDump(t *testing.T, r *Record, want string) {
	t.Helper()
	if got := dump(r); got != fromKafka+want {
		t.Errorf("got\n%s\nwant\n%s", got, fromKafka+want)
	}
}

// A call fills its columns and slots; a slot has the producer's bytes.
func TestDecodeCall(t *testing.T) {
	m := message(usualCall, header("tenant", "acme"), header("traceparent", "00-4bf9"))
	checkDump(t, accept(t, &Decoder{}, m), `kind "call"
audit_record_version 19
record_id "01KRNR3ZG00000000000000001"
session_id "sess-4f1c2b"
turn_id "turn-000017"
stage_id "tool-loop"
seq_within_turn 3
created_at 1778846400123000
actor_kind "user"
session_auth_method "api-key"
call_class "tool-loop"
family "anthropic"
model_id "claude-sonnet-4-5"
transport "native"
tool_name "search_orders"
subagent_depth 0
input_tokens 1200
output_tokens 85
status "ok"
latency_us 812000
finish_reason "tool_use"
http_status 200
redaction_policy "none"
user_id "user-8841"
decision {"requestedModel":"claude-opus-4-5","selectedReason":"fallback-rung","rungOrdinal":1,"fallbackChain":["claude-opus-4-5"]}
outcome_why {"nativeFinishReason":"tool_use","servingProvider":"anthropic","gatewayAttempt":1,"statistics":{"ttftMs":311,"queueMs":2}}
fallback_step {"originalFamily":"anthropic","originalModel":"claude-opus-4-5","attemptFamily":"anthropic","attemptModel":"claude-sonnet-4-5","attemptIndex":1,"reason":"overloaded","inFamily":true,"originalLadderStep":0,"ladderStep":1,"ladderRegression":false}
token_cost {"inputTokens":1200,"outputTokens":85,"cacheReadTokens":640,"usd":0.00412}
plugin_payloads [{"pluginId":"guard","subKind":"verdict","data":{"score":0.0171,"labels":["none"],"span":9007199254740993}}]
ext {"$alias":{"tenant_id":"principal.tenantId","input_tokens":["inputTokens","tokenCost.inputTokens"],"output_tokens":["outputTokens","tokenCost.outputTokens"]},"$headers":[["traceparent","00-4bf9"]]}
derived {claude-opus-4-5 true} {fallback-rung true} {1 true} ["claude-opus-4-5"]
`)
}

// A call that says no more than it must has no ext, and one of a later version
// is archived whole.
func TestDecodeCallOfAnyVersion(t *testing.T) {
	bare := `kind "call"
record_id "01KRNR3ZG00000000000000001"
session_id "s"
turn_id "t"
stage_id "synthesize"
seq_within_turn 0
created_at 1778846400000000
redaction_policy "none"
`
	checkDump(t, accept(t, &Decoder{}, message(bareCall)), bare)
	later := with(bareCall, `"auditRecordVersion":4000,"outcome":{"status":"never-seen","verdict":[1.10, 1e2]},"newSlot":{"a":-0},"kind":"GreenCall","toString":null`)
	r := accept(t, &Decoder{}, message(later))
	if got, want := string(r.Slots[SlotExt]), `{"outcome.verdict":[1.10, 1e2],"newSlot":{"a":-0},"kind":"GreenCall","toString":null}`; got != want || r.Status.S != "never-seen" || r.AuditRecordVersion.N != 4000 {
		t.Errorf("%s\next %s, want %s", dump(r), got, want)
	}
}

// A decision record keeps all that has no column in context, in its order and
// with its bytes.
func TestDecodeDecision(t *testing.T) {
	value := with(bareDecision, `"inputs":{"intent":"refund","conversationId":"conv-9","satelliteId":"edge"},"verdict":"allowed",
	"calls":[ {"provider":"anthropic","model":"m1","inputTokens":912,"outputTokens":40.0},{"provider":"mistral","model":"m2","inputTokens":2.1e2,"outputTokens":12} ],
	"action":null,"outcome":{"done":true},"principal":{"userId":"user-42","role":"ops"},"context":{"note":"x"},"workers":["policy"]`)
	m := message(value, header("ledgerlake-kind", "decision"))
	checkDump(t, accept(t, &Decoder{}, m), `kind "decision"
session_id "conv-9"
turn_id "d"
created_at 1778846400000000
family "anthropic"
model_id "m1"
input_tokens 1122
output_tokens 52
status "allowed"
redaction_policy "none"
user_id "user-42"
context {"inputs":{"intent":"refund","conversationId":"conv-9","satelliteId":"edge"},"calls":[ {"provider":"anthropic","model":"m1","inputTokens":912,"outputTokens":40.0},{"provider":"mistral","model":"m2","inputTokens":2.1e2,"outputTokens":12} ],"action":null,"outcome":{"done":true},"principal":{"role":"ops"},"context":{"note":"x"},"workers":["policy"]}
ext {"$alias":{"session_id":"inputs.conversationId"}}
`)
}

// The sums of a decision are null as soon as one call does not say its number,
// and a verdict that is no string is kept in context.
func TestDecodeDecisionParts(t *testing.T) {
	for _, c := range []struct{ members, want string }{
		{`"calls":[]`, "input 0 output 0"},
		{`"calls":null`, ""},
		{`"calls":[{"inputTokens":1,"outputTokens":2},{"inputTokens":3}]`, "input 4"},
		{`"calls":[{"inputTokens":1},{"inputTokens":null}]`, ""},
		{`"calls":[{"provider":"p","model":null},{"provider":"q","model":"m"}]`, "family p"},
		{`"calls":[{"\u0070rovider":"\u0070"}]`, "family p"},
		{`"calls":[{"provider":"of user-42"}],"userId":"user-42"`, ""},
		{`"verdict":"denied"`, "status denied"},
		{`"verdict":{"a":1}`, `context {"verdict":{"a":1}}`},
		{`"verdict":3`, `context {"verdict":3}`},
		{`"verdict":null`, ""},
	} {
		r := accept(t, &Decoder{}, message(with(bareDecision, c.members), header("ledgerlake-kind", "decision")))
		var got []string
		for name, n := range map[string]Int{"input": r.InputTokens, "output": r.OutputTokens} {
			if n.Valid {
				got = append(got, fmt.Sprintf("%s %d", name, n.N))
			}
		}
		for name, s := range map[string]Text{"family": r.Family, "status": r.Status} {
			if s.Valid {
				got = append(got, name+" "+s.S)
			}
		}
		if !strings.Contains(c.members, "calls") && r.Slots[SlotContext] != nil {
			got = append(got, "context "+string(r.Slots[SlotContext]))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.members, got, c.want)
		}
	}
}

// An entry is read under both spellings of its kind, by header and by member.
func TestDecodeEntry(t *testing.T) {
	value := with(bareEntry, `"actor":"user","model":"m","toolName":"search","args":{"q":1.0},"result":"ok","durationMs":12.5,"prevHash":"","hash":"ab"`)
	want := `kind "tool-call"
turn_id "tr"
seq_within_turn 7
created_at 1778846400000000
actor_kind "user"
model_id "m"
tool_name "search"
status "ok"
latency_us 12500
redaction_policy "none"
context {"args":{"q":1.0},"prevHash":"","hash":"ab"}
`
	checkDump(t, accept(t, &Decoder{}, message(value)), want)
	checkDump(t, accept(t, &Decoder{}, message(value, header("ledgerlake-kind", "ToolCall"))), want)
	checkDump(t, accept(t, &Decoder{}, message(as(value, "kind", `"ToolCall"`))), want+`ext {"kind":"ToolCall"}`+"\n")
	checkDump(t, accept(t, &Decoder{}, message(without(value, "kind"), header("ledgerlake-kind", "tool-call"))), want+`ext {"$alias":{"kind":[]}}`+"\n")
	checkDump(t, accept(t, &Decoder{}, message(as(value, "actor", `{"a":1}`))),
		strings.Replace(strings.Replace(want, "actor_kind \"user\"\n", "", 1), `"hash":"ab"`, `"hash":"ab","actor":{"a":1}`, 1))
}

// Every kind arrives under its own name and its other ones, by header and by
// member; an administrative entry needs no trace.
func TestKinds(t *testing.T) {
	admin := `{"tenantId":"acme","note":1}`
	for spelling, kind := range map[string]string{
		"call": KindCall, "decision": KindDecision,
		"llm-request": KindLLMRequest, "LlmRequest": KindLLMRequest, "llm-response": KindLLMResponse, "LlmResponse": KindLLMResponse,
		"tool-call": KindToolCall, "ToolCall": KindToolCall, "world-mutation": KindWorldMutation, "WorldMutation": KindWorldMutation,
		"policy-decision": KindPolicyDecision, "PolicyDecision": KindPolicyDecision,
		"source-chain-reset": KindSourceChainReset, "ChainReset": KindSourceChainReset, "source-rotation": KindSourceRotation,
		"RotationMarker": KindSourceRotation, "RotationAnchor": KindSourceRotation, "queue-dropped": KindQueueDropped, "QueueDropped": KindQueueDropped,
	} {
		value := map[*shape]string{callShape: bareCall, decisionShape: bareDecision, entryShape: without(bareEntry, "kind"), administrativeShape: admin}[shapeOf(kind)]
		for _, m := range []*Message{message(value, header("ledgerlake-kind", spelling)), message(with(value, `"kind":"`+spelling+`"`))} {
			if r := accept(t, &Decoder{}, m); r.Kind.S != kind {
				t.Errorf("%s: kind %s, want %s", spelling, r.Kind.S, kind)
			}
		}
	}
	// The header goes before the member, and what names no kind there is data.
	for _, m := range []*Message{
		message(with(bareCall, `"kind":"tool-call"`), header("ledgerlake-kind", "call")),
		message(with(bareCall, `"kind":"Call"`)),
		message(with(bareCall, `"kind":7`)),
		message(with(bareCall, `"Kind":"redaction"`)),
		message(bareCall, MessageHeader{"ledgerlake-kind", nil}),
		message(bareCall, header("Ledgerlake-Kind", "redaction")),
	} {
		if r := accept(t, &Decoder{}, m); r.Kind.S != KindCall {
			t.Errorf("%s: kind %s, want call", m.Value, r.Kind.S)
		}
	}
}

// Who governs is asked for control records that are good otherwise, and for
// nothing else; what they lack makes them rejects.
func TestDecodeAsksWhoGoverns(t *testing.T) {
	asked := 0
	authorise := func(r *Record, m *Message) string {
		asked++
		if r.Kind.S != "redaction" || string(r.Slots[SlotContext]) != string(m.Value) {
			t.Errorf("it is asked of kind %s, %s", r.Kind.S, r.Slots[SlotContext])
		}
		return "no key"
	}
	d := &Decoder{Control: true, Authorise: authorise}
	var r Record
	if reject := d.Decode(&r, message(bareControl)); reject == nil || reject.Error() != "unauthorised: no key" || r.Kind.S != KindRejected || asked != 1 {
		t.Errorf("%v, %s, asked %d times", reject, r.Kind.S, asked)
	}
	if reject := d.Decode(&r, message("{")); reject == nil || reject.Reason != ReasonInvalidJSON || asked != 1 {
		t.Errorf("%v, asked %d times", reject, asked)
	}
	d = &Decoder{Authorise: authorise}
	if accept(t, d, message(bareCall)); asked != 1 {
		t.Error("it is asked of a call")
	}
}

// A control record's row has its value as context, byte for byte.
func TestDecodeControl(t *testing.T) {
	d := &Decoder{Control: true}
	value := " " + with(bareControl, `"principal":{"userId":"user-42"},"prompt":"kept"`) + "\n"
	m := message(value, header("ledgerlake-signature", "note"))
	checkDump(t, accept(t, d, m), `kind "redaction"
record_id "01KRNR3ZG00000000000000002"
created_at 1778846400000000
context `+value+`
ext {"$headers":[["ledgerlake-signature","note"]]}
`)
	for _, kind := range controlShape.kinds {
		if r := accept(t, d, message(without(bareControl, "kind"), header("ledgerlake-kind", kind))); r.Kind.S != kind {
			t.Errorf("kind %s, want %s", r.Kind.S, kind)
		}
	}
	// The logs that are ours can be governed too, and only from here.
	for _, tenant := range []string{TenantPartition, TenantUnattributed} {
		if r := accept(t, d, message(as(bareControl, "tenantId", `"`+tenant+`"`))); r.TenantID.S != tenant {
			t.Errorf("tenant %s, want %s", r.TenantID.S, tenant)
		}
	}
	odd := accept(t, d, message(as(as(bareControl, "createdAt", `"2026-05-15T12:00:00.1234567Z"`), "recordId", `"01krnr3zg00000000000000002"`)))
	if odd.Slots[SlotExt] != nil || odd.CreatedAt.N != 1778846400_123456 || odd.RecordID.S != "01KRNR3ZG00000000000000002" {
		t.Error(dump(odd))
	}
}

// rejectCases has one or more messages for each reason, and what is known of
// the tenant then.
var rejectCases = []struct {
	reason Reason
	tenant string
	d      *Decoder
	m      *Message
	detail string // part of it
}{
	{ReasonNullValue, "acme", &Decoder{}, &Message{Headers: []MessageHeader{header("tenant", "acme")}}, "tombstone"},
	{ReasonNullValue, TenantUnattributed, &Decoder{KeyIsTenant: true}, &Message{Key: []byte("acme")}, ""},
	{ReasonNullValue, TenantUnattributed, &Decoder{}, &Message{Headers: []MessageHeader{header("tenant", "..")}}, ""},
	{ReasonEmptyValue, "acme", &Decoder{}, message("", header("tenant", "acme")), ""},
	{ReasonEmptyValue, TenantUnattributed, &Decoder{Control: true}, message(""), ""},

	{ReasonInvalidJSON, "acme", &Decoder{}, message(`{"tenantId":"SECRET",`, header("tenant", "acme")), "byte 21: the text ends too early"},
	{ReasonInvalidJSON, TenantUnattributed, &Decoder{KeyIsTenant: true}, message(bareCall[1:]), "byte 10:"},
	{ReasonInvalidJSON, TenantUnattributed, &Decoder{}, message(as(bareCall, "seqWithinTurn", "NaN")), "byte "},
	{ReasonInvalidJSON, TenantUnattributed, &Decoder{}, message("\xef\xbb\xbf" + bareCall), "byte 0: byte order mark"},
	{ReasonInvalidJSON, TenantUnattributed, &Decoder{}, message("\x00\x00\x00\x00\x01" + bareCall + "]"), fmt.Sprintf("byte %d:", 5+len(bareCall))},
	{ReasonInvalidJSON, TenantUnattributed, &Decoder{}, message("\x00\x00\x00\x00\x01"), "byte 5: the text ends too early"},
	{ReasonInvalidJSON, TenantUnattributed, &Decoder{}, message("\x00\x00\x00"), "byte 0:"},
	{ReasonInvalidJSON, TenantUnattributed, &Decoder{}, message("\x01\x00\x00\x00\x01" + bareCall), "byte 0:"},
	{ReasonInvalidUnicode, "acme", &Decoder{}, message(with(bareCall, "\"a\":\"\xff\""), header("tenant", "acme")), "not UTF-8"},
	{ReasonInvalidUnicode, TenantUnattributed, &Decoder{}, message(with(bareCall, `"a":{"b":["\ud800"]}`)), "lone surrogate"},
	{ReasonDuplicateKey, "acme", &Decoder{}, message(with(bareCall, `"tenantId":"globex"`), header("tenant", "acme")), "byte "},
	{ReasonDuplicateKey, TenantUnattributed, &Decoder{}, message(with(bareCall, `"outcome":{"status":"ok","\u0073tatus":"no"}`)), ""},
	{ReasonDuplicateKey, TenantUnattributed, &Decoder{}, message(with(bareCall, `"pluginPayloads":[{"data":{"a":1,"a":1}}]`)), ""},
	{ReasonTooDeep, TenantUnattributed, &Decoder{}, message(with(bareCall, `"a":`+strings.Repeat("[", 64)+strings.Repeat("]", 64))), "64 levels"},
	{ReasonTooLarge, "acme", &Decoder{}, message(strings.Repeat(" ", MaxValueBytes+1), header("tenant", "acme")), "16777217 bytes"},
	{ReasonTooLarge, "acme", &Decoder{}, message(bareCall, header("tenant", "acme"), header("x", strings.Repeat("y", MaxValueBytes))), "key and headers"},

	{ReasonWrongType, "acme", &Decoder{}, message(`[]`, header("tenant", "acme")), "not an object"},
	{ReasonWrongType, TenantUnattributed, &Decoder{}, message(`"SECRET"`), "not an object"},
	{ReasonWrongType, "acme", &Decoder{}, message(as(bareCall, "sessionId", "7")), "sessionId: not a string"},
	{ReasonWrongType, "acme", &Decoder{}, message(as(bareCall, "seqWithinTurn", `"0"`)), "seqWithinTurn: not a number"},
	{ReasonWrongType, "acme", &Decoder{}, message(as(bareCall, "seqWithinTurn", `0.5`)), "not an integral number"},
	{ReasonWrongType, "acme", &Decoder{}, message(as(bareCall, "recordId", `{}`)), "recordId"},
	{ReasonWrongType, "acme", &Decoder{}, message(as(bareCall, "createdAt", `1778846400000`)), "createdAt: not a string"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareCall, `"decision":[]`)), "decision: not an object"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareCall, `"pluginPayloads":{}`)), "pluginPayloads: not an array"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareCall, `"outcome":{"why":"SECRET"}`)), "outcome.why: not an object"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareCall, `"outcome":"SECRET"`)), "outcome: not an object"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareCall, `"principal":[]`)), "principal: not an object"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareCall, `"outcome":{"latencyMs":"12"}`)), "outcome.latencyMs: not a number"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareCall, `"call":{"model":false}`)), "call.model: not a string"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareCall, `"inputTokens":1,"tokenCost":{"inputTokens":"SECRET"}`)), "tokenCost.inputTokens: not a number"},
	{ReasonWrongType, TenantUnattributed, &Decoder{}, message(as(bareCall, "tenantId", `7`), header("tenant", "acme")), "tenantId: not a string"},
	{ReasonWrongType, "acme", &Decoder{}, message(as(bareDecision, "timestamp", `1.5`), header("ledgerlake-kind", "decision")), "timestamp: not an integral number of milliseconds"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareDecision, `"calls":{}`), header("ledgerlake-kind", "decision")), "calls: not an array"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareDecision, `"calls":[{"provider":7}]`), header("ledgerlake-kind", "decision")), "calls.0.provider: not a string"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareDecision, `"calls":[{"inputTokens":1},{"inputTokens":1.5}]`), header("ledgerlake-kind", "decision")), "not an integral number"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareDecision, `"calls":[{"inputTokens":true}]`), header("ledgerlake-kind", "decision")), "not a number"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareDecision, `"calls":[{},null]`), header("ledgerlake-kind", "decision")), "an element of calls is not an object"},
	{ReasonWrongType, "acme", &Decoder{}, message(with(bareEntry, `"toolName":[]`)), "toolName: not a string"},

	{ReasonOutOfRange, "acme", &Decoder{}, message(as(bareCall, "seqWithinTurn", "-1")), "seqWithinTurn: out of range"},
	{ReasonOutOfRange, "acme", &Decoder{}, message(as(bareCall, "seqWithinTurn", "9223372036854775808")), "seqWithinTurn: out of range"},
	{ReasonOutOfRange, "acme", &Decoder{}, message(with(bareCall, `"auditRecordVersion":2147483648`)), "auditRecordVersion: out of range"},
	{ReasonOutOfRange, "acme", &Decoder{}, message(with(bareCall, `"outcome":{"latencyMs":1e400}`)), "outcome.latencyMs: out of range"},
	{ReasonOutOfRange, "acme", &Decoder{}, message(as(bareCall, "createdAt", `"0000-01-01T00:00:00.000Z"`)), "createdAt: outside the years"},
	{ReasonOutOfRange, "acme", &Decoder{}, message(as(bareEntry, "ts", `253402300800000`)), "ts: outside the years"},
	{ReasonOutOfRange, "acme", &Decoder{}, message(with(bareDecision, `"calls":[{"inputTokens":9223372036854775807},{"inputTokens":1}]`), header("ledgerlake-kind", "decision")), "the sum is out of range"},
	{ReasonOutOfRange, "acme", &Decoder{}, &Message{Value: []byte(bareCall), Timestamp: time.UnixMilli(math.MaxInt64)}, "Kafka's timestamp is 9223372036854775807 ms"},

	{ReasonBadTimestamp, "acme", &Decoder{}, message(as(bareCall, "createdAt", `"yesterday"`)), "createdAt"},
	{ReasonBadTimestamp, "acme", &Decoder{}, message(as(bareCall, "createdAt", `"2026-05-15T12:00:00"`)), "createdAt"},
	{ReasonBadTimestamp, "acme", &Decoder{}, message(as(bareEntry, "ts", `"1778846400000"`)), "ts"},
	{ReasonBadRecordID, "acme", &Decoder{}, message(as(bareCall, "recordId", `"01KRNR3ZG0000000000000000I"`)), "recordId"},
	{ReasonBadRecordID, "acme", &Decoder{}, message(with(bareDecision, `"recordId":""`), header("ledgerlake-kind", "decision")), "recordId"},
	{ReasonBadRecordID, "acme", &Decoder{Control: true}, message(as(bareControl, "recordId", `"1"`)), "recordId"},

	{ReasonMissingField, TenantUnattributed, &Decoder{}, message(without(bareCall, "tenantId")), "no tenant"},
	{ReasonMissingField, TenantUnattributed, &Decoder{}, message(as(bareCall, "tenantId", "null"), MessageHeader{"tenant", nil}), "no tenant"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareCall, "recordId")), "recordId is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareCall, "sessionId")), "sessionId is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(as(bareCall, "turnId", "null")), "turnId is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareCall, "stageId")), "stageId is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareCall, "seqWithinTurn")), "seqWithinTurn is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareCall, "createdAt")), "createdAt is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareDecision, "decisionId"), header("ledgerlake-kind", "decision")), "decisionId is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareDecision, "timestamp"), header("ledgerlake-kind", "decision")), "timestamp is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareEntry, "traceId")), "traceId is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareEntry, "seq")), "seq is missing"},
	{ReasonMissingField, "acme", &Decoder{}, message(without(bareEntry, "ts")), "ts is missing"},
	{ReasonMissingField, "acme", &Decoder{Control: true}, message(without(bareControl, "recordId")), "recordId is missing"},
	{ReasonMissingField, "acme", &Decoder{Control: true}, message(without(bareControl, "createdAt")), "createdAt is missing"},
	{ReasonMissingField, "acme", &Decoder{Control: true}, message(without(bareControl, "tenantId"), header("tenant", "acme")), "tenantId is missing"},

	{ReasonBadTenantID, TenantUnattributed, &Decoder{}, message(as(bareCall, "tenantId", `".."`)), "tenantId"},
	{ReasonBadTenantID, TenantUnattributed, &Decoder{}, message(as(bareCall, "tenantId", `""`), header("tenant", "")), "header tenant"},
	{ReasonBadTenantID, TenantUnattributed, &Decoder{}, message(as(bareCall, "tenantId", `"acme\u0000x"`), header("tenant", `acme\0x`)), "control character"},
	{ReasonBadTenantID, TenantUnattributed, &Decoder{}, message(as(bareCall, "tenantId", `"_partition"`)), "reserved"},
	{ReasonBadTenantID, TenantUnattributed, &Decoder{}, message(bareCall, header("tenant", "\xff")), "not UTF-8"},
	{ReasonBadTenantID, TenantUnattributed, &Decoder{Control: true}, message(as(bareControl, "tenantId", `"_other"`)), "reserved"},
	{ReasonBadTenantID, TenantUnattributed, &Decoder{KeyIsTenant: true}, &Message{Value: []byte(without(bareCall, "tenantId")), Key: []byte("_k")}, "key"},
	{ReasonTenantMismatch, TenantUnattributed, &Decoder{}, message(bareCall, header("tenant", "globex")), "different tenants"},
	{ReasonTenantMismatch, TenantUnattributed, &Decoder{}, message(with(bareCall, `"principal":{"tenantId":"ACME"}`)), "different tenants"},
	{ReasonTenantMismatch, TenantUnattributed, &Decoder{}, message(bareCall, header("tenant", "globex"), header("tenant", "acme")), "different tenants"},
	{ReasonTenantMismatch, TenantUnattributed, &Decoder{Control: true}, message(bareControl, header("tenant", "globex")), "different tenants"},

	{ReasonUnknownKind, "acme", &Decoder{}, message(bareCall, header("ledgerlake-kind", "SECRET")), "names no kind"},
	{ReasonUnknownKind, "acme", &Decoder{}, message(bareCall, header("ledgerlake-kind", "")), "names no kind"},
	{ReasonUnknownKind, "acme", &Decoder{}, message(bareCall, header("ledgerlake-kind", "Call")), "names no kind"},
	{ReasonUnknownKind, "acme", &Decoder{}, message(bareCall, header("ledgerlake-kind", "decision"), header("ledgerlake-kind", "call")), "names no kind"},
	{ReasonUnknownKind, "acme", &Decoder{Control: true}, message(bareCall), "a control record needs one"},
	{ReasonUnknownKind, "acme", &Decoder{Control: true}, message(bareCall, header("ledgerlake-kind", "call")), "kind call on the control topic"},
	{ReasonReservedKind, "acme", &Decoder{}, message(bareControl), "kind redaction on a topic that is not the control topic"},
	{ReasonReservedKind, "acme", &Decoder{}, message(bareCall, header("ledgerlake-kind", "legal-hold")), "legal-hold"},
	{ReasonReservedKind, "acme", &Decoder{}, message(bareCall, header("ledgerlake-kind", "gap")), "made by ingest alone"},
	{ReasonReservedKind, "acme", &Decoder{}, message(with(bareCall, `"kind":"chain-reset"`)), "made by ingest alone"},
	{ReasonReservedKind, "acme", &Decoder{Control: true}, message(as(bareControl, "kind", `"rejected"`)), "made by ingest alone"},
}

// A message that is no good becomes a row that says why and has its bytes, in
// the log of whoever it surely belongs to. The reason depends on the message
// alone, and nothing that a person reads shows the payload.
func TestRejects(t *testing.T) {
	reached := map[Reason]bool{ReasonUnauthorised: true, ReasonConflict: true} // not for a decoder to find
	for _, c := range rejectCases {
		name := fmt.Sprintf("%s %.80q", c.reason, c.m.Value)
		reached[c.reason] = true
		var r, again Record
		reject := c.d.Decode(&r, c.m)
		if reject == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if reject.Reason != c.reason || !strings.Contains(reject.Detail, c.detail) || strings.Contains(reject.Error(), "SECRET") {
			t.Errorf("%s: %v", name, reject)
		}
		if r.TenantID.S != c.tenant {
			t.Errorf("%s: tenant %s, want %s", name, r.TenantID.S, c.tenant)
		}
		if err := rejectFault(&r, c.m, reject); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.d.Decode(&again, c.m); dump(&again) != dump(&r) {
			t.Errorf("%s: not the same a second time", name)
		}
	}
	for _, reason := range Reasons {
		if !reached[reason] {
			t.Errorf("no case for %s", reason)
		}
	}
}

// rejectFault says what is wrong with a rejected row of a message.
func rejectFault(r *Record, m *Message, reject *Reject) error {
	var context struct {
		Reason, Detail string
		Size           int
		SHA256         *string `json:"sha256"`
		Key            any
		Headers        []any
	}
	if err := json.Unmarshal(r.Slots[SlotContext], &context); err != nil {
		return fmt.Errorf("context: %w", err)
	}
	sum := sha256.Sum256(m.Value)
	switch {
	case r.Kind.S != KindRejected || r.RedactionPolicy.Valid || r.Seq.Valid || r.ArchivedAt.Valid || r.TopicID.Valid || r.Epoch.Valid:
		return fmt.Errorf("columns %s", dump(r))
	case context.Reason != string(reject.Reason) || context.Detail != reject.Detail || context.Size != len(m.Value):
		return fmt.Errorf("context %s", r.Slots[SlotContext])
	case (m.Value == nil) != (context.SHA256 == nil), m.Value != nil && *context.SHA256 != hex.EncodeToString(sum[:]):
		return fmt.Errorf("sha256 in %s", r.Slots[SlotContext])
	case reject.Reason != ReasonTooLarge && (len(context.Headers) != len(m.Headers) || (context.Key == nil) != (m.Key == nil)):
		return fmt.Errorf("key or headers in %s", r.Slots[SlotContext])
	}
	raw := r.Slots[SlotRaw]
	switch tooLarge := len(m.Value) > MaxValueBytes; {
	case tooLarge && raw != nil:
		return fmt.Errorf("raw of %d bytes is kept", len(raw))
	case !tooLarge && (!bytes.Equal(raw, m.Value) || (raw == nil) != (m.Value == nil)):
		return fmt.Errorf("raw %.60q", raw)
	}
	for s, slot := range r.Slots {
		if slot != nil && Slot(s) != SlotContext && Slot(s) != SlotRaw {
			return fmt.Errorf("slot %s is set", Slot(s))
		}
	}
	if !r.Topic.Valid || !r.Partition.Valid || !r.KafkaOffset.Valid || !r.KafkaTimestamp.Valid || r.Derived.RequestedModel.Valid {
		return fmt.Errorf("columns %s", dump(r))
	}
	return nil
}

// A reject has the columns that say which record it was, as far as they can be
// read: all that are good, and none of a text that is not sound.
func TestRejectKeepsWhatTellsTheRecord(t *testing.T) {
	value := as(with(bareCall, `"principal":{"userId":"user-42"},"outcome":{"status":"ok"},"decision":{"rungOrdinal":1}`), "stageId", "7")
	var r Record
	if new(Decoder).Decode(&r, message(value)) == nil {
		t.Fatal("accepted")
	}
	r.Slots = [NumSlots][]byte{}
	checkDump(t, &r, `kind "rejected"
record_id "01KRNR3ZG00000000000000001"
session_id "s"
turn_id "t"
seq_within_turn 0
created_at 1778846400000000
user_id "user-42"
`)
	new(Decoder).Decode(&r, message(value[1:]))
	r.Slots, r.TenantID = [NumSlots][]byte{}, Str("acme")
	checkDump(t, &r, "kind \"rejected\"\n")
	new(Decoder).Decode(&r, message(bareControl))
	r.Slots = [NumSlots][]byte{}
	checkDump(t, &r, "kind \"rejected\"\nrecord_id \"01KRNR3ZG00000000000000002\"\ncreated_at 1778846400000000\n")
}

// A conflict is the same row as a reject that the decoder found, with the
// tenant, what tells the record, and what stamping had filled in.
func TestConflict(t *testing.T) {
	m := message(usualCall)
	r := accept(t, &Decoder{}, m)
	reject := Conflict(r, m, "seq 17 has other content")
	if err := rejectFault(r, m, reject); err != nil {
		t.Error(err)
	}
	if reject.Reason != ReasonConflict || r.TenantID.S != "acme" || r.TurnID.S != "turn-000017" || r.UserID.S != "user-8841" || r.ModelID.Valid || r.FallbackChain != nil {
		t.Errorf("%v\n%s", reject, dump(r))
	}
	want := `{"reason":"conflict","detail":"seq 17 has other content","size":` + fmt.Sprint(len(usualCall)) + `,"sha256":"`
	if !strings.HasPrefix(string(r.Slots[SlotContext]), want) {
		t.Errorf("context %s", r.Slots[SlotContext])
	}
	r.Seq, r.TopicID = I64(4), Str("kTq2VqYJQ0mFvY8v2b3m0A")
	if Conflict(r, m, ""); r.Seq.N != 4 || !r.TopicID.Valid {
		t.Error("a conflict empties what stamping fills in")
	}
}

// Key and headers of a reject stand in its context as they came, and so do
// bytes that are not UTF-8.
func TestRejectContext(t *testing.T) {
	m := &Message{Value: []byte("x"), Key: []byte("\xffk"), Headers: []MessageHeader{header("tenant", "acme"), {"n", nil}, {"e", []byte{}}, {"b", []byte{0xfe}}, {"\xfd", []byte("\x01\"")}}}
	var r Record
	new(Decoder).Decode(&r, m)
	want := `{"reason":"invalid_json","detail":"byte 0: no value begins so","size":1,"sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",` +
		`"key":{"base64":"/2s="},"headers":[["tenant","acme"],["n",null],["e",""],["b",{"base64":"/g=="}],[{"base64":"/Q=="},"\u0001\""]]}`
	if got := string(r.Slots[SlotContext]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestGap(t *testing.T) {
	r := Record{RecordID: Str("left over")}
	Gap(&r, 11, 15, `lo"st`)
	want := "tenant_id \"_partition\"\nkind \"gap\"\ncontext {\"from\":11,\"to\":15,\"cause\":\"lo\\\"st\"}\n"
	if got := dump(&r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The tenant is what all that name one agree on: members, header, and the key
// only where a setting says so and nothing else names one.
func TestTenant(t *testing.T) {
	nobody := without(bareCall, "tenantId")
	for _, c := range []struct {
		name        string
		keyIsTenant bool
		m           *Message
		want, alias string
	}{
		{"member", false, message(bareCall), "acme", ""},
		{"principal", false, message(with(nobody, `"principal":{"tenantId":"acme"}`)), "acme", `"principal.tenantId"`},
		{"both", false, message(with(bareCall, `"principal":{"tenantId":"\u0061cme"}`)), "acme", `["tenantId","principal.tenantId"]`},
		{"header", false, message(nobody, header("tenant", "acme")), "acme", `[]`},
		{"header twice", false, message(nobody, header("tenant", "acme"), header("tenant", "acme")), "acme", `[]`},
		{"all three", false, message(with(bareCall, `"principal":{"tenantId":"acme"}`), header("tenant", "acme")), "acme", `["tenantId","principal.tenantId"]`},
		{"key", true, message(nobody), "acme", `[]`},
		{"key does not count beside a member", true, &Message{Value: []byte(bareCall), Key: []byte("globex")}, "acme", ""},
		{"key does not count beside the header", true, &Message{Value: []byte(nobody), Key: []byte("globex"), Headers: []MessageHeader{header("tenant", "acme")}}, "acme", `[]`},
		{"another member", false, message(with(bareCall, `"TENANTID":"globex","tenantid":"x"`)), "acme", ""},
		{"null header", false, message(bareCall, MessageHeader{"tenant", nil}), "acme", ""},
		{"another header", false, message(bareCall, header("Tenant", "globex")), "acme", ""},
	} {
		r := accept(t, &Decoder{KeyIsTenant: c.keyIsTenant}, c.m)
		alias := aliasOf(r, "tenant_id")
		if r.TenantID.S != c.want || alias != c.alias {
			t.Errorf("%s: tenant %s, alias %s; want %s, %s", c.name, r.TenantID.S, alias, c.want, c.alias)
		}
	}
}

// aliasOf returns what $alias says of a column, "" if nothing.
func aliasOf(r *Record, column string) string {
	var ext struct {
		Alias map[string]json.RawMessage `json:"$alias"`
	}
	json.Unmarshal(r.Slots[SlotExt], &ext)
	return string(ext.Alias[column])
}

// extCases are calls with more members, and the ext that they come to have.
var extCases = []struct{ members, ext string }{
	// Where members for one column agree, $alias names them; where they do
	// not, the first of the table wins.
	{`"call":{"model":"m","provider":"p"}`, ``},
	{`"modelId":"m"`, `{"$alias":{"model_id":"modelId"}}`},
	{`"modelId":"m","call":{"model":"\u006d"}`, `{"$alias":{"model_id":["call.model","modelId"]}}`},
	{`"modelId":"other","call":{"model":"m"}`, `{"modelId":"other"}`},
	{`"modelId":null,"call":{"model":"m"}`, ``},
	{`"modelId":"m","call":{"model":null}`, `{"call":{"model":null},"$alias":{"model_id":"modelId"}}`},
	{`"inputTokens":1e2,"tokenUsage":{"inputTokens":100}`, `{"$alias":{"input_tokens":["inputTokens","tokenUsage.inputTokens"]}}`},
	{`"tokenUsage":{"inputTokens":5},"tokenCost":{"inputTokens":6}`, `{"$alias":{"input_tokens":"tokenUsage.inputTokens"}}`},
	{`"inputTokens":4,"tokenUsage":{"inputTokens":5,"cached":1}`, `{"tokenUsage.cached":1,"tokenUsage.inputTokens":5}`},
	{`"tokenCost":{"inputTokens":6}`, `{"$alias":{"input_tokens":"tokenCost.inputTokens"}}`},
	{`"userId":"u"`, `{"$alias":{"user_id":"userId"}}`},
	{`"userId":"u","principal":{"userId":"v"}`, `{"userId":"u"}`},

	// What a column cannot say stays beside it.
	{`"outcome":{"latencyMs":812.0}`, ``},
	{`"outcome":{"latencyMs":812.3456}`, `{"outcome.latencyMs":812.3456}`},
	{`"outcome":{"latencyMs":1e-400}`, `{"outcome.latencyMs":1e-400}`},

	// Paths: names are escaped, groups that are empty are kept.
	{`"a.b":1,"~":2,"$alias":3,"a$":4,"":5,"é\"":6,"x\u0000":7`, `{"a~2Eb":1,"~7E":2,"~24alias":3,"a$":4,"":5,"é\"":6,"x\u0000":7}`},
	{`"call":{"$x":1,"":2,"region":"eu"}`, `{"call.~24x":1,"call.":2,"call.region":"eu"}`},
	{`"call":{}`, `{"call":{}}`},
	{`"call":null,"toolName":null,"decision":null,"outcome":{"why":null,"status":"ok"}`, ``},
	{`"outcome":{"why":null}`, `{"outcome":{"why":null}}`},
	{`"a":null,"b":{"c":null}`, `{"a":null,"b":{"c":null}}`},
	{`"context":{"free":1}`, `{"context":{"free":1}}`},
	{`"n":73314510714175488,"m":-0,"o":1.10,"p":327267367867168100000,"q":1e400`, `{"n":73314510714175488,"m":-0,"o":1.10,"p":327267367867168100000,"q":1e400}`},

	// What names the user, or is too long, stays out of the columns that
	// cannot be erased.
	{`"principal":{"userId":"user-42"},"call":{"model":"user-42-finetune"}`, `{"call.model":"user-42-finetune"}`},
	{`"principal":{"userId":"user-42"},"modelId":"user-42-finetune"`, `{"call.model":"user-42-finetune","$alias":{"model_id":"modelId"}}`},
	{`"principal":{"userId":"user-42"},"modelId":"m","call":{"model":"\u0075ser-42-finetune"}`, `{"modelId":"m","call.model":"\u0075ser-42-finetune"}`},
	{`"userId":"user-42","principal":{"userId":"someone"},"outcome":{"status":"of user-42","finishReason":"to someone"}`, `{"outcome.status":"of user-42","outcome.finishReason":"to someone","userId":"user-42"}`},
	{`"principal":{"userId":"u-042"},"toolName":"u-042"`, ``},
	{`"principal":{"userId":"u-0042"},"toolName":"u-0042"`, `{"toolName":"u-0042"}`},
	{
		`"principal":{"userId":"user-42","actorKind":"user-42","sessionAuthMethod":"user-42"},"toolName":"user-42","parentTurnId":"user-42","call":{"callClass":"user-42","provider":"user-42","transport":"user-42"}`,
		`{"principal.actorKind":"user-42","principal.sessionAuthMethod":"user-42","call.callClass":"user-42","call.provider":"user-42","call.transport":"user-42","toolName":"user-42","parentTurnId":"user-42"}`,
	},
	{`"toolName":"` + strings.Repeat("x", 256) + `"`, ``},
	{`"toolName":"` + strings.Repeat("x", 257) + `"`, `{"toolName":"` + strings.Repeat("x", 257) + `"}`},
	{`"toolName":"` + strings.Repeat("é", 129) + `"`, `{"toolName":"` + strings.Repeat("é", 129) + `"}`},

	// Prompts are lifted out.
	{`"prompt":"why?"`, `{"prompt":{"promptBytes":6}}`},
	{`"messages":[{"role":"user"}],"call":{"systemPrompt":" s ","completion":null}`, `{"messages":{"promptBytes":17},"call.systemPrompt":{"promptBytes":5},"call.completion":null}`},
	{`"calls":[ {"prompt":"a" , "x":1},{"x":{"prompt":"kept"}}, 7 ]`, `{"calls":[ {"prompt":{"promptBytes":3} , "x":1},{"x":{"prompt":"kept"}}, 7 ]}`},
	{`"calls":{"prompt":"kept"},"Prompt":"kept"`, `{"calls":{"prompt":"kept"},"Prompt":"kept"}`},
}

// ext holds all that has no column, and says by which members columns came.
func TestExt(t *testing.T) {
	for _, c := range extCases {
		d := Decoder{RetainPrompts: func(string) bool { return true }}
		r := accept(t, &d, message(with(bareCall, c.members)))
		if got := string(r.Slots[SlotExt]); got != c.ext {
			t.Errorf("%s\ngot  %s\nwant %s", c.members, got, c.ext)
		}
	}
	for text, want := range map[string]string{
		`"2026-05-15T12:00:00.000Z"`:      ``,
		`"2026-05-15T12:00:00Z"`:          `{"createdAt":"2026-05-15T12:00:00Z"}`,
		`"2026-05-15T14:00:00.000+02:00"`: `{"createdAt":"2026-05-15T14:00:00.000+02:00"}`,
		`"2026-05-15T12:00:00.00000000Z"`: `{"createdAt":"2026-05-15T12:00:00.00000000Z"}`,
	} {
		r := accept(t, &Decoder{}, message(as(bareCall, "createdAt", text)))
		if got := string(r.Slots[SlotExt]); got != want || r.CreatedAt.N != 1778846400_000000 {
			t.Errorf("%s: ext %s, want %s", text, got, want)
		}
	}
	r := accept(t, &Decoder{}, message(as(bareCall, "recordId", `"01krnr3zg0000000000000000a"`)))
	if got := string(r.Slots[SlotExt]); got != `{"recordId":"01krnr3zg0000000000000000a"}` || r.RecordID.S != "01KRNR3ZG0000000000000000A" {
		t.Errorf("record_id %s, ext %s", r.RecordID.S, got)
	}
	r = accept(t, &Decoder{}, message(as(bareEntry, "ts", "1778846400000")))
	if got := string(r.Slots[SlotExt]); got != `{"ts":1778846400000}` || r.CreatedAt.N != 1778846400_000000 {
		t.Errorf("created_at %d, ext %s", r.CreatedAt.N, got)
	}
}

// What surrounds a value is kept, but for what a column says already.
func TestEnvelope(t *testing.T) {
	for _, c := range []struct {
		key     []byte
		headers []MessageHeader
		ext     string
	}{
		{[]byte("acme"), []MessageHeader{header("tenant", "acme"), header("ledgerlake-kind", "call"), header("ledgerlake-retain-prompts", "true")}, ``},
		{nil, nil, `{"$key":null}`},
		{[]byte{}, nil, `{"$key":""}`},
		{[]byte("k\x00\""), nil, `{"$key":"k\u0000\""}`},
		{[]byte{0xff, 0xfe}, nil, `{"$key":{"base64":"//4="}}`},
		{[]byte("acme"), []MessageHeader{header("b", "1"), header("a", "2"), header("b", "1"), {"n", nil}, {"x", []byte{0x80}}}, `{"$headers":[["b","1"],["a","2"],["b","1"],["n",null],["x",{"base64":"gA=="}]]}`},
	} {
		m := message(bareCall, c.headers...)
		m.Key = c.key
		if r := accept(t, &Decoder{}, m); string(r.Slots[SlotExt]) != c.ext {
			t.Errorf("key %q, headers %q: ext %s, want %s", c.key, c.headers, r.Slots[SlotExt], c.ext)
		}
	}
	r := accept(t, &Decoder{}, message("\x00\x80\x00\x01\x02"+bareCall))
	if got, want := string(r.Slots[SlotExt]), `{"$schemaId":2147483906}`; got != want {
		t.Errorf("framed: ext %s, want %s", got, want)
	}
}

// The text of prompts is kept where the tenant's setting says so, and one
// record can say otherwise for itself. Their size is always kept.
func TestPromptRetention(t *testing.T) {
	value := with(bareCall, `"prompt":"why?","call":{"completion":["a", 1.0]},"calls":[{},{"messages":{}}]`)
	kept := `{"prompt":"why?","call.completion":["a", 1.0],"calls.1.messages":{}}`
	retain := func(tenants ...string) func(string) bool {
		return func(tenant string) bool { return slices.Contains(tenants, tenant) }
	}
	for _, c := range []struct {
		name    string
		setting func(string) bool
		headers []MessageHeader
		want    string
	}{
		{"no setting", nil, nil, ""},
		{"other tenant", retain("globex"), nil, ""},
		{"this tenant", retain("acme"), nil, kept},
		{"header", nil, []MessageHeader{header("ledgerlake-retain-prompts", "true")}, kept},
		{"header against the setting", retain("acme"), []MessageHeader{header("ledgerlake-retain-prompts", "false")}, ""},
		{"odd header against the setting", retain("acme"), []MessageHeader{header("ledgerlake-retain-prompts", "TRUE")}, ""},
		{"headers that disagree", retain("acme"), []MessageHeader{header("ledgerlake-retain-prompts", "false"), header("ledgerlake-retain-prompts", "true")}, ""},
	} {
		var r Record
		if reject := (&Decoder{RetainPrompts: c.setting}).Decode(&r, message(value, c.headers...)); reject != nil {
			t.Fatal(reject)
		}
		if got := string(r.Slots[SlotPrompts]); got != c.want || (c.want == "") != (r.Slots[SlotPrompts] == nil) {
			t.Errorf("%s: prompts %s, want %s", c.name, got, c.want)
		}
		if got, want := string(r.Slots[SlotExt]), `{"prompt":{"promptBytes":6},"call.completion":{"promptBytes":10},"calls":[{},{"messages":{"promptBytes":2}}]}`; got != want {
			t.Errorf("%s: ext %s, want %s", c.name, got, want)
		}
	}
}

// In context and in slots prompts are lifted out in place.
func TestPromptsInContextAndSlots(t *testing.T) {
	all := func(string) bool { return true }
	r := accept(t, &Decoder{RetainPrompts: all}, message(with(bareDecision, `"prompt":"why?","intent":"i","calls":[{"model":"m","prompt" : "p"}]`), header("ledgerlake-kind", "decision")))
	if got, want := string(r.Slots[SlotContext]), `{"prompt":{"promptBytes":6},"intent":"i","calls":[{"model":"m","prompt" : {"promptBytes":3}}]}`; got != want {
		t.Errorf("context %s, want %s", got, want)
	}
	if got, want := string(r.Slots[SlotPrompts]), `{"prompt":"why?","calls.0.prompt":"p"}`; got != want || r.ModelID.S != "m" {
		t.Errorf("prompts %s, want %s", got, want)
	}
	d := Decoder{RetainPrompts: all, PromptPaths: []string{"pluginPayloads[].data.text", "outcome.why.quote", "a~2Eb", "rows[][]"}}
	r = accept(t, &d, message(with(bareCall, `"pluginPayloads":[ {"data":{"text":"t"}},{"data":{"text":null}} ],"outcome":{"why":{"quote":1}},"a.b":true,"rows":[[1],[2,3]],"prompt":"stays"`)))
	want := `outcome_why {"quote":{"promptBytes":1}}
plugin_payloads [ {"data":{"text":{"promptBytes":3}}},{"data":{"text":null}} ]
prompts {"pluginPayloads.0.data.text":"t","outcome.why.quote":1,"a~2Eb":true,"rows.0.0":1,"rows.1.0":2,"rows.1.1":3}
ext {"a~2Eb":{"promptBytes":4},"rows":[[{"promptBytes":1}],[{"promptBytes":1},{"promptBytes":1}]],"prompt":"stays"}
`
	if got := dump(r); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant at the end\n%s", got, want)
	}
	if got := accept(t, &Decoder{PromptPaths: []string{}}, message(with(bareCall, `"prompt":"stays"`))); string(got.Slots[SlotExt]) != `{"prompt":"stays"}` {
		t.Errorf("without paths: ext %s", got.Slots[SlotExt])
	}
}

func TestCheckPromptPaths(t *testing.T) {
	if err := CheckPromptPaths(append(DefaultPromptPaths, "a~2Eb", "x[][]", "pluginPayloads[].data.text", "outcome.text", "calls", "decision.why")); err != nil {
		t.Error(err)
	}
	if len(DefaultPromptPaths) != 21 {
		t.Errorf("%d paths by default, want 7 names in 3 places", len(DefaultPromptPaths))
	}
	for _, path := range []string{"", "[]", "a..b", "a.", ".a", "sessionId", "call.model", "outcome", "decision", "outcome.why", "tokenCost.inputTokens", "traceId", "recordId", "inputs.conversationId"} {
		if CheckPromptPaths([]string{path}) == nil {
			t.Errorf("%q is let pass", path)
		}
	}
}

// A value of 16 MiB is archived and keeps its bytes.
func TestLargestValue(t *testing.T) {
	value := with(bareCall, `"pluginPayloads":["`+strings.Repeat("x", MaxValueBytes-len(bareCall)-22)+`"]`)
	if len(value) != MaxValueBytes {
		t.Fatalf("%d bytes", len(value))
	}
	var r Record
	if reject := new(Decoder).Decode(&r, message(value)); reject != nil || len(r.Slots[SlotPluginPayloads]) < MaxValueBytes-300 {
		t.Errorf("%v, slot of %d bytes", reject, len(r.Slots[SlotPluginPayloads]))
	}
}

// Strings without escapes and slots share memory with the message, and nothing
// that is appended to a slot can reach the message.
func TestDecodeSharesMemory(t *testing.T) {
	m := usualMessage()
	r := accept(t, &Decoder{}, m)
	for s, slot := range r.Slots {
		if slot != nil && cap(slot) != len(slot) {
			t.Errorf("slot %s has room for %d bytes more", Slot(s), cap(slot)-len(slot))
		}
	}
	copy(m.Value[bytes.Index(m.Value, []byte("sess-4f1c2b")):], "XXXX")
	if r.SessionID.S != "XXXX-4f1c2b" {
		t.Error("session_id is a copy")
	}
}

// A usual row costs two allocations: its ext, and the strings of its fallback
// chain. A hostile one leaves no large buffer behind.
func TestDecodeAllocations(t *testing.T) {
	var d Decoder
	var r Record
	m := usualMessage()
	d.Decode(&r, m)
	if n := testing.AllocsPerRun(200, func() { d.Decode(&r, m) }); n > 2 {
		t.Errorf("%v allocations a row, at most 2 are fine", n)
	}
	if n := testing.AllocsPerRun(200, func() { r.Coordinates() }); n > 0 {
		t.Errorf("%v allocations for coordinates", n)
	}
	if n := testing.AllocsPerRun(200, func() { r.ContentHash() }); n > 0 {
		t.Errorf("%v allocations for a content hash", n)
	}
}

// One decoder serves several goroutines.
func TestDecodeConcurrently(t *testing.T) {
	var d Decoder
	want := dump(accept(t, &d, message(usualCall)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var r Record
			for i := range 200 {
				if i%3 == 0 {
					d.Decode(&r, message(usualCall[:i]))
					continue
				}
				if d.Decode(&r, message(usualCall)); dump(&r) != want {
					t.Error("another record than alone")
					return
				}
			}
		})
	}
	wg.Wait()
}

// FuzzDecode holds for every message: no panic; the same row twice; a good row
// loses nothing; a reject has a known reason, its bytes, and a tenant that may
// be one; and all text is UTF-8.
func FuzzDecode(f *testing.F) {
	for i, c := range rejectCases {
		if len(c.m.Value) < 4096 {
			f.Add(c.m.Value, []byte(c.m.Key), uint8(i))
		}
	}
	for _, c := range extCases {
		f.Add([]byte(with(bareCall, c.members)), []byte("acme"), uint8(1))
	}
	for seed := range uint64(40) {
		m, control := generator{newRand(seed)}.message()
		kind := uint8(0)
		if control {
			kind = 2
		}
		f.Add(m.Value, m.Key, kind)
	}
	f.Fuzz(func(t *testing.T, value, key []byte, bits uint8) {
		m := &Message{Topic: "t", Value: value, Key: key, Timestamp: time.UnixMilli(1)}
		if bits&1 != 0 {
			m.Headers = append(m.Headers, header("tenant", "acme"))
		}
		if bits&4 != 0 {
			m.Headers = append(m.Headers, MessageHeader{"ledgerlake-kind", key})
		}
		if bits&8 != 0 {
			m.Headers = append(m.Headers, header("ledgerlake-kind", "decision"))
		}
		d := Decoder{Control: bits&2 != 0, KeyIsTenant: bits&16 != 0, RetainPrompts: func(string) bool { return true }}
		var r, again Record
		reject, second := d.Decode(&r, m), d.Decode(&again, m)
		if dump(&r) != dump(&again) || (reject == nil) != (second == nil) {
			t.Fatal("not the same a second time")
		}
		checkRecord(t, &d, &r)
		switch {
		case reject == nil:
			checkLossless(t, m, &r)
		case !slices.Contains(Reasons, reject.Reason):
			t.Fatal(reject)
		default:
			if err := rejectFault(&r, m, reject); err != nil {
				t.Fatal(err)
			}
		}
		r.Coordinates()
		if r.ContentHash() != storedCopy(&r).ContentHash() {
			t.Fatal("the content of a stored row is another")
		}
	})
}

// checkRecord fails if a record is none that may be archived.
func checkRecord(t *testing.T, d *Decoder, r *Record) {
	t.Helper()
	for _, c := range Header {
		if c.Text != nil && !utf8.ValidString(c.Text(r).S) {
			t.Fatalf("%s is not UTF-8: %q", c.Name, c.Text(r).S)
		}
	}
	for s := range SlotRaw {
		if r.Slots[s] != nil && (!utf8.Valid(r.Slots[s]) || !json.Valid(r.Slots[s])) {
			t.Fatalf("%s is no JSON: %q", s, r.Slots[s])
		}
	}
	if err := ValidTenant(r.TenantID.S); err != nil && r.TenantID.S != TenantUnattributed && !(d.Control && IsReservedTenant(r.TenantID.S)) {
		t.Fatalf("tenant %q", r.TenantID.S)
	}
	if !utf8.ValidString(r.UserID.S) || r.Kind.S != KindRejected && shapeOf(r.Kind.S).whole != d.Control {
		t.Fatal(dump(r))
	}
}

package event_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/redact"
)

const call = `{"auditRecordVersion":19,"recordId":"01KBCDEFGHJKMNPQRSTVWXYZ10","sessionId":"s-1","turnId":"t-1","stageId":"tool-loop","seqWithinTurn":2,
 "createdAt":"2026-05-15T12:00:00.250Z","principal":{"tenantId":"acme|corp","userId":"dana=lee@example.com","actorKind":"user","sessionAuthMethod":"clerk"},
 "toolName":"search","call":{"callClass":"synthesis","provider":"openai","model":"gpt-5","transport":"native"},
 "decision":{"requestedModel":"gpt-5-mini","selectedReason":"fallback-rung","rungOrdinal":1,"fallbackChain":["gpt-5-mini"]},
 "outcome":{"status":"guard-rejected","latencyMs":812.5,"finishReason":"stop","httpStatus":200},
 "tokenCost":{"inputTokens":1200,"outputTokens":34,"usd":0.0042},"note":"line one\nline two"}`

// someCall returns a row of a call, live.
func someCall(t testing.TB) *chain.Row {
	t.Helper()
	row := &chain.Row{}
	msg := audit.Message{Topic: eventtest.Line.Topic, Partition: 3, Offset: 41, Timestamp: time.UnixMilli(1778846401000), Value: []byte(call)}
	if reject := new(audit.Decoder).Decode(&row.Record, &msg); reject != nil {
		t.Fatal(reject)
	}
	row.TopicID, row.Epoch, row.Seq = audit.Str(eventtest.Line.TopicID), audit.I64(0), audit.I64(7)
	row.ArchivedAt = audit.I64(1778846402000000)
	row.RedactionPolicy = audit.Str(audit.PolicyNone)
	chain.NewHasher(nil).Stamp(row, chain.Hash{1}, chain.Hash{2})
	return row
}

func examples(t testing.TB) []*event.Event {
	erased := *someCall(t)
	sentinel := chain.Sentinel{ID: "01KBCDEFGHJKMNPQRSTVWXYZ30", Slots: chain.SlotSetOf(audit.SlotTokenCost, audit.SlotExt), User: true}
	erase(t, &erased, sentinel)
	at := time.Date(2026, 5, 15, 13, 0, 0, 0, time.UTC)
	record := event.NewRecord(eventtest.Line, someCall(t), true)
	return []*event.Event{
		record,
		event.NewRecord(eventtest.Line, &erased, true),
		record.Pointer(),
		event.NewHead(eventtest.Line, "acme|corp", event.Head{Size: 8, Hash: someCall(t).RowHash, Root: chain.Hash{3}, Anchor: 12, Time: at}),
		event.NewErasure(eventtest.Line, "acme|corp", event.Erasure{What: sentinel, RequestRef: "DSR-7", Ranges: [][2]int64{{7, 7}, {9, 12}}, Time: at}),
		event.NewCheck(event.Check{Destination: "soc", Nonce: "n-1", Time: at}),
	}
}

// testdata/events.txt shows the events of a call, whole, erased and as a
// pointer, and all others, in every format.
func TestEventsAsTheyAreSent(t *testing.T) {
	var b strings.Builder
	b.WriteString("# A call; the same one when its user, tokens and ext were erased; its pointer; a head; a notice; a test.\n")
	for _, f := range event.Formats {
		fmt.Fprintf(&b, "\n# %s\n", f)
		e := encoder(t, f)
		for _, ev := range examples(t) {
			body, err := e.Append(nil, ev)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(body, '\n'))
		}
	}
	b.WriteString("\n# otlp\n")
	for _, ev := range examples(t) {
		l := encoder(t, event.JSON).OTLP(ev)
		fmt.Fprintf(&b, "%s %d %s %q\n", l.EventName, l.SeverityNumber, l.SeverityText, l.Body)
		for _, a := range l.Attributes {
			fmt.Fprintf(&b, "  %s = %s\n", a.Key, shown(a))
		}
	}
	const name = "testdata/events.txt"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != b.String() {
		t.Error("testdata/events.txt is not what is sent: go test ./export/event -update")
	}
}

// shown returns an attribute's value.
func shown(a event.Attribute) string {
	switch a.Type {
	case event.IntAttribute:
		return fmt.Sprint(a.Int)
	case event.BoolAttribute:
		return fmt.Sprint(a.Bool)
	case event.TextsAttribute:
		return fmt.Sprintf("%q", a.Texts)
	}
	return fmt.Sprintf("%q", a.Text)
}

// The record in our own JSON is the one that was sent, value for value.
func TestRecordComesBack(t *testing.T) {
	body, err := encoder(t, event.JSON).Append(nil, event.NewRecord(eventtest.Line, someCall(t), true))
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Record any }
	var want any
	if json.Unmarshal(body, &got) != nil || json.Unmarshal([]byte(call), &want) != nil || fmt.Sprint(got.Record) != fmt.Sprint(want) {
		t.Errorf("%v\nwant\n%v", got.Record, want)
	}
}

// Nothing of what was erased is in any format, and what it was is said.
func TestErasedContentIsNowhere(t *testing.T) {
	erased := examples(t)[1]
	for _, f := range event.Formats {
		body, err := encoder(t, f).Append(nil, erased)
		if err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{"dana", "0.0042", "line two"} {
			if bytes.Contains(body, []byte(gone)) {
				t.Errorf("%s: %s is still there:\n%s", f, gone, body)
			}
		}
		if !bytes.Contains(body, []byte("01KBCDEFGHJKMNPQRSTVWXYZ30")) {
			t.Errorf("%s: the order is not named:\n%s", f, body)
		}
	}
	l := encoder(t, event.JSON).OTLP(erased)
	if s := fmt.Sprint(l); strings.Contains(s, "dana") || !strings.Contains(s, "01KBCDEFGHJKMNPQRSTVWXYZ30") {
		t.Errorf("OTLP: %s", s)
	}
}

// Without content the columns stay, and the record is in no format.
func TestWithoutContent(t *testing.T) {
	for _, f := range event.Formats {
		e, err := event.NewEncoder(f, event.EncoderOptions{WithoutContent: true})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := e.Append(nil, examples(t)[0])
		if bytes.Contains(body, []byte("0.0042")) || bytes.Contains(body, []byte("line two")) || !bytes.Contains(body, []byte("gpt-5")) && f != event.JSON {
			t.Errorf("%s: %s", f, body)
		}
	}
}

// Outcome and severity are the worst that kind, status, verdict and reason say.
func TestSeverities(t *testing.T) {
	for _, c := range []struct {
		kind, status, context string
		severity, outcome     int64
	}{
		{audit.KindCall, "ok", "", 1, 1},
		{audit.KindCall, "timeout", "", 2, 2},
		{audit.KindCall, "guard-rejected", "", 3, 2},
		{audit.KindCall, "user-aborted", "", 1, 99},
		{audit.KindCall, "something new", "", 1, 99},
		{audit.KindCall, "", "", 1, 0},
		{audit.KindPolicyDecision, "ok", `{"policyDecision":"denied"}`, 3, 2},
		{audit.KindPolicyDecision, "error", `{"policyDecision":"allowed"}`, 2, 2},
		{audit.KindPolicyDecision, "ok", `{"PolicyDecision":"denied"}`, 1, 1},
		{audit.KindPolicyDecision, "ok", `{"a":{"policyDecision":"denied"}}`, 1, 1},
		{audit.KindPolicyDecision, "ok", `{"policyDecision":7}`, 1, 1},
		{audit.KindCall, "ok", `{"policyDecision":"denied"}`, 1, 1},
		{audit.KindRejected, "", `{"reason":"invalid_json"}`, 2, 2},
		{audit.KindRejected, "", `{"reason":"unauthorised"}`, 4, 2},
		{audit.KindRejected, "", `no JSON, but "reason"`, 2, 2},
		{audit.KindGap, "", `{"from":1}`, 4, 2},
		{audit.KindLegalHold, "", `{}`, 1, 1},
		{"later-kind", "", "", 1, 0},
	} {
		row := &chain.Row{}
		row.Kind = audit.Str(c.kind)
		if c.status != "" {
			row.Status = audit.Str(c.status)
		}
		if c.context != "" {
			row.Slots[audit.SlotContext] = []byte(c.context)
		}
		body, err := encoder(t, event.OCSF18).Append(nil, event.NewRecord(eventtest.Line, row, true))
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Severity int64 `json:"severity_id"`
			Status   int64 `json:"status_id"`
		}
		if err := json.Unmarshal(body, &got); err != nil || got.Severity != c.severity || got.Status != c.outcome {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// FuzzAppend: whatever a text and a slot are, every format is one line.
func FuzzAppend(f *testing.F) {
	for _, s := range eventtest.Hostile {
		if len(s) < 2000 {
			f.Add(s, []byte(s), true)
		}
	}
	f.Add("a", []byte(`{"a" : "b\n"}`), false)
	f.Fuzz(func(t *testing.T, s string, slot []byte, all bool) {
		row := &chain.Row{}
		row.TenantID, row.Kind = audit.Str("acme"), audit.Str(audit.KindCall)
		for i := range audit.Header {
			if c := audit.Header[i]; c.Text != nil && (all || i%3 == 0) && c.Name != "tenant_id" {
				*c.Text(&row.Record) = audit.Str(s)
			}
		}
		row.UserID, row.RequestedModel = audit.Str(s), audit.Str(s)
		row.Slots[audit.SlotContext], row.Slots[audit.SlotTokenCost] = slot, slot
		for _, format := range event.Formats {
			e := encoder(t, format)
			ev := event.NewRecord(eventtest.Line, row, true)
			for _, ev := range []*event.Event{ev, ev.Pointer()} {
				body, err := e.Append(nil, ev)
				if err != nil {
					t.Fatal(err)
				}
				if why := wrong(e, ev, body); why != "" {
					t.Fatalf("%s of a %s: %s:\n%.3000q", format, ev.Kind, why, body)
				}
			}
			if format == event.CEF {
				body, _ := e.Append(nil, ev)
				if _, _, err := parseCEF(string(body)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func erase(t testing.TB, row *chain.Row, s chain.Sentinel) {
	t.Helper()
	if _, err := redact.Erase(chain.NewHasher(nil), row, s); err != nil {
		t.Fatal(err)
	}
}

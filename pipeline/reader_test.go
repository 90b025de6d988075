package pipeline

import (
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/redact"
)

// A record that cannot be scrubbed is rejected, and nothing of its bytes, its key
// and its headers is stored.
func TestWhatCannotBeScrubbedIsWithheld(t *testing.T) {
	policy, err := redact.ParsePolicy([]byte("name: x\nrules:\n- {rule: keyed-regex, name: a-name-of-many-characters, key: k, pattern: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	many := `[` + strings.Repeat(`"x",`, 1<<20) + `"x"]`
	good := `{"recordId":"01KRNR3ZG00000000000000000","tenantId":"acme","sessionId":"s","turnId":"t","stageId":"g","seqWithinTurn":0,"createdAt":"2026-05-15T12:00:00.000Z","k":` + many + `}`
	d := &reader{&audit.Decoder{}, policy}
	for value, reason := range map[string]audit.Reason{good: audit.ReasonTooLarge, `{"k":` + many + `}`: audit.ReasonMissingField} {
		var r audit.Record
		m := &audit.Message{Topic: "t", Key: []byte("secret"), Value: []byte(value), Headers: []audit.MessageHeader{{Name: "h", Value: []byte("secret")}}}
		reject := d.Decode(&r, m)
		if reject == nil || reject.Reason != reason || !strings.Contains(reject.Detail, policy.ID()) || !strings.Contains(reject.Detail, "withheld") {
			t.Fatalf("rejected as %v", reject)
		}
		if context := string(r.Slots[audit.SlotContext]); strings.Contains(context, "secret") || !strings.Contains(context, `"size":10,"sha256":"`) {
			t.Errorf("context is %s", context)
		}
		if raw := string(r.Slots[audit.SlotRaw]); raw != "[withheld]" || r.Kind.S != audit.KindRejected || r.RedactionPolicy.Valid {
			t.Errorf("raw is %.40q, kind %s, policy %v", raw, r.Kind.S, r.RedactionPolicy)
		}
	}
}

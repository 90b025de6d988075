package audit

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The records that docs/producers.md shows are ones: none is a reject, and none
// has a member that is not where the page means it to be. The page names all
// classes of rejects that a producer can cause.
func TestProducersPage(t *testing.T) {
	page, err := os.ReadFile("../docs/producers.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindAllSubmatch(page, -1)
	want := []string{KindCall, KindCall, KindQueueDropped}
	if len(shown) != len(want) {
		t.Fatalf("the page shows %d records, want %d", len(shown), len(want))
	}
	var d Decoder
	for i, m := range shown {
		var r Record
		if reject := d.Decode(&r, &Message{Topic: "audit.calls", Timestamp: time.UnixMilli(1), Key: []byte("acme"), Value: m[1]}); reject != nil {
			t.Fatalf("%s: %s: %s", m[1], reject.Reason, reject.Detail)
		}
		if r.Kind.S != want[i] || r.TenantID.S != "acme" || !r.RecordID.Valid || !r.CreatedAt.Valid {
			t.Errorf("%s: a %s of tenant %s", m[1], r.Kind.S, r.TenantID.S)
		}
		if ext := string(r.Slots[SlotExt]); ext != "" && ext != `{"$alias":{"tenant_id":"principal.tenantId"}}` {
			t.Errorf("%s: some of it has no column: %s", m[1], ext)
		}
	}
	for _, reason := range Reasons {
		if !strings.Contains(string(page), "`"+string(reason)+"`") {
			t.Errorf("docs/producers.md does not say what makes a reject of class %s", reason)
		}
	}
}

package workload_test

import (
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/workload"
)

// The decoder agrees with what a record is said to be: it takes each good one
// and each repeat under its kind and tenant, and rejects each broken one for
// the reason that was put in.
func TestTheDecoderAgrees(t *testing.T) {
	g := workload.New(9, 6)
	g.Broken, g.Repeats, g.Conflicts = 0.2, 0.05, 0.05
	var d audit.Decoder
	reasons := map[string]int{}
	var slots [audit.NumSlots]int
	for i := range 10000 {
		r := g.Next()
		var got audit.Record
		reject := d.Decode(&got, message(r, int64(i)))
		if r.Class == workload.Broken {
			reasons[r.Reason]++
			if reject == nil || string(reject.Reason) != r.Reason {
				t.Fatalf("broken by %s, rejected: %+v\n%s", r.Reason, reject, r.Value)
			}
			continue
		}
		if reject != nil {
			t.Fatalf("a %v record is rejected: %+v\n%s", r.Class, reject, r.Value)
		}
		if got.Kind.S != r.Kind || got.TenantID.S != r.Tenant {
			t.Fatalf("kind %q of tenant %q, want %q of %q", got.Kind.S, got.TenantID.S, r.Kind, r.Tenant)
		}
		for s := range audit.NumSlots {
			if got.Slots[s] != nil {
				slots[s]++
			}
		}
	}
	for s, n := range slots {
		if n == 0 && audit.Slot(s) != audit.SlotRaw {
			t.Errorf("no record filled the slot %s", audit.Slot(s))
		}
	}
	if len(reasons) < 14 {
		t.Errorf("only these reasons came up: %v", reasons)
	}
}

func message(r workload.Record, offset int64) *audit.Message {
	m := &audit.Message{Topic: "audit.calls", Offset: offset, Timestamp: r.Time, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, audit.MessageHeader{Name: h.Name, Value: h.Value})
	}
	return m
}

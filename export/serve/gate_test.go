package serve_test

import (
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// What is ordered to be erased is shown to nobody from then on, carried out or
// not: neither as a record, nor in a timeline, a tail, or a proof that was made a
// moment ago.
func TestWhatIsToBeErasedIsHidden(t *testing.T) {
	a, _ := growing("acme")
	orders := a.Line(audit.ControlTopic, 0)
	orders.Segment(func(b *prooftest.Batch) {
		b.Order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "none"}, "*"))
	})
	orders.Anchor()
	w := newWorld(t, a, serve.Options{Age: serve.DefaultAge}, "a=acme")
	turn := decode[records](t, w.ask("a", "/v1/tenants/acme/turns/turn-0"))
	secret := `"rungOrdinal":2`
	base := "/v1/tenants/acme/"
	record := base + "records/" + turn.Records[2].RecordID
	paths := []string{record, record + "/proof", base + "turns/turn-0", base + "sessions/sess-0", base + "range?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z"}
	for _, path := range paths {
		if r := w.ask("a", path); r.status != 200 || !strings.Contains(r.body, secret) && !strings.Contains(r.body, `\"rungOrdinal\":2`) {
			t.Fatalf("%s, before: %d %.300s", path, r.status, r.body)
		}
	}
	w.grow(a, orders, func(b *prooftest.Batch) {
		b.Order("acme", audit.KindRedaction, prooftest.OrderID(2), prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"))
	})
	for _, path := range append(paths, record+"/check", base+"turns/turn-0/timeline", base+"recent") {
		r := w.ask("a", path)
		if r.status != 200 || strings.Contains(r.body, "rungOrdinal") || strings.Contains(r.body, "modèle-y") {
			t.Errorf("%s: %d, and it is shown: %.300s", path, r.status, r.body)
		}
	}
	if r := w.ask("a", base+"turns/turn-0/timeline"); !strings.Contains(r.body, `"pending":["`+prooftest.OrderID(2)) {
		t.Errorf("the timeline does not say which order hides it: %.600s", r.body)
	}
	l := w.listen("a", base+"tail?from=start", "")
	for range 5 {
		name, data, err := l.next()
		if err != nil {
			t.Fatal(err)
		}
		if name == "record" && strings.Contains(data, "rungOrdinal") {
			t.Errorf("a tail shows it: %s", data)
		}
	}
}

// Where it cannot be told what must be hidden, nothing is shown.
func TestWhereOrdersCannotBeReadNothingIsShown(t *testing.T) {
	a, _ := growing("acme")
	orders := a.Line(audit.ControlTopic, 0)
	orders.Segment(func(b *prooftest.Batch) {
		b.Order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"))
	})
	orders.Anchor()
	w := newWorld(t, a, serve.Options{}, "a=acme")
	if r := w.ask("a", "/v1/tenants/acme/turns/turn-0"); r.status != 200 {
		t.Fatal(r.status)
	}
	orders.Segment(func(b *prooftest.Batch) { b.Control("acme") })
	orders.Anchor()
	w.grow(a, orders, func(b *prooftest.Batch) { b.Control("acme") })
	w.bucket.Overwrite(orders.Key(1), []byte("not a segment"))
	for _, path := range []string{"turns/turn-0", "recent", "sessions/sess-0", "records/01KBCDEFGHJKMNPQRSTV000000"} {
		if r := w.ask("a", "/v1/tenants/acme/"+path); r.status < 500 || strings.Contains(r.body, "audit.") {
			t.Errorf("%s: %d %.300s", path, r.status, r.body)
		}
	}
}

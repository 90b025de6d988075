package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// calls returns an archive with calls of tenants, in segments that an anchor
// covers but for the last.
func calls(tenants ...string) *prooftest.Archive {
	a := prooftest.New()
	a.Signers = append(a.Signers, prooftest.Signer("anchors"))
	l := a.Line("audit.calls", 0)
	for range 3 {
		l.Segment(func(b *prooftest.Batch) {
			for range 16 {
				for _, t := range tenants {
					b.Call(t)
				}
			}
		})
	}
	l.Anchor()
	l.Segment(func(b *prooftest.Batch) {
		for _, t := range tenants {
			b.Call(t)
		}
	})
	return a
}

type records struct {
	Records []struct {
		RecordID  string `json:"recordId"`
		TurnID    string `json:"turnId"`
		SessionID string `json:"sessionId"`
		Seq       int64  `json:"seqWithinTurn"`
		At        struct {
			Tenant, TopicID string
			Partition       int
			Seq             int64
		} `json:"$ledgerlake"`
	}
	Next     *string
	Complete bool
}

func decode[T any](t *testing.T, r reply) (v T) {
	t.Helper()
	if r.status != 200 || r.err != nil {
		t.Fatalf("%d %v: %s", r.status, r.err, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return v
}

// What is not known is no error: an empty list.
func TestUnknownTurnsAndSessionsAreEmpty(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	for _, path := range []string{"turns/none", "turns/turn-1?session=none", "sessions/none", "sessions/sess-0?before=00000000000000000000000000"} {
		got := decode[records](t, w.ask("a", "/v1/tenants/acme/"+path))
		if len(got.Records) != 0 || got.Next != nil || !got.Complete {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if r := w.ask("a", "/v1/tenants/acme/records/01KBCDEFGHJKMNPQRSTV999999"); r.status != 404 || !strings.Contains(r.body, "no-record") {
		t.Errorf("an unknown record: %d %s", r.status, r.body)
	}
}

func TestATurnIsInOrder(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	got := decode[records](t, w.ask("a", "/v1/tenants/acme/turns/turn-3"))
	if len(got.Records) != 8 {
		t.Fatalf("%d records", len(got.Records))
	}
	for i, r := range got.Records {
		if r.Seq != int64(i) || r.TurnID != "turn-3" || r.At.Tenant != "acme" {
			t.Errorf("record %d: %+v", i, r)
		}
	}
}

// Pages of a session, put together, are the session.
func TestASessionPageByPage(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	var all []string
	path := "/v1/tenants/acme/sessions/sess-0?limit=7"
	for pages := 0; ; pages++ {
		got := decode[records](t, w.ask("a", path))
		for _, r := range got.Records {
			all = append(all, r.RecordID)
		}
		if got.Next == nil || pages > 10 {
			break
		}
		path = "/v1/tenants/acme/sessions/sess-0?limit=7&before=" + *got.Next
	}
	if len(all) != 49 {
		t.Fatalf("%d records", len(all))
	}
	for i := range all[1:] {
		if all[i] <= all[i+1] {
			t.Errorf("%s does not come before %s", all[i], all[i+1])
		}
	}
}

// Records that are large come on more pages than were asked for, and all of them
// come.
func TestASessionOfLargeRecords(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{Limits: serve.Limits{SessionBytes: 1}}, "a=acme")
	seen, pages, before := map[string]bool{}, 0, ""
	for {
		got := decode[records](t, w.ask("a", "/v1/tenants/acme/sessions/sess-0?limit=1000"+before))
		for _, r := range got.Records {
			seen[r.RecordID] = true
		}
		pages++
		if got.Next == nil {
			break
		}
		before = "&before=" + *got.Next
	}
	if len(seen) != 49 || pages < 3 {
		t.Errorf("%d records on %d pages", len(seen), pages)
	}
	if got := decode[records](t, newWorld(t, calls("acme"), serve.Options{}, "a=acme").ask("a", "/v1/tenants/acme/sessions/sess-0?limit=1000")); len(got.Records) != 49 || got.Next != nil {
		t.Errorf("%d records on one page", len(got.Records))
	}
}

func TestRequestsThatAreNotUnderstood(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	for path, want := range map[string]int{
		"sessions/s?limit=0": 400, "sessions/s?limit=1001": 400, "sessions/s?limit=x": 400, "sessions/s?before=x": 400, "sessions/s?limit=1&limit=2": 400,
		"turns/t?sesion=s": 400, "range": 400, "range?from=2026-01-01T00:00:00Z": 400, "range?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": 400,
		"range?from=yesterday&to=today": 400, "tail?from=then": 400, "turns/t?%zz": 400, "records/x": 404, "turns": 404, "turns/": 404, "turns/t/": 404, "": 404,
	} {
		r := w.ask("a", "/v1/tenants/acme/"+path)
		if r.status != want || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := w.ask("a", "/v1/tenants/acme/tail", "Last-Event-ID", "what"); r.status != 400 {
		t.Errorf("a position that is none: %d", r.status)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		if r := w.do(t.Context(), method, "a", "/v1/tenants"); r.status != 405 || r.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d", method, r.status)
		}
	}
}

// A range has what was created in it, from its first moment to before its last.
func TestARangeIsStreamed(t *testing.T) {
	w := newWorld(t, calls("acme", "globex"), serve.Options{}, "a=acme")
	r := w.ask("a", "/v1/tenants/acme/range?from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z")
	lines := strings.Split(strings.TrimSuffix(r.body, "\n"), "\n")
	if r.status != 200 || r.err != nil || len(lines) != 49 || r.header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d %v, %d lines", r.status, r.err, len(lines))
	}
	if r := w.ask("a", "/v1/tenants/acme/range?from=2020-01-01T00:00:00Z&to=2021-01-01T00:00:00Z"); r.status != 200 || r.body != "" {
		t.Errorf("a range with nothing: %d %q", r.status, r.body)
	}
}

// The proof that comes checks without the server, and the server says the same.
func TestAProofChecks(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	turn := decode[records](t, w.ask("a", "/v1/tenants/acme/turns/turn-3"))
	at := turn.Records[2].At
	place := fmt.Sprintf("%s:%d:%d", at.TopicID, at.Partition, at.Seq)
	for _, name := range []string{turn.Records[2].RecordID, place} {
		r := w.ask("a", "/v1/tenants/acme/records/"+name+"/proof")
		if r.status != 200 {
			t.Fatalf("%s: %d %s", name, r.status, r.body)
		}
		b, err := proof.DecodeBundle([]byte(r.body))
		if err != nil {
			t.Fatal(err)
		}
		if v := b.Check(proof.CheckOptions{}); v.Fault != "" || b.Row.Seq != at.Seq {
			t.Errorf("%s: %+v", name, v)
		}
		got := decode[struct{ State, Text, Key string }](t, w.ask("a", "/v1/tenants/acme/records/"+name+"/check"))
		if got.State != "proved" || !strings.Contains(got.Key, "signed by anchors") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What no anchor covers yet is there, and its proof waits.
func TestAProofWaits(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	turn := decode[records](t, w.ask("a", "/v1/tenants/acme/turns/turn-6"))
	path := "/v1/tenants/acme/records/" + turn.Records[0].RecordID
	if r := w.ask("a", path); r.status != 200 {
		t.Errorf("the record: %d", r.status)
	}
	if r := w.ask("a", path+"/proof"); r.status != 409 || !strings.Contains(r.body, "not-anchored") {
		t.Errorf("its proof: %d %s", r.status, r.body)
	}
	if got := decode[struct{ State string }](t, w.ask("a", path+"/check")); got.State != "waiting" {
		t.Errorf("its check: %+v", got)
	}
}

func TestOpenAtAll(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	for _, path := range []string{"/", "/healthz", "/v1/openapi.json", "/page/app.js", "/page/style.css"} {
		r := w.ask("", path)
		if r.status != 200 || r.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %v", path, r.status, r.header)
		}
	}
}

package serve_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// mark stands in every string of tenant B. A ULID can have it too.
const mark = "MARKB"

const tenantB = "globex-" + mark

// marked adds a row of tenant B, in which every string is marked.
func marked(b *prooftest.Batch) {
	b.Row(tenantB, func(r *audit.Record) {
		n := r.KafkaOffset.N
		for _, col := range audit.Header {
			if col.Text != nil && !col.Text(r).Valid {
				*col.Text(r) = audit.Str(mark + col.Name)
			}
		}
		r.Kind, r.RecordID, r.StageID = audit.Str(audit.KindCall), audit.Str(fmt.Sprintf("01KBCDEFGHJKMNPQ%s%05d", mark, n)), audit.Str("tool-loop")
		r.SessionID, r.TurnID, r.ParentTurnID = audit.Str("sess-"+mark), audit.Str(fmt.Sprintf("turn-%s-%d", mark, n/8)), audit.Str("turn-3")
		r.SeqWithinTurn, r.CreatedAt, r.AuditRecordVersion = audit.I64(n), audit.I64(r.KafkaTimestamp.N), audit.I64(19)
		r.UserID = audit.Str("user-" + mark)
		r.RedactionPolicy = audit.Str(audit.PolicyNone)
		for s := range audit.SlotRaw {
			r.Slots[s] = []byte(`{"a":"` + mark + `"}`)
		}
		r.Slots[audit.SlotPluginPayloads] = []byte(`["` + mark + `"]`)
		r.Derived = audit.Derive(r.Slots[audit.SlotDecision])
	})
}

// How anchors are signed: not at all, by a key that is known, or by one that such
// a key certified for a day, so that proofs need anchors.
const (
	unsigned = iota
	signed
	certified
	signings
)

// shared returns an archive in which acme and tenant B share a partition, a part
// of it compacted, and B has one of its own besides.
func shared(by int) (a *prooftest.Archive, line *prooftest.Line, hashes []string) {
	a = prooftest.New()
	known := prooftest.Signer("anchors")
	switch by {
	case signed:
		a.Signers = append(a.Signers, known)
	case certified:
		short := prooftest.Signer("memory")
		a.Signers = append(a.Signers, short)
		a.Certify(short, known)
		defer func() { a.Signers = []*sign.Signer{known} }() // the one that readers know
	}
	line = a.Line("audit.calls", 0)
	var all []chain.Row
	for i := range 4 {
		s := line.Segment(func(b *prooftest.Batch) {
			for range 12 {
				b.Call("acme")
				marked(b)
			}
		})
		all = append(all, s.Rows...)
		if i == 1 {
			line.Anchor()
			line.Compact(prooftest.Compaction{Watermark: 1})
		}
	}
	line.Anchor()
	own := a.Line("audit."+mark, 0)
	all = append(all, own.Segment(func(b *prooftest.Batch) { marked(b); marked(b) }).Rows...)
	own.Anchor()
	for _, r := range all {
		if r.TenantID.S == tenantB {
			hashes = append(hashes, hex.EncodeToString(r.RowHash[:]), base64.RawURLEncoding.EncodeToString(r.RowHash[:]))
		}
	}
	return a, line, hashes
}

// leaks returns what of tenant B is in an answer.
func leaks(r reply, hashes []string) string {
	var head strings.Builder
	_ = r.header.Write(&head)
	for _, text := range []string{head.String(), r.body} {
		for _, form := range []string{mark, strings.ToLower(mark), base64.StdEncoding.EncodeToString([]byte(mark))[:6], hex.EncodeToString([]byte(mark))} {
			if strings.Contains(text, form) {
				return form
			}
		}
		for _, h := range hashes {
			if strings.Contains(text, h) {
				return h
			}
		}
	}
	return ""
}

// tricks are other ways to write a tenant's path.
func tricks(tenant string) []string {
	e := url.PathEscape(tenant)
	var slow strings.Builder
	for i := range len(tenant) {
		fmt.Fprintf(&slow, "%%%02x", tenant[i])
	}
	return []string{
		e, slow.String(), "acme/%2e%2e/" + e, "acme/../" + e, "acme%2f..%2f" + e, "acme%2F%2E%2E%2F" + e, "./" + e, "%2e/" + e, "/" + e, e + "%00", "acme%00" + e, "%20" + e, e + "%20",
		strings.ToUpper(e), strings.ToLower(e), "GLOBEX-" + mark, "\u1d33lobex-" + mark, "globex\uff0d" + mark, "globex-" + "\uff2dARKB", "globex-\u200b" + mark, e + ";a=b", e + "%3f", "*", "%2a", "_partition", "_unattributed", "acme," + e,
	}
}

// The token of one tenant yields no byte of another: every endpoint, the page and
// the tail, by B's own ids, cursors and positions, and by tricks with paths.
func TestNoByteOfAnotherTenant(t *testing.T) {
	for by := range signings {
		t.Run([]string{"unsigned", "signed", "certified"}[by], func(t *testing.T) {
			a, line, hashes := shared(by)
			w := newWorld(t, a, serve.Options{}, "a=acme", "b="+tenantB, "all=*")
			requireMarks(t, w)
			base := "/v1/tenants/acme/"
			ids := []string{
				"sess-" + mark, "turn-" + mark + "-0", "turn-3", "sess-0", "01KBCDEFGHJKMNPQ" + mark + "00001", "01KBCDEFGHJKMNPQRSTV000002",
				line.TopicID + ":0:1", line.TopicID + ":0:40", topicOf(a) + ":0:0", "..%2f..%2f" + url.PathEscape(tenantB) + "%2fturns", "%2e%2e",
			}
			seen := 0
			try := func(path string, header ...string) {
				r := first(t, w, "a", path, header...)
				if what := leaks(r, hashes); what != "" {
					t.Errorf("%s %v: %d, and it has %s:\n%.600s", path, header, r.status, what, r.body)
				}
				seen++
			}
			queries := []string{
				"", "?session=sess-" + mark, "?before=01KBCDEFGHJKMNPQ" + mark + "00001", "?limit=1000", "?tenant=" + tenantB,
				"?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z", "?from=start", "?before=7ZZZZZZZZZZZZZZZZZZZZZZZZZ&limit=1000",
			}
			for path := range serve.Document()["paths"].(map[string]any) {
				for _, id := range ids {
					to := strings.NewReplacer("{tenant}", "acme", "{turn}", id, "{session}", id, "{record}", id).Replace(path)
					for _, q := range queries {
						try(to + q)
					}
				}
			}
			for _, trick := range tricks(tenantB) {
				for _, rest := range []string{"/turns/turn-" + mark + "-0", "/sessions/sess-" + mark, "/tail?from=start", "/recent", "/range?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z", "/records/01KBCDEFGHJKMNPQ" + mark + "00001/proof"} {
					try("/v1/tenants/" + trick + rest)
				}
			}
			for _, position := range []string{positionOf(t, w, "b", tenantB), topicOf(a) + ":0:0", line.TopicID + ":0:0:" + base64.RawURLEncoding.EncodeToString(make([]byte, 32))} {
				try(base+"tail", "Last-Event-ID", position)
			}
			t.Logf("%d answers", seen)
		})
	}
}

// requireMarks makes sure that the marks are there to be found: B and whoever has
// a token for all see them.
func requireMarks(t *testing.T, w *world) {
	t.Helper()
	for token, path := range map[string]string{"b": "/v1/tenants/" + tenantB + "/sessions/sess-" + mark, "all": "/v1/tenants"} {
		if r := w.ask(token, path); r.status != 200 || !strings.Contains(r.body, mark) {
			t.Fatalf("%s sees no mark: %d %.200s", path, r.status, r.body)
		}
	}
}

// topicOf returns the id of the topic that only B has.
func topicOf(a *prooftest.Archive) string {
	for _, key := range slices.Sorted(maps.Keys(a.Objects())) {
		if strings.HasPrefix(key, "log/audit."+mark+"/") {
			return strings.Split(key, "/")[2]
		}
	}
	panic("no such topic")
}

// first asks, and takes what comes of a stream up to where it stands still: for
// the tail, up to its position at the end.
func first(t *testing.T, w *world, token, path string, header ...string) reply {
	t.Helper()
	if !strings.Contains(path, "/tail") {
		return w.ask(token, path, header...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res, err := w.open(ctx, "GET", token, path, header...)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	r := reply{status: res.StatusCode, header: res.Header}
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		r.body = string(body)
		return r
	}
	r.body = untilQuiet(bufio.NewReader(res.Body), 49)
	return r
}

// untilQuiet reads events up to the number of records there are at most, or the
// first line that says that nothing follows.
func untilQuiet(in *bufio.Reader, records int) string {
	var b strings.Builder
	for records > 0 {
		line, err := in.ReadString('\n')
		b.WriteString(line)
		if strings.HasPrefix(line, "event: record") {
			records--
		}
		if err != nil || strings.HasPrefix(line, ": quiet") {
			break
		}
	}
	return b.String()
}

// positionOf returns a position at the end of a tenant's logs.
func positionOf(t *testing.T, w *world, token, tenant string) string {
	t.Helper()
	r := first(t, w, token, "/v1/tenants/"+tenant+"/tail")
	for line := range strings.Lines(r.body) {
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			return strings.TrimSpace(id)
		}
	}
	t.Fatalf("no position in %s", r.body)
	return ""
}

// A tenant that there is, and one that there is not, are answered with the same
// bytes, and no one hears from a token that it is almost right.
func TestAnotherTenantIsAsOneThatIsNotThere(t *testing.T) {
	a, _, _ := shared(signed)
	w := newWorld(t, a, serve.Options{}, "a=acme", "all=*")
	for _, rest := range []string{"", "/recent", "/turns/x", "/turns/turn-" + mark + "-0", "/sessions/x", "/records/01KBCDEFGHJKMNPQ" + mark + "00001/proof", "/tail", "/range", "/nothing"} {
		want := text(w.ask("a", "/v1/tenants/no-such-tenant"+rest))
		if !strings.HasPrefix(want, "404") {
			t.Errorf("%s: %s", rest, want)
		}
		for _, trick := range tricks(tenantB) {
			if strings.Contains(trick, "/") {
				continue // another path, which is not there at all
			}
			if got := text(w.ask("a", "/v1/tenants/"+trick+rest)); got != want {
				t.Errorf("%s%s:\n%s\nand one that is not there:\n%s", trick, rest, got, want)
			}
		}
		if got := text(w.ask("all", "/v1/tenants/no-such-tenant"+rest)); got != want {
			t.Errorf("to a token for all, %s:\n%s\nand\n%s", rest, got, want)
		}
	}
}

// text returns all of an answer but its time.
func text(r reply) string {
	h := r.header.Clone()
	h.Del("Date")
	var b strings.Builder
	fmt.Fprintln(&b, r.status)
	_ = h.Write(&b)
	return b.String() + r.body
}

// A proof that would have to name another tenant is refused to who may not see
// that one; whether it checks is said all the same.
func TestAProofThatNamesOthers(t *testing.T) {
	a, _, _ := shared(certified)
	w := newWorld(t, a, serve.Options{}, "a=acme", "both=acme,"+tenantB, "all=*")
	turn := decode[records](t, w.ask("a", "/v1/tenants/acme/sessions/sess-0?limit=1"))
	path := "/v1/tenants/acme/records/" + turn.Records[0].RecordID
	if r := w.ask("a", path+"/proof"); r.status != 403 || !strings.Contains(r.body, "names-others") {
		t.Errorf("%d %.300s", r.status, r.body)
	}
	if got := decode[struct{ State, Key string }](t, w.ask("a", path+"/check")); got.State != "proved" || got.Key != "signed by memory" {
		t.Errorf("%+v", got)
	}
	for _, token := range []string{"both", "all"} {
		if r := w.ask(token, path+"/proof"); r.status != 200 || !strings.Contains(r.body, mark) {
			t.Errorf("%s: %d %.300s", token, r.status, r.body)
		}
	}
}

// A token is good for the tenants that it names, and one for all is for all there
// are.
func TestTenantsOfTokens(t *testing.T) {
	a, _, _ := shared(signed)
	w := newWorld(t, a, serve.Options{}, "a=acme", "both="+tenantB+",acme", "none=initech", "all=*")
	for token, want := range map[string]string{"a": `["acme"]`, "both": `["acme","` + tenantB + `"]`, "none": `["initech"]`, "all": `["acme","` + tenantB + `"]`} {
		if r := w.ask(token, "/v1/tenants"); r.status != 200 || !strings.Contains(r.body, `"tenants":`+want) {
			t.Errorf("%s: %d %s", token, r.status, r.body)
		}
		for tenant := range strings.SplitSeq(strings.Trim(want, `[]`), ",") {
			if r := w.ask(token, "/v1/tenants/"+strings.Trim(tenant, `"`)+"/turns/x"); r.status != 200 {
				t.Errorf("%s, %s: %d", token, tenant, r.status)
			}
		}
	}
}

// HEAD is GET without the body, and ends also where GET does not.
func TestHead(t *testing.T) {
	a, _, _ := shared(signed)
	w := newWorld(t, a, serve.Options{}, "a=acme")
	for _, path := range []string{"/", "/healthz", "/v1/tenants/acme/turns/turn-0", "/v1/tenants/acme/tail", "/v1/tenants/acme/range?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z"} {
		if r := w.do(t.Context(), "HEAD", "a", path); r.status != 200 || r.body != "" {
			t.Errorf("%s: %d %q", path, r.status, r.body)
		}
	}
}

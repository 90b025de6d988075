package workload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// mixed returns a generator of all four classes.
func mixed(seed uint64) *Generator {
	g := New(seed, 5)
	g.Broken, g.Repeats, g.Conflicts = 0.1, 0.1, 0.05
	return g
}

func take(g *Generator, n int) []Record {
	rs := make([]Record, n)
	for i := range rs {
		rs[i] = g.Next()
	}
	return rs
}

func digest(rs []Record) string {
	h := sha256.New()
	for _, r := range rs {
		fmt.Fprintf(h, "%q %q %q %v %v %s\n", r.Key, r.Value, r.Headers, r.Time, r.Class, r.Reason)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Equal settings give equal bytes, and another seed, another number of tenants
// or another start give others.
func TestRecordsDependOnTheSettingsAlone(t *testing.T) {
	want := digest(take(mixed(7), 2000))
	if got := digest(take(mixed(7), 2000)); got != want {
		t.Errorf("the same settings gave %s, then %s", want, got)
	}
	later := mixed(7)
	later.Start = Epoch.Add(time.Hour)
	for name, g := range map[string]*Generator{"seed": mixed(8), "tenants": New(7, 6), "start": later} {
		if digest(take(g, 2000)) == want {
			t.Errorf("another %s gave the same records", name)
		}
	}
}

// Another start moves times, ids and what is made of them, and nothing else:
// the same turns come in the same order, in the same classes.
func TestStartMovesTimesAlone(t *testing.T) {
	later := mixed(7)
	later.Start = Epoch.Add(123456789 * time.Microsecond)
	a, b := take(mixed(7), 3000), take(later, 3000)
	for i := range a {
		if a[i].Class != b[i].Class || a[i].Reason != b[i].Reason || a[i].Kind != b[i].Kind || a[i].Tenant != b[i].Tenant {
			t.Fatalf("record %d: %v %s %s %s, then %v %s %s %s", i, a[i].Class, a[i].Reason, a[i].Kind, a[i].Tenant, b[i].Class, b[i].Reason, b[i].Kind, b[i].Tenant)
		}
	}
}

// Records that a caller holds stay as they were while more are made, repeats
// and conflicts of them included.
func TestRecordsStayAsTheyWere(t *testing.T) {
	g := mixed(3)
	held := take(g, 1000)
	before := digest(held)
	take(g, 5000)
	if digest(held) != before {
		t.Error("a later Next changed a record that was handed out before")
	}
}

// The shares of the classes are those that were asked for, and by default all
// records are good.
func TestShares(t *testing.T) {
	const n = 20000
	count := map[Class]int{}
	for _, r := range take(mixed(1), n) {
		count[r.Class]++
	}
	for class, want := range map[Class]float64{Broken: 0.1, Repeat: 0.1, Conflict: 0.05, Good: 0.75} {
		if got := float64(count[class]) / n; math.Abs(got-want) > 0.01 {
			t.Errorf("%v: share %.3f, want %.3f", class, got, want)
		}
	}
	for _, r := range take(New(1, 5), n) {
		if r.Class != Good || r.Reason != "" {
			t.Fatalf("with default settings: class %v, reason %q", r.Class, r.Reason)
		}
	}
}

// All records but broken ones are JSON objects that name their tenant in key,
// header and value alike.
func TestGoodRecordsAreJSONOfTheirTenant(t *testing.T) {
	for _, r := range take(mixed(2), 5000) {
		if r.Class == Broken {
			continue
		}
		var v struct {
			TenantID  string
			Principal struct{ TenantID string }
		}
		if err := json.Unmarshal(r.Value, &v); err != nil {
			t.Fatalf("%v: %s", err, r.Value)
		}
		if in := v.TenantID + v.Principal.TenantID; in != r.Tenant || string(r.Key) != r.Tenant || string(r.Headers[0].Value) != r.Tenant {
			t.Fatalf("tenant %q: value %q, key %q, header %q", r.Tenant, in, r.Key, r.Headers[0].Value)
		}
	}
}

// coordinates reads what a repeat is known by.
func coordinates(t *testing.T, r Record) string {
	t.Helper()
	var v struct {
		SessionID, TurnID, StageID, DecisionID, TraceID string
		SeqWithinTurn, Seq                              int
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		t.Fatalf("%v: %s", err, r.Value)
	}
	kind := r.Kind
	if r.Kind == "call" || r.Kind == "decision" {
		return fmt.Sprint(r.Tenant, kind, v.SessionID, v.TurnID, v.StageID, v.SeqWithinTurn, v.DecisionID)
	}
	return fmt.Sprint(r.Tenant, kind, v.TraceID, v.Seq)
}

// Good records have coordinates of their own, also against those of another
// seed; repeats and conflicts have those of a good record before them.
func TestCoordinates(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(3) {
		for _, r := range take(mixed(seed), 8000) {
			if r.Class == Broken {
				continue
			}
			c := coordinates(t, r)
			if seen[c] != (r.Class != Good) {
				t.Fatalf("seed %d: a %v record, seen before: %v: %s", seed, r.Class, seen[c], c)
			}
			seen[c] = true
		}
	}
}

// Each kind, stage, status and slot comes up, each reason among the broken, and
// versions from 8 to beyond what is known.
func TestVariety(t *testing.T) {
	var all []byte
	kinds, reasons := map[string]bool{}, map[string]bool{}
	for _, r := range take(mixed(4), 30000) {
		kinds[r.Kind] = true
		if r.Class == Broken {
			reasons[r.Reason] = true
			continue
		}
		all = append(all, r.Value...)
	}
	for _, k := range []string{"call", "decision", "llm-request", "llm-response", "tool-call", "world-mutation", "policy-decision", "source-chain-reset", "source-rotation", "queue-dropped"} {
		if !kinds[k] {
			t.Errorf("no record of kind %s", k)
		}
	}
	for _, f := range faults {
		if !reasons[f.reason] {
			t.Errorf("no record broken by %s", f.reason)
		}
	}
	for _, want := range strings.Fields(`anchor-plan tool-loop synthesize post-turn ok provider-error guard-rejected timeout user-aborted
		user guest scheduled system clerk api-key guest-token internal native openrouter byok-native byok-openrouter
		family-lock fallback-rung matrix-pick user-explicit unresolved graph imperative-carve-out user-abort-confirmed PolicyDecision LlmRequest`) {
		if !bytes.Contains(all, []byte(`"`+want+`"`)) {
			t.Errorf("the value %q never comes up", want)
		}
	}
	for _, want := range strings.Fields(`decision why familyLock fallbackStep providerCascade cacheBreakpoint toolFallbackStep tokenCost synthesisQuality
		toolSelection planGeneration interruptDecision pluginPayloads messages prompt parentTurnId subagentDepth requestedModel modelId tokenUsage routing`) {
		if !bytes.Contains(all, []byte(`"`+want+`":`)) {
			t.Errorf("the member %q never comes up", want)
		}
	}
	for v := 8; v <= 20; v++ {
		if !bytes.Contains(all, fmt.Appendf(nil, `"auditRecordVersion":%d,`, v)) {
			t.Errorf("version %d never comes up", v)
		}
	}
	if !bytes.Contains(all, []byte(`"userId":null`)) || !bytes.Contains(all, []byte(`"action":null`)) {
		t.Error("no anonymous user, or no decision not to act")
	}
}

// A call is about 1.3 KB of JSON on average: what figures of speed refer to.
func TestSizeOfCalls(t *testing.T) {
	var bytes, calls int
	for _, r := range take(New(5, 50), 20000) {
		if r.Kind == "call" {
			bytes += len(r.Value)
			calls++
		}
	}
	if mean := bytes / calls; mean < 1250 || mean > 1350 {
		t.Errorf("a call has %d bytes on average, want 1300", mean)
	}
	if calls < 14000 {
		t.Errorf("%d of 20000 records are calls, want most of them", calls)
	}
}

// Record ids sort as they were made, also within one millisecond, and have the
// 26 characters of a ULID.
func TestRecordIDsSort(t *testing.T) {
	g := New(6, 1)
	g.Step = 10 * time.Microsecond
	var last string
	for range 5000 {
		g.tick()
		id := string(g.ulids.append(nil, g.now, g.idRNG))
		if id <= last || len(id) != 26 || strings.Trim(id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
			t.Fatalf("%q after %q", id, last)
		}
		last = id
	}
}

// The known answer of the ULID specification's example time.
func TestCrockford(t *testing.T) {
	var id [16]byte
	copy(id[:], []byte{0x01, 0x56, 0x3e, 0x3a, 0xb5, 0xd3, 0xd6, 0x76, 0x4c, 0x61, 0xef, 0xb9, 0x93, 0x02, 0xbd, 0x5b})
	if got := string(appendCrockford(nil, id)); got != "01ARZ3NDEKTSV4RRFFQ69G5FAV" {
		t.Errorf("got %s", got)
	}
}

// Entries of one turn form a chain of SHA-256 hashes over the text of each.
func TestEntriesAreChained(t *testing.T) {
	heads := map[string]string{}
	n := 0
	for _, r := range take(New(8, 3), 5000) {
		if slices.Contains([]string{"call", "decision"}, r.Kind) {
			continue
		}
		var v struct{ TraceID, PrevHash, Hash string }
		if err := json.Unmarshal(r.Value, &v); err != nil {
			t.Fatal(err)
		}
		empty := bytes.Replace(r.Value, []byte(`"hash":"`+v.Hash), []byte(`"hash":"`), 1)
		sum := sha256.Sum256(append([]byte(v.PrevHash), empty...))
		if v.PrevHash != heads[v.TraceID] || v.Hash != hex.EncodeToString(sum[:]) {
			t.Fatalf("entry does not continue its chain: %s", r.Value)
		}
		heads[v.TraceID] = v.Hash
		n++
	}
	if n == 0 {
		t.Error("no entries")
	}
}

func BenchmarkNext(b *testing.B) {
	g := New(1, 50)
	var bytes int64
	for b.Loop() {
		bytes += int64(len(g.Next().Value))
	}
	b.SetBytes(bytes / int64(b.N))
	b.ReportAllocs()
}

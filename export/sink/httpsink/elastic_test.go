package httpsink

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/httpsink/siemtest"
)

func elasticAt(t *testing.T, b *siemtest.Bulk, index string) *Elastic {
	t.Helper()
	b.Authorization = "ApiKey " + aToken
	o := ElasticOptions{HTTP: at(serve(t, b)), Index: index, APIKey: aToken}
	o.Compression = Gzip
	e, err := NewElastic(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Each event has its own verdict: what is refused is dead, what is too much now is
// sent again, what is there already counts, and the rest is created once.
func TestElasticItems(t *testing.T) {
	batch := messages(t, event.ECS, 100, plain)
	busy := map[string]int{batch[10].Event.ID: 2, batch[11].Event.ID: 1, batch[99].Event.ID: 3}
	b := &siemtest.Bulk{Verdict: func(id string, doc []byte) (int, string, string) {
		switch {
		case busy[id] > 0:
			busy[id]--
			return http.StatusTooManyRequests, "es_rejected_execution_exception", string(doc)
		case id == batch[20].Event.ID:
			return http.StatusBadRequest, "document_parsing_exception", string(doc)
		}
		return http.StatusCreated, "", ""
	}}
	e := elasticAt(t, b, "audit")
	c := pump(t, e, batch)
	if repeats := requireTaken(t, c, batch, b.Taken()); repeats > 0 || c.attempts != 4 || len(c.dead) != 1 {
		t.Errorf("%d repeats, %d attempts, dead: %v", repeats, c.attempts, c.dead)
	}
	if why := c.dead[batch[20].Event.ID]; why != "400 Bad Request: document_parsing_exception: illegal_argument_exception" {
		t.Errorf("%q", why)
	}
	if c = pump(t, e, batch[30:]); c.attempts != 1 || len(c.dead) > 0 { // all of them 409
		t.Errorf("%+v", c)
	}
	if len(b.Docs()) != 99 || len(b.Faults()) > 0 {
		t.Errorf("%d documents; %q", len(b.Docs()), b.Faults())
	}
}

// An answer that does not speak of each event says nothing of any.
func TestElasticCountsItems(t *testing.T) {
	batch := messages(t, event.ECS, 10, plain)
	for _, b := range []*siemtest.Bulk{{Forget: 2}, {Blank: 2}} {
		e := elasticAt(t, b, "audit")
		for range 2 {
			for i, v := range e.Deliver(t.Context(), batch).Verdicts {
				if v.Outcome != sink.Retry || !strings.Contains(v.Reason, "10 were sent") {
					t.Errorf("event %d: %+v", i, v)
				}
			}
		}
		if r := e.Deliver(t.Context(), batch); !r.Done() { // all 409
			t.Errorf("%+v", r)
		}
	}
}

// An item that says something else than that it was created is no delivery.
func TestElasticOddItems(t *testing.T) {
	for item, want := range map[string]sink.Outcome{
		`{"create":{"status":201}}`: sink.Delivered, `{"create":{"status":200}}`: sink.Delivered, `{"create":{"status":409}}`: sink.Delivered,
		`{"index":{"status":201}}`: sink.Retry, `{}`: sink.Retry, `null`: sink.Retry, `{"create":{}}`: sink.Retry, `{"create":null}`: sink.Retry, `{"create":{"status":-1}}`: sink.Retry,
		`{"create":{"status":503}}`: sink.Retry, `{"create":{"status":403}}`: sink.Suspend, `{"create":{"status":404}}`: sink.Suspend,
		`{"create":{"status":400}}`: sink.Poison, `{"create":{"status":413}}`: sink.Split, `[]`: sink.Retry, `{"create":{"status":"201"}}`: sink.Retry,
	} {
		e, err := NewElastic(ElasticOptions{Index: "audit", HTTP: at(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"items":[` + item + `]}`))
		})))})
		if err != nil {
			t.Fatal(err)
		}
		if v := e.Deliver(t.Context(), messages(t, event.ECS, 1, plain)).Verdicts[0]; v.Outcome != want {
			t.Errorf("%s: %+v", item, v)
		}
	}
}

// A request that is too large is sent in parts.
func TestElasticSplits(t *testing.T) {
	batch := messages(t, event.ECS, 100, plain)
	b := &siemtest.Bulk{MaxBytes: 20_000}
	c := pump(t, elasticAt(t, b, "audit"), batch)
	if repeats := requireTaken(t, c, batch, b.Taken()); repeats > 0 || len(c.dead) > 0 {
		t.Errorf("%d repeats, dead: %v", repeats, c.dead)
	}
}

// Documents are the events as they are, with a time where they have none, in the
// index that their tenant and their day name.
func TestElasticDocuments(t *testing.T) {
	for _, f := range jsonFormats {
		b := &siemtest.Bulk{}
		var events []*event.Event
		seen := map[string]bool{}
		for _, ev := range eventtest.Events(5, 400) {
			if !seen[ev.ID] {
				events = append(events, ev)
			}
			seen[ev.ID] = true
		}
		batch := encoded(t, f, events)
		e := elasticAt(t, b, "audit-{tenant}-{month}")
		c := pump(t, e, batch)
		if requireTaken(t, c, batch, b.Taken()); len(c.dead) > 0 || len(b.Faults()) > 0 {
			t.Errorf("%s: dead: %v; %q", f, c.dead, b.Faults())
		}
		docs := b.Docs()
		for _, m := range batch {
			key := e.index.Of(m.Event) + "/" + m.Event.ID
			got, want := jsonOf(t, docs[key]), jsonOf(t, m.Body)
			if f != event.ECS {
				if got["@timestamp"] != m.Event.Time.Format("2006-01-02T15:04:05.000000Z") {
					t.Errorf("%s: %v", key, got["@timestamp"])
				}
				delete(got, "@timestamp")
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s", key, docs[key])
			}
		}
	}
}

var jsonFormats = []event.Format{event.JSON, event.OCSF18, event.OCSF13, event.ECS}

// Names of indexes are legal, and those of two tenants differ.
func TestIndexNames(t *testing.T) {
	x, err := ParseIndex("audit-{tenant}-{day}")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	tenants := append(slices.Clone(eventtest.Hostile), "acme", "ACME", "Acme", "a_c", "a__c", "a_5fc", "..", ".", "-", "ä", strings.Repeat("x", 300), strings.Repeat("x", 300)+"y", strings.Repeat("X", 255))
	for _, tenant := range tenants {
		name := x.Of(record(tenant, 1, ""))
		if other, ok := names[name]; ok && other != tenant {
			t.Errorf("%q and %q are both in %s", tenant, other, name)
		}
		names[name] = tenant
		if len(name) > 255 || strings.ToLower(name) != name || strings.ContainsAny(name, "\\/*?\"<>| ,#:{}\x00\n") {
			t.Errorf("%q", name)
		}
	}
	if got := x.Of(record("acme", 1, "")); got != "audit-acme-2026.05.15" {
		t.Error(got)
	}
	for _, bad := range []string{"", "Audit", "-audit", "_audit", "+a", ".a", "{tenant}", "a-{user}", "a-{tenant", "a}", "a b", "a/b", "a*", "a,b", "a:b", "a#", "ä", strings.Repeat("a", 129)} {
		if _, err := ParseIndex(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if got := slices.Sorted(maps.Keys(indexValues)); len(got) != 6 {
		t.Error("the pattern's help names six values", got)
	}
}

// FuzzIndex: no tenant makes a name that is not legal.
func FuzzIndex(f *testing.F) {
	for _, s := range eventtest.Hostile {
		f.Add(s)
	}
	x, err := ParseIndex("a-{tenant}.{topic}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, tenant string) {
		name := x.Of(&event.Event{Tenant: tenant})
		if len(name) > maxIndex || strings.Trim(name, lower+".-_") != "" || !strings.HasPrefix(name, "a-") {
			t.Errorf("%q", name)
		}
	})
}

// What is sent is lines of which no document makes two.
func TestElasticLines(t *testing.T) {
	e, err := NewElastic(ElasticOptions{Index: "audit", HTTP: at("http://elastic.example")})
	if err != nil {
		t.Fatal(err)
	}
	batch := encoded(t, event.JSON, eventtest.Events(9, 200))
	lines := bytes.Split(bytes.TrimSuffix(e.body(batch), []byte("\n")), []byte("\n"))
	if len(lines) != 2*len(batch) {
		t.Fatalf("%d lines of %d events", len(lines), len(batch))
	}
	for _, l := range lines {
		if !json.Valid(l) {
			t.Errorf("%s", l)
		}
	}
}

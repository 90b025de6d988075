package httpsink

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

var now = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)

// at returns how a test server is reached.
func at(url string) HTTP {
	return HTTP{URL: url, AllowPlaintext: true, Timeout: 10 * time.Second, Now: func() time.Time { return now }}
}

// serve starts a server that ends with the test.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// record returns a row of a tenant's log with content.
func record(tenant string, seq int64, content string) *event.Event {
	row := &chain.Row{Record: audit.Record{TenantID: audit.Str(tenant), Kind: audit.Str(audit.KindCall), CreatedAt: audit.I64(now.UnixMicro() + seq)}}
	row.Topic, row.TopicID, row.Partition = audit.Str(eventtest.Line.Topic), audit.Str(eventtest.Line.TopicID), audit.I64(3)
	row.Seq, row.Epoch, row.ArchivedAt = audit.I64(seq), audit.I64(0), audit.I64(now.UnixMicro())
	row.UserID = audit.Str(content)
	chain.NewHasher(nil).Stamp(row, chain.Hash{}, chain.Hash{byte(seq), byte(seq >> 8)})
	return event.NewRecord(eventtest.Line, row, true)
}

// messages returns n rows of a log, in a format. content says what is in row i.
func messages(t *testing.T, f event.Format, n int, content func(i int) string) []sink.Message {
	t.Helper()
	var events []*event.Event
	for i := range n {
		events = append(events, record("acme", int64(i), content(i)))
	}
	return encoded(t, f, events)
}

func encoded(t *testing.T, f event.Format, events []*event.Event) (all []sink.Message) {
	t.Helper()
	e, err := event.NewEncoder(f, event.EncoderOptions{ArchiveID: eventtest.ArchiveID})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		body, err := e.Append(nil, ev)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sink.Message{Event: ev, Body: body})
	}
	return all
}

func plain(i int) string { return fmt.Sprintf("user-%d", i) }

// ids returns the ids of a batch.
func ids(batch []sink.Message) (all []string) {
	for _, m := range batch {
		all = append(all, m.Event.ID)
	}
	return all
}

// A course is what became of a batch that was delivered until nothing of it was
// left, as the engine would.
type course struct {
	attempts  int
	dead      map[string]string // why, by id
	delivered []string
	end       *sink.Verdict // the destination stopped; nil: it did not
}

// pump delivers a batch until each of its messages was delivered or refused for
// good. before is called before each attempt; nil: nothing is.
func pump(t *testing.T, s sink.Sink, batch []sink.Message) *course {
	t.Helper()
	c := &course{dead: map[string]string{}}
	pending, most := slices.Clone(batch), len(batch)
	for len(pending) > 0 {
		if c.attempts++; c.attempts > 20*len(batch)+100 {
			t.Fatalf("%d of %d messages are still there after %d attempts", len(pending), len(batch), c.attempts)
		}
		n := min(most, len(pending))
		r := s.Deliver(t.Context(), pending[:n])
		if len(r.Verdicts) != n {
			t.Fatalf("%d verdicts on %d messages", len(r.Verdicts), n)
		}
		var kept []sink.Message
		most = len(batch)
		for i, v := range r.Verdicts {
			switch v.Outcome {
			case sink.Delivered:
				c.delivered = append(c.delivered, pending[i].Event.ID)
				continue
			case sink.Poison:
				c.dead[pending[i].Event.ID] = v.Reason
				continue
			case sink.Split:
				most = max(n/2, 1)
				if n == 1 {
					c.dead[pending[i].Event.ID] = v.Reason
					continue
				}
			case sink.Suspend:
				c.end = &v
				return c
			}
			kept = append(kept, pending[i])
		}
		pending = append(kept, pending[n:]...)
	}
	return c
}

// requireTaken requires that each message was taken, but for those that are dead,
// and nothing else; and returns how many were taken twice.
func requireTaken(t *testing.T, c *course, batch []sink.Message, taken []string) (repeats int) {
	t.Helper()
	times := map[string]int{}
	for _, id := range taken {
		if times[id]++; times[id] > 1 {
			repeats++
		}
	}
	for i, m := range batch {
		_, dead := c.dead[m.Event.ID]
		if dead == (times[m.Event.ID] > 0) {
			t.Errorf("event %d: taken %d times, dead %v", i, times[m.Event.ID], dead)
		}
		delete(times, m.Event.ID)
	}
	if len(times) > 0 {
		t.Errorf("%d events were taken that nobody sent", len(times))
	}
	return repeats
}

// A driver is one of ours, set to talk to a URL.
type driver struct {
	name   string
	format event.Format
	open   func(HTTP) (sink.Sink, error)
	// fine is an answer that says that n events were taken.
	fine func(w http.ResponseWriter, n int)
}

// The secrets of all drivers. None may be shown.
const (
	aToken = "s3cr3t-t0ken"
	aLogin = "dXNlcjpzM2NyM3QtdDBrZW4="
	aKey   = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5"
)

var drivers = []driver{
	{"webhook", event.JSON, func(h HTTP) (sink.Sink, error) {
		return NewWebhook(WebhookOptions{HTTP: h, Secrets: []string{aKey}, Path: "hooks/" + aToken})
	}, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusNoContent) }},
	{"splunk-hec", event.JSON, func(h HTTP) (sink.Sink, error) {
		return NewSplunk(SplunkOptions{HTTP: h, Token: aToken})
	}, func(w http.ResponseWriter, _ int) { fmt.Fprint(w, `{"text":"Success","code":0}`) }},
	{"elasticsearch", event.ECS, func(h HTTP) (sink.Sink, error) {
		return NewElastic(ElasticOptions{HTTP: h, Index: "audit", User: "user", Password: aToken})
	}, func(w http.ResponseWriter, n int) {
		var items []string
		for range n {
			items = append(items, `{"create":{"status":201}}`)
		}
		fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
	}},
	{"otlp", event.JSON, func(h HTTP) (sink.Sink, error) {
		h.Headers += "\nAuthorization: Bearer " + aToken
		return NewOTLP(OTLPOptions{HTTP: h})
	}, func(w http.ResponseWriter, _ int) { w.Header().Set("Content-Type", protobuf) }},
	{"datadog", event.JSON, func(h HTTP) (sink.Sink, error) {
		return NewDatadog(DatadogOptions{HTTP: h, APIKey: aToken})
	}, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusAccepted); fmt.Fprint(w, `{}`) }},
}

// each runs a test for each driver.
func each(t *testing.T, test func(t *testing.T, d *driver)) {
	for i := range drivers {
		t.Run(drivers[i].name, func(t *testing.T) { test(t, &drivers[i]) })
	}
}

func (d *driver) at(t *testing.T, h HTTP) sink.Sink {
	t.Helper()
	s, err := d.open(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	return s
}

func jsonOf(t *testing.T, body []byte) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

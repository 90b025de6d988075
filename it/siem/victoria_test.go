//go:build it

// Package siem delivers events to receivers that are not ours, and reads back
// what they have: that they answered 200 is not that they have it.
package siem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/httpsink"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// Everything that is delivered to VictoriaLogs by each of its protocols is there
// afterwards, once, value for value.
func TestVictoriaLogsHasAllOfIt(t *testing.T) {
	v, err := parts.StartVictoria(filepath.Join(t.TempDir(), "victoria"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Kill)
	events := someEvents(3000)
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			account := 100 + i
			s, err := p.open(httpsink.HTTP{
				URL: v.URL() + p.path, AllowPlaintext: true, Headers: fmt.Sprintf("AccountID: %d\nProjectID: 0", account),
				Compression: p.compression, Now: time.Now, Version: "it",
			})
			if err != nil {
				t.Fatal(err)
			}
			sent := deliverAll(t, s, p.format, events)
			found, err := v.Query(t.Context(), account, "*")
			if err != nil {
				t.Fatal(err)
			}
			requireSame(t, &p, sent, found)
		})
	}
}

// A protocol is a way into VictoriaLogs.
type protocol struct {
	name        string
	path        string
	compression httpsink.Compression
	format      event.Format
	open        func(httpsink.HTTP) (sink.Sink, error)
	id          string // the field that has the event's id; "" where the text has it
	// time returns the time that VictoriaLogs is to have; nil: the event's.
	time func(*event.Event) time.Time
	// want returns the fields of an event, without _time, _stream and _stream_id.
	want func(*message) map[string]string
}

var protocols = []protocol{
	{
		name: "elasticsearch json", path: "/insert/elasticsearch?_time_field=@timestamp&_stream_fields=tenant&preserve_json_keys=record&_msg_field=rowHash", compression: httpsink.Gzip,
		format: event.JSON, id: "id", open: elastic, want: func(m *message) map[string]string {
			f := flat(m.body, "record")
			if f["_msg"] = f["rowHash"]; f["_msg"] == "" {
				f["_msg"] = noMessage
			}
			delete(f, "rowHash")
			return f
		},
	},
	{
		name: "elasticsearch ecs", path: "/insert/elasticsearch?_time_field=@timestamp&_msg_field=message", compression: httpsink.None,
		format: event.ECS, id: "event.id", open: elastic, want: func(m *message) map[string]string {
			f := flat(m.body)
			f["_msg"] = f["message"]
			delete(f, "@timestamp")
			delete(f, "message")
			return f
		},
	},
	{
		name: "splunk-hec", path: "?preserve_json_keys=event", compression: httpsink.Gzip,
		format: event.JSON, open: splunk, want: splunkFields,
	},
	{
		name: "splunk-hec cef", path: "", compression: httpsink.None,
		format: event.CEF, open: splunk, want: splunkFields,
	},
	{
		name: "datadog", path: "/insert/datadog/api/v2/logs", compression: httpsink.Gzip, format: event.OCSF18,
		open: func(h httpsink.HTTP) (sink.Sink, error) {
			h.Now = func() time.Time { return lastDay.Add(time.Hour) }
			return httpsink.NewDatadog(httpsink.DatadogOptions{HTTP: h, APIKey: "k", Host: "h1", Tags: "env:it,team:audit"})
		},
		want: func(m *message) map[string]string {
			return map[string]string{"_msg": string(m.body), "ddsource": "ledgerlake", "service": "ledgerlake", "hostname": "h1", "env": "it", "team": "audit"}
		},
		time: func(ev *event.Event) time.Time {
			if lastDay.Sub(ev.Time) > time.Hour {
				return time.Time{} // that of the intake
			}
			return ev.Time.Truncate(time.Millisecond)
		},
	},
	{
		name: "otlp", path: "/insert/opentelemetry/v1/logs", compression: httpsink.Gzip, format: event.JSON,
		open: func(h httpsink.HTTP) (sink.Sink, error) {
			return httpsink.NewOTLP(httpsink.OTLPOptions{HTTP: h, ArchiveID: eventtest.ArchiveID, Resource: map[string]string{"env": "it"}})
		},
		id: "ledgerlake.id", want: otlpFields,
	},
}

func elastic(h httpsink.HTTP) (sink.Sink, error) {
	return httpsink.NewElastic(httpsink.ElasticOptions{HTTP: h, Index: "audit-{tenant}"})
}

func splunk(h httpsink.HTTP) (sink.Sink, error) {
	// A path of one's own is kept: that of the product is what the URL has none for.
	at, query, _ := strings.Cut(h.URL, "?")
	h.URL = at + "/insert/splunk/services/collector/event?" + query
	return httpsink.NewSplunk(httpsink.SplunkOptions{HTTP: h, Token: "t", Index: "audit", Source: "src", Sourcetype: "st", Host: "h1"})
}

// noMessage is the text of a log that has none.
const noMessage = "missing _msg field; see https://docs.victoriametrics.com/victorialogs/keyconcepts/#message-field"

// lastDay is the last of the days on which events happen.
var lastDay = time.Date(2026, 5, 7, 12, 0, 0, 0, time.UTC)

// A message is what was sent of an event.
type message struct {
	ev   *event.Event
	body []byte
}

// someEvents returns events, each once, all of them of one week: the receiver has
// a folder a day.
func someEvents(n int) (all []*event.Event) {
	seen := map[string]bool{}
	for i, ev := range eventtest.Events(7, n) {
		if seen[ev.ID] {
			continue
		}
		seen[ev.ID] = true
		one := *ev
		one.Time = lastDay.AddDate(0, 0, -(i % 7)).Add(time.Duration(i) * time.Microsecond)
		all = append(all, &one)
	}
	return all
}

// deliverAll delivers events in batches as the engine would, and returns what was
// sent.
func deliverAll(t *testing.T, s sink.Sink, f event.Format, events []*event.Event) (sent []message) {
	t.Helper()
	e, err := event.NewEncoder(f, event.EncoderOptions{ArchiveID: eventtest.ArchiveID, Version: "it"})
	if err != nil {
		t.Fatal(err)
	}
	for batch := range slices.Chunk(events, 200) {
		var messages []sink.Message
		for _, ev := range batch {
			body, err := e.Append(nil, ev)
			if err != nil {
				t.Fatal(err)
			}
			if l := s.Limits(); int64(len(body)) > l.EventBytes {
				ev = ev.Pointer()
				if body, err = e.Append(nil, ev); err != nil || int64(len(body)) > l.EventBytes {
					t.Fatalf("a pointer has %d bytes: %v", len(body), err)
				}
			}
			messages = append(messages, sink.Message{Event: ev, Body: body})
			sent = append(sent, message{ev, body})
		}
		deliver(t, s, messages)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sent
}

// deliver delivers a batch, in halves where it is too large.
func deliver(t *testing.T, s sink.Sink, batch []sink.Message) {
	t.Helper()
	r := s.Deliver(t.Context(), batch)
	switch {
	case r.Done():
	case r.Verdicts[0].Outcome == sink.Split && len(batch) > 1:
		deliver(t, s, batch[:len(batch)/2])
		deliver(t, s, batch[len(batch)/2:])
	default:
		t.Fatalf("%d events: %+v", len(batch), r.Verdicts[0])
	}
}

// requireSame requires that found is sent, and nothing else, value for value.
func requireSame(t *testing.T, p *protocol, sent []message, found []map[string]string) {
	t.Helper()
	if len(found) != len(sent) {
		t.Errorf("sent %d events, found %d", len(sent), len(found))
	}
	byKey := map[string]map[string]string{}
	for _, f := range found {
		key := f["_msg"]
		if p.id != "" {
			key = f[p.id]
		}
		byKey[key] = f
	}
	wrong := 0
	for i := range sent {
		m := &sent[i]
		key := string(m.body)
		if p.id != "" {
			key = m.ev.ID
		}
		got, ok := byKey[key]
		if !ok {
			t.Errorf("%s %s, seq %d, is not there", m.ev.Kind, m.ev.ID, m.ev.Seq)
			wrong++
		} else if fault := differs(got, p.want(m), p.timeOf(m.ev)); fault != "" {
			t.Errorf("%s %s, seq %d: %s", m.ev.Kind, m.ev.ID, m.ev.Seq, fault)
			wrong++
		}
		if wrong > 5 {
			t.Fatal("and more")
		}
	}
}

func (p *protocol) timeOf(ev *event.Event) time.Time {
	if p.time != nil {
		return p.time(ev)
	}
	return ev.Time
}

// differs says what a log has that it should not have, or the other way round.
func differs(got, want map[string]string, at time.Time) string {
	if !at.IsZero() && got["_time"] != at.Format(time.RFC3339Nano) {
		return fmt.Sprintf("its time is %s, want %v", got["_time"], at)
	}
	got = maps.Clone(got)
	for _, own := range []string{"_time", "_stream", "_stream_id"} {
		delete(got, own)
	}
	maps.DeleteFunc(want, func(_, v string) bool { return v == "" }) // no value, to VictoriaLogs
	for name := range want {
		if got[name] != want[name] && !sameJSON(got[name], want[name]) {
			return fmt.Sprintf("%s is %.300q, want %.300q", name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return fmt.Sprintf("%s is %.300q, and was not sent", name, got[name])
		}
	}
	return ""
}

// sameJSON reports whether two texts are the same list or object. VictoriaLogs
// writes strings in them as Go would, and not as JSON.
func sameJSON(got, want string) bool {
	got = escapes.ReplaceAllStringFunc(got, func(e string) string {
		switch e[1] {
		case 'a':
			return `\u0007`
		case 'v':
			return `\u000b`
		case 'x':
			return `\u00` + e[2:]
		}
		return e
	})
	x, okx := value(got)
	y, oky := value(want)
	return okx && oky && reflect.DeepEqual(x, y)
}

var escapes = regexp.MustCompile(`\\(x[0-9a-f]{2}|.)`)

func value(text string) (v any, ok bool) {
	if text == "" || text[0] != '[' && text[0] != '{' {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// flat returns the members of an object as VictoriaLogs has them: names joined by
// dots, lists and what is kept whole as their JSON, null as nothing.
func flat(body []byte, whole ...string) map[string]string {
	all := map[string]string{}
	flatten(all, "", body, whole)
	return all
}

func flatten(all map[string]string, prefix string, body []byte, whole []string) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		panic(err)
	}
	for name, v := range members {
		name = prefix + name
		var text string
		switch {
		case slices.Contains(whole, name):
			all[name] = string(v)
		case v[0] == '{':
			flatten(all, name+".", v, whole)
		case v[0] == '"':
			if err := json.Unmarshal(v, &text); err != nil {
				panic(err)
			}
			all[name] = text
		case !bytes.Equal(v, []byte("null")):
			all[name] = string(v)
		}
	}
}

// splunkFields are what HEC has of an event.
func splunkFields(m *message) map[string]string {
	f := map[string]string{
		"_msg": string(m.body), "host": "h1", "source": "src", "sourcetype": "st", "index": "audit",
		"fields.ledgerlake_id": m.ev.ID, "fields.ledgerlake_event": string(m.ev.Kind), "fields.ledgerlake_tenant": m.ev.Tenant,
	}
	if m.ev.Tenant != "" {
		f["fields.ledgerlake_log"] = fmt.Sprintf("%s/%s/%d", m.ev.Line.Topic, m.ev.Line.TopicID, m.ev.Line.Partition)
	}
	if m.ev.IsRow() {
		f["fields.ledgerlake_seq"] = strconv.FormatInt(m.ev.Seq, 10)
	}
	return f
}

// otlpFields are what OTLP has of an event.
func otlpFields(m *message) map[string]string {
	e, err := event.NewEncoder(event.JSON, event.EncoderOptions{ArchiveID: eventtest.ArchiveID, Version: "it"})
	if err != nil {
		panic(err)
	}
	l := e.OTLP(m.ev)
	f := map[string]string{
		"_msg": string(m.body), "service.name": "ledgerlake", "service.version": "it", "ledgerlake.archive_id": eventtest.ArchiveID, "env": "it",
		"scope.name": httpsink.Scope, "scope.version": "it", "event_name": l.EventName,
		"severity_number": strconv.Itoa(l.SeverityNumber), "severity_text": l.SeverityText,
	}
	for _, a := range l.Attributes {
		switch a.Type {
		case event.IntAttribute:
			f[a.Key] = strconv.FormatInt(a.Int, 10)
		case event.BoolAttribute:
			f[a.Key] = strconv.FormatBool(a.Bool)
		case event.TextsAttribute:
			texts := []string{}
			for _, text := range a.Texts {
				texts = append(texts, strings.ToValidUTF8(text, "\ufffd"))
			}
			list, err := json.Marshal(texts)
			if err != nil {
				panic(err)
			}
			f[a.Key] = string(list)
		default:
			f[a.Key] = strings.ToValidUTF8(a.Text, "\ufffd")
		}
	}
	return f
}

// The queries of docs/export-gaps.md over VictoriaLogs find nothing in what was
// delivered, repeats or not, and the one row that was not.
func TestGapQueriesOfVictoriaLogs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "export-gaps.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## VictoriaLogs, by HTTP\n")
	text, _, _ = strings.Cut(text, "\n## ")
	queries := strings.Split(text, "```\n")
	if len(queries) != 9 {
		t.Fatalf("%d queries", len(queries)/2)
	}
	v, err := parts.StartVictoria(filepath.Join(t.TempDir(), "victoria"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Kill)
	for i, name := range []string{"elasticsearch json", "splunk-hec", "otlp", "datadog"} {
		p := protocols[slices.IndexFunc(protocols, func(p protocol) bool { return p.name == name })]
		for _, whole := range []bool{true, false} {
			account := 200 + 2*i
			events, tenant := plainEvents(1500), ""
			if !whole {
				account++
				events, tenant = without(events)
			}
			s, err := p.open(httpsink.HTTP{
				URL: v.URL() + p.path, AllowPlaintext: true, Headers: fmt.Sprintf("AccountID: %d", account), Compression: httpsink.Gzip, Now: time.Now,
			})
			if err != nil {
				t.Fatal(err)
			}
			deliverAll(t, s, event.JSON, events)
			if s, err = p.open(httpsink.HTTP{URL: v.URL() + p.path, AllowPlaintext: true, Headers: fmt.Sprintf("AccountID: %d", account), Now: time.Now}); err != nil {
				t.Fatal(err)
			}
			deliverAll(t, s, event.JSON, events[:100]) // repeats
			found, err := v.Query(t.Context(), account, strings.TrimSpace(queries[2*i+1]))
			if err != nil {
				t.Fatal(err)
			}
			if whole && len(found) != 0 {
				t.Errorf("%s: %v", name, found)
			}
			if !whole && (len(found) != 1 || found[0]["missing"] != "1" || !slices.Contains(slices.Collect(maps.Values(found[0])), tenant)) {
				t.Errorf("%s: %v, want 1 of %s", name, found, tenant)
			}
		}
	}
}

// What docs/destinations.md says of deleting from VictoriaLogs deletes the rows
// that a notice names, and no others.
func TestVictoriaLogsDeletes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "destinations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, filter, ok := strings.Cut(string(page), "`POST /delete/run_task` with `filter` as `")
	filter, _, _ = strings.Cut(filter, "`")
	if !ok {
		t.Fatal("the page has no filter")
	}
	filter = strings.NewReplacer("TOPICID", eventtest.Line.TopicID, `:="3"`, fmt.Sprintf(":=\"%d\"", eventtest.Line.Partition), "range[11, 971]", "range[11, 20]").Replace(filter)
	v, err := parts.StartVictoria(filepath.Join(t.TempDir(), "victoria"), "-delete.enable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Kill)
	p := protocols[slices.IndexFunc(protocols, func(p protocol) bool { return p.name == "otlp" })]
	s, err := p.open(httpsink.HTTP{URL: v.URL() + p.path, AllowPlaintext: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	events := plainEvents(1500)
	deliverAll(t, s, event.JSON, events)
	left := map[string]bool{}
	for _, ev := range events {
		if ev.Tenant != "acme" || !ev.IsRow() || ev.Seq < 11 || ev.Seq > 20 {
			left[ev.ID] = true
		}
	}
	if found, err := v.Query(t.Context(), 0, "*"); err != nil || len(found) != len(events) || len(left) != len(events)-10 {
		t.Fatalf("%d of %d events, %d to be left: %v", len(found), len(events), len(left), err)
	}
	res, err := http.PostForm(v.URL()+"/delete/run_task", url.Values{"filter": {filter}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	for range 100 { // it deletes in its own time
		if gone := missing(t, v, left); gone == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error(missing(t, v, left))
}

// missing says which events are there that should not be, or the other way round.
// Of what it deleted, VictoriaLogs may keep the time and the stream.
func missing(t *testing.T, v *parts.Victoria, want map[string]bool) string {
	t.Helper()
	found, err := v.Query(t.Context(), 0, `"ledgerlake.id":* | fields "ledgerlake.id"`)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range found {
		if id := f["ledgerlake.id"]; !want[id] {
			return id + " is still there"
		}
		there[f["ledgerlake.id"]] = true
	}
	if len(there) != len(want) {
		return fmt.Sprintf("%d events are gone that were not meant", len(want)-len(there))
	}
	return ""
}

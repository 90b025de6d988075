// Package telemetrytest is a collector of OpenTelemetry in the process: it takes
// spans by OTLP over HTTP, and is as strict as the protocol.
//
// Source: OpenTelemetry Protocol Specification 1.9, "OTLP/HTTP".
package telemetrytest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Collector keeps the spans that it is sent.
type Collector struct {
	URL string // OTEL_EXPORTER_OTLP_ENDPOINT

	t       testing.TB
	mu      sync.Mutex
	answers []int
	asked   int
	header  http.Header
	got     []*otlp.ResourceSpans
}

// New returns a collector that gives the next requests those answers, with a
// Retry-After of 7 seconds, and takes what comes then.
func New(t testing.TB, answers ...int) *Collector {
	c := &Collector{t: t, answers: answers}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// ServeHTTP implements [http.Handler].
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if len(c.answers) > 0 {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(c.answers[0])
		c.answers = c.answers[1:]
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("%s %s of type %q", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusNotFound)
		return
	}
	spans, err := read(r)
	if err != nil {
		c.t.Error(err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.header, c.got = r.Header.Clone(), append(c.got, spans...)
}

// read reads an ExportTraceServiceRequest. It is one field, resource_spans = 1, as
// TracesData is, whose package does without gRPC.
func read(r *http.Request) ([]*otlp.ResourceSpans, error) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			return nil, err
		}
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var data otlp.TracesData
	err = proto.Unmarshal(b, &data)
	return data.ResourceSpans, err
}

// Asked returns how many requests there were, and the headers of the last that was
// taken.
func (c *Collector) Asked() (int, http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.header
}

// Got returns all that was taken.
func (c *Collector) Got() []*otlp.ResourceSpans {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// Spans returns the spans of a name that were taken.
func (c *Collector) Spans(name string) (all []*otlp.Span) {
	for _, r := range c.Got() {
		for _, s := range r.ScopeSpans {
			for _, span := range s.Spans {
				if span.Name == name {
					all = append(all, span)
				}
			}
		}
	}
	return all
}

// Children returns the names of the spans right below one, in the order in which
// they began, and of those that began together in that of their names.
func (c *Collector) Children(parent *otlp.Span) (names []string) {
	var all []*otlp.Span
	for _, r := range c.Got() {
		for _, s := range r.ScopeSpans {
			for _, span := range s.Spans {
				if string(span.ParentSpanId) == string(parent.SpanId) && string(span.TraceId) == string(parent.TraceId) {
					all = append(all, span)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b *otlp.Span) int {
		switch {
		case a.StartTimeUnixNano != b.StartTimeUnixNano && a.StartTimeUnixNano < b.StartTimeUnixNano:
			return -1
		case a.StartTimeUnixNano != b.StartTimeUnixNano:
			return 1
		case a.Name < b.Name:
			return -1
		}
		return 1
	})
	for _, span := range all {
		names = append(names, span.Name)
	}
	return names
}

// Attribute returns an attribute of a span, as text or as number.
func Attribute(s *otlp.Span, name string) (text string, number int64) {
	for _, kv := range s.Attributes {
		if kv.Key == name {
			return kv.Value.GetStringValue(), kv.Value.GetIntValue()
		}
	}
	return "", 0
}

// Linked returns the ids of the traces that a span is linked to, as hexadecimal.
func Linked(s *otlp.Span) (traces []string) {
	for _, l := range s.Links {
		traces = append(traces, hex.EncodeToString(l.TraceId))
	}
	return traces
}

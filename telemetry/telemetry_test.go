package telemetry

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ledgerlake/ledgerlake/telemetry/telemetrytest"
)

// What the environment says is read as OpenTelemetry says it; a value that would
// mean something else than what is done is refused, by the name of the variable.
func TestRead(t *testing.T) {
	const at = "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318"
	for _, tt := range []struct {
		environ []string
		want    string // endpoint, or the variable that is refused
	}{
		{nil, ""},
		{[]string{"PATH=/bin", "OTEL_SERVICE_NAME=x"}, ""},
		{[]string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, ""}, // nothing is sent
		{[]string{at}, "http://collector:4318/v1/traces"},
		{[]string{at + "/prefix/"}, "http://collector:4318/prefix/v1/traces"},
		{[]string{at, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://t:1/x"}, "https://t:1/x"},
		{[]string{at, "OTEL_SDK_DISABLED=true"}, ""},
		{[]string{at, "OTEL_TRACES_EXPORTER=none"}, ""},
		{[]string{at, "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_TRACES_SAMPLER=parentbased_traceidratio"}, "http://collector:4318/v1/traces"},
		{[]string{at, "OTEL_TRACES_EXPORTER=jaeger"}, "OTEL_TRACES_EXPORTER"},
		{[]string{at, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL"},
		{[]string{at, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"},
		{[]string{at, "OTEL_EXPORTER_OTLP_COMPRESSION=zstd"}, "OTEL_EXPORTER_OTLP_COMPRESSION"},
		{[]string{at, "OTEL_TRACES_SAMPLER=jaeger_remote"}, "OTEL_TRACES_SAMPLER"},
		{[]string{at, "OTEL_EXPORTER_OTLP_HEADERS=secret"}, "OTEL_EXPORTER_OTLP_HEADERS"},
		{[]string{at, "OTEL_EXPORTER_OTLP_HEADERS=a=secret%zz"}, "OTEL_EXPORTER_OTLP_HEADERS"},
		{[]string{at, "OTEL_EXPORTER_OTLP_TIMEOUT=10s"}, "OTEL_EXPORTER_OTLP_TIMEOUT"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=grpc://collector:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT"},
	} {
		s, err := Read(tt.environ)
		var fault *Error
		switch {
		case errors.As(err, &fault):
			if fault.Name != tt.want || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: %v, want a fault of %s", tt.environ, err, tt.want)
			}
		case err != nil || s.Endpoint != tt.want || s.On() != (tt.want != ""):
			t.Errorf("%v: %q, %v, want %q", tt.environ, s.Endpoint, err, tt.want)
		}
	}
	s, err := Read([]string{at, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20a%3Db, x = y ,", "OTEL_EXPORTER_OTLP_TIMEOUT=250", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip"})
	if want := map[string]string{"authorization": "Bearer a=b", "x": "y"}; err != nil || !maps.Equal(s.Headers, want) || s.Timeout != 250*time.Millisecond || !s.Gzip {
		t.Errorf("%+v, %v", s, err)
	}
}

// inMemory returns a tracer whose spans can be looked at.
func inMemory(t *testing.T) (*Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	to, err := With(t.Context(), Options{Service: "s", Version: "1"}, sdk.WithSyncer(out))
	if err != nil {
		t.Fatal(err)
	}
	return to, out
}

const (
	trace1 = "4bf92f3577b34da6a3ce929d0e0e4736"
	trace2 = "0af7651916cd43dd8448eb211c80319c"
)

// A tree of spans is recorded as it was: times, places, links in their order, of
// which those that are none are left out.
func TestRecord(t *testing.T) {
	to, out := inMemory(t)
	at := func(s int64) time.Time { return time.Unix(1_800_000_000+s, 0) }
	named := to.Record(&Span{
		Name: "a", Kind: Consumer, Began: at(0), Ended: at(5), Attributes: []Attribute{Number("n", 3), Text("t", "x"), Flag("f", true)},
		Links:    []Context{{Parent: "00-" + trace1 + "-00f067aa0ba902b7-01", State: "v=1"}, {Parent: "no"}, {}, {Parent: "00-" + trace2 + "-b7ad6b7169203331-00"}},
		Children: []Span{{Name: "b", Began: at(1), Ended: at(2)}, {Name: "c", Kind: Client, Began: at(2), Ended: at(4), Failed: "refused"}},
	})
	got := map[string]tracetest.SpanStub{}
	for _, s := range out.GetSpans() {
		got[s.Name] = s
	}
	a, b, c := got["a"], got["b"], got["c"]
	if len(got) != 3 || !a.StartTime.Equal(at(0)) || !a.EndTime.Equal(at(5)) || a.Parent.IsValid() || a.SpanKind != Consumer || len(a.Attributes) != 3 {
		t.Fatalf("%+v", got)
	}
	if len(a.Links) != 2 || a.Links[0].SpanContext.TraceID().String() != trace1 || a.Links[0].SpanContext.TraceState().String() != "v=1" || a.Links[1].SpanContext.TraceID().String() != trace2 {
		t.Errorf("links: %+v", a.Links)
	}
	for _, child := range []tracetest.SpanStub{b, c} {
		if child.Parent.SpanID() != a.SpanContext.SpanID() || child.SpanContext.TraceID() != a.SpanContext.TraceID() {
			t.Errorf("%s is no child of a", child.Name)
		}
	}
	if c.Status.Code != codes.Error || c.Status.Description != "refused" || !c.EndTime.Equal(at(4)) || b.Status.Code != codes.Unset {
		t.Errorf("b %+v, c %+v", b.Status, c.Status)
	}
	// What names a span is what another process, or a later span, goes by.
	out.Reset()
	to.Record(&Span{Name: "d", Parent: named})
	if d := out.GetSpans()[0]; d.Parent.SpanID() != a.SpanContext.SpanID() || d.SpanContext.TraceID() != a.SpanContext.TraceID() {
		t.Errorf("d is no child of a: %+v", d)
	}
	out.Reset()
	// Who asked does not want to be sampled.
	if to.Record(&Span{Name: "e", Parent: Context{Parent: "00-" + trace1 + "-00f067aa0ba902b7-00"}}) != (Context{}) || len(out.GetSpans()) != 0 {
		t.Errorf("it was sampled: %+v", out.GetSpans())
	}
}

// No tracer is no cost.
func TestNobodyTakesTraces(t *testing.T) {
	to, err := New(t.Context(), Options{Service: "s"})
	if to != nil || err != nil {
		t.Fatalf("%v, %v", to, err)
	}
	s := &Span{Name: "a"}
	if n := testing.AllocsPerRun(100, func() { to.Record(s) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	to.Close(time.Hour)
}

// sent returns a tracer that sends to a collector, and what it waited and warned of.
func sent(t *testing.T, s Settings, do func(*Tracer)) (waited []time.Duration, warned []string) {
	t.Helper()
	c, err := newClient(s)
	if err != nil {
		t.Fatal(err)
	}
	c.wait = func(ctx context.Context, d time.Duration) error {
		waited = append(waited, d)
		return ctx.Err()
	}
	o := Options{Service: "ledgerlake-x", Version: "1.2", Settings: s, Warn: func(err error) { warned = append(warned, err.Error()) }}
	to, err := newTracer(t.Context(), o, c)
	if err != nil {
		t.Fatal(err)
	}
	do(to)
	to.Close(10 * time.Second)
	return waited, warned
}

// Spans arrive by OTLP with the headers that were set, after a collector that was
// busy let them; one that refuses them gets them once, and somebody is told.
func TestSent(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	for _, zip := range []bool{false, true} {
		c := telemetrytest.New(t, 503, 429)
		s := Settings{Endpoint: c.URL + "/v1/traces", Timeout: time.Minute, Gzip: zip, Headers: map[string]string{"authorization": "Bearer x"}}
		waited, warned := sent(t, s, func(to *Tracer) { to.Record(&Span{Name: "a", Children: []Span{{Name: "b"}}}) })
		if want := []time.Duration{7 * time.Second, 7 * time.Second}; !slices.Equal(waited, want) || warned != nil {
			t.Errorf("waited %v, want %v; warned of %v", waited, want, warned)
		}
		_, header := c.Asked()
		if header.Get("Authorization") != "Bearer x" || (header.Get("Content-Encoding") == "gzip") != zip {
			t.Errorf("headers: %v", header)
		}
		about := map[string]string{}
		for _, kv := range c.Got()[0].Resource.Attributes {
			about[kv.Key] = kv.Value.GetStringValue()
		}
		if about["service.name"] != "ledgerlake-x" || about["service.version"] != "1.2" || about["deployment.environment.name"] != "test" {
			t.Errorf("resource: %v", about)
		}
		if spans := c.Got()[0].ScopeSpans[0]; spans.Scope.Name != Scope || len(spans.Spans) != 2 {
			t.Errorf("spans: %v", spans)
		}
	}
	c := telemetrytest.New(t, 400, 500)
	waited, warned := sent(t, Settings{Endpoint: c.URL, Timeout: time.Minute}, func(to *Tracer) { to.Record(&Span{Name: "a"}) })
	if asked, _ := c.Asked(); waited != nil || len(warned) != 1 || !strings.Contains(warned[0], "the collector answers 400") || asked != 1 {
		t.Errorf("asked %d times, waited %v, warned of %v", asked, waited, warned)
	}
}

// A collector that does not answer holds up no stop for longer than it may.
func TestCloseIsBounded(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	warned := make(chan error, 1)
	to, err := New(t.Context(), Options{Service: "s", Settings: Settings{Endpoint: server.URL, Timeout: time.Hour}, Warn: func(err error) {
		select {
		case warned <- err:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	to.Record(&Span{Name: "a"})
	ended := make(chan struct{})
	go func() { to.Close(50 * time.Millisecond); close(ended) }()
	select {
	case <-ended:
		if len(warned) == 0 {
			t.Error("nobody heard that spans were lost")
		}
	case <-time.After(30 * time.Second):
		t.Error("it is held up for ever")
	}
}

func BenchmarkRecordOff(b *testing.B) {
	var to *Tracer
	s := &Span{Name: "a"}
	b.ReportAllocs()
	for b.Loop() {
		to.Record(s)
	}
}

// Package telemetry sends what a process did as traces of OpenTelemetry, by OTLP
// over HTTP in protobuf.
//
//	OTEL_EXPORTER_OTLP_ENDPOINT   set: spans go there; not set: nothing is made, and nothing costs
//
// Engines know nothing of it: they report values ([Span] is made of them), when
// what is told has ended. So a span is never open, and what is recorded is a
// whole tree at once.
//
// A span names a topic, a partition, an ordinal, a destination, a route; never a
// tenant, a user, a key of a record, or anything of what a record says. The text
// of an error may name a tenant, and is left out: Failed is one of a few words.
//
// Settings are OpenTelemetry's own ([Read]); sources: OpenTelemetry
// Specification 1.50, "Environment Variable Specification" and "OTLP Exporter
// Configuration"; W3C Trace Context.
//
// The package does not measure: metrics are Prometheus'.
package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation scope.
const Scope = "github.com/ledgerlake/ledgerlake"

// A Tracer records spans. nil records none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	warn     func(error) // nil: nobody hears
}

// Options say what the spans are of.
type Options struct {
	Service, Version string
	Settings         Settings
	Warn             func(error) // hears of spans that could not be sent; they are dropped
}

// New returns a tracer; nil where the settings say that there is none. It sends
// nothing yet.
func New(ctx context.Context, o Options) (*Tracer, error) {
	if !o.Settings.On() {
		return nil, nil
	}
	c, err := newClient(o.Settings)
	if err != nil {
		return nil, err
	}
	return newTracer(ctx, o, c)
}

func newTracer(ctx context.Context, o Options, c *client) (*Tracer, error) {
	exporter, err := otlptrace.New(ctx, c)
	if err != nil {
		return nil, err
	}
	return With(ctx, o, sdk.WithBatcher(&telling{exporter, o.Warn}))
}

// With is New with a way out of one's own, for tests: WithSyncer or WithBatcher
// of the SDK.
func With(ctx context.Context, o Options, out sdk.TracerProviderOption) (*Tracer, error) {
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", o.Service), attribute.String("service.version", o.Version)),
		resource.WithFromEnv(), // goes before what stands above
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	p := sdk.NewTracerProvider(out, sdk.WithResource(about))
	return &Tracer{p, p.Tracer(Scope, trace.WithInstrumentationVersion(o.Version)), o.Warn}, nil
}

// Close sends what is left, for so long at most, and ends the tracer. What is not
// sent by then is lost, which Warn hears.
func (t *Tracer) Close(within time.Duration) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && t.warn != nil {
		t.warn(fmt.Errorf("the last spans: %w", err))
	}
}

// telling tells of spans that could not be sent; the SDK would tell the whole
// process.
type telling struct {
	sdk.SpanExporter
	warn func(error)
}

// ExportSpans implements [sdk.SpanExporter].
func (e *telling) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && e.warn != nil {
		e.warn(fmt.Errorf("%d spans: %w", len(spans), err))
	}
	return nil
}

package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A Span is something that was done, with what was done in the course of it.
type Span struct {
	Name         string
	Kind         Kind
	Began, Ended time.Time
	Parent       Context   // of another process; zero: it begins a trace
	Links        []Context // what else led to it; those that are not valid are left out
	Attributes   []Attribute
	Failed       string // one of a few words; "": it did not fail
	Children     []Span // their Parent is this span
}

// A Kind is what a span is to others.
type Kind = trace.SpanKind

// Kinds.
const (
	Internal = trace.SpanKindInternal
	Server   = trace.SpanKindServer
	Client   = trace.SpanKindClient
	Consumer = trace.SpanKindConsumer
)

// An Attribute is a name and a value.
type Attribute = attribute.KeyValue

// Text returns an attribute that is a text.
func Text(name, value string) Attribute { return attribute.String(name, value) }

// Number returns an attribute that is a number.
func Number(name string, value int64) Attribute { return attribute.Int64(name, value) }

// Flag returns an attribute that is true or false.
func Flag(name string, value bool) Attribute { return attribute.Bool(name, value) }

// A Context names a span, as the headers traceparent and tracestate of W3C Trace
// Context do. The zero Context names none.
type Context struct{ Parent, State string }

var w3c = propagation.TraceContext{}

// span returns what c names; it is not valid where c is not.
func (c Context) span() trace.SpanContext {
	if c.Parent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": c.Parent, "tracestate": c.State}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), carrier))
}

// Record records a span and all below it, and returns what names it: zero where it
// is not sampled, or t is nil.
func (t *Tracer) Record(s *Span) Context {
	if t == nil {
		return Context{}
	}
	ctx := context.Background()
	if parent := s.Parent.span(); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx = t.record(ctx, s)
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return Context{}
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return Context{carrier["traceparent"], carrier["tracestate"]}
}

func (t *Tracer) record(ctx context.Context, s *Span) context.Context {
	ctx, span := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Began), trace.WithSpanKind(s.Kind), trace.WithLinks(links(s.Links)...), trace.WithAttributes(s.Attributes...))
	for i := range s.Children {
		t.record(ctx, &s.Children[i])
	}
	if s.Failed != "" {
		span.SetStatus(codes.Error, s.Failed)
	}
	span.End(trace.WithTimestamp(s.Ended))
	return ctx
}

// links returns those contexts that are valid.
func links(all []Context) []trace.Link {
	valid := make([]trace.Link, 0, len(all))
	for _, c := range all {
		if sc := c.span(); sc.IsValid() {
			valid = append(valid, trace.Link{SpanContext: sc})
		}
	}
	return valid
}

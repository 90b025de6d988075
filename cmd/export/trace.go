package main

import (
	"net/http"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/telemetry"
)

// tracedStream returns events of which attempts are also traced; ev alone where
// nobody takes traces. docs/tracing.md has the spans.
func tracedStream(to *telemetry.Tracer, ev stream.Events) stream.Events {
	if to != nil {
		ev.Attempted = func(destination string, l archive.Line, a stream.Attempt) { to.Record(attemptSpan(destination, l, &a)) }
	}
	return ev
}

func attemptSpan(destination string, l archive.Line, a *stream.Attempt) *telemetry.Span {
	failed := ""
	switch {
	case a.Retry > 0:
		failed = "not taken yet"
	case a.Delivered < a.Events:
		failed = "refused"
	}
	return &telemetry.Span{
		Name: "export batch", Kind: telemetry.Internal, Began: a.Opened, Ended: a.Ended,
		Attributes: []telemetry.Attribute{
			telemetry.Text("ledgerlake.destination", destination), telemetry.Text("ledgerlake.topic", l.Topic), telemetry.Number("ledgerlake.partition", int64(l.Partition)),
			telemetry.Number("ledgerlake.events", int64(a.Events)), telemetry.Flag("ledgerlake.backfill", a.Backfill),
		},
		Children: []telemetry.Span{{
			Name: "deliver", Kind: telemetry.Client, Began: a.Began, Ended: a.Ended, Failed: failed,
			Attributes: []telemetry.Attribute{telemetry.Number("ledgerlake.delivered", int64(a.Delivered)), telemetry.Number("ledgerlake.bytes", a.Bytes)},
		}},
	}
}

// tracedServe is the same for what is answered.
func tracedServe(to *telemetry.Tracer, ev serve.Events) serve.Events {
	if to == nil {
		return ev
	}
	answered := ev.Answered
	ev.Answered = func(q serve.Request) { answered(q); to.Record(answerSpan(&q)) }
	return ev
}

// answerSpan returns an answer as a span. Only who has a token says of which trace
// it is a part: it decides whether the span is sampled, too.
func answerSpan(q *serve.Request) *telemetry.Span {
	s := &telemetry.Span{
		Name: "GET", Kind: telemetry.Server, Began: q.Began, Ended: q.Began.Add(q.Duration),
		Attributes: []telemetry.Attribute{telemetry.Number("http.response.status_code", int64(q.Status)), telemetry.Number("http.response.body.size", q.Bytes)},
	}
	if q.Route != "" {
		s.Name += " " + q.Route
		s.Attributes = append(s.Attributes, telemetry.Text("http.route", q.Route))
	}
	if q.Token != "" {
		s.Parent = telemetry.Context{Parent: q.TraceParent, State: q.TraceState}
	}
	if q.Status >= http.StatusInternalServerError {
		s.Failed = "not answered as it should have been"
	}
	return s
}

package main

import (
	"context"
	"errors"

	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/telemetry"
)

// traced returns events of which passes are also traced; ev alone where nobody
// takes traces. docs/tracing.md has the spans.
func traced(to *telemetry.Tracer, ev compaction.Events) compaction.Events {
	if to == nil {
		return ev
	}
	ended := ev.Ended
	ev.Ended = func(r *compaction.Result, err error) {
		ended(r, err)
		if did(r, err) {
			to.Record(passSpan(r, err))
		}
	}
	return ev
}

// did reports whether a pass is worth a trace: most find nothing to do.
func did(r *compaction.Result, err error) bool {
	if err != nil {
		return !errors.Is(err, context.Canceled)
	}
	return r.Wrote || r.Deleted > 0 || len(r.Kept) > 0
}

// passSpan returns a pass as a span, with its phases.
func passSpan(r *compaction.Result, err error) *telemetry.Span {
	s := &telemetry.Span{
		Name: "compact pass", Kind: telemetry.Internal, Began: r.Began, Ended: r.Ended, Failed: failedBy(err),
		Attributes: []telemetry.Attribute{
			telemetry.Text("ledgerlake.topic", r.Line.Topic), telemetry.Number("ledgerlake.partition", int64(r.Line.Partition)),
			telemetry.Number("ledgerlake.segments", r.Segments), telemetry.Number("ledgerlake.rows", r.Rows), telemetry.Number("ledgerlake.files", r.Files),
			telemetry.Number("ledgerlake.bytes", r.FileBytes), telemetry.Number("ledgerlake.erased", r.Erased), telemetry.Number("ledgerlake.dropped", r.Dropped), telemetry.Number("ledgerlake.deleted", r.Deleted),
		},
	}
	if r.Wrote && r.Catalog != nil {
		s.Attributes = append(s.Attributes, telemetry.Number("ledgerlake.catalog", r.Catalog.Version))
	}
	var within []telemetry.Span // read, which ends before compact does
	for i, ph := range r.Phases {
		span := telemetry.Span{Name: ph.Name, Began: ph.Began, Ended: ph.Ended}
		if err != nil && i == len(r.Phases)-1 {
			span.Failed = s.Failed
		}
		switch ph.Name {
		case "read":
			within = append(within, span)
			continue
		case "compact":
			span.Children, within = within, nil
		}
		if span.Failed != "" || span.Children != nil || ph.Ended.Sub(ph.Began) >= shortPhase {
			s.Children = append(s.Children, span)
		}
	}
	return s
}

// shortPhase: a phase that is shorter had nothing to do.
const shortPhase = 1e6 // ns

// failedBy returns why a pass failed, in a word.
func failedBy(err error) string {
	switch {
	case err == nil:
		return ""
	case halted(err):
		return "halted"
	case errors.Is(err, compaction.ErrRaced):
		return "raced"
	}
	return "failed"
}

package main

import (
	"strconv"
	"sync"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/telemetry"
)

// mostLinks is how many trace contexts of its records a batch is linked to at
// most; the SDK has the same limit by default (OTEL_SPAN_LINK_COUNT_LIMIT).
const mostLinks = 128

// A tracing makes spans of what the pipeline did. docs/tracing.md has them.
type tracing struct {
	to *telemetry.Tracer

	mu     sync.Mutex
	newest map[archive.Line]telemetry.Context // batches of which Kafka has not been told yet
}

// traced returns events that are also traced; ev alone where nobody takes traces.
func traced(to *telemetry.Tracer, ev pipeline.Events) pipeline.Events {
	if to == nil {
		return ev
	}
	t := &tracing{to: to, newest: map[archive.Line]telemetry.Context{}}
	committed, offsets, revoked := ev.Committed, ev.Offsets, ev.Revoked
	ev.Committed = func(c pipeline.Commit) { committed(c); t.committed(&c) }
	ev.Offsets = func(o pipeline.OffsetCommit) { offsets(o); t.offsets(&o) }
	ev.Revoked = func(l archive.Line) { revoked(l); t.take(l) }
	return ev
}

// place is where something was done, as attributes.
func place(l archive.Line) []telemetry.Attribute {
	return []telemetry.Attribute{
		telemetry.Text("messaging.system", "kafka"), telemetry.Text("messaging.destination.name", l.Topic),
		telemetry.Text("messaging.destination.partition.id", strconv.Itoa(int(l.Partition))),
	}
}

// committed records a batch; of one that another process wrote there is nothing
// to tell.
func (t *tracing) committed(c *pipeline.Commit) {
	if c.Adopted {
		return
	}
	batch := telemetry.Span{
		Name: "ingest batch", Kind: telemetry.Consumer, Began: c.Opened, Ended: c.Durable, Links: make([]telemetry.Context, len(c.Contexts)),
		Attributes: append(place(c.Line), telemetry.Number("messaging.batch.message_count", int64(len(c.Timestamps))),
			telemetry.Number("ledgerlake.ordinal", c.Ordinal), telemetry.Number("ledgerlake.rows", c.Rows), telemetry.Number("ledgerlake.duplicates", c.Duplicates)),
		Children: []telemetry.Span{
			{Name: "encode", Began: c.Closed, Ended: c.Encoded},
			{Name: "put", Kind: telemetry.Client, Began: c.Encoded, Ended: c.Durable, Attributes: []telemetry.Attribute{
				telemetry.Number("ledgerlake.bytes", c.Bytes), telemetry.Number("ledgerlake.attempts", int64(c.Attempts)),
			}},
		},
	}
	for i, context := range c.Contexts {
		batch.Links[i] = telemetry.Context(context)
	}
	if at := t.to.Record(&batch); at.Parent != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.newest[c.Line] = at
	}
}

// offsets records a commit of offsets in the trace of the newest batch of each
// line.
func (t *tracing) offsets(o *pipeline.OffsetCommit) {
	failed := ""
	if o.Err != nil {
		failed = "Kafka did not take it"
	}
	for _, l := range o.Lines {
		if at := t.take(l); at.Parent != "" {
			t.to.Record(&telemetry.Span{Name: "commit offset", Kind: telemetry.Client, Began: o.Began, Ended: o.Ended, Parent: at, Attributes: place(l), Failed: failed})
		}
	}
}

// take returns the newest batch of a line, once.
func (t *tracing) take(l archive.Line) telemetry.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.newest[l]
	delete(t.newest, l)
	return at
}

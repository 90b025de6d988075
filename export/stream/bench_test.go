package stream_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A counter is a destination that takes everything, and calls done at a number of
// rows.
type counter struct {
	rows, most int
	done       func()
}

func (*counter) Limits() sink.Limits         { return sink.Limits{} }
func (*counter) Close(context.Context) error { return nil }
func (c *counter) Deliver(_ context.Context, batch []sink.Message) sink.Result {
	for _, m := range batch {
		if m.Event.IsRow() {
			c.rows++
		}
	}
	if c.rows >= c.most {
		c.done()
	}
	return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
}

// What it costs to deliver rows of 1.3 KB that lie in data files, and in segments.
func BenchmarkDelivery(b *testing.B) {
	for _, compacted := range []bool{true, false} {
		b.Run(map[bool]string{true: "files", false: "segments"}[compacted], func(b *testing.B) {
			const rows = 20_000
			w := newWorld(b)
			for range rows / 500 {
				w.calls.Segment(func(s *prooftest.Batch) {
					for i := range 500 {
						s.Large(fmt.Sprint("tenant-", i%20))
					}
				})
			}
			w.calls.Anchor()
			w.land()
			if compacted {
				w.compact(w.calls.Line)
			}
			b.ResetTimer()
			for i := range b.N {
				ctx, stop := context.WithCancel(b.Context())
				s := w.settings()
				s.Events, s.Poll = stream.Events{}, time.Millisecond
				c := &counter{most: rows, done: stop}
				_ = stream.New(s, []stream.Destination{{Name: fmt.Sprint("d-", b.N, "-", i), Sink: c, Format: event.JSON}}).Run(ctx)
			}
			b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

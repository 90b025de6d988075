package compaction

import (
	"fmt"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// BenchmarkCompact compacts segments of 32 rows, of 8 tenants, until nothing is
// left to do.
func BenchmarkCompact(b *testing.B) {
	const segments, rows = 1000, 32
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b)
		for i := range segments {
			w.calls.Segment(func(b *prooftest.Batch) {
				for j := range rows {
					b.Large(fmt.Sprintf("tenant-%d", (i+j)%8))
				}
			})
			if i%100 == 99 {
				w.calls.Anchor()
			}
		}
		w.land()
		e := New(w.settings)
		b.StartTimer()
		began := time.Now()
		passes := w.passes(e, w.calls.Line, nil)
		b.ReportMetric(segments*rows/time.Since(began).Seconds(), "rows/s")
		b.ReportMetric(float64(len(passes)), "passes")
	}
}

//go:build unix

package compaction

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// BenchmarkCompact compacts 32,000 rows of 8 tenants until nothing is left to do.
// rows/cpu-s divides by the CPU time of the process.
func BenchmarkCompact(b *testing.B) {
	for _, rows := range []int{32, 500} {
		b.Run(fmt.Sprintf("segments of %d rows", rows), func(b *testing.B) { benchCompact(b, 32_000/rows, rows) })
	}
}

func benchCompact(b *testing.B, segments, rows int) {
	var took time.Duration
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b)
		for i := range segments {
			w.calls.Segment(func(b *prooftest.Batch) {
				for j := range rows {
					b.Large(fmt.Sprintf("tenant-%d", (i+j)%8))
				}
			})
			if i%25 == 24 || i == segments-1 {
				w.calls.Anchor()
			}
		}
		w.land()
		e := New(w.settings)
		b.StartTimer()
		began := cpu()
		passes := w.passes(e, w.calls.Line, nil)
		took += cpu() - began
		b.ReportMetric(float64(len(passes)), "passes")
	}
	b.ReportMetric(float64(b.N*segments*rows)/took.Seconds(), "rows/cpu-s")
}

// cpu returns the CPU time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

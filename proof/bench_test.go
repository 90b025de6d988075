package proof_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// BenchmarkVerify verifies rows of about 1.3 KB of JSON in segments of the usual
// sizes, of four tenants in two lines. rows/cpu-s divides by the CPU time of the
// whole process.
func BenchmarkVerify(b *testing.B) {
	for _, c := range []struct{ segments, rows int }{{256, 32}, {16, 2048}, {2, 20_000}} {
		b.Run(fmt.Sprintf("segments of %d rows", c.rows), func(b *testing.B) {
			src := prooftest.Bucket(large(c.segments, c.rows))
			b.ReportAllocs()
			start := cpuTime()
			var rows int64
			for b.Loop() {
				r, err := proof.Verify(context.Background(), src, proof.Options{Unsigned: true})
				if err != nil || r.ExitCode() != 0 {
					b.Fatal(err, r)
				}
				rows += r.Totals.Rows
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(rows)/(cpuTime()-start).Seconds(), "rows/cpu-s")
		})
	}
}

// large returns an archive of segments of rows rows each.
func large(segments, rows int) map[string][]byte {
	a := prooftest.New()
	lines := []*prooftest.Line{a.Line("audit.calls", 0), a.Line("audit.calls", 1)}
	for i := range segments {
		lines[i%2].Segment(func(b *prooftest.Batch) {
			for j := range rows {
				b.Large(fmt.Sprintf("tenant-%d", j/4%4))
			}
		})
	}
	return a.Objects()
}

// Memory does not grow with the number of rows: an archive four times as long
// takes no more at its peak.
func TestMemoryDoesNotGrowWithRows(t *testing.T) {
	if testing.Short() {
		t.Skip("builds 16,000 rows")
	}
	peak := func(segments int) (most uint64) {
		src := prooftest.Bucket(large(segments, 500))
		var once sync.Mutex
		base := liveHeap()
		_, err := proof.Verify(context.Background(), src, proof.Options{Unsigned: true, Memory: 1 << 20, Progress: func(done, _, _ int64) {
			if done%2 == 0 {
				once.Lock()
				defer once.Unlock()
				now := liveHeap()
				most = max(most, now-min(base, now))
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return most
	}
	short, long := peak(8), peak(32)
	if long > short*3/2+4<<20 {
		t.Errorf("%d bytes for 32 segments, %d for 8", long, short)
	}
}

// A row costs a bounded number of allocations, whatever the segment's size.
func TestAllocationsOfARowAreBounded(t *testing.T) {
	src := prooftest.Bucket(large(2, 2000))
	perRun := testing.AllocsPerRun(2, func() {
		if _, err := proof.Verify(context.Background(), src, proof.Options{Unsigned: true}); err != nil {
			t.Fatal(err)
		}
	})
	if perRow := perRun / 4000; perRow > 40 {
		t.Errorf("%.1f allocations a row", perRow)
	} else {
		t.Logf("%.1f allocations a row", perRow)
	}
}

// The rows of the benchmark are of the size that it says.
func TestLargeRowsAreLarge(t *testing.T) {
	a := prooftest.New()
	s := a.Line("t", 0).Segment(func(b *prooftest.Batch) { b.Large("acme") })
	n := 0
	for _, slot := range s.Rows[0].Slots {
		n += len(slot)
	}
	if n < 700 || n > 1300 || !bytes.Contains(s.Rows[0].Slots[audit.SlotExt], []byte("traceparent")) {
		t.Errorf("%d bytes in slots", n)
	}
}

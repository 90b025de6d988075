//go:build unix

package event_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
)

// spent returns the CPU time of the process so far.
func spent() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAppend encodes rows as agents send them, in rows per CPU second.
func BenchmarkAppend(b *testing.B) {
	var rows []*event.Event
	for _, ev := range eventtest.Events(5, 3000) {
		if ev.Kind == event.KindRecord && !strings.HasPrefix(ev.Tenant, "hostile") {
			rows = append(rows, ev)
		}
	}
	for _, f := range event.Formats {
		b.Run(string(f), func(b *testing.B) {
			e := encoder(b, f)
			var body []byte
			total, before := 0, spent()
			for i := range b.N {
				body, _ = e.Append(body[:0], rows[i%len(rows)])
				total += len(body)
			}
			b.ReportMetric(float64(b.N)/(spent()-before).Seconds(), "rows/cpu-s")
			b.ReportMetric(float64(total)/float64(b.N), "B/row")
		})
	}
}

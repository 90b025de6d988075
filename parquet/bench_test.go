//go:build unix

package parquet

import (
	"strconv"
	"syscall"
	"testing"
	"time"
)

var benchSizes = []int{32, 2048}

// BenchmarkEncode prints what a row costs in a small object and in a large one.
func BenchmarkEncode(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			rows, e := turnRows(n), NewEncoder()
			var object []byte
			b.ReportAllocs()
			began := cpuTime(b)
			for b.Loop() {
				var err error
				if object, err = e.Encode(rows, []byte("{}")); err != nil {
					b.Fatal(err)
				}
			}
			reportRows(b, n, cpuTime(b)-began)
			b.ReportMetric(float64(len(object))/float64(n), "B/row")
		})
	}
}

// BenchmarkRows prints what it costs to read a row.
func BenchmarkRows(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			object := encode(b, turnRows(n), nil)
			b.ReportAllocs()
			began := cpuTime(b)
			for b.Loop() {
				benchScan(b, object)
			}
			reportRows(b, n, cpuTime(b)-began)
		})
	}
}

func benchScan(b *testing.B, object []byte) {
	f, err := Open(object)
	if err != nil {
		b.Fatal(err)
	}
	for _, err := range f.Rows() {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckLayout prints what it costs to check the layout of an object.
func BenchmarkCheckLayout(b *testing.B) {
	object := encode(b, turnRows(32), nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := CheckLayout(object); err != nil {
			b.Fatal(err)
		}
	}
}

func reportRows(b *testing.B, n int, took time.Duration) {
	b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(b.N)*float64(n)/took.Seconds(), "rows/cpu-s")
}

// cpuTime returns the CPU time of the process, which a busy machine does not
// change much.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

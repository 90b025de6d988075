package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// tracedBatch returns a batch of records with those headers each.
func tracedBatch(headers ...[]kgo.RecordHeader) *batch {
	b := newBatch()
	for i, h := range headers {
		b.add(item{from: int64(i), to: int64(i) + 1, row: -1, record: &kgo.Record{Offset: int64(i), Headers: h}}, time.Time{})
	}
	return b
}

func traceparent(n int) []byte {
	return fmt.Appendf(nil, "00-%032x-%016x-01", n+1, n+1)
}

// A batch names each trace of its records once, in order, and not more than it may;
// headers of any size cost no more than that.
func TestContexts(t *testing.T) {
	parent := func(v []byte) kgo.RecordHeader { return kgo.RecordHeader{Key: "traceparent", Value: v} }
	state := func(v string) kgo.RecordHeader { return kgo.RecordHeader{Key: "tracestate", Value: []byte(v)} }
	b := tracedBatch(
		nil,
		[]kgo.RecordHeader{{Key: "tenant", Value: []byte("acme")}, parent(traceparent(0)), state("a=1")},
		[]kgo.RecordHeader{parent(traceparent(0)), state("a=1")},
		[]kgo.RecordHeader{state("b=2")},
		[]kgo.RecordHeader{parent(make([]byte, 1<<20))},
		[]kgo.RecordHeader{parent(traceparent(1)), state(strings.Repeat("x", 513)), parent(traceparent(7))},
		[]kgo.RecordHeader{parent(traceparent(2))},
		[]kgo.RecordHeader{parent([]byte("not one at all"))}, // whoever uses it looks
	)
	b.addGap(8, 9, "control", time.Time{})
	all := []TraceContext{{string(traceparent(0)), "a=1"}, {string(traceparent(1)), ""}, {string(traceparent(2)), ""}, {"not one at all", ""}}
	for most := range 6 {
		if got, want := b.contexts(most), all[:min(most, len(all))]; !slices.Equal(got, want) {
			t.Errorf("at most %d: %q, want %q", most, got, want)
		}
	}
}

// Where nobody wants to know the traces of records, they cost nothing; where
// somebody does, a record whose trace is known costs nothing either.
func TestContextsCost(t *testing.T) {
	b := newBatch()
	for i := range 10_000 {
		r := &kgo.Record{Offset: int64(i), Headers: []kgo.RecordHeader{{Key: "traceparent", Value: traceparent(i % 10)}}}
		b.add(item{from: int64(i), to: int64(i) + 1, row: -1, record: r}, time.Time{})
	}
	if n := testing.AllocsPerRun(10, func() { b.contexts(0) }); n != 0 {
		t.Errorf("off: %v allocations for 10,000 rows, want 0", n)
	}
	if n := testing.AllocsPerRun(10, func() { b.contexts(128) }); n > 50 {
		t.Errorf("on: %v allocations for 10,000 rows of 10 traces, want 50 at most", n)
	}
}

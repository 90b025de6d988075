//go:build it

package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// One wrong row anywhere, or one verdict but 0, is a failed run.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		one  result
		fail bool
	}{
		"right":      {result{counts: counts{rows: 9, rejects: 1, duplicates: 2}}, false},
		"a repeat":   {result{counts: counts{repeats: 1}}, true},
		"a loss":     {result{counts: counts{lost: 1}}, true},
		"an other":   {result{counts: counts{other: 1}}, true},
		"a verdict":  {result{verify: 1}, true},
		"incomplete": {result{verify: 3}, true},
		"look at it": {result{verify: 4}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResults([]string{"an act"})
			r.add("an act", result{})
			r.add("an act", c.one)
			if err := r.verdict(); errors.Is(err, errWrong) != c.fail {
				t.Errorf("verdict: %v", err)
			}
		})
	}
}

// The table sums up what was done, and shows what was not.
func TestTable(t *testing.T) {
	r := newResults([]string{"kill -9 of an ingest", "store answers 503"})
	for i, took := range []time.Duration{3 * time.Second, time.Second, 20500 * time.Millisecond} {
		r.add("kill -9 of an ingest", result{counts: counts{rows: 1000, rejects: 10, duplicates: int64(i)}, recover: took})
	}
	var b strings.Builder
	r.write(&b)
	const want = `
                   act  times  records   rows  rejects  duplicates  repeats  lost  other  verify  median     max
  kill -9 of an ingest      3    3,033  3,000       30           3        0     0      0       0   3.0 s  20.5 s
     store answers 503      0                                                                                   
                   all      3    3,033  3,000       30           3        0     0      0       0   3.0 s  20.5 s
`
	if got, _, _ := strings.Cut(b.String(), "\nrecords:"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

package sim_test

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A trace is what happened in a run, one line an event, by the bubble's clock.
// Its sum also covers the requests on the network, which are too many to print.
type trace struct {
	start time.Time
	lines []string
	sum   hash.Hash
	buf   []byte
	notes int
}

// runaway is how many requests a run may make. One that makes more is in a
// loop that no fault of its seed explains.
const runaway = 100_000

func newTrace() *trace { return &trace{start: time.Now(), sum: sha256.New()} }

func (t *trace) say(who, format string, args ...any) {
	line := fmt.Sprintf("%11.6f  %-4s ", time.Since(t.start).Seconds(), who) + fmt.Sprintf(format, args...)
	t.sum.Write([]byte(line))
	t.lines = append(t.lines, line)
}

// note enters an event into the sum alone.
func (t *trace) note(who, what string, n int) {
	if t.notes++; t.notes == runaway {
		panic(fmt.Sprintf("%s\nrunaway: %d requests, the last is %s of %s", strings.Join(t.lines[max(0, len(t.lines)-200):], "\n"), runaway, what, who))
	}
	t.buf = fmt.Appendf(t.buf[:0], "%d %s %s %d\n", time.Since(t.start), who, what, n)
	t.sum.Write(t.buf)
	if *showNet {
		t.lines = append(t.lines, fmt.Sprintf("%11.6f  %-4s -> %s (%d bytes)", time.Since(t.start).Seconds(), who, what, n))
	}
}

func (t *trace) hash() string { return fmt.Sprintf("%x", t.sum.Sum(nil)[:8]) }

func (t *trace) String() string { return strings.Join(t.lines, "\n") }

// short writes a key without what all keys of a run share.
func short(key string) string {
	n, ok := archive.ParseSegmentKey(key)
	if !ok {
		return key
	}
	return fmt.Sprintf("%.4s/%d#%d", n.TopicID, n.Partition, n.Ordinal)
}

//go:debug randseednop=0

package sim_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	seeds   = flag.Int("sim.seeds", 40, "how many seeds to run")
	first   = flag.Uint64("sim.first", 1, "the first of them")
	stride  = flag.Uint64("sim.stride", 1, "from one seed to the next")
	replays = flag.Int("sim.replays", 10, "how many seeds to run twice")
	showNet = flag.Bool("sim.net", false, "print requests to Kafka too")
	logOf   = flag.String("sim.log", "", "print what the Kafka client of this process logs")
	only    = flag.Uint64("sim.seed", 0, "run this seed alone, and print its trace")
)

// One seed makes one world: some processes, a broker and a bucket that fail in
// all ways that are known, and one oracle that looks at each new segment.
func TestSim(t *testing.T) {
	defer alone()()
	if *only > 0 {
		o := simulate(t, seed(*only))
		fmt.Println(o.trace)
		fmt.Println("trace", o.trace.hash(), o.took)
		if o.fault != nil {
			t.Fatal(o.fault)
		}
		return
	}
	sum := summary{Counts: map[string]int{}}
	for _, k := range kinds {
		sum.Counts[k] = 0
	}
	start := cpuTime()
	for i := range uint64(*seeds) {
		s := *first + i**stride
		fmt.Fprintf(os.Stderr, "begin %d\n", s)
		o := simulate(t, seed(s))
		if o.fault != nil {
			fmt.Printf("%s\nfailure %d %s\n", o.trace, s, strings.ReplaceAll(o.fault.Error(), "\n", "; "))
			t.Fatalf("seed %d: %v\n%s", s, o.fault, howToReplay(s))
		}
		sum.add(o)
		collect()
	}
	sum.CPU = cpuTime() - start
	text, err := json.Marshal(sum)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("summary %s\n", text)
}

// howToReplay says how a seed is run again.
func howToReplay(s uint64) string {
	if exact {
		return fmt.Sprintf("replay it with: make sim SEED=%d", s)
	}
	return fmt.Sprintf("run it again, not exactly, with: go test ./pipeline/sim -run TestSim -sim.seed=%d", s)
}

// A summary is what a process tells of its seeds, to who sums up.
type summary struct {
	Seeds, Steps int
	CPU          time.Duration
	Counts       map[string]int
}

func (s *summary) add(o outcome) {
	s.Seeds++
	s.Steps += o.plan.steps
	for k, n := range o.counts {
		s.Counts[k] += n
	}
}

// A seed that is run again gives the same trace to the nanosecond, also the
// requests to Kafka, whatever ran in between.
func TestReplay(t *testing.T) {
	if !exact {
		t.Skip("Go's own runtime draws where the simulation cannot seed it: make sim runs this")
	}
	defer alone()()
	n := uint64(*replays)
	before := make([]outcome, n)
	for i := range n {
		before[i] = simulate(t, seed(*first+i**stride))
		collect()
	}
	other := 0
	for i := range n {
		again := simulate(t, before[i].seed)
		collect()
		if again.trace.hash() != before[i].trace.hash() {
			other++
			t.Errorf("seed %d gives another trace:\n%s", again.seed, firstDifference(before[i].trace, again.trace))
		}
	}
	fmt.Printf("replayed %d seeds, %d exactly\n", n, int(n)-other)
}

// firstDifference shows where two traces part.
func firstDifference(a, b *trace) string {
	for i := range a.lines {
		if i >= len(b.lines) || a.lines[i] != b.lines[i] {
			return fmt.Sprintf("%s\nfirst: %s\nagain: %s", strings.Join(a.lines[max(0, i-5):i], "\n"), a.lines[i], b.lines[min(i, len(b.lines)-1)])
		}
	}
	return "in requests to Kafka alone: -sim.net shows them"
}

// alone makes the process run one goroutine at a time, and collects no garbage
// but between seeds.
func alone() (restore func()) {
	procs, gc := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	return func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(gc)
	}
}

// collect collects garbage if there is much.
func collect() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 400<<20 {
		runtime.GC()
	}
}

// cpuTime returns the CPU time that the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

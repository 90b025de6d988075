//go:debug randseednop=0

package sim_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

var (
	seeds   = flag.Int("sim.seeds", 40, "how many seeds to run")
	first   = flag.Uint64("sim.first", 1, "the first of them")
	stride  = flag.Uint64("sim.stride", 1, "from one seed to the next")
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
	start, cpu := time.Now(), cpuTime()
	total := map[string]int{}
	for i := range uint64(*seeds) {
		s := *first + i**stride
		fmt.Fprintf(os.Stderr, "begin %d\n", s)
		o := simulate(t, seed(s))
		for k, n := range o.counts {
			total[k] += n
		}
		if o.fault != nil {
			fmt.Println(o.trace)
			t.Fatalf("seed %d: %v", s, o.fault)
		}
		collect()
	}
	for _, k := range kinds {
		if total[k] == 0 {
			fmt.Println("never:", k)
		}
	}
	fmt.Println(total, time.Since(start), cpuTime()-cpu)
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

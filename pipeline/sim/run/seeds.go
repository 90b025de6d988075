package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// How long a seed may take, by the clock on the wall. One that takes longer
// hangs.
const patience = 2 * time.Minute

// A summary is what the simulation's process says at its end.
type summary struct {
	Seeds  uint64
	Steps  int
	CPU    time.Duration
	Counts map[string]int // by kind; kinds that never happened are there with 0
}

// A failure is a seed that fails.
type failure struct {
	seed  uint64
	why   string
	trace string
	// broken: the process broke down or hung; it was not the oracle that said no.
	broken bool
}

func (f *failure) Error() string { return fmt.Sprintf("seed %d: %s", f.seed, f.why) }

// command returns a run of the simulation's binary.
func command(ctx context.Context, binary, test string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, append([]string{"-test.run=" + test, "-test.timeout=0"}, args...)...)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOMEMLIMIT=off", "GOGC=off")
	return cmd
}

// runAll splits seeds over the processes and sums up what they say. The first
// failure ends all; of several the one of the lowest seed is returned.
func (s *sim) runAll(ctx context.Context, binary string, first, seeds uint64) (*summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	total := &summary{Counts: map[string]int{}}
	var mu sync.Mutex
	var worst error
	var wg sync.WaitGroup
	n := min(uint64(s.procs), seeds)
	for i := range n {
		share := (seeds - i + n - 1) / n
		wg.Go(func() {
			part, err := runShare(ctx, binary, first+i, n, share)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				total.add(part)
			case worst == nil || lower(err, worst):
				worst = err
				cancel()
			}
		})
	}
	wg.Wait()
	return total, worst
}

// lower reports whether a is the failure of a lower seed than b, or one at all.
func lower(a, b error) bool {
	var x, y *failure
	if !errors.As(a, &x) {
		return false
	}
	return !errors.As(b, &y) || x.seed < y.seed
}

// runShare runs one process.
func runShare(ctx context.Context, binary string, first, stride, seeds uint64) (*summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := command(ctx, binary, "^TestSim$", fmt.Sprintf("-sim.first=%d", first), fmt.Sprintf("-sim.stride=%d", stride), fmt.Sprintf("-sim.seeds=%d", seeds))
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	at, tail, hung := follow(stderr, cancel)
	err = cmd.Wait()
	if part, fault := parse(stdout.String()); part != nil || fault != nil {
		if fault != nil {
			return nil, fault
		}
		return part, nil
	}
	if hung {
		return nil, &failure{seed: at, why: "hangs", trace: tail, broken: true}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, &failure{seed: at, why: fmt.Sprintf("the process breaks down: %v", err), trace: tail + stdout.String(), broken: true}
}

// follow reads which seed a process is at, and ends it where one hangs.
func follow(stderr io.Reader, kill func()) (at uint64, tail string, hung bool) {
	timer := time.AfterFunc(patience, kill)
	defer timer.Stop()
	var lines []string
	for in := bufio.NewScanner(stderr); in.Scan(); {
		line := in.Text()
		if _, err := fmt.Sscanf(line, "begin %d", &at); err == nil {
			hung = !timer.Reset(patience)
			lines = lines[:0]
			continue
		}
		if len(lines) < 200 {
			lines = append(lines, line)
		}
	}
	return at, strings.Join(lines, "\n"), hung || !timer.Stop()
}

// parse reads the summary of a process, or its failure.
func parse(stdout string) (*summary, *failure) {
	if trace, rest, ok := strings.Cut(stdout, "\nfailure "); ok {
		f := &failure{trace: trace}
		line, _, _ := strings.Cut(rest, "\n")
		if _, err := fmt.Sscanf(line, "%d", &f.seed); err == nil {
			_, f.why, _ = strings.Cut(line, " ")
			return nil, f
		}
	}
	for line := range strings.Lines(stdout) {
		if text, ok := strings.CutPrefix(line, "summary "); ok {
			var s summary
			if err := json.Unmarshal([]byte(text), &s); err == nil {
				return &s, nil
			}
		}
	}
	return nil, nil
}

func (s *summary) add(o *summary) {
	s.Seeds, s.Steps, s.CPU = s.Seeds+o.Seeds, s.Steps+o.Steps, s.CPU+o.CPU
	for k, n := range o.Counts {
		s.Counts[k] += n
	}
}

// never returns the kinds that did not happen.
func (s *summary) never() (kinds []string) {
	for _, k := range slices.Sorted(maps.Keys(s.Counts)) {
		if s.Counts[k] == 0 {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func (s *summary) print(w io.Writer) {
	for _, k := range slices.Sorted(maps.Keys(s.Counts)) {
		fmt.Fprintf(w, "%10d  %s\n", s.Counts[k], k)
	}
	fmt.Fprintf(w, "%d seeds, %d steps, %.1f CPU seconds: %.1f seeds per CPU second\n",
		s.Seeds, s.Steps, s.CPU.Seconds(), float64(s.Seeds)/s.CPU.Seconds())
}

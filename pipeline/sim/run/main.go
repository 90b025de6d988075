// The command run builds the simulation with a runtime in which a seed replays
// exactly, runs it in one process a core, and sums up. With -variants it
// requires that broken variants of the engine are caught.
//
//	go run ./pipeline/sim/run -seeds 300
//	go run ./pipeline/sim/run -seed 4711
//	go run ./pipeline/sim/run -variants
//
// Nothing of Go's own tree or of the repository is changed: what differs is
// given to go build as an overlay, from files below bin/_sim, which
// the go tool passes over.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	seeds := flags.Uint64("seeds", 300, "how many seeds to run")
	first := flags.Uint64("first", 1, "the first of them")
	seed := flags.Uint64("seed", 0, "run this seed alone and print its trace")
	net := flags.Bool("net", false, "with -seed: print requests to Kafka too")
	procs := flags.Int("procs", runtime.NumCPU(), "processes at once")
	variants := flags.Bool("variants", false, "require that broken variants are caught")
	only := flags.String("variant", "", "with -variants: those alone whose name contains this")
	third := flags.Int("third", 0, "with -variants: the first, second or third of every three alone; 0: all")
	limit := flags.Uint64("limit", 2000, "with -variants: how many seeds to try")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := newSim(ctx, *procs)
	switch {
	case err != nil:
		return err
	case *variants:
		return s.catchAll(ctx, stdout, func(i int, name string) bool {
			return strings.Contains(name, *only) && (*third == 0 || i%3 == *third-1)
		}, *limit)
	}
	binary, err := s.build(ctx, s.replay, "sim.test")
	switch {
	case err != nil:
		return err
	case *seed > 0:
		return s.one(ctx, stdout, binary, *seed, *net)
	}
	return s.many(ctx, stdout, binary, *first, *seeds)
}

// A sim knows where things are.
type sim struct {
	repo, folder string
	procs        int
	replay       *overlay // the runtime in which a seed replays
}

func newSim(_ context.Context, procs int) (*sim, error) {
	repo, err := output(".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	s := &sim{repo: repo, folder: filepath.Join(repo, "bin", "_sim"), procs: procs}
	plain, err := newOverlay(repo, s.folder)
	if err != nil {
		return nil, err
	}
	s.replay, err = plain.with(filepath.Join(s.folder, "runtime"), replay)
	return s, err
}

// build builds the simulation with an overlay.
func (s *sim) build(ctx context.Context, o *overlay, name string) (binary string, err error) {
	doc, err := o.write()
	if err != nil {
		return "", err
	}
	binary = filepath.Join(s.folder, name)
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "simreplay", "-overlay", doc, "-o", binary, "./pipeline/sim")
	cmd.Dir = s.repo
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// one runs one seed, and prints its trace.
func (s *sim) one(ctx context.Context, stdout io.Writer, binary string, seed uint64, net bool) error {
	cmd := command(ctx, binary, "^TestSim$", fmt.Sprintf("-sim.seed=%d", seed), fmt.Sprintf("-sim.net=%t", net))
	cmd.Stdout, cmd.Stderr = stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("seed %d fails", seed)
	}
	return nil
}

// twice runs some seeds two times, and requires equal traces.
func (s *sim) twice(ctx context.Context, stdout io.Writer, binary string, first uint64) error {
	cmd := command(ctx, binary, "^TestReplay$", fmt.Sprintf("-sim.first=%d", first))
	cmd.Stdout, cmd.Stderr = stdout, os.Stderr
	return cmd.Run()
}

// many runs seeds, and prints what happened to them.
func (s *sim) many(ctx context.Context, stdout io.Writer, binary string, first, seeds uint64) error {
	if err := s.twice(ctx, stdout, binary, first); err != nil {
		return err
	}
	total, err := s.runAll(ctx, binary, first, seeds)
	if err != nil {
		var failed *failure
		if errors.As(err, &failed) {
			fmt.Fprintln(stdout, failed.trace)
			return fmt.Errorf("seed %d: %s\nreplay it with: make sim SEED=%d", failed.seed, failed.why, failed.seed)
		}
		return err
	}
	total.print(stdout)
	if missing := total.never(); seeds >= 300 && len(missing) > 0 {
		return fmt.Errorf("in %d seeds this never happened: %s", seeds, strings.Join(missing, ", "))
	}
	return nil
}

//go:build it

// Command torture runs ledgerlake-ingest and ledgerlake-verify, as users run
// them, against Apache Kafka and a separate S3 server, under load, and breaks
// one after the other:
//
//	producers ─▶ Kafka ─▶ 3 × ledgerlake-ingest ─▶ faults3 ─▶ S3 server
//	                │                                             │
//	             witness ──────── what must be there ────────▶ ledger
//
// Every [act] is done once, in a random order, and then again in another, until
// the time is up. A [round] is some acts on a topic and an archive of their own.
// After each act it waits until everything that was in Kafka
// when the act was over is committed, which is the time to recover; runs
// ledgerlake-verify; and holds each Kafka offset against what the archive says
// of it. The witness reads Kafka beside ingest, and the ledger reads the
// archive by DuckDB, so that neither believes ingest.
//
// Any lost or repeated row, and any verdict of verify but 0, ends the run with
// exit code 1, and with the logs in a folder that it names. docs/torture.md says
// how to read the table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("not understood")

// settings are what a run may be told.
type settings struct {
	minutes float64
	store   string
	rate    int // records a second
	seed    uint64
	keep    bool
	only    *regexp.Regexp // names of acts; all match the empty one
}

// short reports whether faults last for seconds instead of a minute and a half:
// every act in its long form takes some ten minutes.
func (s *settings) short() bool { return s.minutes < 10 }

func parse(args []string, getenv func(string) string) (*settings, error) {
	var s settings
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.Float64Var(&s.minutes, "minutes", 5, "how long to go on after every act was done once; below 10, faults are short")
	flags.StringVar(&s.store, "store", storeVersity, "the S3 server: "+storeVersity+" or "+storeWeed)
	flags.IntVar(&s.rate, "rate", 100, "records a second")
	flags.BoolVar(&s.keep, "keep", false, "keep the folder of a run that went well")
	only := flags.String("only", "", "a regular expression: do the acts alone whose names it matches")
	if err := flags.Parse(args); err != nil {
		return nil, errUsage // flag has said why
	}
	var err error
	if s.only, err = regexp.Compile(*only); err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	s.seed = rand.Uint64()
	if text := getenv("TORTURE_SEED"); text != "" {
		if s.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("TORTURE_SEED: %w", err)
		}
	}
	return &s, nil
}

// run tortures until the time is up, something is wrong, or ctx is done.
func run(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error {
	s, err := parse(args, getenv)
	if err != nil {
		return err
	}
	dir := filepath.Join(parts.Root(), "data", "torture", time.Now().UTC().Format("20060102T150405"))
	out := &printer{w: stdout, begin: time.Now()}
	out.say("TORTURE_SEED=%d, %s", s.seed, s.store)
	results := newResults(actNames())
	err = torment(ctx, s, dir, getenv("LEDGERLAKE_IT_PRIVATE") != "", out, results)
	results.write(stdout)
	if err == nil {
		err = results.verdict()
	}
	if err == nil && !s.keep {
		return os.RemoveAll(dir)
	}
	if err != nil {
		err = fmt.Errorf("%w; TORTURE_SEED=%d; logs in %s", err, s.seed, dir)
	}
	return err
}

// torment does all acts, and then again until the time is up.
func torment(ctx context.Context, s *settings, dir string, private bool, out *printer, results *results) error {
	rig, err := newRig(ctx, s, dir, private, out)
	if err != nil {
		return err
	}
	defer rig.close()
	end := out.begin.Add(time.Duration(s.minutes * float64(time.Minute)))
	over := func() bool { return time.Now().After(end) }
	for n := 1; n == 1 || !over(); n++ {
		// What is chosen depends on the seed and n alone.
		rng := rand.New(rand.NewPCG(s.seed, uint64(n)))
		order := slices.DeleteFunc(slices.Clone(acts), func(a act) bool { return !s.only.MatchString(a.name) })
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for i := 0; i < len(order) && (n == 1 || !over()); i += actsPerRound {
			r := &round{rig: rig, name: fmt.Sprintf("torture-%d-%d", n, i/actsPerRound+1), rng: rng}
			if err := r.run(ctx, order[i:min(i+actsPerRound, len(order))], func() bool { return n > 1 && over() }, results); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
		}
	}
	return nil
}

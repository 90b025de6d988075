//go:build it

// Command trial holds an archive to its promises while all that changes one runs
// at once: ingest, compaction, erasures of every kind, holds and an offboarded
// tenant, with readers beside it, on Apache Kafka and a separate S3 server whose
// bucket keeps old versions.
//
//	producer ─▶ Kafka ─▶ 2 × ledgerlake-ingest ─▶ S3 ◀─ 2 × ledgerlake-compact
//	   │                     ▲                    │          killed, stopped, woken
//	 deeds: who is whose     └── erase, hold … ───┘
//
// Every record holds a mark of its own in a slot. In the end each row must be
// what was sent, or erased as ordered; every hash of a row is the one that it
// had before anything was compacted; proofs that were made then still hold;
// verify says yes; and a scan of every byte of every version of every object,
// unpacked, finds no mark of what was erased.
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
	"syscall"
	"time"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "trial:", err)
		os.Exit(1)
	}
}

// settings are what a run may be told.
type settings struct {
	rows     int
	tenants  int
	erasures int
	kills    int
	grace    time.Duration
	seed     uint64
	keep     bool
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("trial", flag.ContinueOnError)
	flags.IntVar(&s.rows, "rows", 1_000_000, "records that are sent")
	flags.IntVar(&s.tenants, "tenants", 40, "tenants that send them")
	flags.IntVar(&s.erasures, "erasures", 500, "orders to erase, of all kinds of targets")
	flags.IntVar(&s.kills, "kills", 50, "how often a compactor is killed")
	flags.DurationVar(&s.grace, "grace", 20*time.Second, "the archive's graceSeconds")
	flags.Uint64Var(&s.seed, "seed", rand.Uint64(), "the random choices of an earlier run, which printed it")
	flags.BoolVar(&s.keep, "keep", false, "keep the folder of a run that went well")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir := filepath.Join(parts.Root(), "data", "trial", time.Now().UTC().Format("20060102T150405"))
	t := &trial{settings: s, dir: dir, out: stdout, begin: time.Now(), rng: rand.New(rand.NewPCG(s.seed, 1))}
	t.say("-seed %d: %d records of %d tenants, %d orders to erase", s.seed, s.rows, s.tenants, s.erasures)
	err := t.run(ctx)
	if err == nil && !s.keep {
		return os.RemoveAll(dir)
	}
	if err != nil {
		err = fmt.Errorf("%w; -seed %d; logs in %s", err, s.seed, dir)
	}
	return err
}

// run does all of it, in order.
func (t *trial) run(ctx context.Context) error {
	defer t.end()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"set-up", t.setUp},
		{"the first records", t.firstRecords},
		{"what is true before", t.before},
		{"everything at once", t.everything},
		{"coming to rest", t.rest},
		{"verify", t.verify},
		{"hashes and proofs", t.after},
		{"every byte", t.bytes},
		{"engines", t.engines},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		t.say("%s: done in %.0f s", step.name, time.Since(began).Seconds())
	}
	return nil
}

// errWrong: the archive is not what it must be.
var errWrong = errors.New("the archive is not what it must be")

//go:build it

// Command stream has the rows of an archive delivered to five receivers at once,
// while all of it is written and compacted, and while the exporter is killed every
// few seconds:
//
//	producer ─▶ Kafka ─▶ 2 × ledgerlake-ingest ─▶ S3 ◀─ ledgerlake-compact
//	                                              │
//	                                  ledgerlake-export stream   kill -9, again and again
//	                                              │
//	               a proxy before each, which refuses, stalls, throttles, takes a half, loses answers
//	                                              │
//	     VictoriaLogs (_bulk of Elasticsearch, Splunk's HEC), rsyslog over TLS, NATS JetStream, a topic of Kafka
//
// In the end every receiver is read back: it has every row with its hash, each log
// in its order, a row twice only behind a kill or a fault, and its own query on seq
// finds no gap. What must be there comes from DuckDB, which reads the archive by
// the script of docs/queries.md. docs/stream-trial.md says how to read the table.
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
		fmt.Fprintln(os.Stderr, "stream:", err)
		os.Exit(1)
	}
}

// settings are what a run may be told.
type settings struct {
	rows    int
	tenants int
	lasts   time.Duration // of sending
	life    time.Duration // of an exporter, at most
	seed    uint64
	keep    bool
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("stream", flag.ContinueOnError)
	flags.IntVar(&s.rows, "rows", 10_000, "records that are sent")
	flags.IntVar(&s.tenants, "tenants", 20, "tenants that send them")
	flags.DurationVar(&s.lasts, "lasts", 0, "how long sending takes; 0: a minute, or longer where that would be more than 1,500 records a second")
	flags.DurationVar(&s.life, "life", 8*time.Second, "how long an exporter lives at most, and half of that at least")
	flags.Uint64Var(&s.seed, "seed", rand.Uint64(), "the random choices of an earlier run, which printed it")
	flags.BoolVar(&s.keep, "keep", false, "keep the folder of a run that went well")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.lasts == 0 {
		s.lasts = max(time.Minute, time.Duration(s.rows)*time.Second/1500)
	}
	dir := filepath.Join(parts.Root(), "data", "stream", time.Now().UTC().Format("20060102T150405"))
	t := &trial{settings: s, dir: dir, out: stdout, begin: time.Now()}
	t.say("-seed %d: %d records of %d tenants in %v", s.seed, s.rows, s.tenants, s.lasts)
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
		{"everything at once", t.everything},
		{"the rest, undisturbed", t.rest},
		{"what must be there", t.readTruth},
		{"what is there", t.judge},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		t.say("%s: done in %.0f s", step.name, time.Since(began).Seconds())
	}
	return t.verdict()
}

// errWrong: a receiver does not have what it must have.
var errWrong = errors.New("a receiver does not have what it must have")

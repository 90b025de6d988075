//go:build it

// Command emit is the trial of package emit: eight goroutines record calls of many
// turns while the broker is away for a while, and then every record of the topic is
// read back:
//
//	8 goroutines ─▶ emit ─▶ a proxy, which is cut ─▶ Apache Kafka, which is killed, or stopped
//
// For each tenant, what the topic has and what the last queue-dropped record says
// is exactly what was recorded; no record is there twice, under its id or under its
// coordinates; each is what an archive takes. It prints how long the calls took.
// docs/emit.md says how to read the table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/emit"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "emit:", err)
		os.Exit(1)
	}
}

// settings are what a run may be told.
type settings struct {
	emits   int
	lasts   time.Duration
	away    time.Duration
	how     string
	queue   int
	tenants int
	keep    bool
}

const (
	topic      = "audit.calls"
	partitions = 6
	goroutines = 8
)

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("emit", flag.ContinueOnError)
	flags.IntVar(&s.emits, "emits", 1_000_000, "calls that are recorded")
	flags.DurationVar(&s.lasts, "lasts", 0, "how long that takes; 0: three times as long as the broker is away")
	flags.DurationVar(&s.away, "away", 20*time.Second, "how long the broker is away")
	flags.StringVar(&s.how, "how", "cut", "how it is away: cut, a proxy resets all connections and takes no new ones; stop, the process gets SIGSTOP and answers nothing; kill, it is killed and started again")
	flags.IntVar(&s.queue, "queue", emit.DefaultQueue, "the emitter's queue")
	flags.IntVar(&s.tenants, "tenants", 40, "tenants whose calls they are")
	flags.BoolVar(&s.keep, "keep", false, "keep the folder of a run that went well")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.lasts == 0 {
		s.lasts = 3 * s.away
	}
	dir := filepath.Join(parts.Root(), "data", "emit", time.Now().UTC().Format("20060102T150405"))
	t := &trial{settings: s, dir: dir, out: stdout}
	err := t.run(ctx)
	if err == nil && !s.keep {
		return os.RemoveAll(dir)
	}
	if err != nil {
		err = fmt.Errorf("%w; logs in %s", err, dir)
	}
	return err
}

// A trial is one run.
type trial struct {
	settings
	dir   string
	out   io.Writer
	wire  *wire
	kafka *parts.Kafka
}

func (t *trial) run(ctx context.Context) error {
	if err := t.setUp(ctx); err != nil {
		return err
	}
	defer t.wire.close()
	defer t.kafka.Kill()
	e, err := emit.New(emit.Options{
		Topic: topic, Queue: t.queue, CloseTimeout: time.Minute,
		Kafka:   []kgo.Opt{kgo.SeedBrokers(t.wire.addr)},
		Trouble: func(err error) { fmt.Fprintln(t.out, "trouble:", err) },
	})
	if err != nil {
		return err
	}
	work, err := t.emitAll(ctx, e)
	if err != nil {
		return err
	}
	closing := time.Now()
	if err := e.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	fmt.Fprintf(t.out, "closed in %v\n", time.Since(closing).Round(time.Millisecond))
	found, err := t.readBack(ctx)
	if err != nil {
		return err
	}
	work.print(t.out)
	return judge(t.out, work, found, e.Stats())
}

// setUp starts the broker behind the proxy, and makes the topic.
func (t *trial) setUp(ctx context.Context) (err error) {
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	if t.wire, err = newWire(); err != nil {
		return err
	}
	if t.kafka, err = parts.StartKafkaWith(filepath.Join(t.dir, "kafka"), parts.KafkaOptions{Front: t.wire.addr}); err != nil {
		return err
	}
	t.wire.pass(t.kafka.Behind)
	client, err := kgo.NewClient(kgo.SeedBrokers(t.kafka.Addr))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, partitions, 1, nil, topic)
	return err
}

// leave takes the broker away for a while.
func (t *trial) leave(ctx context.Context) error {
	fmt.Fprintf(t.out, "the broker goes away (%s)\n", t.how)
	wait := func() {
		select {
		case <-ctx.Done():
		case <-time.After(t.away):
		}
	}
	switch t.how {
	case "cut":
		t.wire.cut()
		wait()
		t.wire.pass(t.kafka.Behind)
		return nil
	case "stop":
		if err := t.kafka.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		wait()
		return t.kafka.Signal(syscall.SIGCONT)
	case "kill":
		t.kafka.Kill()
		wait()
		return t.kafka.Start()
	}
	return errors.New("-how is none of cut, stop, kill")
}

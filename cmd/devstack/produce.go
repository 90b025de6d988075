package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/internal/workload"
)

const produceHelp = `ledgerlake-devstack produce: audit records as a fleet of agents would send them, into a topic that exists.

Turns of several tenants, interleaved: plans, tool loops, answers; fallback ladders, provider and tool cascades,
subagents, interrupts, decisions (also not to act), interaction logs. Each record has its tenant as key and as header,
and a call is about 1.3 KB of JSON. Some records repeat an earlier one, some are broken in one of a dozen ways; the
summary says how many, so that the archive can be checked: rows + duplicates = records, broken ones being rejected rows.

The same --seed, with the same --start and shares, sends the same bytes again; an archive that has them counts them as
duplicates.
`

// traffic is what to produce, and where to.
type traffic struct {
	brokers   []string
	topic     string
	tenants   int
	rows      int
	rate      float64 // records a second; 0 is as fast as it goes
	seed      uint64
	start     time.Time // zero: workload.Epoch, or with seed 0 such that the last record is made now
	broken    float64
	repeats   float64
	conflicts float64
}

func produceCommand(ctx context.Context, args []string, stdout io.Writer) error {
	t, asJSON, err := readTraffic(args, stdout)
	if t == nil {
		return err
	}
	sent, err := produce(ctx, *t)
	if sent == nil {
		return err
	}
	if asJSON {
		return errors.Join(err, json.NewEncoder(stdout).Encode(sent))
	}
	return errors.Join(err, sent.print(stdout))
}

// readTraffic reads the flags of produce; nil where nothing is left to do.
func readTraffic(args []string, stdout io.Writer) (t *traffic, asJSON bool, err error) {
	t = new(traffic)
	var start string
	f := newFlags("produce", produceHelp)
	f.StringSliceVar(&t.brokers, "brokers", []string{"127.0.0.1:9092"}, "the brokers to ask first")
	f.StringVar(&t.topic, "topic", "audit.calls", "the topic; it must exist")
	f.IntVar(&t.tenants, "tenants", 5, "how many tenants; the first are the busiest")
	f.IntVar(&t.rows, "rows", 10_000, "how many records to send")
	f.Float64Var(&t.rate, "rate", 0, "records a second; 0 is as fast as it goes")
	f.Float64Var(&t.broken, "broken", 0.01, "share of records that are broken, from 0 to 1")
	f.Float64Var(&t.repeats, "repeats", 0.01, "share of records that repeat an earlier one")
	f.Float64Var(&t.conflicts, "conflicts", 0, "share of records that contradict an earlier one: same coordinates, other content")
	f.Uint64Var(&t.seed, "seed", 0, "what the turns grow from; 0 takes one from the clock")
	f.StringVar(&start, "start", "", "createdAt of the first record, RFC 3339, the others following a millisecond apart on average; default: with a seed 2026-05-15T12:00:00Z, else just now")
	f.BoolVar(&asJSON, "json", false, "print the summary as JSON")
	if goOn, err := f.parse(args, stdout); !goOn {
		return nil, false, err
	}
	if start != "" {
		if t.start, err = time.Parse(time.RFC3339, start); err != nil {
			return nil, false, fmt.Errorf("produce: %w: --start: %v", errBadFlag, err)
		}
	}
	if err := t.check(f); err != nil {
		return nil, false, err
	}
	return t, asJSON, nil
}

func (t *traffic) check(f *flagSet) error {
	if t.rate < 0 {
		return fmt.Errorf("produce: %w: --rate is %v, want 0 or more", errBadFlag, t.rate)
	}
	return cmp.Or(
		f.atLeast("tenants", t.tenants, 1), f.atLeast("rows", t.rows, 0),
		f.share("broken", t.broken), f.share("repeats", t.repeats), f.share("conflicts", t.conflicts),
		f.share("broken + repeats + conflicts", t.broken+t.repeats+t.conflicts),
	)
}

// A sent is the summary of what was acknowledged, by class.
type sent struct {
	Seed      uint64         `json:"seed"`
	Start     time.Time      `json:"start"`
	Topic     string         `json:"topic"`
	Tenants   int            `json:"tenants"`
	Records   int            `json:"records"`
	Bytes     int64          `json:"bytes"` // of values
	Good      int            `json:"good"`
	Repeats   int            `json:"repeats"`
	Broken    int            `json:"broken"`
	Conflicts int            `json:"conflicts"`
	Reasons   map[string]int `json:"reasons"` // broken and conflicting records by the class of their reject
	Seconds   float64        `json:"seconds"`
}

// rejects is how many rejected rows an archive of exactly these records has.
func (s *sent) rejects() int { return s.Broken + s.Conflicts }

// rows is how many rows it has in all.
func (s *sent) rows() int { return s.Good + s.rejects() }

// produce sends the records, and returns what was acknowledged even where not
// all was; nil where it did not come to sending.
func produce(ctx context.Context, t traffic) (*sent, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.brokers...), kgo.DefaultProduceTopic(t.topic), kgo.ClientID(program),
		kgo.ProducerLinger(5*time.Millisecond), kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.RecordDeliveryTimeout(30*time.Second))
	if err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	defer client.Close()
	if err := checkTopic(ctx, client, t.topic); err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	began := time.Now()
	t.settle(began)
	p := producer{client: client, sent: sent{Seed: t.seed, Start: t.start, Topic: t.topic, Tenants: t.tenants, Reasons: map[string]int{}}}
	err = p.all(ctx, t)
	p.sent.Seconds = time.Since(began).Seconds()
	return &p.sent, err
}

// checkTopic returns an error unless the brokers answer and have the topic. A
// producer would find out too, but only after it has asked for long.
func checkTopic(ctx context.Context, client *kgo.Client, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	topics, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err != nil {
		return fmt.Errorf("%w: the brokers do not answer: %v", errCannotRun, err)
	}
	if err := topics[topic].Err; err != nil {
		return fmt.Errorf("%w: topic %s: %v", errCannotRun, topic, err)
	}
	return nil
}

// settle chooses what was left open.
func (t *traffic) settle(now time.Time) {
	if t.start.IsZero() {
		t.start = workload.Epoch
		if t.seed == 0 {
			t.start = now.Add(-time.Duration(t.rows) * time.Millisecond).UTC().Truncate(time.Millisecond)
		}
	}
	if t.seed == 0 {
		t.seed = uint64(now.UnixMicro())
	}
}

// generator returns the source of the records.
func (t *traffic) generator() *workload.Generator {
	g := workload.New(t.seed, t.tenants)
	g.Broken, g.Repeats, g.Conflicts = t.broken, t.repeats, t.conflicts
	g.Start = t.start
	return g
}

// A producer sends records and counts those that are acknowledged.
type producer struct {
	client *kgo.Client
	mu     sync.Mutex
	sent   sent
	failed error // the first
}

func (p *producer) all(ctx context.Context, t traffic) error {
	g, pace := t.generator(), newPace(t.rate)
	for i := range t.rows {
		if !pace.wait(ctx, i) || p.failure() != nil {
			break
		}
		r := g.Next()
		record := &kgo.Record{Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		p.client.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) { p.count(r, err) })
	}
	// What is under way is finished also after Ctrl-C, so that the summary is true.
	if err := p.client.Flush(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	if err := p.failure(); err != nil {
		return fmt.Errorf("produce: %d of %d records acknowledged: %w", p.sent.Records, t.rows, err)
	}
	if p.sent.Records < t.rows {
		return fmt.Errorf("produce: stopped after %d of %d records", p.sent.Records, t.rows)
	}
	return nil
}

func (p *producer) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *producer) count(r workload.Record, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if p.failed == nil {
			p.failed = err
		}
		return
	}
	p.sent.Records++
	p.sent.Bytes += int64(len(r.Value))
	switch r.Class {
	case workload.Good:
		p.sent.Good++
	case workload.Repeat:
		p.sent.Repeats++
	case workload.Broken:
		p.sent.Broken++
	case workload.Conflict:
		p.sent.Conflicts++
	}
	if r.Reason != "" {
		p.sent.Reasons[r.Reason]++
	}
}

// A pace spreads records over time.
type pace struct {
	began time.Time
	each  time.Duration
}

func newPace(rate float64) pace {
	if rate == 0 {
		return pace{}
	}
	return pace{time.Now(), time.Duration(float64(time.Second) / rate)}
}

// wait waits for the turn of record i, and reports false once ctx is done.
func (p pace) wait(ctx context.Context, i int) bool {
	ahead := time.Until(p.began.Add(time.Duration(i) * p.each))
	if p.each == 0 || ahead < time.Millisecond {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(ahead):
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *sent) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, `Sent %s records of %d tenants to %s in %.1f s, %s of values (--seed %d --start %s):
  %8s  good
  %8s  repeats of one of them: no rows, counted as duplicates
  %8s  broken: rejected rows%s
  %8s  in conflict with one of them: rejected rows
An archive of exactly these has %s rows, %s of them rejected, and counts %s duplicates.
`, thousands(s.Records), s.Tenants, s.Topic, s.Seconds, size(s.Bytes), s.Seed, s.Start.Format(time.RFC3339Nano),
		thousands(s.Good), thousands(s.Repeats), thousands(s.Broken), s.classes(), thousands(s.Conflicts),
		thousands(s.rows()), thousands(s.rejects()), thousands(s.Repeats))
	return err
}

// classes lists the broken records by reason.
func (s *sent) classes() string {
	var list []string
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		if reason != "conflict" {
			list = append(list, fmt.Sprintf("%s %d", reason, s.Reasons[reason]))
		}
	}
	if list == nil {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

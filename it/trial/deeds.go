//go:build it

package main

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// markPrefix begins the mark of a record, which stands in a header of it, and so
// in a slot of its row.
const markPrefix = "MARK"

// A deed is a record that was sent, and what an order may find it by.
type deed struct {
	tenant, record, session, turn, stage, user string
	within                                     int64
	broken                                     bool // it becomes a rejected row, where only what can be read finds it
	partition                                  int32
	offset                                     int64
	mark                                       [12]byte
	at                                         time.Time
}

func (d *deed) markText() string { return markPrefix + hex.EncodeToString(d.mark[:]) }

// deeds are all that were sent, in the order in which Kafka took them.
type deeds struct {
	mu    sync.Mutex
	all   []*deed
	names map[string]string // one string for equal ones

	decoder audit.Decoder
}

func (d *deeds) intern(s string) string {
	if have, ok := d.names[s]; ok {
		return have
	}
	d.names[s] = s
	return s
}

// read takes from a record what an order may name: what the columns of its row
// will say.
func (d *deeds) read(r workload.Record, at time.Time) *deed {
	out := &deed{tenant: d.intern(r.Tenant), broken: r.Class != workload.Good, at: at}
	var row audit.Record
	m := &audit.Message{Topic: topic, Key: r.Key, Value: r.Value, Timestamp: r.Time}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, audit.MessageHeader{Name: h.Name, Value: h.Value})
	}
	if reject := d.decoder.Decode(&row, m); reject == nil {
		out.record, out.session, out.turn, out.stage = row.RecordID.S, d.intern(row.SessionID.S), d.intern(row.TurnID.S), d.intern(row.StageID.S)
		out.user, out.within = d.intern(row.UserID.S), row.SeqWithinTurn.N
	}
	_, _ = cryptorand.Read(out.mark[:]) // it never fails
	return out
}

// produce sends n records of a generator, so many a second (0: as fast as
// possible).
func (t *trial) produce(ctx context.Context, g *workload.Generator, n, rate int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.kafka.Addr), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(20*time.Millisecond), kgo.UnknownTopicRetries(-1))
	if err != nil {
		return err
	}
	defer client.Close()
	var failed error
	var mu sync.Mutex
	begin := time.Now()
	for i := range n {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if rate > 0 {
			if ahead := time.Duration(i)*time.Second/time.Duration(rate) - time.Since(begin); ahead > 20*time.Millisecond {
				time.Sleep(ahead)
			}
		}
		r := g.Next()
		d := t.deeds.read(r, time.Now())
		rec := parts.KafkaRecord(&r)
		rec.Headers = append([]kgo.RecordHeader{{Key: "x-mark", Value: []byte(d.markText())}}, rec.Headers...)
		client.Produce(ctx, rec, func(rec *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
				return
			}
			d.partition, d.offset = rec.Partition, rec.Offset
			t.deeds.mu.Lock()
			t.deeds.all = append(t.deeds.all, d)
			t.deeds.mu.Unlock()
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	return failed
}

// drained waits until ingest has archived all that was sent.
func (t *trial) drained(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	alive := func() error {
		for _, p := range t.ingests {
			if !p.Running() {
				return fmt.Errorf("an ingest has ended: %s", p.Log)
			}
		}
		return nil
	}
	return t.group.WaitDrained(ctx, alive, topic)
}

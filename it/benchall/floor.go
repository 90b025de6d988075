//go:build it

package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/internal/workload"
)

// A floor is the CPU time of a row that no ingest can do without.
type floor struct {
	read   time.Duration // from Kafka
	decode time.Duration
	stamp  time.Duration // SHA-256 of content and header, and the tree
	packed map[int]time.Duration
	values [][]byte
}

// floorRows is how many rows are decoded, stamped and compressed.
const floorRows = 20_000

// floor measures.
func (r *runner) floor(ctx context.Context) (f *floor, err error) {
	f = &floor{packed: map[int]time.Duration{}}
	if f.read, err = r.readLoop(ctx); err != nil {
		return nil, err
	}
	g := workload.New(r.seed, 64)
	records := make([]workload.Record, min(floorRows, r.rows))
	for i := range records {
		records[i] = g.Next()
		f.values = append(f.values, records[i].Value)
	}
	rows := make([]chain.Row, len(records))
	if f.decode, err = each(len(records), func() error { return decode(rows, records) }); err != nil {
		return nil, err
	}
	f.stamp, err = each(len(records), func() error { stamp(rows); return nil })
	return f, err
}

// each returns the CPU time of one of n.
func each(n int, do func() error) (time.Duration, error) {
	before := cpu()
	err := do()
	return (cpu() - before) / time.Duration(n), err
}

// cpu returns the CPU time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func decode(rows []chain.Row, records []workload.Record) error {
	var d audit.Decoder
	for i := range records {
		m := &audit.Message{Topic: topic, Offset: int64(i), Timestamp: records[i].Time, Key: records[i].Key, Value: records[i].Value}
		for _, h := range records[i].Headers {
			m.Headers = append(m.Headers, audit.MessageHeader{Name: h.Name, Value: h.Value})
		}
		if reject := d.Decode(&rows[i].Record, m); reject != nil {
			return fmt.Errorf("record %d: %s", i, reject.Detail)
		}
	}
	return nil
}

func stamp(rows []chain.Row) {
	h := chain.NewHasher(nil)
	var head, salt chain.Hash
	var tree chain.Tree
	for i := range rows {
		rows[i].Seq = audit.I64(int64(i))
		h.Stamp(&rows[i], head, salt)
		head = rows[i].RowHash
		tree.Append(head)
	}
}

// rows is what a row takes beside reading it, in batches of n.
func (f *floor) rows(n int) time.Duration {
	if _, ok := f.packed[n]; !ok {
		f.packed[n], _ = each(len(f.values), func() error { f.pack(n); return nil })
	}
	return f.decode + f.stamp + f.packed[n]
}

// pack compresses the records as they came.
func (f *floor) pack(n int) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // of the options
	}
	var batch, packed []byte
	for i, v := range f.values {
		if batch = append(batch, v...); (i+1)%n == 0 || i == len(f.values)-1 {
			packed, batch = e.EncodeAll(batch, packed[:0]), batch[:0]
		}
	}
}

// readLoop has franz-go read a topic of as many records as ingest reads, and drop
// them, and returns the CPU time of one.
func (r *runner) readLoop(ctx context.Context) (time.Duration, error) {
	s, err := r.startStack()
	if err != nil {
		return 0, err
	}
	defer s.close()
	if err := s.produce(ctx, r.rows, 0); err != nil {
		return 0, err
	}
	return each(r.rows, func() error {
		client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			return err
		}
		defer client.Close()
		for n := 0; n < r.rows; {
			fetches := client.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				return err
			}
			n += fetches.NumRecords()
		}
		return nil
	})
}

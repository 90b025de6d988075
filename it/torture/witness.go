//go:build it

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A witness reads the topic beside ingest, as a reader of committed records,
// and remembers which offsets hold one.
type witness struct {
	client *kgo.Client
	done   chan struct{}

	mu        sync.Mutex
	delivered [][]bool // by partition and offset; as long as what it has read
}

// newWitness starts a witness of all partitions of a topic.
func newWitness(ctx context.Context, brokers, topic string, partitions int32) (*witness, error) {
	from := map[int32]kgo.Offset{}
	for p := range partitions {
		from[p] = kgo.NewOffset().At(0)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.MetadataMinAge(100*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	w := &witness{client: client, done: make(chan struct{}), delivered: make([][]bool, partitions)}
	go w.read(ctx)
	return w, nil
}

func (w *witness) read(ctx context.Context) {
	defer close(w.done)
	for {
		fetches := w.client.PollFetches(ctx)
		if fetches.IsClientClosed() || ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			seen := w.delivered[r.Partition]
			for int64(len(seen)) <= r.Offset {
				seen = append(seen, false)
			}
			seen[r.Offset] = !r.Attrs.IsControl()
			w.delivered[r.Partition] = seen
		})
		w.mu.Unlock()
	}
}

// until waits until it has read each partition up to the given offsets, and
// returns what was delivered there.
func (w *witness) until(ctx context.Context, next []int64) ([][]bool, error) {
	for {
		got, ok := w.upTo(next)
		if ok {
			return got, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the witness has read up to %v, wants %v: %w", lengths(got), next, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (w *witness) upTo(next []int64) (got [][]bool, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	got, all = slices.Clone(w.delivered), true
	for p, n := range next {
		if int64(len(got[p])) < n {
			all = false
		} else {
			got[p] = got[p][:n:n]
		}
	}
	return got, all
}

func lengths(rows [][]bool) []int {
	n := make([]int, len(rows))
	for i := range rows {
		n[i] = len(rows[i])
	}
	return n
}

// close ends the reading.
func (w *witness) close() {
	w.client.Close()
	<-w.done
}

//go:build it

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// tenants is how many a round has records of.
const tenants = 20

// A load is records that are produced all the time, by two producers: a plain
// one, and one that writes transactions and aborts one in five. Both are
// idempotent, and try again for as long as the broker is away.
type load struct {
	brokers string
	topic   string
	rate    int // records a second, of both together
	ledger  *ledger
	acked   atomic.Int64
	aborted atomic.Int64 // records of transactions that were aborted
	failed  atomic.Int64 // records that a producer gave up; they may be in Kafka or not

	stop             context.CancelFunc
	done             sync.WaitGroup
	plainErr, txnErr error
}

// begin starts both producers.
func (l *load) begin(ctx context.Context, rng *rand.Rand) {
	ctx, l.stop = context.WithCancel(ctx)
	seeds := [3]uint64{rng.Uint64(), rng.Uint64(), rng.Uint64()}
	l.done.Go(func() { l.plainErr = l.plain(ctx, seeds[0]) })
	l.done.Go(func() { l.txnErr = l.transactions(ctx, seeds[1], rand.New(rand.NewPCG(seeds[2], 0))) })
}

// end lets the producers finish what is under way, and returns why one of them
// could not go on. It may be called again.
func (l *load) end() error {
	l.stop()
	l.done.Wait()
	return errors.Join(l.plainErr, l.txnErr)
}

// plain sends good records, repeats, conflicts and broken ones.
func (l *load) plain(ctx context.Context, seed uint64) error {
	client, err := kgo.NewClient(l.producer()...)
	if err != nil {
		return err
	}
	defer client.Close()
	g := workload.New(seed, tenants)
	g.Broken, g.Repeats, g.Conflicts, g.Start = 0.01, 0.02, 0.001, time.Now()
	tick := time.NewTicker(2 * time.Second / time.Duration(l.rate))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return client.Flush(context.WithoutCancel(ctx))
		case <-tick.C:
		}
		r := g.Next()
		client.Produce(context.WithoutCancel(ctx), parts.KafkaRecord(&r), func(rec *kgo.Record, err error) {
			if err != nil {
				// Whether it is in Kafka is not known, and so not whether what
				// repeats it is a repeat.
				l.failed.Add(1)
				l.ledger.unsure.Store(true)
				return
			}
			l.acked.Add(1)
			l.ledger.expect(rec.Partition, rec.Offset, r.Class)
		})
	}
}

// transactions sends good and broken records by some at a time. What is aborted
// is not sent again, so that no record of it may become a row.
func (l *load) transactions(ctx context.Context, seed uint64, rng *rand.Rand) error {
	g := workload.New(seed, tenants)
	g.Broken, g.Start = 0.01, time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		// A client that an error has made useless is followed by another one
		// of the same name, which ends what it has left open.
		err := l.transact(ctx, g, rng)
		if err != nil && n == 100 {
			return fmt.Errorf("transactions: %w", err)
		}
	}
	return nil
}

func (l *load) transact(ctx context.Context, g *workload.Generator, rng *rand.Rand) error {
	client, err := kgo.NewClient(append(l.producer(), kgo.TransactionalID(l.topic), kgo.TransactionTimeout(20*time.Second))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		size := 1 + rng.IntN(40)
		wait := 2 * time.Second * time.Duration(size) / time.Duration(l.rate)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		end := kgo.TryCommit
		if rng.IntN(5) == 0 {
			end = kgo.TryAbort
		}
		if err := l.transaction(context.WithoutCancel(ctx), client, g, size, end); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) transaction(ctx context.Context, client *kgo.Client, g *workload.Generator, size int, end kgo.TransactionEndTry) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	var failed atomic.Bool
	for range size {
		r := g.Next()
		client.Produce(ctx, parts.KafkaRecord(&r), func(rec *kgo.Record, err error) {
			if err != nil {
				failed.Store(true)
				return
			}
			l.ledger.expect(rec.Partition, rec.Offset, r.Class)
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if failed.Load() {
		end = kgo.TryAbort
	}
	if err := client.EndTransaction(ctx, end); err != nil {
		return err
	}
	if end == kgo.TryAbort {
		l.aborted.Add(int64(size))
	} else {
		l.acked.Add(int64(size))
	}
	return nil
}

func (l *load) producer() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(l.brokers), kgo.DefaultProduceTopic(l.topic), kgo.ProducerLinger(5 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond), kgo.UnknownTopicRetries(-1),
	}
}

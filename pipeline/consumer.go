package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
)

// Partitions that start at once; each reads its line from the bucket.
const startParallel = 8

// The largest fetch of one broker and of one partition, in bytes. A batch that
// is larger still comes whole.
const (
	fetchBytes          = 8 << 20
	fetchPartitionBytes = 1 << 20
)

// How long a broker may hold a fetch back that finds nothing. A client has one
// fetch at a broker at a time, so this is also how long a partition that has
// just been assigned or resumed may have to wait for idle ones.
const fetchWait = 250 * time.Millisecond

// A consumer reads the topics as a member of a group, and hands each partition
// its records.
type consumer struct {
	*shared
	client *kgo.Client
	admin  *kadm.Client
	life   context.Context // of partitions: it ends after a clean stop, not with it
	end    context.CancelFunc
	failed atomic.Bool // a partition has stopped
	// ready is closed once client and admin are set: the group may assign
	// partitions before NewClient has returned.
	ready chan struct{}

	mu    sync.Mutex
	parts map[place]*running

	commits sync.Mutex // one offset commit at a time
}

// A place is one partition of one topic.
type place struct {
	topic  string
	number int32
}

// running is a partition at work.
type running struct {
	*partition
	delivered int64    // the offset after the last one delivered; owned by poll
	committed position // guarded by commits
}

func newConsumer(s Settings, ev Events) (*consumer, error) {
	c := &consumer{shared: newShared(s, ev), parts: map[place]*running{}, ready: make(chan struct{})}
	c.life, c.end = context.WithCancel(context.Background())
	topics := s.Topics
	if s.ControlTopic != "" {
		topics = append([]string{s.ControlTopic}, topics...)
	}
	opts := append([]kgo.Opt{
		kgo.ConsumerGroup(s.Group),
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxPartitionBytes(fetchPartitionBytes),
		kgo.FetchMaxWait(fetchWait),
		kgo.AdjustFetchOffsetsFn(c.assign),
		kgo.OnPartitionsRevoked(c.revoke),
		kgo.OnPartitionsLost(c.lose),
	}, s.Client...)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	c.client, c.admin = client, kadm.NewClient(client)
	if s.DLQTopic != "" {
		c.dlq = func(r *kgo.Record) {
			client.Produce(c.life, r, func(_ *kgo.Record, err error) {
				if err != nil {
					c.warn("copy a reject to "+s.DLQTopic, err)
				}
			})
		}
	}
	close(c.ready)
	return c, nil
}

func (c *consumer) run(ctx context.Context) error {
	defer c.end()
	committing := make(chan struct{})
	go func() { defer close(committing); c.commitLoop(ctx) }()
	c.poll(ctx)
	<-committing
	c.shutdown()
	c.client.CloseAllowingRebalance()
	if c.failed.Load() {
		return ErrPartitionStopped
	}
	return nil
}

// poll fetches until ctx is done. Between a poll and AllowRebalance nothing is
// taken away, so what was polled goes to the partition that was polled for; a
// wait for memory comes after, so that it holds up no rebalance.
func (c *consumer) poll(ctx context.Context) {
	for ctx.Err() == nil {
		c.budget.wait(ctx)
		pollCtx, cancel := context.WithTimeout(ctx, time.Second)
		fetches := c.client.PollFetches(pollCtx)
		cancel()
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachError(func(topic string, number int32, err error) { c.fetchError(ctx, place{topic, number}, err) })
		fetches.EachTopic(func(t kgo.FetchTopic) {
			t.EachPartition(func(p kgo.FetchPartition) { c.deliver(place{t.Topic, p.Partition}, t.TopicID, p.Records) })
		})
		c.client.AllowRebalance()
	}
}

// deliver puts fetched records into their partition's mailbox, and pauses the
// partition when that holds enough.
func (c *consumer) deliver(at place, topicID [16]byte, records []*kgo.Record) {
	r := c.at(at)
	if r == nil || len(records) == 0 {
		return
	}
	if id := encodeTopicID(topicID); topicID != [16]byte{} && id != r.line.TopicID {
		c.stopped(at, fmt.Errorf("topic was deleted and created again (id %s, was %s): start again to archive the new one", id, r.line.TopicID))
		r.drop()
		return
	}
	mails := make([]mail, len(records))
	var bytes int64
	for i, rec := range records {
		mails[i] = mail{record: rec}
		bytes += cost(rec)
	}
	c.budget.take(bytes)
	held, ok := r.mail.push(mails...)
	if !ok {
		c.budget.give(bytes)
		return
	}
	r.delivered = records[len(records)-1].Offset + 1
	if held > c.Memory/pauseShare {
		r.gate.pause()
	}
}

// fetchError decides what an error of a fetch means. The client retries what
// can be retried; it never resets an offset.
func (c *consumer) fetchError(ctx context.Context, at place, err error) {
	var loss *kgo.ErrDataLoss
	r := c.at(at)
	switch {
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
	case r == nil:
		c.warn(fmt.Sprintf("fetch %s/%d", at.topic, at.number), err)
	case errors.As(err, &loss), errors.Is(err, kerr.UnknownTopicID):
		c.stopped(at, err)
		r.drop()
	case errors.Is(err, kerr.OffsetOutOfRange):
		if err := c.outOfRange(ctx, at, r); err != nil {
			c.stopped(at, err)
			r.drop()
		}
	default:
		c.warn(fmt.Sprintf("fetch %s/%d", at.topic, at.number), err)
	}
}

// outOfRange goes on at the log start where Kafka has deleted what was to come
// next; the stretch becomes a gap row. Where Kafka ends before that, the
// partition stops: going on would skip what Kafka writes there next.
func (c *consumer) outOfRange(ctx context.Context, at place, r *running) error {
	b, err := c.bounds(ctx, at.topic, at.number)
	if err != nil {
		return err
	}
	if err := b.check(r.delivered); err != nil {
		return err
	}
	from := max(r.delivered, b.start)
	r.mail.push(mail{lostTo: b.start})
	c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{at.topic: {at.number: {Epoch: -1, Offset: from}}})
	r.delivered = from
	return nil
}

// assign starts partitions that the group has given to this process, and tells
// the client where each is to be read from. One that cannot start is left out:
// nothing of it is read, and the alarm says why.
func (c *consumer) assign(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	<-c.ready
	out := map[string]map[int32]kgo.Offset{}
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(startParallel)
	for topic, numbers := range offsets {
		out[topic] = map[int32]kgo.Offset{}
		c.assigned.Add(int64(len(numbers)))
		for number := range numbers {
			g.Go(func() error {
				p, err := c.start(gctx, topic, number)
				if gctx.Err() != nil {
					return gctx.Err()
				}
				if err != nil {
					c.stopped(place{topic, number}, err)
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				out[topic][number] = c.launch(place{topic, number}, p)
				return nil
			})
		}
	}
	return out, g.Wait()
}

// launch lets a partition run, and returns where to fetch it from.
func (c *consumer) launch(at place, p *partition) kgo.Offset {
	from := kgo.NewOffset().At(p.fetchFrom)
	if p.fetchFrom == p.next {
		from = from.WithEpoch(p.state.LeaderEpoch) // so that the client notices a truncation
	}
	p.gate = gate{
		close: func() { c.client.PauseFetchPartitions(map[string][]int32{at.topic: {at.number}}) },
		open:  func() { c.client.ResumeFetchPartitions(map[string][]int32{at.topic: {at.number}}) },
	}
	r := &running{partition: p, delivered: p.fetchFrom}
	c.mu.Lock()
	old := c.parts[at]
	c.parts[at] = r
	c.mu.Unlock()
	if old != nil {
		old.drop()
	}
	go func() {
		if err := p.run(); err != nil && !errors.Is(err, errDropped) && !errors.Is(err, context.Canceled) {
			c.stopped(at, err)
		}
	}()
	return from
}

// stopped raises the alarm for a partition, and fetches no more of it.
func (c *consumer) stopped(at place, err error) {
	c.failed.Store(true)
	c.client.PauseFetchPartitions(map[string][]int32{at.topic: {at.number}})
	if f := c.events.Stopped; f != nil {
		l := archive.Line{Topic: at.topic, Partition: at.number}
		if r := c.at(at); r != nil {
			l = r.line
		}
		f(l, err)
	}
}

// revoke hands partitions back: the PUT in flight may end, what is durable is
// committed while the partition is still ours, and the rest is dropped.
func (c *consumer) revoke(ctx context.Context, _ *kgo.Client, lost map[string][]int32) {
	<-c.ready
	ctx, cancel := context.WithTimeout(ctx, c.ShutdownTimeout)
	defer cancel()
	gone := c.remove(lost)
	finishAll(ctx, gone, false)
	c.commit(ctx, func() map[place]*running { return gone })
}

// lose drops partitions that belong to somebody else by now.
func (c *consumer) lose(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	<-c.ready
	for _, r := range c.remove(lost) {
		r.drop()
		<-r.done
	}
}

// remove takes partitions out of the running ones.
func (c *consumer) remove(lost map[string][]int32) map[place]*running {
	gone := map[place]*running{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, numbers := range lost {
		c.assigned.Add(-int64(len(numbers)))
		for _, n := range numbers {
			at := place{topic, n}
			if r := c.parts[at]; r != nil {
				gone[at] = r
				delete(c.parts, at)
				c.client.ResumeFetchPartitions(map[string][]int32{topic: {n}})
				if f := c.events.Revoked; f != nil {
					f(r.line)
				}
			}
		}
	}
	return gone
}

// shutdown makes durable all that was read, as far as the time allows, and
// commits it.
func (c *consumer) shutdown() {
	ctx, cancel := context.WithTimeout(c.life, c.ShutdownTimeout)
	defer cancel()
	c.client.AllowRebalance()
	finishAll(ctx, c.all(), true)
	c.commit(ctx, c.all)
	if c.dlq != nil {
		if err := c.client.Flush(ctx); err != nil {
			c.warn("flush "+c.DLQTopic, err)
		}
	}
}

func finishAll(ctx context.Context, parts map[place]*running, flush bool) {
	var wg sync.WaitGroup
	for _, r := range parts {
		wg.Go(func() { r.finish(ctx, flush) })
	}
	wg.Wait()
}

// commitLoop commits durable offsets from time to time.
func (c *consumer) commitLoop(ctx context.Context) {
	t := time.NewTicker(c.CommitInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		c.commit(ctx, c.all)
	}
}

// commit tells Kafka how far partitions are durable. It is a hint: a crash
// before it, or an error, costs nothing.
func (c *consumer) commit(ctx context.Context, which func() map[place]*running) {
	c.commits.Lock()
	defer c.commits.Unlock()
	parts := which()
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for at, r := range parts {
		d := r.durable.Load()
		if d == nil || r.committed == *d {
			continue
		}
		if offsets[at.topic] == nil {
			offsets[at.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[at.topic][at.number] = kgo.EpochOffset{Epoch: d.epoch, Offset: d.offset}
	}
	if len(offsets) == 0 {
		return
	}
	var failed error
	c.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = commitError(resp, err)
	})
	if failed != nil {
		if ctx.Err() == nil {
			c.warn("commit offsets", failed)
		}
		return
	}
	for at, r := range parts {
		if o, ok := offsets[at.topic][at.number]; ok {
			r.committed = position{o.Offset, o.Epoch}
		}
	}
}

// commitError returns the first error of an offset commit.
func commitError(resp *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("%s/%d: %w", t.Topic, p.Partition, err)
			}
		}
	}
	return nil
}

// all returns the partitions that run now.
func (c *consumer) all() map[place]*running {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.parts)
}

func (c *consumer) at(p place) *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parts[p]
}

func (c *consumer) warn(what string, err error) {
	if f := c.events.Warn; f != nil {
		f(what, err)
	}
}

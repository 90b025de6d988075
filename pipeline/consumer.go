package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
)

// The largest fetch of one broker and of one partition, in bytes. A batch that
// is larger still comes whole.
const (
	fetchBytes          = 8 << 20
	fetchPartitionBytes = 1 << 20
)

// The share of the memory that copies of rejects may take, beside the rest,
// while the dead-letter topic does not take them.
const dlqShare = 8

// How long a broker may hold a fetch back that finds nothing. A client has one
// fetch at a broker at a time, so this is also how long a partition that has
// just been assigned or resumed may have to wait for idle ones.
const fetchWait = 250 * time.Millisecond

// A consumer reads the topics as a member of a group, or partitions that it was
// told to, and hands each partition its records.
type consumer struct {
	*shared
	client   *kgo.Client
	admin    *kadm.Client
	inflater *inflater
	copies   *copies
	mirror   *mirror
	life     context.Context // of partitions: it ends after a clean stop, not with it
	end      context.CancelFunc
	hangUp   context.CancelFunc // ends all that the client waits for
	halted   context.Context    // done when the run is to end by itself
	halt     context.CancelCauseFunc
	joined   atomic.Bool   // partitions have been assigned, maybe none
	turns    chan struct{} // holds a token for each partition that reads from the bucket to start
	// ready is closed once client and admin are set: the group may assign
	// partitions before NewClient has returned.
	ready chan struct{}

	mu     sync.Mutex
	parts  map[place]*running
	starts map[place]*starting
	held   map[place]bool     // partitions that this process was given
	late   []place            // partitions that started after their assignment was answered
	faults map[place]stopping // why partitions have stopped

	resets  sync.Map // archive.Line → *vouched: chain resets that were met
	leaders sync.Map // place → the broker that led it last, for what is read again

	commits chan struct{} // holds a token while offsets are committed: one commit at a time
	mute    bool          // vouchers may not be committed; guarded by commits
	silent  bool          // offsets may not be committed for partitions assigned by hand; guarded by commits
}

// A place is one partition of one topic.
type place struct {
	topic  string
	number int32
}

// only returns a place as the client names a set of partitions.
func (p place) only() map[string][]int32 { return map[string][]int32{p.topic: {p.number}} }

// byTopic returns what stands at places as the client wants it.
func byTopic[V any](at map[place]V) map[string]map[int32]V {
	out := map[string]map[int32]V{}
	for p, v := range at {
		if out[p.topic] == nil {
			out[p.topic] = map[int32]V{}
		}
		out[p.topic][p.number] = v
	}
	return out
}

// running is a partition at work.
type running struct {
	*partition
	started   *starting
	delivered int64                  // the offset after the last one delivered; owned by poll
	asking    bool                   // what Kafka holds; owned by poll
	ranged    atomic.Pointer[bounds] // its answer, to be taken in by poll
	end       atomic.Int64           // of Kafka, as of the last fetch
	committed position               // guarded by commits
}

// A stopping is a partition that has stopped, and why.
type stopping struct {
	line archive.Line
	err  error
}

func newConsumer(s Settings, ev Events) (*consumer, error) {
	inflater, err := newInflater(s.largestBatch())
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	c := &consumer{
		shared: newShared(s, ev), parts: map[place]*running{}, faults: map[place]stopping{}, ready: make(chan struct{}),
		inflater: inflater,
		starts:   map[place]*starting{}, held: map[place]bool{}, commits: make(chan struct{}, 1), turns: make(chan struct{}, startParallel),
	}
	c.copies, c.mirror = newCopies(c), newMirror(c, s.AnchorCopy)
	c.copy = c.copyAnchor
	c.life, c.end = context.WithCancel(context.Background())
	c.halted, c.halt = context.WithCancelCause(context.Background())
	var wire context.Context
	wire, c.hangUp = context.WithCancel(context.Background())
	opts := []kgo.Opt{
		kgo.WithContext(wire),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxPartitionBytes(fetchPartitionBytes),
		kgo.FetchMaxWait(fetchWait),
		kgo.WithDecompressor(inflater),
		kgo.WithHooks(inflater),
		kgo.RecordDeliveryTimeout(time.Minute),
		kgo.MaxBufferedBytes(int(s.Memory / dlqShare)), // nothing but copies of rejects is produced
	}
	if len(s.Assign) == 0 {
		opts = append(opts, c.membership()...)
	}
	client, err := kgo.NewClient(append(opts, s.Client...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	c.client, c.admin = client, kadm.NewClient(client)
	if s.DLQTopic != "" {
		c.dlq = func(r *kgo.Record) {
			// Where the topic does not keep up, copies are left out, and said to be.
			// The rejects are rows of the archive all the same.
			client.TryProduce(c.life, r, func(_ *kgo.Record, err error) {
				if err != nil {
					c.warn("copy a reject to "+s.DLQTopic, err)
				}
			})
		}
	}
	close(c.ready)
	return c, nil
}

// largestBatch returns how many bytes a compressed batch of Kafka may become:
// a quarter of the memory, for finding out takes a few times as much, and never
// less than four of the largest records.
func (s *Settings) largestBatch() int64 { return max(64<<20, s.Memory/4) }

// membership is what a client needs to share topics with a group.
func (c *consumer) membership() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(c.Group),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.AdjustFetchOffsetsFn(c.assign),
		kgo.OnPartitionsAssigned(c.given),
		kgo.OnPartitionsRevoked(c.revoke),
		kgo.OnPartitionsLost(c.lose),
	}
	topics := c.Topics
	if c.ControlTopic != "" {
		topics = append([]string{c.ControlTopic}, topics...)
	}
	if c.TopicPattern == "" {
		return append(opts, kgo.ConsumeTopics(topics...))
	}
	patterns := []string{wholeName(c.TopicPattern)}
	for _, t := range topics {
		patterns = append(patterns, wholeName(regexp.QuoteMeta(t)))
	}
	not := []string{"^__"}
	for _, t := range []string{anchorTopic, c.AnchorTopic, c.DLQTopic, controlTopic} {
		if t != "" && t != c.ControlTopic {
			not = append(not, wholeName(regexp.QuoteMeta(t)))
		}
	}
	return append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics(patterns...), kgo.ConsumeExcludeTopics(not...))
}

// given notes that the group has answered. Where it has given partitions, assign
// follows, and notes that when they are known.
func (c *consumer) given(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	if len(added) == 0 {
		c.joined.Store(true)
	}
}

// wholeName returns a pattern that matches where p matches all of a name.
func wholeName(p string) string { return "^(?:" + p + ")$" }

// Topics of ledgerlake's own, which a pattern never reads: where copies of
// anchors go, and the usual one of control records, which is read as such or not
// at all.
const (
	anchorTopic  = "ledgerlake.anchors"
	controlTopic = "ledgerlake.control"
)

func (c *consumer) run(ctx context.Context) error {
	defer c.hangUp()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.halted, cancel)()
	var copying sync.WaitGroup
	if c.AnchorTopic != "" {
		copying.Go(func() { c.copies.run(c.life) })
	}
	if c.AnchorCopy != nil {
		copying.Go(func() { c.mirror.run(c.life) })
	}
	defer copying.Wait()
	defer c.end()
	var aside sync.WaitGroup
	aside.Go(func() { c.commitLoop(ctx) })
	for _, p := range c.Assign {
		aside.Go(func() { c.read(ctx, place{p.Topic, p.Number}) })
	}
	c.poll(ctx)
	aside.Wait()
	c.shutdown()
	faults := c.hasFaults() // before the partitions are given away
	// To leave the group waits for a rebalance that is under way, and that for
	// members that may be dead. Nothing is lost by hanging up.
	late := time.AfterFunc(max(time.Second, c.ShutdownTimeout/4), c.hangUp)
	defer late.Stop()
	c.client.CloseAllowingRebalance()
	if cause := context.Cause(c.halted); errors.Is(cause, ErrWentBack) {
		return cause
	}
	if faults {
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
			t.EachPartition(func(p kgo.FetchPartition) {
				c.deliver(place{t.Topic, p.Partition}, t.TopicID, p.HighWatermark, p.Records)
			})
		})
		c.fetchLate()
		c.ranges()
		c.client.AllowRebalance()
		c.share()
	}
}

// share pauses the partitions that hold more than their share while memory is
// short. Each goes on by itself when its segments have become durable.
func (c *consumer) share() {
	if !c.budget.short() {
		return
	}
	for _, r := range c.all() {
		if r.greedy() {
			r.gate.pause()
			if !r.greedy() { // it became so meanwhile, and nobody would open the gate
				r.gate.resume()
			}
		}
	}
}

// deliver puts fetched records into their partition's mailbox, and pauses the
// partition when that holds enough.
func (c *consumer) deliver(at place, topicID kadm.TopicID, end int64, records []*kgo.Record) {
	r := c.at(at)
	if r == nil {
		return
	}
	r.end.Store(end)
	if len(records) == 0 {
		return
	}
	if id := encodeTopicID(topicID); topicID != (kadm.TopicID{}) && id != r.line.TopicID {
		c.stopped(at, r.started, fmt.Errorf("topic was deleted and created again (id %s, was %s): start again to archive the new one", id, r.line.TopicID))
		c.endOf(r)
		return
	}
	mails := make([]mail, len(records))
	var bytes int64
	for i, rec := range records {
		mails[i] = mail{record: rec}
		bytes += cost(rec)
	}
	r.take(bytes)
	held, ok := r.mail.push(mails...)
	if !ok {
		r.give(bytes)
		return
	}
	if records[0].Offset < r.fetchFrom {
		c.moveTo(map[place]*running{at: r}) // what lies below is accounted for, and skipped
	}
	r.delivered = max(r.delivered, records[len(records)-1].Offset+1)
	if held > c.Memory/pauseShare || r.greedy() {
		r.gate.pause()
	}
}

// fetchError decides what an error of a fetch means. The client retries what
// can be retried; it never resets an offset.
func (c *consumer) fetchError(ctx context.Context, at place, err error) {
	var loss *kgo.ErrDataLoss
	var large *kgo.ErrDecompressTooLarge
	r := c.at(at)
	switch {
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
	case errors.Is(err, errLater):
	case r == nil:
		c.warn(fmt.Sprintf("fetch %s/%d", at.topic, at.number), err)
	case errors.As(err, &loss):
		c.stopped(at, r.started, err)
		r.drop() // what was read may be what Kafka has lost
	case errors.Is(err, kerr.UnknownTopicID):
		c.stopped(at, r.started, err)
		c.endOf(r)
	case errors.As(err, &large):
		c.stopped(at, r.started, fmt.Errorf("the batch at offset %d inflates to more than %d MiB, which is what the setting memory allows: raise it, and start again", large.Offset, c.largestBatch()>>20))
		c.endOf(r)
	case errors.Is(err, kerr.OffsetOutOfRange):
		c.askRange(at, r)
	default:
		c.warn(fmt.Sprintf("fetch %s/%d", at.topic, at.number), err)
	}
}

// endOf lets a partition that gets no more records make durable what it has.
func (c *consumer) endOf(r *running) {
	go r.finish(c.life, true)
}

// askRange asks Kafka what a partition holds, and fetches nothing of it until
// that is known. It asks aside: nobody else waits for a broker that does not
// answer.
func (c *consumer) askRange(at place, r *running) {
	if r.asking {
		return
	}
	r.asking = true
	c.pause(at, r.started)
	go func() {
		if b, err := c.bounds(r.put, at.topic, at.number); err == nil {
			r.ranged.Store(&b)
		}
	}()
}

// ranges takes in what Kafka has answered since.
func (c *consumer) ranges() {
	for at, r := range c.all() {
		b := r.ranged.Swap(nil)
		if b == nil {
			continue
		}
		r.asking = false
		if err := c.outOfRange(at, r, *b); err != nil {
			c.stopped(at, r.started, err)
			r.drop()
			continue
		}
		r.gate.reopen()
	}
}

// outOfRange goes on at the log start where Kafka has deleted what was to come
// next; the stretch becomes a gap row. Where Kafka ends before that, the
// partition stops: going on would skip what Kafka writes there next.
func (c *consumer) outOfRange(at place, r *running, b bounds) error {
	if err := b.check(r.delivered); err != nil {
		return err
	}
	from := max(r.delivered, b.start)
	r.mail.push(mail{lostTo: b.start})
	c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{at.topic: {at.number: {Epoch: -1, Offset: from}}})
	r.delivered = from
	return nil
}

// fetchEpoch returns the leader epoch of the record before the first to be
// fetched, by which the client notices a truncation; -1 if it is not known.
func (r *running) fetchEpoch() int32 {
	if r.fetchFrom != r.begins {
		return -1
	}
	return r.epochAtStart
}

// stopped raises the alarm for a partition, and fetches no more of it.
// Where it belongs to somebody else by now, it does nothing: the next owner meets
// what who has met.
func (c *consumer) stopped(at place, who *starting, err error) {
	l := archive.Line{Topic: at.topic, Partition: at.number}
	c.mu.Lock()
	if c.owner(at) != who {
		c.mu.Unlock()
		return
	}
	c.client.PauseFetchPartitions(at.only())
	if r := c.parts[at]; r != nil {
		l = r.line
	}
	err = withWayOut(at, err)
	c.faults[at] = stopping{l, err}
	c.mu.Unlock()
	if f := c.events.Stopped; f != nil {
		f(l, err)
	}
	if errors.Is(err, ErrWentBack) {
		c.halt(fmt.Errorf("%s/%d: %w", at.topic, at.number, err))
	}
}

// owner returns the start of the partition that is at a place now. mu is held.
func (c *consumer) owner(at place) *starting {
	if r := c.parts[at]; r != nil {
		return r.started
	}
	return c.starts[at]
}

// pause stops the fetching of a partition, if it still is who's.
func (c *consumer) pause(at place, who *starting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owner(at) == who {
		c.client.PauseFetchPartitions(at.only())
	}
}

// unpause lets a partition be fetched again, if it still is who's and has not
// stopped.
func (c *consumer) unpause(at place, who *starting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, stopped := c.faults[at]; c.owner(at) == who && !stopped {
		c.client.ResumeFetchPartitions(at.only())
	}
}

func (c *consumer) hasFaults() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.faults) > 0
}

// revoke hands partitions back: the PUT in flight may end, what is durable is
// committed while the partition is still ours, and the rest is dropped.
func (c *consumer) revoke(ctx context.Context, _ *kgo.Client, lost map[string][]int32) {
	<-c.ready
	ctx, cancel := context.WithTimeout(ctx, c.ShutdownTimeout)
	defer cancel()
	gone := c.remove(lost)
	finishAll(ctx, gone, false)
	last, done := context.WithTimeout(context.WithoutCancel(ctx), max(time.Second, c.ShutdownTimeout/8))
	defer done()
	c.commit(last, func() map[place]*running { return gone })
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
		for _, n := range numbers {
			at := place{topic, n}
			delete(c.faults, at)
			c.hold(at, false)
			c.client.ResumeFetchPartitions(at.only())
			if st := c.starts[at]; st != nil {
				st.cancel()
				delete(c.starts, at)
			}
			if r := c.parts[at]; r != nil {
				gone[at] = r
				delete(c.parts, at)
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
	if !c.copies.flush(ctx) || !c.mirror.flush(ctx) {
		c.warn("copy the last anchors; the next start does", ctx.Err())
	}
	// What is durable is said in any case.
	last, done := context.WithTimeout(c.life, max(time.Second, c.ShutdownTimeout/8))
	defer done()
	c.commit(last, c.all)
	if c.dlq != nil {
		if err := c.client.Flush(last); err != nil {
			c.warn("flush "+c.DLQTopic, err)
		}
	}
}

// copyAnchor lets an anchor that is in the bucket be also where the settings say.
func (c *consumer) copyAnchor(l archive.Line, number int64, body []byte) {
	if c.AnchorTopic != "" {
		c.copies.send(l, number, body)
	}
	if c.AnchorCopy != nil {
		c.mirror.send(l, number, body)
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
	for renewed := c.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if now := c.Now(); now.Sub(renewed) > renewAfter {
			c.renew(ctx)
			renewed = now
		}
		c.commit(ctx, c.all)
	}
}

// How long an idle partition's offset and voucher stand before they are
// committed again: Kafka forgets the voucher of a week ago.
const renewAfter = 6 * time.Hour

// renew lets the next commit be one of all partitions.
func (c *consumer) renew(ctx context.Context) {
	if c.lockCommits(ctx) {
		defer c.unlockCommits()
		for at, r := range c.all() {
			if !c.hasStopped(at) { // somebody may have vouched for a chain reset since
				r.committed = position{}
			}
		}
	}
}

func (c *consumer) hasStopped(at place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, stopped := c.faults[at]
	return stopped
}

// lockCommits waits for its turn to commit, for as long as ctx lives.
func (c *consumer) lockCommits(ctx context.Context) bool {
	select {
	case c.commits <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *consumer) unlockCommits() { <-c.commits }

// How long one commit may take: a broker that does not answer must hold up no
// partition that is to be handed back.
const commitTimeout = 10 * time.Second

// commit tells Kafka how far partitions are durable. It is a hint: a crash
// before it, or an error, only means that more is compared at the next start.
func (c *consumer) commit(ctx context.Context, which func() map[place]*running) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if !c.lockCommits(ctx) {
		return
	}
	defer c.unlockCommits()
	parts := which()
	due := map[place]position{}
	for at, r := range parts {
		if d := r.durable.Load(); d != nil && r.committed != *d {
			due[at] = *d
		}
	}
	if len(due) == 0 {
		return
	}
	began := c.Now()
	err := errors.Join(c.commitOffsets(ctx, due), c.vouch(ctx, parts, due))
	c.tellOffsets(parts, due, began, err)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			c.warn("commit offsets", err)
		}
		return
	}
	for at, d := range due {
		parts[at].committed = d
	}
}

// tellOffsets tells of a commit of offsets.
func (c *consumer) tellOffsets(parts map[place]*running, due map[place]position, began time.Time, err error) {
	f := c.events.Offsets
	if f == nil {
		return
	}
	o := OffsetCommit{Began: began, Ended: c.Now(), Err: err}
	for at := range due {
		o.Lines = append(o.Lines, parts[at].line)
	}
	f(o)
}

// commitOffsets commits as a member of the group; where this process was told
// what to read, in the name of the group, which then must have no members.
func (c *consumer) commitOffsets(ctx context.Context, due map[place]position) error {
	if c.silent {
		return nil
	}
	if len(c.Assign) > 0 {
		offsets := kadm.Offsets{}
		for at, d := range due {
			offsets.Add(kadm.Offset{Topic: at.topic, Partition: at.number, At: d.offset, LeaderEpoch: d.epoch})
		}
		resp, err := c.admin.CommitOffsets(ctx, c.Group, offsets)
		if err = cmp.Or(err, resp.Error()); errors.Is(err, kerr.UnknownMemberID) {
			c.silent = true
			c.warn("group "+c.Group+" has members, so this process commits no offsets in its name: give it another --group", err)
			return nil
		}
		return err
	}
	offsets := map[place]kgo.EpochOffset{}
	for at, d := range due {
		offsets[at] = kgo.EpochOffset{Epoch: d.epoch, Offset: d.offset}
	}
	var failed error
	c.client.CommitOffsetsSync(ctx, byTopic(offsets), func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = commitError(resp, err)
	})
	return failed
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

func (sh *shared) warn(what string, err error) {
	if f := sh.events.Warn; f != nil {
		f(what, err)
	}
}

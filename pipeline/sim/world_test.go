package sim_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

const topic = "audit.calls"

// A world is Kafka, a bucket, and the processes between them, in one bubble.
type world struct {
	t      *testing.T
	seed   seed
	plan   plan
	dice   dice
	net    kfake.VirtualNetwork
	kafka  *kfake.Cluster
	memory *archive.Memory
	root   archive.Root

	producer      *kgo.Client
	transactional *kgo.Client
	inTransaction []*record
	values        *values
	step          int  // of the driver
	meddling      bool // the driver itself commits offsets
	procs         []*process
	pending       sync.WaitGroup // writes that arrive late

	mu      sync.Mutex
	trace   *trace
	fault   error
	lines   []*line
	weather weather
	away    weather         // of Kafka
	calm    bool            // no more faults
	writer  *archive.Writer // what honest segments say of their writer
	counts  map[string]int

	keys   keys
	heads  map[string]chain.Hash // that were signed, by log and size
	hidden map[string]bool       // objects that a restored backup does not have; nil: none was restored

	sending  chan struct{}                   // has room for who sends to the control topic
	orders   int                             // that people gave
	governs  []*governing                    // control rows, as they were archived
	strewn   map[string]time.Time            // keys that somebody wrote again after they were deleted, and when
	vouched  map[string]time.Time            // when the round began that sent a receipt first, by its id
	ghosts   map[string]string               // of those, segments below the watermark, and who wrote them
	contents map[chain.Hash]map[int64]trace1 // of objects, by their hash
}

// An outcome is what is left of a run.
type outcome struct {
	seed   seed
	plan   plan
	fault  error
	trace  *trace
	counts map[string]int
	took   time.Duration // bubble's time
}

// simulate runs the world of a seed from its beginning to its end.
func simulate(t *testing.T, s seed) outcome {
	t.Helper()
	cryptotest.SetGlobalRandom(t, uint64(s))
	seedRuntime(uint64(s))
	forgetDecoders()
	w := &world{t: t, seed: s, dice: s.dice(0), counts: map[string]int{}, values: newValues(s.dice(1)), heads: map[string]chain.Hash{}}
	if s.scrubs() {
		w.values.note = noted
	}
	w.ghosts = map[string]string{}
	w.strewn, w.vouched = map[string]time.Time{}, map[string]time.Time{}
	w.contents = map[chain.Hash]map[int64]trace1{}
	w.plan = newPlan(w.dice)
	watch := time.AfterFunc(patience, func() { panic(fmt.Sprintf("seed %d hangs: its clock stands still", s)) })
	defer watch.Stop()
	var took time.Duration
	synctest.Test(t, func(t *testing.T) {
		w.trace = newTrace()
		w.say("", "seed %d: %v", s, w.plan)
		w.count("by:" + w.plan.group)
		w.open()
		w.drive()
		w.finish()
		w.close()
		took = time.Since(w.trace.start)
	})
	forgetDecoders()
	return outcome{seed: s, plan: w.plan, fault: w.fault, trace: w.trace, counts: w.counts, took: took}
}

// patience is how long a seed may take, by the clock on the wall.
const patience = 5 * time.Minute

// forgetDecoders empties parquet-go's pool of zstd decoders: one that was made
// in a bubble must not be used in another.
func forgetDecoders() { pq.Zstd = zstd.Codec{Level: pq.Zstd.Level} }

// open makes Kafka, the topic, and the archive.
func (w *world) open() {
	w.memory = archive.NewMemory()
	w.memory.SetVersioning(w.plan.versioning)
	var err error
	w.kafka, err = kfake.NewCluster(kfake.NumBrokers(w.plan.brokers), kfake.Ports([]int{9093, 9094}[:w.plan.brokers]...), kfake.ListenFn(w.net.Listen),
		kfake.BrokerConfigs(map[string]string{
			"group.consumer.heartbeat.interval.ms": fmt.Sprint(session.Milliseconds() / 3),
			"group.consumer.session.timeout.ms":    fmt.Sprint(session.Milliseconds()),
		}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.root = archive.Root{
		Format: archive.Format, ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ01",
		CreatedAt: time.Now().UTC().Format(archive.TimeLayout), GraceSeconds: int64(w.plan.grace / time.Second),
	}
	body, err := json.Marshal(w.root)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.memory.Create(context.Background(), archive.RootKey, body); err != nil {
		w.t.Fatal(err)
	}
	w.root.SHA256 = sha256.Sum256(body)
	w.makeKeys()
	w.makeControl()
	w.makeTopic()
	w.producer = w.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(time.Millisecond))
	w.kafka.ControlKey(int16(kmsg.OffsetCommit), w.seeCommit)
}

func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.Dialer(w.net.DialContext), kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(50 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// makeTopic makes the topic, and a line for each of its partitions.
func (w *world) makeTopic() {
	configs := map[string]string{"retention.ms": "-1"}
	if w.plan.compacted {
		configs["cleanup.policy"] = "compact"
	}
	if err := w.kafka.CreateTopic(topic, w.plan.partitions, configs); err != nil {
		w.t.Fatal(err)
	}
	id := topicIDOf(w.kafka, topic)
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range w.plan.partitions {
		w.addLine(archive.Line{Topic: topic, TopicID: id, Partition: n})
	}
}

func topicIDOf(kafka *kfake.Cluster, topic string) string {
	id := kafka.TopicInfo(topic).TopicID
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// close ends all that still runs.
func (w *world) close() {
	for _, p := range w.procs {
		p.kill("the end of the world")
	}
	for _, p := range w.procs {
		select {
		case <-p.done:
		case <-time.After(10 * grace):
			w.stuck(p)
		}
	}
	time.Sleep(time.Millisecond)
	w.pending.Wait()
	w.producer.Close()
	if w.transactional != nil {
		w.transactional.Close()
	}
	w.kafka.Close()
	for _, p := range w.procs {
		for _, c := range p.conns {
			_ = c.Conn.Close()
		}
	}
}

// stuck ends the whole run where a process does not end: its bubble cannot.
func (w *world) stuck(p *process) {
	w.fail("%s does not end", p.name)
	stacks := make([]byte, 1<<20)
	panic(fmt.Sprintf("%s\n%s\nseed %d: %v", stacks[:runtime.Stack(stacks, true)], w.trace, w.seed, w.fault))
}

// say enters a line into the trace.
func (w *world) say(who, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace.say(who, format, args...)
}

func (w *world) note(who, what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace.note(who, what, n)
}

// count counts one event of a kind.
func (w *world) count(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[kind]++
}

// fail says what is wrong. The first time counts.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(format, args...)
}

func (w *world) failLocked(format string, args ...any) {
	if w.fault == nil {
		w.fault = fmt.Errorf(format, args...)
		w.trace.say("!!", "%v", w.fault)
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault != nil
}

// written hands a new segment to the oracle.
func (w *world) written(p *process, key string, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts["segment"]++
	n, ok := archive.ParseSegmentKey(key)
	l := w.lineLocked(n.TopicID, n.Partition)
	switch {
	case !ok || l == nil:
		w.failLocked("%s creates %s, which is of no line", p.name, key)
		return
	case n.Ordinal < l.watermark():
		// Its writer slept: the ordinal was compacted, and deleted. Nothing may be
		// built on it, and a compactor takes it away.
		w.counts["write-below-watermark"]++
		w.strewn[key], w.ghosts[key] = time.Now(), p.name
		w.trace.say(p.name, "%s is there again, below the watermark %d", short(key), l.watermark())
		return
	case l.forged >= 0:
		w.failLocked("%s builds on the forged segment %d: %s", p.name, l.forged, short(key))
		return
	case n.Ordinal != l.state.Ordinal:
		w.failLocked("%s creates %s, the next ordinal is %d", p.name, short(key), l.state.Ordinal)
		return
	}
	if err := l.judge(body, w.plan.window); err != nil {
		w.failLocked("%s creates %s: %v", p.name, short(key), err)
		return
	}
	if l.control {
		w.governed(l, n.Ordinal)
	} else {
		w.writer = &l.writer
	}
	w.trace.say(p.name, "%s is there: offsets up to %d of %d", short(key), l.state.NextOffset, l.end())
}

func (w *world) lineLocked(topicID string, partition int32) *line {
	for _, l := range w.lines {
		if l.TopicID == topicID && l.Partition == partition {
			return l
		}
	}
	return nil
}

// current returns the lines of the topic as it is now.
func (w *world) current() []*line { return w.lines[len(w.lines)-int(w.plan.partitions):] }

// read returns the lines that processes read now: those of the topic, and that
// of the control topic where there is one.
func (w *world) read() []*line {
	if l := w.controlLine(); l != nil {
		return append([]*line{l}, w.current()...)
	}
	return w.current()
}

// name writes a line in short.
func (w *world) name(l archive.Line) string {
	if l.TopicID == "" {
		return fmt.Sprintf("?/%d", l.Partition)
	}
	return fmt.Sprintf("%s/%d", l.TopicID[:4], l.Partition)
}

// acknowledged hears that a process takes a segment for durable.
func (w *world) acknowledged(p *process, at archive.Line, ordinal int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ghosts[archive.SegmentKey(at, ordinal)] == p.name && !p.dead.Load() {
		w.failLocked("%s goes on from segment %d of %s, which it wrote below the watermark", p.name, ordinal, w.name(at))
	}
}

// assigned hears that some process has a line.
func (w *world) assigned(at archive.Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.lineLocked(at.TopicID, at.Partition); l != nil && l.state.Ordinal > 0 {
		w.counts["takeover"]++
	}
}

// seeCommit sees every offset commit before Kafka acts on it: none may be above
// what is durable.
func (w *world) seeCommit(req kmsg.Request) (kmsg.Response, error, bool) {
	w.kafka.KeepControl()
	r := req.(*kmsg.OffsetCommitRequest)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.meddling {
		return nil, nil, false
	}
	for i := range r.Topics {
		id := base64.RawURLEncoding.EncodeToString(r.Topics[i].TopicID[:])
		for _, p := range r.Topics[i].Partitions {
			w.counts["offset-commit"]++
			w.trace.say("", "group %s commits offset %d of partition %d", r.Group, p.Offset, p.Partition)
			if err := w.mayCommit(r.Group, r.Topics[i].Topic, id, &p); err != nil {
				w.failLocked("group %s: %v", r.Group, err)
			}
		}
	}
	return nil, nil, false
}

// mayCommit requires that what is committed is durable. A commit that names no
// topic id, or one that was looked up by the name, may be meant for a topic of
// the same name that is gone.
func (w *world) mayCommit(group, topic, topicID string, p *kmsg.OffsetCommitRequestTopicPartition) error {
	if strings.HasSuffix(group, ".vouchers") {
		return w.mayVouch(p)
	}
	durable := int64(-1)
	for _, l := range w.lines {
		if l.Partition == p.Partition && (topic == "" || topic == l.Topic) && (l.TopicID == topicID || topicID == noTopicID || w.plan.group == "assign") {
			durable = max(durable, l.state.NextOffset)
		}
	}
	if p.Offset > durable {
		return fmt.Errorf("offset %d of partition %d is committed, durable is %d", p.Offset, p.Partition, durable)
	}
	return nil
}

// mayVouch requires that a segment that is vouched for is one that was judged.
// Its offset says nothing to anybody.
func (w *world) mayVouch(p *kmsg.OffsetCommitRequestTopicPartition) error {
	var v struct {
		TopicID string
		Ordinal int64
		SHA256  chain.Hash
	}
	if p.Metadata == nil {
		return fmt.Errorf("partition %d: no voucher", p.Partition)
	}
	if err := json.Unmarshal([]byte(*p.Metadata), &v); err != nil {
		return fmt.Errorf("voucher %q: %w", *p.Metadata, err)
	}
	l := w.lineLocked(v.TopicID, p.Partition)
	if l == nil || v.Ordinal >= int64(len(l.sums)) || l.sums[v.Ordinal] != v.SHA256 {
		return fmt.Errorf("segment %d of partition %d is vouched for, and is not what was judged", v.Ordinal, p.Partition)
	}
	return nil
}

// noTopicID is how a request writes that it names the topic by its name.
var noTopicID = base64.RawURLEncoding.EncodeToString(make([]byte, 16))

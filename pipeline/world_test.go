package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/proof"
)

const topic = "audit.calls"

// A world is a broker on a virtual network and a bucket in memory, inside one
// synctest bubble: time is fake, and an hour costs nothing.
type world struct {
	t      *testing.T
	net    kfake.VirtualNetwork
	kafka  *kfake.Cluster
	client *kgo.Client
	memory *archive.Memory
	bucket *faulty
}

// inWorld runs f in a bubble with a topic of so many partitions.
func inWorld(t *testing.T, partitions int32, f func(w *world)) {
	t.Helper()
	forgetDecoders()
	defer forgetDecoders()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, memory: archive.NewMemory()}
		w.bucket = &faulty{Bucket: w.memory}
		var err error
		w.kafka, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(9093), kfake.SeedTopics(partitions, topic), kfake.ListenFn(w.net.Listen))
		if err != nil {
			t.Fatal(err)
		}
		defer w.kafka.Close()
		w.client = w.dial(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.DefaultProduceTopic(topic))
		defer w.client.Close()
		f(w)
	})
}

// forgetDecoders empties parquet-go's pool of zstd decoders: one that was made
// in a bubble must not be used in another.
func forgetDecoders() { pq.Zstd = zstd.Codec{Level: pq.Zstd.Level} }

func (w *world) dial(opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append(w.options(), opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) options() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.Dialer(w.net.DialContext),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.FetchMaxWait(50 * time.Millisecond),
	}
}

// produce sends values to a partition, in order.
func (w *world) produce(partition int32, values ...string) {
	w.t.Helper()
	for _, v := range values {
		r := &kgo.Record{Partition: partition, Key: []byte("acme"), Value: []byte(v), Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte("acme")}}}
		if err := w.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A run is one ingest process.
type run struct {
	*pipeline.Ingest
	w      *world
	cancel context.CancelFunc
	done   chan error

	mu       sync.Mutex
	stopped  []error
	gaps     [][2]int64
	rejects  map[audit.Reason]int
	adopted  int
	anchors  int     // written
	taken    int     // anchors of somebody else
	compared []int64 // ordinals
	warned   []string

	notCopied []string
}

// ingest starts a process with settings that mutate may change.
func (w *world) ingest(mutate ...func(*pipeline.Settings)) *run {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{w: w, cancel: cancel, done: make(chan error, 1), rejects: map[audit.Reason]int{}}
	s := pipeline.Settings{
		Archive: w.bucket, Client: w.options(), Topics: []string{topic}, Version: "test", Rand: newSeeded(1),
	}
	for _, m := range mutate {
		m(&s)
	}
	w.t.Cleanup(func() { // where a test fails before it stops it
		cancel()
		time.Sleep(3 * time.Hour) // in which everything that was on its way has ended
	})
	r.Ingest = pipeline.New(s, r.events())
	go func() { r.done <- r.Run(ctx) }()
	return r
}

func (r *run) events() pipeline.Events {
	lock := func(f func()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		f()
	}
	return pipeline.Events{
		Stopped: func(_ archive.Line, err error) { lock(func() { r.stopped = append(r.stopped, err) }) },
		Gap:     func(_ archive.Line, from, to int64) { lock(func() { r.gaps = append(r.gaps, [2]int64{from, to}) }) },
		Rejected: func(_ archive.Line, _ int64, _ string, j audit.Reject) {
			lock(func() { r.rejects[j.Reason]++ })
		},
		Committed: func(c pipeline.Commit) {
			lock(func() {
				if c.Adopted {
					r.adopted++
				}
			})
		},
		Comparing: func(_ archive.Line, ordinal int64) { lock(func() { r.compared = append(r.compared, ordinal) }) },
		Anchored: func(a pipeline.Anchor) {
			lock(func() {
				if a.Adopted {
					r.taken++
				} else {
					r.anchors++
				}
			})
		},
		CopyFailed: func(_ archive.Line, what string, err error) {
			lock(func() { r.notCopied = append(r.notCopied, fmt.Sprint(what, ": ", err)) })
		},
		Warn: func(what string, err error) {
			lock(func() { r.warned = append(r.warned, fmt.Sprint(what, ": ", err)) })
		},
	}
}

// stop ends the process cleanly, and returns what it returned.
func (r *run) stop() error {
	r.cancel()
	return <-r.done
}

// wantCleanStop stops the process, once it has begun, and requires that nothing
// was wrong with it.
func (r *run) wantCleanStop() {
	r.w.t.Helper()
	waitFor(r.w.t, "the group's first assignment", func() bool { return r.Status().Joined || len(r.done) > 0 })
	if err := r.stop(); err != nil {
		r.w.t.Fatalf("stop: %v (stopped: %v, warned: %v)", err, r.stopped, r.warned)
	}
}

// newSeeded returns bytes that are the same in every run, and others for
// another seed: two writers never have the same salts.
func newSeeded(seed byte) io.Reader { return &seeded{src: rand.NewChaCha8([32]byte{seed})} }

type seeded struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

func (s *seeded) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.src.Read(b)
}

// A fate is what became of one offset.
type fate struct {
	kind   string // the row's kind, "duplicate", or the cause of a gap
	reason string // of a rejected row
	tenant string
	seq    int64
}

// A ledger is what the archive says of one partition.
type ledger struct {
	segments []*archive.SegmentObject
	fates    map[int64]fate
	made     []string // kinds of the rows that ingest made
	state    *archive.State
}

// check is the oracle: it walks every segment of a partition from the bucket
// alone, requires one unbroken line and one fate for each offset, and lets
// verify agree.
func (w *world) check(partition int32) *ledger {
	w.t.Helper()
	ctx := context.Background()
	report, err := proof.Verify(ctx, w.memory, proof.Options{Unsigned: true})
	if err != nil {
		w.t.Fatalf("verify: %v", err)
	}
	if code := report.ExitCode(); code != 0 && code != 4 {
		w.t.Fatalf("verify: exit %d: %v", code, report.Faults)
	}
	return w.ledger(partition)
}

func (w *world) ledger(partition int32) *ledger {
	w.t.Helper()
	return w.ledgerOf(archive.Line{Topic: topic, TopicID: w.topicID(), Partition: partition})
}

func (w *world) ledgerOf(l archive.Line) *ledger {
	w.t.Helper()
	ctx := context.Background()
	root, err := archive.OpenRoot(ctx, w.memory)
	if err != nil {
		w.t.Fatal(err)
	}
	out := &ledger{fates: map[int64]fate{}, state: archive.NewState(root.ArchiveID, l)}
	for {
		body, err := w.memory.Get(ctx, archive.SegmentKey(l, out.state.Ordinal))
		if errors.Is(err, archive.ErrNotFound) {
			return out
		}
		o, err := archive.ReadSegment(body, nil)
		if err != nil {
			w.t.Fatalf("segment %d: %v", out.state.Ordinal, err)
		}
		if err := out.state.Continues(o.Segment); err != nil {
			w.t.Fatalf("segment %d: %v", out.state.Ordinal, err)
		}
		out.state.Take(o)
		out.segments = append(out.segments, o)
		out.add(w.t, o)
	}
}

func (l *ledger) add(t *testing.T, o *archive.SegmentObject) {
	t.Helper()
	set := func(offset int64, f fate) {
		if old, ok := l.fates[offset]; ok {
			t.Fatalf("offset %d has two fates: %v and %v", offset, old, f)
		}
		l.fates[offset] = f
	}
	for i := range o.Rows {
		r := &o.Rows[i]
		if !r.KafkaOffset.Valid {
			l.made = append(l.made, r.Kind.S)
			continue
		}
		f := fate{kind: r.Kind.S, tenant: r.TenantID.S, seq: r.Seq.N}
		if r.Kind.S == audit.KindRejected {
			f.reason, _, _ = strings.Cut(strings.TrimPrefix(string(r.Slots[audit.SlotContext]), `{"reason":"`), `"`)
		}
		set(r.KafkaOffset.N, f)
	}
	for _, d := range o.Duplicates {
		set(d.Offset, fate{kind: "duplicate", tenant: d.Tenant, seq: d.Seq})
	}
	for _, g := range o.Gaps {
		for at := g.From; at < g.To; at++ {
			set(at, fate{kind: g.Cause})
		}
	}
}

// kinds returns the fates of the offsets from 0 on, as far as there are any.
func (l *ledger) kinds() []string {
	var out []string
	for at := int64(0); ; at++ {
		f, ok := l.fates[at]
		if !ok {
			return out
		}
		out = append(out, strings.TrimSuffix(f.kind+":"+f.reason, ":"))
	}
}

func (w *world) topicID() string {
	w.t.Helper()
	topics, err := kadm.NewClient(w.client).ListTopics(context.Background(), topic)
	if err != nil {
		w.t.Fatal(err)
	}
	id := topics[topic].ID
	return encodeID(id)
}

// committed returns the group's committed offset of a partition, -1 for none.
func (w *world) committed(group string, partition int32) int64 {
	w.t.Helper()
	offsets, err := kadm.NewClient(w.client).FetchOffsets(context.Background(), group)
	if err != nil {
		w.t.Fatal(err)
	}
	o, ok := offsets.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return o.At
}

// A faulty bucket fails to order. before and after may be nil; an error of
// before means that nothing happened, one of after that it did.
type faulty struct {
	archive.Bucket
	mu            sync.Mutex
	before, after func(op, key string) error
	calls         []string
}

func (b *faulty) set(before, after func(op, key string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before, b.after = before, after
}

func (b *faulty) hooks(op, key string) (before, after func(op, key string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, op+" "+key)
	return b.before, b.after
}

func (b *faulty) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	before, after := b.hooks("create", key)
	if before != nil {
		if err := before("create", key); err != nil {
			return time.Time{}, err
		}
	}
	at, err := b.Bucket.Create(ctx, key, body)
	if after != nil {
		err = errors.Join(err, after("create", key))
	}
	return at, err
}

func (b *faulty) Get(ctx context.Context, key string) ([]byte, error) {
	before, after := b.hooks("get", key)
	if before != nil {
		if err := before("get", key); err != nil {
			return nil, err
		}
	}
	body, err := b.Bucket.Get(ctx, key)
	if after != nil {
		err = errors.Join(err, after("get", key))
	}
	return body, err
}

func (b *faulty) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	b.hooks("list", prefix)
	return b.Bucket.List(ctx, prefix, after)
}

func (b *faulty) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	b.hooks("tail", key)
	return b.Bucket.GetTail(ctx, key, n)
}

// call returns a good record of a turn.
func call(session string, n int, more string) string {
	return fmt.Sprintf(`{"auditRecordVersion":19,"recordId":"01KRNR3ZG0%016d","sessionId":%q,"turnId":"t-1","stageId":"tool-loop","seqWithinTurn":%d,`+
		`"createdAt":"2026-05-15T12:00:00.000Z","principal":{"tenantId":"acme","userId":"u-1","actorKind":"user","sessionAuthMethod":"api-key"},`+
		`"call":{"callClass":"default","provider":"anthropic","model":"model-a","transport":"native"},"outcome":{"status":"ok","latencyMs":812}%s}`, n, session, n, more)
}

// calls returns so many good records, of seqWithinTurn from on.
func calls(session string, from, n int) []string {
	var out []string
	for i := range n {
		out = append(out, call(session, from+i, ""))
	}
	return out
}

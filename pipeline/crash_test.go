package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// A step is one thing that a process asks of the bucket or of Kafka while it
// takes a line over and writes its next segment.
type step struct {
	name string
	at   func(ask) bool
	// first prepares what has to go wrong before the step comes about.
	first func(*tether)
	// second: it is the second time that at happens.
	second bool
	// old: the archive is one of a version that wrote no anchors.
	old bool
	// creates is how often a create of segment 2 reaches the bucket, for each way
	// in which the step can go wrong.
	creates map[way]int
}

// A way is how a step goes wrong.
type way struct {
	after bool // it happened, and the reply is lost; else nothing happened
	kill  bool // the process dies there; else it lives and tries again
}

func (w way) String() string {
	name := "failed before"
	if w.after {
		name = "failed after"
	}
	if w.kill {
		return name + ", killed"
	}
	return name + ", lives on"
}

var ways = []way{{false, false}, {false, true}, {true, false}, {true, true}}

// once is for the other steps: however they go wrong, segment 2 is created once.
var once = map[way]int{ways[0]: 1, ways[1]: 1, ways[2]: 1, ways[3]: 1}

func bucketCall(op, key string) func(ask) bool {
	return func(c ask) bool { return c.op == op && strings.Contains(c.key, key) }
}

func kafkaCall(key kmsg.Key) func(ask) bool {
	return func(c ask) bool { return c.op == key.Name() }
}

func groupCall(key kmsg.Key, group string) func(ask) bool {
	return func(c ask) bool { return c.op == key.Name() && c.key == group }
}

var steps = []step{
	{name: "list the catalog", at: bucketCall("list", "catalog/"), creates: once},
	{name: "list the segments", at: bucketCall("list", "log/"), old: true, creates: once},
	{name: "find the newest anchor", at: bucketCall("tail", "anchor/"), creates: once},
	{name: "read the newest anchor", at: bucketCall("get", "anchor/"), creates: once},
	{name: "read the newest segment", at: bucketCall("get", "/00000000000000000001.parquet"), creates: once},
	{name: "read the metadata of an older one", at: bucketCall("tail", "/00000000000000000000.parquet"), old: true, creates: once},
	{name: "read the coordinates of an older one", at: bucketCall("get", "/00000000000000000000.parquet"), creates: once},
	{name: "look for a segment behind the newest", at: bucketCall("get", "/00000000000000000002.parquet"), creates: once},
	{name: "find the coordinator", at: kafkaCall(kmsg.FindCoordinator), creates: once},
	{name: "join the group", at: kafkaCall(kmsg.JoinGroup), creates: once},
	{name: "take the assignment", at: kafkaCall(kmsg.SyncGroup), creates: once},
	{name: "fetch the group's offsets", at: groupCall(kmsg.OffsetFetch, "ledgerlake"), creates: once},
	{name: "fetch the vouchers", at: groupCall(kmsg.OffsetFetch, "ledgerlake.vouchers"), creates: once},
	{name: "look up the topic", at: kafkaCall(kmsg.Metadata), creates: once},
	{name: "ask for Kafka's bounds", at: kafkaCall(kmsg.ListOffsets), creates: once},
	{
		name: "read again what nobody has vouched for", at: kafkaCall(kmsg.Fetch), creates: once,
		first: func(l *tether) { l.w.deleteGroup("ledgerlake.vouchers") },
	},
	{name: "fetch records", at: kafkaCall(kmsg.Fetch), creates: once},
	{
		name: "create the segment", at: bucketCall("create", "/00000000000000000002.parquet"),
		creates: map[way]int{
			{after: false, kill: false}: 1,
			{after: false, kill: true}:  1,
			{after: true, kill: false}:  2, // the second finds the first, and is told that it was its own
			{after: true, kill: true}:   1, // the next process finds it in the listing
		},
	},
	{
		name: "read it back", at: bucketCall("get", "/00000000000000000002.parquet"), second: true,
		first: func(l *tether) { l.fail(bucketCall("create", "/00000000000000000002.parquet"), way{after: true}) },
		creates: map[way]int{
			{after: false, kill: false}: 3,
			{after: false, kill: true}:  2,
			{after: true, kill: false}:  3,
			{after: true, kill: true}:   2,
		},
	},
	{name: "read the tail before it is anchored", at: bucketCall("get", "/00000000000000000002.parquet"), second: true, creates: once},
	{name: "create the anchor", at: bucketCall("create", "/00000000000000000001.note"), creates: once},
	{
		name: "read the anchor back", at: bucketCall("get", "/00000000000000000001.note"), creates: once,
		first: func(l *tether) { l.fail(bucketCall("create", "/00000000000000000001.note"), way{after: true}) },
	},
	{name: "commit the offset", at: groupCall(kmsg.OffsetCommit, "ledgerlake"), creates: once},
	{name: "commit the voucher", at: groupCall(kmsg.OffsetCommit, "ledgerlake.vouchers"), creates: once},
}

// A step can fail before it happens or after. TestEveryStepFailsBothWays tries
// both for every step that a process takes between its start and the offset
// commit, and lets it either try again or die there, in the middle of it. All
// lead to the same archive: three segments, each written once, each record one
// row, and the group's offset behind the last.
func TestEveryStepFailsBothWays(t *testing.T) {
	for _, s := range steps {
		for _, way := range ways {
			t.Run(s.name+"/"+way.String(), func(t *testing.T) {
				inWorld(t, 1, func(w *world) { w.crash(s, way) })
			})
		}
	}
}

func (w *world) crash(s step, way way) {
	if s.old {
		w.archivedWith(func(s *pipeline.Settings) { s.AnchorEvery = -1 }, calls("s", 0, 3), calls("s", 3, 3))
	} else {
		w.archived(calls("s", 0, 3), calls("s", 3, 3))
	}
	w.produce(0, calls("s", 6, 3)...)
	victim := w.tether()
	if s.first != nil {
		s.first(victim)
	}
	times := 0
	met := victim.fail(func(c ask) bool {
		if s.at(c) {
			times++
			return times == 2 || !s.second
		}
		return false
	}, way)
	r := victim.ingest(2)
	waitFor(w.t, "the step", met)
	if way.kill {
		r.cancel()
		<-r.done
		r = w.tether().ingest(3)
	}
	w.waitCommitted(0, 9)
	r.wantCleanStop()
	w.wantLine(3)
	wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 9)...)
	if r.adopted > 0 {
		w.t.Errorf("%d segments were adopted, and nobody else wrote any", r.adopted)
	}
	if got := w.creates("/00000000000000000002.parquet"); got != s.creates[way] {
		w.t.Errorf("%d creates of segment 2 reached the bucket, want %d", got, s.creates[way])
	}
}

// A process can be killed at any call that it makes of the bucket, whatever it
// is: TestKilledAtEveryCall counts the calls of a whole life and then ends one
// life at each of them.
func TestKilledAtEveryCall(t *testing.T) {
	life := 0
	inWorld(t, 1, func(w *world) { life = w.killedAt(-1, false) })
	if life < 6 {
		t.Fatalf("a life has %d calls, too few to be one", life)
	}
	for n := range life {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(way{after: after, kill: true}, " at call ", n), func(t *testing.T) {
				inWorld(t, 1, func(w *world) { w.killedAt(n, after) })
			})
		}
	}
}

// killedAt archives records in a process that is killed at its nth call of the
// bucket and in one that takes over, and returns how many calls the first made.
func (w *world) killedAt(n int, after bool) int {
	key := newKey(w.t, "k")
	often := func(s *pipeline.Settings) { signedBy(w.t, key)(s); s.AnchorEvery = 5 * time.Second }
	w.produce(0, calls("s", 0, 3)...)
	victim, made := w.tether(), 0
	met := victim.fail(func(c ask) bool {
		if c.kafka {
			return false
		}
		made++
		return made == n+1
	}, way{after: after, kill: true})
	r := victim.ingest(2, often)
	time.Sleep(6 * time.Second)
	w.produce(0, append(calls("s", 3, 3), call("s", 1, ""))...)
	time.Sleep(12 * time.Second) // a batch of repeats alone waits for 10 s
	r.cancel()
	if err := <-r.done; n < 0 && err != nil {
		w.t.Fatal(err)
	}
	if met() != (n >= 0) {
		w.t.Fatalf("the process was never killed")
	}
	r = w.tether().ingest(3, often)
	w.waitCommitted(0, 7)
	r.wantCleanStop()
	w.wantProved(key)
	w.wantNewestInKafka()
	wantKinds(w.t, w.check(0).kinds(), append(slices.Repeat([]string{"call"}, 6), "duplicate")...)
	return made
}

// wantNewestInKafka requires that Kafka has the newest anchor of partition 0.
func (w *world) wantNewestInKafka() {
	w.t.Helper()
	got, want := w.copiesInKafka()[0], int64(len(w.anchorsOf(0)))-1
	if len(got) == 0 || slices.Max(got) != want {
		w.t.Errorf("Kafka has anchors %v, the newest is %d", got, want)
	}
}

// A process can be killed while it copies an anchor to Kafka, before it is there
// or after: the next one sees to it, and calls nothing lost.
func TestKilledBetweenBucketAndKafka(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(way{after: after, kill: true}.String(), func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				key := newKey(t, "k")
				w.archivedWith(signedBy(t, key), calls("s", 0, 3))
				w.produce(0, calls("s", 3, 3)...)
				victim := w.tether()
				met := victim.fail(kafkaCall(kmsg.Produce), way{after: after, kill: true})
				r := victim.ingest(2, signedBy(t, key))
				waitFor(t, "the copy", met)
				r.cancel()
				<-r.done
				w.tether().ingest(3, signedBy(t, key)).waitAndStop(6)
				w.wantProved(key)
				w.wantNewestInKafka()
			})
		})
	}
}

// archived makes one segment of each group of records, by a process that ends
// cleanly.
func (w *world) archived(segments ...[]string) {
	w.t.Helper()
	w.archivedWith(func(*pipeline.Settings) {}, segments...)
}

func (w *world) archivedWith(mutate func(*pipeline.Settings), segments ...[]string) {
	w.t.Helper()
	r := w.tether().ingest(1, mutate)
	for i, values := range segments {
		w.produce(0, values...)
		w.waitSegments(i + 1)
	}
	r.wantCleanStop()
}

// wantLine requires that the bucket holds the archive's root, so many segments
// of partition 0, its anchors, and nothing else.
func (w *world) wantLine(segments int) {
	w.t.Helper()
	l := archive.Line{Topic: topic, TopicID: w.topicID(), Partition: 0}
	want := []string{"ledgerlake.json"}
	for n := range segments {
		want = append(want, archive.SegmentKey(l, int64(n)))
	}
	got := slices.DeleteFunc(w.memoryKeys(""), func(key string) bool { return strings.HasPrefix(key, archive.AnchorPrefix(l)) })
	if !slices.Equal(got, want) {
		w.t.Errorf("the bucket holds\n got %q\nwant %q", got, want)
	}
}

// creates counts how often a create of a key that contains part reached the
// bucket.
func (w *world) creates(part string) int {
	w.bucket.mu.Lock()
	defer w.bucket.mu.Unlock()
	n := 0
	for _, c := range w.bucket.calls {
		if strings.HasPrefix(c, "create ") && strings.Contains(c, part) {
			n++
		}
	}
	return n
}

// waitCommitted waits until the group has committed an offset of a partition,
// and has vouched for what lies below it.
func (w *world) waitCommitted(partition int32, want int64) {
	w.t.Helper()
	admin := kadm.NewClient(w.client)
	for _, group := range []string{"ledgerlake", "ledgerlake.vouchers"} {
		waitFor(w.t, fmt.Sprintf("the commit of offset %d for %s", want, group), func() bool {
			offsets, err := admin.FetchOffsets(context.Background(), group) // an error until there is a group
			o, ok := offsets.Lookup(topic, partition)
			return err == nil && ok && o.At == want
		})
	}
}

// waitFor waits until something has come about, for five minutes of the bubble.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 5 * 60 * 20 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s: not within five minutes", what)
}

// A tether is all that joins one process with the world: its view of the
// bucket, and its connections to Kafka. What a process asks can go wrong here.
// Once a tether is cut, its process is as good as killed: nothing that it does
// has an effect any more, and it hears from nobody.
type tether struct {
	w *world

	mu     sync.Mutex
	faults []*fault
	conns  map[*conn]bool // open ones
	gone   bool
}

// An ask is one thing that a process wants of the bucket or of Kafka.
type ask struct {
	op, key string // of the bucket; of Kafka, the request's name and the group whose offsets it is about
	kafka   bool
}

// A fault makes one call go wrong.
type fault struct {
	at  func(ask) bool
	way way
	// late: the call does not fail. It happens so long after it was made, or
	// happens at once and is answered so late.
	late time.Duration
	met  bool
}

var (
	errReset  = errors.New("connection reset")
	errKilled = errors.New("the process is dead")
)

func (w *world) tether() *tether { return &tether{w: w, conns: map[*conn]bool{}} }

// ingest starts a process on the tether whose salts come from seed. It is killed
// when the test ends.
func (l *tether) ingest(seed byte, mutate ...func(*pipeline.Settings)) *run {
	r := l.w.ingest(append([]func(*pipeline.Settings){func(s *pipeline.Settings) {
		s.Archive, s.Rand = l, newSeeded(seed)
		s.Client = append(s.Client, kgo.Dialer(l.dial))
	}}, mutate...)...)
	l.w.t.Cleanup(l.cut)
	return r
}

// fail makes the first call that at picks go wrong, and returns whether it has.
func (l *tether) fail(at func(ask) bool, way way) (met func() bool) {
	f := &fault{at: at, way: way}
	l.w.kafka.Control(func(r kmsg.Request) (kmsg.Response, error, bool) { return l.request(f, r) })
	return l.add(f)
}

// delay makes the first call of the bucket that at picks late, by d: what it
// asks for, or with after the answer to it.
func (l *tether) delay(at func(ask) bool, after bool, d time.Duration) (met func() bool) {
	return l.add(&fault{at: at, way: way{after: after}, late: d})
}

func (l *tether) add(f *fault) (met func() bool) {
	l.mu.Lock()
	l.faults = append(l.faults, f)
	l.mu.Unlock()
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return f.met
	}
}

// meet returns the fault that a call of the bucket meets, nil for none.
func (l *tether) meet(c ask) *fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.faults {
		if !f.met && f.at(c) {
			f.met = true
			return f
		}
	}
	return nil
}

// request lets a request of Kafka meet a fault. Before: the connection is cut,
// and the broker does nothing. After: the broker does it, and the connection is
// gone when it wants to answer.
func (l *tether) request(f *fault, r kmsg.Request) (kmsg.Response, error, bool) {
	l.mu.Lock()
	hit := !f.met && len(l.conns) > 0 && f.at(ask{op: kmsg.Key(r.Key()).Name(), key: groupOf(r), kafka: true})
	f.met = f.met || hit
	l.mu.Unlock()
	if !hit {
		l.w.kafka.KeepControl()
		return nil, nil, false
	}
	l.w.kafka.DropControl()
	if f.way.kill {
		l.cut()
	}
	if f.way.after {
		l.hangUp()
		return nil, nil, false
	}
	return nil, errReset, true
}

// groupOf returns the group whose offsets a request is about, "" for others.
func groupOf(r kmsg.Request) string {
	switch r := r.(type) {
	case *kmsg.OffsetCommitRequest:
		return r.Group
	case *kmsg.OffsetFetchRequest:
		for _, g := range r.Groups {
			return g.Group
		}
		return r.Group
	}
	return ""
}

// cut kills the process.
func (l *tether) cut() {
	l.mu.Lock()
	l.gone = true
	l.mu.Unlock()
	l.hangUp()
}

// hangUp closes the process's connections to Kafka.
func (l *tether) hangUp() {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

// connections returns how many connections to Kafka the process has open.
func (l *tether) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// A conn is a connection that its tether knows until it is closed.
type conn struct {
	net.Conn
	tether *tether
}

func (c *conn) Close() error {
	c.tether.mu.Lock()
	delete(c.tether.conns, c)
	c.tether.mu.Unlock()
	return c.Conn.Close()
}

func (l *tether) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

func (l *tether) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if l.dead() {
		return nil, errKilled
	}
	raw, err := l.w.net.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &conn{raw, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	return c, nil
}

// askFor lets one call of the bucket happen, or go wrong.
func askFor[T any](ctx context.Context, l *tether, op, key string, happen func(context.Context) (T, error)) (got T, err error) {
	if l.dead() {
		return got, errKilled
	}
	f := l.meet(ask{op: op, key: key})
	switch {
	case f == nil:
		return happen(ctx)
	case f.late > 0:
		return late(ctx, f, happen)
	case f.way.after:
		happen(ctx)
	}
	if f.way.kill {
		l.cut()
		return got, errKilled
	}
	return got, errReset
}

// late lets a call happen late, or answers it late. Whoever asked may give up
// meanwhile, or be killed: what is on its way still arrives.
func late[T any](ctx context.Context, f *fault, happen func(context.Context) (T, error)) (T, error) {
	type answer struct {
		got T
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		if !f.way.after {
			time.Sleep(f.late)
		}
		got, err := happen(context.WithoutCancel(ctx))
		if f.way.after {
			time.Sleep(f.late)
		}
		answers <- answer{got, err}
	}()
	select {
	case a := <-answers:
		return a.got, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (l *tether) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	return askFor(ctx, l, "create", key, func(ctx context.Context) (time.Time, error) { return l.w.bucket.Create(ctx, key, body) })
}

func (l *tether) Get(ctx context.Context, key string) ([]byte, error) {
	return askFor(ctx, l, "get", key, func(ctx context.Context) ([]byte, error) { return l.w.bucket.Get(ctx, key) })
}

func (l *tether) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	type tail struct {
		bytes []byte
		size  int64
	}
	t, err := askFor(ctx, l, "tail", key, func(ctx context.Context) (t tail, err error) {
		t.bytes, t.size, err = l.w.bucket.GetTail(ctx, key, n)
		return t, err
	})
	return t.bytes, t.size, err
}

// List fails before the first object, or after the last.
func (l *tether) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	return func(yield func(archive.Object, error) bool) {
		all, err := askFor(ctx, l, "list", prefix, func(ctx context.Context) (all []archive.Object, err error) {
			for o, err := range l.w.bucket.List(ctx, prefix, after) {
				if err != nil {
					return all, err
				}
				all = append(all, o)
			}
			return all, nil
		})
		for _, o := range all {
			if !yield(o, nil) {
				return
			}
		}
		if err != nil {
			yield(archive.Object{}, err)
		}
	}
}

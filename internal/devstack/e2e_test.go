package devstack

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// openBucket opens the stack's bucket, or a prefix of it, as ingest does.
func openBucket(t *testing.T, s *Stack, prefix string) *s3sink.Bucket {
	t.Helper()
	url := strings.Replace(s.BucketURL(), "?", prefix+"?", 1)
	b, err := s3sink.Open(t.Context(), url, s3sink.Options{AccessKey: AccessKey, SecretKey: SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The embedded S3 passes the whole suite that every bucket must pass.
func TestEmbeddedS3IsABucket(t *testing.T) {
	s := bring(t, Options{Dir: t.TempDir()})
	n := 0
	archivetest.Run(t, func(t *testing.T) archive.Bucket {
		n++
		return openBucket(t, s, fmt.Sprintf("/case-%03d", n))
	})
}

// It lets compact take things away as well.
func TestEmbeddedS3IsAStore(t *testing.T) {
	s := bring(t, Options{Dir: t.TempDir()})
	n := 0
	archivetest.RunStore(t, func(t *testing.T) *archivetest.Yard {
		n++
		return &archivetest.Yard{Store: openBucket(t, s, fmt.Sprintf("/case-%03d", n))}
	})
}

// Exporters can keep cursors in it.
func TestEmbeddedS3IsASwapper(t *testing.T) {
	s := bring(t, Options{Dir: t.TempDir()})
	n := 0
	archivetest.RunSwapper(t, func(t *testing.T) archive.Swapper {
		n++
		return openBucket(t, s, fmt.Sprintf("/case-%03d", n))
	})
}

// A log of calls remembers the S3 requests of a stack.
type callLog struct {
	mu    sync.Mutex
	calls []Call
}

func (l *callLog) add(c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

// take returns the calls since it was last called.
func (l *callLog) take() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := l.calls
	l.calls = nil
	return calls
}

// A world is a stack with records in front and ingest behind.
type world struct {
	t     *testing.T
	stack *Stack
	calls callLog
	sent  int
	want  proof.Totals // of the archive
}

func newWorld(t *testing.T, partitions int) *world {
	w := &world{t: t, want: proof.Totals{Rejects: map[string]int64{}}}
	w.stack = bring(t, Options{
		Dir: t.TempDir(), Request: w.calls.add,
		Topics: []Topic{{"audit.calls", partitions}, {"ledgerlake.control", 1}},
	})
	return w
}

// send produces n records and notes what the archive must hold of them.
func (w *world) send(g *workload.Generator, n int) {
	w.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.stack.Brokers()), kgo.DefaultProduceTopic("audit.calls"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	var records []*kgo.Record
	for range n {
		r := g.Next()
		switch w.want.Rows++; r.Class {
		case workload.Repeat:
			w.want.Rows--
			w.want.Duplicates++
		case workload.Broken, workload.Conflict:
			w.want.Rejects[r.Reason]++
		}
		k := &kgo.Record{Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		records = append(records, k)
	}
	w.sent += n
	if err := c.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// An ingest is one run of the pipeline in a world.
type ingest struct {
	w        *world
	stop     context.CancelFunc
	ended    chan error
	mu       sync.Mutex
	assigned int
	next     map[archive.Line]int64
	commits  int
	changed  chan struct{} // has something where one of the above changed
}

func (w *world) ingest() *ingest {
	ctx, stop := context.WithCancel(w.t.Context())
	i := &ingest{w: w, stop: stop, ended: make(chan error, 1), next: map[archive.Line]int64{}, changed: make(chan struct{}, 1)}
	settings := pipeline.Settings{
		Archive: openBucket(w.t, w.stack, ""), Client: []kgo.Opt{kgo.SeedBrokers(w.stack.Brokers()), kgo.MetadataMinAge(100 * time.Millisecond)},
		Topics: []string{"audit.calls"}, ControlTopic: "ledgerlake.control",
	}
	events := pipeline.Events{
		Assigned:  func(l archive.Line, offset, _ int64) { i.note(func() { i.assigned++; i.next[l] = offset }) },
		Committed: func(c pipeline.Commit) { i.note(func() { i.commits++; i.next[c.Line] = c.NextOffset }) },
		Stopped:   func(l archive.Line, err error) { w.t.Errorf("%s/%d stopped: %v", l.Topic, l.Partition, err) },
		Warn:      func(what string, err error) { w.t.Logf("%s: %v", what, err) },
	}
	go func() { i.ended <- pipeline.Run(ctx, settings, events) }()
	return i
}

func (i *ingest) note(change func()) {
	i.mu.Lock()
	change()
	i.mu.Unlock()
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// until waits for a condition over what was noted.
func (i *ingest) until(what string, holds func() bool) {
	i.w.t.Helper()
	late := time.After(time.Minute)
	for {
		i.mu.Lock()
		ok := holds()
		i.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-i.changed:
		case err := <-i.ended:
			i.w.t.Fatalf("waiting until %s: ingest ended: %v", what, err)
		case <-late:
			i.w.t.Fatalf("waiting until %s: a minute has passed; lines stand at %v", what, i.next)
		}
	}
}

// accounted waits until each offset that was sent is in a durable segment.
func (i *ingest) accounted() {
	i.w.t.Helper()
	i.until("all is accounted for", func() bool {
		var sum int64
		for n := range maps.Values(i.next) {
			sum += n
		}
		return sum == int64(i.w.sent)
	})
}

// end stops ingest, which must end cleanly.
func (i *ingest) end() {
	i.w.t.Helper()
	i.stop()
	if err := <-i.ended; err != nil {
		i.w.t.Fatalf("ingest ended: %v", err)
	}
}

// verify checks the archive, over S3 and as plain files, and compares it with
// what was sent.
func (w *world) verify() {
	w.t.Helper()
	files, err := archive.OpenDir(w.stack.BucketDir())
	if err != nil {
		w.t.Fatal(err)
	}
	defer files.Close()
	for name, src := range map[string]archive.Source{"S3": openBucket(w.t, w.stack, ""), "files": files} {
		r, err := proof.Verify(w.t.Context(), src, proof.Options{Unsigned: true})
		if err != nil {
			w.t.Fatalf("verify of %s: %v", name, err)
		}
		if r.ExitCode() != 0 || r.StrayCount != 0 {
			w.t.Errorf("verify of %s: exit %d, faults %v, strays %v, less %v, looks %v", name, r.ExitCode(), r.Faults, r.Strays, r.Less, r.Looks)
		}
		got := r.Totals
		if got.Rows != w.want.Rows || got.Duplicates != w.want.Duplicates || got.Made != 0 || !maps.Equal(got.Rejects, w.want.Rejects) {
			w.t.Errorf("the archive in %s has %d rows, %d duplicates, %d made, rejects %v;\nwant %d, %d, 0, %v", name,
				got.Rows, got.Duplicates, got.Made, got.Rejects, w.want.Rows, w.want.Duplicates, w.want.Rejects)
		}
		if got.Rows+got.Duplicates != int64(w.sent) {
			w.t.Errorf("%d rows + %d duplicates are not the %d records", got.Rows, got.Duplicates, w.sent)
		}
	}
}

func traffic(seed uint64) *workload.Generator {
	g := workload.New(seed, 20)
	g.Broken, g.Repeats, g.Conflicts = 0.02, 0.02, 0.01
	return g
}

// From Kafka to a verified archive: every record is a row, a rejected row for
// the right reason or a counted duplicate, also over a restart. In the steady
// state a segment costs one PUT, and nothing else is asked of S3.
func TestEndToEnd(t *testing.T) {
	const partitions = 8
	w := newWorld(t, partitions)
	g := traffic(42)
	w.send(g, 1000)
	i := w.ingest()
	i.until("all lines are assigned", func() bool { return i.assigned == partitions+1 })
	i.accounted()

	w.calls.take()
	before := i.commits
	for range 4 { // in portions, so that there are many segments
		w.send(g, 1000)
		i.accounted()
	}
	checkSteady(t, w.calls.take(), i.commits-before)
	i.end()
	w.verify()

	i = w.ingest()
	w.send(g, 500)
	i.accounted()
	i.end()
	w.verify()
}

// checkSteady wants one PUT of a new key for each segment, and no other call.
func checkSteady(t *testing.T, calls []Call, segments int) {
	t.Helper()
	keys := map[string]bool{}
	for _, c := range calls {
		if c.Method != "PUT" || keys[c.Path] || !strings.HasPrefix(c.Path, "/audit/log/audit.calls/") {
			t.Errorf("in the steady state: %s %s %s", c.Method, c.Path, c.Query)
		}
		keys[c.Path] = true
	}
	if len(calls) != segments || segments < minSegments {
		t.Errorf("%d calls for %d segments", len(calls), segments)
	}
}

// minSegments is how many segments the steady state must have for its
// counts to mean something.
const minSegments = 20

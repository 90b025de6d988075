package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// errDead is what the code of a dead process sees. Nobody else does.
var errDead = errors.New("the process is dead")

// A process is one ingest: the real engine, with a bucket and a network of its
// own in between, through which it can be made to stop, to sleep and to fail.
type process struct {
	w      *world
	name   string
	n      int
	cancel context.CancelFunc // asks it to stop
	unplug context.CancelFunc // ends its client for good
	ingest *pipeline.Ingest
	done   chan struct{}
	err    error // of Run, once done
	dead   atomic.Bool
	asked  atomic.Bool // to stop
	group  string

	compacts bool // it has no ingest: it is a compactor, or
	reads    bool // a reader

	mu       sync.Mutex
	began    time.Time     // the round of a compactor
	thaw     chan struct{} // closed at the end of a freeze; nil while it runs
	armed    *trap
	conns    []*conn
	attempts map[string]int
	writing  map[string]context.Context // segments of a line that are on their way
	stopped  map[archive.Line]error
	started  map[archive.Line]bool
	askedAt  time.Time // to stop
	froze    bool      // at least once
	endedAt  time.Time // dead or ended since
}

// A trap is a crash or a freeze at the n-th await point of a kind from now on.
type trap struct {
	op     string // "" = any
	left   int
	freeze time.Duration // 0 = crash
}

// A point is where a process waits for somebody else.
type point struct {
	op, key string
}

// started returns how many processes of a kind were started.
func (w *world) started(kind string) (n int) {
	for _, p := range w.procs {
		if p.name[:1] == kind {
			n++
		}
	}
	return n
}

// newProcess returns a process that does nothing yet.
func (w *world) newProcess(name string, n int) *process {
	p := &process{
		w: w, n: n, name: name, done: make(chan struct{}),
		attempts: map[string]int{}, writing: map[string]context.Context{}, stopped: map[archive.Line]error{},
		started: map[archive.Line]bool{},
	}
	w.procs = append(w.procs, p)
	return p
}

// run lets a process do something until it is done or asked to stop.
func (w *world) run(p *process, do func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	if p.unplug == nil {
		p.unplug = func() {}
	}
	w.count("start")
	w.say(p.name, "starts")
	go func() {
		defer close(p.done)
		defer p.unplug()
		p.err = do(ctx)
		if !p.dead.Load() {
			w.say(p.name, "has ended: %v", p.err)
			p.mu.Lock()
			p.endedAt = time.Now()
			if took := p.endedAt.Sub(p.askedAt); p.asked.Load() && !p.froze && took > shutdown+stopSlack {
				w.fail("%s took %v to stop", p.name, took)
			}
			p.mu.Unlock()
		}
	}()
}

// roundBegan returns when a compactor began what it does now.
func (p *process) roundBegan() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.began
}

// startProcess starts an ingest.
func (w *world) startProcess(mutate ...func(*pipeline.Settings)) *process {
	n := w.started("p")
	p := w.newProcess(fmt.Sprintf("p%d", n), n)
	group, opts := w.plan.member(n)
	plug, unplug := context.WithCancel(context.Background())
	p.unplug = unplug
	s := pipeline.Settings{
		Archive: &store{p}, Group: group, Topics: []string{topic}, Version: w.plan.version(n), Scrub: w.policy(),
		Client: append([]kgo.Opt{
			kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.Dialer(p.dial), kgo.WithContext(plug), kgo.DisableClientMetrics(), kgo.ClientID(p.name),
			kgo.MetadataMinAge(100 * time.Millisecond), kgo.FetchMaxWait(3 * time.Second),
		}, opts...),
		Batch: w.plan.batch, Window: w.plan.window, ShutdownTimeout: shutdown,
		// The log start may pass what was not vouched for; and of what is compacted
		// without a key, Kafka knows nothing but by a voucher.
		TrustTail: w.plan.deletes || w.plan.compacted || w.plan.compactors > 0 && !w.plan.signed,
		Rand:      &salts{src: rand.NewChaCha8(w.seed.key(n))},
	}
	if chance(w.seed.at(p.name, "root", "", 0), 0.7) {
		s.Root = w.root
	}
	if *logOf == p.name {
		s.Client = append(s.Client, kgo.WithLogger(kgo.BasicLogger(os.Stdout, kgo.LogLevelDebug, func() string {
			return fmt.Sprintf("%11.6f %s ", time.Since(w.trace.start).Seconds(), p.name)
		})))
	}
	if w.plan.governs {
		s.ControlTopic = audit.ControlTopic
	}
	w.anchoring(&s)
	if w.plan.group == "assign" {
		s.Topics, s.Assign = nil, w.share(n)
	}
	for _, m := range mutate {
		m(&s)
	}
	p.group, p.ingest = s.Group, pipeline.New(s, p.events())
	w.run(p, p.ingest.Run)
	return p
}

// share returns the partitions that the n-th process is told to read: all, or
// all but one, so that some partitions have two writers.
func (w *world) share(n int) []pipeline.Partition {
	var out []pipeline.Partition
	if w.plan.governs {
		out = append(out, pipeline.Partition{Topic: audit.ControlTopic})
	}
	for i := range w.plan.partitions {
		if w.plan.partitions == 1 || n%3 == 0 || int(i) != n%int(w.plan.partitions) {
			out = append(out, pipeline.Partition{Topic: topic, Number: i})
		}
	}
	return out
}

func (s seed) key(n int) (k [32]byte) {
	for i := range k {
		k[i] = byte(s.at("salts", "", "", n*32+i))
	}
	return k
}

// salts are random bytes that a seed gives.
type salts struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

func (s *salts) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.src.Read(b)
}

// say writes down what the process does. The dead do nothing.
func (p *process) say(format string, args ...any) {
	if !p.dead.Load() {
		p.w.say(p.name, format, args...)
	}
}

// events writes down what the process says.
func (p *process) events() pipeline.Events {
	say := p.say
	return pipeline.Events{
		Assigned: func(l archive.Line, offset, ordinal int64) {
			p.w.assigned(l)
			p.mu.Lock()
			p.started[l] = true
			p.mu.Unlock()
			say("has %s from offset %d, ordinal %d", p.w.name(l), offset, ordinal)
		},
		Comparing: func(l archive.Line, ordinal int64) {
			p.w.count("compared")
			say("compares %s segment %d", p.w.name(l), ordinal)
		},
		Revoked: func(l archive.Line) { say("gives back %s", p.w.name(l)) },
		Committed: func(c pipeline.Commit) {
			if c.Adopted {
				p.w.count("adopted")
			}
			p.w.acknowledged(p, c.Line, c.Ordinal)
			say("%s segment %d: %d rows, next offset %d, adopted %t", p.w.name(c.Line), c.Ordinal, c.Rows, c.NextOffset, c.Adopted)
		},
		Anchored: func(a pipeline.Anchor) {
			if a.Adopted {
				p.w.count("anchor-adopted")
			}
			say("%s anchor %d: up to segment %d, adopted %t", p.w.name(a.Line), a.Number, a.Ordinal, a.Adopted)
		},
		Gap: func(l archive.Line, from, to int64) { say("%s: offsets %d to %d are lost", p.w.name(l), from, to) },
		Retrying: func(l archive.Line, key string, attempt int, err error) {
			p.w.count("retry")
			say("tries %s again (%d): %v", short(key), attempt, err)
		},
		Stopped: func(l archive.Line, err error) {
			if p.dead.Load() {
				return
			}
			say("stops %s: %v", p.w.name(l), err)
			p.w.count("partition-stopped")
			p.mu.Lock()
			p.stopped[l] = err
			p.mu.Unlock()
		},
		Warn: func(what string, err error) { say("warns: %s: %v", what, err) },
	}
}

// alive reports whether the process still works.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return !p.dead.Load() && !p.asked.Load()
	}
}

// stop asks the process to end cleanly.
func (p *process) stop() {
	p.w.say(p.name, "is asked to stop")
	p.asked.Store(true)
	p.mu.Lock()
	p.askedAt = time.Now()
	p.mu.Unlock()
	p.w.count("clean-stop")
	p.cancel()
}

// kill ends the process as kill -9 does: from now on nothing of it has an
// effect, and nobody is told. What remains of it winds down unseen.
func (p *process) kill(why string) {
	if p.dead.Swap(true) {
		return
	}
	p.w.say(p.name, "dies: %s", why)
	p.mu.Lock()
	p.endedAt = time.Now()
	conns := p.conns
	p.mu.Unlock()
	for _, c := range conns {
		_ = c.forsake()
	}
	p.wake()
	p.unplug()
	p.cancel()
}

// freeze stops all IO of the process for some time.
func (p *process) freeze(d time.Duration, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thaw != nil || p.dead.Load() {
		return
	}
	p.w.say(p.name, "freezes for %v: %s", d, why)
	thaw := make(chan struct{})
	p.thaw, p.froze = thaw, true
	go func() {
		select {
		case <-time.After(d):
			p.wake()
		case <-thaw:
		}
	}()
}

func (p *process) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thaw != nil {
		close(p.thaw)
		p.thaw = nil
		if !p.dead.Load() {
			p.w.say(p.name, "wakes up")
		}
	}
}

func (p *process) frozen() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thaw
}

// held waits for the end of a freeze, and returns errDead where there is no end.
func (p *process) held() error {
	for !p.dead.Load() {
		thaw := p.frozen()
		if thaw == nil {
			return nil
		}
		<-thaw
	}
	return errDead
}

// spring triggers the trap of the process, if it is one for this kind of point
// and this is the one that it waits for.
func (p *process) spring(at point) {
	p.mu.Lock()
	t := p.armed
	if t == nil || t.op != "" && t.op != at.op {
		p.mu.Unlock()
		return
	}
	if t.left--; t.left > 0 {
		p.mu.Unlock()
		return
	}
	p.armed = nil
	p.mu.Unlock()
	if t.freeze > 0 {
		p.w.count("freeze:" + at.op)
		p.freeze(t.freeze, at.op+" "+short(at.key))
		return
	}
	p.w.count("crash:" + at.op)
	p.kill(at.op + " " + short(at.key))
}

// await is an await point: it takes some time, and the process may die or
// freeze there.
func (p *process) await(ctx context.Context, at point) error {
	d, _ := p.latency(at)
	return p.awaitFor(ctx, at, d)
}

// latency returns how long a point takes, and the how-manieth of its key it is.
func (p *process) latency(at point) (d time.Duration, n int) {
	n = p.attempt(at)
	d = between(p.w.seed.at(p.name, at.op, at.key, n), 50*time.Microsecond, p.w.slowest(at.op))
	return d, n
}

func (p *process) attempt(at point) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := at.op + " " + at.key
	p.attempts[k]++
	return p.attempts[k]
}

func (p *process) awaitFor(ctx context.Context, at point, d time.Duration) error {
	if !p.dead.Load() {
		p.spring(at)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for !p.dead.Load() {
		thaw := p.frozen()
		if thaw == nil {
			return ctx.Err()
		}
		select {
		case <-thaw:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	<-ctx.Done() // the dead wait for their end
	return errDead
}

// awaitRequest is the await point of a request to Kafka.
func (p *process) awaitRequest(key int16) (fault string, err error) {
	at := point{op: "send", key: kmsg.NameForKey(key)}
	if p.dead.Load() {
		return "", errDead
	}
	p.spring(at)
	n := p.attempt(at)
	draw := p.w.seed.at(p.name, at.op, at.key, n)
	time.Sleep(between(draw, 20*time.Microsecond, p.w.slowest(at.op)))
	if err := p.held(); err != nil {
		return "", err
	}
	return p.w.requestFault(p, key, scramble(draw)), nil
}

// dropConns breaks all connections of the process.
func (p *process) dropConns() {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, c := range conns {
		c.sever()
	}
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Partitions that read from the bucket at once in order to start.
const startParallel = 8

// How long an assignment waits for its partitions to start. One that takes
// longer (its line is long, or the store does not give it) is fetched as soon
// as it has started, and holds up no other.
const startPatience = 2 * time.Second

// starting is a partition on its way to run.
type starting struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it has started, or never will
	late   bool          // nobody waits for it any more; guarded by the consumer's mu
	since  time.Time
}

// assign starts partitions that the group has given to this process, and tells
// the client where each is to be read from. One that cannot start is left out:
// nothing of it is read, and the alarm says why.
func (c *consumer) assign(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	<-c.ready
	vouched, err := c.vouchers(ctx, slices.Collect(maps.Keys(offsets)))
	if err != nil {
		return nil, err
	}
	starts := map[place]*starting{}
	for topic, numbers := range offsets {
		for number := range numbers {
			at := place{topic, number}
			starts[at] = c.begin(at, vouched[at])
		}
	}
	c.joined.Store(true)
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	out := map[place]kgo.Offset{}
	for at, s := range starts {
		select {
		case <-s.done:
		case <-patience.C:
			patience.Reset(0)
			c.leave(at, s)
		case <-ctx.Done():
			return nil, ctx.Err() // what was given is taken away again, and so ends
		}
		if from, ok := c.fetchFrom(at, s); ok {
			out[at] = from
		}
	}
	return byTopic(out), nil
}

// read starts a partition that this process was told to read.
func (c *consumer) read(ctx context.Context, at place) {
	vouched, err := c.vouchers(ctx, []string{at.topic})
	if err != nil {
		return // ctx is done
	}
	s := c.begin(at, vouched[at])
	c.joined.Store(true)
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cancel()
		<-s.done
	}
	if from, ok := c.fetchFrom(at, s); ok {
		c.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{at.topic: {at.number: from}})
	}
}

// begin lets a partition start. Where it cannot, the alarm is raised.
func (c *consumer) begin(at place, vouched string) *starting {
	ctx, cancel := context.WithCancel(c.life)
	s := &starting{cancel: cancel, done: make(chan struct{}), since: c.Now()}
	c.mu.Lock()
	if old := c.starts[at]; old != nil {
		old.cancel()
	}
	c.starts[at] = s
	c.hold(at, true)
	c.mu.Unlock()
	c.startAside(ctx, at, s, vouched)
	return s
}

// again starts a partition anew that has ended because its line was compacted
// beyond it, unless it is somebody else's by now.
func (c *consumer) again(at place, who *starting, why error) {
	ctx, cancel := context.WithCancel(c.life)
	s := &starting{cancel: cancel, done: make(chan struct{}), since: c.Now(), late: true}
	c.mu.Lock()
	r := c.parts[at]
	if r == nil || r.started != who {
		c.mu.Unlock()
		cancel()
		return
	}
	c.client.PauseFetchPartitions(at.only())
	delete(c.parts, at)
	c.starts[at] = s
	c.mu.Unlock()
	c.warn(fmt.Sprintf("%s/%d: starts again", at.topic, at.number), why)
	go func() {
		vouched, err := c.vouchers(ctx, []string{at.topic})
		if err != nil { // ctx is done
			cancel()
			close(s.done)
			return
		}
		c.startAside(ctx, at, s, vouched[at])
	}()
}

// startAside starts a partition, and lets it run.
func (c *consumer) startAside(ctx context.Context, at place, s *starting, vouched string) {
	go func() {
		defer close(s.done)
		defer s.cancel()
		p, err := c.start(ctx, at, vouched)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			c.stopped(at, s, err)
		default:
			c.launch(at, s, p)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.starts[at] == s {
			delete(c.starts, at)
		}
	}()
}

// hold notes whether a partition is given to this process. mu is held.
func (c *consumer) hold(at place, held bool) {
	if held {
		c.held[at] = true
	} else {
		delete(c.held, at)
	}
	c.assigned.Store(int64(len(c.held)))
}

// leave does not wait for a start any more, or only for as long as its last
// step takes.
func (c *consumer) leave(at place, s *starting) {
	c.mu.Lock()
	s.late = c.starts[at] == s
	c.mu.Unlock()
	if !s.late {
		<-s.done
	}
}

// fetchFrom returns where a partition is to be fetched from: the place where it
// goes on; offset 0, and not yet, where its start is late; false where there is
// nothing to be fetched.
func (c *consumer) fetchFrom(at place, s *starting) (kgo.Offset, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.parts[at]; r != nil && r.started == s {
		c.client.ResumeFetchPartitions(at.only())
		return kgo.NewOffset().At(r.fetchFrom).WithEpoch(r.fetchEpoch()), true
	}
	if s.late && c.starts[at] == s {
		c.client.PauseFetchPartitions(at.only())
		return kgo.NewOffset().At(0), true
	}
	return kgo.Offset{}, false
}

// fetchLate lets the partitions be fetched whose start was late. It is called
// while nothing can be taken away.
func (c *consumer) fetchLate() {
	c.mu.Lock()
	late := map[place]*running{}
	for _, at := range c.late {
		if r := c.parts[at]; r != nil {
			late[at] = r
		}
	}
	c.late = nil
	c.mu.Unlock()
	c.moveTo(late)
	for at, r := range late {
		c.unpause(at, r.started)
	}
}

// moveTo lets partitions be fetched from where they go on.
func (c *consumer) moveTo(parts map[place]*running) {
	offsets := map[place]kgo.EpochOffset{}
	for at, r := range parts {
		offsets[at] = kgo.EpochOffset{Epoch: r.fetchEpoch(), Offset: r.fetchFrom}
	}
	if len(offsets) > 0 {
		c.client.SetOffsets(byTopic(offsets))
	}
}

// launch lets a partition run that has started.
func (c *consumer) launch(at place, s *starting, p *partition) {
	p.gate = gate{
		close: func() { c.pause(at, s) },
		open:  func() { c.unpause(at, s) },
	}
	r := &running{partition: p, started: s, delivered: p.fetchFrom}
	r.end.Store(p.endAtStart)
	c.mu.Lock()
	if c.starts[at] != s { // taken away meanwhile
		c.mu.Unlock()
		p.drop()
		return
	}
	old := c.parts[at]
	c.parts[at] = r
	delete(c.starts, at)
	delete(c.faults, at)
	if s.late {
		c.late = append(c.late, at)
	}
	c.mu.Unlock()
	if old != nil {
		old.drop()
	}
	go func() {
		err := p.run()
		switch {
		case err == nil || isDropped(err):
		case c.wasOvertaken(p, err):
			c.again(at, s, err)
		default:
			c.stopped(at, s, err)
		}
	}()
}

// wasOvertaken reports whether a partition has ended because compaction took what
// it stood on. Then what it met is no verdict on the line: there is an anchor that
// it did not know of, for nothing is compacted before it is anchored.
func (c *consumer) wasOvertaken(p *partition, err error) bool {
	if errors.Is(err, errOvertaken) {
		return true
	}
	if !isVerdict(err) && !errors.Is(err, errTailChanged) && !errors.Is(err, ErrForged) {
		return false
	}
	for attempt := 1; ; attempt++ {
		fault := p.look.look(c.life)
		if fault == nil {
			break
		}
		c.retrying(c.life, p.line, attempt, fault)
		if isVerdict(fault) || c.backOff(c.life, attempt) != nil {
			return false
		}
	}
	anchored := int64(0)
	if t := p.state.Tail.Anchor; t != nil {
		anchored = t.Ordinal + 1
	}
	return watermarkOf(p.look.catalog()) > anchored
}

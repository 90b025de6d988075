package sim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/proof"
)

// An act is one thing that the driver may do, how likely it is, and in which
// worlds; nil: in all.
type act struct {
	weight float64
	do     func(w *world)
	in     func(p *plan) bool
}

// acts is what a step may be.
var acts = []act{
	{30, func(w *world) { w.produce(w.producer, w.anyLine(), w.dice.from(1, 20), delivered) }, nil},
	{8, (*world).transact, nil},
	{8, (*world).startOne, nil},
	{5, (*world).stopOne, nil},
	{5, func(w *world) { w.withOne(func(p *process) { w.count("crash:now"); p.kill("now") }) }, nil},
	{10, (*world).armCrash, nil},
	{4, func(w *world) {
		w.withOne(func(p *process) { w.count("freeze:now"); p.freeze(w.sleep(), "now") })
	}, nil},
	{6, (*world).armFreeze, nil},
	{7, (*world).changeWeather, nil},
	{3, func(w *world) {
		w.withOne(func(p *process) { w.count("conns-dropped"); w.say(p.name, "loses its connections"); p.dropConns() })
	}, nil},
	{3, (*world).loseKafka, nil},
	{3, (*world).meddleWithAll, nil},
	{6, func(w *world) {
		if !w.forged() {
			w.compact()
		}
	}, func(p *plan) bool { return p.compacted }},
	{6, func(w *world) { w.moveLeader(w.anyLine()) }, func(p *plan) bool { return p.brokers > 1 }},
	{5, func(w *world) {
		if !w.forged() {
			one(w.dice, (*world).deleteRecords, (*world).deleteUnder)(w, w.anyLine())
		}
	}, func(p *plan) bool { return p.deletes }},
	{12, func(w *world) {
		if w.step > w.plan.steps*3/5 {
			w.forgeNext(w.anyLine())
		}
	}, func(p *plan) bool { return p.forges }},
	{6, (*world).restore, func(p *plan) bool { return p.restores }},
	{6, func(w *world) {
		if w.step > w.plan.steps*3/5 {
			w.forgeAnchor(w.anyLine())
		}
	}, func(p *plan) bool { return p.forgesAnchors }},
	{3, (*world).recreate, func(p *plan) bool { return p.recreates }},

	{6, (*world).litter, compacts},
	{5, (*world).look, compacts},
	{1, func(w *world) { w.verify(false) }, compacts},
	{18, (*world).erase, governs},
	{3, (*world).cancel, governs},
	{4, (*world).hold, governs},
	{4, (*world).cut, governs},
}

func compacts(p *plan) bool { return p.compactors > 0 }

func governs(p *plan) bool { return p.governs }

// drive lets things happen, one after the other.
func (w *world) drive() {
	for range w.plan.least {
		w.startOne()
	}
	for range w.plan.compactors {
		w.startCompactor()
	}
	for w.step = range w.plan.steps {
		if w.failed() {
			return
		}
		w.draw().do(w)
		w.operate()
		time.Sleep(w.pause())
	}
}

// draw draws what happens next.
func (w *world) draw() act {
	sum := 0.0
	var all []act
	for _, a := range acts {
		if a.in == nil || a.in(&w.plan) {
			all = append(all, a)
			sum += a.weight
		}
	}
	at := w.dice.Float64() * sum
	for _, a := range all {
		if at -= a.weight; at < 0 {
			return a
		}
	}
	return all[0]
}

// pause is the time between two steps: mostly short, sometimes longer than a
// session.
func (w *world) pause() time.Duration {
	switch at := w.dice.Float64(); {
	case at < 0.60:
		return w.dice.between(time.Millisecond, time.Second)
	case at < 0.93:
		return w.dice.between(time.Second, 8*time.Second)
	}
	return w.dice.between(session, 4*session)
}

// sleep is how long a process freezes: shorter or longer than the session, or
// longer than the grace.
func (w *world) sleep() time.Duration {
	switch at := w.dice.Float64(); {
	case at < 0.4:
		return w.dice.between(100*time.Millisecond, session)
	case at < 0.8:
		return w.dice.between(session, 3*session)
	}
	w.count("freeze-beyond-grace")
	return w.dice.between(w.plan.grace, 2*w.plan.grace)
}

func (w *world) anyLine() *line { return w.current()[w.dice.IntN(int(w.plan.partitions))] }

func (w *world) transact() {
	if len(w.inTransaction) > 0 {
		w.end(w.dice.chance(0.5))
		return
	}
	w.begin()
	if w.dice.chance(0.6) {
		w.end(w.dice.chance(0.5))
	}
}

func (w *world) alive() []*process {
	var out []*process
	for _, p := range w.procs {
		if p.alive() {
			out = append(out, p)
		}
	}
	return out
}

// ingests are the processes that are alive and no compactors.
func (w *world) ingests() []*process {
	return slices.DeleteFunc(w.alive(), func(p *process) bool { return p.compacts })
}

func (w *world) startOne() {
	if len(w.ingests()) >= w.plan.most {
		return
	}
	p := w.startProcess()
	if w.dice.chance(0.3) {
		t := trap{op: one(w.dice, "dial", "get", "get", "get-tail", "list", "send"), left: w.dice.from(1, 4)}
		if w.dice.chance(0.3) {
			t.freeze = w.sleep()
		}
		w.set(p, t)
	}
}

// withOne does something to a process that is alive.
func (w *world) withOne(do func(p *process)) {
	if alive := w.alive(); len(alive) > 0 {
		do(alive[w.dice.IntN(len(alive))])
	}
}

func (w *world) stopOne() { w.withOne((*process).stop) }

func (w *world) armCrash() {
	w.arm(trap{op: one(w.dice, "create", "create", "created", "created", "get", "get-tail", "list", "send", "send", "delete", "deleted", ""), left: w.dice.from(1, 6)})
}

func (w *world) armFreeze() {
	w.arm(trap{op: one(w.dice, "create", "created", "send", "delete", ""), left: w.dice.from(1, 6), freeze: w.sleep()})
}

func (w *world) arm(t trap) {
	w.withOne(func(p *process) { w.set(p, t) })
}

func (w *world) set(p *process, t trap) {
	w.say(p.name, "a trap is set: %+v", t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = &t
}

func (w *world) changeWeather() {
	n := weather{kind: one(w.dice, weathers...)}
	d := w.dice.between(time.Second, 4*grace)
	if alive := w.alive(); len(alive) > 0 && w.dice.chance(0.4) {
		n.of = alive[w.dice.IntN(len(alive))].name
	}
	w.say("", "the bucket: %s for %v, for %q", n.kind, d, n.of)
	w.mu.Lock()
	defer w.mu.Unlock()
	n.until = time.Now().Add(d)
	w.weather = n
}

// loseKafka takes Kafka away, from one process or from all.
func (w *world) loseKafka() {
	n := weather{kind: "kafka-away"}
	d := w.dice.between(time.Second, grace)
	if alive := w.alive(); len(alive) > 0 && w.dice.chance(0.6) {
		n.of = alive[w.dice.IntN(len(alive))].name
	}
	w.say("", "Kafka is away for %v, for %q", d, n.of)
	w.mu.Lock()
	n.until = time.Now().Add(d)
	w.away = n
	w.mu.Unlock()
	if w.dice.chance(0.3) {
		time.Sleep(w.dice.between(time.Millisecond, 2*time.Second))
		w.stopOne()
	}
}

// meddleWithAll ends all processes, waits until the group has forgotten them,
// and moves its offsets.
func (w *world) meddleWithAll() {
	for _, p := range w.ingests() {
		if w.dice.chance(0.5) {
			p.stop()
		} else {
			p.kill("before the offsets are moved")
		}
	}
	time.Sleep(3 * session)
	group, _ := w.plan.member(w.dice.IntN(2))
	w.meddle(group)
	w.startOne()
}

// forgeNext forges the next segment of a line, about records that nobody can
// have archived yet.
func (w *world) forgeNext(l *line) {
	w.produce(w.producer, l, w.dice.from(3, 12), delivered)
	w.forge(l)
}

// forged reports whether somebody has forged a segment of a line that is there.
// Then Kafka loses nothing more: what it no longer has cannot be compared.
func (w *world) forged() bool {
	return slices.ContainsFunc(w.current(), func(l *line) bool { return l.forged >= 0 || l.forgedAnchor >= 0 })
}

// operate is what the people do who watch: a process that has stopped a
// partition is started again, sooner or later, and there is hardly ever none.
func (w *world) operate() {
	for _, p := range w.alive() {
		if p.hasStopped() && w.dice.chance(0.3) {
			p.stop()
			w.startProcess()
		}
	}
	w.bury(2 * session)
	if len(w.ingests()) < w.plan.least && w.dice.chance(0.5) {
		w.startProcess()
	}
	w.operateCompactors()
}

// bury removes from the groups those members of which nothing was heard for
// some time. A coordinator does that by itself, but this one forgets a member
// whose connection broke while it joined.
func (w *world) bury(after time.Duration) {
	for n := range 2 {
		group, _ := w.plan.member(n)
		info := w.kafka.GroupInfo(group)
		if info == nil {
			continue
		}
		for _, m := range info.Members {
			i := slices.IndexFunc(w.procs, func(p *process) bool { return p.name == m.ClientID })
			if i < 0 || w.procs[i].ended().IsZero() || time.Since(w.procs[i].ended()) < after {
				continue
			}
			w.count("ghost")
			w.say(m.ClientID, "is taken out of group %s", group)
			req := kmsg.NewPtrLeaveGroupRequest()
			req.Group = group
			member := kmsg.NewLeaveGroupRequestMember()
			member.MemberID, member.InstanceID = m.MemberID, m.InstanceID
			req.Members = append(req.Members, member)
			if _, err := req.RequestWith(context.Background(), w.producer); err != nil {
				w.say("", "leave group: %v", err)
			}
		}
	}
}

// ended returns since when the process is dead or has ended, zero if it is not.
func (p *process) ended() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endedAt
}

// has reports whether the process has started with a line.
func (p *process) has(l *line) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started[l.Line]
}

// refuses reports whether the process has stopped a line because its newest
// segment is forged.
func (p *process) refuses(l *line) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, err := range p.stopped {
		if at.Partition == l.Partition && (at.TopicID == l.TopicID || at.TopicID == "") && (errors.Is(err, pipeline.ErrForged) || l.forgedAnchor >= 0) {
			return true
		}
	}
	return false
}

// doubts reports whether the process has stopped a line for what an honest
// segment says, because nothing is left that could say so.
func (p *process) doubts(l *line) bool {
	if l.forged >= 0 || l.forgedAnchor >= 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, err := range p.stopped {
		if at.Partition == l.Partition && (at.TopicID == l.TopicID || at.TopicID == "") && strings.Contains(err.Error(), "trust-tail accepts it") {
			return true
		}
	}
	return false
}

func (p *process) hasStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stopped) > 0
}

// finish lets the faults cease, ends every process, and requires that a healthy
// one archives all that is left.
func (w *world) finish() {
	w.mu.Lock()
	w.calm = true
	w.trace.say("", "from here on nothing fails")
	w.mu.Unlock()
	w.end(w.dice.chance(0.5))
	for _, p := range w.procs {
		p.mu.Lock()
		p.armed = nil
		p.mu.Unlock()
		p.wake()
	}
	for _, p := range w.alive() {
		if w.dice.chance(0.5) {
			p.stop()
		} else {
			p.kill("towards the end")
		}
	}
	for _, p := range w.procs {
		w.await(p)
	}
	time.Sleep(time.Millisecond) // what was on its way when they ended
	w.pending.Wait()
	if w.failed() {
		return
	}
	w.bury(0)
	for _, l := range w.current() {
		if w.plan.forges && w.dice.chance(0.5) {
			w.forgeNext(l)
		}
	}
	last := w.drain(w.startLast(false))
	w.finishCompaction(last)
	last.stop()
	w.await(last)
	if w.failed() {
		return
	}
	if last.err != nil && !errors.Is(last.err, pipeline.ErrPartitionStopped) {
		w.fail("the last process ends with %v", last.err)
	}
	w.checkCommitted(last.group)
	w.checkAnchors()
	w.verify(true)
}

// verify requires that the archive passes, and at T1 where its anchors are
// signed. A topic that was made again may have left a line that nobody anchors,
// and before the end not every line has an anchor.
func (w *world) verify(end bool) {
	o := proof.Options{Unsigned: !w.plan.signed}
	if w.plan.signed {
		o.Keys = &w.keys.ring
	}
	report, err := proof.Verify(context.Background(), w.memory, o)
	if err != nil {
		w.fail("verify: %v", err)
		return
	}
	forged := slices.ContainsFunc(w.lines, func(l *line) bool { return l.forgedAnchor >= 0 })
	switch code := report.ExitCode(); {
	case code == 0 || code == 4 || w.segments() == 0:
	case code == 3 && (w.plan.recreates || w.forged() || !end):
	case code == 1 && forged:
	default:
		w.fail("verify exits %d: %v %v", code, report.Faults, report.Less)
	}
	if forged && report.ExitCode() != 1 && report.ExitCode() != 3 {
		w.fail("verify does not see the forged anchor: exit %d", report.ExitCode())
	}
}

// checkCommitted requires that a clean stop has committed all that is durable.
func (w *world) checkCommitted(group string) {
	offsets, err := kadm.NewClient(w.producer).FetchOffsets(context.Background(), group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		w.fail("fetch the offsets of group %s: %v", group, err)
		return
	}
	for _, l := range w.read() {
		if l.forged >= 0 || l.forgedAnchor >= 0 || l.doubted {
			continue
		}
		if o, ok := offsets.Lookup(l.Topic, l.Partition); l.state.Ordinal > 0 && (!ok || o.At != l.state.NextOffset) {
			w.fail("group %s has committed offset %d of %s after a clean stop, durable is %d", group, o.At, w.name(l.Line), l.state.NextOffset)
		}
	}
}

func (w *world) segments() (n int64) {
	for _, l := range w.lines {
		n += l.state.Ordinal
	}
	return n
}

// await waits until a process has ended.
func (w *world) await(p *process) {
	select {
	case <-p.done:
	case <-time.After(10 * grace):
		w.fail("%s does not end", p.name)
	}
}

// startLast starts the process that archives what is left.
func (w *world) startLast(trust bool) *process {
	return w.startProcess(func(s *pipeline.Settings) {
		if len(s.Assign) > 0 {
			s.Assign = w.share(0)
		}
		if w.plan.upgrades {
			s.Version = "sim-last"
		}
		s.TrustTail = s.TrustTail || trust
	})
}

// drain waits until all that is due is archived, and returns the process that did
// it. Where an honest segment calls a record the repeat of a row that was erased
// hard or cut before an anchor covered the segment, nobody can tell it from a lie:
// the operator, who knows that nobody lies here, trusts the tail. Where somebody
// lies in another line, he lets it be.
func (w *world) drain(last *process) *process {
	trusted := false
	for range 4 * 600 {
		if w.failed() || w.drained(last) {
			return last
		}
		if !trusted && !w.forged() && slices.ContainsFunc(w.read(), last.doubts) {
			w.say("", "somebody trusts the tail")
			w.count("tail-trusted")
			last.stop()
			w.await(last)
			last, trusted = w.startLast(true), true
		}
		time.Sleep(250 * time.Millisecond)
	}
	for _, l := range w.read() {
		w.say("", "%s: archived up to %d, Kafka from %d to %d", w.name(l.Line), l.state.NextOffset, l.start, l.end())
	}
	w.fail("a healthy process does not archive what is left in 10 minutes")
	return last
}

func (w *world) drained(last *process) bool {
	for _, l := range w.read() {
		doubted := w.forged() && last.doubts(l)
		w.mu.Lock()
		forged, due := l.forged >= 0 || l.forgedAnchor >= 0, l.end() > max(l.start, l.state.NextOffset)
		l.doubted = doubted
		forged = forged || doubted
		w.mu.Unlock()
		if forged && !last.refuses(l) || !forged && (due || !last.has(l)) {
			return false
		}
	}
	return true
}

package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// An item is one event on its way.
type item struct {
	g        *lane    // whose cursor waits for it; nil: none does
	at       position // in front of it
	row      *chain.Row
	verified bool
	gatedBy  *control.Governance
	ev       *event.Event
	body     []byte
	pointer  bool   // too large: it goes without its content
	refused  string // why it is a dead letter before it was tried; "" where it is none
	done     func() // once it is delivered; may be nil
}

// A batch is what was read and is not acknowledged. At most one attempt of a
// runner is in flight.
type batch struct {
	pending []*item
	touched map[*lane]struct{} // whose read position moved since all was acknowledged
	bytes   int64
	opened  time.Time // when the first of what is pending was read, or came to be the first
	most    int       // events of an attempt, after a destination wanted smaller ones; 0: no limit
	attempt int       // that failed in a row
	dead    int       // events in a row that were refused for good
	gone    int       // times in a row that an object was gone
	size    int       // of the stored cursors, bytes
}

// A waiting is why a runner rests.
type waiting struct{ d time.Duration }

func (w *waiting) Error() string { return "waiting" }

// A suspended is why a destination stops.
type suspended struct{ reason string }

func (s *suspended) Error() string { return s.reason }

// attemptWithin is how long an attempt may take. Drivers have shorter limits of
// their own.
const attemptWithin = 10 * time.Minute

// Where neither the destination nor its settings say how much is sent at once.
const (
	usualEvents = 1000
	usualBytes  = 4 << 20
)

// limits returns what one attempt may have.
func (r *runner) limits() sink.Limits {
	own, theirs := r.d.Limits, r.d.Sink.Limits()
	l := sink.Limits{
		Events:     int(tighter(int64(own.Events), int64(theirs.Events), usualEvents)),
		BatchBytes: tighter(own.BatchBytes, theirs.BatchBytes, usualBytes),
		EventBytes: tighter(own.EventBytes, theirs.EventBytes, 0),
	}
	if l.EventBytes == 0 || l.EventBytes > l.BatchBytes {
		l.EventBytes = l.BatchBytes
	}
	return l
}

// room returns how many bytes of events are gathered: what an attempt may have, and
// no more than this runner's part of the destination's share.
func (r *runner) room(l *sink.Limits) int64 {
	return min(l.BatchBytes, max(r.d.share.batches/max(r.d.crew.Load(), 1), leastRoom))
}

// leastRoom is what a runner may gather however many there are.
const leastRoom = 64 << 10

// tighter returns the least of two limits that are set, or usual where none is.
func tighter(a, b, usual int64) int64 {
	switch {
	case a <= 0 && b <= 0:
		return usual
	case a <= 0:
		return b
	case b <= 0:
		return a
	}
	return min(a, b)
}

// encode writes an event in the destination's format. One that is too large goes
// as its pointer; one that still is becomes a dead letter.
func (r *runner) encode(it *item) {
	r.bytes -= int64(len(it.body))
	defer func() { r.bytes += int64(len(it.body)) }()
	for {
		body, err := r.encoder.Append(nil, it.ev)
		switch most := r.limits().EventBytes; {
		case err != nil:
			it.body, it.refused = nil, "it cannot be written in this format"
			return
		case int64(len(body)) <= most:
			it.body = body
			return
		case !it.toPointer():
			it.body, it.refused = nil, fmt.Sprintf("it has %d bytes, and %d are allowed", len(body), most)
			return
		}
	}
}

// noticesOf returns an erasure as items in front of a row, of so many ranges each that
// they fit.
func (r *runner) noticesOf(g *lane, at position, ev *event.Event, most int) (items []*item) {
	for _, part := range ev.Split(most) {
		it := &item{g: g, at: at, ev: part}
		if r.encode(it); it.refused != "" && it.halves() > 0 {
			r.bytes -= int64(len(it.body))
			items = append(items, r.noticesOf(g, at, part, it.halves())...)
			continue
		}
		items = append(items, it)
	}
	return items
}

// halves returns how many ranges a half of a notice has; 0 where it cannot be
// halved.
func (it *item) halves() int {
	if it.ev.Erasure == nil || len(it.ev.Erasure.Ranges) < 2 {
		return 0
	}
	return (len(it.ev.Erasure.Ranges) + 1) / 2
}

// toPointer takes the content out of an event, and reports whether it had any.
func (it *item) toPointer() bool {
	if it.ev.Kind != event.KindRecord {
		return false
	}
	it.ev, it.pointer = it.ev.Pointer(), true
	return true
}

// add puts events into the batch, and delivers it where it is full.
func (r *runner) add(ctx context.Context, items ...*item) error {
	if len(r.pending) == 0 && len(items) > 0 {
		r.opened = r.e.s.Now()
	}
	r.pending = append(r.pending, items...)
	if len(r.pending) == 0 {
		r.settle()
		return nil
	}
	l := r.limits()
	if len(r.pending) < l.Events && r.bytes < r.room(&l) {
		return nil
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	return r.storeDue(ctx)
}

// flush delivers the batch. The error is a [*waiting] where the rest of it has to
// wait, and a [*suspended] where the destination takes nothing.
func (r *runner) flush(ctx context.Context) error {
	for len(r.pending) > 0 {
		if err := r.bury(ctx); err != nil {
			return err
		}
		for _, it := range r.pending {
			if err := r.gate(ctx, it); err != nil {
				return err
			}
		}
		n := r.fits()
		if n == 0 {
			continue
		}
		if err := r.try(ctx, n); err != nil {
			return err
		}
	}
	r.settle()
	return nil
}

// fits returns how many of the first pending events one attempt may have; none
// where the first is a dead letter.
func (r *runner) fits() (n int) {
	l := r.limits()
	most := l.Events
	if r.most > 0 {
		most = min(most, r.most)
	}
	var bytes int64
	for _, it := range r.pending {
		bytes += int64(len(it.body))
		if it.refused != "" || n == most || n > 0 && bytes > l.BatchBytes {
			break
		}
		n++
	}
	return n
}

// try makes one attempt at the first n pending events.
func (r *runner) try(ctx context.Context, n int) error {
	tried := r.pending[:n]
	messages := make([]sink.Message, n)
	for i, it := range tried {
		messages[i] = sink.Message{Event: it.ev, Body: it.body, Backfill: r.job.id()}
	}
	began := r.e.s.Now()
	within, cancel := context.WithTimeout(ctx, attemptWithin)
	result := r.d.Sink.Deliver(within, messages)
	cancel()
	if len(result.Verdicts) != n {
		result = sink.All(n, sink.Verdict{Outcome: sink.Retry, Reason: "the driver gave no verdict"})
	}
	ended := r.e.s.Now()
	r.attempted(tried, result, began, ended)
	if ctx.Err() != nil && !slices.ContainsFunc(result.Verdicts, func(v sink.Verdict) bool { return v.Outcome == sink.Delivered }) {
		return context.Cause(ctx)
	}
	return r.judge(ctx, tried, result, ended.Sub(began))
}

// attempted tells of an attempt.
func (r *runner) attempted(tried []*item, result sink.Result, began, ended time.Time) {
	f := r.e.s.Events.Attempted
	if f == nil {
		return
	}
	a := Attempt{Opened: r.opened, Began: began, Ended: ended, Events: len(tried), Backfill: r.job != nil}
	for i, v := range result.Verdicts {
		a.Bytes += int64(len(tried[i].body))
		switch v.Outcome {
		case sink.Delivered:
			a.Delivered++
		case sink.Retry:
			a.Retry++
		}
	}
	f(r.d.Name, r.line, a)
}

// judge does what the verdicts of an attempt say.
func (r *runner) judge(ctx context.Context, tried []*item, result sink.Result, took time.Duration) error {
	var end *suspended
	delivered := Delivery{Took: took, Backfill: r.job != nil}
	retry, reason, split := 0, "", false
	gone := map[*item]bool{}
	for i, v := range result.Verdicts {
		it := tried[i]
		switch v.Outcome {
		case sink.Delivered:
			gone[it] = true
			r.delivered(it, &delivered)
		case sink.Split:
			split = true
			if len(tried) == 1 {
				r.tooLarge(it, v.Reason)
			}
		case sink.Suspend:
			end = &suspended{v.Reason}
		case sink.Poison:
			it.refused = v.Reason
			if it.refused == "" {
				it.refused = "refused"
			}
		default:
			retry++
			reason = v.Reason
		}
	}
	r.adapt(len(tried), split, len(gone))
	r.acknowledge(gone)
	if delivered.Events > 0 {
		r.attempt, r.dead = 0, 0
		r.d.delivered(r, delivered)
	}
	if err := r.bury(ctx); err != nil {
		return err
	}
	switch {
	case end != nil:
		return end
	case retry > 0:
		return r.again(retry, reason, result.After)
	case r.d.Stepwise:
		return r.storeDue(ctx)
	}
	return nil
}

// delivered takes note of one event.
func (r *runner) delivered(it *item, d *Delivery) {
	d.Events++
	d.Bytes += int64(len(it.body))
	if it.row != nil && it.g != nil {
		d.Rows++
		it.g.Delivered++
	}
	if it.done != nil {
		it.done()
	}
}

// tooLarge is for an event that was too large alone.
func (r *runner) tooLarge(it *item, reason string) {
	if it.toPointer() {
		r.encode(it)
		return
	}
	if n := it.halves(); n > 0 {
		i := slices.Index(r.pending, it)
		r.bytes -= int64(len(it.body))
		r.pending = slices.Replace(r.pending, i, i+1, r.noticesOf(it.g, it.at, it.ev, n)...)
		return
	}
	if it.refused = reason; reason == "" {
		it.refused = "too large, also without its content"
	}
}

// adapt sets how much the next attempt has: half, where this one was too large;
// twice as much, where it went well.
func (r *runner) adapt(n int, split bool, delivered int) {
	switch {
	case split:
		r.most = max(n/2, 1)
	case r.most > 0 && delivered == n:
		if r.most *= 2; r.most >= r.limits().Events {
			r.most = 0
		}
	}
}

// again returns how long to wait before the next attempt.
func (r *runner) again(events int, reason string, after time.Duration) error {
	r.attempt++
	d := max(after, r.e.backOff(r.attempt))
	r.d.waits(r, Wait{Attempt: r.attempt, Events: events, Reason: reason, For: d})
	return &waiting{d}
}

// acknowledge takes events out of the batch, and moves the cursors as far as
// nothing in front of them is left.
func (r *runner) acknowledge(gone map[*item]bool) {
	if len(gone) == 0 {
		return
	}
	for it := range gone {
		r.bytes -= int64(len(it.body))
	}
	r.pending = slices.DeleteFunc(r.pending, func(it *item) bool { return gone[it] })
	r.settle()
}

// settle moves each cursor to the first event of its lane that is pending, or to
// where the lane was read.
func (r *runner) settle() {
	first := map[*lane]position{}
	for _, it := range r.pending {
		if _, ok := first[it.g]; !ok {
			first[it.g] = it.at
		}
	}
	for g := range r.touched {
		p, waits := first[g]
		if !waits {
			p = g.read
			delete(r.touched, g)
		}
		if g.ack(p) {
			r.dirty = true
		}
	}
	if len(r.pending) == 0 {
		r.bytes = 0
		r.mark()
	}
}

// bury records what was refused for good, or has its lane wait.
func (r *runner) bury(ctx context.Context) error {
	dead := slices.Collect(func(yield func(*item) bool) {
		for _, it := range r.pending {
			if it.refused != "" && !yield(it) {
				return
			}
		}
	})
	if len(dead) == 0 {
		return nil
	}
	if r.d.Block {
		r.block(dead)
		return nil
	}
	if err := r.letters(ctx, dead); err != nil {
		return err
	}
	gone := map[*item]bool{}
	for _, it := range dead {
		gone[it] = true
		if it.g != nil && it.row != nil {
			it.g.Dead++
		}
	}
	r.acknowledge(gone)
	r.dirty = true
	if r.dead += len(dead); r.d.MaxDead > 0 && r.dead >= r.d.MaxDead {
		reason := dead[len(dead)-1].refused
		r.dead = 0
		return &suspended{fmt.Sprintf("%d events in a row were refused for good, the last one because: %s", r.d.MaxDead, reason)}
	}
	return nil
}

// errPoisoned: a lane waits in front of an event that its destination never takes.
var errPoisoned = errors.New("the destination refuses it for good, and on-poison is block")

// block has the lanes of refused events wait in front of them.
func (r *runner) block(dead []*item) {
	stopped := map[*lane]bool{}
	for _, it := range dead {
		if it.g == nil || stopped[it.g] {
			continue
		}
		stopped[it.g] = true
		r.stop(it.g, fmt.Errorf("tenant %q: seq %d: %w: %s", it.g.Tenant, it.at.next, errPoisoned, it.refused))
	}
	gone := map[*item]bool{}
	for _, it := range r.pending {
		if it.g == nil && it.refused != "" {
			gone[it] = true
		}
		if it.g == nil || !stopped[it.g] {
			continue
		}
		gone[it] = true
		if it.at.next < it.g.read.next {
			it.g.read = it.at
		}
	}
	r.acknowledge(gone)
}

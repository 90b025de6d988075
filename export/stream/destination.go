package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/event"
)

// A destination is one that this process is set to export to.
type destination struct {
	Destination
	e           *Engine
	share       *share
	fingerprint string
	doc         document
	state       *State // as of its document
	probed      time.Time
	led         bool  // this process had the lease
	told        int64 // the count of the state that was told last

	crew     atomic.Int64 // runners
	mu       sync.Mutex
	standing Standing
	runners  map[*runner]*lag
	changed  chan struct{} // something was delivered while it is suspended
}

// A Standing is how an engine stands with a destination.
type Standing struct {
	Name, Type string
	State      string // "" while another process exports to it
	Reason     string
	Leads      bool  // this process exports to it
	Runners    int   // lines, backfills too
	Stopped    int   // logs that wait for somebody
	Failing    int   // lines that cannot be read
	Rows       int64 // in data files that are not delivered yet, of lines that are behind their segments
	Segments   int64 // that are not delivered yet
	// Oldest is when the oldest of them was archived: a segment by the store, rows of
	// data files by their archived_at, as far as they were read; zero where there is
	// none.
	Oldest    time.Time
	LastError string
	// Fault is why this process cannot do what the state says: the lease or the state
	// cannot be read or stored. "" where it can, or where another process has the
	// lease.
	Fault string
}

// lag is how far a runner is behind.
type lag struct {
	rows     int64
	segments int64
	oldest   time.Time
	stopped  int
	failing  bool
}

func newDestination(e *Engine, o Destination, most int64) *destination {
	d := &destination{
		Destination: o, e: e, share: newShare(most), fingerprint: Fingerprint(o.Spec), doc: document{e: e, key: stateKey(o.Name)},
		runners: map[*runner]*lag{}, changed: make(chan struct{}, 1), standing: Standing{Name: o.Name, Type: o.Type},
	}
	if _, err := event.NewEncoder(o.Format, event.EncoderOptions{}); err != nil && d.Broken == nil {
		d.Broken = err
	}
	return d
}

// Standings returns how the engine stands with each destination, in the order in
// which it got them.
func (e *Engine) Standings() []Standing {
	var all []Standing
	for _, d := range e.destinations {
		all = append(all, d.stands())
	}
	return all
}

func (d *destination) stands() Standing {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.standing
	s.Runners = len(d.runners)
	for _, l := range d.runners {
		s.Rows += l.rows
		s.Segments += l.segments
		s.Stopped += l.stopped
		if l.failing {
			s.Failing++
		}
		if !l.oldest.IsZero() && (s.Oldest.IsZero() || l.oldest.Before(s.Oldest)) {
			s.Oldest = l.oldest
		}
	}
	return s
}

func (d *destination) stand(change func(*Standing)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.standing)
}

// run exports to the destination while this process holds its lease.
func (d *destination) run(ctx context.Context) {
	for attempt := 1; ctx.Err() == nil; attempt++ {
		err := d.term(ctx)
		d.stand(func(s *Standing) { s.Leads, s.State = false, "" })
		if ctx.Err() != nil {
			break
		}
		if err != nil && !errors.Is(err, errLost) {
			d.faulty("the destination is begun anew", err)
		}
		_ = pause(ctx, d.e.backOff(min(attempt, 6)))
	}
	if d.Sink != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastStore)
		defer cancel()
		if err := d.Sink.Close(last); err != nil {
			d.e.warn(d.Name, "the destination is not closed", err)
		}
	}
}

func (d *destination) tell(what string, err error) {
	d.stand(func(s *Standing) { s.LastError = err.Error() })
	d.e.warn(d.Name, what, err)
}

// faulty is tell, of what keeps the destination from beginning, or from being told
// to stop.
func (d *destination) faulty(what string, err error) {
	d.stand(func(s *Standing) { s.Fault = err.Error() })
	d.tell(what, err)
}

// term is the time in which this process holds the lease.
func (d *destination) term(ctx context.Context) error {
	l := &lease{d: d, doc: document{e: d.e, key: leaseKey(d.Name)}, first: !d.led}
	if err := l.acquire(ctx); err != nil {
		return err
	}
	d.led = true
	held, lose := context.WithCancelCause(ctx)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		lose(l.beat(held))
	}()
	d.stand(func(s *Standing) { s.Leads = true })
	err := d.work(held)
	if cause := context.Cause(held); errors.Is(cause, errLost) {
		err = cause
	}
	lose(nil)
	<-beats
	l.release(ctx, err)
	return err
}

// work does what the state of the destination wants.
func (d *destination) work(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := d.look(ctx); err != nil {
			return err
		}
		if !d.runs() {
			if err := pause(ctx, d.e.s.LinesEvery); err != nil {
				return nil
			}
			continue
		}
		err := d.deliver(ctx)
		var end *suspended
		if errors.As(err, &end) {
			err = d.suspend(ctx, end.reason)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// probeEvery is how often a suspended destination is tried again.
const probeEvery = time.Hour

// runs reports whether the destination is delivered to now.
func (d *destination) runs() bool {
	switch d.state.State {
	case Active:
		return true
	case Suspended:
		return d.e.s.Now().Sub(d.probed) >= probeEvery
	}
	return false
}

// look reads the state, and makes it what the settings say.
func (d *destination) look(ctx context.Context) error {
	for {
		body, err := d.doc.read(ctx)
		if err != nil {
			return err
		}
		old, err := decodeState(body, d.doc.key)
		if err != nil {
			return err
		}
		next, what := d.due(old)
		d.state = old
		if what != "" {
			if err = d.write(ctx, what, next); errors.Is(err, errLost) {
				continue // somebody changed it: look again
			}
			if err != nil {
				return err
			}
		}
		d.tellState()
		return nil
	}
}

// tellState tells of a state that was not told yet, whoever made it.
func (d *destination) tellState() {
	s := *d.state
	d.stand(func(at *Standing) { at.State, at.Reason, at.Fault = s.State, s.Reason, "" })
	if d.told == s.Count {
		return
	}
	first := d.told == 0
	d.told = s.Count
	if first && d.e.s.Now().Sub(s.Since.Time) > recordAgain {
		return
	}
	if d.e.s.Events.Changed != nil {
		d.e.s.Events.Changed(s)
	}
}

// due returns the state that follows from the settings, and what changes; "" where
// nothing does.
func (d *destination) due(old *State) (next State, what string) {
	next = State{V: docVersion, ArchiveID: d.e.s.Root.ArchiveID, Name: d.Name, Type: d.Type, Spec: d.Spec, Fingerprint: d.fingerprint, State: Active}
	if d.Broken != nil {
		next.State, next.Reason = Invalid, short(d.Broken.Error())
	}
	switch {
	case old == nil:
		return next, ChangeNew
	case old.State == Removed:
		return next, ChangeNew
	case old.Fingerprint != d.fingerprint:
		if old.State == Paused && next.State == Active {
			next.State, next.Reason = Paused, old.Reason
		}
		return next, ChangeSettings
	case d.Broken != nil && old.State != Invalid:
		return next, ChangeInvalid
	case d.Broken == nil && old.State == Invalid:
		return next, ChangeActive
	}
	return *old, ""
}

// write stores the next state.
func (d *destination) write(ctx context.Context, what string, next State) error {
	before := d.state
	next.By, next.Since, next.Count, next.Change = d.e.s.ID, archive.Time{Time: d.e.s.Now()}, 1, what
	if before != nil {
		next.Count = before.Count + 1
	}
	body, err := json.Marshal(&next)
	if err != nil {
		return err
	}
	if err := d.doc.write(ctx, body); err != nil {
		return err
	}
	d.state = &next
	d.tellState()
	return nil
}

// suspend notes that the destination takes nothing.
func (d *destination) suspend(ctx context.Context, reason string) error {
	d.probed = d.e.s.Now()
	d.stand(func(s *Standing) { s.LastError = reason })
	if d.state.State == Suspended {
		return nil
	}
	next := *d.state
	next.State, next.Reason = Suspended, short(reason)
	return ignoreLost(d.write(ctx, ChangeSuspended, next)) // somebody changed it: look says how
}

func ignoreLost(err error) error {
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// recovered notes that a suspended destination takes events again.
func (d *destination) recovered(ctx context.Context) error {
	if d.state.State != Suspended {
		return nil
	}
	next := *d.state
	next.State, next.Reason = Active, ""
	return ignoreLost(d.write(ctx, ChangeActive, next))
}

// A running is a runner that ended.
type ended struct {
	job  string
	line archive.Line
	err  error
}

// deliver runs a runner for each line, and for each line of each backfill, until
// one of them says that the destination is to stop, or its state changes.
func (d *destination) deliver(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	t := &troop{d: d, begun: map[string]map[archive.Line]bool{}, open: map[string]*openJob{}, ends: make(chan ended)}
	defer func() {
		cancel()
		t.wait()
	}()
	for {
		if err := t.muster(ctx); err != nil && ctx.Err() == nil {
			d.tell("lines and backfills cannot be looked for; trying again", err)
		}
		timer := time.NewTimer(d.e.s.LinesEvery)
		err := t.watch(ctx, timer.C)
		timer.Stop()
		if err != nil || ctx.Err() != nil {
			return stopping(ctx, err)
		}
		before := d.state.State
		if err := d.look(ctx); err != nil {
			d.faulty("the state cannot be read; trying again", err)
			continue
		}
		if d.state.State != before && d.state.State != Active {
			return nil
		}
	}
}

// A troop is the runners of a destination.
type troop struct {
	d     *destination
	begun map[string]map[archive.Line]bool // by job
	open  map[string]*openJob
	count int
	ends  chan ended
}

type openJob struct {
	*job
	left int // runners
}

func (t *troop) wait() {
	for ; t.count > 0; t.count-- {
		<-t.ends
	}
}

// muster begins what is new.
func (t *troop) muster(ctx context.Context) error {
	lines, err := t.d.e.lines(ctx)
	if err != nil {
		return err
	}
	if err := t.begin(ctx, nil, lines); err != nil {
		return err
	}
	jobs, fault := Jobs(ctx, t.d.e.s.Archive, t.d.Name) // one that cannot be read holds up no other
	for _, j := range jobs {
		if j.Done != nil || t.open[j.ID] != nil {
			continue
		}
		b, err := newJob(ctx, t.d.e.s.Archive, j)
		if err != nil {
			fault = errors.Join(fault, err)
			continue
		}
		t.open[j.ID] = &openJob{b, len(lines)}
		if err := t.begin(ctx, b, lines); err != nil {
			return err
		}
	}
	return fault
}

func (t *troop) begin(ctx context.Context, b *job, lines []archive.Line) error {
	id := b.id()
	if t.begun[id] == nil {
		t.begun[id] = map[archive.Line]bool{}
	}
	for _, l := range lines {
		if t.begun[id][l] {
			continue
		}
		var own *job
		if b != nil {
			own = b.of(l)
		}
		r, err := newRunner(t.d, l, own)
		if err != nil {
			return err
		}
		t.begun[id][l] = true
		t.count++
		t.d.enlist(r)
		go func() {
			err := r.run(ctx)
			t.d.dismiss(r)
			t.ends <- ended{id, l, err}
		}()
	}
	return nil
}

// watch waits for the timer, or for the first runner that ends badly.
func (t *troop) watch(ctx context.Context, timer <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer:
			return nil
		case <-t.d.changed:
			if err := t.d.recovered(ctx); err != nil {
				return err
			}
		case e := <-t.ends:
			t.count--
			if err := t.ended(ctx, e); err != nil {
				return err
			}
		}
	}
}

func (t *troop) ended(ctx context.Context, e ended) error {
	switch {
	case errors.Is(e.err, errLost):
		delete(t.begun[e.job], e.line) // another has it, or had it: read again what it left
		return nil
	case e.err != nil || ctx.Err() != nil:
		return e.err
	}
	j := t.open[e.job]
	if j == nil {
		return fmt.Errorf("%s/%d: its runner ended", e.line.Topic, e.line.Partition)
	}
	if j.left--; j.left > 0 {
		return nil
	}
	if err := j.finish(ctx, t.d.e); err != nil {
		t.d.tell("that a backfill is done cannot be stored; it is done again", err)
		delete(t.open, e.job)
		delete(t.begun, e.job)
	}
	return nil
}

func (d *destination) enlist(r *runner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runners[r] = &lag{}
	d.crew.Store(int64(len(d.runners)))
}

func (d *destination) dismiss(r *runner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.runners, r)
	d.crew.Store(int64(len(d.runners)))
}

// passed takes note of how far a runner is.
func (d *destination) passed(r *runner) {
	l := lag{rows: r.todo}
	if r.v != nil {
		l.segments = max(r.v.next()-r.ordinal, 0)
		if l.segments > 0 && r.ordinal >= r.v.watermark() {
			l.oldest = r.v.segment(r.ordinal).Modified
		}
	}
	if at := r.inHand(); r.job == nil && !at.IsZero() && (l.oldest.IsZero() || at.Before(l.oldest)) {
		l.oldest = at
	}
	l.stopped = len(r.waiting)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runners[r] != nil {
		*d.runners[r] = l
	}
}

// inHand returns when the oldest row was archived that was read and is not
// delivered; where data files have more, and none is in hand, when the last one was.
// It is zero where all is delivered.
func (r *runner) inHand() (oldest time.Time) {
	for _, it := range r.pending {
		if it.row == nil {
			continue
		}
		if at := time.UnixMicro(it.row.ArchivedAt.N).UTC(); oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	if oldest.IsZero() && r.todo > 0 {
		return r.reached
	}
	return oldest
}

// failed tells that a runner cannot go on for now.
func (d *destination) failed(r *runner, err error) {
	d.mu.Lock()
	if l := d.runners[r]; l != nil {
		l.failing = true
	}
	d.mu.Unlock()
	d.tell(fmt.Sprintf("%s/%d cannot be read; trying again", r.line.Topic, r.line.Partition), err)
}

func (d *destination) delivered(r *runner, n Delivery) {
	d.mu.Lock()
	suspended := d.standing.State == Suspended
	d.mu.Unlock()
	if suspended {
		select {
		case d.changed <- struct{}{}:
		default:
		}
	}
	if d.e.s.Events.Delivered != nil {
		d.e.s.Events.Delivered(d.Name, r.line, n)
	}
}

func (d *destination) waits(r *runner, w Wait) {
	d.passed(r)
	d.stand(func(s *Standing) { s.LastError = w.Reason })
	if d.e.s.Events.Retry != nil {
		d.e.s.Events.Retry(d.Name, r.line, w)
	}
}

func (d *destination) died(r *runner, l Letter) {
	if d.e.s.Events.Dead != nil {
		d.e.s.Events.Dead(d.Name, r.line, l)
	}
}

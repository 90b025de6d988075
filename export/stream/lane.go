package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/event"
)

// A position is in front of a row of a log.
type position struct {
	next  int64
	hash  *chain.Hash // of the row in front of it; nil: see Cursor.RowHash
	epoch int32
}

// A lane is one log on its way to one destination.
type lane struct {
	Cursor          // what is acknowledged
	read   position // what was read
	behind bool     // it goes on in data files

	said     string    // what was told of it
	stopped  error     // it is not as it must be, or waits at a poisoned event
	until    time.Time // when that is looked at again
	attempts int
}

func (g *lane) acked() position { return position{g.Next, g.RowHash, g.Epoch} }

func (g *lane) ack(p position) (moved bool) {
	if p.next > g.Next {
		g.attempts, g.said = 0, ""
	}
	moved = g.Next != p.next || g.Epoch != p.epoch || (g.RowHash == nil) != (p.hash == nil)
	g.Next, g.RowHash, g.Epoch = p.next, p.hash, p.epoch
	g.First = min(g.First, p.next) // a chain reset may go back behind where it began
	return moved
}

// A runner takes all lanes of one destination and line along. It is one
// goroutine.
type runner struct {
	e     *Engine
	d     *destination
	line  archive.Line
	job   *job // nil: what is live
	watch *watch

	doc     document
	head    Cursors // without its logs
	lanes   map[string]*lane
	hashers *chain.Hashers
	plain   *chain.Hasher
	encoder *event.Encoder

	v       *view
	cuts    *archive.CatalogVersion // whose cuts were taken in
	ordinal int64                   // segments in front of it were looked at
	day     string                  // data files of days before it are passed
	behind  bool                    // some lane is
	waiting map[*lane]bool          // those that are stopped
	since   time.Time               // since when rows wait for others
	todo    int64                   // rows in data files that are not delivered yet
	reached time.Time               // archived_at of the last row that was read
	void    map[int64]bool          // ordinals that were declared void
	heads   heads

	batch
	safe  hints // as of when nothing was in flight
	dirty bool
}

// hints are where to read on.
type hints struct {
	ordinal int64
	day     string
	anchor  int64
}

func newRunner(d *destination, l archive.Line, j *job) (*runner, error) {
	e := d.e
	encoder, err := event.NewEncoder(d.Format, event.EncoderOptions{ArchiveID: e.s.Root.ArchiveID, Version: e.s.Version, WithoutContent: d.WithoutContent})
	if err != nil {
		return nil, err
	}
	r := &runner{
		e: e, d: d, line: l, job: j, watch: e.watches.of(l), lanes: map[string]*lane{}, waiting: map[*lane]bool{}, void: map[int64]bool{},
		hashers: chain.NewHashers(e.s.LogKeys), plain: chain.NewHasher(nil), encoder: encoder,
		doc: document{e: e, key: cursorKey(d.Name, j.id(), l)},
	}
	r.batch.touched = map[*lane]struct{}{}
	return r, nil
}

// run delivers until ctx is done, the destination is to stop, or (a backfill)
// all is delivered. The error matches [errLost], or is a [*suspended]; nil where
// ctx is done or the backfill is.
func (r *runner) run(ctx context.Context) error {
	if err := r.open(ctx); err != nil || ctx.Err() != nil {
		return stopping(ctx, err)
	}
	err := r.loop(ctx)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastStore)
	defer cancel()
	if fault := r.store(last); fault != nil && err == nil {
		err = fault
	}
	return err
}

// lastStore is how long the last store of the cursors may take.
const lastStore = 10 * time.Second

func stopping(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *runner) loop(ctx context.Context) error {
	for failed := 0; ; {
		more, err := r.step(ctx)
		var wait *waiting
		var end *suspended
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errLost), errors.As(err, &end):
			return err
		case errors.As(err, &wait):
			err = r.rest(ctx, wait.d)
		case err != nil:
			failed++
			r.d.failed(r, err)
			err = r.rest(ctx, r.e.backOff(failed))
		case !more && r.job != nil && !r.held():
			return nil
		case !more:
			failed = 0
			r.d.passed(r)
			err = r.rest(ctx, r.e.s.Poll)
		default:
			failed = 0
			r.d.passed(r)
			err = r.storeDue(ctx)
		}
		if err != nil {
			return stopping(ctx, err)
		}
	}
}

// step delivers what waits, or reads on.
func (r *runner) step(ctx context.Context) (more bool, err error) {
	if len(r.pending) > 0 {
		return true, r.flush(ctx)
	}
	more, err = r.pass(ctx)
	if errors.Is(err, archive.ErrNotFound) {
		r.watch.gone(r.v) // compaction took it: it is elsewhere by now
		return true, r.missed(ctx, err)
	}
	r.gone = 0
	return more, err
}

// missTries is how often in a row something may be gone that a catalog names.
const missTries = 10

func (r *runner) missed(ctx context.Context, err error) error {
	if r.gone++; r.gone >= missTries {
		return fmt.Errorf("%w: restore it", err)
	}
	return ctx.Err()
}

// rest waits, and stores the cursors meanwhile, once that is due.
func (r *runner) rest(ctx context.Context, d time.Duration) error {
	if due := max(r.due(), 0); r.dirty && due <= d {
		if err := pause(ctx, due); err != nil {
			return err
		}
		if err := r.store(ctx); err != nil {
			return err
		}
		d -= due
	}
	return pause(ctx, d)
}

// open reads the cursors, or makes them.
func (r *runner) open(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := r.tryOpen(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, errLost) {
			return err
		}
		r.d.failed(r, err)
		if err := pause(ctx, r.e.backOff(attempt)); err != nil {
			return err
		}
	}
}

func (r *runner) tryOpen(ctx context.Context) error {
	body, err := r.doc.read(ctx)
	if err != nil {
		return err
	}
	if r.v, err = r.watch.view(ctx); err != nil {
		return err
	}
	if body == nil {
		return r.begin(ctx)
	}
	c, err := decodeCursors(body, r.e.s.Root.ArchiveID, r.d.Name, r.job.id(), r.line)
	if err != nil {
		return fmt.Errorf("%s: %w", r.doc.key, err)
	}
	r.adopt(c)
	faults := r.verify(ctx, c)
	if err := faults[""]; err != nil {
		r.watch.gone(r.v)
		return err
	}
	for tenant, fault := range faults {
		r.stop(r.lanes[tenant], fault)
	}
	return nil
}

// adopt goes on from stored cursors.
func (r *runner) adopt(c *Cursors) {
	logs := c.Logs
	r.head = *c
	r.head.Logs = nil
	clear(r.lanes)
	clear(r.waiting)
	for _, at := range logs {
		if at.Next == 0 {
			at.Epoch = 0 // else a made-up one hides the log; a reset's row says it again
		}
		g := &lane{Cursor: at}
		g.read = g.acked()
		r.lanes[at.Tenant] = g
	}
	r.ordinal, r.day, r.heads.next = c.Ordinal, c.Day, c.Anchor
	if c.Spec != r.d.fingerprint {
		r.ordinal, r.day, r.dirty = 0, "", true // another filter may let through what this one passed
	}
	if r.ordinal > r.v.next() {
		r.ordinal, r.day = 0, "" // the bucket is an older one than it was
	}
	r.behind = r.ordinal < r.v.watermark() || r.ordinal == 0
	r.safe = hints{r.ordinal, r.day, r.heads.next}
}

// begin makes the first cursors of a line.
func (r *runner) begin(ctx context.Context) error {
	r.head = Cursors{
		V: docVersion, ArchiveID: r.e.s.Root.ArchiveID, Destination: r.d.Name,
		Topic: r.line.Topic, TopicID: r.line.TopicID, Partition: r.line.Partition, Logs: nil,
	}
	clear(r.lanes)
	clear(r.waiting)
	r.behind, r.dirty = true, true
	if r.d.FromNow && r.job == nil {
		ends, err := r.ends(ctx, r.v)
		if err != nil {
			return err
		}
		for tenant, p := range ends {
			g := &lane{Cursor: Cursor{Tenant: tenant, First: p.next, Next: p.next, RowHash: p.hash, Epoch: p.epoch}, read: p}
			r.lanes[tenant] = g
		}
		r.ordinal, r.behind = r.v.next(), false
	}
	if r.job == nil && r.d.Heads {
		newest, err := archive.NewestAnchor(ctx, r.e.s.Archive, r.line, -1)
		if err != nil {
			return err
		}
		r.heads.next = max(newest, 0) / archive.FullEvery * archive.FullEvery
	}
	r.safe = hints{r.ordinal, r.day, r.heads.next}
	return r.store(ctx)
}

// lane returns the lane of a tenant's log; nil where the destination gets none of
// it.
func (r *runner) laneOf(tenant string) *lane {
	g := r.lanes[tenant]
	if g == nil && r.d.Filter.HasTenant(tenant) && r.job.hasTenant(tenant) {
		tenant = string(append([]byte(nil), tenant...)) // which may be a part of a page
		g = &lane{Cursor: Cursor{Tenant: tenant}}
		r.job.place(g)
		r.lanes[tenant] = g
	}
	if g != nil && !r.d.Filter.HasTenant(tenant) {
		return nil
	}
	return g
}

// stop has a lane wait; others go on. It is looked at again after a while: what
// is wrong may be mended.
func (r *runner) stop(g *lane, err error) {
	told := g.said == err.Error()
	g.attempts++
	g.said = err.Error()
	r.waiting[g] = true
	g.stopped, g.until, g.behind = err, r.e.s.Now().Add(r.e.backOff(g.attempts+4)), false
	if !told && r.e.s.Events.Stopped != nil {
		r.e.s.Events.Stopped(r.d.Name, r.line, g.Tenant, err)
	}
}

// wake has lanes go on whose time to wait is over.
func (r *runner) wake() {
	now := r.e.s.Now()
	for g := range r.waiting {
		if !now.Before(g.until) && !errors.Is(g.stopped, ErrCursor) {
			delete(r.waiting, g)
			g.stopped = nil
			g.read = g.acked()
			g.behind, r.behind = true, true
			r.heads.forget(g.Tenant)
		}
	}
}

// held reports whether some lane is stopped: days and segments are not over then.
func (r *runner) held() bool { return len(r.waiting) > 0 }

// due says when the cursors may be stored again; not after now where they may at
// once. Large documents are stored less often.
func (r *runner) due() time.Duration {
	every := r.e.s.CursorEvery * time.Duration(1+r.size/(256<<10))
	return r.doc.wrote.Add(every).Sub(r.e.s.Now())
}

// storeDue stores the cursors where it is time.
func (r *runner) storeDue(ctx context.Context) error {
	r.d.passed(r)
	if !r.dirty || r.due() > 0 && !r.d.Stepwise {
		return nil
	}
	return r.store(ctx)
}

// mark notes where the runner stands, now that all that it read is settled. While
// a lane is behind, or stopped, the rows in front of the segments that others have
// come to are not passed: who goes on from there would not look for them.
func (r *runner) mark() {
	at := hints{r.ordinal, r.day, r.heads.oldest()}
	if r.behind || r.held() {
		at.ordinal = min(at.ordinal, r.safe.ordinal)
	}
	r.safe = at
}

// store stores the cursors, where something moved.
func (r *runner) store(ctx context.Context) error {
	if len(r.pending) == 0 {
		r.mark()
	}
	if !r.dirty {
		return nil
	}
	c := r.head
	c.By, c.Count, c.Time = r.e.s.ID, c.Count+1, archive.Time{Time: r.e.s.Now()}
	c.Spec, c.Ordinal, c.Day, c.Anchor = r.d.fingerprint, r.safe.ordinal, r.safe.day, r.safe.anchor
	c.Logs = make([]Cursor, 0, len(r.lanes))
	for _, tenant := range slices.SortedFunc(maps.Keys(r.lanes), cmp.Compare) {
		c.Logs = append(c.Logs, r.lanes[tenant].Cursor)
	}
	body, err := json.Marshal(&c)
	if err != nil {
		return err
	}
	if err := r.doc.write(ctx, body); err != nil {
		if errors.Is(err, errLost) && r.e.s.Events.Repeating != nil {
			r.e.s.Events.Repeating(r.d.Name, r.line, err)
		}
		return err
	}
	c.Logs = nil
	r.head, r.dirty, r.size = c, false, len(body)
	return nil
}

package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// errDropped: the partition was taken away; what is not durable is dropped.
var errDropped = errors.New("partition taken away")

func isDropped(err error) bool { return errors.Is(err, errDropped) || errors.Is(err, context.Canceled) }

// A partition is one assigned partition: its state, its open batch, and the one
// PUT that may be in flight. All of it belongs to the goroutine of run.
type partition struct {
	line    archive.Line
	shared  *shared
	source  source
	trusted archive.Writer // another version that ran before this one
	forgone []chain.Hash   // as vouchers say it
	reader  *reader
	state   *archive.State
	window  *window
	next    int64 // the offset expected next: all below are in a batch or durable
	// fetchFrom is where fetching begins: next, or the log start above it.
	fetchFrom int64
	open      *batch
	spare     *batch
	flying    *flight // nil when no PUT is in flight
	landed    chan landing
	put       context.Context // of writes; it outlives a stop, up to a deadline
	abort     context.CancelCauseFunc
	look      *lookout
	lookedAt  time.Time       // by this clock, for a row that may be erased
	data      *dataFiles      // of rows that are compacted
	asked     map[string]bool // keys of data files whose erased rows the window knows
	retried   int64           // ordinal at which the line was read from the bucket again, -1
	hashers   *chain.Hashers
	proved    map[string]bool // tenants: the key of the log is the one of its rows
	anchors   anchors
	headers   []audit.MessageHeader // scratch

	mail    mailbox
	holds   atomic.Int64 // bytes of the budget
	gate    gate
	stop    chan struct{} // closed by finish
	stopper sync.Once
	flush   atomic.Bool // stop only when all that was read is durable
	done    chan struct{}
	durable atomic.Pointer[position]

	// For [Ingest.Status]:
	begins          int64 // the first offset that was not durable at the start
	epochAtStart    int32 // of the record before it
	endAtStart      int64 // of Kafka
	pending         atomic.Pointer[time.Time]
	unanchoredSince atomic.Pointer[time.Time]
	committedAt     atomic.Pointer[time.Time]
}

// A source is Kafka as a partition sees it: it delivers by mail, and is asked
// about segments that this process did not write.
type source interface {
	// compare returns nil if Kafka says what a segment says that follows st.
	compare(ctx context.Context, st *archive.State, w *window, trusted archive.Writer, o *archive.SegmentObject) error
	// catchUp takes into st and w what the bucket has behind st, compared.
	catchUp(ctx context.Context, st *archive.State, w *window, trusted archive.Writer) error
}

// A position is how far a partition is durable: an offset of Kafka, and the
// segment that ends there.
type position struct {
	offset  int64
	epoch   int32
	ordinal int64
	sum     chain.Hash
}

func positionOf(st *archive.State) *position {
	return &position{offset: st.NextOffset, epoch: st.FetchEpoch, ordinal: st.Ordinal - 1, sum: *st.PreviousSHA256}
}

// A flight is a segment on its way to the bucket.
type flight struct {
	batch  *batch
	built  *built
	opened time.Time // when the batch's first item came
	since  time.Time // when the batch closed
}

// A landing is how a flight ended.
type landing struct {
	sum   chain.Hash // of the object, where it was committed
	size  int64
	other *archive.SegmentObject // somebody else's segment, where that was faster
	err   error

	encoded  time.Time // when the object was made
	attempts int       // of the write
}

func newPartition(ctx context.Context, sh *shared, src source, st *archive.State, w *window, c *archive.CatalogVersion) *partition {
	put, abort := context.WithCancelCause(ctx)
	p := &partition{
		line: st.Line, shared: sh, source: src, reader: sh.reader(st.Line.Topic), state: st, window: w, next: st.NextOffset,
		open: newBatch(), spare: newBatch(), landed: make(chan landing, 1), put: put, abort: abort, retried: -1, hashers: chain.NewHashers(sh.keys), proved: map[string]bool{},
		stop: make(chan struct{}), done: make(chan struct{}), look: newLookout(sh, st.Line, c), data: newDataFiles(sh, st.Line, c), asked: map[string]bool{},
	}
	p.mail.ready = make(chan struct{}, 1)
	p.anchors = anchors{landed: make(chan anchorLanding, 1), retried: -1}
	if p.unanchored() {
		p.anchors.atOnce = true
		p.changed()
	}
	p.fetchFrom, p.begins, p.epochAtStart = p.next, p.next, st.FetchEpoch
	if st.Ordinal > 0 {
		p.durable.Store(positionOf(st))
	}
	return p
}

// run works until the partition is finished, dropped, or has to stop. It
// returns nil after finish, errDropped after drop, and otherwise why it
// stopped, loudly: nothing of the partition is read until somebody has looked.
func (p *partition) run() (err error) {
	defer close(p.done)
	defer func() { p.release(err) }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	stop := p.stop
	for {
		p.takeMail()
		p.notePending()
		wake, flew, err := p.closeDue(stop == nil)
		if err != nil {
			return err
		}
		if flew {
			continue // the next batch grows meanwhile
		}
		anchor, err := p.anchorDue(stop == nil)
		if err != nil {
			return err
		}
		if stop == nil && p.flying == nil && (p.open.empty() || !p.flush.Load()) && p.anchored() {
			return nil
		}
		timer.Reset(p.until(first(wake, anchor)))
		select {
		case <-p.mail.ready:
		case <-timer.C:
		case l := <-p.landed:
			if err := p.land(l); err != nil {
				return err
			}
		case l := <-p.anchors.landed:
			if err := p.landAnchor(l); err != nil {
				return err
			}
		case <-stop:
			stop = nil
		case <-p.put.Done():
			return context.Cause(p.put)
		}
	}
}

// first returns the earlier of two times; the zero time is never.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// notePending notes since when something that was read is not durable.
func (p *partition) notePending() {
	var since *time.Time
	switch {
	case p.flying != nil:
		since = &p.flying.opened
	case !p.open.empty():
		opened := p.open.opened
		since = &opened
	}
	if old := p.pending.Load(); old != since && (old == nil || since == nil || !old.Equal(*since)) {
		p.pending.Store(since)
	}
}

// take counts bytes of records that the partition holds from now on.
func (p *partition) take(n int64) {
	p.holds.Add(n)
	p.shared.budget.take(n)
}

// give counts bytes that it no longer holds.
func (p *partition) give(n int64) {
	p.holds.Add(-n)
	p.shared.budget.give(n)
}

// greedy reports whether the partition holds more than its share while memory
// is short. Others must not wait for one whose segments the store refuses.
func (p *partition) greedy() bool {
	return p.shared.budget.short() && p.holds.Load() > p.shared.budget.limit/4/max(1, p.shared.assigned.Load())
}

// until returns how long to sleep until a time, an hour for the zero time.
func (p *partition) until(wake time.Time) time.Duration {
	if wake.IsZero() {
		return time.Hour
	}
	return max(0, wake.Sub(p.shared.Now()))
}

// finish lets the PUT in flight end, and with flush makes all durable that was
// read; it waits until that is so or ctx is done, and then drops the rest.
func (p *partition) finish(ctx context.Context, flush bool) {
	p.stopper.Do(func() {
		p.flush.Store(flush)
		close(p.stop)
	})
	select {
	case <-p.done:
	case <-ctx.Done():
		p.drop()
		<-p.done
	}
}

// drop ends the partition at once. A PUT in flight may still happen: then the
// next owner finds it.
func (p *partition) drop() { p.abort(errDropped) }

// release gives back what the partition held.
func (p *partition) release(err error) {
	p.abort(err)
	held := p.open.bytes + p.mail.close()
	if p.flying != nil {
		held += p.flying.batch.bytes
	}
	p.give(held)
}

// takeMail moves records from the mailbox to the open batch, as many as it may
// hold. A batch that is due and may fly is not made larger.
func (p *partition) takeMail() {
	now := p.shared.Now()
	for !p.open.full(&p.shared.Batch) {
		if p.flying == nil {
			if due, _ := p.open.due(&p.shared.Batch, now, false); due {
				return
			}
		}
		m, ok := p.mail.pop()
		if !ok {
			break
		}
		p.accept(m, now)
	}
	if p.mail.held() < p.shared.Memory/resumeShare && !p.greedy() {
		p.gate.resume()
	}
}

// accept appends one delivery to the open batch, and what Kafka skipped before
// it. A delivery from below the expected offset is accounted for already.
func (p *partition) accept(m mail, now time.Time) {
	if m.record == nil {
		if m.lostTo > p.next {
			p.open.addGap(p.next, m.lostTo, archive.GapLost, now)
			p.next = m.lostTo
		}
		return
	}
	r := m.record
	if r.Offset < p.next {
		p.give(cost(r))
		return
	}
	if r.Offset > p.next {
		p.open.addGap(p.next, r.Offset, archive.GapCompacted, now)
	}
	p.next = r.Offset + 1
	if r.Attrs.IsControl() {
		p.give(cost(r))
		p.open.addGap(r.Offset, r.Offset+1, archive.GapControl, now)
		return
	}
	p.acceptRecord(r, now)
}

func (p *partition) acceptRecord(r *kgo.Record, now time.Time) {
	b := p.open
	it := item{from: r.Offset, to: r.Offset + 1, record: r, row: b.newRow()}
	rec := &b.rows[it.row].Record
	it.reject = p.reader.Decode(rec, p.message(r))
	if it.reject == nil {
		if it.coord, it.hasCoord = rec.Coordinates(); it.hasCoord {
			it.content = rec.ContentHash()
		}
	}
	b.bytes += cost(r)
	b.size += int64(len(r.Key) + len(r.Value))
	fresh := b.fresh
	b.add(it, now)
	if it.hasCoord && p.known(it) {
		b.fresh = fresh // a batch of nothing but repeats need not hurry
	}
	if it.hasCoord {
		b.seen[it.coord] = it.content
	}
	if rec.StageID.S == "post-turn" && it.reject == nil {
		b.endOfTurn = true
	}
}

// known reports whether a record is, as far as memory can tell, a repeat.
func (p *partition) known(it item) bool {
	if c, ok := p.open.seen[it.coord]; ok {
		return c == it.content
	}
	if p.flying != nil {
		if c, ok := p.flying.batch.seen[it.coord]; ok {
			return c == it.content
		}
	}
	e, ok := p.window.lookup(it.coord)
	return ok && e.content == it.content
}

// message returns r as the decoder reads it, for as long as the next call.
func (p *partition) message(r *kgo.Record) *audit.Message {
	m := message(r, p.headers[:0])
	if p.headers = m.Headers; cap(p.headers) > 1024 {
		p.headers = nil
	}
	return m
}

func message(r *kgo.Record, headers []audit.MessageHeader) *audit.Message {
	for _, h := range r.Headers {
		headers = append(headers, audit.MessageHeader{Name: h.Key, Value: h.Value})
	}
	return &audit.Message{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp,
		Key: r.Key, Value: r.Value, Headers: headers,
	}
}

// closeDue closes the open batch and lets it fly, if it is due and nothing
// flies. It returns when to look again. A partition that stops closes at once,
// or not at all if what is not in flight is to be dropped.
func (p *partition) closeDue(stopping bool) (wake time.Time, flew bool, err error) {
	if p.flying != nil || p.open.empty() || stopping && !p.flush.Load() {
		return time.Time{}, false, nil
	}
	now := p.shared.Now()
	due, wake := p.open.due(&p.shared.Batch, now, p.shared.budget.spent())
	if !due && !stopping {
		return wake, false, nil
	}
	b := p.open
	p.open, p.spare = p.spare, nil
	return time.Time{}, true, p.fly(b, now)
}

// fly builds the segment of a batch and starts its PUT.
func (p *partition) fly(b *batch, since time.Time) error {
	built, err := p.build(b)
	if err != nil {
		p.give(b.bytes)
		return err
	}
	p.flying = &flight{batch: b, built: built, opened: b.opened, since: since}
	st, w := p.state, p.window
	go func() { p.landed <- p.commit(st, w, built) }()
	return nil
}

func (p *partition) build(b *batch) (*built, error) {
	bl := &builder{
		state: p.state, window: p.window, writer: p.shared.writer, reader: p.reader,
		hasherOf: p.hasherOf, rand: p.shared.Rand, stored: p.stored, ask: p.ask,
	}
	return bl.build(b, p.shared.Now().UnixMicro())
}

// commit encodes a segment and writes it, for as long as the partition lives.
// Where somebody else was faster, it compares what that one wrote with Kafka. It
// changes nothing that run reads, and reads nothing that run changes meanwhile.
func (p *partition) commit(st *archive.State, w *window, b *built) landing {
	body, err := p.shared.encode(b)
	if err != nil {
		return landing{err: fmt.Errorf("encode segment %d: %w", st.Ordinal, err)}
	}
	encoded, attempts := p.shared.Now(), 1
	c := archive.Committer{
		Bucket: p.shared.Archive,
		Wait:   p.shared.backOff,
		Retrying: func(key string, attempt int, err error) {
			attempts = attempt + 1
			if f := p.shared.events.Retrying; f != nil {
				f(p.line, key, attempt, err)
			}
		},
	}
	c.Believe = func(ctx context.Context, storeTime time.Time) error {
		return p.look.believe(ctx, st.Ordinal, storeTime)
	}
	other, err := c.Commit(p.put, st, body)
	if other != nil {
		err = p.source.compare(p.put, st, w, p.trusted, other)
	}
	return landing{sum: sha256.Sum256(body), size: int64(len(body)), other: other, err: err, encoded: encoded, attempts: attempts}
}

// land ends a flight: the batch is durable, or somebody else was faster, or the
// line has to be read from the bucket again.
func (p *partition) land(l landing) error {
	f := p.flying
	p.flying = nil
	switch {
	case l.err == nil && l.other == nil:
		p.settle(f, l)
		return nil
	case errors.Is(l.err, errOvertaken):
		p.give(f.batch.bytes)
		return l.err
	case l.err == nil:
		p.adopt(l.other)
		// There may be more behind it, and to try to write each would send the
		// batch each time.
		if err := p.restart(); err != nil {
			p.give(f.batch.bytes)
			return err
		}
	case errors.Is(l.err, archive.ErrBreaks) && p.retried != p.state.Ordinal:
		p.retried = p.state.Ordinal
		if err := p.restart(); err != nil {
			p.give(f.batch.bytes)
			return err
		}
	default:
		p.give(f.batch.bytes)
		return l.err
	}
	return p.goOn(f)
}

// settle takes a durable segment into the state, which nobody else reads now: the
// commit that did has landed. A crash before the offset
// commit costs nothing: the bucket says where the line ends.
func (p *partition) settle(f *flight, l landing) {
	b := f.built
	p.state.Advance(b.segment, l.sum, l.size, b.archivedAt)
	for _, r := range b.remember {
		p.window.add(r.coord, r.entry, p.shared.windowLimit())
	}
	p.durable.Store(positionOf(p.state))
	p.changed()
	p.give(f.batch.bytes)
	p.report(f, l)
	f.batch.reset()
	p.spare = f.batch
}

func (p *partition) report(f *flight, l landing) {
	c, now := f.built.commit, p.shared.Now()
	p.committedAt.Store(&now)
	c.Bytes, c.Took = l.size, now.Sub(f.since)
	for i := range f.batch.items {
		it := &f.batch.items[i]
		switch {
		case it.reject != nil:
			p.shared.rejected(p.line, it, f.batch.rows[it.row].TenantID.S)
		case it.gap == archive.GapLost && p.shared.events.Gap != nil:
			p.shared.events.Gap(p.line, it.from, it.to)
		}
	}
	for i := range f.built.segment.Logs {
		p.shared.sawTenant(f.built.segment.Logs[i].Tenant, p.line)
	}
	if ev := p.shared.events.Committed; ev != nil {
		c.Timestamps, c.Tenants = f.batch.timestamps(), f.built.tenants()
		c.Opened, c.Closed, c.Encoded, c.Durable, c.Attempts = f.opened, f.since, l.encoded, now, l.attempts
		c.Contexts = f.batch.contexts(p.shared.TraceContexts)
		ev(c)
	}
}

// adopt takes somebody else's segment into the state. It was compared.
func (p *partition) adopt(o *archive.SegmentObject) {
	p.shared.take(p.state, p.window, o)
	p.durable.Store(positionOf(p.state))
	p.changed()
	now := p.shared.Now()
	p.committedAt.Store(&now)
	if ev := p.shared.events.Committed; ev != nil {
		ev(Commit{
			Line: p.line, Ordinal: o.Ordinal, Rows: o.Segment.Rows, Made: o.Made, Bytes: o.Bytes,
			Duplicates: int64(len(o.Duplicates)), NextOffset: o.NextOffset, Adopted: true,
		})
	}
}

// restart reads from the bucket what lies behind the state.
func (p *partition) restart() error {
	st, from := p.state.Clone(), p.state.Ordinal
	if err := p.source.catchUp(p.put, st, p.window, p.trusted); err != nil {
		return err
	}
	if st.Ordinal > from { // it must not have been the stray of somebody who slept, as this process may have
		look := func(ctx context.Context, _ string) error { return p.look.look(ctx) }
		if err := p.shared.insist(p.put, p.line, archive.CatalogPrefix(p.line), look); err != nil {
			return err
		}
		if err := p.look.passed(from); err != nil {
			return err
		}
	}
	p.state = st
	if st.Ordinal > 0 {
		p.durable.Store(positionOf(st))
	}
	if p.unanchored() {
		p.changed()
	}
	return nil
}

// goOn drops what the state covers by now, and lets the rest of a batch fly
// again as the next segment.
func (p *partition) goOn(f *flight) error {
	at := p.state.NextOffset
	p.give(f.batch.dropBefore(at) + p.open.dropBefore(at))
	p.next = max(p.next, at)
	if f.batch.empty() {
		f.batch.reset()
		p.spare = f.batch
		return nil
	}
	if at >= 0 && f.batch.items[0].from != at {
		p.give(f.batch.bytes)
		return fmt.Errorf("segment %d: %w: the line ends at offset %d, what was read begins at %d",
			p.state.Ordinal, archive.ErrBreaks, at, f.batch.items[0].from)
	}
	return p.fly(f.batch, f.since)
}

// A storedRow is what an archived row says.
type storedRow struct {
	content audit.Fingerprint
	foreign bool          // the row was scrubbed by another policy: see contentOf
	erased  bool          // in part or whole, or cut
	gone    bool          // erased hard, or cut: nothing is left that says what it was
	record  *audit.Record // where foreign
}

// stored reads an archived row of which the window does not know enough, and
// learns the content of the rows beside it on the way: repeats come in runs. It
// tries for as long as the partition lives.
func (p *partition) stored(e entry) (row storedRow, err error) {
	key := archive.SegmentKey(p.line, max(0, e.ordinal))
	err = p.shared.insist(p.put, p.line, key, func(ctx context.Context, key string) error {
		err := archive.ErrNotFound
		if e.ordinal >= 0 {
			row, err = p.storedIn(ctx, key, e)
		}
		if errors.Is(err, archive.ErrNotFound) || errors.Is(err, archive.ErrBreaks) { // compaction has taken it; what is there may be a stray
			other, fault := p.storedInFile(ctx, e)
			if errors.Is(err, archive.ErrNotFound) || !errors.Is(fault, archive.ErrBreaks) {
				row, err = other, fault
			}
		}
		return err
	})
	return row, err
}

// storedIn is stored, in a segment.
func (p *partition) storedIn(ctx context.Context, key string, e entry) (storedRow, error) {
	body, err := p.shared.Archive.Get(ctx, key)
	if err != nil {
		return storedRow{}, fmt.Errorf("segment %d: %w", e.ordinal, err)
	}
	o, err := archive.ReadForeignSegment(body, p.shared.keys)
	if err != nil {
		return storedRow{}, fmt.Errorf("segment %d: %w: %w", e.ordinal, archive.ErrBreaks, err)
	}
	l := learner{shared: p.shared, window: p.window, entry: e}
	for i := range o.Rows {
		l.learn(&o.Rows[i])
	}
	if !l.found {
		return storedRow{}, fmt.Errorf("segment %d: %w: it has no row of seq %d", e.ordinal, archive.ErrBreaks, e.seq)
	}
	return l.row, nil
}

// storedInFile is stored, in a data file.
func (p *partition) storedInFile(ctx context.Context, e entry) (storedRow, error) {
	l := learner{shared: p.shared, window: p.window, entry: e}
	found, err := p.data.rows(ctx, e.tenant, e.seq, l.learn)
	switch {
	case err != nil:
		return storedRow{}, err
	case !found && p.data.cut(e.tenant, e.seq):
		return storedRow{erased: true, gone: true}, nil
	case !found:
		return storedRow{}, fmt.Errorf("the row of seq %d: %w: no segment and no data file has it", e.seq, archive.ErrBreaks)
	}
	return l.row, nil
}

// A learner takes the content of rows into a window, and that of the row of an
// entry.
type learner struct {
	shared *shared
	window *window
	entry  entry
	row    storedRow
	found  bool
}

func (l *learner) learn(r *chain.Row) {
	row := storedRow{content: erasedContent, erased: true}
	if r.RowSalt.Valid {
		row.erased = false
		row.content, row.foreign = l.shared.contentOf(&r.Record)
	}
	coord, ok := r.Coordinates()
	if ok {
		l.window.learn(coord, row.content, row.foreign, r.Seq.N)
	}
	row.gone = row.erased && !ok
	if r.Seq.N == l.entry.seq && r.TenantID.S == l.entry.tenant {
		if row.foreign {
			kept := r.Record
			row.record = &kept
		}
		l.row, l.found = row, true
	}
}

// ask lets the window learn whether a row was erased or cut since it learned
// what the row said, as far as the catalog is known here. A data file is read for
// this once, for what its key names never changes.
func (p *partition) ask(e entry) error {
	if t := p.state.Tail.Anchor; t == nil || e.ordinal > t.Ordinal {
		return nil // what is not anchored is not compacted
	}
	return p.shared.insist(p.put, p.line, archive.SegmentPrefix(p.line), func(ctx context.Context, _ string) error {
		if now := p.shared.Now(); now.Sub(p.lookedAt) >= lookEvery {
			if err := p.look.look(ctx); err != nil {
				return err
			}
			p.lookedAt = now
		}
		if e.ordinal < watermarkOf(p.look.catalog()) {
			return p.askFile(ctx, e)
		}
		return nil
	})
}

// How often the catalog is looked at, at most, because a record says something else
// than the row that it seems to repeat.
const lookEvery = 10 * time.Second

func (p *partition) askFile(ctx context.Context, e entry) error {
	if c := p.look.catalog(); p.data.version == nil || p.data.version.Version < c.Version {
		p.data.take(c)
	}
	f, err := p.data.file(ctx, e.tenant, e.seq)
	if err == nil && f == nil && p.data.cut(e.tenant, e.seq) {
		p.window.lose(e.tenant, func(seq int64) bool { return p.data.cut(e.tenant, seq) })
	}
	if err == nil && (f == nil || p.asked[f.Key]) {
		return nil
	}
	if err == nil {
		err = p.shared.openData(ctx, f, func(file *parquet.File, _ *archive.DataFile) error { return p.learnErased(f, file) })
	}
	if errors.Is(err, archive.ErrNotFound) {
		newer, fault := p.data.renew(ctx)
		if newer {
			return err // to be tried again, in the file that has the row now
		}
		return cmp.Or(fault, p.shared.stillNamed(ctx, p.line, p.data.version, err))
	}
	if err == nil {
		p.asked[f.Key] = true
	}
	return err
}

// learnErased lets the window learn which rows of a data file are erased.
func (p *partition) learnErased(f *archive.CatalogFile, file *parquet.File) error {
	hard := map[int64]bool{}
	for row, err := range file.Select(append([]string{"row_salt"}, windowColumns...)...) {
		if err != nil {
			return fmt.Errorf("%s: %w: %w", f.Key, archive.ErrDataFile, err)
		}
		if row.RowSalt.Valid {
			continue
		}
		if coord, ok := row.Coordinates(); ok {
			p.window.learn(coord, erasedContent, false, row.Seq.N)
		} else {
			hard[row.Seq.N] = true
		}
	}
	if len(hard) > 0 {
		p.window.lose(f.Tenant, func(seq int64) bool { return hard[seq] })
	}
	return nil
}

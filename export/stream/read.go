package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/parquet"
)

func tampered(format string, a ...any) error {
	return fmt.Errorf("%w: %w", export.ErrTampered, fmt.Errorf(format, a...))
}

// liveEvery is how long data files are read before a look at what is new, so that
// logs that have caught up do not wait for one that has not.
const liveEvery = 2 * time.Second

// pass reads what is new and delivers it. It reports whether there may be more at
// once.
//
// Rows are found by their cursors. Segments are gone over in order; a lane whose
// next row is not in them is behind, and goes on in data files, day by day. Once
// it is through those, segments are gone over from the watermark on: what is
// missing then is missing.
func (r *runner) pass(ctx context.Context) (more bool, err error) {
	if r.v, err = r.watch.view(ctx); err != nil {
		return false, err
	}
	if err := r.takeCuts(ctx); err != nil {
		return false, err
	}
	r.wake()
	r.behind = r.behind || r.ordinal < r.v.watermark()
	before := r.ordinal
	if r.behind {
		if err := r.files(ctx); err != nil {
			return false, err
		}
		r.behind = false
		before, r.ordinal = -1, r.v.watermark()
	}
	if r.lingers() {
		return false, r.flush(ctx)
	}
	r.since = time.Time{}
	if err := r.scan(ctx, r.v, before < 0); err != nil {
		return false, err
	}
	r.miss()
	if err := r.readHeads(ctx); err != nil {
		return false, err
	}
	if r.v.catalog != nil && !r.behind && !r.held() {
		for _, p := range r.v.catalog.Parts {
			r.day = max(r.day, p.Day)
		}
	}
	return r.behind || r.ordinal != before, r.flush(ctx)
}

// miss stops the lanes that have come to the end of their logs in front of rows
// that an anchor states.
func (r *runner) miss() {
	if r.v.lacks == nil || r.behind || r.ordinal < r.v.next() {
		return
	}
	for _, tenant := range slices.Sorted(maps.Keys(r.v.lacks.heads)) {
		g := r.laneOf(tenant)
		if g == nil || g.stopped != nil || r.job.ended(g) {
			continue
		}
		if err := r.v.lacks.of(tenant, g.read.next); err != nil {
			r.stop(g, err)
		}
	}
}

// lingers reports whether what is new waits for more.
func (r *runner) lingers() bool {
	if r.d.Linger <= 0 || r.job != nil || r.ordinal >= r.v.next() {
		return false
	}
	var size int64
	for n := r.ordinal; n < r.v.next(); n++ {
		size += r.v.segment(n).Size
	}
	now := r.e.s.Now()
	if r.since.IsZero() {
		r.since = now
	}
	// By the store's clock, which may be ahead of ours, or since it was seen.
	waited := max(now.Sub(r.v.segment(r.ordinal).Modified), now.Sub(r.since))
	l := r.limits()
	return size < max(r.room(&l), 1<<20) && waited < r.d.Linger
}

// files goes through the data files that some lane needs.
func (r *runner) files(ctx context.Context) error {
	v := r.v
	live := r.e.s.Now()
	if err := r.count(ctx); err != nil {
		return err
	}
	for _, ref := range v.parts(r.day) {
		files, err := r.part(ctx, &ref)
		if err != nil {
			return err
		}
		for i := range files {
			f := &files[i]
			g := r.laneOf(f.Tenant)
			if g == nil || g.stopped != nil || f.LastSeq < g.read.next {
				continue
			}
			if err := r.file(ctx, f, g); err != nil {
				return err
			}
			if r.job == nil && r.e.s.Now().Sub(live) > liveEvery {
				if err := r.glance(ctx); err != nil {
					return err
				}
				live = r.e.s.Now()
			}
		}
		if !r.held() {
			r.day = ref.Day
		}
	}
	r.v, r.todo = v, 0
	return nil
}

// count counts the rows that files are read for.
func (r *runner) count(ctx context.Context) error {
	r.todo = 0
	for _, ref := range r.v.parts(r.day) {
		files, err := r.part(ctx, &ref)
		if err != nil {
			return err
		}
		for i := range files {
			f := &files[i]
			if g := r.laneOf(f.Tenant); g != nil {
				r.todo += max(f.LastSeq+1-max(f.FirstSeq, g.read.next), 0)
			}
		}
	}
	r.d.passed(r)
	return nil
}

// glance looks at what is new while files are read.
func (r *runner) glance(ctx context.Context) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	now, err := r.watch.view(ctx)
	if err != nil {
		return err
	}
	if err := r.scan(ctx, now, false); err != nil {
		return err
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	return r.storeDue(ctx)
}

// part reads what a catalog says of one day, by tenant and seq.
func (r *runner) part(ctx context.Context, ref *archive.CatalogPartRef) ([]archive.CatalogFile, error) {
	return archive.ReadPart(ctx, r.e.cached(ref.Bytes), ref)
}

// A cachedSource reads objects of a size through the cache.
type cachedSource struct {
	archive.Source
	cache *cache
	size  int64
}

func (e *Engine) cached(size int64) cachedSource {
	return cachedSource{e.s.Archive, &e.cache, size}
}

// Get implements [archive.Source].
func (c cachedSource) Get(ctx context.Context, key string) ([]byte, error) {
	return c.cache.get(ctx, key, c.size, func(ctx context.Context) ([]byte, error) { return c.Source.Get(ctx, key) })
}

// file delivers what a lane needs of a data file.
func (r *runner) file(ctx context.Context, f *archive.CatalogFile, g *lane) error {
	if r.job.skips(f, g) {
		r.jump(g, position{f.LastSeq + 1, &f.HeadOut, g.read.epoch})
		return nil
	}
	release, err := r.d.share.take(ctx, f.Bytes)
	if err != nil {
		return err
	}
	defer release()
	body, err := r.e.cached(f.Bytes).Get(ctx, f.Key)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Key, err)
	}
	file, m, err := archive.OpenDataFile(body, f)
	if err != nil {
		r.stop(g, tampered("%w", err))
		return nil
	}
	if m.ArchiveID != r.e.s.Root.ArchiveID || (archive.Line{Topic: m.Topic, TopicID: m.TopicID, Partition: m.Partition}) != r.line {
		r.stop(g, tampered("%s: it is of another line", f.Key))
		return nil
	}
	from := rowsOf{f.Key, inLog{m.Scheme, export.UnhashedIn(m)}, true}
	for row, err := range file.Rows() {
		if err != nil {
			r.stop(g, tampered("%s: %w", f.Key, err))
			return nil
		}
		if row.Seq.N < g.read.next {
			continue
		}
		if row.TenantID.S != f.Tenant {
			r.stop(g, tampered("%s: it has a row of another tenant", f.Key))
			return nil
		}
		if err := r.row(ctx, g, row, from); err != nil {
			return err
		}
		if g.stopped != nil || r.job.ended(g) {
			return nil
		}
	}
	return nil
}

// jump moves a lane over rows that were not read.
func (r *runner) jump(g *lane, p position) {
	g.read = p
	r.touched[g] = struct{}{}
}

// segmentsAhead is how many segments are on their way at once.
const segmentsAhead = 8

// scan delivers what segments of a view have from where the runner stands. last
// says that a row which is not there is nowhere else.
func (r *runner) scan(ctx context.Context, v *view, last bool) error {
	if r.ordinal < v.watermark() {
		r.behind, r.ordinal = true, v.watermark() // compaction has passed it
	}
	if r.ordinal >= v.next() {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for s := range r.ahead(ctx, v, r.ordinal) {
		err := s.err
		if err == nil {
			err = r.segment(ctx, s, last)
		}
		s.release()
		if err != nil {
			return err
		}
		r.ordinal = s.ordinal + 1
	}
	return context.Cause(ctx)
}

// A fetched is a segment on its way.
type fetched struct {
	ordinal int64
	key     string
	body    []byte
	err     error
	release func()
}

// ahead yields the segments of a view from an ordinal on, in order.
func (r *runner) ahead(ctx context.Context, v *view, from int64) func(func(*fetched) bool) {
	return func(yield func(*fetched) bool) {
		ctx, cancel := context.WithCancel(ctx)
		queue := make(chan chan *fetched, segmentsAhead-1)
		go r.fetch(ctx, v, from, queue)
		defer func() {
			cancel()
			for c := range queue {
				(<-c).release()
			}
		}()
		for c := range queue {
			if !yield(<-c) {
				return
			}
		}
	}
}

func (r *runner) fetch(ctx context.Context, v *view, from int64, queue chan<- chan *fetched) {
	defer close(queue)
	for n := from; n < v.next() && ctx.Err() == nil; n++ {
		o := v.segment(n)
		s := &fetched{ordinal: n, key: o.Key, release: func() {}}
		c := make(chan *fetched, 1)
		release, err := r.d.share.take(ctx, o.Size)
		if err != nil {
			return
		}
		s.release = release
		go func() {
			s.body, s.err = r.e.cached(o.Size).Get(ctx, o.Key)
			c <- s
		}()
		queue <- c
	}
}

// segment delivers what lanes need of a segment.
func (r *runner) segment(ctx context.Context, s *fetched, last bool) error {
	if r.void[s.ordinal] {
		return nil
	}
	m, err := archive.SegmentMetadata(s.body)
	if err != nil {
		return tampered("%s: %w", s.key, err)
	}
	if m.Line() != r.line || m.Ordinal != s.ordinal || m.ArchiveID != r.e.s.Root.ArchiveID {
		return tampered("%s: it says that it is segment %d of %s/%d", s.key, m.Ordinal, m.Topic, m.Partition)
	}
	for _, v := range m.Voided {
		r.void[v.Ordinal] = true
	}
	logs, some := r.wanted(m)
	if !some {
		return nil
	}
	file, err := archive.OpenForeignSegment(s.body)
	if err != nil {
		return tampered("%s: %w", s.key, err)
	}
	return r.rows(ctx, file, s.key, logs, last)
}

// inLog is what an object says of a log in it.
type inLog struct {
	scheme string
	says   export.Unhashed
}

// wanted returns what a segment says of its logs, and whether some lane needs a row
// of it.
func (r *runner) wanted(m *archive.Segment) (logs map[string]inLog, some bool) {
	logs = make(map[string]inLog, len(m.Logs))
	for i := range m.Logs {
		l := &m.Logs[i]
		logs[l.Tenant] = inLog{l.Scheme, export.UnhashedOf(l, m.Voided)}
		if g := r.laneOf(l.Tenant); g != nil && g.stopped == nil && (l.Size > g.read.next || l.Epoch > g.read.epoch) {
			some = true
		}
	}
	return logs, some
}

func (r *runner) rows(ctx context.Context, file *parquet.File, key string, logs map[string]inLog, last bool) error {
	for row, err := range file.Rows() {
		if err != nil {
			return tampered("%s: %w", key, err)
		}
		g := r.laneOf(row.TenantID.S)
		if g == nil || g.stopped != nil {
			continue
		}
		if err := r.row(ctx, g, row, rowsOf{key, logs[row.TenantID.S], last}); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf says where a row was read.
type rowsOf struct {
	key string
	inLog
	last bool // rows in front of it that were not met are nowhere
}

// row takes a row that a lane may need: it is checked, filtered, and put into the
// batch.
func (r *runner) row(ctx context.Context, g *lane, row *chain.Row, from rowsOf) error {
	switch {
	case row.Seq.N < g.read.next:
		if int32(row.Epoch.N) <= g.read.epoch || row.Kind.S != audit.KindChainReset {
			return nil
		}
		// What was delivered from here on was declared void since. The receiver sees
		// it by this row, which says from where on.
	case row.Seq.N > g.read.next && !from.last:
		g.behind, r.behind = true, true
		return nil
	}
	if err := r.unhashed(g, row, from); err != nil {
		r.stop(g, err)
		return nil
	}
	switch {
	case row.Seq.N < g.read.next:
	case int32(row.Epoch.N) < g.read.epoch && row.Seq.N == g.read.next && g.read.hash != nil && row.PrevHash == *g.read.hash:
		r.stop(g, fmt.Errorf("%w: %s stands at seq %d of epoch %d, and the row that follows there is of epoch %d (%s)",
			ErrCursor, r.doc.key, g.read.next, g.read.epoch, row.Epoch.N, from.key))
		return nil
	case int32(row.Epoch.N) < g.read.epoch:
		return nil // of a segment that was declared void
	case row.Seq.N > g.read.next:
		r.stop(g, tampered("%s: seq %d stands where %d belongs", from.key, row.Seq.N, g.read.next))
		return nil
	}
	verified, err := r.check(g, row, from)
	if err != nil {
		r.stop(g, err)
		return nil
	}
	return r.take(ctx, g, row, verified, from)
}

// unhashed holds what no hash has of a row against what its object says of its log:
// not of one that was declared void, and that no one takes.
func (r *runner) unhashed(g *lane, row *chain.Row, from rowsOf) error {
	if r.d.Unverified || from.says.Epoch < g.read.epoch && int32(row.Epoch.N) < g.read.epoch {
		return nil
	}
	if err := from.says.Check(row); err != nil {
		return tampered("%s: tenant %q: seq %d: %w", from.key, g.Tenant, row.Seq.N, err)
	}
	return nil
}

// take puts a row that was checked into the batch, where it gets through, and
// moves its lane.
func (r *runner) take(ctx context.Context, g *lane, row *chain.Row, verified bool, from rowsOf) error {
	at := position{row.Seq.N, &row.PrevHash, g.read.epoch}
	if at.next > 0 {
		prev := row.PrevHash
		at.hash = &prev
	} else {
		at.hash = nil
	}
	hash := row.RowHash
	after := position{row.Seq.N + 1, &hash, int32(row.Epoch.N)}
	keep := *row
	var items []*item
	if r.d.Filter.Has(row) && r.job.has(row) {
		it := &item{g: g, at: at, row: &keep, verified: verified}
		err := r.gate(ctx, it)
		if errors.Is(err, export.ErrTampered) {
			r.stop(g, err)
			return nil
		}
		if err != nil {
			return err
		}
		items = append(items, it)
	}
	if row.Kind.S == audit.KindErasureDone && r.job.notices(row) {
		notices, err := r.notices(ctx, g, at, &keep)
		if err != nil {
			return err
		}
		items = append(items, notices...)
	}
	g.read, g.behind, r.todo = after, false, max(r.todo-1, 0)
	r.reached = time.UnixMicro(row.ArchivedAt.N).UTC()
	r.touched[g] = struct{}{}
	r.dirty = true
	return r.add(ctx, items...)
}

// check checks a row by its hash, and that it follows the one before it.
func (r *runner) check(g *lane, row *chain.Row, from rowsOf) (verified bool, err error) {
	log := chain.Log{ArchiveID: r.e.s.Root.ArchiveID, Tenant: row.TenantID.S, Topic: r.line.Topic, TopicID: r.line.TopicID, Partition: r.line.Partition}
	if (archive.Line{Topic: row.Topic.S, TopicID: row.TopicID.S, Partition: int32(row.Partition.N)}) != r.line {
		return false, tampered("%s: seq %d: it is a row of %s/%d", from.key, row.Seq.N, row.Topic.S, row.Partition.N)
	}
	if prev := r.before(g, row, log, from.scheme); prev != row.PrevHash && !r.d.Unverified {
		if g.Next == row.Seq.N && g.RowHash != nil {
			return false, fmt.Errorf("%w: %s stands at seq %d behind row hash %s, and that row of tenant %q follows %s (%s)",
				ErrCursor, r.doc.key, g.Next, g.RowHash, g.Tenant, row.PrevHash, from.key)
		}
		return false, tampered("%s: tenant %q: seq %d does not follow the row before it", from.key, g.Tenant, row.Seq.N)
	}
	if r.d.Unverified {
		return false, nil
	}
	hasher, err := r.hashers.For(from.scheme, log)
	if errors.Is(err, chain.ErrNoKey) {
		return false, fmt.Errorf("tenant %q: %w: give its key, or verify: false", g.Tenant, err)
	}
	if err == nil {
		err = hasher.Check(row)
	}
	if err != nil {
		return false, tampered("%s: tenant %q: seq %d: %w", from.key, g.Tenant, row.Seq.N, err)
	}
	return true, nil
}

// before returns what the prev_hash of the next row must be.
func (r *runner) before(g *lane, row *chain.Row, log chain.Log, scheme string) chain.Hash {
	if row.Kind.S == audit.KindChainReset {
		reset, err := archive.ParseReset(row.Slots[audit.SlotContext])
		if err != nil || reset.PreviousSize != row.Seq.N {
			return chain.Hash{}
		}
		if row.Seq.N == g.read.next && g.read.hash != nil && *g.read.hash != reset.PreviousHead {
			return chain.Hash{}
		}
		return chain.ResetGenesis(scheme, log, int32(row.Epoch.N), reset.PreviousHead, reset.PreviousSize, reset.Reason)
	}
	switch {
	case g.read.hash != nil:
		return *g.read.hash
	case g.read.next == 0:
		return chain.Genesis(scheme, log)
	}
	return row.PrevHash // a backfill begins here
}

// gate takes from an item what is not to be shown by now, and writes it anew where
// that is something.
func (r *runner) gate(ctx context.Context, it *item) error {
	if it.row == nil {
		return nil
	}
	now, err := r.e.governor.current(ctx)
	if err != nil {
		return err
	}
	if it.gatedBy == now {
		return nil
	}
	changed, err := hide(now, r.plain, it.row)
	if err != nil {
		return tampered("seq %d: %w", it.row.Seq.N, err)
	}
	if it.gatedBy = now; !changed && it.ev != nil {
		return nil
	}
	it.ev = event.NewRecord(r.line, it.row, it.verified)
	if it.pointer {
		it.ev = it.ev.Pointer()
	}
	r.encode(it)
	return nil
}

// ends returns where each log of a view ends: what costs all parts of the catalog
// and the metadata of all segments.
func (r *runner) ends(ctx context.Context, v *view) (map[string]position, error) {
	ends := map[string]position{}
	for _, ref := range v.parts("") {
		files, err := r.part(ctx, &ref)
		if err != nil {
			return nil, err
		}
		for i := range files {
			f := &files[i]
			if f.LastSeq >= ends[f.Tenant].next {
				ends[f.Tenant] = position{f.LastSeq + 1, &f.HeadOut, 0}
			}
		}
	}
	if v.catalog != nil {
		for i := range v.catalog.Cuts {
			c := &v.catalog.Cuts[i]
			if c.Size > ends[c.Tenant].next {
				ends[c.Tenant] = position{c.Size, &c.Head, 0}
			}
		}
	}
	if err := r.learn(ctx, v.segments); err != nil {
		return nil, err
	}
	void := map[int64]bool{}
	for _, m := range slices.Backward(v.segments) {
		seg, err := r.metadata(ctx, m.Key)
		if err != nil {
			return nil, err
		}
		for _, s := range seg.Voided {
			void[s.Ordinal] = true
		}
		for i := range seg.Logs {
			l := &seg.Logs[i]
			if void[seg.Ordinal] {
				break
			}
			if at := ends[l.Tenant]; l.Size > at.next {
				ends[l.Tenant] = position{l.Size, &l.HeadOut, l.Epoch}
			}
		}
	}
	for tenant := range ends {
		if !r.d.Filter.HasTenant(tenant) {
			delete(ends, tenant)
		}
	}
	return ends, nil
}

// metadata reads what a segment says of itself.
func (r *runner) metadata(ctx context.Context, key string) (*archive.Segment, error) {
	if m := r.watch.knows(key); m != nil {
		return m, nil
	}
	const tail = 64 << 10
	body, size, err := r.e.s.Archive.GetTail(ctx, key, tail)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	text, _, err := parquet.TailMetadata(body, size)
	var short *parquet.ShortTailError
	if errors.As(err, &short) {
		if body, err = r.e.s.Archive.Get(ctx, key); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		text, err = archive.RawMetadata(body)
	}
	if err != nil {
		return nil, tampered("%s: %w", key, err)
	}
	m, err := archive.DecodeSegment(text)
	if err != nil {
		return nil, tampered("%s: %w", key, err)
	}
	r.watch.remember(key, m)
	return m, nil
}

// learn reads the metadata of segments, many at a time, so that it is remembered.
func (r *runner) learn(ctx context.Context, segments []archive.Object) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(2 * segmentsAhead)
	for _, o := range segments {
		g.Go(func() error {
			_, err := r.metadata(gctx, o.Key)
			if errors.Is(err, export.ErrTampered) {
				return nil // who needs it says so
			}
			return err
		})
	}
	return g.Wait()
}

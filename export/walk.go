package export

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// An ask is what a stream is to yield of the lines.
type ask struct {
	tenant string                                        // "" means all
	from   int64                                         // the first seq that is shown
	match  func(*chain.Row) bool                         // of what may be shown; nil: every row
	skips  func(f *archive.CatalogFile) bool             // a file that has none; nil: none is skipped
	begins func(row *chain.Row, before chain.Hash) error // is asked before row from is shown; nil: nothing
	ends   func(at *logAt) error                         // once all of a log was read; nil: nothing

	unchecked bool
}

// errStop: the consumer has enough.
var errStop = errors.New("enough")

// stream yields what is asked of all lines, one after the other. An error of one
// log, or of one line, is yielded in its place, and what is asked of the others
// goes on; the store's, and the context's, ends the sequence.
func (a *Archive) stream(ctx context.Context, ask ask, lines func(archive.Line) bool) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		v := a.view.Load()
		memory := max(a.o.Memory/a.streams.Add(1), 1)
		defer a.streams.Add(-1)
		for _, l := range v.lines {
			if lines != nil && !lines(l.line) {
				continue
			}
			w := &walker{a: a, l: l, ask: ask, memory: memory, show: a.shower(v, l.line, ask.match), logs: map[string]*logAt{}, yield: yield}
			w.show.unchecked = ask.unchecked
			err := w.line(ctx)
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
		if v.fault != nil && lines == nil {
			yield(nil, v.fault)
		}
	}
}

// A walker goes along one line.
type walker struct {
	a      *Archive
	l      *lineView
	ask    ask
	memory int64 // for objects that are read ahead
	show   *shower
	logs   map[string]*logAt // by tenant
	missed missing
	yield  func(*Row, error) bool
}

// A logAt is how far a log was walked.
type logAt struct {
	next  int64      // seq of the row that comes next
	head  chain.Hash // of the row before
	epoch int32      // of the row before, or unknownEpoch
	dead  bool       // a fault was yielded: nothing follows it
}

// unknownEpoch is that of a row that was not read.
const unknownEpoch = -1

// before returns the epoch of the row in front of a seq.
func (at *logAt) before(seq int64) int32 {
	if seq != at.next {
		return unknownEpoch
	}
	return at.epoch
}

// line walks along the line, by as many snapshots as it takes.
func (w *walker) line(ctx context.Context) error {
	return w.l.steady(ctx, w.ask.tenant, func(s *archive.Snapshot) error { return w.snapshot(ctx, s) }, w.fault)
}

// fault yields what is wrong.
func (w *walker) fault(err error) error {
	if !w.yield(nil, err) {
		return errStop
	}
	return nil
}

// snapshot yields what was not yielded before.
func (w *walker) snapshot(ctx context.Context, s *archive.Snapshot) error {
	segments, err := w.l.segments(ctx, s)
	if err != nil {
		return err
	}
	w.begin(s, segments)
	pieces := w.pieces(s, segments)
	weigh := func(p *piece) int64 {
		if p.parts {
			return 0
		}
		return p.size
	}
	for p, err := range aheadWithin(ctx, pieces, segmentsParallel, w.memory, weigh, w.fetch) {
		if err != nil {
			return err
		}
		if err := w.piece(ctx, p); err != nil {
			return err
		}
	}
	return w.end()
}

func (w *walker) end() error {
	for _, at := range w.logs {
		if at.dead || w.ask.ends == nil {
			continue
		}
		if err := w.ask.ends(at); err != nil {
			if err := w.fault(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin notes where logs begin that were not met yet.
func (w *walker) begin(s *archive.Snapshot, segments []*segment) {
	if s.Catalog != nil {
		for i := range s.Catalog.Cuts {
			c := &s.Catalog.Cuts[i]
			if w.wants(c.Tenant) && w.logs[c.Tenant] == nil {
				w.logs[c.Tenant] = &logAt{next: c.Size, head: c.Head, epoch: unknownEpoch}
			}
		}
	}
	for i := range s.Files {
		if f := &s.Files[i]; w.wants(f.Tenant) && w.logs[f.Tenant] == nil {
			at := &logAt{next: f.FirstSeq, head: f.HeadIn}
			if f.FirstSeq > 0 {
				at.epoch = unknownEpoch
			}
			w.logs[f.Tenant] = at
		}
	}
	for _, seg := range segments {
		for i := range seg.logs {
			if l := &seg.logs[i]; w.wants(l.Tenant) && w.logs[l.Tenant] == nil {
				w.logs[l.Tenant] = &logAt{head: chain.Genesis(l.Scheme, w.log(l.Tenant))}
			}
		}
	}
}

func (w *walker) wants(tenant string) bool { return w.ask.tenant == "" || w.ask.tenant == tenant }

func (w *walker) log(tenant string) chain.Log {
	return chain.Log{ArchiveID: w.a.root.ArchiveID, Tenant: tenant, Topic: w.l.line.Topic, TopicID: w.l.line.TopicID, Partition: w.l.line.Partition}
}

// pieces lists what is to be read, in order.
func (w *walker) pieces(s *archive.Snapshot, segments []*segment) (all []*piece) {
	for i := range s.Files {
		f := &s.Files[i]
		if !w.wants(f.Tenant) {
			continue
		}
		p := &piece{key: f.Key, size: f.Bytes, file: f}
		if at := w.logs[f.Tenant]; at.dead || f.LastSeq < at.next {
			continue
		}
		if f.LastSeq < w.ask.from || w.ask.skips != nil && w.ask.skips(f) {
			p.size = 0 // it is passed, and not read
		}
		// The row in front of from is read too: it is what the first one follows.
		p.start = max(f.FirstSeq, w.ask.from-1, w.logs[f.Tenant].next)
		p.parts = p.size > w.memory/2 || p.size > 0 && p.start > f.FirstSeq
		all = append(all, p)
	}
	for _, seg := range segments {
		if p := w.segmentPiece(seg); p != nil {
			all = append(all, p)
		}
	}
	return all
}

func (w *walker) segmentPiece(seg *segment) *piece {
	p := &piece{key: seg.key, size: seg.size, seg: seg}
	if seg.err != nil {
		p.size, p.gone = 0, seg.err
		return p
	}
	wanted, read := false, false
	for i := range seg.logs {
		l := &seg.logs[i]
		if !w.wants(l.Tenant) || w.logs[l.Tenant].dead || l.FirstSeq+l.Rows <= w.logs[l.Tenant].next {
			continue
		}
		wanted = true
		read = read || l.FirstSeq+l.Rows > w.ask.from
	}
	if !wanted {
		return nil
	}
	if !read {
		p.size = 0
	}
	return p
}

// fetch reads a piece whole, unless it is passed, or is read in parts.
func (w *walker) fetch(ctx context.Context, p *piece) (*piece, error) {
	if p.size == 0 || p.parts {
		return p, nil
	}
	body, err := w.a.src.Get(ctx, p.key)
	if err == nil && int64(len(body)) != p.size {
		// Not what was listed. Under the key of a segment that was compacted and
		// deleted, a writer that slept through it can still put another.
		err = fmt.Errorf("%w: it has %d bytes, and was listed with %d", archive.ErrNotFound, len(body), p.size)
	}
	if err != nil {
		body, err = nil, w.missed.met(p, readFault(p.key, err))
	}
	if errors.Is(err, ErrTampered) {
		p.gone, err = err, nil
	}
	p.body = body
	return p, err
}

// piece yields the rows of a piece.
func (w *walker) piece(ctx context.Context, p *piece) error {
	switch {
	case p.gone != nil && p.file != nil:
		w.logs[p.file.Tenant].dead = true
		return w.fault(p.gone)
	case p.gone != nil && !w.missed.new(p.gone):
		return nil
	case p.gone != nil:
		return w.fault(p.gone) // whose rows it had its logs will tell: they go on, or miss some
	case p.file != nil:
		return w.file(ctx, p)
	}
	return w.segment(ctx, p)
}

func (w *walker) file(ctx context.Context, p *piece) error {
	f := p.file
	at := w.logs[f.Tenant]
	sp := &span{tenant: f.Tenant, seq: f.FirstSeq, end: f.LastSeq + 1, head: f.HeadIn, headOut: f.HeadOut, epoch: at.before(f.FirstSeq), at: at}
	if at.dead {
		return nil
	}
	if p.size == 0 {
		return w.pass(p, sp)
	}
	w.a.tell("%s", p.key)
	if p.parts {
		again, was := *sp, *at
		if err := w.parts(ctx, p, sp); !errors.Is(err, parquet.ErrWhole) {
			return err
		}
		if at.next == p.start {
			*at = was // nothing was read
		}
		p.parts, *sp = false, again
		if _, err := w.fetch(ctx, p); err != nil {
			return err
		}
		if p.gone != nil {
			return w.kill(sp, p.gone)
		}
	}
	file, meta, err := archive.OpenDataFile(p.body, f)
	if err != nil {
		return w.kill(sp, tampered("%w", err))
	}
	sp.scheme, sp.says = meta.Scheme, UnhashedIn(meta)
	return w.rows(ctx, p, file.Rows(), map[string]*span{f.Tenant: sp})
}

// parts yields the rows of a file that is too large to be held, or of which the
// end alone is asked for. That its rows follow each other up to the head that the
// catalog states is then what binds them, and not the object's hash.
func (w *walker) parts(ctx context.Context, p *piece, sp *span) error {
	r, err := w.a.remote(ctx, p.key, p.size)
	if err = w.missed.met(p, err); errors.Is(err, ErrTampered) {
		return w.kill(sp, err)
	}
	if err != nil {
		return err
	}
	text, _ := r.Metadata()
	meta, err := p.file.Metadata(text, r.NumRows())
	if err != nil {
		return w.kill(sp, tampered("%w", err))
	}
	sp.scheme, sp.says = meta.Scheme, UnhashedIn(meta)
	some := parquet.Match{}
	if p.start > sp.seq {
		if err := w.follows(sp); err != nil {
			return w.kill(sp, tampered("%s: %w", p.key, err))
		}
		some = parquet.Match{parquet.Between("seq", p.start, sp.end-1)}
		sp.enter(p.start)
	}
	return w.rows(ctx, p, r.Find(ctx, some), map[string]*span{sp.tenant: sp})
}

// enter begins a span at a seq within it.
func (sp *span) enter(seq int64) {
	sp.seq, sp.epoch = seq, sp.at.before(seq)
	if sp.at.next == seq {
		sp.head = sp.at.head
		return
	}
	sp.head, sp.at.head, sp.at.next, sp.at.epoch, sp.loose = chain.Hash{}, chain.Hash{}, seq, unknownEpoch, true
}

func (w *walker) segment(ctx context.Context, p *piece) error {
	if p.size == 0 {
		for _, sp := range w.spans(p.seg) {
			if err := w.pass(p, sp); err != nil {
				return err
			}
		}
		return nil
	}
	w.a.tell("%s", p.key)
	file, err := archive.OpenForeignSegment(p.body)
	if err != nil {
		return w.fault(tampered("%s: %w", p.key, err))
	}
	text, _ := file.Metadata()
	seg := newSegment(w.a.root.ArchiveID, w.l.line, archive.Object{Key: p.key, Size: p.size}, text)
	if seg.err != nil {
		return w.fault(seg.err)
	}
	return w.rows(ctx, p, file.Rows(), w.spans(seg))
}

// spans returns what a segment has of the logs that are walked, by tenant.
func (w *walker) spans(seg *segment) map[string]*span {
	spans := map[string]*span{}
	for i := range seg.logs {
		l := &seg.logs[i]
		if at := w.logs[l.Tenant]; w.wants(l.Tenant) && at != nil && !at.dead {
			spans[l.Tenant] = &span{
				tenant: l.Tenant, scheme: l.Scheme, says: UnhashedOf(l, seg.voided), seq: l.FirstSeq, end: l.FirstSeq + l.Rows,
				head: l.HeadIn, headOut: l.HeadOut, epoch: at.before(l.FirstSeq), at: at,
			}
		}
	}
	return spans
}

// A span is what a piece has of one log, and how far it was read.
type span struct {
	tenant        string
	scheme        string
	says          Unhashed // what the piece says, once it is open
	seq, end      int64    // of the next row, and behind the last one
	head, headOut chain.Hash
	epoch         int32 // of the row before the next one, or unknownEpoch
	loose         bool  // the next row is the first: what it follows was not read
	at            *logAt
}

// pass goes on behind a span that is not read.
func (w *walker) pass(p *piece, sp *span) error {
	if sp.at.dead || sp.end <= sp.at.next {
		return nil
	}
	if err := w.follows(sp); err != nil {
		return w.kill(sp, tampered("%s: %w", p.key, err))
	}
	sp.at.next, sp.at.head, sp.at.epoch = sp.end, sp.headOut, unknownEpoch
	if p.seg != nil {
		sp.at.epoch = sp.says.Epoch
	}
	return nil
}

// follows requires that a span goes on where its log is. One that begins before
// that is one of which a part was read in another object.
func (w *walker) follows(sp *span) error {
	switch {
	case sp.seq > sp.at.next:
		return fmt.Errorf("the log of tenant %.80q goes on with seq %d, and seq %d comes next", sp.tenant, sp.seq, sp.at.next)
	case sp.seq == sp.at.next && sp.head != sp.at.head && !w.ask.unchecked:
		return fmt.Errorf("the log of tenant %.80q does not follow the row before it at seq %d", sp.tenant, sp.seq)
	}
	return nil
}

// kill yields what is wrong with a log, and ends it.
func (w *walker) kill(sp *span, err error) error {
	sp.at.dead = true
	return w.fault(err)
}

// rows yields the rows of an object that is open.
func (w *walker) rows(ctx context.Context, p *piece, rows iter.Seq2[*chain.Row, error], spans map[string]*span) error {
	for _, sp := range spans {
		if err := w.follows(sp); err != nil {
			if err := w.kill(sp, tampered("%s: %w", p.key, err)); err != nil {
				return err
			}
		}
	}
	for row, err := range rows {
		if errors.Is(err, parquet.ErrWhole) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err = readFault(p.key, err); errors.Is(err, ErrTampered) {
			return w.broken(p, spans, err)
		}
		if err != nil {
			return err
		}
		sp := spans[row.TenantID.S]
		switch {
		case sp == nil && (p.file != nil || w.alive(row.TenantID.S)):
			return w.broken(p, spans, tampered("%s: a row of tenant %.80q, of whom it says that it has none", p.key, row.TenantID.S))
		case sp == nil || sp.at.dead:
			continue
		}
		if err := w.row(p, sp, row); err != nil {
			return err
		}
	}
	for _, sp := range spans {
		if !sp.at.dead && !w.ask.unchecked && (sp.seq != sp.end || sp.head != sp.headOut || sp.epoch != sp.says.Epoch) {
			if err := w.kill(sp, tampered("%s: the rows of tenant %.80q do not end as it says", p.key, sp.tenant)); err != nil {
				return err
			}
		}
	}
	return nil
}

// alive reports whether rows of a tenant are still asked for.
func (w *walker) alive(tenant string) bool {
	at := w.logs[tenant]
	return w.wants(tenant) && (at == nil || !at.dead)
}

// broken ends the logs of a piece that cannot be read to its end.
func (w *walker) broken(p *piece, spans map[string]*span, err error) error {
	for _, sp := range spans {
		sp.at.dead = true
	}
	return w.fault(err)
}

// row holds a row against the one before it, and yields what may be shown of it.
func (w *walker) row(p *piece, sp *span, row *chain.Row) error {
	if !w.ask.unchecked {
		if err := w.link(sp, row); err != nil {
			return w.kill(sp, faultAt(p.key, row, err))
		}
	}
	before := sp.head
	sp.seq, sp.head, sp.epoch, sp.loose = row.Seq.N+1, row.RowHash, int32(row.Epoch.N), false
	if row.Seq.N < sp.at.next {
		return nil // it was yielded from another object
	}
	sp.at.next, sp.at.head, sp.at.epoch = sp.seq, sp.head, sp.epoch
	if row.Seq.N < w.ask.from {
		return nil
	}
	if row.Seq.N == w.ask.from && w.ask.begins != nil {
		if err := w.ask.begins(row, before); err != nil {
			return w.kill(sp, faultAt(p.key, row, err))
		}
	}
	shown, err := w.show.show(row, sp.scheme, p.key)
	if err != nil {
		return w.kill(sp, err)
	}
	if shown != nil && !w.yield(shown, nil) {
		return errStop
	}
	return nil
}

func (w *walker) link(sp *span, row *chain.Row) error {
	if err := sp.fits(row); err != nil {
		return err
	}
	switch {
	case row.Seq.N != sp.seq:
		return fmt.Errorf("it stands where seq %d belongs", sp.seq)
	case sp.loose:
	case row.Kind.S == audit.KindChainReset:
		return w.reset(sp, row)
	case row.PrevHash != sp.head:
		return errors.New("its prev_hash is not the row_hash of the row before it")
	case sp.seq == sp.at.next && sp.head != sp.at.head:
		return errors.New("the row before it is another one than was read before")
	}
	return nil
}

// fits holds what no hash has of a row against what its object says, and its epoch
// against that of the row before it.
func (sp *span) fits(row *chain.Row) error {
	if err := sp.says.Check(row); err != nil || sp.epoch == unknownEpoch {
		return err
	}
	want := int64(sp.epoch)
	if row.Kind.S == audit.KindChainReset {
		want++
	}
	if row.Epoch.N != want {
		return fmt.Errorf("column epoch: %d stands where %d belongs", row.Epoch.N, want)
	}
	return nil
}

// reset holds the first row of an epoch against the one before.
func (w *walker) reset(sp *span, row *chain.Row) error {
	r, err := archive.ParseReset(row.Slots[audit.SlotContext])
	if err != nil {
		return nil // an erased one: the rows beside it bind it
	}
	if r.PreviousHead != sp.head || r.PreviousSize != sp.seq ||
		row.PrevHash != chain.ResetGenesis(sp.scheme, w.log(sp.tenant), int32(row.Epoch.N), r.PreviousHead, r.PreviousSize, r.Reason) {
		return errors.New("the epoch does not begin behind the row before it")
	}
	return nil
}

package proof

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A base is what lies below the watermark of a line: data files instead of
// segments. Files are read in the order of their offsets, several at once, and
// anchors beside them, so that what is held of either is bounded by how far
// files overlap: offsets as a bit each, heads and counts that anchors state until
// the rows that they speak of have come.
type base struct {
	*joiner
	c         *lineCatalog
	line      archive.Line
	watermark int64

	// Of the goroutine that reads ahead.
	pull  func() (*anchor, error, bool)
	cur   *anchor                    // the first one that reaches the watermark
	heads map[string]*headStatements // by tenant

	// Of the goroutine that joins.
	entries   []archive.AnchorSegment // whose rows may still come
	below     []listedSegment         // segments that are there though they are compacted
	hashes    map[int64]*chain.Hash   // of those, by ordinal, as anchors state them; nil where none does
	segment   chain.Hash              // SHA-256 of the segment before the watermark
	seen      int64                   // the last ordinal that an anchor told of
	offsets   offsetSet
	anchored  int64               // rows, by anchors
	rows      int64               // in data files
	from      map[string]int64    // where logs begin: behind a cut
	repeats   map[string][]repeat // by tenant
	held      []*anchor           // end with the last segment before the watermark
	late      map[string]int64    // archived_at of the newest row that no anchor before the held ones covers
	signed    map[string]int64    // sizes at the newest anchor by a good key
	last      int64               // the number of the newest anchor that was taken, -1 if none
	torn      bool                // not all rows, or not all anchors, could be read
	lastEntry *archive.AnchorSegment
}

// headStatements are what anchors say of one log, and no row has shown yet.
type headStatements struct {
	list []headStatement // sizes go up
	last headStatement
}

// A headStatement is a head of a log that an anchor lists.
type headStatement struct {
	archive.AnchorHead
	key    string
	number int64
	time   int64 // microseconds
}

// A baseJob is a data file, and the anchors that were read before it.
type baseJob struct {
	anchors []*anchor
	faults  []Fault
	file    *archive.CatalogFile // nil behind the last one
	low     int64                // no offset below it comes any more
	states  []headStatement      // that speak of the file's rows, by size
	sizes   []int64
	digest  *dataDigest
}

// base reads what lies below the watermark, and puts the joiner there. It
// returns from where the gate goes on; nil where the catalog says nothing.
func (j *joiner) base(ctx context.Context) (*SavedLine, error) {
	c, err := j.catalogs(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.survivors(ctx, c); err != nil {
		return nil, err
	}
	if c.none {
		return nil, nil // the line is as if it were not compacted
	}
	if c.newest == nil {
		j.unknown = true
		j.breaks++ // what lies below the watermark is not known
		return nil, nil
	}
	b := &base{
		joiner: j, c: c, line: c.newest.Line(), watermark: c.newest.Watermark, heads: map[string]*headStatements{}, seen: -1, last: -1,
		hashes: map[int64]*chain.Hash{}, from: map[string]int64{}, repeats: map[string][]repeat{}, late: map[string]int64{}, signed: map[string]int64{}, torn: c.lost,
	}
	j.rep.Topic, j.rep.TopicID = b.line.Topic, b.line.TopicID
	j.rep.Watermark = &b.watermark
	j.watermark, j.ordinal = b.watermark, b.watermark-1
	if j.v.governed() {
		j.checkIndex(c)
	}
	if err := b.listBelow(ctx); err != nil {
		return nil, err
	}
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	return b.finish(ctx)
}

// listBelow lists the segments that are there though they are compacted.
func (b *base) listBelow(ctx context.Context) error {
	for o, err := range b.v.src.List(ctx, b.l.prefix("log"), "") {
		if err != nil {
			return fmt.Errorf("list segments: %w", err)
		}
		n, ok := archive.ParseSegmentKey(o.Key)
		if !ok {
			continue // a stray, named by the survey
		}
		if n.Ordinal >= b.watermark {
			break
		}
		b.below = append(b.below, listedSegment{o, place(n)})
		b.hashes[n.Ordinal] = nil
	}
	return nil
}

// read reads files and anchors.
func (b *base) read(ctx context.Context) error {
	g := &gate{v: b.v, l: b.l}
	next, stop := iter.Pull2(g.anchors(ctx))
	defer stop()
	b.pull = next
	w := newWindow(b.v.lineBytes, 1, b.v.lineObjects)
	jobs := ahead(ctx, b.jobs,
		func(ctx context.Context, job *baseJob) error {
			if job.file == nil {
				return nil
			}
			return w.acquire(ctx, job.file.Bytes)
		},
		func(ctx context.Context, job *baseJob) (_ *baseJob, err error) {
			if job.file == nil {
				return job, nil
			}
			defer w.release(job.file.Bytes)
			job.digest, err = b.v.dataFile(ctx, b.line, b.c, job.file, job.sizes)
			return job, err
		})
	for job, err := range jobs {
		if err != nil {
			return err
		}
		b.join(job)
	}
	return nil
}

// jobs yields the files in order, each with the anchors that tell of its rows.
func (b *base) jobs(yield func(*baseJob, error) bool) {
	for i, f := range b.c.files {
		job := &baseJob{file: f, low: b.c.order[i]}
		if err := b.fill(job); err != nil {
			yield(nil, err)
			return
		}
		if !yield(job, nil) {
			return
		}
	}
	job := &baseJob{low: math.MaxInt64}
	err := b.pullUntil(job, func() bool { return false })
	yield(job, err)
}

// fill reads anchors until one says that the log has all rows of the file.
func (b *base) fill(job *baseJob) error {
	f := job.file
	if !b.v.wants(f.Tenant) {
		return nil
	}
	err := b.pullUntil(job, func() bool {
		s := b.heads[f.Tenant]
		return s != nil && s.last.Size > f.LastSeq
	})
	if s := b.heads[f.Tenant]; s != nil {
		for len(s.list) > 0 && s.list[0].Size <= f.LastSeq+1 {
			job.states = append(job.states, s.list[0])
			job.sizes = append(job.sizes, s.list[0].Size)
			s.list = s.list[1:]
		}
	}
	for _, e := range b.expected.heads[f.Tenant] {
		job.sizes = append(job.sizes, e.Size)
	}
	slices.Sort(job.sizes)
	job.sizes = slices.Compact(job.sizes)
	for len(job.sizes) > 0 && job.sizes[0] <= f.FirstSeq {
		job.sizes = job.sizes[1:]
	}
	return err
}

// pullUntil reads anchors below the watermark until done.
func (b *base) pullUntil(job *baseJob, done func() bool) error {
	for b.cur == nil && !done() {
		a, err, ok := b.pull()
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		if a.wrong == nil && a.Ordinal >= b.watermark {
			b.cur = a
			return nil
		}
		job.anchors = append(job.anchors, a)
		if a.wrong == nil {
			b.state(job, a)
		}
	}
	return nil
}

// state takes the heads that an anchor lists.
func (b *base) state(job *baseJob, a *anchor) {
	for i := range a.Heads {
		h := &a.Heads[i]
		if !b.v.wants(h.Tenant) {
			continue
		}
		s := b.heads[h.Tenant]
		if s == nil {
			s = &headStatements{}
			b.heads[h.Tenant] = s
		}
		n := headStatement{*h, a.key, a.number, a.Time.UnixMicro()}
		text := ""
		switch {
		case h.Size > s.last.Size:
			s.list = append(s.list, n)
			s.last = n
		case h.Size < s.last.Size:
			text = fmt.Sprintf("the anchor says that the log has %d rows, anchor %d said %d", h.Size, s.last.number, s.last.Size)
		case h.Head != s.last.Head || h.Root != s.last.Root || h.Epoch != s.last.Epoch || h.Scheme != s.last.Scheme:
			text = fmt.Sprintf("the anchor's head of %d rows is another one than anchor %d has", h.Size, s.last.number)
		}
		if text != "" {
			job.faults = append(job.faults, Fault{Kind: FaultAnchor, Key: a.key, Ordinal: a.Ordinal, Tenant: h.Tenant, Seq: &h.Size, Text: text})
		}
	}
}

// join takes the next file, and the anchors before it.
func (b *base) join(job *baseJob) {
	b.settle(job.low)
	for _, a := range job.anchors {
		b.take(a)
	}
	for _, f := range job.faults {
		b.fault(f)
	}
	if job.file != nil {
		b.file(job)
	} else if b.cur != nil {
		b.segments(b.cur)
	}
}

// take takes an anchor that ends below the watermark.
func (b *base) take(a *anchor) {
	b.last = a.number
	if a.wrong != nil {
		b.torn = true // named by the joiner
	} else {
		b.segments(a)
	}
	if len(b.held) > 0 || a.wrong == nil && a.Ordinal == b.watermark-1 {
		b.held = append(b.held, a) // the joiner takes it once it knows where all logs stand
		return
	}
	if a.wrong != nil {
		b.anchor(a, false)
		return
	}
	b.checkpoints(a)
	b.changed(a)
	b.anchor(a, false)
	if a.Ordinal >= 0 && !b.torn && a.Totals != b.counts {
		b.anchorFault(a, FaultAnchor, fmt.Sprintf("totals are not those of segments 0 to %d", a.Ordinal))
	}
	b.rep.Anchored = a.Ordinal
	if a.verdict.State == sign.Good && a.stranger == nil {
		b.signed = maps.Clone(b.anchors.sizes.of)
		b.rep.Signed = &SignedAnchor{Number: a.number, Ordinal: a.Ordinal, Time: a.Time, SHA256: a.sum, By: a.verdict.By}
	}
}

// changed checks that an anchor lists no head that did not change.
func (b *base) changed(a *anchor) {
	if a.Full || !b.anchors.sizes.known {
		return
	}
	for i := range a.Heads {
		if h := &a.Heads[i]; b.v.wants(h.Tenant) && b.anchors.sizes.of[h.Tenant] == h.Size {
			b.headFault(a, h.Tenant, h.Size, "the anchor lists a head that did not change")
		}
	}
}

// checkpoints compares the checkpoints of an anchor with the heads that it
// lists, which are compared with the rows.
func (b *base) checkpoints(a *anchor) {
	if b.v.root.ArchiveID == "" {
		return
	}
	for _, c := range a.Checkpoints {
		n, err := sign.Parse([]byte(c.Note))
		if err == nil {
			err = b.checkpointSigned(a, n)
		}
		if err != nil {
			b.headFault(a, c.Tenant, 0, "checkpoint: "+err.Error())
			continue
		}
		h := a.head(c.Tenant)
		if h == nil || !b.v.wants(c.Tenant) {
			continue
		}
		log := chain.Log{ArchiveID: b.v.root.ArchiveID, Tenant: c.Tenant, Topic: b.line.Topic, TopicID: b.line.TopicID, Partition: b.line.Partition}
		if n.Text != chain.CheckpointText(chain.CheckpointOrigin(log), h.Size, h.Root) {
			b.headFault(a, c.Tenant, 0, "the checkpoint is not that of the log's tree")
		}
	}
}

// segments takes what an anchor says of segments below the watermark.
func (b *base) segments(a *anchor) {
	for i := range a.Segments {
		e := a.Segments[i]
		if e.Ordinal >= b.watermark {
			return
		}
		if b.seen < 0 {
			b.counts.FirstOffset = e.FirstOffset
			b.rep.FirstOffset = e.FirstOffset
		} else if e.FirstOffset != b.counts.NextOffset {
			b.anchorFault(a, FaultCoverage, fmt.Sprintf("segment %d begins at offset %d, those before it end at %d", e.Ordinal, e.FirstOffset, b.counts.NextOffset))
		}
		if span := e.NextOffset - e.FirstOffset; span != e.Rows-e.Made+e.Duplicates+e.Gaps || span < 0 {
			b.anchorFault(a, FaultCoverage, fmt.Sprintf("offsets %d to %d of segment %d are %d, but rows, duplicates and gaps account for %d",
				e.FirstOffset, e.NextOffset, e.Ordinal, span, e.Rows-e.Made+e.Duplicates+e.Gaps))
		}
		b.counts.Add(e.AnchorCounts)
		b.anchored += e.Rows
		b.entries = append(b.entries, e)
		b.lastEntry = &e
		b.seen = e.Ordinal
		if _, here := b.hashes[e.Ordinal]; here {
			b.hashes[e.Ordinal] = &e.SHA256
		}
	}
	b.seen = max(b.seen, min(a.Ordinal, b.watermark-1)) // void ones stand in no anchor
}

// settle compares what was found by offset with segments whose rows have all
// come.
func (b *base) settle(low int64) {
	n := 0
	for _, e := range b.entries {
		if e.NextOffset > low {
			break
		}
		n++
		if found := b.offsets.take(e.FirstOffset, e.NextOffset); found > e.Rows-e.Made {
			first := e.FirstOffset
			b.fault(Fault{Kind: FaultCoverage, Key: b.c.key, Ordinal: e.Ordinal, Offset: &first, Text: fmt.Sprintf(
				"data files have %s of the offsets of segment %d, which had %d", Count(found, "row"), e.Ordinal, e.Rows-e.Made)})
		}
	}
	b.entries = b.entries[n:]
}

// file takes a data file.
func (b *base) file(job *baseJob) {
	d := job.digest
	b.rep.DataFiles++
	b.rep.DataBytes += d.file.Bytes
	for _, f := range d.faults {
		b.fault(f)
	}
	for _, o := range d.offsets {
		for n := o[0]; n < o[1]; n++ {
			if n < 0 || !b.offsets.add(n) {
				f := b.fileFault(d, FaultCoverage, fmt.Sprintf("offset %d is that of two rows", n))
				f.RecordID, f.Offset = "", &n
				b.fault(f)
				b.torn = true
				break
			}
		}
	}
	b.rows += d.rows
	if d.meta == nil {
		b.torn = true
		b.lose(d, job)
		return
	}
	b.rep.Rows += d.rows
	addAll(b.rep.Kinds, d.kinds)
	addAll(b.rep.Rejects, d.rejects)
	b.rep.Resets += d.kinds[audit.KindChainReset]
	b.rep.Erasures.add(d.erased)
	b.rep.Gaps[archive.GapLost] += d.lost
	b.mixed(&digest{data: d.data, control: d.control})
	b.controls = append(b.controls, d.controls...)
	if d.deep {
		b.log(job)
	}
}

// fileFault returns a fault of a file, from its first row on.
func (b *base) fileFault(d *dataDigest, kind FaultKind, text string) Fault {
	seq := d.file.FirstSeq
	f := Fault{Kind: kind, Key: d.file.Key, Ordinal: -1, Tenant: d.file.Tenant, Seq: &seq, Text: text}
	if d.meta != nil && d.deep {
		f.RecordID, f.Offset = d.first.recordID, d.first.offset
	}
	return f
}

// lose notes that the rows of a file are not known.
func (b *base) lose(d *dataDigest, job *baseJob) {
	if !d.deep {
		return
	}
	st := b.logs[d.file.Tenant]
	if st == nil {
		st = &logState{deep: true}
		st.LogReport = LogReport{Tenant: d.file.Tenant, Scheme: chain.SchemeV1, FirstSeq: d.file.FirstSeq}
		if n := len(job.states); n > 0 {
			st.Scheme, st.Epoch = job.states[n-1].Scheme, job.states[n-1].Epoch
		}
		b.logs[d.file.Tenant] = st
		b.from[d.file.Tenant] = d.file.FirstSeq
	}
	st.Proved, st.breaks = false, -1
	st.Size, st.Head, st.tree = d.file.LastSeq+1, d.file.HeadOut, chain.Tree{}
}

// log joins a file to what is known of its log.
func (b *base) log(job *baseJob) {
	d, m := job.digest, job.digest.meta
	st := b.logs[m.Tenant]
	if st == nil {
		st = b.beginLog(d)
	}
	if text, kind := b.fits(st, d); text != "" {
		b.fault(b.fileFault(d, kind, text))
		st.Proved, st.breaks = false, -1
	}
	if d.broken || len(d.faults) > 0 {
		st.Proved = false
		if d.broken {
			st.breaks = -1
		}
	}
	b.compare(st, job)
	st.tree, st.Size, st.Head, st.Epoch, st.Scheme = d.tree, m.FirstSeq+m.Rows, d.head, m.Epoch, m.Scheme
	st.Rows += d.rows
	st.Rejected += d.kinds[audit.KindRejected]
	st.newest = d.newest
	b.repeats[m.Tenant] = append(b.repeats[m.Tenant], d.repeats...)
}

// fits says what is wrong between a log and its next file.
func (b *base) fits(st *logState, d *dataDigest) (string, FaultKind) {
	m := d.meta
	if st.breaks < 0 && st.tree.Size != st.Size {
		return "", "" // the file before it could not be read
	}
	epoch := st.Epoch
	if d.first.reset {
		epoch++
	}
	switch {
	case m.FirstSeq != st.Size:
		return fmt.Sprintf("the log goes on at seq %d where seq %d belongs", m.FirstSeq, st.Size), FaultLink
	case m.HeadIn != st.Head:
		return fmt.Sprintf("headIn is %s; the log's head before the file is %s", short(m.HeadIn), short(st.Head)), FaultLink
	case !slices.Equal(m.FrontierIn, st.tree.Frontier):
		return "frontierIn is not that of the log's tree before the file", FaultTree
	case m.Epoch != epoch:
		return fmt.Sprintf("the log goes on in epoch %d where epoch %d belongs", m.Epoch, epoch), FaultReset
	case st.Rows > 0 && m.Scheme != st.Scheme && !d.first.reset:
		return fmt.Sprintf("the log goes on under %s, it was begun under %s", m.Scheme, st.Scheme), FaultReset
	case st.Rows > 0 && d.first.archivedAt < st.newest:
		return "archived_at is before that of the row before it in its log", FaultTime
	}
	return "", ""
}

// beginLog makes the state of a log before its first file: empty, or where a cut
// left it.
func (b *base) beginLog(d *dataDigest) *logState {
	m := d.meta
	log := chain.Log{ArchiveID: m.ArchiveID, Tenant: m.Tenant, Topic: m.Topic, TopicID: m.TopicID, Partition: m.Partition}
	st := &logState{deep: true}
	st.LogReport = LogReport{Tenant: m.Tenant, Scheme: m.Scheme, FirstSeq: m.FirstSeq, Head: chain.Genesis(m.Scheme, log), Proved: true}
	if m.Scheme == chain.SchemeHMACv1 && !b.v.o.LogKeys.Has(log) {
		b.rep.keyed++
	}
	b.logs[m.Tenant] = st
	b.from[m.Tenant] = m.FirstSeq
	if m.FirstSeq == 0 {
		b.meet(st, b.expected.heads[m.Tenant], st.Head, Fault{Ordinal: -1, Tenant: m.Tenant})
		return st
	}
	st.Epoch = m.Epoch
	if d.first.reset {
		st.Epoch--
	}
	b.cutAt(st, m.FirstSeq, func(text string) {
		b.fault(b.fileFault(d, FaultMissing, text))
		st.Proved, st.breaks = false, -1
		st.Size, st.Head, st.tree = m.FirstSeq, m.HeadIn, chain.Tree{Size: m.FirstSeq, Frontier: slices.Clone(m.FrontierIn)}
	})
	return st
}

// cutAt puts a log where a cut left it.
func (b *base) cutAt(st *logState, size int64, fault func(string)) {
	if !b.v.governed() {
		fault("")
		return
	}
	c := b.v.governs.Tenant(st.Tenant).Cut(b.line, size)
	if c == nil {
		fault(fmt.Sprintf("the log begins at seq %d, and no archived retention-cut says that the rows before it were dropped", size))
		return
	}
	if !c.Anchored {
		b.rep.openCuts++
	}
	st.Size, st.Head, st.tree = size, c.Cut.Head, chain.Tree{Size: size, Frontier: slices.Clone(c.Cut.Frontier)}
	b.rep.Erasures.Cut += size
	b.meet(st, b.expected.heads[st.Tenant], st.Head, Fault{Ordinal: -1, Tenant: st.Tenant})
}

// compare compares what anchors, and independent places, say of the rows of a
// file. What they say of rows that a cut dropped cannot be compared.
func (b *base) compare(st *logState, job *baseJob) {
	d := job.digest
	states := job.states
	for len(states) > 0 && states[0].Size <= d.meta.FirstSeq {
		if s := &states[0]; s.Size == d.meta.FirstSeq && st.Size == s.Size && st.breaks == 0 {
			b.stated(st, s, st.Head, st.tree.Root(), d.meta.Epoch)
		}
		states = states[1:]
	}
	for i := range d.marks {
		m := &d.marks[i]
		if m.newest > b.late[st.Tenant] {
			b.late[st.Tenant] = m.newest
		}
		if len(states) > 0 && states[0].Size == m.tree.Size {
			b.stated(st, &states[0], m.head, m.tree.Root(), d.meta.Epoch)
			if b.late[st.Tenant] > states[0].time+anchorDelay.Microseconds() {
				b.fault(Fault{Kind: FaultTime, Key: states[0].key, Ordinal: -1, Tenant: st.Tenant, Text: "a row that the anchor covers was archived more than 5 minutes after it"})
			}
			b.late[st.Tenant] = 0
			states = states[1:]
		}
		tree, size := st.tree, st.Size
		st.tree, st.Size = m.tree, m.tree.Size
		b.meet(st, b.expected.heads[st.Tenant], m.head, Fault{Key: d.file.Key, Ordinal: -1, Tenant: st.Tenant})
		st.tree, st.Size = tree, size
	}
	b.late[st.Tenant] = max(b.late[st.Tenant], d.newest)
	if n := len(job.states); n > 0 && job.states[n-1].Size == d.meta.FirstSeq+d.meta.Rows {
		b.late[st.Tenant] = 0
	}
}

// stated compares a head that an anchor lists with the rows.
func (b *base) stated(st *logState, s *headStatement, head, root chain.Hash, epoch int32) {
	if s.Head == head && s.Root == root && s.Scheme == st.schemeOr(s.Scheme) && (s.Epoch == epoch || s.Size == b.from[st.Tenant]) {
		return
	}
	seq := max(s.Size-1, 0)
	b.fault(Fault{Kind: FaultAnchor, Key: s.key, Ordinal: -1, Tenant: st.Tenant, Seq: &seq, Text: fmt.Sprintf(
		"the anchor says that the log has head %s at %d rows; it has %s", short(s.Head), s.Size, short(head))})
	st.Proved = false
}

// schemeOr returns the scheme of a log, or another where it is not known yet.
func (st *logState) schemeOr(other string) string {
	if st.Rows == 0 {
		return other
	}
	return st.Scheme
}

// finish checks what only the whole can show, and returns from where the gate
// goes on.
func (b *base) finish(ctx context.Context) (*SavedLine, error) {
	b.settle(math.MaxInt64)
	if at, ok := b.offsets.least(); ok && !b.torn {
		b.fault(Fault{Kind: FaultCoverage, Key: b.c.key, Ordinal: -1, Offset: &at, Text: fmt.Sprintf("a data file has a row of offset %d, which lies in no segment that an anchor covers", at)})
	}
	b.checkWatermark()
	b.logsWithoutFiles()
	b.ends()
	b.total()
	if err := b.checkRepeats(ctx); err != nil {
		return nil, err
	}
	if err := b.checkBelow(ctx); err != nil {
		return nil, err
	}
	b.rep.Made, b.rep.Duplicates = b.counts.Made, b.counts.Duplicates
	b.rep.NextOffset, b.joiner.offsets = b.counts.NextOffset, b.watermark > 0
	b.handOver()
	return &SavedLine{Line: b.rep.Line, Anchor: b.last + 1, Ordinal: b.watermark - 1, Segment: b.segment, compacted: true}, nil
}

// checkWatermark checks that anchors cover all that was compacted.
func (b *base) checkWatermark() {
	if b.lastEntry != nil && b.lastEntry.Ordinal == b.watermark-1 {
		b.segment = b.lastEntry.SHA256
	}
	if b.seen < b.watermark-1 && !b.torn {
		b.fault(Fault{Kind: FaultCatalog, Key: b.c.key, Ordinal: b.seen, Text: fmt.Sprintf("the watermark is %d, and anchors cover segments up to %d only: compaction took what no anchor covers, or anchors are missing", b.watermark, b.seen)})
		b.torn = true
	}
}

// logsWithoutFiles makes the states of logs all of whose rows were cut.
func (b *base) logsWithoutFiles() {
	if !b.v.governed() {
		return
	}
	sizes := map[string]int64{}
	for i := range b.c.newest.Cuts {
		c := &b.c.newest.Cuts[i]
		sizes[c.Tenant] = max(sizes[c.Tenant], c.Size)
	}
	for _, tenant := range slices.Sorted(maps.Keys(sizes)) {
		size := sizes[tenant]
		if b.logs[tenant] != nil || b.torn || !b.v.wants(tenant) {
			continue
		}
		s := b.heads[tenant]
		if s == nil {
			s = &headStatements{last: headStatement{AnchorHead: archive.AnchorHead{Scheme: chain.SchemeV1}}}
			if h := b.headAhead(tenant); h != nil {
				s.last.Scheme, s.last.Epoch = h.Scheme, h.Epoch
			}
		}
		st := &logState{deep: true}
		st.LogReport = LogReport{Tenant: tenant, Scheme: s.last.Scheme, Epoch: s.last.Epoch, FirstSeq: size, Proved: true}
		b.from[tenant] = size
		b.cutAt(st, size, func(text string) {
			b.fault(Fault{Kind: FaultMissing, Key: b.c.key, Ordinal: -1, Tenant: tenant, Text: text})
			st.Proved, st.breaks = false, -1
		})
		b.logs[tenant] = st
		if s.last.Size == size && st.breaks == 0 {
			b.stated(st, &s.last, st.Head, st.tree.Root(), st.Epoch)
		}
	}
}

// headAhead returns what the first anchor beyond the watermark says of a log.
func (b *base) headAhead(tenant string) *archive.AnchorHead {
	if b.cur == nil {
		return nil
	}
	return b.cur.head(tenant)
}

// ends names rows that anchors cover and no file has.
func (b *base) ends() {
	for _, tenant := range slices.Sorted(maps.Keys(b.heads)) {
		s, st := b.heads[tenant], b.logs[tenant]
		size := int64(0)
		if st != nil {
			size = st.Size
		}
		if s.last.Size <= size || b.c.lost {
			continue
		}
		b.fault(Fault{Kind: FaultMissing, Key: b.c.key, Ordinal: -1, Tenant: tenant, Seq: &size, Text: fmt.Sprintf(
			"data files end at seq %d of the log; anchor %d, which lies below the watermark, says that it has %s", size, s.last.number, Count(s.last.Size, "row"))})
		b.torn = true
	}
}

// total checks that no rows are missing but those that cuts dropped.
func (b *base) total() {
	if b.torn || !b.v.governed() || b.v.o.Tenant != "" {
		return
	}
	cut := int64(0)
	for _, n := range b.from {
		cut += n
	}
	if missing := b.anchored - b.rows; missing != cut {
		b.fault(Fault{Kind: FaultMissing, Key: b.c.key, Ordinal: -1, Text: fmt.Sprintf(
			"anchors tell of %s below the watermark, data files have %d, and cuts dropped %d", Count(b.anchored, "row"), b.rows, cut)})
	}
}

// checkRepeats holds rows that say which row they repeat against that one.
func (b *base) checkRepeats(ctx context.Context) error {
	for _, all := range b.repeats {
		slices.SortFunc(all, func(x, y repeat) int { return cmp.Compare(x.of, y.of) })
	}
	for _, f := range b.c.files {
		all := b.repeats[f.Tenant]
		from, _ := slices.BinarySearchFunc(all, f.FirstSeq, func(r repeat, seq int64) int { return cmp.Compare(r.of, seq) })
		wanted := map[int64][]repeat{}
		for _, r := range all[from:] {
			if r.of > f.LastSeq {
				break
			}
			wanted[r.of] = append(wanted[r.of], r)
		}
		if len(wanted) == 0 {
			continue
		}
		if err := b.repeatsIn(ctx, f, wanted); err != nil {
			return err
		}
	}
	return nil
}

func (b *base) repeatsIn(ctx context.Context, f *archive.CatalogFile, wanted map[int64][]repeat) error {
	body, wrong, err := b.v.get(ctx, archive.Object{Key: f.Key, Size: f.Bytes})
	if err != nil || wrong != nil || sha256.Sum256(body) != f.SHA256 {
		return err // a fault where it was read first
	}
	// What cannot be read is a fault already.
	_ = safely(func() error {
		file, err := parquet.Open(body)
		if err != nil {
			return err
		}
		for row, err := range file.Select(append([]string{"seq", "redaction"}, audit.CoordinateColumns...)...) {
			if err != nil {
				return err
			}
			for _, r := range wanted[row.Seq.N] {
				b.checkRepeat(f, r, row)
			}
		}
		return nil
	})
	return nil
}

func (b *base) checkRepeat(f *archive.CatalogFile, r repeat, row *chain.Row) {
	if s, err := chain.ParseSentinel(row.Redaction.S); err == nil && s.Hard {
		return
	}
	if at, ok := row.Coordinates(); !ok || at != r.coordinates {
		b.fault(Fault{Kind: FaultColumn, Key: f.Key, Ordinal: -1, Tenant: f.Tenant, Seq: &r.seq, Text: fmt.Sprintf("repeat_of says that the row repeats seq %d, which has other coordinates", r.of)})
	}
}

// checkBelow hashes the segments that are still there, and names those that
// nothing dooms. A receipt that names rows of one says that they are gone.
func (b *base) checkBelow(ctx context.Context) error {
	for _, s := range b.below {
		doomed := b.c.dooms(s.Key)
		if !doomed {
			b.rep.strays.add(s.Key)
		}
		stated := b.hashes[s.at.Ordinal]
		if stated == nil {
			b.v.progress(0)
			continue // void, or its anchor cannot be read
		}
		o, err := b.v.fetch(ctx, s.Object, s.at)
		if err != nil {
			return err
		}
		b.v.progress(0)
		b.lookBelow(s.Key, o, *stated, doomed)
	}
	return nil
}

// lookBelow judges one of them.
func (b *base) lookBelow(key string, o *object, stated chain.Hash, doomed bool) {
	switch {
	case o.wrong != nil && o.wrong.kind == FaultMissing: // since it was listed
	case o.sum == stated && o.wrong == nil:
		b.stillThere(o)
	case !doomed: // a stray, whatever it is
	case o.sum != stated && b.misput(o):
		b.rep.strays.add(key)
	case o.sum != stated && o.body != nil:
		b.catalogFault(key, FaultHash, fmt.Sprintf("its SHA-256 is %s; its anchor states %s", short(o.sum), short(stated)))
	default:
		b.catalogFault(key, o.wrong.kind, o.wrong.text)
	}
}

// misput reports whether a segment that another one has the place of is right in
// itself: a writer that slept put it there, when the place was free again.
func (b *base) misput(o *object) bool {
	if o.wrong != nil || o.body == nil {
		return false
	}
	d := b.v.digest(o)
	return !d.broken && !slices.ContainsFunc(d.faults, func(f Fault) bool { return f.Kind != FaultErasure })
}

// stillThere names rows of a segment that a receipt calls erased: in a segment
// all rows are live.
func (b *base) stillThere(o *object) {
	lingers := false
	for i := range o.meta.Logs {
		l := &o.meta.Logs[i]
		if l.Rows == 0 {
			continue
		}
		for _, n := range b.v.governs.Tenant(l.Tenant).Named(b.line, l.FirstSeq, l.FirstSeq+l.Rows-1) {
			if !n.Anchored {
				continue
			}
			if b.c.lingers(o.key, &n) {
				lingers = true
				continue
			}
			if b.v.governs.Kept(n.Order, o.key) {
				b.rep.locked.addOnce(o.key)
				continue
			}
			seq := max(n.First, l.FirstSeq)
			b.fault(Fault{Kind: FaultErasure, Key: o.key, Ordinal: o.ordinal, Tenant: l.Tenant, Seq: &seq, Text: fmt.Sprintf("the receipt of redaction %s says that the row was erased, and the segment that holds it is still there", n.Order)})
			break
		}
	}
	if lingers {
		b.rep.lingering.add(o.key)
	}
}

// handOver gives the joiner what it needs of the anchors that were read.
func (b *base) handOver() {
	for tenant, st := range b.logs {
		st.anchored, st.Signed = b.anchors.sizes.of[tenant], b.signed[tenant]
		if st.Size == st.anchored {
			continue
		}
		b.anchors.changed[tenant] = true
		if b.late[tenant] > 0 {
			b.anchors.newest = max(b.anchors.newest, b.late[tenant])
		}
	}
	for tenant, size := range b.anchors.sizes.of {
		if size > b.signed[tenant] {
			b.anchors.unsigned[tenant] = true
		}
	}
	if b.torn {
		b.uncounted = true
	}
	for _, a := range b.held {
		b.anchor(a, false)
	}
}

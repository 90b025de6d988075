package proof

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// A joiner puts the steps of one line together: what each segment says of its
// logs must continue what the segments before it gave.
//
// Behind a segment that is missing or could not be read, logs begin again where
// the next segment says that they stand: its cause is named, and what follows
// from it is not named again.
type joiner struct {
	v      *verifier
	l      *surveyLine
	rep    *LineReport
	faults faults
	logs   map[string]*logState
	faulty map[string]bool // tenants of faults

	ordinal int64 // of the newest segment, -1 before the first
	breaks  int   // stretches that are missing or could not be read
	cause   int   // index in faults of what is wrong with the newest stretch, -1 if it was dropped
	offsets bool  // nextOffset is known
	counts  archive.AnchorCounts

	data    bool // the line has rows that a data topic brings
	control *Fault

	voidedLogs map[string]bool // of the void segments just before

	anchors anchorTrail

	watermark    int64          // the first ordinal that was not compacted
	unknown      bool           // the newest version of the catalog cannot be read, and with it what lies below
	uncounted    bool           // not all that lies below it could be read, so that sums say nothing
	controls     []*control.Row // of the line
	covered      int            // those of controls that an anchor covers
	controlSince int64          // time of the first anchor by a good key that lists control keys, microseconds; 0 if none does

	expected *expectations
	met      *expectedAnchor // the newest one that is here as a place has it
	sum      chain.Hash      // of the newest segment
	from     *SavedLine
}

// A logState is where a log stands.
type logState struct {
	LogReport
	tree   chain.Tree
	newest int64 // archived_at of the newest row, microseconds
	breaks int   // of the line, when the log was last known to follow
	deep   bool

	anchored int64    // size at the newest anchor
	saved    SavedLog // as it was there
}

// A lineResult is what was found of a line.
type lineResult struct {
	rep      *LineReport
	faults   faults
	controls []*control.Row
}

// line verifies one line. A chain reset inside it declares segments before it
// void; they are known only then, and the line is read again without them.
func (v *verifier) line(ctx context.Context, l *surveyLine) (*lineResult, error) {
	voided := map[int64]chain.Hash{}
	for {
		res, more, err := v.lineOnce(ctx, l, voided)
		if err != nil || len(more) == 0 {
			return res, err
		}
		for _, s := range more {
			voided[s.Ordinal] = s.SHA256
		}
	}
}

func (v *verifier) lineOnce(ctx context.Context, l *surveyLine, voided map[int64]chain.Hash) (*lineResult, []archive.Voided, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	steps := make(chan *step, 16)
	var gateErr error
	from := v.savedOf(l)
	j := newJoiner(v, l, from)
	if l.catalogs > 0 {
		var err error
		if from, err = j.base(ctx); err != nil {
			return nil, nil, err
		}
	}
	g := &gate{v: v, l: l, voided: voided, out: steps, wg: &wg, window: newWindow(v.lineBytes, 3, v.lineObjects), from: from, below: true}
	wg.Go(func() {
		defer close(steps)
		gateErr = g.run(ctx)
	})
	for st := range steps {
		if len(st.reset) > 0 {
			return nil, st.reset, nil
		}
		if err := j.step(st); err != nil {
			return nil, nil, err
		}
	}
	if gateErr != nil {
		return nil, nil, gateErr
	}
	return j.finish(), nil, nil
}

func newJoiner(v *verifier, l *surveyLine, from *SavedLine) *joiner {
	j := &joiner{v: v, l: l, ordinal: -1, cause: -1, logs: map[string]*logState{}, faulty: map[string]bool{}, faults: faults{max: v.maxFaults}}
	j.rep = &LineReport{Line: Line{Partition: l.partition}, Totals: newTotals(), Anchored: -1, Logs: []LogReport{}}
	j.rep.Topic, j.rep.TopicID = unescape(l.topic), unescape(l.topicID)
	j.anchors.changed, j.anchors.unsigned = map[string]bool{}, map[string]bool{}
	j.expected = v.expected[l.lineKey].unmet() // a line can be read more than once
	j.rep.strays.max, j.rep.lingering.max, j.rep.locked.max = v.maxFaults, v.maxFaults, v.maxFaults
	if from != nil {
		j.goOn(from)
	}
	if l.lost != nil {
		j.fault(*l.lost)
	}
	return j
}

// unescape returns a name from its escaped form, or that form where the name
// was too long for a key.
func unescape(escaped string) string {
	if n, ok := chain.Unescape(escaped); ok {
		return n
	}
	return escaped
}

// step takes the next step of the line.
func (j *joiner) step(st *step) error {
	if st.o != nil {
		j.missing(st)
	}
	for _, a := range st.before {
		j.anchor(a, false)
	}
	if st.o != nil {
		if err := j.object(st); err != nil {
			return err
		}
	}
	for _, a := range st.after {
		j.anchor(a, st.o == nil)
	}
	return nil
}

// missing names segments that must be there and are not.
func (j *joiner) missing(st *step) {
	from, to := st.first, st.o.ordinal
	if from == to || from == 0 && j.unknown {
		return
	}
	text := fmt.Sprintf("segment %d is missing", from)
	if to-from > 1 {
		text = fmt.Sprintf("segments %d to %d are missing", from, to-1)
	}
	j.brk(Fault{Kind: FaultMissing, Key: fmt.Sprintf("%s%020d.parquet", j.l.prefix("log"), from), Ordinal: from, Text: text})
}

// brk notes that the rows of a stretch are not known, and why.
func (j *joiner) brk(fs ...Fault) {
	j.breaks++
	j.offsets = false
	j.cause = -1
	for _, f := range fs {
		j.fault(f)
		j.cause = len(j.faults.list) - 1
	}
}

func (j *joiner) fault(f Fault) {
	line := j.rep.Line
	f.Line = &line
	j.faults.add(f)
	j.faulty[f.Tenant] = true
	for _, t := range f.Touches {
		j.faulty[t.Tenant] = true
	}
}

// object takes the segment of a step.
func (j *joiner) object(st *step) error {
	j.rep.Bytes += st.o.bytes
	j.ordinal, j.sum = st.o.ordinal, st.o.sum
	if st.voided {
		j.void(st)
		return nil
	}
	j.rep.Segments++
	j.compareEntry(st)
	if st.shallow {
		for _, f := range st.faults {
			j.fault(f)
		}
		j.pass(st.o.meta, st.o.key)
		return nil
	}
	if st.digest == nil {
		j.brk(st.faults...)
		return nil
	}
	d := <-st.digest
	if d.err != nil {
		return d.err
	}
	for _, f := range st.faults {
		j.fault(f)
	}
	if d.value.broken {
		j.brk(d.value.faults...)
		return nil
	}
	for _, f := range d.value.faults {
		j.fault(f)
	}
	j.segment(d.value, st.o.key)
	return nil
}

// void takes a segment that a chain reset declared void: it counts for nothing,
// but the reset must begin a new epoch in each of its logs.
func (j *joiner) void(st *step) {
	j.rep.Voided++
	for _, f := range st.faults {
		j.fault(f)
	}
	if j.voidedLogs == nil {
		j.voidedLogs = map[string]bool{}
	}
	if m := st.o.meta; m != nil {
		for _, l := range m.Logs {
			if audit.ValidTenant(l.Tenant) == nil || audit.IsReservedTenant(l.Tenant) { // of any other there can be no row
				j.voidedLogs[l.Tenant] = true
			}
		}
	}
}

// segment takes a segment whose rows were read.
func (j *joiner) segment(d *digest, key string) {
	m := d.meta
	j.tally(m, key)
	j.rep.Resets += d.resets
	addAll(j.rep.Kinds, d.kinds)
	addAll(j.rep.Rejects, d.rejects)
	j.anchors.newest = max(j.anchors.newest, d.newest)
	j.mixed(d)
	j.govern(d.controls, key)
	for i := range d.logs {
		if l := &d.logs[i]; l.deep {
			j.log(m, l, key)
		}
	}
	j.duplicates(m, key)
	j.resets(d, key)
}

// tally counts what a segment says of its offsets and rows.
func (j *joiner) tally(m *archive.Segment, key string) {
	j.rep.Topic, j.rep.TopicID = m.Topic, m.TopicID
	j.follow(m, key)
	j.rep.Rows += m.Rows
	j.rep.Made += m.Made
	j.rep.Duplicates += int64(len(m.Duplicates))
	for _, g := range m.Gaps {
		j.rep.Gaps[g.Cause] += g.To - g.From
	}
}

// follow checks that the offsets go on where the segment before ended.
func (j *joiner) follow(m *archive.Segment, key string) {
	last := j.rep.NextOffset
	switch {
	case j.watermark == 0 && j.rep.Segments+j.rep.Voided == 1 || j.counts == archive.AnchorCounts{}:
		j.rep.FirstOffset, j.counts.FirstOffset = m.FirstOffset, m.FirstOffset
	case j.offsets && m.FirstOffset != last, m.FirstOffset < last:
		j.fault(Fault{
			Kind: FaultCoverage, Key: key, Ordinal: m.Ordinal, Offset: &m.FirstOffset,
			Text: fmt.Sprintf("the segment begins at offset %d, those before it end at %d", m.FirstOffset, last),
		})
	}
	j.offsets = true
	j.rep.NextOffset = m.NextOffset
	j.counts.Add(archive.CountsOf(m))
}

// mixed checks that control rows stand in a control topic's line only.
func (j *joiner) mixed(d *digest) {
	j.data = j.data || d.data
	if j.control == nil {
		j.control = d.control
	}
}

// duplicates checks those whose log has no rows in the segment.
func (j *joiner) duplicates(m *archive.Segment, key string) {
	here := make(map[string]bool, len(m.Logs))
	for i := range m.Logs {
		here[m.Logs[i].Tenant] = true
	}
	for i := range m.Duplicates {
		d := &m.Duplicates[i]
		if !j.v.wants(d.Tenant) {
			continue
		}
		st := j.logs[d.Tenant]
		if st != nil {
			st.Duplicates++
		}
		if here[d.Tenant] || st != nil && d.Seq < st.Size || j.breaks > 0 && (st == nil || st.breaks < j.breaks) {
			continue
		}
		j.fault(Fault{
			Kind: FaultDuplicate, Key: key, Ordinal: m.Ordinal, Tenant: d.Tenant, Seq: &d.Seq, Offset: &d.Offset,
			Text: fmt.Sprintf("the duplicate repeats seq %d, which the log does not have", d.Seq),
		})
	}
}

// resets checks that a chain reset reached each log of the void segments.
func (j *joiner) resets(d *digest, key string) {
	if v := d.meta.Voided; j.from != nil && len(v) > 0 && v[0].Ordinal <= j.from.Ordinal {
		j.fault(Fault{
			Kind: FaultReset, Key: key, Ordinal: d.meta.Ordinal,
			Text: fmt.Sprintf("a chain reset declares segment %d void, which anchor %d covers", v[0].Ordinal, j.from.Anchor),
		})
	}
	for i := range d.logs {
		if d.logs[i].first.reset {
			delete(j.voidedLogs, d.logs[i].stated.Tenant)
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(j.voidedLogs)) {
		if j.v.wants(tenant) {
			j.fault(Fault{
				Kind: FaultReset, Key: key, Ordinal: d.meta.Ordinal, Tenant: tenant,
				Text: "segments with rows of the log were declared void, and no chain-reset row says so",
			})
		}
	}
	j.voidedLogs = nil
}

// log joins what a segment says of one log to what is known of it.
func (j *joiner) log(m *archive.Segment, l *logDigest, key string) {
	st := j.logs[l.stated.Tenant]
	known := st != nil && st.breaks == j.breaks
	if st == nil {
		st = j.begin(l, m)
		known = j.breaks == 0
	}
	f := Fault{Key: key, Ordinal: m.Ordinal, Tenant: l.stated.Tenant, Seq: &l.stated.FirstSeq, RecordID: l.first.recordID, Offset: l.first.offset}
	if follows := j.continues(st, l, known, f); !follows {
		j.adopt(st, l)
	}
	j.grow(st, l, f)
	j.anchors.changed[l.stated.Tenant] = true
}

// begin makes the state of a log that was not seen before: it is empty.
func (j *joiner) begin(l *logDigest, m *archive.Segment) *logState {
	s := l.stated
	log := chain.Log{ArchiveID: m.ArchiveID, Tenant: s.Tenant, Topic: m.Topic, TopicID: m.TopicID, Partition: m.Partition}
	st := &logState{deep: l.deep}
	st.LogReport = LogReport{Tenant: s.Tenant, Scheme: s.Scheme, FirstSeq: s.FirstSeq, Head: chain.Genesis(s.Scheme, log), Proved: true}
	if s.Scheme == chain.SchemeHMACv1 && !j.v.o.LogKeys.Has(log) {
		j.rep.keyed++
	}
	j.logs[s.Tenant] = st
	return st
}

// continues reports whether a segment's rows follow the state of their log. It
// is a fault where they do not, unless a stretch before them is not known.
func (j *joiner) continues(st *logState, l *logDigest, known bool, f Fault) bool {
	s, first := l.stated, &l.first
	epoch := st.Epoch
	if first.reset {
		epoch++
	}
	switch {
	case s.FirstSeq < st.Size && st.Rows > 0:
		f.Kind, f.Text = FaultLink, fmt.Sprintf("the log goes on at seq %d, but has %d rows already", s.FirstSeq, st.Size)
	case s.FirstSeq != st.Size:
		f.Kind, f.Text = FaultLink, fmt.Sprintf("the log goes on at seq %d where seq %d belongs", s.FirstSeq, st.Size)
	case s.HeadIn != st.Head:
		f.Kind, f.Text = FaultLink, fmt.Sprintf("headIn is %s; the log's head before the segment is %s", short(s.HeadIn), short(st.Head))
	case first.epoch != epoch:
		f.Kind, f.Text = FaultReset, fmt.Sprintf("the log goes on in epoch %d where epoch %d belongs", first.epoch, epoch)
	case s.Scheme != st.Scheme && !first.reset:
		f.Kind, f.Text = FaultReset, fmt.Sprintf("the log goes on under %s, it was begun under %s", s.Scheme, st.Scheme)
	case first.archivedAt < st.newest:
		f.Kind, f.Text = FaultTime, "archived_at is before that of the row before it in its log"
		j.fault(f)
		return true
	default:
		return true
	}
	if known || s.FirstSeq < st.Size || s.FirstSeq == 0 {
		j.fault(f)
	}
	return false
}

// adopt takes a log's state from what a segment says, for it cannot be
// recomputed. The rows that were skipped are put to what is wrong before them.
func (j *joiner) adopt(st *logState, l *logDigest) {
	s := l.stated
	if j.cause >= 0 && s.FirstSeq > st.Size {
		touch(&j.faults.list[j.cause], Touched{s.Tenant, st.Size, s.FirstSeq - st.Size})
	}
	st.Proved = false
	st.tree = chain.Tree{}
}

// touch adds rows to what a fault touches, unless it knows of that log.
func touch(f *Fault, t Touched) {
	if !slices.ContainsFunc(f.Touches, func(o Touched) bool { return o.Tenant == t.Tenant }) {
		f.Touches = append(f.Touches, t)
	}
}

// grow appends the rows to the log's tree and compares it with what the
// segment says. After that the state is what the segment says.
func (j *joiner) grow(st *logState, l *logDigest, f Fault) {
	s := l.stated
	if st.tree.Size == s.FirstSeq && !l.torn {
		want := j.expected.heads[s.Tenant]
		for _, h := range l.hashes {
			if st.tree.Append(h); len(want) > 0 {
				j.meet(st, want, h, f)
			}
		}
		if st.tree.Size != s.Size || !slices.Equal(st.tree.Frontier, s.Frontier) {
			f.Kind, f.Text = FaultTree, "frontier is not that of the log's tree after these rows"
			j.fault(f)
			st.Proved = false
		}
	} else {
		st.Proved = false
	}
	if chain.CheckFrontier(s.Size, s.Frontier) == nil {
		st.tree = chain.Tree{Size: s.Size, Frontier: slices.Clone(s.Frontier)}
	}
	st.Size, st.Head, st.Epoch, st.Scheme = s.Size, s.HeadOut, s.Epoch, s.Scheme
	st.Rows += l.rows
	st.Rejected += l.kinds["rejected"]
	st.newest, st.breaks = l.newest, j.breaks
}

// finish makes the report of the line.
func (j *joiner) finish() *lineResult {
	if j.data && j.control != nil {
		j.fault(*j.control)
	}
	j.unmet()
	j.rep.Proved = j.faults.total == 0 && j.breaks == 0
	for _, tenant := range slices.Sorted(maps.Keys(j.logs)) {
		st := j.logs[tenant]
		st.Root = st.tree.Root()
		st.NotAnchored = st.Size - st.anchored
		st.Proved = st.Proved && st.breaks == j.breaks && !j.faulty[tenant]
		j.rep.Logs = append(j.rep.Logs, st.LogReport)
	}
	j.rep.logs, j.rep.catalogs = j.logs, j.l.catalogs
	for i := range j.faults.list {
		first(&j.faults.list[i])
	}
	sortFaults(j.faults.list)
	return &lineResult{j.rep, j.faults, j.controls}
}

// first makes the first row that a fault touches the one that it names.
func first(f *Fault) {
	if f.Seq == nil && len(f.Touches) > 0 {
		f.Tenant, f.Seq = f.Touches[0].Tenant, &f.Touches[0].Seq
	}
}

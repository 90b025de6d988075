package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/redact"
)

// ErrForged: an archived segment says something that Kafka does not. Whoever
// can write to the bucket can put it there, and nothing may be built on it.
var ErrForged = errors.New("not what Kafka says")

// How far ahead of this clock a row of another writer may have been stamped: no
// later row of the line may be before it. clockSkew is what a verifier allows
// between a row and its anchor; what is further ahead is waited for, up to
// clockError, which is what S3 allows a client.
const (
	clockSkew  = 5 * time.Minute
	clockError = 15 * time.Minute
)

// A comparison holds a segment that this process did not write against what
// Kafka says of the same offsets:
//
//	a record                 must be a row that says the same, a repeat of such a row, or a rejected row for a reason
//	no record                must lie in a gap, unless the topic is compacted and has lost it since
//	no longer in Kafka       must be what a lost gap says; else it cannot be compared
//
// Every column and slot must be equal, but where the writer is another one than
// this (in version, policy or settings) and the one who vouched last: then
// offset, timestamp, tenant, kind and coordinates. What a segment says of its
// writer is nobody's word but its own. It changes nothing.
type comparison struct {
	o       *archive.SegmentObject
	state   *archive.State // in front of the segment
	window  *window        // in front of the segment
	reader  *reader
	unkeyed *reader        // without control keys
	writer  archive.Writer // ours
	trusted archive.Writer // who vouched last, before this process began
	start   int64          // Kafka's log start
	now     time.Time
	// trustTail is [Settings.TrustTail].
	trustTail bool
	// compacted reports whether the topic has cleanup.policy=compact.
	compacted func() (bool, error)
	// rowAt is [rowFinder.find] below the segment, and recordAt [rowFinder.record].
	rowAt func(tenant string, seq, hint int64) (archivedRow, error)
	// rowNow is [rowFinder.now].
	rowNow   func(tenant string, seq int64) (archivedRow, error)
	recordAt func(tenant string, seq, hint int64) (*audit.Record, error)
	// contentOf is [shared.contentOf].
	contentOf func(*audit.Record) (audit.Fingerprint, bool)

	stretches []stretch
	next      int // of stretches, to be looked at
	made      map[audit.Fingerprint]entry
	epoch     int32 // of the newest record
	missed    bool  // a record is gone since, by compaction or retention
}

// A stretch is what a segment says of some offsets: a row, a duplicate or a
// gap.
type stretch struct {
	from, to  int64
	row       *audit.Record
	duplicate *archive.Duplicate
	gap       string
}

// forged returns the error for an offset.
func (c *comparison) forged(offset int64, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if c.o.Writer != c.writer {
		text += fmt.Sprintf(" (it says that version %q wrote it, under other settings or another version than this, %q; if that was yours, run that one once, and let it stop cleanly)", c.o.Writer.Version, c.writer.Version)
	}
	return fmt.Errorf("segment %d: offset %d: %w: %s", c.o.Ordinal, offset, ErrForged, text)
}

// begin lays the segment's rows, duplicates and gaps side by side, and requires
// that they account for each offset once, and that ingest had a reason for
// every row that it made.
func (c *comparison) begin() error {
	if err := c.stamps(); err != nil {
		return err
	}
	if len(c.o.Voided) > 0 {
		return c.forged(c.o.FirstOffset, "it voids segments, and this version knows no order to do so")
	}
	c.made, c.epoch = map[audit.Fingerprint]entry{}, -1
	if err := c.schemes(); err != nil {
		return err
	}
	if err := c.layOut(); err != nil {
		return err
	}
	if n := len(c.stretches); n > 0 && c.stretches[n-1].to != c.o.NextOffset || n == 0 && c.o.FirstOffset != c.o.NextOffset {
		return c.forged(c.o.NextOffset-1, "the segment does not say what became of it")
	}
	return nil
}

// schemes requires that logs begin keyed where that is set here: whoever has no
// key would begin them unkeyed. One that begins keyed all the same was checked
// with its key.
func (c *comparison) schemes() error {
	if !c.exact() {
		return nil
	}
	for i := range c.o.Logs {
		l := &c.o.Logs[i]
		if want := c.state.Head(l.Tenant).Scheme; l.Scheme != want && want == chain.SchemeHMACv1 {
			return c.forged(c.o.FirstOffset, "it begins a log as %s, and logs of this topic begin as %s (chain.keyed-topics)", l.Scheme, want)
		}
	}
	return nil
}

// stamps requires that the times at which rows were stamped do not go back, and
// are not to come. An error that is not ErrForged passes with time.
func (c *comparison) stamps() error {
	from := c.state.ArchivedAt
	for i := range c.o.Rows {
		at := c.o.Rows[i].ArchivedAt.N
		if at < from || at > c.now.Add(clockError).UnixMicro() {
			return c.forged(c.o.FirstOffset, "a row of it was stamped at %s, which is before the one in front of it, or still to come", time.UnixMicro(at).UTC().Format(time.RFC3339))
		}
		from = at
	}
	if ahead := time.UnixMicro(from).Sub(c.now); ahead > clockSkew {
		return fmt.Errorf("segment %d was stamped %v ahead of this clock: one of the two is wrong, and it is taken when the difference is %v", c.o.Ordinal, ahead.Round(time.Second), clockSkew)
	}
	return nil
}

// layOut merges the three lists by offset.
func (c *comparison) layOut() error {
	rows, duplicates, gaps := c.o.Rows, c.o.Duplicates, c.o.Gaps
	var lost *archive.Gap // the gap row of which comes next
	for at := c.o.FirstOffset; len(rows)+len(duplicates)+len(gaps) > 0 || lost != nil; {
		s := stretch{from: at, to: at + 1}
		switch {
		case lost != nil:
			if len(rows) == 0 || !c.isGapRow(&rows[0].Record, *lost) {
				return c.forged(lost.From, "a lost gap has no row that says so")
			}
			rows, lost = rows[1:], nil
			continue
		case len(gaps) > 0 && gaps[0].From == at && gaps[0].To > at:
			s.to, s.gap = gaps[0].To, gaps[0].Cause
			if s.gap == archive.GapLost {
				lost = &gaps[0]
			}
			gaps = gaps[1:]
		case len(duplicates) > 0 && duplicates[0].Offset == at:
			s.duplicate, duplicates = &duplicates[0], duplicates[1:]
		case len(rows) > 0 && rows[0].KafkaOffset == audit.I64(at):
			if !rows[0].RowSalt.Valid {
				return c.forged(at, "the row is erased, which no row of a segment is")
			}
			s.row, rows = &rows[0].Record, rows[1:]
		default:
			return c.forged(at, "the segment does not say what became of it")
		}
		c.stretches = append(c.stretches, s)
		at = s.to
	}
	return nil
}

// isGapRow reports whether a row is the one that ingest makes for a gap.
func (c *comparison) isGapRow(r *audit.Record, g archive.Gap) bool {
	var want audit.Record
	audit.Gap(&want, g.From, g.To, g.Cause)
	c.place(&want, r)
	return audit.FirstDifference(&want, r) == ""
}

// place fills in what stamping does: the line's own, and what the chain of the
// segment, which was checked, says of the row got.
func (c *comparison) place(want, got *audit.Record) {
	want.Topic, want.Partition, want.TopicID = audit.Str(c.o.Topic), audit.I64(int64(c.o.Partition)), audit.Str(c.o.TopicID)
	want.Seq, want.ArchivedAt = got.Seq, got.ArchivedAt
	want.Epoch = audit.I64(int64(c.state.Head(got.TenantID.S).Epoch))
}

// until passes over the offsets below at, from which Kafka gave no record, and
// requires that the segment has none either.
func (c *comparison) until(at int64) error {
	for c.next < len(c.stretches) && c.stretches[c.next].to <= at {
		s := &c.stretches[c.next]
		switch {
		case s.gap == archive.GapLost && s.to > c.start:
			return c.forged(max(s.from, c.start), "it is called lost, and Kafka, which begins at %d, still has it", c.start)
		case s.gap == "" && s.from >= c.start:
			compacted, err := c.compacted()
			if err != nil {
				return fmt.Errorf("segment %d: offset %d cannot be compared: %w", c.o.Ordinal, s.from, err)
			}
			if !compacted {
				return c.forged(s.from, "Kafka has no record there")
			}
			c.missed = true
		}
		if s.row != nil {
			c.remember(s.row) // Kafka may still have a repeat of it
		}
		c.next++
	}
	return nil
}

// record compares one record of Kafka with what the segment says of its offset.
func (c *comparison) record(r *kgo.Record) error {
	if err := c.until(r.Offset); err != nil {
		return err
	}
	if c.next == len(c.stretches) {
		return nil // above the segment
	}
	c.epoch = r.LeaderEpoch
	s := &c.stretches[c.next]
	if s.gap != "" {
		return c.forged(r.Offset, "it lies in a gap (%s), and Kafka has a record there", s.gap)
	}
	c.next++
	var rec audit.Record
	m, reject := c.decode(&rec, r, s)
	if s.duplicate != nil {
		return c.duplicate(s, &rec, reject, m)
	}
	return c.row(s.row, &rec, reject, m)
}

// exact reports whether the writer is one of whose columns and content nothing
// may differ.
func (c *comparison) exact() bool { return c.o.Writer == c.writer || c.o.Writer != c.trusted }

// says reports whether an archived row has the content of a record, or could have
// it but for its policy of scrubbing.
func (c *comparison) says(first archivedRow, rec *audit.Record, m *audit.Message) (bool, error) {
	if first.content == rec.ContentHash() || !first.foreign {
		return first.content == rec.ContentHash(), nil
	}
	stored, err := c.recordAt(first.tenant, first.seq, first.hint)
	return err == nil && stored != nil && redact.Same(stored, c.reader.plain(m)), err
}

// duplicate requires that the record repeats the row that the segment names.
func (c *comparison) duplicate(s *stretch, rec *audit.Record, reject *audit.Reject, m *audit.Message) error {
	d := s.duplicate
	coord, ok := rec.Coordinates()
	if reject != nil || !ok {
		return c.forged(d.Offset, "it is called a repeat, and its record is none of any row")
	}
	if rec.TenantID.S != d.Tenant {
		return c.forged(d.Offset, "it is called a repeat in the log of another tenant")
	}
	first, err := c.first(coord, d.Tenant, d.Seq)
	if err != nil {
		return err
	}
	fault := c.repeats(d, first, coord, rec, m)
	if !errors.Is(fault, ErrForged) || first.hidden || first.coord != coord {
		return fault
	}
	// The row may have been erased since this process read it.
	now, err := c.rowNow(d.Tenant, d.Seq)
	if err != nil || !now.hidden && !now.found {
		return cmp.Or(err, fault)
	}
	return c.repeats(d, now, coord, rec, m)
}

// repeats requires that the record repeats a row, as far as anybody can say.
func (c *comparison) repeats(d *archive.Duplicate, first archivedRow, coord audit.Fingerprint, rec *audit.Record, m *audit.Message) error {
	switch {
	case first.hidden && c.trustTail:
		return nil
	case first.hidden:
		// Whoever writes to the bucket could call any record that.
		return c.forged(d.Offset, "it is called a repeat of seq %d, of which an erasure or a cut has left nothing that could say so: trust-tail accepts it", d.Seq)
	case !first.found || first.coord != coord:
		return c.forged(d.Offset, "it is called a repeat of seq %d, which has other coordinates", d.Seq)
	case first.erased || !c.exact():
		return nil
	}
	says, err := c.says(first, rec, m)
	if err == nil && !says {
		return c.forged(d.Offset, "it is called a repeat of seq %d, which has other content", d.Seq)
	}
	return err
}

// first returns the row of a seq that a record of these coordinates is said to
// repeat.
func (c *comparison) first(coord audit.Fingerprint, tenant string, seq int64) (archivedRow, error) {
	e, ok := c.made[coord]
	if !ok {
		e, ok = c.window.lookup(coord)
	}
	hint := int64(nowhere)
	if ok && e.tenant == tenant && e.seq == seq {
		if e.content != (audit.Fingerprint{}) {
			return archivedRow{
				coord: coord, content: e.content, foreign: e.foreign, found: true, erased: e.content == erasedContent, tenant: tenant, seq: seq, hint: e.ordinal,
			}, nil
		}
		hint = e.ordinal
	}
	if seq >= c.state.Head(tenant).Tree.Size {
		return archivedRow{}, nil // a row of this segment, but not one of these coordinates
	}
	return c.rowAt(tenant, seq, hint)
}

// row requires that a row says what its record says.
func (c *comparison) row(got, rec *audit.Record, reject *audit.Reject, m *audit.Message) error {
	at := m.Offset
	if coord, ok := rec.Coordinates(); ok && reject == nil && got.Kind.S == audit.KindRejected {
		if err := c.conflict(got, rec, coord, m); err != nil {
			return err
		}
	}
	c.place(rec, got)
	differs := audit.FirstDifference
	if !c.exact() {
		differs = differsInSubstance
	}
	if column := differs(rec, got); column != "" {
		return c.forged(at, "the row has another %s than the record", column)
	}
	c.remember(got)
	return nil
}

// remember notes a row of the segment that later offsets may repeat.
func (c *comparison) remember(row *audit.Record) {
	coord, ok := row.Coordinates()
	if _, again := c.made[coord]; ok && !again {
		e := entry{seq: row.Seq.N, ordinal: c.o.Ordinal, tenant: row.TenantID.S}
		e.content, e.foreign = c.contentOf(row)
		c.made[coord] = e
	}
}

// conflict requires that a good record was rejected because an archived row of
// its coordinates says something else, and turns rec into that reject.
func (c *comparison) conflict(got, rec *audit.Record, coord audit.Fingerprint, m *audit.Message) error {
	detail, seq, ok := conflictOf(got)
	if !ok {
		return c.forged(m.Offset, "the row is rejected, and the record is good")
	}
	first, err := c.first(coord, rec.TenantID.S, seq)
	if err != nil {
		return err
	}
	same := false
	if !first.hidden && !first.erased && c.exact() { // else: what it said cannot be asked any more, maybe
		if same, err = c.says(first, rec, m); err != nil {
			return err
		}
	}
	if same || !first.hidden && (!first.found || first.coord != coord) {
		return c.forged(m.Offset, "the row is rejected for a conflict with seq %d, and there is none", seq)
	}
	c.reader.refuse(rec, m, audit.ReasonConflict, detail)
	return nil
}

// conflictOf reads, from the row of a conflict, its detail and the seq of the
// row that came first.
func conflictOf(r *audit.Record) (detail string, seq int64, ok bool) {
	rest, ok := bytes.CutPrefix(r.Slots[audit.SlotContext], []byte(`{"reason":"`+string(audit.ReasonConflict)+`","detail":"`))
	if !ok {
		return "", 0, false
	}
	text, _, ok := bytes.Cut(rest, []byte(`"`))
	number, ok2 := strings.CutPrefix(string(text), conflictDetail)
	seq, err := strconv.ParseInt(number, 10, 64)
	return string(text), seq, ok && ok2 && err == nil
}

// differsInSubstance is [audit.FirstDifference] for a row of another version,
// policy or settings: only of what no version may change.
func differsInSubstance(a, b *audit.Record) string {
	ca, oka := a.Coordinates()
	cb, okb := b.Coordinates()
	switch {
	case a.KafkaTimestamp != b.KafkaTimestamp:
		return "kafka_timestamp"
	case a.TenantID != b.TenantID:
		return "tenant_id"
	case a.Topic != b.Topic || a.Partition != b.Partition || a.TopicID != b.TopicID:
		return "topic or partition"
	case a.Kind != b.Kind:
		return "kind"
	case ca != cb || oka != okb:
		return "place in its turn"
	}
	return ""
}

// end requires that nothing is left that Kafka did not say.
func (c *comparison) end() error {
	if err := c.until(c.o.NextOffset); err != nil {
		return err
	}
	if c.epoch < 0 {
		c.epoch = c.state.LeaderEpoch
		if c.epoch < 0 || c.o.LeaderEpoch < 0 {
			return nil // one of the two began behind a compaction, which keeps no epochs
		}
	}
	if !c.missed && c.o.LeaderEpoch != c.epoch {
		return c.forged(c.o.NextOffset-1, "its leader epoch is %d, not %d", c.epoch, c.o.LeaderEpoch)
	}
	return nil
}

// compare is compareOnce, and asks again until there is a verdict: nil, or an
// error as isFinal has it; any other only when ctx is done.
func (c *consumer) compare(ctx context.Context, st *archive.State, w *window, trusted archive.Writer, o *archive.SegmentObject) error {
	for attempt := 1; ; attempt++ {
		err := c.compareOnce(ctx, nil, st, w, trusted, o)
		if err == nil || c.isFinal(err) || isVerdict(err) && attempt > 1 {
			return err
		}
		c.retrying(ctx, st.Line, attempt, err)
		if err := c.backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

// isFinal reports whether an error of a comparison stays, however often it is
// asked for.
func (c *consumer) isFinal(err error) bool {
	return errors.Is(err, ErrForged) || errors.Is(err, errBeyondLog) || errors.Is(err, kgo.ErrMaxDecompress) || errors.Is(err, errMayNotAsk) ||
		errors.Is(err, errGone) && !c.TrustTail // where the tail is trusted, Kafka has deleted more meanwhile
}

// compareOnce holds a segment that follows st against Kafka. It returns nil
// where Kafka says the same, an error matching [ErrForged] where not, one
// matching errGone where Kafka no longer can tell and the settings do not trust
// the tail, and others where Kafka or the store did not answer.
//
// known is what Kafka held a moment ago, and is renewed where that does not do;
// nil asks anew.
func (c *consumer) compareOnce(ctx context.Context, known *bounds, st *archive.State, w *window, trusted archive.Writer, o *archive.SegmentObject) error {
	if f := c.events.Comparing; f != nil {
		f(st.Line, o.Ordinal)
	}
	if known != nil && o.NextOffset <= known.end {
		err := c.compareWithin(ctx, *known, st, w, trusted, o)
		if !errors.Is(err, ErrForged) && !errors.Is(err, errGone) {
			return err
		}
	}
	b, err := c.tryBounds(ctx, st.Line.Topic, st.Line.Partition)
	if err != nil {
		return fmt.Errorf("list offsets: %w", err)
	}
	if known != nil {
		*known = b
	}
	return c.compareWithin(ctx, b, st, w, trusted, o)
}

func (c *consumer) compareWithin(ctx context.Context, b bounds, st *archive.State, w *window, trusted archive.Writer, o *archive.SegmentObject) error {
	finder := newRowFinder(c.shared, st)
	x := &comparison{
		o: o, state: st, window: w, reader: c.reader(st.Line.Topic), unkeyed: c.unkeyedReader(st.Line.Topic), writer: c.writer, trusted: trusted, start: b.start, now: c.Now(),
		compacted: func() (bool, error) { return c.isCompacted(ctx, st.Line.Topic) },
		rowNow:    func(tenant string, seq int64) (archivedRow, error) { return finder.now(ctx, tenant, seq) },
		rowAt:     func(tenant string, seq, hint int64) (archivedRow, error) { return finder.find(ctx, tenant, seq, hint) },
		recordAt: func(tenant string, seq, hint int64) (*audit.Record, error) {
			return finder.record(ctx, tenant, seq, hint)
		},
		contentOf: c.contentOf, trustTail: c.TrustTail,
	}
	if err := x.begin(); err != nil {
		return err
	}
	if o.NextOffset > b.end {
		return x.forged(b.end, "the segment goes on to offset %d, and Kafka ends there", o.NextOffset)
	}
	if from, gone := x.gone(); gone && !c.TrustTail {
		return fmt.Errorf("segment %d: offset %d cannot be compared: %w: it begins at %d; trust-tail accepts such segments as they are", o.Ordinal, from, errGone, b.start)
	}
	if err := c.reread(ctx, st.Line, max(o.FirstOffset, b.start), o.NextOffset, x.record); err != nil {
		return err
	}
	return x.end()
}

// gone returns the first offset of the segment, if there is one, that Kafka no
// longer has and that is not called lost.
func (c *comparison) gone() (int64, bool) {
	for _, s := range c.stretches {
		if s.from < c.start && s.gap != archive.GapLost {
			c.missed = true
			return s.from, true
		}
	}
	return 0, false
}

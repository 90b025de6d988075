package sim_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// judge holds a segment that has just been created against all that is known:
// that it is the next one of its line, that its chain and trees are right, and
// that each offset has one fate, which is the right one. A segment that passes
// becomes part of what is known.
func (l *line) judge(body []byte, window int) error {
	o, err := archive.ReadSegment(body, nil)
	if err != nil {
		return err
	}
	if err := l.state.Continues(o.Segment); err != nil {
		return err
	}
	j := &judging{line: l, o: o, window: window, epoch: l.state.LeaderEpoch}
	switch {
	case o.NextOffset <= o.FirstOffset:
		return fmt.Errorf("offsets %d to %d", o.FirstOffset, o.NextOffset)
	case o.NextOffset > l.end():
		return fmt.Errorf("next offset %d, Kafka ends at %d", o.NextOffset, l.end())
	case l.state.NextOffset < 0 && o.FirstOffset > l.start:
		return fmt.Errorf("a line begins at offset %d, Kafka at %d", o.FirstOffset, l.start)
	}
	if err := errors.Join(j.fates(), j.trees()); err != nil {
		return err
	}
	// Behind a catalog nobody may know of what epoch the last record was.
	if o.LeaderEpoch != j.epoch && (o.LeaderEpoch >= 0 && j.epoch >= 0 || j.records > 0 || l.watermark() == 0) {
		return fmt.Errorf("leader epoch %d, that of its last record is %d", o.LeaderEpoch, j.epoch)
	}
	l.state.Take(o)
	l.remember(o)
	l.sums, l.writer = append(l.sums, o.SHA256), o.Writer
	l.counts["duplicate"] += len(o.Duplicates)
	for _, g := range o.Gaps {
		l.counts[g.Cause+"-gap"]++
	}
	return nil
}

// judging is one segment under examination.
type judging struct {
	line    *line
	o       *archive.SegmentObject
	window  int
	row     int   // the next of o.Rows
	epoch   int32 // of the newest record
	records int   // so far
}

// fates goes through the offsets in order; rows, duplicates and gaps must tile
// them, each in its own order.
func (j *judging) fates() error {
	dups, gaps := j.o.Duplicates, j.o.Gaps
	for at := j.o.FirstOffset; at < j.o.NextOffset; {
		isRow := j.row < len(j.o.Rows) && j.o.Rows[j.row].KafkaOffset == audit.I64(at)
		isDup := len(dups) > 0 && dups[0].Offset == at
		isGap := len(gaps) > 0 && gaps[0].From == at
		var err error
		next := at + 1
		switch {
		case isRow && !isDup && !isGap:
			err = j.isRow(at)
			j.epoch, j.records = j.line.records[at].epoch, j.records+1
		case isDup && !isRow && !isGap:
			err = j.isDuplicate(at, dups[0])
			dups = dups[1:]
			j.epoch, j.records = j.line.records[at].epoch, j.records+1
		case isGap && !isRow && !isDup && gaps[0].To > at:
			err = j.isGap(gaps[0])
			next, gaps = gaps[0].To, gaps[1:]
		default:
			err = fmt.Errorf("row %t, duplicate %t, gap %t", isRow, isDup, isGap)
		}
		if err != nil {
			return fmt.Errorf("offset %d: %w", at, err)
		}
		at = next
	}
	if j.row != len(j.o.Rows) || len(dups) > 0 || len(gaps) > 0 {
		return fmt.Errorf("%d rows, %d duplicates, %d gaps are of no offset", len(j.o.Rows)-j.row, len(dups), len(gaps))
	}
	return nil
}

// isRow requires that the row is what was produced there, and that it had to
// be one.
func (j *judging) isRow(at int64) error {
	l, got := j.line, &j.o.Rows[j.row]
	r := l.records[at]
	if r.fate != delivered {
		return fmt.Errorf("a row of what Kafka does not deliver (%v)", r.fate)
	}
	r.decode()
	want, reject := r.row, r.reject != nil
	if err := j.scrub(&want); err != nil {
		return err
	}
	if got.Kind.S == audit.KindRejected && !reject {
		if err := j.isConflict(r, got); err != nil {
			return err
		}
		want, reject = refused(&want, got), true
	} else if first := j.recent(r); first != nil && !first.erased.Hard && first.seq >= l.begins(first.row.TenantID.S) {
		return fmt.Errorf("a second row of the coordinates of seq %d, %d rows later", first.seq, l.rows-first.index)
	}
	if err := j.equal(&want, got); err != nil {
		return err
	}
	return j.place(r, got, reject)
}

// refused returns what is left of a record that is rejected for a conflict. Its
// slots are those of got, at which isConflict has looked.
func refused(r *audit.Record, got *chain.Row) audit.Record {
	return audit.Record{
		TenantID: r.TenantID, Topic: r.Topic, Partition: r.Partition, KafkaOffset: r.KafkaOffset, KafkaTimestamp: r.KafkaTimestamp,
		Kind: audit.Str(audit.KindRejected), RecordID: r.RecordID, SessionID: r.SessionID, TurnID: r.TurnID, StageID: r.StageID,
		SeqWithinTurn: r.SeqWithinTurn, CreatedAt: r.CreatedAt, UserID: r.UserID, Slots: got.Slots,
	}
}

// recent returns an archived row of the record's coordinates that the window
// still knows for sure.
func (j *judging) recent(r *record) *placed {
	if !r.hasCoord {
		return nil
	}
	for _, p := range slices.Backward(j.line.coords[r.coord]) {
		if j.line.rows-p.index <= j.window {
			return p
		}
	}
	return nil
}

// isConflict requires that a row of other content has the coordinates, and that
// the reject says so.
func (j *judging) isConflict(r *record, got *chain.Row) error {
	if !r.hasCoord || !slices.ContainsFunc(j.line.coords[r.coord], func(p *placed) bool { return p.record.content != r.content }) {
		return errors.New("rejected for no reason")
	}
	slots := got.Slots
	if !bytes.HasPrefix(slots[audit.SlotContext], []byte(`{"reason":"conflict",`)) || !bytes.Equal(slots[audit.SlotRaw], j.scrubbed(r.message.Value)) {
		return errors.New("a conflict that does not say so")
	}
	for slot, text := range slots {
		if text != nil && audit.Slot(slot) != audit.SlotContext && audit.Slot(slot) != audit.SlotRaw {
			return errors.New("a conflict with other slots")
		}
	}
	return nil
}

// equal compares what a row says with what it should say, apart from what
// stamping adds, and the derived columns with it.
func (j *judging) equal(want *audit.Record, got *chain.Row) error {
	w := *want
	w.Seq, w.ArchivedAt, w.Epoch = got.Seq, got.ArchivedAt, got.Epoch
	w.TopicID, w.Topic, w.Partition = audit.Str(j.line.TopicID), audit.Str(j.line.Topic), audit.I64(int64(j.line.Partition))
	if reflect.DeepEqual(&w, &got.Record) {
		return nil
	}
	a, b := reflect.ValueOf(w), reflect.ValueOf(got.Record)
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			return fmt.Errorf("%s is %.200v, produced was %.200v", a.Type().Field(i).Name, y, x)
		}
	}
	return errors.New("differs")
}

// place makes a row part of what is archived.
func (j *judging) place(r *record, got *chain.Row, reject bool) error {
	l, tenant := j.line, got.TenantID.S
	if got.ArchivedAt.N < j.line.state.ArchivedAt {
		return fmt.Errorf("archived_at goes back from %d to %d", j.line.state.ArchivedAt, got.ArchivedAt.N)
	}
	if got.Seq.N != int64(len(l.logs[tenant])) {
		return fmt.Errorf("seq %d of a log of %d rows", got.Seq.N, len(l.logs[tenant]))
	}
	p := &placed{record: r, index: l.rows, seq: got.Seq.N, reject: reject, ordinal: j.o.Ordinal, row: got}
	l.logs[tenant] = append(l.logs[tenant], p)
	l.rows++
	if r != nil && r.hasCoord && !reject {
		l.coords[r.coord] = append(l.coords[r.coord], p)
	}
	if l.trees[tenant] == nil {
		l.trees[tenant] = &chain.Tree{}
	}
	l.trees[tenant].Append(got.RowHash)
	j.row++
	return nil
}

// isDuplicate requires that the row which the offset is said to repeat is there
// and says the same.
func (j *judging) isDuplicate(at int64, d archive.Duplicate) error {
	r := j.line.records[at]
	if r.fate != delivered {
		return errors.New("a duplicate of what Kafka does not deliver")
	}
	r.decode()
	log := j.line.logs[d.Tenant]
	if d.Seq < 0 || d.Seq >= int64(len(log)) {
		return fmt.Errorf("repeats seq %d of %q, which has %d rows", d.Seq, d.Tenant, len(log))
	}
	first := log[d.Seq]
	switch {
	case !r.hasCoord || first.record == nil || first.reject || first.record.coord != r.coord:
		return fmt.Errorf("does not repeat seq %d", d.Seq)
	case first.record.content != r.content && first.erased.ID == "" && d.Seq >= j.line.begins(d.Tenant): // of one that went, nobody can say
		return fmt.Errorf("has other content than seq %d", d.Seq)
	}
	return nil
}

// isGap requires that nothing was to be had from the offsets, for the reason
// that the gap states; a lost stretch has a row that says so.
func (j *judging) isGap(g archive.Gap) error {
	for at := g.From; at < g.To; at++ {
		r := j.line.records[at]
		ok := false
		switch g.Cause {
		case archive.GapControl:
			ok = r.fate == control
		case archive.GapCompacted:
			ok = r.fate == aborted || r.superseded
		case archive.GapLost:
			ok = at < j.line.start
		}
		if !ok {
			return fmt.Errorf("a gap %s, but offset %d is there (%v)", g.Cause, at, r.fate)
		}
	}
	if g.Cause != archive.GapLost {
		return nil
	}
	if j.row == len(j.o.Rows) {
		return errors.New("a lost stretch without a row")
	}
	var want audit.Record
	audit.Gap(&want, g.From, g.To, g.Cause)
	if err := j.equal(&want, &j.o.Rows[j.row]); err != nil {
		return err
	}
	return j.place(nil, &j.o.Rows[j.row], false)
}

// trees requires that the frontiers of the metadata are those of the rows.
func (j *judging) trees() error {
	for _, l := range j.o.Logs {
		t := j.line.trees[l.Tenant]
		if t == nil || t.Size != l.Size || !slices.Equal(t.Frontier, l.Frontier) {
			return fmt.Errorf("the tree of %q is not that of its rows", l.Tenant)
		}
	}
	return nil
}

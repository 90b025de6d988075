package sim_test

import (
	"context"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A forgery is one lie that a segment can tell. It alters an honest segment, of
// which row is one that it may lie about, and reports whether it could.
type forgery struct {
	kind  string
	alter func(l *line, o *archive.SegmentObject, row int) bool
	// subtle: a version that vouched last may have made such a row, so that in a
	// world with several versions this is no lie for sure.
	subtle bool
}

// forgeries are those of the simulation; their chains, salts and hashes hold.
var forgeries = []forgery{
	{"altered-row", func(_ *line, o *archive.SegmentObject, row int) bool {
		o.Rows[row].ModelID = audit.Str("model-z")
		return true
	}, true},
	{"invented-gap", func(_ *line, o *archive.SegmentObject, row int) bool {
		at := o.Rows[row].KafkaOffset.N
		o.Rows = append(o.Rows[:row:row], o.Rows[row+1:]...)
		insertGap(o, archive.Gap{From: at, To: at + 1, Cause: archive.GapCompacted})
		return true
	}, false},
	{"invented-duplicate", func(l *line, o *archive.SegmentObject, row int) bool {
		r := &o.Rows[row]
		log := l.logs[r.TenantID.S]
		if len(log) == 0 || l.begins(r.TenantID.S) > 0 || log[0].erased.Hard {
			return false // nothing is left of seq 0 that could say so, and trust-tail may be set
		}
		insertDuplicate(o, archive.Duplicate{Offset: r.KafkaOffset.N, Tenant: r.TenantID.S, Seq: 0})
		o.Rows = append(o.Rows[:row:row], o.Rows[row+1:]...)
		return true
	}, false},
	{"beyond-the-log", func(l *line, o *archive.SegmentObject, _ int) bool {
		// So far that it stays a lie: near offsets may come to be those of a
		// transaction that is aborted, and then nobody was lied to.
		beyond := l.end() + 10_000
		insertGap(o, archive.Gap{From: o.NextOffset, To: beyond, Cause: archive.GapCompacted})
		o.NextOffset = beyond
		return true
	}, false},
	{"invented-row", func(l *line, o *archive.SegmentObject, row int) bool {
		if o.NextOffset < l.end() && l.untold(l.records[o.NextOffset]) {
			return false // Kafka may not be able to tell
		}
		made := o.Rows[row]
		made.SessionID = audit.Str("nobody-sent-this")
		made.KafkaOffset = audit.I64(o.NextOffset) // maybe beyond the log
		o.Rows = append(o.Rows, made)
		o.NextOffset++
		return true
	}, false},
	{"other-version-other-tenant", func(_ *line, o *archive.SegmentObject, row int) bool {
		o.Rows[row].TenantID = audit.Str("tenant-z")
		return true
	}, false},
	{"other-version-other-turn", func(_ *line, o *archive.SegmentObject, row int) bool {
		o.Rows[row].SeqWithinTurn = audit.I64(o.Rows[row].SeqWithinTurn.N + 1_000_000)
		return true
	}, false},
}

// untold reports whether Kafka may give no record at an offset, and cannot say
// that there never was one, because the topic is compacted.
func (l *line) untold(r *record) bool {
	return l.thins && (r.superseded || r.fate != delivered)
}

func insertGap(o *archive.SegmentObject, g archive.Gap) {
	at := 0
	for at < len(o.Gaps) && o.Gaps[at].From < g.From {
		at++
	}
	o.Gaps = append(o.Gaps[:at:at], append([]archive.Gap{g}, o.Gaps[at:]...)...)
}

func insertDuplicate(o *archive.SegmentObject, d archive.Duplicate) {
	at := 0
	for at < len(o.Duplicates) && o.Duplicates[at].Offset < d.Offset {
		at++
	}
	o.Duplicates = append(o.Duplicates[:at:at], append([]archive.Duplicate{d}, o.Duplicates[at:]...)...)
}

// forge puts a segment that lies where the next one of a line belongs. From
// then on nothing may be built on it.
func (w *world) forge(l *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.forged >= 0 || w.writer == nil {
		return
	}
	o := w.honest(l)
	var good []int // rows that are no repeats and no rejects
	for i := range o.Rows {
		if o.Rows[i].Kind.S == audit.KindCall {
			good = append(good, i)
		}
	}
	if len(good) == 0 {
		return
	}
	f := one(w.dice, forgeries...)
	if f.subtle && w.plan.upgrades {
		return
	}
	if strings.HasPrefix(f.kind, "other-version") && !(w.plan.upgrades && w.dice.chance(0.8)) {
		o.Writer.Version = "another"
	}
	if !f.alter(l, o, good[w.dice.IntN(len(good))]) {
		return
	}
	body, err := archivetest.Forge(l.state, o)
	if err != nil {
		w.failLocked("forge %s: %v", f.kind, err)
		return
	}
	key := archive.SegmentKey(l.Line, l.state.Ordinal)
	if _, err := w.memory.Create(context.Background(), key, body); err != nil {
		w.failLocked("forge %s: %v", short(key), err)
		return
	}
	l.forged = l.state.Ordinal
	w.counts["forged:"+f.kind]++
	w.trace.say("", "somebody forges %s: %s", short(key), f.kind)
}

// honest returns the segment of some offsets that come next, as an honest
// process would make it, up to where that is not plain.
func (w *world) honest(l *line) *archive.SegmentObject {
	from := max(l.state.NextOffset, l.start)
	if l.state.NextOffset >= 0 {
		from = l.state.NextOffset
	}
	o := &archive.SegmentObject{Segment: &archive.Segment{
		Format: archive.Format, Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition,
		FirstOffset: from, NextOffset: from, LeaderEpoch: l.state.LeaderEpoch, Writer: *w.writer,
	}}
	fresh := map[audit.Fingerprint]bool{}
	for n := w.dice.from(4, 30); n > 0 && o.NextOffset < l.end(); n-- {
		r := l.records[o.NextOffset]
		r.decode()
		switch {
		case r.offset < l.start || r.superseded || r.fate == open:
			return o
		case r.fate == control:
			insertGap(o, archive.Gap{From: r.offset, To: r.offset + 1, Cause: archive.GapControl})
		case r.fate == aborted:
			insertGap(o, archive.Gap{From: r.offset, To: r.offset + 1, Cause: archive.GapCompacted})
		case r.hasCoord && fresh[r.coord]:
			return o
		case r.hasCoord && len(l.coords[r.coord]) > 0:
			rows := l.coords[r.coord]
			first := rows[len(rows)-1]
			if first.record.content != r.content {
				return o
			}
			o.Duplicates = append(o.Duplicates, archive.Duplicate{Offset: r.offset, Tenant: r.row.TenantID.S, Seq: first.seq})
			o.LeaderEpoch = r.epoch
		default:
			fresh[r.coord] = true
			o.Rows = append(o.Rows, w.row(l, r))
			o.LeaderEpoch = r.epoch
		}
		o.NextOffset++
	}
	return o
}

func (w *world) row(l *line, r *record) chain.Row {
	row := chain.Row{Record: r.row}
	row.TopicID, row.Topic, row.Partition, row.Epoch = audit.Str(l.TopicID), audit.Str(l.Topic), audit.I64(int64(l.Partition)), audit.I64(0)
	row.Seq, row.ArchivedAt = audit.I64(0), audit.I64(max(l.state.ArchivedAt, time.Now().UnixMicro()))
	for i := range row.RowSalt.Hash {
		row.RowSalt.Hash[i] = byte(w.dice.IntN(256))
	}
	row.RowSalt.Valid = true
	return row
}

// String writes a fate in words.
func (f fate) String() string {
	return [...]string{"delivered", "open", "aborted", "control"}[f]
}

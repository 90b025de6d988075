package main

import (
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// rowAttacks change rows, as each cover hides it.
func rowAttacks() []attack {
	all := slices.Concat(hiding, rehashing)
	return slices.Concat(
		covered("rows dropped", dropped(), all...),
		covered("rows repeated", repeated(), all...),
		covered("rows swapped", swapped(), all...),
		covered("rows of another tenant spliced in", spliced(), all...),
		covered("columns changed", changedColumns(), all...),
		covered("redactions faked", redacted(), all...),
		covered("hashes left empty", emptied(), hiding...),
	)
}

// most is how many rows a segment has at most.
const most = 3

// eachRow makes a change of every row.
func eachRow(name string, do func(l *prooftest.Line, seg *prooftest.Segment, i int) bool) (all []change) {
	for i := range most {
		all = append(all, change{fmt.Sprintf("row %d %s", i, name), func(_ *subject, l *prooftest.Line, seg *prooftest.Segment) bool {
			return i < len(seg.Rows) && do(l, seg, i)
		}})
	}
	return all
}

// dropped takes a row out and says that Kafka skipped its offset.
func dropped() []change {
	return eachRow("dropped", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
		row := seg.Rows[i]
		seg.Rows = slices.Delete(slices.Clone(seg.Rows), i, i+1)
		seg.Meta.Rows--
		seg.Meta.Gaps = append(slices.Clone(seg.Meta.Gaps), archive.Gap{From: row.KafkaOffset.N, To: row.KafkaOffset.N + 1, Cause: archive.GapCompacted})
		slices.SortFunc(seg.Meta.Gaps, func(a, b archive.Gap) int { return int(a.From - b.From) })
		recount(seg)
		return true
	})
}

func repeated() []change {
	return slices.Concat(
		eachRow("repeated", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			seg.Rows = slices.Insert(slices.Clone(seg.Rows), i, seg.Rows[i])
			seg.Meta.Rows++
			recount(seg)
			return true
		}),
		eachRow("repeated at the end, under an offset of its own", func(l *prooftest.Line, seg *prooftest.Segment, i int) bool {
			row := seg.Rows[i]
			row.KafkaOffset = audit.I64(seg.Meta.NextOffset)
			row.ArchivedAt = seg.Rows[len(seg.Rows)-1].ArchivedAt
			seg.Rows = append(slices.Clone(seg.Rows), row)
			seg.Meta.Rows++
			seg.Meta.NextOffset++
			recount(seg)
			return seg == l.Segments[len(l.Segments)-1]
		}))
}

// swapped lets two rows of one log trade all but their places.
func swapped() []change {
	return eachRow("swapped with the next of its log", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
		for j := i + 1; j < len(seg.Rows); j++ {
			if a, b := &seg.Rows[i], &seg.Rows[j]; a.TenantID == b.TenantID {
				*a, *b = *b, *a
				a.Seq, b.Seq = b.Seq, a.Seq
				a.KafkaOffset, b.KafkaOffset = b.KafkaOffset, a.KafkaOffset
				a.ArchivedAt, b.ArchivedAt = b.ArchivedAt, a.ArchivedAt
				a.PrevHash, b.PrevHash = b.PrevHash, a.PrevHash
				a.RowHash, b.RowHash = b.RowHash, a.RowHash
				return true
			}
		}
		return false
	})
}

// spliced gives a row to another tenant that the segment has, or puts one of
// another line's in its place.
func spliced() []change {
	return slices.Concat(
		eachRow("given to another tenant", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			for j := range seg.Rows {
				if other := seg.Rows[j].TenantID; other != seg.Rows[i].TenantID {
					seg.Rows[i].TenantID = other
					recount(seg)
					return true
				}
			}
			return false
		}),
		[]change{{"row 0 replaced by another line's", func(s *subject, _ *prooftest.Line, seg *prooftest.Segment) bool {
			row := s.other.Segments[0].Rows[0]
			row.KafkaOffset, row.Partition, row.TenantID = seg.Rows[0].KafkaOffset, seg.Rows[0].Partition, seg.Rows[0].TenantID
			row.ArchivedAt, row.Seq = seg.Rows[0].ArchivedAt, seg.Rows[0].Seq
			seg.Rows[0] = row
			return true
		}}})
}

// recount makes the counts of a segment's logs right again. Logs without rows
// go.
func recount(seg *prooftest.Segment) {
	n := map[string]int64{}
	for i := range seg.Rows {
		n[seg.Rows[i].TenantID.S]++
	}
	seg.Meta.Logs = slices.Clone(seg.Meta.Logs)
	for i := range seg.Meta.Logs {
		l := &seg.Meta.Logs[i]
		l.Rows = n[l.Tenant]
		l.Size = l.FirstSeq + l.Rows
		l.Frontier = slices.Repeat([]chain.Hash{{}}, onesCount(l.Size))
	}
	seg.Meta.Logs = slices.DeleteFunc(seg.Meta.Logs, func(l archive.LogInterval) bool { return l.Rows == 0 })
}

func onesCount(n int64) (ones int) {
	for ; n > 0; n >>= 1 {
		ones += int(n & 1)
	}
	return ones
}

// changedColumns changes each column of a row, one at a time.
func changedColumns() (all []change) {
	row := func(name string, do func(*chain.Row)) {
		all = append(all, change{name, func(_ *subject, _ *prooftest.Line, seg *prooftest.Segment) bool {
			do(&seg.Rows[len(seg.Rows)-1])
			return seg.Meta.Ordinal%2 == 0 // one that an anchor ends with, and one that it does not
		}})
	}
	for i := range audit.Header {
		c := &audit.Header[i]
		switch {
		case c.Name == "tenant_id" || c.Name == "seq" || c.Name == "kind": // these are other attacks
		case c.Text != nil:
			row(c.Name, func(r *chain.Row) { *c.Text(&r.Record) = audit.Str(c.Text(&r.Record).S + "x") })
		default:
			row(c.Name, func(r *chain.Row) { *c.Int(&r.Record) = audit.I64(c.Int(&r.Record).N + 1) })
		}
	}
	for s := range audit.NumSlots {
		row(s.String(), func(r *chain.Row) { r.Slots[s] = append(slices.Clone(r.Slots[s]), ' ') })
	}
	row("user_id", func(r *chain.Row) { r.UserID = audit.Str(r.UserID.S + "x") })
	row("row_salt", func(r *chain.Row) { r.RowSalt.Hash[31] ^= 1 })
	row("kind", func(r *chain.Row) { r.Kind = audit.Str(audit.KindDecision) })
	return all
}

// redacted leaves of a row what an erasure leaves: whole, in part, or hard. In a
// segment no row may be so.
func redacted() []change {
	return slices.Concat(
		eachRow("erased", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool { return erase(&seg.Rows[i]) }),
		eachRow("with one slot gone", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			r := &seg.Rows[i]
			if len(r.Slots[audit.SlotDecision]) == 0 {
				return false
			}
			r.Slots[audit.SlotDecision], r.Derived = nil, audit.Derived{}
			return true
		}),
		eachRow("with its user gone", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			r := &seg.Rows[i]
			gone := r.UserID.Valid
			r.UserID = audit.Text{}
			return gone
		}),
		eachRow("with its salt gone", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			seg.Rows[i].RowSalt = chain.NullHash{}
			return true
		}))
}

func erase(row *chain.Row) bool {
	if row.UserID.Valid {
		row.UserSalt = chain.NullHash{Hash: chain.SlotSalt(row.RowSalt.Hash, "user_id"), Valid: true}
	}
	row.RowSalt = chain.NullHash{}
	row.Slots = [audit.NumSlots][]byte{}
	row.Derived = audit.Derived{}
	row.RedactionID = audit.Str("01KBCDEFGHJKMNPQRSTVWXYZ09")
	row.Redaction = audit.Str(chain.Sentinel{ID: row.RedactionID.S, All: true}.String())
	return true
}

// emptied takes a hash away, wherever one stands in a segment.
func emptied() []change {
	var none chain.Hash
	all := slices.Concat(
		eachRow("without row_hash", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			seg.Rows[i].RowHash = none
			return true
		}),
		eachRow("without prev_hash", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			seg.Rows[i].PrevHash = none
			return true
		}),
		eachRow("without payload_commit", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			seg.Rows[i].PayloadCommit = none
			return true
		}),
		eachRow("without user_commit", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			was := seg.Rows[i].UserCommit.Valid
			seg.Rows[i].UserCommit = chain.NullHash{}
			return was
		}),
		eachRow("with an empty salt", func(_ *prooftest.Line, seg *prooftest.Segment, i int) bool {
			seg.Rows[i].RowSalt.Hash = none
			return true
		}))
	interval := func(name string, do func(*archive.LogInterval)) {
		all = append(all, change{"logs without " + name, func(_ *subject, _ *prooftest.Line, seg *prooftest.Segment) bool {
			do(&seg.Meta.Logs[0])
			return true
		}})
	}
	interval("headIn", func(l *archive.LogInterval) { l.HeadIn = none })
	interval("headOut", func(l *archive.LogInterval) { l.HeadOut = none })
	interval("hashes in frontier", func(l *archive.LogInterval) { l.Frontier = make([]chain.Hash, len(l.Frontier)) })
	return append(all,
		change{"all hashes of rows empty", func(_ *subject, _ *prooftest.Line, seg *prooftest.Segment) bool {
			for i := range seg.Rows {
				r := &seg.Rows[i]
				r.RowHash, r.PrevHash, r.PayloadCommit, r.UserCommit = none, none, none, chain.NullHash{}
			}
			for i := range seg.Meta.Logs {
				seg.Meta.Logs[i].HeadIn, seg.Meta.Logs[i].HeadOut = none, none
			}
			return true
		}},
		change{"previousSha256 empty", func(_ *subject, _ *prooftest.Line, seg *prooftest.Segment) bool {
			was := seg.Meta.PreviousSHA256 != nil
			seg.Meta.PreviousSHA256 = &none
			return was
		}})
}

// tailAttacks cut a line behind each of its rows.
func tailAttacks() (all []attack) {
	rows := 0
	s := specimens()[1].build()
	for _, seg := range s.calls.Segments {
		rows += len(seg.Rows)
	}
	for n := range rows {
		name := fmt.Sprintf("behind row %d", n)
		for _, c := range []struct {
			name      string
			elsewhere bool
			do        func(s *subject)
		}{
			{", anchors left", false, func(*subject) {}},
			{", anchors cut too, seen from another place", true, func(s *subject) { s.calls.Reanchor() }},
			{", anchors signed anew with the right key, seen from another place", true, func(s *subject) {
				s.calls.Reanchor()
				s.anchor(s.calls)
			}},
			{", anchors without signatures, seen from another place", true, func(s *subject) {
				signBy(s.calls)
				s.calls.Reanchor()
			}},
		} {
			all = append(all, attack{kind: "tail cut at a row", name: name + c.name, elsewhere: c.elsewhere, want: 1, do: func(s *subject) objects {
				cutTail(s.calls, n)
				c.do(s)
				return s.pack()
			}})
		}
	}
	return all
}

// cutTail leaves n rows of a line, with hashes and counts as they would be had it
// ended there.
func cutTail(l *prooftest.Line, n int) {
	for i, seg := range l.Segments {
		if n <= 0 {
			l.Segments = l.Segments[:i]
			break
		}
		if n < len(seg.Rows) {
			cutSegment(seg, n)
		}
		n -= len(seg.Rows)
	}
	l.Restamp()
}

func cutSegment(seg *prooftest.Segment, n int) {
	seg.Rows = seg.Rows[:n]
	m := &seg.Meta
	m.Rows = int64(n)
	m.NextOffset = seg.Rows[n-1].KafkaOffset.N + 1
	m.Duplicates = slices.DeleteFunc(slices.Clone(m.Duplicates), func(d archive.Duplicate) bool { return d.Offset >= m.NextOffset })
	m.Gaps = slices.DeleteFunc(slices.Clone(m.Gaps), func(g archive.Gap) bool { return g.From >= m.NextOffset })
	recount(seg)
}

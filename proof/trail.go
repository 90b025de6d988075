package proof

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// anchorDelay is how far a row's archived_at may lie behind the first anchor
// that covers it.
const anchorDelay = 5 * time.Minute

// An anchorTrail is what is known of a line's anchors so far.
type anchorTrail struct {
	next     int64           // the number that the next one must have
	previous *anchor         // nil where it is not known
	changed  map[string]bool // logs with rows since the previous one
	unsigned map[string]bool // logs that changed since the newest one that a good key signed
	newest   int64           // archived_at of the newest row since the previous one, microseconds
	cut      bool            // it was said that the line ends before its anchors do
	sizes    headSizes
}

// headSizes are the sizes of all heads of a line, as its anchors state them.
type headSizes struct {
	of    map[string]int64
	sum   int64
	known bool // since the newest full anchor none is missing
}

// take takes the heads of the next anchor, and reports whether they sum up to
// the rows that it says the line has, as far as that can be told.
func (s *headSizes) take(a *anchor, follows bool) bool {
	if a.Full {
		*s = headSizes{of: make(map[string]int64, len(a.Heads)), known: true}
	} else if !follows {
		s.known = false
	}
	if !s.known {
		return true
	}
	for i := range a.Heads {
		h := &a.Heads[i]
		s.sum += h.Size - s.of[h.Tenant]
		s.of[h.Tenant] = h.Size
	}
	return s.sum == a.Totals.Rows
}

// compareEntry compares a segment with what the anchor that covers it says. Its
// hash was compared before it was decoded.
func (j *joiner) compareEntry(st *step) {
	if st.cover == nil {
		return
	}
	f := Fault{Kind: FaultAnchor, Key: st.cover.key, Ordinal: st.o.ordinal}
	prev := j.anchors.previous
	switch {
	case st.entry == nil && (st.cover.number == 0 || prev != nil && st.o.ordinal > prev.Ordinal):
		f.Text = fmt.Sprintf("the anchor covers segment %d, but does not list it", st.o.ordinal)
	case st.entry == nil || st.digest == nil && !st.shallow:
		return
	case st.entry.Bytes != st.o.bytes:
		f.Text = fmt.Sprintf("segment %d has %d bytes, the anchor says %d", st.o.ordinal, st.o.bytes, st.entry.Bytes)
	case st.entry.AnchorCounts != archive.CountsOf(st.o.meta):
		f.Text = fmt.Sprintf("offsets and counts of segment %d are not those that the anchor states", st.o.ordinal)
	default:
		return
	}
	j.fault(f)
}

// anchor compares an anchor with what the line gave so far. atEnd is true when
// no segment comes any more.
func (j *joiner) anchor(a *anchor, atEnd bool) {
	j.rep.Anchors++
	t := &j.anchors
	if a.number != t.next {
		j.anchorFault(a, FaultMissing, fmt.Sprintf("anchor %d is missing", t.next))
		t.previous = nil
	}
	t.next = a.number + 1
	j.meetAnchor(a)
	if a.wrong != nil {
		j.anchorFault(a, a.wrong.kind, a.wrong.text)
		t.previous = nil
		return
	}
	j.signatures(a)
	j.controlKeys(a)
	j.savedAnchor(a)
	j.anchorPlace(a)
	known := t.previous != nil || a.number == 0
	if !t.sizes.take(a, known || j.from != nil && a.number == j.from.Anchor) {
		j.anchorFault(a, FaultAnchor, fmt.Sprintf("the sizes of all heads sum up to %d, totals has %d rows", t.sizes.sum, a.Totals.Rows))
	}
	switch {
	case a.Ordinal > j.ordinal && atEnd:
		j.cutTail(a)
	case a.Ordinal > j.ordinal:
		// It ends in a stretch that is missing, which is named.
	case a.Ordinal == j.ordinal:
		j.anchorTotals(a)
		j.anchorHeads(a, known)
		j.anchorCheckpoints(a)
		j.coverRows(a)
		j.coverIndependent(a)
	}
	t.previous = a
}

func (j *joiner) anchorFault(a *anchor, kind FaultKind, text string) {
	j.fault(Fault{Kind: kind, Key: a.key, Ordinal: j.ordinal, Text: text})
}

// signatures counts what the signatures of an anchor are worth.
func (j *joiner) signatures(a *anchor) {
	j.rep.signatures += int64(a.lines)
	j.rep.notes.count(a.verdict)
	if a.stranger != nil {
		j.anchorFault(a, FaultSignature, a.stranger.Error())
	}
}

// anchorPlace checks which line an anchor is of, and that it follows the one
// before it.
func (j *joiner) anchorPlace(a *anchor) {
	fault := func(format string, args ...any) { j.anchorFault(a, FaultAnchor, fmt.Sprintf(format, args...)) }
	at := lineKey{chain.Escape(a.Line().Topic), chain.Escape(a.Line().TopicID), a.Line().Partition}
	switch prev := j.anchors.previous; {
	case at != j.l.lineKey:
		fault("the anchor is of another line: %s/%d", Printable(a.Line().Topic), a.Line().Partition)
	case j.v.rootSum != nil && a.ArchiveSHA256 != *j.v.rootSum:
		fault("archiveSha256 is not the hash of %s: one of them was changed", archive.RootKey)
	case j.v.root.ArchiveID != "" && a.ArchiveID != j.v.root.ArchiveID:
		fault("the anchor is of archive %.40q", a.ArchiveID)
	case prev == nil:
	case a.Previous == nil || *a.Previous != prev.sum:
		fault("previous is not the hash of the text of anchor %d", prev.number)
	case a.Time.Before(prev.Time.Time):
		fault("time is before that of anchor %d", prev.number)
	case a.Ordinal < prev.Ordinal:
		fault("the anchor ends at segment %d, anchor %d at %d", a.Ordinal, prev.number, prev.Ordinal)
	case len(a.Segments) > 0 && a.Segments[0].Ordinal <= prev.Ordinal:
		fault("the anchor lists segment %d, which anchor %d covers", a.Segments[0].Ordinal, prev.number)
	}
}

// cutTail names a tail that anchors cover and that is not there.
func (j *joiner) cutTail(a *anchor) {
	if j.anchors.cut || j.unknown {
		return
	}
	j.anchors.cut = true
	j.anchorFault(a, FaultMissing, fmt.Sprintf("the anchor covers segments up to %d, here they end before %d: the tail is missing", a.Ordinal, j.ordinal+1))
}

// anchorTotals compares sums since the beginning, unless a stretch is unknown.
func (j *joiner) anchorTotals(a *anchor) {
	if j.breaks > 0 || j.uncounted {
		return
	}
	switch none := a.Totals; {
	case a.Ordinal >= 0 && a.Totals != j.counts:
		j.anchorFault(a, FaultAnchor, fmt.Sprintf("totals are not those of segments 0 to %d", a.Ordinal))
	case a.Ordinal < 0 && none != (archive.AnchorCounts{FirstOffset: none.FirstOffset, NextOffset: none.FirstOffset}):
		j.anchorFault(a, FaultAnchor, "totals count something, and no segment is covered")
	}
	if at := a.Time.UnixMicro() + anchorDelay.Microseconds(); j.anchors.newest > at {
		j.anchorFault(a, FaultTime, "a row that the anchor covers was archived more than 5 minutes after it")
	}
}

// anchorHeads compares the heads that an anchor lists: exactly those that
// changed since the anchor before, or all.
func (j *joiner) anchorHeads(a *anchor, known bool) {
	for i := range a.Heads {
		j.anchorHead(a, &a.Heads[i], known)
	}
	want := maps.Keys(j.anchors.changed)
	if a.Full {
		want = maps.Keys(j.logs)
	}
	for _, tenant := range slices.Sorted(want) {
		if (known || a.Full) && a.head(tenant) == nil {
			j.headFault(a, tenant, 0, "the anchor does not list the log's head")
		}
	}
}

func (j *joiner) anchorHead(a *anchor, h *archive.AnchorHead, known bool) {
	if !j.v.wants(h.Tenant) {
		return
	}
	st := j.logs[h.Tenant]
	switch {
	case st == nil:
		if j.breaks == 0 {
			j.headFault(a, h.Tenant, 0, "the anchor lists a log that has no rows here")
		}
	case st.breaks < j.breaks:
		// Its rows are not known; the cause is named.
	case h.Size != st.Size || h.Head != st.Head || h.Scheme != st.Scheme || h.Epoch != st.Epoch:
		j.headFault(a, h.Tenant, min(h.Size, st.Size), fmt.Sprintf("the anchor says that the log has %d rows and head %s; it has %d and %s", h.Size, short(h.Head), st.Size, short(st.Head)))
	case !slices.Equal(h.Frontier, st.tree.Frontier):
		j.headFault(a, h.Tenant, 0, "the anchor's root and frontier are not those of the log's tree")
	case known && !a.Full && !j.anchors.changed[h.Tenant]:
		j.headFault(a, h.Tenant, h.Size, "the anchor lists a head that did not change")
	}
}

func (j *joiner) headFault(a *anchor, tenant string, seq int64, text string) {
	j.fault(Fault{Kind: FaultAnchor, Key: a.key, Ordinal: j.ordinal, Tenant: tenant, Seq: &seq, Text: text})
}

// anchorCheckpoints compares the texts of checkpoints with the logs' trees, and
// looks for the signatures that the anchor has. Where the archive's id is not
// known, which is a fault of its own, it cannot.
func (j *joiner) anchorCheckpoints(a *anchor) {
	if j.v.root.ArchiveID == "" {
		return
	}
	for _, c := range a.Checkpoints {
		n, err := sign.Parse([]byte(c.Note))
		if err == nil {
			err = j.checkpointSigned(a, n)
		}
		if err != nil {
			j.headFault(a, c.Tenant, 0, "checkpoint: "+err.Error())
			continue
		}
		st := j.logs[c.Tenant]
		if !j.v.wants(c.Tenant) || st == nil && j.breaks > 0 || st != nil && st.breaks < j.breaks {
			continue
		}
		if st == nil || n.Text != j.checkpoint(st) {
			j.headFault(a, c.Tenant, 0, "the checkpoint is not that of the log's tree")
			continue
		}
		st.witness(j.v.witnessed(n, st.Size))
	}
}

// checkpointSigned requires that a checkpoint is signed by a key that signed its
// anchor.
func (j *joiner) checkpointSigned(a *anchor, n *sign.Note) error {
	if a.verdict.State != sign.Good {
		return nil
	}
	verdict := j.v.keys.Check(n, sign.Anchor, a.Time.Time)
	if verdict.State == sign.Bad {
		return errForged
	}
	for _, key := range a.verdict.By {
		if slices.Contains(verdict.By, key) {
			return nil
		}
	}
	return errors.New("it is not signed by a key that signed the anchor")
}

func (j *joiner) checkpoint(st *logState) string {
	log := chain.Log{ArchiveID: j.v.root.ArchiveID, Tenant: st.Tenant, Topic: j.rep.Topic, TopicID: j.rep.TopicID, Partition: j.rep.Partition}
	return chain.CheckpointText(chain.CheckpointOrigin(log), st.Size, st.tree.Root())
}

// coverRows notes what an anchor covers, and with it the anchors before it,
// whose hashes it holds.
func (j *joiner) coverRows(a *anchor) {
	t := &j.anchors
	for tenant := range t.changed {
		t.unsigned[tenant] = true
		if st := j.logs[tenant]; st != nil {
			st.anchored, st.saved = st.Size, savedLog(st)
		}
	}
	clear(t.changed)
	t.newest = 0
	for ; j.covered < len(j.controls); j.covered++ {
		j.controls[j.covered].Anchored = true
	}
	j.rep.Anchored = a.Ordinal
	j.rep.at = j.savedLine(a)
	if a.verdict.State != sign.Good || a.stranger != nil {
		return
	}
	for tenant := range t.unsigned {
		if st := j.logs[tenant]; st != nil {
			st.Signed = st.anchored
		}
	}
	clear(t.unsigned)
	j.rep.Signed = &SignedAnchor{Number: a.number, Ordinal: a.Ordinal, Time: a.Time, SHA256: a.sum, By: a.verdict.By}
}

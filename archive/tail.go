package archive

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/chain"
)

// A Tail is what a line holds beyond its newest anchor: what the next one is to
// say. The zero Tail is that of a line without segments.
type Tail struct {
	Anchor   *AnchorRef      // the newest anchor; nil where none is known
	Segments []AnchorSegment // behind it, without void ones
	Totals   AnchorCounts    // of the whole line
	Rows     int64           // of Segments
	before   map[string]Head // at the anchor, of the logs that changed since; the zero Head for a new one
}

// An AnchorRef is what the next anchor has to know of one.
type AnchorRef struct {
	Number      int64
	SHA256      chain.Hash // of the text
	Ordinal     int64
	Time        time.Time
	Keys        AnchorKeys
	Checkpoints time.Time // of the newest anchor known that has any
}

func (t *Tail) clone() Tail {
	c := *t
	c.Segments, c.before = slices.Clone(t.Segments), maps.Clone(t.before)
	return c
}

// add takes in the next segment. Those that it voids count no more.
func (t *Tail) add(seg *Segment, sum chain.Hash, size int64, heads map[string]Head) {
	t.take(AnchorSegment{Ordinal: seg.Ordinal, Bytes: size, SHA256: sum, AnchorCounts: CountsOf(seg)}, seg.Voided)
	for i := range seg.Logs {
		t.change(seg.Logs[i].Tenant, heads[seg.Logs[i].Tenant])
	}
}

func (t *Tail) take(s AnchorSegment, voided []Voided) {
	for _, v := range voided {
		t.void(v.Ordinal)
	}
	if s.Ordinal == 0 {
		t.Totals.FirstOffset = s.FirstOffset
	}
	t.Totals.Add(s.AnchorCounts)
	t.Segments = append(t.Segments, s)
	t.Rows += s.Rows
}

// change notes what a log's head was before it changed first.
func (t *Tail) change(tenant string, head Head) {
	if _, ok := t.before[tenant]; ok {
		return
	}
	if t.before == nil {
		t.before = map[string]Head{}
	}
	t.before[tenant] = head
}

// Changed yields the tenants whose logs changed since the newest anchor.
func (t *Tail) Changed() iter.Seq[string] { return maps.Keys(t.before) }

// HasChanged reports whether the log of a tenant is one of them.
func (t *Tail) HasChanged(tenant string) bool {
	_, ok := t.before[tenant]
	return ok
}

// void takes a segment out that was declared void. No anchor covers it.
func (t *Tail) void(ordinal int64) {
	i, ok := slices.BinarySearchFunc(t.Segments, ordinal, func(s AnchorSegment, n int64) int { return cmp.Compare(s.Ordinal, n) })
	if !ok {
		return
	}
	s := t.Segments[i]
	t.Totals.Rows -= s.Rows
	t.Totals.Made -= s.Made
	t.Totals.Duplicates -= s.Duplicates
	t.Totals.Gaps -= s.Gaps
	t.Rows -= s.Rows
	t.Segments = slices.Delete(t.Segments, i, i+1)
}

// NextAnchor returns the anchor that follows, as of now: without time, keys and
// checkpoints, and to be completed by [Anchor.Complete], which may be done
// elsewhere. It shares no memory that a later state changes.
func (s *State) NextAnchor(archiveSHA256 chain.Hash) *Anchor {
	a := &Anchor{
		ArchiveID: s.ArchiveID, ArchiveSHA256: archiveSHA256, Topic: s.Line.Topic, TopicID: s.Line.TopicID, Partition: s.Line.Partition,
		Ordinal: s.Ordinal - 1, Totals: s.Tail.Totals, Segments: slices.Clone(s.Tail.Segments),
	}
	if last := s.Tail.Anchor; last != nil {
		a.Number, a.Previous = last.Number+1, &last.SHA256
	}
	a.Full = a.Number%FullEvery == 0
	if a.Full {
		a.Heads = make([]AnchorHead, 0, len(s.Heads))
		for tenant, h := range s.Heads {
			a.Heads = append(a.Heads, anchorHead(tenant, h))
		}
		return a
	}
	a.Heads = make([]AnchorHead, 0, len(s.Tail.before))
	for tenant := range s.Tail.before {
		a.Heads = append(a.Heads, anchorHead(tenant, s.Heads[tenant]))
	}
	return a
}

// AnchorHead returns what an anchor says of a tenant's log, but for its root.
func (s *State) AnchorHead(tenant string) AnchorHead { return anchorHead(tenant, s.Heads[tenant]) }

func anchorHead(tenant string, h Head) AnchorHead {
	return AnchorHead{Tenant: tenant, Scheme: h.Scheme, Epoch: h.Epoch, Size: h.Tree.Size, Head: h.Hash, Frontier: h.Tree.Frontier}
}

// Complete sorts the heads and computes their roots.
func (a *Anchor) Complete() {
	slices.SortFunc(a.Heads, func(x, y AnchorHead) int { return cmp.Compare(x.Tenant, y.Tenant) })
	for i := range a.Heads {
		tree := chain.Tree{Size: a.Heads[i].Size, Frontier: a.Heads[i].Frontier}
		a.Heads[i].Root = tree.Root()
	}
}

// headOf is the inverse of anchorHead.
func headOf(h *AnchorHead) Head {
	return Head{Scheme: h.Scheme, Epoch: h.Epoch, Hash: h.Head, Tree: chain.Tree{Size: h.Size, Frontier: h.Frontier}}
}

// Anchored moves the line's newest anchor on to a, whose text hashes to sum and
// which [State.Agrees] accepts. The state may have moved on since.
func (s *State) Anchored(a *Anchor, sum chain.Hash) {
	ref := &AnchorRef{Number: a.Number, SHA256: sum, Ordinal: a.Ordinal, Time: a.Time.Time, Keys: a.Keys}
	if len(a.Checkpoints) > 0 {
		ref.Checkpoints = a.Time.Time
	} else if s.Tail.Anchor != nil {
		ref.Checkpoints = s.Tail.Anchor.Checkpoints
	}
	at := make(map[string]Head, len(a.Heads))
	for i := range a.Heads {
		at[a.Heads[i].Tenant] = headOf(&a.Heads[i])
	}
	t := &s.Tail
	before := map[string]Head{}
	for tenant, h := range t.before {
		if anchored, ok := at[tenant]; ok {
			h = anchored
		}
		if h.Hash != s.Heads[tenant].Hash {
			before[tenant] = h
		}
	}
	behind, _ := slices.BinarySearchFunc(t.Segments, a.Ordinal+1, func(s AnchorSegment, n int64) int { return cmp.Compare(s.Ordinal, n) })
	t.Anchor, t.before, t.Segments, t.Rows = ref, before, slices.Clone(t.Segments[behind:]), 0
	for i := range t.Segments {
		t.Rows += t.Segments[i].Rows
	}
}

// ErrOtherAnchor: an anchor does not say what the line does.
var ErrOtherAnchor = errors.New("the anchor is not one of this line as it stands")

// Agrees returns nil if a is the next anchor of the line and says what the state
// says, of which it covers all; else an error that matches [ErrOtherAnchor].
// Time, keys, checkpoints and signatures are not its question.
func (s *State) Agrees(a *Anchor, archiveSHA256 chain.Hash) error {
	want := s.NextAnchor(archiveSHA256)
	want.Complete()
	if what := firstOther(want, a); what != "" {
		return fmt.Errorf("anchor %d: %w: it has another %s", a.Number, ErrOtherAnchor, what)
	}
	return nil
}

// firstOther names the first member in which two complete anchors differ.
func firstOther(want, a *Anchor) string {
	switch {
	case a.ArchiveID != want.ArchiveID || a.ArchiveSHA256 != want.ArchiveSHA256:
		return "archive"
	case a.Line() != want.Line():
		return "partition"
	case a.Number != want.Number:
		return "number"
	case !equalHash(a.Previous, want.Previous):
		return "anchor before it"
	case a.Ordinal != want.Ordinal:
		return "ordinal"
	case !slices.Equal(a.Segments, want.Segments):
		return "segment"
	case a.Totals != want.Totals:
		return "total"
	case !slices.EqualFunc(a.Heads, want.Heads, equalHeads):
		return "head"
	}
	return ""
}

func equalHeads(a, b AnchorHead) bool {
	return a.Tenant == b.Tenant && a.Scheme == b.Scheme && a.Epoch == b.Epoch && a.Size == b.Size && a.Head == b.Head && a.Root == b.Root &&
		slices.Equal(a.Frontier, b.Frontier)
}

// AtAnchor returns the state as it was at the line's newest known anchor: what
// segs, which followed it, advance to any state since.
func (s *State) AtAnchor() *State {
	c := s.Clone()
	for tenant, h := range s.Tail.before {
		if h.Hash == (chain.Hash{}) {
			delete(c.Heads, tenant)
		} else {
			c.Heads[tenant] = h
		}
	}
	t := &c.Tail
	t.Totals = s.Tail.totalsAtAnchor()
	t.Segments, t.Rows, t.before = nil, 0, nil
	c.Ordinal = 0
	if t.Anchor != nil {
		c.Ordinal = t.Anchor.Ordinal + 1
	}
	return c
}

func (t *Tail) totalsAtAnchor() AnchorCounts {
	c := t.Totals
	for i := range t.Segments {
		s := &t.Segments[i]
		c.Rows -= s.Rows
		c.Made -= s.Made
		c.Duplicates -= s.Duplicates
		c.Gaps -= s.Gaps
	}
	if len(t.Segments) > 0 {
		c.NextOffset = t.Segments[0].FirstOffset
	}
	return c
}

package archive

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerlake/ledgerlake/chain"
)

// ErrBreaks: bytes do not continue the line that they claim to be part of.
var ErrBreaks = errors.New("does not continue the line")

// A State is where a line stands: all that its next segment builds on.
type State struct {
	ArchiveID      string
	Line           Line
	Ordinal        int64       // of the next segment, from 0
	PreviousSHA256 *chain.Hash // of the newest segment's whole object; nil before ordinal 0
	NextOffset     int64       // the first Kafka offset not accounted for; -1 before ordinal 0
	LeaderEpoch    int32       // of the newest record, -1 if unknown
	FetchEpoch     int32       // of the offset in front of NextOffset, -1 where a gap lies there: Kafka may have begun another epoch in it
	ArchivedAt     int64       // microseconds; no later row of the line is before it
	Heads          map[string]Head
	Tail           Tail       // what is not anchored yet
	Voided         []Voided   // the segments just before Ordinal, which the next one must declare void
	Scheme         string     // of logs that begin; "" is chain.SchemeV1
	Keys           chain.Keys // of keyed logs, by which rows of the line are checked that are read
}

// A Head is the state of one log: its newest row and its tree. A Head's tree
// is never changed in place; a later state holds another one.
type Head struct {
	Scheme string
	Epoch  int32
	Hash   chain.Hash
	Tree   chain.Tree // one leaf a row; its size is the next row's seq
}

// NewState returns the state of a line without segments.
func NewState(archiveID string, l Line) *State {
	return &State{ArchiveID: archiveID, Line: l, NextOffset: -1, LeaderEpoch: -1, FetchEpoch: -1, Heads: map[string]Head{}}
}

// Clone returns a state that may be advanced apart from s.
func (s *State) Clone() *State {
	c := *s
	c.Heads = maps.Clone(s.Heads)
	c.Tail = s.Tail.clone()
	return &c
}

// Log returns the log of a tenant on the line.
func (s *State) Log(tenant string) chain.Log {
	return chain.Log{ArchiveID: s.ArchiveID, Tenant: tenant, Topic: s.Line.Topic, TopicID: s.Line.TopicID, Partition: s.Line.Partition}
}

// Head returns the head of a tenant's log, which is its genesis where the log
// has no rows: that of s.Scheme.
func (s *State) Head(tenant string) Head {
	if h, ok := s.Heads[tenant]; ok {
		return h
	}
	return s.newHead(cmp.Or(s.Scheme, chain.SchemeV1), tenant)
}

func (s *State) newHead(scheme, tenant string) Head {
	return Head{Scheme: scheme, Hash: chain.Genesis(scheme, s.Log(tenant))}
}

// headFor is Head of what a segment says of a log. Whoever begins a log says by
// which scheme.
func (s *State) headFor(l LogInterval) Head {
	_, begun := s.Heads[l.Tenant]
	if known := l.Scheme == chain.SchemeV1 || l.Scheme == chain.SchemeHMACv1; begun || !known {
		return s.Head(l.Tenant)
	}
	return s.newHead(l.Scheme, l.Tenant)
}

// Continues returns nil if seg is the next segment of the line as far as its
// metadata can tell, else an error that matches [ErrBreaks].
func (s *State) Continues(seg *Segment) error {
	switch {
	case seg.ArchiveID != s.ArchiveID:
		return fmt.Errorf("%w: archive %s, not %s", ErrBreaks, seg.ArchiveID, s.ArchiveID)
	case seg.Line() != s.Line:
		return fmt.Errorf("%w: it is of %v", ErrBreaks, seg.Line())
	case seg.Ordinal != s.Ordinal:
		return fmt.Errorf("%w: ordinal %d, not %d", ErrBreaks, seg.Ordinal, s.Ordinal)
	case s.NextOffset >= 0 && seg.FirstOffset != s.NextOffset:
		return fmt.Errorf("%w: begins at offset %d, not %d", ErrBreaks, seg.FirstOffset, s.NextOffset)
	case !slices.Equal(seg.Voided, s.Voided):
		return fmt.Errorf("%w: it declares segments void, or not those that are", ErrBreaks)
	case !equalHash(seg.PreviousSHA256, s.PreviousSHA256):
		return fmt.Errorf("%w: previousSha256 is that of another object", ErrBreaks)
	}
	for _, l := range seg.Logs {
		if err := s.logContinues(l); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) logContinues(l LogInterval) error {
	h := s.headFor(l)
	if len(s.Voided) > 0 {
		h.Epoch++ // which its chain-reset row begins
	}
	switch {
	case l.FirstSeq != h.Tree.Size:
		return fmt.Errorf("%w: a log begins at seq %d, not %d", ErrBreaks, l.FirstSeq, h.Tree.Size)
	case l.HeadIn != h.Hash:
		return fmt.Errorf("%w: bytes do not continue head %s", ErrBreaks, h.Hash)
	case l.Epoch != h.Epoch || l.Scheme != h.Scheme:
		return fmt.Errorf("%w: a log goes on as %s epoch %d, not %s epoch %d", ErrBreaks, l.Scheme, l.Epoch, h.Scheme, h.Epoch)
	case l.Size != l.FirstSeq+l.Rows:
		return fmt.Errorf("%w: a log of %d rows from seq %d has size %d", ErrBreaks, l.Rows, l.FirstSeq, l.Size)
	}
	if err := chain.CheckFrontier(l.Size, l.Frontier); err != nil {
		return fmt.Errorf("%w: %w", ErrBreaks, err)
	}
	return nil
}

// Follows returns nil if a segment that was read whole is the next of the line:
// [State.Continues], and the trees that it states are those that its rows give.
func (s *State) Follows(o *SegmentObject) error {
	if err := s.Continues(o.Segment); err != nil {
		return err
	}
	trees := map[string]*chain.Tree{}
	for _, l := range o.Logs {
		if trees[l.Tenant] != nil {
			return fmt.Errorf("%w: a log is listed twice", ErrBreaks)
		}
		h := s.Head(l.Tenant)
		tree := h.Tree.Clone()
		trees[l.Tenant] = &tree
	}
	for i := range o.Rows {
		trees[o.Rows[i].TenantID.S].Append(o.Rows[i].RowHash)
	}
	for _, l := range o.Logs {
		if tree := trees[l.Tenant]; tree.Size != l.Size || !slices.Equal(tree.Frontier, l.Frontier) {
			return fmt.Errorf("%w: the tree of a log is not the one of its rows", ErrBreaks)
		}
	}
	return nil
}

// Take moves the state past a segment that was read whole.
func (s *State) Take(o *SegmentObject) { s.Advance(o.Segment, o.SHA256, o.Bytes, o.ArchivedAt()) }

// Advance moves the state past a segment that is durable: seg, whose object of
// size bytes hashes to sum and whose newest row (if any) was stamped at
// archivedAt.
func (s *State) Advance(seg *Segment, sum chain.Hash, size, archivedAt int64) {
	s.Tail.add(seg, sum, size, s.Heads)
	s.Ordinal = seg.Ordinal + 1
	s.PreviousSHA256, s.Voided = &sum, nil
	s.NextOffset = seg.NextOffset
	if seg.LeaderEpoch >= 0 {
		s.LeaderEpoch = seg.LeaderEpoch
	}
	s.FetchEpoch = seg.LeaderEpoch
	if n := len(seg.Gaps); n > 0 && seg.Gaps[n-1].To == seg.NextOffset {
		s.FetchEpoch = -1
	}
	s.ArchivedAt = max(s.ArchivedAt, archivedAt)
	for _, l := range seg.Logs {
		s.Heads[l.Tenant] = headAfter(l)
	}
}

func headAfter(l LogInterval) Head {
	return Head{Scheme: l.Scheme, Epoch: l.Epoch, Hash: l.HeadOut, Tree: chain.Tree{Size: l.Size, Frontier: l.Frontier}}
}

func equalHash(a, b *chain.Hash) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

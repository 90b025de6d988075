package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/chain"
)

// NewestAnchor finds the number of a line's newest anchor, -1 where there is
// none, by doubling and halving: numbers have no holes. hint is where it may be,
// -1 where nothing is known. The cost is two reads of one byte for each doubling
// of the distance from the hint.
func NewestAnchor(ctx context.Context, src Source, l Line, hint int64) (int64, error) {
	s := search{ctx: ctx, src: src, line: l}
	low, high := int64(-1), int64(-1) // there, and not there
	if hint >= 0 {
		if s.has(hint) {
			low = hint
		} else {
			high = hint
		}
	}
	for step := int64(1); high < 0 && s.err == nil; step *= 2 {
		if n := low + step; s.has(n) {
			low = n
		} else {
			high = n
		}
	}
	for high-low > 1 && s.err == nil {
		if n := low + (high-low)/2; s.has(n) {
			low = n
		} else {
			high = n
		}
	}
	return low, s.err
}

// A search asks a bucket for numbers of anchors.
type search struct {
	ctx  context.Context
	src  Source
	line Line
	err  error
}

func (s *search) has(number int64) bool {
	if s.err != nil {
		return false
	}
	_, _, err := s.src.GetTail(s.ctx, AnchorKey(s.line, number), 1)
	if err != nil && !errors.Is(err, ErrNotFound) {
		s.err = fmt.Errorf("anchor %d: %w", number, err)
	}
	return err == nil
}

// AnchoredState moves st, the state of a line without segments, behind its
// anchor trail[n-1], whose text hashes to sum, and returns it: trail are the
// anchors from the last full one on, each of which follows the one before it. The epochs of Kafka and the time of the newest
// row are for [State.Covered] to fill in, and PreviousSHA256 too where no anchor
// of the trail lists a segment.
func AnchoredState(st *State, trail []*Anchor, sum chain.Hash) *State {
	newest := trail[len(trail)-1]
	st.Ordinal = newest.Ordinal + 1
	if st.Ordinal > 0 {
		st.NextOffset = newest.Totals.NextOffset
	}
	for _, a := range trail {
		for i := range a.Heads {
			st.Heads[a.Heads[i].Tenant] = headOf(&a.Heads[i])
		}
	}
	st.Tail.Totals = newest.Totals
	for _, a := range trail { // for the time of the newest checkpoints
		st.Anchored(a, sum)
	}
	return st
}

// Covered fills in what only the newest covered segment says, read whole.
func (s *State) Covered(o *SegmentObject) {
	s.PreviousSHA256 = &o.SHA256
	s.LeaderEpoch, s.FetchEpoch = o.LeaderEpoch, o.LeaderEpoch
	if n := len(o.Gaps); n > 0 && o.Gaps[n-1].To == o.NextOffset {
		s.FetchEpoch = -1
	}
	s.ArchivedAt = max(s.ArchivedAt, o.ArchivedAt())
}

// FollowsAnchor returns nil if a follows the anchor before it, whose text hashes
// to sum.
func (a *Anchor) FollowsAnchor(before *Anchor, sum chain.Hash) error {
	switch {
	case a.Number != before.Number+1 || a.Previous == nil || *a.Previous != sum:
		return fmt.Errorf("anchor %d: %w: it does not follow the one before it", a.Number, ErrOtherAnchor)
	case a.Ordinal < before.Ordinal || a.Time.Before(before.Time.Time):
		return fmt.Errorf("anchor %d: %w: it goes back", a.Number, ErrOtherAnchor)
	}
	return nil
}

// RecentSegments returns the segments that anchors list, as many of the newest
// ones as hold so many rows, oldest first; and how many rows are still missing.
func RecentSegments(trail []*Anchor, rows int64) (recent []SegmentRef, missing int64) {
	for _, a := range slices.Backward(trail) {
		for i := range slices.Backward(a.Segments) {
			if rows <= 0 {
				break
			}
			recent = append(recent, SegmentRef{Ordinal: a.Segments[i].Ordinal, Rows: a.Segments[i].Rows, FirstOffset: a.Segments[i].FirstOffset})
			rows -= a.Segments[i].Rows
		}
	}
	slices.Reverse(recent)
	return recent, rows
}

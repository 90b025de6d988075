package control

import (
	"cmp"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A Named is a stretch of rows of one log that a receipt names.
type Named struct {
	First, Last int64  // seq, both in it
	Order       string // id of the redaction
	Erasure
	Anchored bool  // the receipt counts
	At       int64 // when its last part was archived, microseconds
}

// namedRows are the stretches of one log that receipts name.
type namedRows struct {
	list    []Named // in the order of First
	highest []int64 // the highest Last up to there
}

func (n *namedRows) seal() {
	slices.SortStableFunc(n.list, func(a, b Named) int { return cmp.Compare(a.First, b.First) })
	n.highest = make([]int64, len(n.list))
	highest := int64(-1)
	for i := range n.list {
		highest = max(highest, n.list[i].Last)
		n.highest[i] = highest
	}
}

// within returns the stretches that have rows of first to last, in order. It may
// be called on nil.
func (n *namedRows) within(first, last int64) (all []Named) {
	if n == nil {
		return nil
	}
	from, _ := slices.BinarySearch(n.highest, first)
	for _, s := range n.list[from:] {
		if s.First > last {
			break
		}
		if s.Last >= first {
			all = append(all, s)
		}
	}
	return all
}

// Named returns the stretches that receipts name and that have rows from first to
// last of a log, in order.
func (t *Tenant) Named(log archive.Line, first, last int64) []Named {
	if t == nil {
		return nil
	}
	return t.named[log].within(first, last)
}

// A Sweep goes over the rows of a log, and knows what receipts name each.
type Sweep struct {
	ahead []Named
	now   []Named
}

// Sweep returns the sweep over the rows from first to last of a log.
func (t *Tenant) Sweep(log archive.Line, first, last int64) *Sweep {
	return &Sweep{ahead: t.Named(log, first, last)}
}

// At returns what names the row at seq, which does not go back.
func (s *Sweep) At(seq int64) []Named {
	if len(s.now) > 0 {
		s.now = slices.DeleteFunc(s.now, func(n Named) bool { return n.Last < seq })
	}
	for len(s.ahead) > 0 && s.ahead[0].First <= seq {
		if s.ahead[0].Last >= seq {
			s.now = append(s.now, s.ahead[0])
		}
		s.ahead = s.ahead[1:]
	}
	return s.now
}

package proof

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/ledgerlake/ledgerlake/chain"
)

// A seqSpan is the rows from lo (in it) to hi (not in it) of a log: the leaves
// below one node of its tree, where both are of one of its splits.
type seqSpan struct{ lo, hi int64 }

// split returns the two halves of a node of more than one leaf (RFC 6962,
// section 2.1): the left one has the largest power of two below its size.
func (s seqSpan) split() (left, right seqSpan) {
	k := int64(1) << (bits.Len64(uint64(s.hi-s.lo-1)) - 1)
	return seqSpan{s.lo, s.lo + k}, seqSpan{s.lo + k, s.hi}
}

// frontierSpans returns the spans of the perfect subtrees of a tree, largest
// first.
func frontierSpans(size int64) (spans []seqSpan) {
	for lo := int64(0); lo < size; {
		n := int64(1) << (bits.Len64(uint64(size-lo)) - 1)
		spans = append(spans, seqSpan{lo, lo + n})
		lo += n
	}
	return spans
}

// pathSpans returns the spans of an inclusion path, lowest first (RFC 6962,
// section 2.1.1).
func pathSpans(size, index int64) (spans []seqSpan) {
	for s := (seqSpan{0, size}); s.hi-s.lo > 1; {
		left, right := s.split()
		if index < left.hi {
			s, spans = left, append(spans, right)
		} else {
			s, spans = right, append(spans, left)
		}
	}
	for i, j := 0, len(spans)-1; i < j; i, j = i+1, j-1 {
		spans[i], spans[j] = spans[j], spans[i]
	}
	return spans
}

// consistencySpans returns the spans of a consistency proof (RFC 6962, section
// 2.1.2), in its order.
func consistencySpans(from, to int64) []seqSpan {
	if from == 0 || from == to {
		return nil
	}
	return subproofSpans(seqSpan{0, to}, from, true)
}

func subproofSpans(s seqSpan, from int64, whole bool) []seqSpan {
	if from == s.hi {
		if whole {
			return nil
		}
		return []seqSpan{s}
	}
	left, right := s.split()
	if from <= left.hi {
		return append(subproofSpans(left, from, whole), right)
	}
	return append(subproofSpans(right, from, false), left)
}

// rangeSpans returns the spans beside the rows from lo to hi that lead to the
// root of a tree of size rows, from left to right.
func rangeSpans(size int64, rows seqSpan) (spans []seqSpan) {
	var walk func(seqSpan)
	walk = func(s seqSpan) {
		switch {
		case s.hi <= rows.lo || s.lo >= rows.hi:
			spans = append(spans, s)
		case s.hi-s.lo > 1:
			left, right := s.split()
			walk(left)
			walk(right)
		}
	}
	walk(seqSpan{0, size})
	return spans
}

// rangeRoot returns the root that the hashes of consecutive rows from the row
// first on, and the nodes of rangeSpans beside them, lead to. Too few nodes, or
// too many, are an error.
func rangeRoot(size, first int64, hashes, nodes []chain.Hash) (root chain.Hash, err error) {
	rows := seqSpan{first, first + int64(len(hashes))}
	if first < 0 || len(hashes) == 0 || rows.hi > size {
		return root, fmt.Errorf("rows %d to %d in a tree of %d: %w", first, rows.hi-1, size, chain.ErrProof)
	}
	var walk func(seqSpan) chain.Hash
	walk = func(s seqSpan) chain.Hash {
		switch {
		case s.hi <= rows.lo || s.lo >= rows.hi:
			if len(nodes) == 0 {
				err = fmt.Errorf("too few nodes: %w", chain.ErrProof)
				return chain.Hash{}
			}
			h := nodes[0]
			nodes = nodes[1:]
			return h
		case s.hi-s.lo == 1:
			return chain.LeafHash(hashes[s.lo-first])
		}
		left, right := s.split()
		h := walk(left)
		return chain.NodeHash(h, walk(right))
	}
	root = walk(seqSpan{0, size})
	if err == nil && len(nodes) > 0 {
		err = fmt.Errorf("too many nodes: %w", chain.ErrProof)
	}
	return root, err
}

// A forest is what is known of a log's tree: roots of subtrees, and hashes of
// rows.
type forest struct {
	nodes map[seqSpan]chain.Hash
	rows  map[int64]chain.Hash // row_hash by seq
	// tile returns the root of a perfect subtree from a cache, if it is there.
	tile func(seqSpan) (chain.Hash, bool)
}

func newForest() *forest {
	return &forest{nodes: map[seqSpan]chain.Hash{}, rows: map[int64]chain.Hash{}}
}

// addFrontier adds the perfect subtrees of a tree of size rows. They are as good
// as where they come from: what is computed of them has to be compared with a
// root.
func (f *forest) addFrontier(size int64, frontier []chain.Hash) {
	for i, s := range frontierSpans(size) {
		f.nodes[s] = frontier[i]
	}
}

// addRows adds the hashes of consecutive rows.
func (f *forest) addRows(first int64, hashes []chain.Hash) {
	for i, h := range hashes {
		f.rows[first+int64(i)] = h
	}
}

// take adds a stretch of rows: those below keep one by one, the others as the
// largest subtrees that they fill, so that it stays small. Of those nothing but
// the roots of spans from keep on can be told.
func (f *forest) take(st stretch, keep int64) {
	single := min(max(keep-st.first, 0), int64(len(st.hashes)))
	f.addRows(st.first, st.hashes[:single])
	for lo := st.first + single; lo < st.end(); {
		n := int64(1) << min(bits.TrailingZeros64(uint64(lo)), bits.Len64(uint64(st.end()-lo))-1)
		var t chain.Tree
		for _, h := range st.hashes[lo-st.first : lo-st.first+n] {
			t.Append(h)
		}
		f.nodes[seqSpan{lo, lo + n}] = t.Root()
		lo += n
	}
}

// node returns the root of a span if that is known without a look below it.
func (f *forest) node(s seqSpan) (chain.Hash, bool) {
	if h, ok := f.nodes[s]; ok {
		return h, true
	}
	if h, ok := f.rows[s.lo]; ok && s.hi-s.lo == 1 {
		return chain.LeafHash(h), true
	}
	if f.tile != nil {
		if h, ok := f.tile(s); ok {
			f.nodes[s] = h
			return h, true
		}
	}
	return chain.Hash{}, false
}

// missing returns the rows whose hashes are needed to know the roots of spans:
// from the first to behind the last of them. The empty span is none.
func (f *forest) missing(spans []seqSpan) (rows seqSpan) {
	var walk func(seqSpan)
	walk = func(s seqSpan) {
		if _, ok := f.node(s); ok {
			return
		}
		if s.hi-s.lo > 1 {
			left, right := s.split()
			walk(left)
			walk(right)
			return
		}
		if rows == (seqSpan{}) {
			rows = s
		}
		rows.lo, rows.hi = min(rows.lo, s.lo), max(rows.hi, s.hi)
	}
	for _, s := range spans {
		walk(s)
	}
	return rows
}

// errUnknownNode: a row is missing that a root is made of.
var errUnknownNode = errors.New("the tree is not known as far as that")

// roots returns the roots of spans.
func (f *forest) roots(spans []seqSpan) ([]chain.Hash, error) {
	hashes := make([]chain.Hash, len(spans))
	for i, s := range spans {
		h, err := f.root(s)
		if err != nil {
			return nil, err
		}
		hashes[i] = h
	}
	return hashes, nil
}

func (f *forest) root(s seqSpan) (chain.Hash, error) {
	if h, ok := f.node(s); ok {
		return h, nil
	}
	if s.hi-s.lo <= 1 {
		return chain.Hash{}, fmt.Errorf("row %d: %w", s.lo, errUnknownNode)
	}
	a, b := s.split()
	left, err := f.root(a)
	if err != nil {
		return chain.Hash{}, err
	}
	right, err := f.root(b)
	return chain.NodeHash(left, right), err
}

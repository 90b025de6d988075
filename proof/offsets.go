package proof

import (
	"math/bits"
	"slices"
)

// chunkOffsets is how many offsets one chunk of an offsetSet has.
const chunkOffsets = 1024

// An offsetSet holds offsets of rows, a bit each, as long as their segments may
// still be asked for: offsets below what all files that are left begin with are
// dropped.
type offsetSet struct {
	chunks map[int64]*[chunkOffsets / 64]uint64
}

// add adds an offset, and reports whether it was not there.
func (s *offsetSet) add(offset int64) bool {
	if s.chunks == nil {
		s.chunks = map[int64]*[chunkOffsets / 64]uint64{}
	}
	c := s.chunks[offset/chunkOffsets]
	if c == nil {
		c = new([chunkOffsets / 64]uint64)
		s.chunks[offset/chunkOffsets] = c
	}
	word, bit := &c[offset%chunkOffsets/64], uint64(1)<<(offset%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// take removes the offsets from first to next, which is not in it, and returns
// how many there were.
func (s *offsetSet) take(first, next int64) (n int64) {
	if first >= next {
		return 0
	}
	from, to := first/chunkOffsets, (next-1)/chunkOffsets
	if to-from > int64(len(s.chunks)) {
		for at := range s.chunks {
			if from <= at && at <= to {
				n += s.takeFrom(at, first, next)
			}
		}
		return n
	}
	for at := from; at <= to; at++ {
		n += s.takeFrom(at, first, next)
	}
	return n
}

// takeFrom does the same in one chunk.
func (s *offsetSet) takeFrom(at, first, next int64) (n int64) {
	c := s.chunks[at]
	if c == nil {
		return 0
	}
	left := uint64(0)
	for i := range c {
		begin := at*chunkOffsets + int64(i)*64
		mask := span(first-begin, next-begin)
		n += int64(bits.OnesCount64(c[i] & mask))
		c[i] &^= mask
		left |= c[i]
	}
	if left == 0 {
		delete(s.chunks, at)
	}
	return n
}

// span returns the bits from first to next, which is not in it, as far as they
// are bits of a word.
func span(first, next int64) uint64 {
	first, next = min(max(first, 0), 64), min(max(next, 0), 64)
	return ^uint64(0) << first &^ (^uint64(0) << next)
}

// least returns the least offset that is left.
func (s *offsetSet) least() (offset int64, ok bool) {
	if len(s.chunks) == 0 {
		return 0, false
	}
	at := int64(1<<63 - 1)
	for c := range s.chunks {
		at = min(at, c)
	}
	i := slices.IndexFunc(s.chunks[at][:], func(w uint64) bool { return w != 0 })
	return at*chunkOffsets + int64(i)*64 + int64(bits.TrailingZeros64(s.chunks[at][i])), true
}

package chain

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
)

// LeafHash returns the leaf of a row in its log's tree (RFC 6962, section 2.1).
//
//	leaf = SHA256(0x00 row_hash)
func LeafHash(rowHash Hash) Hash {
	var b [1 + 32]byte
	copy(b[1:], rowHash[:])
	return sha256.Sum256(b[:])
}

// NodeHash returns the parent of two nodes (RFC 6962, section 2.1).
//
//	node = SHA256(0x01 left right)
func NodeHash(left, right Hash) Hash {
	var b [1 + 64]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[33:], right[:])
	return sha256.Sum256(b[:])
}

// A Tree is the compact state of a log's RFC 6962 tree: as little as it takes
// to append to it and to tell its root. It has one leaf per row, in seq order,
// across epochs.
//
// The zero Tree is the empty tree. A Tree read from outside must pass
// [CheckFrontier] before it is used. Not for concurrent use.
type Tree struct {
	Size     int64  // leaves
	Frontier []Hash // roots of the perfect subtrees, largest first: one per bit of Size
}

// ErrFrontier: a frontier does not belong to a tree of that size.
var ErrFrontier = errors.New("frontier does not fit the size")

// CheckFrontier returns an error matching [ErrFrontier] unless a tree of size
// leaves has a frontier of that length: one hash per 1 in the binary size. It
// cannot tell whether the hashes are the right ones.
func CheckFrontier(size int64, frontier []Hash) error {
	if size < 0 || bits.OnesCount64(uint64(size)) != len(frontier) {
		return fmt.Errorf("size %d, %d hashes: %w", size, len(frontier), ErrFrontier)
	}
	return nil
}

// Append adds the leaf of the next row. It panics where [CheckFrontier] fails.
func (t *Tree) Append(rowHash Hash) {
	t.mustFit()
	h := LeafHash(rowHash)
	for n := t.Size; n&1 == 1; n >>= 1 {
		last := len(t.Frontier) - 1
		h = NodeHash(t.Frontier[last], h)
		t.Frontier = t.Frontier[:last]
	}
	t.Frontier = append(t.Frontier, h)
	t.Size++
}

// Root returns the tree's root; that of the empty tree is SHA256(""). It panics
// where [CheckFrontier] fails.
func (t *Tree) Root() Hash {
	t.mustFit()
	if t.Size == 0 {
		return sha256.Sum256(nil)
	}
	last := len(t.Frontier) - 1
	root := t.Frontier[last]
	for i := last - 1; i >= 0; i-- {
		root = NodeHash(t.Frontier[i], root)
	}
	return root
}

// Clone returns a copy of t that shares no memory with it.
func (t *Tree) Clone() Tree {
	return Tree{Size: t.Size, Frontier: append([]Hash(nil), t.Frontier...)}
}

func (t *Tree) mustFit() {
	if err := CheckFrontier(t.Size, t.Frontier); err != nil {
		panic("chain: " + err.Error())
	}
}

package chain

import (
	"errors"
	"fmt"
	"math/bits"
)

// ErrProof: a proof does not show what it is said to show.
var ErrProof = errors.New("proof does not hold")

// ProveInclusion returns the proof that the row at index is in the tree of
// rowHashes: the siblings on the way to the root, lowest first (RFC 6962,
// section 2.1.1). index counts from 0. It panics if there is no such row. It
// hashes every row once.
//
//	PATH(m, D[n]) = PATH(m, D[0:k]) : MTH(D[k:n])      if m < k, k the largest power of two below n
//	              = PATH(m - k, D[k:n]) : MTH(D[0:k])  otherwise
func ProveInclusion(rowHashes []Hash, index int64) []Hash {
	n := int64(len(rowHashes))
	if index < 0 || index >= n {
		panic(fmt.Sprintf("chain: inclusion of row %d in a tree of %d", index, n))
	}
	if n == 1 {
		return nil
	}
	if k := split(n); index < k {
		return append(ProveInclusion(rowHashes[:k], index), rootOf(rowHashes[k:]))
	} else {
		return append(ProveInclusion(rowHashes[k:], index-k), rootOf(rowHashes[:k]))
	}
}

// CheckInclusion checks that the row at index is in the tree of size leaves
// that has root. It returns nil, or an error matching [ErrProof] (RFC 9162,
// section 2.1.3.2).
func CheckInclusion(root Hash, size, index int64, rowHash Hash, proof []Hash) error {
	if index < 0 || index >= size {
		return fmt.Errorf("inclusion of row %d in a tree of %d: %w", index, size, ErrProof)
	}
	node, last, h := index, size-1, LeafHash(rowHash)
	for _, sibling := range proof {
		if last == 0 {
			return fmt.Errorf("inclusion of row %d: proof is too long: %w", index, ErrProof)
		}
		if node&1 == 1 || node == last {
			h = NodeHash(sibling, h)
			// A last node without a sibling rises as it is.
			for node&1 == 0 && node != 0 {
				node, last = node>>1, last>>1
			}
		} else {
			h = NodeHash(h, sibling)
		}
		node, last = node>>1, last>>1
	}
	if last != 0 || h != root {
		return fmt.Errorf("inclusion of row %d in a tree of %d: %w", index, size, ErrProof)
	}
	return nil
}

// ProveConsistency returns the proof that the tree of rowHashes continues the
// tree of its first from rows (RFC 6962, section 2.1.2). It is empty where from
// is 0 or all of them, and panics where from is more. It hashes every row once.
//
//	PROOF(m, D[n])        = SUBPROOF(m, D[n], true)
//	SUBPROOF(m, D[m], b)  = {} if b, else MTH(D[m])
//	SUBPROOF(m, D[n], b)  = SUBPROOF(m, D[0:k], b) : MTH(D[k:n])          if m <= k
//	                      = SUBPROOF(m - k, D[k:n], false) : MTH(D[0:k])  otherwise
func ProveConsistency(rowHashes []Hash, from int64) []Hash {
	n := int64(len(rowHashes))
	if from < 0 || from > n {
		panic(fmt.Sprintf("chain: consistency of a tree of %d with its first %d rows", n, from))
	}
	if from == 0 {
		return nil
	}
	return subproof(rowHashes, from, true)
}

func subproof(rowHashes []Hash, from int64, whole bool) []Hash {
	n := int64(len(rowHashes))
	switch k := split(n); {
	case from == n && whole:
		return nil
	case from == n:
		return []Hash{rootOf(rowHashes)}
	case from <= k:
		return append(subproof(rowHashes[:k], from, whole), rootOf(rowHashes[k:]))
	default:
		return append(subproof(rowHashes[k:], from-k, false), rootOf(rowHashes[:k]))
	}
}

// CheckConsistency checks that the tree of to leaves that has newRoot continues
// the tree of from leaves that has oldRoot. Every tree continues the empty one.
// It returns nil, or an error matching [ErrProof] (RFC 9162, section 2.1.4.2).
func CheckConsistency(from, to int64, oldRoot, newRoot Hash, proof []Hash) error {
	fail := func(why string) error {
		return fmt.Errorf("consistency of %d and %d rows: %s: %w", from, to, why, ErrProof)
	}
	switch {
	case from < 0 || from > to:
		return fail("the older tree is the larger one")
	case from == 0 || from == to:
		return checkTrivial(from, to, oldRoot, newRoot, proof, fail)
	}
	if isPowerOfTwo(from) {
		proof = append([]Hash{oldRoot}, proof...)
	}
	if len(proof) == 0 {
		return fail("proof is too short")
	}
	older, newer, left := foldConsistency(from, to, proof)
	switch {
	case left != 0:
		return fail("proof has the wrong length")
	case older != oldRoot:
		return fail("old root differs")
	case newer != newRoot:
		return fail("new root differs")
	}
	return nil
}

// checkTrivial is CheckConsistency where there is nothing to prove by hashes.
func checkTrivial(from, to int64, oldRoot, newRoot Hash, proof []Hash, fail func(string) error) error {
	empty := (&Tree{}).Root()
	switch {
	case len(proof) != 0:
		return fail("proof is too long")
	case from == 0 && oldRoot != empty:
		return fail("the empty tree has another root")
	case from == to && oldRoot != newRoot:
		return fail("roots differ")
	}
	return nil
}

// foldConsistency recomputes both roots from a proof that begins with a node of
// the older tree. left is not 0 where the proof has the wrong length.
func foldConsistency(from, to int64, proof []Hash) (older, newer Hash, left int64) {
	// Both trees share the subtree at the end of the older one; go up to it.
	up := bits.TrailingZeros64(^uint64(from - 1))
	node, last := (from-1)>>up, (to-1)>>up
	older, newer = proof[0], proof[0]
	for _, h := range proof[1:] {
		if last == 0 {
			return older, newer, -1
		}
		if node&1 == 1 || node == last {
			older, newer = NodeHash(h, older), NodeHash(h, newer)
			for node&1 == 0 && node != 0 {
				node, last = node>>1, last>>1
			}
		} else {
			newer = NodeHash(newer, h)
		}
		node, last = node>>1, last>>1
	}
	return older, newer, last
}

// rootOf returns MTH(D[n]).
func rootOf(rowHashes []Hash) Hash {
	var t Tree
	for _, h := range rowHashes {
		t.Append(h)
	}
	return t.Root()
}

// split returns the largest power of two smaller than n, and 0 for n < 2.
func split(n int64) int64 {
	if n < 2 {
		return 0
	}
	return 1 << (bits.Len64(uint64(n-1)) - 1)
}

func isPowerOfTwo(n int64) bool { return n&(n-1) == 0 }

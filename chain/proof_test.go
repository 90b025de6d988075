package chain

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// A proof holds for one leaf, one index and one root. Every other question must
// get no for an answer.
func TestInclusionProofsProveNothingElse(t *testing.T) {
	rows, _ := numberedRows(100)
	for size := int64(1); size <= 100; size += 1 + size/8 {
		root := treeOf(rows[:size]).Root()
		for index := range size {
			good := ProveInclusion(rows[:size], index)
			refuse := func(what string, root Hash, size, index int64, row Hash, proof []Hash) {
				t.Helper()
				if err := CheckInclusion(root, size, index, row, proof); !errors.Is(err, ErrProof) {
					t.Errorf("row %d of %d, %s: %v", index, size, what, err)
				}
			}
			refuse("another row", root, size, index, otherSum, good)
			refuse("another root", otherSum, size, index, rows[index], good)
			refuse("no such index", root, size, size, rows[index], good)
			refuse("negative index", root, size, -1, rows[index], good)
			refuse("one hash more", root, size, index, rows[index], append(slices.Clone(good), Hash{}))
			refuse("one hash more in front", root, size, index, rows[index], append([]Hash{{}}, good...))
			for i := range good {
				refuse("one hash less", root, size, index, rows[index], slices.Delete(slices.Clone(good), i, i+1))
				changed := slices.Clone(good)
				changed[i][31] ^= 1
				refuse("a changed hash", root, size, index, rows[index], changed)
			}
			for other := range size {
				if other != index {
					refuse("another index", root, size, other, rows[index], good)
				}
			}
		}
	}
	two := treeOf(rows[:2]).Root()
	if err := CheckInclusion(two, 1, 0, rows[1], []Hash{LeafHash(rows[0])}); !errors.Is(err, ErrProof) {
		t.Errorf("a row of a larger tree, said to be the only one: %v", err)
	}
	if err := CheckInclusion(Hash{}, 0, 0, Hash{}, nil); !errors.Is(err, ErrProof) {
		t.Errorf("a row of the empty tree: %v", err)
	}
}

func TestConsistencyProofsProveNothingElse(t *testing.T) {
	rows, _ := numberedRows(70)
	for to := int64(1); to <= 70; to += 1 + to/8 {
		newer := treeOf(rows[:to]).Root()
		for from := int64(1); from <= to; from++ {
			older, good := treeOf(rows[:from]).Root(), ProveConsistency(rows[:to], from)
			refuse := func(what string, from, to int64, older, newer Hash, proof []Hash) {
				t.Helper()
				if err := CheckConsistency(from, to, older, newer, proof); !errors.Is(err, ErrProof) {
					t.Errorf("%d and %d, %s: %v", from, to, what, err)
				}
			}
			refuse("another old root", from, to, otherSum, newer, good)
			refuse("another new root", from, to, older, otherSum, good)
			if len(good) > 0 {
				refuse("no proof", from, to, older, newer, nil)
			}
			refuse("negative", -1, to, older, newer, good)
			refuse("one hash more", from, to, older, newer, append(slices.Clone(good), Hash{}))
			refuse("one hash more in front", from, to, older, newer, append([]Hash{older}, good...))
			if from != to {
				refuse("turned round", to, from, newer, older, good)
				refuse("same size", from, from, older, newer, good)
			}
			for i := range good {
				refuse("one hash less", from, to, older, newer, slices.Delete(slices.Clone(good), i, i+1))
				changed := slices.Clone(good)
				changed[i][0] ^= 1
				refuse("a changed hash", from, to, older, newer, changed)
			}
		}
	}
}

// Every tree continues the empty one, and needs no proof of it; but the empty
// tree has only one root.
func TestConsistencyWithTheEmptyTree(t *testing.T) {
	rows, _ := numberedRows(5)
	empty, root := treeOf(nil).Root(), treeOf(rows).Root()
	if proof := ProveConsistency(rows, 0); len(proof) != 0 {
		t.Errorf("proof %v", proof)
	}
	for _, c := range []struct {
		name         string
		to           int64
		older, newer Hash
		proof        []Hash
		good         bool
	}{
		{"a tree", 5, empty, root, nil, true},
		{"the empty tree", 0, empty, empty, nil, true},
		{"another root of the empty tree", 5, otherSum, root, nil, false},
		{"another new root of the empty tree", 0, empty, root, nil, false},
		{"a proof", 5, empty, root, []Hash{root}, false},
	} {
		if err := CheckConsistency(0, c.to, c.older, c.newer, c.proof); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestProofsOfWhatIsNotTherePanic(t *testing.T) {
	rows, _ := numberedRows(5)
	for _, n := range []int64{-1, 5, 6} {
		requirePanic(t, "inclusion", func() { ProveInclusion(rows, n) })
	}
	for _, n := range []int64{-1, 6} {
		requirePanic(t, "consistency", func() { ProveConsistency(rows, n) })
	}
}

// Proofs come from outside: whatever they are, checks answer.
func FuzzCheckProofs(f *testing.F) {
	f.Add(int64(7), int64(3), []byte{1, 2, 3})
	f.Add(int64(-1), int64(1), []byte{})
	f.Add(int64(1<<62), int64(1<<62-1), make([]byte, 62))
	f.Add(int64(1<<63-1), int64(1<<63-2), make([]byte, 64))
	f.Fuzz(func(t *testing.T, size, index int64, seeds []byte) {
		var proof []Hash
		for _, seed := range seeds {
			proof = append(proof, Hash{seed})
		}
		if err := CheckInclusion(Hash{}, size, index, Hash{}, proof); err == nil {
			t.Errorf("row %d of %d is in a tree whose root is all zeros", index, size)
		}
		if err := CheckConsistency(index, size, Hash{1}, Hash{2}, proof); err == nil {
			t.Errorf("%d and %d: consistent", index, size)
		}
	})
}

// Proofs made from rows of any number are checked by who has only the roots.
func TestProofsHoldAtRandomSizes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 40 {
		rows, _ := numberedRows(1 + rng.Int64N(3000))
		size := int64(len(rows))
		index, from, root := rng.Int64N(size), rng.Int64N(size+1), treeOf(rows).Root()
		if err := CheckInclusion(root, size, index, rows[index], ProveInclusion(rows, index)); err != nil {
			t.Error(err)
		}
		if err := CheckConsistency(from, size, treeOf(rows[:from]).Root(), root, ProveConsistency(rows, from)); err != nil {
			t.Error(err)
		}
	}
}

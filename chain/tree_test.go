package chain

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"
)

// TestTreeAgreesWithOthers grows one tree leaf by leaf and requires at every
// size the root of golang.org/x/mod/sumdb/tlog, and the root and frontier of
// transparency-dev/merkle.
func TestTreeAgreesWithOthers(t *testing.T) {
	var tree Tree
	other := newOtherTree(t)
	for size := range int64(700) {
		if got := tree.Root(); got != other.root(size) {
			t.Fatalf("size %d: root %s, tlog has %s", size, got, other.root(size))
		}
		if frontier := other.frontier(size); tree.Size != size || !slices.Equal(tree.Frontier, frontier) {
			t.Fatalf("size %d: frontier %v, want %v", size, tree.Frontier, frontier)
		}
		if err := CheckFrontier(tree.Size, tree.Frontier); err != nil {
			t.Fatal(err)
		}
		row := Hash{byte(size), byte(size >> 8), 0xaa}
		tree.Append(row)
		other.append(row)
	}
}

// otherTree keeps a tree in both libraries.
type otherTree struct {
	t      testing.TB
	hashes otherHashes
	size   int64
	leaves [][]byte // RFC 6962 leaf hashes
}

type otherHashes []tlog.Hash

func (h otherHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var list []tlog.Hash
	for _, i := range indexes {
		list = append(list, h[i])
	}
	return list, nil
}

func newOtherTree(t testing.TB) *otherTree { return &otherTree{t: t} }

func (o *otherTree) append(row Hash) {
	stored, err := tlog.StoredHashes(o.size, row[:], o.hashes)
	if err != nil {
		o.t.Fatal(err)
	}
	o.hashes = append(o.hashes, stored...)
	o.leaves = append(o.leaves, rfc6962.DefaultHasher.HashLeaf(row[:]))
	o.size++
}

func (o *otherTree) root(size int64) Hash {
	root, err := tlog.TreeHash(size, o.hashes)
	if err != nil {
		o.t.Fatal(err)
	}
	return Hash(root)
}

func (o *otherTree) frontier(size int64) []Hash {
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	r := factory.NewEmptyRange(0)
	for _, leaf := range o.leaves[:size] {
		if err := r.Append(leaf, nil); err != nil {
			o.t.Fatal(err)
		}
	}
	var frontier []Hash
	for _, h := range r.Hashes() {
		frontier = append(frontier, Hash(h))
	}
	return frontier
}

// TestProofsAgreeWithOthers requires for trees of many sizes that each proof
// made here is the one that tlog makes, and that it passes tlog's check,
// transparency-dev's check, and ours.
func TestProofsAgreeWithOthers(t *testing.T) {
	other, rng := newOtherTree(t), rand.New(rand.NewPCG(3, 4))
	var rows []Hash
	for size := int64(1); size <= 260; size++ {
		row := randomHash(rng)
		rows = append(rows, row)
		other.append(row)
		for _, i := range []int64{0, size - 1, size / 2, rng.Int64N(size), rng.Int64N(size)} {
			checkInclusionAgrees(t, other, rows, i)
		}
		for _, from := range []int64{1, size, size - 1, (size + 1) / 2, 1 + rng.Int64N(size)} {
			checkConsistencyAgrees(t, other, rows, from)
		}
	}
}

func checkInclusionAgrees(t *testing.T, other *otherTree, rows []Hash, index int64) {
	t.Helper()
	size, root := int64(len(rows)), other.root(int64(len(rows)))
	ours := ProveInclusion(rows, index)
	theirs, err := tlog.ProveRecord(size, index, other.hashes)
	if err != nil || !slices.Equal(ours, fromTlog(theirs)) {
		t.Fatalf("row %d of %d: %v, tlog has %v, %v", index, size, ours, theirs, err)
	}
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(index), uint64(size), other.leaves[index], toSlices(ours), root[:]); err != nil {
		t.Fatalf("row %d of %d: merkle says %v", index, size, err)
	}
	if err := CheckInclusion(root, size, index, rows[index], ours); err != nil {
		t.Fatal(err)
	}
}

func checkConsistencyAgrees(t *testing.T, other *otherTree, rows []Hash, from int64) {
	t.Helper()
	if from == 0 {
		return // no proof in RFC 6962; see TestConsistencyWithTheEmptyTree
	}
	to := int64(len(rows))
	older, newer := other.root(from), other.root(to)
	ours := ProveConsistency(rows, from)
	theirs, err := tlog.ProveTree(to, from, other.hashes)
	if err != nil || !slices.Equal(ours, fromTlog(theirs)) {
		t.Fatalf("%d and %d: %v, tlog has %v, %v", from, to, ours, theirs, err)
	}
	if err := proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(from), uint64(to), toSlices(ours), older[:], newer[:]); err != nil {
		t.Fatalf("%d and %d: merkle says %v", from, to, err)
	}
	if err := CheckConsistency(from, to, older, newer, ours); err != nil {
		t.Fatal(err)
	}
}

func randomHash(rng *rand.Rand) (h Hash) {
	for i := range h {
		h[i] = byte(rng.Uint32())
	}
	return h
}

func fromTlog(hashes []tlog.Hash) (list []Hash) {
	for _, h := range hashes {
		list = append(list, Hash(h))
	}
	return list
}

func toSlices(hashes []Hash) (list [][]byte) {
	for _, h := range hashes {
		list = append(list, h[:])
	}
	return list
}

// A tree goes on from its frontier as if it had never been put away, and a
// clone does not move with it.
func TestTreeResumesFromItsFrontier(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		var whole Tree
		for range rng.IntN(300) {
			whole.Append(randomHash(rng))
		}
		resumed, root := whole.Clone(), whole.Root()
		for range rng.IntN(300) {
			row := randomHash(rng)
			kept := resumed.Clone()
			whole.Append(row)
			resumed.Append(row)
			if kept.Size+1 != resumed.Size || kept.Root() == resumed.Root() {
				t.Fatal("a clone moved")
			}
		}
		if whole.Root() != resumed.Root() || resumed.Size > 0 && whole.Size != resumed.Size {
			t.Fatalf("size %d: the resumed tree has another root than %s", whole.Size, root)
		}
	}
}

// A frontier has one hash for each bit of the size: any other number is an
// error for a reader, and a panic for who goes on regardless.
func TestFrontierFitsItsSize(t *testing.T) {
	for _, c := range []struct {
		size   int64
		hashes int
		fits   bool
	}{
		{0, 0, true},
		{1, 1, true},
		{2, 1, true},
		{3, 2, true},
		{7, 3, true},
		{8, 1, true},
		{1<<62 - 1, 62, true},
		{1<<63 - 1, 63, true},
		{0, 1, false},
		{1, 0, false},
		{1, 2, false},
		{2, 2, false},
		{3, 1, false},
		{8, 4, false},
		{-1, 64, false},
		{-1, 0, false},
		{-8, 61, false},
	} {
		tree := Tree{Size: c.size, Frontier: make([]Hash, c.hashes)}
		err := CheckFrontier(tree.Size, tree.Frontier)
		if c.fits != (err == nil) || !c.fits && !errors.Is(err, ErrFrontier) {
			t.Errorf("size %d, %d hashes: %v", c.size, c.hashes, err)
		}
		if !c.fits {
			requirePanic(t, "Root", func() { tree.Root() })
			requirePanic(t, "Append", func() { tree.Append(Hash{}) })
		}
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	tree := Tree{Frontier: make([]Hash, 0, 64)}
	if n := testing.AllocsPerRun(1000, func() { tree.Append(someSalt) }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	var tree Tree
	b.ReportAllocs()
	for b.Loop() {
		tree.Append(someSalt)
	}
}

// FuzzTree gives both libraries rows of the fuzzer's choice.
func FuzzTree(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7}, uint8(3))
	f.Add(make([]byte, 64), uint8(17))
	f.Fuzz(func(t *testing.T, seeds []byte, pick uint8) {
		other := newOtherTree(t)
		var rows []Hash
		for _, seed := range seeds {
			rows = append(rows, Hash{seed})
			other.append(Hash{seed})
		}
		size := int64(len(rows))
		if tree := treeOf(rows); tree.Root() != other.root(size) || !slices.Equal(tree.Frontier, other.frontier(size)) {
			t.Fatalf("size %d: another tree", size)
		}
		if size > 0 {
			checkInclusionAgrees(t, other, rows, int64(pick)%size)
			checkConsistencyAgrees(t, other, rows, 1+int64(pick)%size)
		}
	})
}

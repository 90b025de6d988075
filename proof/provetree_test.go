package proof

import (
	"crypto/sha256"
	"errors"
	"slices"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
)

// leaves returns hashes of rows, and the tree of the first n of them.
func leaves(n int64) (rows []chain.Hash, tree chain.Tree) {
	for i := range n {
		rows = append(rows, sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
		tree.Append(rows[i])
	}
	return rows, tree
}

func rootsOf(t *testing.T, f *forest, spans []seqSpan) []chain.Hash {
	t.Helper()
	hashes, err := f.roots(spans)
	if err != nil {
		t.Fatal(err)
	}
	return hashes
}

// Paths and consistency proofs are those of package chain, for every row and
// every pair of sizes; and what a frontier and the rows behind it give is the
// same.
func TestProofsOfAForest(t *testing.T) {
	for n := int64(1); n <= 40; n++ {
		rows, tree := leaves(n)
		for i := range n {
			_, before := leaves(i)
			f := newForest()
			f.addFrontier(n, tree.Frontier)
			f.addFrontier(i, before.Frontier)
			if m := f.missing(pathSpans(n, i)); m.lo < i && m != (seqSpan{}) {
				t.Fatalf("row %d of %d: rows from %d are missing, with the frontier of %d", i, n, m.lo, i)
			}
			f.take(stretch{i, rows[i:]}, i+1)
			if got, want := rootsOf(t, f, pathSpans(n, i)), chain.ProveInclusion(rows, i); !slices.Equal(got, want) {
				t.Fatalf("path of row %d in a tree of %d", i, n)
			}
			f = newForest()
			f.addFrontier(i, before.Frontier)
			f.take(stretch{i, rows[i:]}, i)
			if got, want := rootsOf(t, f, consistencySpans(i, n)), chain.ProveConsistency(rows, i); !slices.Equal(got, want) {
				t.Fatalf("consistency of %d and %d rows", i, n)
			}
		}
	}
}

// Every range of rows leads to the root, and no other hashes, nodes or places do.
func TestRanges(t *testing.T) {
	for n := int64(1); n <= 20; n++ {
		rows, tree := leaves(n)
		f := newForest()
		f.addRows(0, rows)
		for lo := range n {
			for hi := lo + 1; hi <= n; hi++ {
				nodes := rootsOf(t, f, rangeSpans(n, seqSpan{lo, hi}))
				if root, err := rangeRoot(n, lo, rows[lo:hi], nodes); err != nil || root != tree.Root() {
					t.Fatalf("rows %d to %d of %d: %v", lo, hi, n, err)
				}
				for what, bad := range map[string]func() (chain.Hash, error){
					"a node more": func() (chain.Hash, error) { return rangeRoot(n, lo, rows[lo:hi], append(slices.Clone(nodes), rows[0])) },
					"a row less":  func() (chain.Hash, error) { return rangeRoot(n, lo, rows[lo:hi-1], nodes) },
					"a seq later": func() (chain.Hash, error) { return rangeRoot(n, lo+1, rows[lo:hi], nodes) },
				} {
					if root, err := bad(); err == nil && root == tree.Root() {
						t.Fatalf("%s: rows %d to %d of %d", what, lo, hi, n)
					}
				}
			}
		}
	}
	if _, err := rangeRoot(1<<62, 5, make([]chain.Hash, 1), nil); !errors.Is(err, chain.ErrProof) {
		t.Errorf("a huge tree: %v", err)
	}
}

// A forest that lacks a row says so.
func TestAForestWithAHole(t *testing.T) {
	rows, _ := leaves(8)
	f := newForest()
	f.addRows(0, rows[:6])
	if _, err := f.roots(pathSpans(8, 1)); !errors.Is(err, errUnknownNode) {
		t.Error(err)
	}
	if m := f.missing(pathSpans(8, 1)); m != (seqSpan{6, 8}) {
		t.Error(m)
	}
}

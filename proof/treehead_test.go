package proof_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	lake "github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

func headOf(t *testing.T, text []byte, tenant string) *lake.TreeHead {
	t.Helper()
	h, err := lake.ReadTreeHead(text, tenant)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Every two trees of a log are shown to continue each other: as anchors and as
// checkpoints, from the archive and from tiles, also to another implementation
// of RFC 6962. The other way round, and across a fork, they are not.
func TestEveryTwoTreesAreConsistent(t *testing.T) {
	ctx := context.Background()
	p := newProvable(12, 7, 2)
	fork := newProvable(0, 0, 1)
	grow(fork, 1, 8)
	fork.line.Segment(func(b *prooftest.Batch) {
		for range 40 {
			b.Call("acme")
		}
	})
	fork.line.Anchor()
	files := memoryTiles{}
	if _, err := p.prover(t, lake.ProveOptions{}).WriteTiles(ctx, lake.Want{Tenant: "acme"}, files); err != nil {
		t.Fatal(err)
	}
	tiles, err := lake.OpenTiles(files)
	if err != nil {
		t.Fatal(err)
	}
	o := lake.CheckOptions{Keys: p.ring()}
	for i, a := range p.line.Anchors {
		for j, b := range p.line.Anchors {
			older, newer := headOf(t, a.Body, "acme"), headOf(t, checkpointIn(t, b.Body, "acme"), "")
			made, err := p.prover(t, lake.ProveOptions{}).ProveConsistency(ctx, older, newer)
			if i > j {
				if err == nil {
					t.Fatalf("anchor %d continues anchor %d", j, i)
				}
				continue
			}
			if err != nil {
				t.Fatalf("anchors %d and %d: %v", i, j, err)
			}
			fromTiles, err := tiles.ProveConsistency(older, newer)
			if err != nil || !slices.Equal(fromTiles.Proof, made.Proof) {
				t.Fatalf("anchors %d and %d, from tiles: %v", i, j, err)
			}
			checkPair(t, made, older, newer, o)
		}
		if i > 0 {
			made, err := p.prover(t, lake.ProveOptions{}).ProveConsistency(ctx, headOf(t, fork.line.Anchors[0].Body, "acme"), headOf(t, a.Body, "acme"))
			if !errors.Is(err, lake.ErrTampered) {
				t.Errorf("a fork: %+v, %v", made, err)
			}
		}
	}
	if _, err := p.prover(t, lake.ProveOptions{}).ProveConsistency(ctx, headOf(t, p.line.Anchors[0].Body, "acme"), headOf(t, fork.line.Anchors[1].Body, "acme")); !errors.Is(err, lake.ErrTampered) {
		t.Errorf("the newer one is of a fork: %v", err)
	}
	newest, err := p.prover(t, lake.ProveOptions{}).NewestHead(ctx, headOf(t, p.line.Anchors[0].Body, "acme").Origin)
	if err != nil || newest.Tree.Root != p.line.Logs["acme"].Tree.Root() {
		t.Errorf("newest: %+v, %v", newest, err)
	}
}

func checkpointIn(t *testing.T, anchor []byte, tenant string) []byte {
	t.Helper()
	n, err := sign.Parse(anchor)
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.DecodeAnchor(n.Text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range a.Checkpoints {
		if c.Tenant == tenant {
			return []byte(c.Note)
		}
	}
	t.Fatal("no checkpoint")
	return nil
}

// checkPair checks a consistency proof, and that no change of it is taken.
func checkPair(t *testing.T, made *lake.Consistency, older, newer *lake.TreeHead, o lake.CheckOptions) {
	t.Helper()
	hashes := make([][]byte, len(made.Proof))
	for k := range hashes {
		hashes[k] = made.Proof[k][:]
	}
	if err := proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(made.From.Size), uint64(made.To.Size), hashes, made.From.Root[:], made.To.Root[:]); err != nil {
		t.Fatal(err)
	}
	text, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := lake.DecodeConsistency(text)
	if err != nil {
		t.Fatal(err)
	}
	if c := lake.CheckConsistency(older, newer, back, o); c.Exit != 0 || c.Tier != "T1" {
		t.Fatalf("%+v", c)
	}
	if c := lake.CheckConsistency(older, newer, back, lake.CheckOptions{}); c.Exit != 3 || c.Tier != "T0" {
		t.Fatalf("without a key: %+v", c)
	}
	for k := range back.Proof {
		bad := *back
		bad.Proof = slices.Clone(back.Proof)
		bad.Proof[k][3] ^= 1
		if c := lake.CheckConsistency(older, newer, &bad, o); c.Exit != 1 {
			t.Fatalf("hash %d changed: %+v", k, c)
		}
	}
	bad := *back
	bad.Proof = append(slices.Clone(back.Proof), chain.Hash{})
	if c := lake.CheckConsistency(older, newer, &bad, o); c.Exit != 1 {
		t.Fatalf("a hash more: %+v", c)
	}
}

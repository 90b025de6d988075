//go:build it

package verify

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/it/bench"
)

// row proves one row of an archive, says what that takes, and has the proof
// checked by verify, by Python, and its path by another implementation.
func (b *Bench) row(ctx context.Context, folder, vkey, record string) error {
	bundle := filepath.Join(folder+".cpu", "row.json")
	verify := filepath.Join(b.Bin, "ledgerlake-verify")
	made, err := bench.Spend(ctx, nil, nil, verify, "prove", "--key", vkey, "-o", bundle, record, folder)
	if err != nil {
		return err
	}
	info, err := os.Stat(bundle)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "\nthe proof of record %s: %d bytes, written in %.2f CPU s: %s\n", record, info.Size(), made.CPU.Seconds(), strings.TrimSpace(string(made.Errs)))
	checked, err := bench.Spend(ctx, nil, nil, verify, "proof", "--key", vkey, bundle)
	if err != nil {
		return err
	}
	python, err := bench.Spend(ctx, nil, nil, b.Python, "proof/offline/check.py", "bundle", bundle, "--key", vkey)
	if err != nil {
		return err
	}
	size, hashes, took, err := checkPath(bundle)
	if err != nil {
		return fmt.Errorf("transparency-dev/merkle: %w", err)
	}
	fmt.Fprintf(b.Out, "checked in %.3f CPU s by verify proof, in %.3f by check.py; its path (%d hashes in a tree of %d rows) in %v by transparency-dev/merkle\n",
		checked.CPU.Seconds(), python.CPU.Seconds(), hashes, size, took)
	return nil
}

// checkPath holds the path of a proof against the root that its checkpoint
// states, by another implementation of RFC 6962.
func checkPath(bundle string) (size uint64, hashes int, took time.Duration, err error) {
	body, err := os.ReadFile(bundle)
	if err != nil {
		return 0, 0, 0, err
	}
	var doc struct {
		Row struct {
			Seq     uint64
			RowHash chain.Hash
		}
		Tree struct {
			Size uint64
			Root chain.Hash
		}
		Path       []chain.Hash
		Checkpoint string
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return 0, 0, 0, err
	}
	lines := strings.Split(doc.Checkpoint, "\n")
	if len(lines) < 3 || lines[2] != base64.StdEncoding.EncodeToString(doc.Tree.Root[:]) {
		return 0, 0, 0, fmt.Errorf("the checkpoint %.100q has another root than %s", doc.Checkpoint, doc.Tree.Root)
	}
	path := make([][]byte, len(doc.Path))
	for i := range path {
		path[i] = doc.Path[i][:]
	}
	began := time.Now()
	leaf := rfc6962.DefaultHasher.HashLeaf(doc.Row.RowHash[:])
	err = proof.VerifyInclusion(rfc6962.DefaultHasher, doc.Row.Seq, doc.Tree.Size, leaf, path, doc.Tree.Root[:])
	return doc.Tree.Size, len(path), time.Since(began), err
}

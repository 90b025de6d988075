package proof_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
)

// A golden is what an independent verifier found of the golden archives.
type golden struct {
	ArchiveID string
	VKey      string
	Seed      string
	Heads     map[string]struct {
		Size       int64
		Head, Root chain.Hash
	}
	Expect map[string]struct {
		Exit int
		Rows int64

		Erased, PartlyErased int64
		Look                 []string
	}
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	b, err := os.ReadFile("testdata/golden/archive.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// An archive of another writer, with another Parquet library, gives the heads,
// roots and counts that an independent verifier found.
func TestTheGoldenArchiveIsProved(t *testing.T) {
	want := readGolden(t)
	dir, err := archive.OpenDir("testdata/golden/plain")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	r, err := proof.Verify(context.Background(), dir, proof.Options{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, r, want.Expect["plain"].Exit)
	if r.ArchiveID != want.ArchiveID || r.Totals.Rows != want.Expect["plain"].Rows || r.StrayCount != 0 || r.Totals.Anchors != 3 {
		t.Errorf("report %+v", r)
	}
	said := strings.Join(slices.Concat(r.Looks, r.Notes), "\n")
	for _, look := range want.Expect["plain"].Look {
		if !strings.Contains(said, look) {
			t.Errorf("%q does not say %q", said, look)
		}
	}
	for _, l := range r.Lines[0].Logs {
		if w := want.Heads[l.Tenant]; l.Size != w.Size || l.Head != w.Head || l.Root != w.Root || !l.Proved {
			t.Errorf("log of %s is %+v, want %+v", l.Tenant, l, w)
		}
		if anchored := l.NotAnchored == 0; anchored == (l.Tenant == "acme") {
			t.Errorf("%d rows of %s not anchored", l.NotAnchored, l.Tenant)
		}
	}
	if len(r.Lines) != 2 || len(r.Lines[0].Logs) != len(want.Heads) {
		t.Errorf("%d lines, %d logs", len(r.Lines), len(r.Lines[0].Logs))
	}
}

// The same archive after compaction, with erasures and a cut.
func TestTheCompactedGoldenArchiveIsProved(t *testing.T) {
	want := readGolden(t)
	ring := &sign.Ring{}
	if err := ring.Add(want.VKey, sign.AllRoles, "given"); err != nil {
		t.Fatal(err)
	}
	r := verifyWith(t, readFolder(t, "testdata/golden/compacted"), proof.Options{Keys: ring})
	e := want.Expect["compacted"]
	wantExit(t, r, e.Exit)
	if r.Tier != proof.TierT1 || r.Totals.Erased != e.Erased || r.Totals.PartlyErased != e.PartlyErased || r.Totals.Cut != 1 || r.StrayCount != 0 {
		t.Errorf("tier %s, %+v, strays %v", r.Tier, r.Totals, r.Strays)
	}
	said := strings.Join(slices.Concat(r.Looks, r.Notes), "\n")
	for _, look := range e.Look {
		if !strings.Contains(said, look) {
			t.Errorf("%q does not say %q", said, look)
		}
	}
	for _, l := range r.Lines[0].Logs {
		if w := want.Heads[l.Tenant]; l.Size != w.Size || l.Head != w.Head || l.Root != w.Root || !l.Proved {
			t.Errorf("log of %s is %+v, want %+v", l.Tenant, l, w)
		}
	}
}

// A flipped bit in any object is found, but in two places: in the newest
// segment, which no anchor covers, and in signatures, which take a key. The
// rest of an anchor is bound by what it is compared with, or by the next
// anchor; of the newest one its time and its list of keys are bound by its
// signature alone.
func TestFlippedBitsOfTheGoldenArchive(t *testing.T) {
	good := readFolder(t, "testdata/golden/plain")
	const newest = "log/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/00000/00000000000000000006.parquet"
	rng := rand.New(rand.NewPCG(1, 2))
	flips := 25
	if testing.Short() {
		flips = 5
	}
	for _, key := range slices.Sorted(maps.Keys(good)) {
		if key == newest {
			continue
		}
		for range flips {
			bit := rng.IntN(8 * len(good[key]))
			if strings.HasPrefix(key, "anchor/") && !boundWithoutKey(good[key], bit/8) {
				continue
			}
			bad := maps.Clone(good)
			bad[key] = slices.Clone(good[key])
			flip(bad[key], bit)
			if r := verify(t, bad); r.ExitCode() != 1 {
				t.Errorf("bit %d of %s: exit %d", bit, key, r.ExitCode())
			}
		}
	}
}

// boundWithoutKey reports whether a byte of an anchor is bound by more than its
// signature. Signatures are base64 behind a key's name, in the note and, for
// checkpoints, in the document.
func boundWithoutKey(note []byte, at int) bool {
	document := strings.Index(string(note), "\n\n")
	if at >= document {
		return false
	}
	for _, free := range []string{`"note":"`, `"time":"`, `"keys":{`} {
		for i := 0; ; {
			j := strings.Index(string(note[i:document]), free)
			if j < 0 {
				break
			}
			from := i + j + len(free)
			to := from + strings.IndexAny(string(note[from:]), `"}`)
			if free == `"keys":{` {
				to = document
			}
			if from <= at && at < to {
				return false
			}
			i = to
		}
	}
	return true
}

// readFolder returns an archive that lies as files, as objects.
func readFolder(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	objects := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		key, err := filepath.Rel(folder, path)
		objects[filepath.ToSlash(key)] = body
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

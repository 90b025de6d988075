package proof_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/proof"
)

// A flipped bit in any of 200 places of any object but the newest of a line and
// ledgerlake.json is found, and the object is named.
func TestAnyFlippedBitIsFound(t *testing.T) {
	w := newWorld()
	good := w.Objects()
	for _, spared := range []string{archive.RootKey, w.calls.Key(6), w.other.Key(2), w.control.Key(2)} {
		delete(good, spared)
	}
	keys := slices.Sorted(maps.Keys(good))
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		key := keys[rng.IntN(len(keys))]
		bad := w.Objects()
		bad[key] = slices.Clone(bad[key])
		bit := rng.IntN(8 * len(bad[key]))
		flip(bad[key], bit)
		wantFault(t, verify(t, bad), proof.FaultHash, key)
		if t.Failed() {
			t.Fatalf("bit %d of %s", bit, key)
		}
	}
}

// A flipped bit in the newest segment, which nothing vouches for, never makes
// the verifier panic, nor use much memory; most of them are found all the same.
func TestAFlippedBitInTheNewestSegment(t *testing.T) {
	a, l := small()
	rng := rand.New(rand.NewPCG(5, 6))
	found, flips := 0, 200
	for range flips {
		bad := a.Objects()
		key := l.Key(2)
		bad[key] = slices.Clone(bad[key])
		flip(bad[key], rng.IntN(8*len(bad[key])))
		if verify(t, bad).ExitCode() == 1 {
			found++
		}
	}
	if found < flips/2 {
		t.Errorf("%d of %d found", found, flips)
	}
	t.Logf("%d of %d found", found, flips)
}

package archivetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// RunSwapper checks what exporters need of a store for their cursors. Open
// returns an empty store of its own for each test. That a Swapper is a Bucket,
// Run checks.
func RunSwapper(t *testing.T, open func(t *testing.T) archive.Swapper) {
	for _, c := range []struct {
		name  string
		check func(*testing.T, archive.Swapper)
	}{
		{"Swap", aSwapNeedsTheTag},
		{"SwapRace", noSwapIsLost},
		{"SwapCreate", oneOfManyCreates},
		{"SwapGone", whatIsNotThereIsNotSwapped},
		{"SwapCancelled", swappingStopsWithItsContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, open(t)) })
	}
}

const swapKey = "export/siem/cursor/x.json"

func aSwapNeedsTheTag(t *testing.T, s archive.Swapper) {
	first, err := s.Swap(t.Context(), swapKey, []byte("first"), "")
	if err != nil {
		t.Fatal(err)
	}
	body, tag, err := s.GetTagged(t.Context(), swapKey)
	if err != nil || string(body) != "first" || tag != first || tag == "" {
		t.Fatalf("GetTagged: %q, tag %q, %v; Swap said tag %q", body, tag, err, first)
	}
	second, err := s.Swap(t.Context(), swapKey, []byte("second"), first)
	if err != nil || second == first {
		t.Fatalf("Swap of what is there: tag %q after %q, %v", second, first, err)
	}
	for _, stale := range []string{first, "", `"00000000000000000000000000000000"`} {
		if _, err := s.Swap(t.Context(), swapKey, []byte("stale"), stale); !errors.Is(err, archive.ErrExists) {
			t.Errorf("Swap by tag %q, where it is %q: %v, want ErrExists", stale, second, err)
		}
		holds(t, s, swapKey, []byte("second"))
	}
	if _, err := s.Create(t.Context(), swapKey, []byte("created")); !errors.Is(err, archive.ErrExists) {
		t.Errorf("Create over what was swapped: %v, want ErrExists", err)
	}
}

// Each of several counts in one object: no count is lost.
func noSwapIsLost(t *testing.T, s archive.Swapper) {
	const writers, each = 4, 5
	if _, err := s.Swap(t.Context(), swapKey, nil, ""); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				if err := appendBySwap(t.Context(), s, byte('a'+w)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := s.Get(t.Context(), swapKey)
	if err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		if n := bytes.Count(got, []byte{byte('a' + w)}); n != each {
			t.Errorf("writer %d was told of %d swaps, and %d are there: %q", w, each, n, got)
		}
	}
}

func appendBySwap(ctx context.Context, s archive.Swapper, c byte) error {
	for range 1000 {
		body, tag, err := s.GetTagged(ctx, swapKey)
		if err != nil {
			return err
		}
		_, err = s.Swap(ctx, swapKey, append(body, c), tag)
		if err == nil || !errors.Is(err, archive.ErrExists) && !errors.Is(err, archive.ErrConflict) {
			return err
		}
	}
	return errors.New("lost 1,000 times")
}

func oneOfManyCreates(t *testing.T, s archive.Swapper) {
	results := make([]error, racers)
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			for range 10 {
				if _, results[i] = s.Swap(t.Context(), swapKey, fmt.Append(nil, i), ""); !errors.Is(results[i], archive.ErrConflict) {
					return
				}
			}
		})
	}
	wg.Wait()
	won := 0
	for i, err := range results {
		switch {
		case err == nil:
			won++
			holds(t, s, swapKey, fmt.Append(nil, i))
		case !errors.Is(err, archive.ErrExists):
			t.Errorf("racer %d was told %v", i, err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d racers created the object", won, racers)
	}
}

func whatIsNotThereIsNotSwapped(t *testing.T, s archive.Swapper) {
	if _, _, err := s.GetTagged(t.Context(), swapKey); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("GetTagged of nothing: %v, want ErrNotFound", err)
	}
	if _, err := s.Swap(t.Context(), swapKey, []byte("x"), `"00000000000000000000000000000000"`); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("Swap of nothing: %v, want ErrNotFound", err)
	}
	if _, err := s.Get(t.Context(), swapKey); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("Get after that: %v, want ErrNotFound", err)
	}
}

func swappingStopsWithItsContext(t *testing.T, s archive.Swapper) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Swap(ctx, swapKey, []byte("x"), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Swap with a cancelled context: %v", err)
	}
}

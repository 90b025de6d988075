package proof

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// An offsetSet finds every offset that comes twice, and counts what lies in a
// range, as a plain set does.
func TestOffsetSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s offsetSet
		plain := map[int64]bool{}
		span := int64(1) << (4 + rng.IntN(14))
		for range 300 {
			n := rng.Int64N(span)
			if s.add(n) == plain[n] {
				t.Fatalf("%d is new: %v", n, !plain[n])
			}
			plain[n] = true
		}
		for len(plain) > 0 {
			least, ok := s.least()
			want := slices.Min(keys(plain))
			if !ok || least != want {
				t.Fatalf("least is %d, want %d", least, want)
			}
			first := least - rng.Int64N(3)
			next := first + rng.Int64N(span)
			count := int64(0)
			for n := range plain {
				if first <= n && n < next {
					count++
					delete(plain, n)
				}
			}
			if got := s.take(first, next); got != count {
				t.Fatalf("%d to %d: %d, want %d", first, next, got, count)
			}
		}
		if _, ok := s.least(); ok || len(s.chunks) != 0 {
			t.Fatal("something is left")
		}
	}
}

func keys(m map[int64]bool) (all []int64) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

package export

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// What is read ahead never weighs more than it may, unless one alone does; what
// comes of it comes in order, and nothing goes on when the consumer stops.
func TestAheadHoldsNoMoreThanItMay(t *testing.T) {
	for _, c := range []struct {
		limit    int64
		weights  []int64
		parallel int
		begun    []int // by the time that the n-th is taken
	}{
		{10, []int64{5, 5, 5, 5}, 8, []int{2, 3, 4, 4}},
		{10, []int64{20, 1, 1}, 8, []int{1, 3, 3}},
		{10, []int64{1, 20, 1}, 8, []int{1, 2, 3}},
		{100, []int64{1, 1, 1, 1, 1, 1}, 2, []int{4, 5, 6, 6, 6, 6}},
		{0, []int64{0, 7, 0}, 8, []int{3, 3, 3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := make(chan int64, 100)
			var got []int64
			for w, err := range aheadWithin(t.Context(), c.weights, c.parallel, c.limit, func(w int64) int64 { return w }, func(_ context.Context, w int64) (int64, error) {
				begun <- w
				return w, nil
			}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, w)
				synctest.Wait()
				if n := len(got) - 1; len(begun) > c.begun[n] {
					t.Errorf("%+v: %d were begun when the %d. was taken", c, len(begun), n)
				}
			}
			if !slices.Equal(got, c.weights) {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestAheadStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range ahead(t.Context(), make([]int, 10), 3, func(ctx context.Context, _ int) (int, error) { return 0, nil }) {
			break
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		var last error
		for _, last = range ahead(ctx, make([]int, 10), 3, func(ctx context.Context, _ int) (int, error) { return 0, ctx.Err() }) {
			if last != nil {
				break
			}
		}
		if !errors.Is(last, context.Canceled) {
			t.Error(last)
		}
	}) // no goroutine is left, or this panics
}

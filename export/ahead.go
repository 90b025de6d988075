package export

import (
	"context"
	"iter"

	"golang.org/x/sync/semaphore"
)

// ahead does the same to all of a list, several at once, and yields what came of
// it in order. Whoever stops early waits for what is under way.
func ahead[T, R any](ctx context.Context, list []T, parallel int, do func(context.Context, T) (R, error)) iter.Seq2[R, error] {
	return aheadWithin(ctx, list, parallel, 0, func(T) int64 { return 0 }, do)
}

// aheadWithin is ahead where each item weighs something, and those that were begun
// and not yet taken, or that the consumer has, weigh no more than limit together;
// one alone may.
func aheadWithin[T, R any](ctx context.Context, list []T, parallel int, limit int64, weigh func(T) int64, do func(context.Context, T) (R, error)) iter.Seq2[R, error] {
	type done struct {
		r   R
		err error
	}
	type begun struct {
		c      chan done
		weight int64
	}
	return func(yield func(R, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		held := semaphore.NewWeighted(max(limit, 1))
		under := make(chan begun, parallel)
		go func() {
			defer close(under)
			for _, item := range list {
				b := begun{make(chan done, 1), min(weigh(item), limit)}
				if held.Acquire(ctx, b.weight) != nil {
					return
				}
				select {
				case under <- b:
				case <-ctx.Done():
					return
				}
				go func() {
					r, err := do(ctx, item)
					b.c <- done{r, err}
				}()
			}
		}()
		defer func() {
			stop()
			for b := range under {
				<-b.c
			}
		}()
		n := 0
		for b := range under {
			d := <-b.c
			n++
			if !yield(d.r, d.err) {
				return
			}
			held.Release(b.weight)
		}
		if n < len(list) { // the context ended before all were begun
			var none R
			yield(none, ctx.Err())
		}
	}
}

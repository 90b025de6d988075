package compaction

import (
	"context"
	"iter"
)

// ahead does the same to all of a list, several at once, and yields what came of
// it in order. Whoever stops early waits for what is under way.
func ahead[T, R any](ctx context.Context, list []T, parallel int, do func(context.Context, T) (R, error)) iter.Seq2[R, error] {
	type done struct {
		r   R
		err error
	}
	return func(yield func(R, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		under := make(chan chan done, parallel)
		defer func() {
			stop()
			for c := range under {
				<-c
			}
		}()
		next := 0
		begin := func() {
			c, item := make(chan done, 1), list[next]
			next++
			under <- c
			go func() {
				r, err := do(ctx, item)
				c <- done{r, err}
			}()
		}
		defer close(under)
		for next < len(list) && next < parallel {
			begin()
		}
		for range list {
			d := <-<-under
			if next < len(list) {
				begin()
			}
			if !yield(d.r, d.err) || d.err != nil {
				return
			}
		}
	}
}

package proof

import (
	"context"
	"iter"
	"sync"
)

// A window bounds what one line holds in memory at once: objects that were
// asked for and are not done with. One goroutine acquires; any may release.
type window struct {
	limit int64 // bytes
	least int   // objects that are let in whatever their size, so that work goes on
	most  int   // objects

	mu    sync.Mutex
	bytes int64
	count int
	freed chan struct{} // holds a token when something was released
}

func newWindow(limit int64, least, most int) *window {
	return &window{limit: limit, least: least, most: most, freed: make(chan struct{}, 1)}
}

// acquire waits until an object of size bytes fits.
func (w *window) acquire(ctx context.Context, size int64) error {
	for !w.enter(size) {
		select {
		case <-w.freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (w *window) enter(size int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count >= w.least && (w.count >= w.most || w.bytes+size > w.limit) {
		return false
	}
	w.count++
	w.bytes += size
	return true
}

// release lets an object of size bytes go.
func (w *window) release(size int64) {
	w.mu.Lock()
	w.count--
	w.bytes -= size
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// A future is a result that is being made.
type future[R any] chan result[R]

type result[R any] struct {
	value R
	err   error
}

// ahead runs do for the items of in, several at once and each when enter lets
// it in, and yields the results in the order of the items. The first error ends
// the sequence. When it returns, nothing that it started still runs.
func ahead[T, R any](ctx context.Context, in iter.Seq2[T, error], enter func(context.Context, T) error,
	do func(context.Context, T) (R, error),
) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		queue := make(chan future[R], 64)
		wg.Go(func() {
			defer close(queue)
			startAll(ctx, &wg, in, enter, do, queue)
		})
		for f := range queue {
			r := <-f
			if !yield(r.value, r.err) || r.err != nil {
				return
			}
		}
	}
}

// startAll starts do for one item after the other and queues its future.
// Every future that is queued gets a result.
func startAll[T, R any](ctx context.Context, wg *sync.WaitGroup, in iter.Seq2[T, error], enter func(context.Context, T) error,
	do func(context.Context, T) (R, error), queue chan<- future[R],
) {
	for item, err := range in {
		f := make(future[R], 1)
		if err == nil {
			err = enter(ctx, item)
		}
		if err != nil {
			f <- result[R]{err: err}
		} else {
			wg.Go(func() {
				v, err := do(ctx, item)
				f <- result[R]{v, err}
			})
		}
		select {
		case queue <- f:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

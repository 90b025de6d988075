package pipeline

import (
	"context"
	"math/rand/v2"
	"time"
)

// BackOff waits before the next attempt: up to 100 ms after the first that
// failed, up to 15 s later on, with jitter so that many writers spread out. It
// returns an error only when ctx is done.
func BackOff(ctx context.Context, attempt int) error {
	top := min(15*time.Second, 100*time.Millisecond<<min(attempt-1, 10))
	t := time.NewTimer(top/4 + rand.N(top*3/4))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

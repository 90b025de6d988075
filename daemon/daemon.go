// Package daemon is what the commands that run for long have in common: a log,
// a port where health and metrics are served, a heap that is bounded, a stop that
// takes no longer than it may, and a store that is waited for and probed.
//
// It knows no engine and reads no flags.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"
)

// ErrNotStopped: the clean stop took too long. Nothing is lost by it: the next
// owner of the partitions goes on where the bucket says that they end.
var ErrNotStopped = errors.New("not stopped in time; what is not durable is left to the next owner")

// Within returns what run returns, or [ErrNotStopped] where it has not returned
// so long after ctx was done. run is then left behind, for the process to end.
func Within(ctx context.Context, timeout time.Duration, run func() error) error {
	result := make(chan error, 1)
	go func() { result <- run() }()
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(timeout, func() { close(late) }) })()
	select {
	case err := <-result:
		return err
	case <-late:
		return fmt.Errorf("%w: shutdown-timeout is %v", ErrNotStopped, timeout)
	}
}

// BoundHeap has the collector work harder before the heap passes limit, in
// bytes, unless GOMEMLIMIT says otherwise. Without it the heap grows to twice
// what is in use.
func BoundHeap(limit int64) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(limit)
	}
}

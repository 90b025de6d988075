package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"time"
)

// BackOff waits before the next attempt: up to 100 ms after the first that
// failed, up to 15 s later on, with jitter so that many writers spread out. It
// returns an error only when ctx is done.
func BackOff(ctx context.Context, attempt int) error { return backOff(ctx, attempt, rand.Reader) }

func backOff(ctx context.Context, attempt int, random io.Reader) error {
	top := min(15*time.Second, 100*time.Millisecond<<min(attempt-1, 10))
	t := time.NewTimer(top/4 + jitter(random, top*3/4))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// jitter returns a random time below top; half of it where there is no
// randomness.
func jitter(random io.Reader, top time.Duration) time.Duration {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return top / 2
	}
	return time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(top))
}

// backOff is [BackOff] with the randomness of the settings.
func (s *Settings) backOff(ctx context.Context, attempt int) error {
	return backOff(ctx, attempt, s.Rand)
}

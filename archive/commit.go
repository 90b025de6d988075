package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// A Committer writes the segments of one line. It must not be used by two
// goroutines at once: at most one write of a line is in flight.
type Committer struct {
	Bucket Bucket
	// Wait blocks between attempts, for longer the more there were (the first
	// attempt that failed is 1), and returns an error only when ctx is done.
	Wait func(ctx context.Context, attempt int) error
	// Retrying hears of every attempt that failed. It may be nil.
	Retrying func(key string, attempt int, err error)
	// Believe says whether a reply of this store time proves that the segment
	// there, one's own or another's, is durable: nil if so. A writer that slept while its ordinal was written,
	// compacted and deleted gets a reply that proves nothing: the error then
	// matches [ErrBreaks]. One that matches [ErrCatalog] ends Commit too, and any
	// other is tried again. It may be nil as long as nothing deletes segments.
	Believe func(ctx context.Context, storeTime time.Time) error
}

// Commit makes body the segment of st.Ordinal, and tries for as long as ctx
// lives: no answer of a store is a verdict on the batch.
//
// It returns nil, nil when body is durable, and the other's segment when
// somebody else was faster and continues st. The error matches [ErrBreaks]
// when the ordinal holds bytes that do not continue st, or the line was compacted
// beyond it: the caller starts again from the bucket. In no case has st changed.
func (c *Committer) Commit(ctx context.Context, st *State, body []byte) (*SegmentObject, error) {
	key := SegmentKey(st.Line, st.Ordinal)
	for attempt := 1; ; attempt++ {
		other, err := c.try(ctx, st, key, body)
		if err == nil || errors.Is(err, ErrBreaks) || errors.Is(err, ErrCatalog) {
			return other, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("segment %d: %w", st.Ordinal, ctx.Err())
		}
		if c.Retrying != nil {
			c.Retrying(key, attempt, err)
		}
		if err := c.Wait(ctx, attempt); err != nil {
			return nil, fmt.Errorf("segment %d: %w", st.Ordinal, err)
		}
	}
}

// try makes one attempt. A crash before Create leaves nothing. A crash after
// it leaves a durable segment that nobody was told of: the next start finds it
// in the bucket and goes on behind it.
func (c *Committer) try(ctx context.Context, st *State, key string, body []byte) (*SegmentObject, error) {
	storeTime, err := c.Bucket.Create(ctx, key, body)
	if err == nil {
		return nil, c.believe(ctx, storeTime)
	}
	if !errors.Is(err, ErrExists) {
		return nil, err
	}
	there, err := c.Bucket.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	if bytes.Equal(there, body) {
		return nil, c.believe(ctx, storeTime)
	}
	// Two who slept may meet at an ordinal that was compacted: what the first
	// wrote there is a stray, and the second must not go on from it.
	if err := c.believe(ctx, storeTime); err != nil {
		return nil, err
	}
	return adopt(st, there)
}

func (c *Committer) believe(ctx context.Context, storeTime time.Time) error {
	if c.Believe == nil {
		return nil
	}
	return c.Believe(ctx, storeTime)
}

// GetNext reads the segment that follows st, whoever wrote it. The error matches
// [ErrNotFound] if there is none, and [ErrBreaks] where its bytes do not follow.
func GetNext(ctx context.Context, src Source, st *State) (*SegmentObject, error) {
	body, err := src.Get(ctx, SegmentKey(st.Line, st.Ordinal))
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", st.Ordinal, err)
	}
	return adopt(st, body)
}

// adopt reads the segment of somebody who was faster.
func adopt(st *State, body []byte) (*SegmentObject, error) {
	o, err := ReadForeignSegment(body, st.Keys)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w: %w", st.Ordinal, ErrBreaks, err)
	}
	if err := st.Follows(o); err != nil {
		return nil, fmt.Errorf("segment %d: %w", st.Ordinal, err)
	}
	return o, nil
}

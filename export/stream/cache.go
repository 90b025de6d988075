package stream

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// A cache keeps small objects that do not change, so that the lanes of one line
// read each of them once: those that were asked for last, as far as most bytes
// go. Who comes while an object is on its way waits for it.
type cache struct {
	most int64

	mu   sync.Mutex
	held map[string]*cached
	size int64
	tick int64
}

type cached struct {
	done chan struct{} // closed once body and err are set
	body []byte
	err  error
	used int64
}

// get returns an object of a size, by read where it is not there. An object that
// is large for the cache is not kept.
func (c *cache) get(ctx context.Context, key string, size int64, read func(context.Context) ([]byte, error)) ([]byte, error) {
	if size > c.most/8 {
		return read(ctx)
	}
	c.mu.Lock()
	c.tick++
	if o := c.held[key]; o != nil {
		o.used = c.tick
		c.mu.Unlock()
		select {
		case <-o.done:
			if o.err == nil {
				return o.body, nil
			}
			return read(ctx) // the other's context may be done, or the store has thought better of it
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	o := &cached{done: make(chan struct{}), used: c.tick}
	c.held[key] = o
	c.mu.Unlock()
	o.body, o.err = read(ctx)
	c.mu.Lock()
	if o.err != nil {
		delete(c.held, key)
	} else {
		c.size += int64(len(o.body))
		c.shrink()
	}
	c.mu.Unlock()
	close(o.done)
	return o.body, o.err
}

// shrink lets go of what was not asked for longest.
func (c *cache) shrink() {
	for c.size > c.most {
		oldest := ""
		for key, o := range c.held {
			if o.body != nil && (oldest == "" || o.used < c.held[oldest].used) {
				oldest = key
			}
		}
		if oldest == "" {
			return
		}
		c.size -= int64(len(c.held[oldest].body))
		delete(c.held, oldest)
	}
}

// A share is how many bytes one destination may hold.
type share struct {
	most    int64 // of objects
	batches int64
	sem     *semaphore.Weighted
}

// newShare has a quarter of it for batches: their rows take more memory than their
// events have bytes.
func newShare(most int64) *share {
	most = max(most, 1<<20)
	objects := most - most/4
	return &share{objects, most / 4, semaphore.NewWeighted(objects)}
}

// take waits for n bytes, or for all where there are less, and returns what gives
// them back.
func (s *share) take(ctx context.Context, n int64) (release func(), err error) {
	n = min(n, s.most)
	if err := s.sem.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { s.sem.Release(n) }), nil
}

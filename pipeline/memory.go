package pipeline

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What a record costs beside its bytes while it is held: its row, and what the
// client keeps of it.
const recordOverhead = 2048

// A budget counts the bytes of all records that were fetched and are not
// durable yet. Fetching waits while it is spent.
type budget struct {
	limit int64

	mu   sync.Mutex
	held int64
	free chan struct{} // closed and replaced whenever bytes are given back
}

func newBudget(limit int64) *budget { return &budget{limit: limit, free: make(chan struct{})} }

func (b *budget) take(n int64) {
	b.mu.Lock()
	b.held += n
	b.mu.Unlock()
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	b.held -= n
	close(b.free)
	b.free = make(chan struct{})
	b.mu.Unlock()
}

// holds returns the bytes that are held.
func (b *budget) holds() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// spent reports whether nothing more may be fetched.
func (b *budget) spent() bool { return b.holds() >= b.limit }

// short reports whether half of it is spent.
func (b *budget) short() bool { return b.holds() >= b.limit/2 }

// wait blocks until something may be fetched, or ctx is done.
func (b *budget) wait(ctx context.Context) {
	for ctx.Err() == nil {
		b.mu.Lock()
		free, ok := b.free, b.held < b.limit
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-free:
		case <-ctx.Done():
		}
	}
}

// cost returns what holding a record takes, in bytes.
func cost(r *kgo.Record) int64 {
	n := recordOverhead + len(r.Key) + len(r.Value) + headerBytes*len(r.Headers)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

package pipeline

import (
	"context"
	"maps"
	"sync"

	"github.com/ledgerlake/ledgerlake/archive"
)

// An outbox holds, of each line, the newest anchor that is in the bucket and not
// yet where it is also to be kept. Nobody waits for that.
type outbox struct {
	queue chan struct{} // has a token while there may be something to send

	mu     sync.Mutex
	unsent map[archive.Line]*unsent
	fewer  chan struct{} // closed and replaced whenever one is sent
}

// An unsent is an anchor that is to be sent.
type unsent struct {
	number int64
	body   []byte
}

func newOutbox() outbox {
	return outbox{queue: make(chan struct{}, 1), unsent: map[archive.Line]*unsent{}, fewer: make(chan struct{})}
}

// send takes an anchor that the bucket has.
func (b *outbox) send(l archive.Line, number int64, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.unsent[l]; old != nil && old.number > number {
		return
	}
	b.unsent[l] = &unsent{number, body}
	select {
	case b.queue <- struct{}{}:
	default:
	}
}

// waiting returns what is to be sent, and what is closed when it has become less.
func (b *outbox) waiting() (map[archive.Line]*unsent, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.unsent), b.fewer
}

// sent notes that an anchor need not be sent any more.
func (b *outbox) sent(l archive.Line, one *unsent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unsent[l] == one {
		delete(b.unsent, l)
	}
	close(b.fewer)
	b.fewer = make(chan struct{})
}

// flush waits until everything is sent, or ctx is done, and reports whether it
// is.
func (b *outbox) flush(ctx context.Context) bool {
	for {
		waiting, fewer := b.waiting()
		if len(waiting) == 0 {
			return true
		}
		select {
		case <-fewer:
		case <-ctx.Done():
			return false
		}
	}
}

// drain calls sendAll whenever there is something to send, and again while it
// reports that not all of it is sent, until ctx is done.
func (b *outbox) drain(ctx context.Context, wait func(context.Context, int) error, sendAll func() bool) {
	for {
		select {
		case <-b.queue:
		case <-ctx.Done():
			return
		}
		for attempt := 1; !sendAll(); attempt++ {
			if wait(ctx, attempt) != nil {
				return
			}
		}
	}
}

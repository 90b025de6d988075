package emit

import (
	"bufio"
	"crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// ids makes record ids: ULIDs of which each is greater than all before it, within
// a millisecond and also where the clock goes back.
type ids struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
	last    uint64    // milliseconds
	id      ulid.ULID // that is being made; a local one would be allocated
}

func newIDs() *ids {
	return &ids{entropy: ulid.Monotonic(bufio.NewReaderSize(rand.Reader, 4096), 0)}
}

// next returns the id of an instant.
func (g *ids) next(at time.Time) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = max(g.last, ulid.Timestamp(at))
	for g.entropy.MonotonicRead(g.last, g.id[6:]) != nil {
		g.last++ // a millisecond has no more of them
	}
	_ = g.id.SetTime(g.last) // before the year 10889
	return g.id.String()
}

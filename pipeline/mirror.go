package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
)

// Lines that are copied to the second bucket at once.
const mirrorParallel = 8

// keyPrefix is the prefix of the notes on keys.
const keyPrefix = "key/"

// errDiffers: the second bucket holds something else under a key.
var errDiffers = errors.New("the second bucket holds other bytes under this key")

// A mirror copies anchors, and what is needed to check them, to a second bucket
// under the same keys: all anchors of the lines of this process, from the first
// that is missing there. A bucket that does not take them holds up nothing.
type mirror struct {
	outbox
	c  *consumer
	to archive.Bucket // nil where there is none

	guard sync.Mutex             // of next
	next  map[archive.Line]int64 // the first number that may be missing
}

func newMirror(c *consumer, to archive.Bucket) *mirror {
	return &mirror{outbox: newOutbox(), c: c, to: to, next: map[archive.Line]int64{}}
}

// run copies until ctx is done. It copies nothing to the bucket of another
// archive.
func (m *mirror) run(ctx context.Context) {
	for attempt := 1; ; attempt++ {
		err := m.begin(ctx)
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			m.c.copyFailed(archive.Line{}, "copy ledgerlake.json and key/ to the second bucket", err)
		}
		if errors.Is(err, errDiffers) {
			m.drain(ctx, m.c.backOff, m.drop)
			return
		}
		if m.c.backOff(ctx, attempt) != nil {
			return
		}
	}
	m.drain(ctx, m.c.backOff, func() bool { return m.sendAll(ctx) })
}

// drop forgets what waits: there is nowhere to send it.
func (m *mirror) drop() bool {
	waiting, _ := m.waiting()
	for l, one := range waiting {
		m.sent(l, one)
	}
	return true
}

// begin copies the root document, and the notes on keys that are missing.
func (m *mirror) begin(ctx context.Context) error {
	if err := m.copy(ctx, archive.RootKey, nil); err != nil {
		return err
	}
	there := map[string]bool{}
	for o, err := range m.to.List(ctx, keyPrefix, "") {
		if err != nil {
			return err
		}
		there[o.Key] = true
	}
	for o, err := range m.c.Archive.List(ctx, keyPrefix, "") {
		if err == nil && !there[o.Key] {
			err = m.copy(ctx, o.Key, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copy copies one object, of which body is what the bucket has, nil where that is
// to be read.
func (m *mirror) copy(ctx context.Context, key string, body []byte) (err error) {
	if body == nil {
		if body, err = m.c.Archive.Get(ctx, key); err != nil {
			return err
		}
	}
	_, err = m.to.Create(ctx, key, body)
	if !errors.Is(err, archive.ErrExists) {
		return err
	}
	there, err := m.to.Get(ctx, key)
	if err == nil && !bytes.Equal(there, body) {
		return fmt.Errorf("%s: %w", key, errDiffers)
	}
	return err
}

// sendAll brings all lines up to date, and reports whether it has.
func (m *mirror) sendAll(ctx context.Context) bool {
	waiting, _ := m.waiting()
	var g errgroup.Group
	g.SetLimit(mirrorParallel)
	for l, one := range waiting {
		g.Go(func() error {
			err := m.line(ctx, l, one)
			if err == nil {
				m.sent(l, one)
			} else if ctx.Err() == nil {
				m.c.copyFailed(l, fmt.Sprintf("copy the anchors of %s/%d to the second bucket", l.Topic, l.Partition), err)
			}
			return err
		})
	}
	return g.Wait() == nil
}

// line copies the anchors of a line up to one.
func (m *mirror) line(ctx context.Context, l archive.Line, one *unsent) error {
	next, err := m.from(ctx, l)
	if err != nil {
		return err
	}
	for ; next <= one.number; next++ {
		var body []byte
		if next == one.number {
			body = one.body
		}
		err := m.copy(ctx, archive.AnchorKey(l, next), body)
		if errors.Is(err, errDiffers) {
			m.c.copyFailed(l, "the second bucket is not a copy of this one: one of the two was changed", err)
		} else if err != nil {
			return err
		}
		m.guard.Lock()
		m.next[l] = next + 1
		m.guard.Unlock()
	}
	return nil
}

// from returns the first number of a line that may be missing.
func (m *mirror) from(ctx context.Context, l archive.Line) (int64, error) {
	m.guard.Lock()
	next, ok := m.next[l]
	m.guard.Unlock()
	if ok {
		return next, nil
	}
	newest, err := archive.NewestAnchor(ctx, m.to, l, -1)
	return max(0, newest), err // the newest once more, to see whether it is the same
}

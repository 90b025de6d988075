package archive

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Memory is a Bucket in memory, for tests and for the bubble of
// testing/synctest. It is always right: faults belong in a Bucket around it.
// The zero value is an empty bucket.
type Memory struct {
	// Now is the store's clock; nil is time.Now. It must not change while the
	// bucket is in use.
	Now func() time.Time

	mu     sync.Mutex
	keys   []string // in byte order
	bodies map[string][]byte
}

// NewMemory returns an empty bucket whose clock is time.Now.
func NewMemory() *Memory { return &Memory{} }

// Create implements [Bucket]. The body is copied.
func (m *Memory) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("create %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, taken := slices.BinarySearch(m.keys, key)
	if taken {
		return m.now(), fmt.Errorf("create %s: %w", key, ErrExists)
	}
	if m.bodies == nil {
		m.bodies = map[string][]byte{}
	}
	m.keys = slices.Insert(m.keys, at, key)
	m.bodies[key] = bytes.Clone(body)
	return m.now(), nil
}

// Get implements [Source]. The caller owns the result.
func (m *Memory) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := m.body(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return append([]byte{}, body...), nil
}

// GetTail implements [Source]. The caller owns the result.
func (m *Memory) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	if n < 0 {
		return nil, 0, fmt.Errorf("get tail of %s: %d bytes", key, n)
	}
	body, err := m.body(ctx, key)
	if err != nil {
		return nil, 0, fmt.Errorf("get tail of %s: %w", key, err)
	}
	size := int64(len(body))
	return append([]byte{}, body[size-min(n, size):]...), size, nil
}

// List implements [Source]. It yields the keys that were there when it began.
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, o := range m.objects(prefix, after) {
			if err := ctx.Err(); err != nil {
				yield(Object{}, fmt.Errorf("list %s: %w", prefix, err))
				return
			}
			if !yield(o, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Object{}, fmt.Errorf("list %s: %w", prefix, err))
		}
	}
}

func (m *Memory) objects(prefix, after string) []Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, _ := slices.BinarySearch(m.keys, prefix)
	var found []Object
	for _, key := range m.keys[from:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		if key > after {
			found = append(found, Object{Key: key, Size: int64(len(m.bodies[key]))})
		}
	}
	return found
}

// body returns the bytes that the bucket holds, which nobody may change.
func (m *Memory) body(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	body, ok := m.bodies[key]
	if !ok {
		return nil, ErrNotFound
	}
	return body, nil
}

func (m *Memory) now() time.Time {
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	return now().UTC().Truncate(time.Second)
}

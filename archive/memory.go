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

// A Memory is a [Store] in memory, for tests and for the bubble of
// testing/synctest. It is always right, but for deletes that it is told to
// refuse: other faults belong in a Store around it. The zero value is an empty
// bucket that keeps no versions.
//
// It does as S3 does, down to the id "null" of what was written while versions
// were off, and to the create-only write that succeeds above a delete marker.
type Memory struct {
	// Clock is the store's; nil is time.Now. It must not change while the
	// bucket is in use.
	Clock func() time.Time
	// DeleteFails is asked before each version is deleted; nil, or a nil error:
	// it goes. It must not change while the bucket is in use.
	DeleteFails func(Version) error

	mu         sync.Mutex
	versioning Versioning
	keys       []string // with at least one version, in byte order
	kept       map[string][]memoryVersion
	locked     map[string]bool
	uploads    []Upload // by key and id
	made       int      // ids so far
}

// A Versioning says what a bucket keeps of what is deleted or overwritten.
type Versioning int

// As S3 has it: a bucket that was versioned once can only be suspended, and
// then keeps what it had.
const (
	Unversioned Versioning = iota
	Versioned
	Suspended
)

// nullID is the id of what was written while versions were off.
const nullID = "null"

// A memoryVersion is one version of a key; nobody may change its body.
type memoryVersion struct {
	id       string
	marker   bool
	body     []byte
	modified time.Time
}

// NewMemory returns an empty bucket whose clock is time.Now.
func NewMemory() *Memory { return &Memory{} }

// SetVersioning switches versions on or off.
func (m *Memory) SetVersioning(v Versioning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.versioning = v
}

// Lock keeps all versions of a key from being deleted, or no longer.
func (m *Memory) Lock(key string, on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked == nil {
		m.locked = map[string]bool{}
	}
	m.locked[key] = on
}

// Create implements [Bucket]. The body is copied.
func (m *Memory) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("create %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.newest(key); taken {
		return m.now(), fmt.Errorf("create %s: %w", key, ErrExists)
	}
	return m.add(key, body, false), nil
}

// Overwrite writes an object whether or not the key is taken, as a stranger
// may.
func (m *Memory) Overwrite(key string, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(key, body, false)
}

// Remove deletes an object as one does who names no version: in a bucket with
// versions that leaves a marker above them.
func (m *Memory) Remove(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.versioning {
	case Unversioned:
		m.drop(key, nullID)
	default:
		m.add(key, nil, true)
	}
}

// add puts a version above the others of a key, and returns its time. Without
// versions it replaces the one that there is.
func (m *Memory) add(key string, body []byte, marker bool) time.Time {
	id := nullID
	if m.versioning == Versioned {
		m.made++
		id = fmt.Sprintf("v%08d", m.made)
	}
	m.drop(key, id)
	if m.kept == nil {
		m.kept = map[string][]memoryVersion{}
	}
	if at, ok := slices.BinarySearch(m.keys, key); !ok {
		m.keys = slices.Insert(m.keys, at, key)
	}
	v := memoryVersion{id: id, marker: marker, body: bytes.Clone(body), modified: m.now()}
	m.kept[key] = append(m.kept[key], v)
	return v.modified
}

// drop takes a version away.
func (m *Memory) drop(key, id string) {
	left := slices.DeleteFunc(m.kept[key], func(v memoryVersion) bool { return v.id == id })
	if len(left) > 0 {
		m.kept[key] = left
		return
	}
	delete(m.kept, key)
	if at, ok := slices.BinarySearch(m.keys, key); ok {
		m.keys = slices.Delete(m.keys, at, at+1)
	}
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

// GetRange implements [Ranger]. The caller owns the result.
func (m *Memory) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	if offset < 0 || n < 0 {
		return nil, fmt.Errorf("get range of %s: %d bytes from %d", key, n, offset)
	}
	body, err := m.body(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("get range of %s: %w", key, err)
	}
	rest := body[min(offset, int64(len(body))):]
	return append([]byte{}, rest[:min(n, int64(len(rest)))]...), nil
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
	var found []Object
	for _, key := range m.below(prefix) {
		if v, ok := m.newest(key); ok && key > after {
			found = append(found, Object{Key: key, Size: int64(len(v.body)), Modified: v.modified})
		}
	}
	return found
}

// below returns the keys that begin with prefix.
func (m *Memory) below(prefix string) []string {
	from, _ := slices.BinarySearch(m.keys, prefix)
	n := slices.IndexFunc(m.keys[from:], func(key string) bool { return !strings.HasPrefix(key, prefix) })
	if n < 0 {
		return m.keys[from:]
	}
	return m.keys[from : from+n]
}

// newest returns what Get finds.
func (m *Memory) newest(key string) (memoryVersion, bool) {
	all := m.kept[key]
	if len(all) == 0 || all[len(all)-1].marker {
		return memoryVersion{}, false
	}
	return all[len(all)-1], true
}

// body returns the bytes that the bucket holds, which nobody may change.
func (m *Memory) body(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.newest(key)
	if !ok {
		return nil, ErrNotFound
	}
	return v.body, nil
}

func (m *Memory) now() time.Time {
	now := time.Now
	if m.Clock != nil {
		now = m.Clock
	}
	return now().UTC().Truncate(time.Second)
}

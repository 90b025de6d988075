package archive

import (
	"context"
	"strings"
	"sync"
)

// A Keeper is a source that keeps small objects which never change, anchors and
// parts of catalogs, from one reading to the next: those that were asked for in
// the last one. Whether they are still there it does not say. It may be used by
// several goroutines.
type Keeper struct {
	Source
	mu        sync.Mutex
	kept, now map[string][]byte
}

// NewKeeper returns a Keeper of what src has, which has kept nothing.
func NewKeeper(src Source) *Keeper { return &Keeper{Source: src, now: map[string][]byte{}} }

// Turn begins a reading: what was not asked for since the last turn goes.
func (k *Keeper) Turn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept, k.now = k.now, map[string][]byte{}
}

// keeps reports whether the object of a key is small and never changes.
func keeps(key string) bool {
	return strings.HasPrefix(key, "anchor/") || strings.HasPrefix(key, "catalog/") && strings.Contains(key, "/part/")
}

// Get implements [Source].
func (k *Keeper) Get(ctx context.Context, key string) ([]byte, error) {
	if !keeps(key) {
		return k.Source.Get(ctx, key)
	}
	k.mu.Lock()
	body, ok := k.now[key]
	if !ok {
		body, ok = k.kept[key]
	}
	k.mu.Unlock()
	if !ok {
		var err error
		if body, err = k.Source.Get(ctx, key); err != nil {
			return nil, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now[key] = body
	return body, nil
}

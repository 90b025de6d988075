package archive

import (
	"context"
	"strings"
	"sync"
)

// A Keeper is a source that keeps objects which never change from one reading to
// the next: those that were asked for in the last one. Whether they are still there
// it does not say. It may be used by several goroutines.
type Keeper struct {
	Source
	keeps     func(key string) bool
	mu        sync.Mutex
	kept, now map[string][]byte
}

// NewKeeper returns a Keeper of some of what src has, such as [IsCatalogPart], which
// has kept nothing.
func NewKeeper(src Source, keeps func(key string) bool) *Keeper {
	return &Keeper{Source: src, keeps: keeps, now: map[string][]byte{}}
}

// IsCatalogPart reports whether a key is that of a part of a catalog.
func IsCatalogPart(key string) bool {
	return strings.HasPrefix(key, "catalog/") && strings.Contains(key, "/part/")
}

// IsAnchor reports whether a key is that of an anchor.
func IsAnchor(key string) bool { return strings.HasPrefix(key, "anchor/") }

// Turn begins a reading: what was not asked for since the last turn goes.
func (k *Keeper) Turn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept, k.now = k.now, map[string][]byte{}
}

// Get implements [Source].
func (k *Keeper) Get(ctx context.Context, key string) ([]byte, error) {
	if !k.keeps(key) {
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

package control

import (
	"context"
	"strings"
	"sync"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A keeper is a source that keeps small objects which never change, anchors and
// parts of catalogs, from one reading to the next: those that were asked for in
// the last one. Whether they are still there it does not say.
type keeper struct {
	archive.Source
	mu        sync.Mutex
	kept, now map[string][]byte
}

// turn begins a reading.
func (k *keeper) turn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept, k.now = k.now, map[string][]byte{}
}

// Get implements [archive.Source].
func (k *keeper) Get(ctx context.Context, key string) ([]byte, error) {
	if !strings.HasPrefix(key, "anchor/") && !strings.Contains(key, "/part/") {
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

package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// GetTagged implements [Swapper].
func (m *Memory) GetTagged(ctx context.Context, key string) (body []byte, tag string, err error) {
	held, err := m.body(ctx, key)
	if err != nil {
		return nil, "", fmt.Errorf("get %s: %w", key, err)
	}
	return append([]byte{}, held...), tagOf(held), nil
}

// Swap implements [Swapper]. The body is copied.
func (m *Memory) Swap(ctx context.Context, key string, body []byte, tag string) (newTag string, err error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("swap %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, there := m.newest(key)
	switch {
	case !there && tag != "":
		return "", fmt.Errorf("swap %s: %w", key, ErrNotFound)
	case there && tagOf(v.body) != tag:
		return "", fmt.Errorf("swap %s: %w", key, ErrExists)
	}
	m.add(key, body, false)
	return tagOf(body), nil
}

// tagOf returns the tag of an object, as S3 writes one.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

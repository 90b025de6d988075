package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// This file is the half of a Memory that takes things away.

// errNoVersion: a delete that names no version leaves the versions there.
var errNoVersion = errors.New("the bucket keeps versions, and none was named")

// Now implements [Store].
func (m *Memory) Now(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("get time: %w", err)
	}
	return m.now(), nil
}

// Versions implements [Store]. It yields those that were there when it began,
// the newest of a key first.
func (m *Memory) Versions(ctx context.Context, prefix string) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Version{}, fmt.Errorf("list versions of %s: %w", prefix, err))
			return
		}
		for v := range m.everything(prefix) {
			if err := ctx.Err(); err != nil {
				yield(Version{}, fmt.Errorf("list versions of %s: %w", prefix, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Everything yields each version with its bytes, which nobody may change, as
// one sees them who looks into the store's disks.
func (m *Memory) Everything() iter.Seq2[Version, []byte] { return m.everything("") }

func (m *Memory) everything(prefix string) iter.Seq2[Version, []byte] {
	m.mu.Lock()
	var found []Version
	var bodies [][]byte
	for _, key := range m.below(prefix) {
		all := m.kept[key]
		for i, v := range slices.Backward(all) {
			found = append(found, Version{
				Key: key, ID: m.shown(v.id), Marker: v.marker,
				Size: int64(len(v.body)), Modified: v.modified, Latest: i == len(all)-1,
			})
			bodies = append(bodies, v.body)
		}
	}
	m.mu.Unlock()
	return func(yield func(Version, []byte) bool) {
		for i, v := range found {
			if !yield(v, bodies[i]) {
				return
			}
		}
	}
}

// shown is an id as the store tells it.
func (m *Memory) shown(id string) string {
	if m.versioning == Unversioned && id == nullID {
		return ""
	}
	return id
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, versions []Version) []Kept {
	m.mu.Lock()
	defer m.mu.Unlock()
	var kept []Kept
	for _, v := range versions {
		if err := m.delete(ctx, v); err != nil {
			kept = append(kept, Kept{Version: v, Err: fmt.Errorf("delete %s: %w", v.Key, err)})
		}
	}
	return kept
}

func (m *Memory) delete(ctx context.Context, v Version) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id := v.ID
	switch {
	case id == "" && m.versioning != Unversioned:
		return errNoVersion
	case id == "":
		id = nullID
	}
	if !slices.ContainsFunc(m.kept[v.Key], func(k memoryVersion) bool { return k.id == id }) {
		return nil
	}
	if m.locked[v.Key] {
		return ErrLocked
	}
	if m.DeleteFails != nil {
		if err := m.DeleteFails(v); err != nil {
			return err
		}
	}
	m.drop(v.Key, id)
	return nil
}

// Begin begins an upload in parts that nobody finishes.
func (m *Memory) Begin(key string) Upload {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	u := Upload{Key: key, ID: fmt.Sprintf("u%08d", m.made), Begun: m.now()}
	at, _ := slices.BinarySearchFunc(m.uploads, u, compareUploads)
	m.uploads = slices.Insert(m.uploads, at, u)
	return u
}

func compareUploads(a, b Upload) int {
	if c := strings.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

// Uploads implements [Store].
func (m *Memory) Uploads(ctx context.Context, prefix string) iter.Seq2[Upload, error] {
	return func(yield func(Upload, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Upload{}, fmt.Errorf("list uploads of %s: %w", prefix, err))
			return
		}
		m.mu.Lock()
		uploads := slices.Clone(m.uploads)
		m.mu.Unlock()
		for _, u := range uploads {
			if strings.HasPrefix(u.Key, prefix) && !yield(u, nil) {
				return
			}
		}
	}
}

// Abort implements [Store].
func (m *Memory) Abort(ctx context.Context, u Upload) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("abort upload of %s: %w", u.Key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uploads = slices.DeleteFunc(m.uploads, func(o Upload) bool { return o.Key == u.Key && o.ID == u.ID })
	return nil
}

var _ Store = (*Memory)(nil)

//go:build it

// Package sql has engines of SQL read an archive by what `ledgerlake-export sql`
// prints: on the demo's records, whose answers are computed apart from all of it,
// before, while and after the archive is compacted.
package sql

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// base is where manifests say that the archive is.
const base = "s3://bucket/audit/"

// A mirror is an archive in memory with a copy as plain files, which engines read.
// Between any two writes it asks whoever looks.
type mirror struct {
	*archive.Memory
	t      *testing.T
	folder string
	now    time.Time
	one    sync.Mutex
	looked func(key string) // after a write
}

func newMirror(t *testing.T, folder string) *mirror {
	m := &mirror{t: t, folder: folder, now: time.Now().UTC()}
	m.Memory = &archive.Memory{Clock: func() time.Time { return m.now }}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		key, fault := filepath.Rel(folder, path)
		if err = errors.Join(err, fault); err != nil || d.IsDir() || strings.HasPrefix(key, ".sgwtmp") {
			return err
		}
		body, err := os.ReadFile(path)
		if err == nil {
			_, err = m.Memory.Create(context.Background(), filepath.ToSlash(key), body)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// copied has the file of a key be as the object is, and asks who looks.
func (m *mirror) copied(keys ...string) {
	m.t.Helper()
	for _, key := range keys {
		path := filepath.Join(m.folder, filepath.FromSlash(key))
		body, err := m.Memory.Get(context.Background(), key)
		switch {
		case errors.Is(err, archive.ErrNotFound):
			err = os.Remove(path)
		case err == nil:
			if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
				err = os.WriteFile(path, body, 0o644)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.t.Fatal(err)
		}
	}
	if m.looked != nil {
		m.looked(keys[0])
	}
}

func (m *mirror) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	m.one.Lock()
	defer m.one.Unlock()
	at, err := m.Memory.Create(ctx, key, body)
	if err == nil {
		m.copied(key)
	}
	return at, err
}

func (m *mirror) Swap(ctx context.Context, key string, body []byte, tag string) (string, error) {
	m.one.Lock()
	defer m.one.Unlock()
	tag, err := m.Memory.Swap(ctx, key, body, tag)
	if err == nil {
		m.copied(key)
	}
	return tag, err
}

func (m *mirror) Delete(ctx context.Context, versions []archive.Version) []archive.Kept {
	m.one.Lock()
	defer m.one.Unlock()
	kept := m.Memory.Delete(ctx, versions)
	var keys []string
	for _, v := range versions {
		keys = append(keys, v.Key)
	}
	if len(keys) > 0 {
		m.copied(keys...)
	}
	return kept
}

// governor returns what compacts the archive, with manifests.
func (m *mirror) governor(key *sign.Signer, purgeAfter time.Duration) *compaction.Governor {
	m.t.Helper()
	root, err := archive.OpenRoot(context.Background(), m)
	if err != nil {
		m.t.Fatal(err)
	}
	ring := &sign.Ring{}
	if err := ring.Add(key.VKey(), sign.AllRoles, "test"); err != nil {
		m.t.Fatal(err)
	}
	engine := compaction.New(compaction.Settings{
		Archive: m, Root: root, Keys: ring, Signers: func(time.Time) []note.Signer { return []note.Signer{key} },
		Manifests: &compaction.Manifests{Base: base, Store: m}, Once: true, Now: func() time.Time { return m.now }, Rand: rand.NewChaCha8([32]byte{}),
	})
	return compaction.NewGovernor(engine, compaction.Rules{Topic: audit.ControlTopic, PurgeAfter: purgeAfter})
}

// compact does all that there is to do now.
func (m *mirror) compact(g *compaction.Governor) {
	m.t.Helper()
	for more := true; more; {
		lines, err := archive.Lines(context.Background(), m)
		if err != nil {
			m.t.Fatal(err)
		}
		c, err := g.Cycle(context.Background(), lines, false)
		if err != nil || len(c.Failed) > 0 {
			m.t.Fatal(err, c)
		}
		more = c.More
	}
}

// ran runs a program to its end, and returns what it prints.
func ran(t *testing.T, stdin, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LEDGERLAKE_") }) // settings
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", filepath.Base(name), err, errs.String())
	}
	return out
}

// exported runs `ledgerlake-export sql`, and returns what it prints.
func exported(t *testing.T, args ...string) string {
	t.Helper()
	return string(ran(t, "", parts.Binary("ledgerlake-export"), append([]string{"sql"}, args...)...))
}

// query runs statements in DuckDB.
func query(t *testing.T, d *parts.DuckDB, statements ...string) [][]any {
	t.Helper()
	rows, err := d.Query(statements...)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// keyFile returns a file with a new key that signs.
func keyFile(t *testing.T) string {
	t.Helper()
	skey, _, err := sign.Generate(rand.Reader, "example.org/test")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "skey")
	if err := os.WriteFile(path, []byte(skey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// copied returns a bucket with the same objects.
func copied(t *testing.T, from *archive.Memory) *archive.Memory {
	t.Helper()
	to := archive.NewMemory()
	for o, err := range from.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		body, err := from.Get(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Create(t.Context(), o.Key, body); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// A bucket that was restored from a backup ends the process with an exit code of
// its own, and a line that names the partition and the way out; on that way it
// goes on. The second bucket has all anchors that the first ever had.
func TestABackupThatWasRestored(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	second := newStore(t)
	args := []string{
		"--topics", "audit.calls", "--anchor-key", keyFile(t), "--anchor-bucket", "s3://second?endpoint=" + second.url,
		"--anchor-s3.access-key-file", secretFile(t), "--anchor-s3.secret-key-file", secretFile(t),
	}
	life := func(from, to int, more ...string) {
		t.Helper()
		a := s.start(append(args, more...)...)
		s.until("ready", a.holds(1)) // a group that is not there has no offsets
		s.produce("audit.calls", 0, to-from)
		s.until("the commit", func() bool { return s.committed("audit.calls", 0) == int64(to) })
		if err := a.stop(); err != nil {
			t.Fatal(err)
		}
	}
	life(0, 5)
	backup := copied(t, s.store.Memory)
	life(5, 10)
	if keys := anchorKeys(t, second.Memory); len(keys) != 2 {
		t.Errorf("the second bucket has %q", keys)
	}
	s.store.Memory = backup
	err := <-s.start(args...).ended
	if exitCode(err) != exitBack || !strings.Contains(err.Error(), "audit.calls/0: ") || !strings.Contains(err.Error(), "trust-bucket") {
		t.Fatalf("exit %d: %v", exitCode(err), err)
	}
	life(10, 15, "--trust-bucket")
	life(15, 20)
	if rows := s.proved(); rows != 20 {
		t.Errorf("%d rows, want 20", rows)
	}
}

func secretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func anchorKeys(t *testing.T, b *archive.Memory) (keys []string) {
	t.Helper()
	for o, err := range b.List(t.Context(), "anchor/", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

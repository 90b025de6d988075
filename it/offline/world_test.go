//go:build it

package offline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// keyName is the name of the key that the archives here are signed by.
const keyName = "ledgerlake.test/anchors"

// A world is a signed archive with all that segments and anchors can hold, and
// its lines at hand to be tampered with.
type world struct {
	*prooftest.Archive
	calls, other, control *prooftest.Line
	// last changes objects after all was built.
	last func(objects map[string][]byte)
}

// newWorld builds three lines. Two anchors cover all of calls but its newest
// segment, and all of the others.
func newWorld() *world {
	a := prooftest.New()
	key := prooftest.Signer(keyName)
	a.Signers = []*sign.Signer{key}
	a.Keys.Anchor = []string{key.VKey()}
	w := &world{Archive: a, calls: a.Line("audit.calls", 0), other: a.Line("audit.calls", 1), control: a.Line(audit.ControlTopic, 0)}
	for i, fill := range []func(*prooftest.Batch){
		func(b *prooftest.Batch) {
			b.Call("acme")
			b.Call("a/b")
			b.Call("東京")
			b.Call("acme")
			b.Call("acme")
		},
		func(b *prooftest.Batch) { b.Call("acme"); b.Duplicate("acme", 0); b.Call("a/b") },
		func(b *prooftest.Batch) {
			b.Reject("acme", audit.ReasonInvalidUnicode, []byte("{\xff\x00"))
			b.Large("東京")
			b.Reject(audit.TenantUnattributed, audit.ReasonNullValue, nil)
		},
		func(b *prooftest.Batch) {
			b.Skip(1, archive.GapControl)
			b.Call("acme")
			b.Skip(3, archive.GapCompacted)
			b.Call("a/b")
		},
		func(b *prooftest.Batch) { b.Duplicate("東京", 1); b.Duplicate("acme", 4) },
		func(b *prooftest.Batch) { b.Call("acme"); b.Lost(4); b.Call("a/b") },
		func(b *prooftest.Batch) { b.Call("acme"); b.Call("acme") },
	} {
		w.calls.Segment(fill)
		if i == 2 || i == 5 {
			w.calls.Anchor()
		}
	}
	for range 3 {
		w.other.Segment(func(b *prooftest.Batch) { b.Call("globex"); b.Call("acme") })
		w.control.Segment(func(b *prooftest.Batch) { b.Control("acme") })
		w.other.Anchor()
		w.control.Anchor()
	}
	return w
}

func (w *world) objects() map[string][]byte {
	objects := w.Objects()
	if w.last != nil {
		w.last(objects)
	}
	return objects
}

// A checked is what the programs said of one archive.
type checked struct {
	verify  int // exit codes
	python  int
	sql     []bool // of each DuckDB: no faults
	details string
}

// check runs verify and both programs on objects.
func check(t *testing.T, objects map[string][]byte, vkey string) (c checked) {
	t.Helper()
	ring := new(sign.Ring)
	if err := ring.Add(vkey, sign.AllRoles, "given"); err != nil {
		t.Fatal(err)
	}
	r, err := proof.Verify(context.Background(), prooftest.Bucket(objects), proof.Options{Keys: ring})
	if err != nil {
		t.Fatal(err)
	}
	c.verify = r.ExitCode()
	var said strings.Builder
	for _, f := range r.Faults {
		said.WriteString("verify: " + f.String() + "\n")
	}
	dir := files(t, objects)
	out, code := python(t, "archive", dir, "--key", vkey)
	c.python = code
	said.WriteString("check.py: " + out)
	for _, d := range parts.DuckDBs() {
		_, err := d.Query("SET VARIABLE archive = '"+dir+"'", script(t))
		c.sql = append(c.sql, err == nil)
		if err != nil {
			said.WriteString("check.sql: " + err.Error() + "\n")
		}
	}
	c.details = said.String()
	return c
}

// files writes objects into a folder.
func files(t *testing.T, objects map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for key, body := range objects {
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, body, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// python runs check.py and returns what it printed, and its exit code.
func python(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(parts.Python("LEDGERLAKE_IT_PYTHON15", "py15"), append([]string{"-B", filepath.Join(programs(), "check.py")}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func script(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programs(), "check.sql"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func programs() string { return filepath.Join(parts.Root(), "proof", "offline") }

// all reports whether every one of all is want.
func all(all []bool, want bool) bool { return !slices.Contains(all, !want) }

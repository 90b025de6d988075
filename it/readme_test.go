//go:build it

package it

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// readmePath is where the archive lies that README.md talks about.
const readmePath = "data/demo/s3/audit"

// readme pastes every query of README.md into a shell, as it stands, and
// requires that DuckDB's own program answers with rows of the archive.
func readme(t *testing.T, a oracle.Archive) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(readmePath)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(a.Dir, filepath.Join(dir, readmePath)); err != nil {
		t.Fatal(err)
	}
	text := read(t, filepath.Join(parts.Root(), "README.md"))
	blocks := regexp.MustCompile("(?s)```sh\n(duckdb .*?)```").FindAllSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Error("README.md has no query")
	}
	path := "PATH=" + filepath.Dir(parts.Python("LEDGERLAKE_IT_PYTHON15", "py15")) + ":" + os.Getenv("PATH")
	for _, block := range blocks {
		cmd := exec.Command("sh", "-c", string(block[1]))
		cmd.Dir, cmd.Env = dir, append(os.Environ(), path)
		out, err := cmd.CombinedOutput()
		if err != nil || !regexp.MustCompile(`(?m)^│ +(acme|invalid_json)`).Match(out) {
			t.Errorf("%s\ndoes not answer: %v\n%s", block[1], err, out)
		}
	}
}

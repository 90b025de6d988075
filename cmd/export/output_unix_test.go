//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What is no file that can be replaced, as a pipe or a device, is written to as it is:
// whole, in one piece, and it stays what it was.
func TestOutputToAPipe(t *testing.T) {
	a, _ := example()
	dir, name := lay(t, a.Objects()), filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"jsonl", "csv", "table", "chained", "parquet"} {
		_, want, _, err := do(nil, "range", "--from", "2026-01-01", "--format", format, dir)
		if err != nil {
			t.Fatal(err)
		}
		got, read := make(chan string), error(nil)
		go func() {
			var text []byte
			text, read = os.ReadFile(name)
			got <- string(text)
		}()
		code, out, _, err := do(nil, "range", "--from", "2026-01-01", "--format", format, "--output", name, dir)
		if text := <-got; code != 0 || out != "" || text != want || want == "" || errors.Join(err, read) != nil {
			t.Errorf("%s: exit %d, %v, %v, %d bytes, want %d", format, code, err, read, len(text), len(want))
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
			t.Fatalf("%s: %v, %v", format, info.Mode(), err)
		}
	}
}

//go:build unix

package reach

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file that is replaced keeps its permissions, and a link stays one; no other file
// is left beside it.
func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	secret, link := filepath.Join(dir, "secret"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(secret, []byte("old"), 0o600), os.Symlink("secret", link), WriteFile(link, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(secret)
	info, fault := os.Stat(secret)
	if err = errors.Join(err, fault); err != nil || string(text) != "new" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", text, info, err)
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 2 || all[0].Type() != fs.ModeSymlink {
		t.Errorf("%v, %v", all, err)
	}
}

// A new file is as the umask lets it be.
func TestWriteFileGoesByTheUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	name := filepath.Join(t.TempDir(), "new")
	if err := WriteFile(name, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// What is no file that can be replaced stays what it is: a device of the machine
// would be gone for all.
func TestWriteFileToAPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		text, err := os.ReadFile(name)
		got <- string(text) + " " + errors.Join(err, errors.New("end")).Error()
	}()
	if err := WriteFile(name, []byte("text")); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "text end" {
		t.Error(text)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestWriteFileNeedsAPlace(t *testing.T) {
	dir := t.TempDir()
	for name, says := range map[string]string{"": "want the name of a file", dir: "is a folder"} {
		if err := WriteFile(name, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

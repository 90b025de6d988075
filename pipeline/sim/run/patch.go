package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A patch replaces one piece of a source by another. The source is named by a
// path below the repository, or below "std/", which stands for Go's own tree.
type patch struct {
	file     string
	old, new string
}

// An overlay is what go build reads instead of some sources: nothing of the
// repository or of Go's own tree is changed.
type overlay struct {
	std     string // the folder of the standard library
	repo    string
	folder  string // where the changed sources lie
	Replace map[string]string
}

// newOverlay returns an overlay without patches, whose files lie in folder.
func newOverlay(repo, folder string) (*overlay, error) {
	std, err := output(repo, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	return &overlay{std: filepath.Join(std, "src"), repo: repo, folder: folder, Replace: map[string]string{}}, os.MkdirAll(folder, 0o755)
}

// with returns an overlay that has more patches, in a folder of its own.
func (o *overlay) with(folder string, patches []patch) (*overlay, error) {
	c := &overlay{std: o.std, repo: o.repo, folder: folder, Replace: map[string]string{}}
	for k, v := range o.Replace {
		c.Replace[k] = v
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for _, p := range patches {
		if err := c.add(p); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// add applies one patch. Its old text must be there exactly once: a patch that
// no longer fits must fail, and not silently change nothing or something else.
func (o *overlay) add(p patch) error {
	source := o.source(p.file)
	from := source
	if changed, ok := o.Replace[source]; ok {
		from = changed
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), p.old); n != 1 {
		return fmt.Errorf("%s has %d times, not once:\n%s", p.file, n, p.old)
	}
	to := filepath.Join(o.folder, strings.ReplaceAll(p.file, "/", "_"))
	o.Replace[source] = to
	return os.WriteFile(to, []byte(strings.Replace(string(text), p.old, p.new, 1)), 0o644)
}

func (o *overlay) source(file string) string {
	if rest, ok := strings.CutPrefix(file, "std/"); ok {
		return filepath.Join(o.std, filepath.FromSlash(rest))
	}
	return filepath.Join(o.repo, filepath.FromSlash(file))
}

// write writes the overlay's document and returns its path.
func (o *overlay) write() (string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	path := filepath.Join(o.folder, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}

// output runs a command in a folder and returns what it prints, without the
// last newline.
func output(folder, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

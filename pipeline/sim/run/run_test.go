package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every patch finds its old text exactly once in the sources as they are, so
// that a change of the engine or of Go is noticed here, and not first where the
// simulation runs.
func TestPatchesFit(t *testing.T) {
	plain, err := newOverlay("../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := plain.with(t.TempDir(), replay)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range variants {
		o, err := runtime.with(t.TempDir(), v.patches)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
			continue
		}
		if len(o.Replace) <= len(runtime.Replace) {
			t.Errorf("%s changes nothing", v.name)
		}
	}
}

// A patch whose old text is not there, or there twice, is refused.
func TestPatchMustFit(t *testing.T) {
	repo := t.TempDir()
	if err := os.WriteFile(filepath.Join(repo, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &overlay{repo: repo, Replace: map[string]string{}}
	for old, fits := range map[string]bool{"one": true, "two": false, "three": false} {
		changed, err := o.with(t.TempDir(), []patch{{"a.go", old, "new"}})
		if (err == nil) != fits {
			t.Errorf("%q: %v", old, err)
		}
		if !fits {
			continue
		}
		text, err := os.ReadFile(changed.Replace[filepath.Join(repo, "a.go")])
		if err != nil || string(text) != "new two two" {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// Two patches of one file are applied one after the other.
func TestPatchesOfOneFile(t *testing.T) {
	repo := t.TempDir()
	if err := os.WriteFile(filepath.Join(repo, "a.go"), []byte("a b"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &overlay{repo: repo, Replace: map[string]string{}}
	o, err := o.with(t.TempDir(), []patch{{"a.go", "a", "x"}, {"a.go", "x b", "y"}})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(o.Replace[filepath.Join(repo, "a.go")]); err != nil || string(text) != "y" {
		t.Errorf("%q, %v", text, err)
	}
}

// What a process prints is its summary, its failure, or neither: then it broke
// down.
func TestParse(t *testing.T) {
	s, f := parse("noise\nsummary {\"Seeds\":3,\"Steps\":9,\"CPU\":1000,\"Counts\":{\"a\":2,\"b\":0}}\nPASS\n")
	if f != nil || s == nil || s.Seeds != 3 || s.Counts["a"] != 2 {
		t.Errorf("%+v, %v", s, f)
	}
	if never := s.never(); len(never) != 1 || never[0] != "b" {
		t.Errorf("never: %q", never)
	}
	s, f = parse("one\ntwo\nfailure 17 offset 5: a gap; and more\n--- FAIL\n")
	if s != nil || f == nil || f.seed != 17 || f.why != "offset 5: a gap; and more" || f.trace != "one\ntwo" || f.broken {
		t.Errorf("%v, %+v", s, f)
	}
	if s, f := parse("panic: no\n"); s != nil || f != nil {
		t.Errorf("%v, %v", s, f)
	}
}

// The names of variants tell them apart.
func TestVariantNames(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range variants {
		if seen[v.name] || strings.TrimSpace(v.name) == "" {
			t.Errorf("%q", v.name)
		}
		seen[v.name] = true
	}
	if len(seen) != 27 {
		t.Errorf("%d variants, want the twenty-seven", len(seen))
	}
}

package layers

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// No file of the repository imports what the table does not list.
func TestArrowsAreListed(t *testing.T) {
	files, err := Read(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range Check(Rooms, files) {
		t.Error(fault)
	}
	if !slices.ContainsFunc(files, func(f File) bool { return f.Path == "internal/layers/layers_test.go" }) {
		t.Errorf("read %d files, and not this one", len(files))
	}
}

// Arrows point down: a room imports rooms that stand before it in the table,
// none twice. Only tests may look up.
func TestArrowsPointDown(t *testing.T) {
	var below []string
	for _, r := range Rooms {
		for _, to := range r.Imports {
			if !slices.Contains(below, to) {
				t.Errorf("%s imports %s, which does not stand below it", r.Folder, to)
			}
		}
		for _, to := range r.TestImports {
			if find(Rooms, to) == nil {
				t.Errorf("tests of %s import %s, which is no room", r.Folder, to)
			}
		}
		if slices.Contains(below, r.Folder) {
			t.Errorf("%s stands there twice", r.Folder)
		}
		below = append(below, r.Folder)
	}
}

var someRooms = []Room{
	{Folder: "low", Drivers: []string{"example.com/driver"}, Never: []string{"log"}},
	{Folder: "low/lowtest", TestOnly: true, Imports: []string{"low"}},
	{Folder: "high", Imports: []string{"low"}, TestImports: []string{"low/lowtest", "side"}, TestDrivers: []string{"example.com/fake"}},
	{Folder: "side", Imports: []string{"low", "low/lowtest"}},
}

// The check can fail. Each line is one file with one import.
func TestCheckFindsWhatIsNotListed(t *testing.T) {
	const our = module + "/"
	for _, c := range []struct {
		file, imports string
		fault         string // "" = none
	}{
		{"high/a.go", our + "low", ""},
		{"high/a.go", our + "low/sub", ""},
		{"high/sub/a.go", our + "low", ""},
		{"high/sub/a.go", our + "high", ""},
		{"high/a.go", "fmt", ""},
		{"low/a.go", "example.com/driver", ""},
		{"low/a.go", "example.com/driver/v2/sub", ""},
		{"low/a_test.go", "log", ""},
		{"high/a.go", "log", ""},
		{"high/a_test.go", our + "side", ""},
		{"high/a_test.go", our + "low/lowtest", ""},
		{"high/a_test.go", "example.com/fake", ""},
		{"low/lowtest/a.go", our + "low", ""},
		{"low/a.go", our + "high", "no arrow from low to high"},
		{"low/a_test.go", our + "high", "no arrow from low to high"},
		{"high/a.go", our + "side", "no arrow from high to side"},
		{"high/a.go", our + "low/lowtest", "low/lowtest is for tests"},
		{"side/a.go", our + "low/lowtest", "low/lowtest is for tests"},
		{"high/a.go", our + "unknown", "it is in no room"},
		{"high/a.go", module, "it is in no room"},
		{"high/a.go", "example.com/driver", "no driver of high"},
		{"high/a.go", "example.com/fake", "no driver of high"},
		{"low/a.go", "example.com/driver2", "no driver of low"},
		{"low/a_test.go", "example.com/fake", "no driver of low"},
		{"low/a.go", module + "x/low", "no driver of low"},
		{"low/a.go", "log", "low does without it"},
		{"low/a.go", "C", "cgo"},
		{"a.go", "fmt", "is in no room"},
		{"other/a.go", "fmt", "is in no room"},
		{"lower/a.go", "fmt", "is in no room"},
	} {
		faults := Check(someRooms, []File{{Path: c.file, Imports: []string{c.imports}}})
		if len(faults) > 1 || (len(faults) == 1) != (c.fault != "") || c.fault != "" && !strings.HasSuffix(faults[0], c.fault) {
			t.Errorf("%s imports %s: %q, want %q", c.file, c.imports, faults, c.fault)
		}
	}
}

// Sources are found at any depth, in nested modules too, whatever their build
// tags; what is not ours is skipped, and what does not parse is an error.
func TestReadFindsEverySource(t *testing.T) {
	source := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	root := fstest.MapFS{
		"a/a.go":               source("package a\nimport (\n\t_ \"one\"\n\tx `two`\n)\nvar _ = x.Y"),
		"a/nested/go.mod":      source("module nested"),
		"a/nested/b/b_test.go": source("//go:build never\n\npackage b\nimport \"three\"\n"),
		"a/testdata/c.go":      source("no source"),
		".hidden/d.go":         source("no source"),
		"bin/e.go":             source("no source"),
		"a/readme.md":          source("no source"),
	}
	files, err := Read(root)
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	if f := files[0]; f.Path != "a/a.go" || f.Test() || !slices.Equal(f.Imports, []string{"one", "two"}) {
		t.Errorf("%+v", f)
	}
	if f := files[1]; f.Path != "a/nested/b/b_test.go" || !f.Test() || !slices.Equal(f.Imports, []string{"three"}) {
		t.Errorf("%+v", f)
	}
	root["a/broken.go"] = source("package")
	if _, err := Read(root); err == nil {
		t.Error("a broken source is read")
	}
	if _, err := Read(fs.FS(os.DirFS("no such folder"))); err == nil {
		t.Error("a folder that is not there is read")
	}
}

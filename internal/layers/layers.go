// Package layers says which room may import what: the arrows of the
// architecture, as a table that a test holds the code against.
//
// A room is a folder with all packages in it, up to a folder below that is a
// room itself. Rooms stand in the order of the table, lowest first, and arrows
// point down only: a room imports rooms above it in the table, and of those the
// ones that are listed. A driver for something outside (Kafka, S3, Parquet)
// belongs to one room, so that the others stay free of it.
//
// The package parses the sources itself, those of nested modules too, and runs
// no tool: so the test's result is cached exactly as long as no source changes.
// It sees imports and nothing else: not which functions are called, and not
// what the imported modules import.
package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the path of the repository's main module. Nested ones lie below it.
const module = "github.com/ledgerlake/ledgerlake"

// A Room is what one folder may import.
type Room struct {
	Folder  string   // below the repository's root
	Imports []string // rooms, by folder
	Drivers []string // paths of modules or packages that are not ours; what lies below them, too
	Never   []string // packages of the standard library that the room must do without

	// What _test.go files may import beside that.
	TestImports []string
	TestDrivers []string

	// TestOnly is true for rooms that serve tests: no product code imports them.
	TestOnly bool
}

// A File is one Go source and what it imports.
type File struct {
	Path    string // slashes, below the repository's root
	Imports []string
}

// Test reports whether the file is compiled for tests alone.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Read parses the imports of all Go sources in the repository at root. It skips
// testdata and what git does not keep: bin, data, dist and names with a dot.
func Read(root fs.FS) ([]File, error) {
	var files []File
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		file, err := parse(root, name)
		files = append(files, file)
		return err
	})
	return files, err
}

func skipped(folder string) bool {
	base := path.Base(folder)
	return folder != "." && base[0] == '.' || slices.Contains([]string{"testdata", "bin", "data", "dist"}, base)
}

func parse(root fs.FS, name string) (File, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return File{}, err
	}
	source, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return File{}, err
	}
	file := File{Path: name}
	for _, spec := range source.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return File{}, err
		}
		file.Imports = append(file.Imports, imported)
	}
	return file, nil
}

// Check returns one line for each import that the table does not allow, and for
// each file that is in no room.
func Check(rooms []Room, files []File) []string {
	var faults []string
	for i := range files {
		from := find(rooms, path.Dir(files[i].Path))
		if from == nil {
			faults = append(faults, files[i].Path+" is in no room")
			continue
		}
		for _, imported := range files[i].Imports {
			if why := from.refuses(rooms, &files[i], imported); why != "" {
				faults = append(faults, fmt.Sprintf("%s imports %s: %s", files[i].Path, imported, why))
			}
		}
	}
	return faults
}

// refuses says why a file of the room may not import a package, "" if it may.
func (r *Room) refuses(rooms []Room, f *File, imported string) string {
	folder, ours := strings.CutPrefix(imported+"/", module+"/")
	switch first, _, _ := strings.Cut(imported, "/"); {
	case ours:
		return r.refusesRoom(find(rooms, path.Clean(folder)), f)
	case imported == "C":
		return "cgo"
	case !strings.Contains(first, "."): // the standard library
		if !f.Test() && slices.Contains(r.Never, imported) {
			return r.Folder + " does without it"
		}
	case !isBelow(imported, r.Drivers) && !(f.Test() && isBelow(imported, r.TestDrivers)):
		return "no driver of " + r.Folder
	}
	return ""
}

func (r *Room) refusesRoom(to *Room, f *File) string {
	switch {
	case to == nil:
		return "it is in no room"
	case to == r:
		return ""
	case to.TestOnly && !f.Test() && !r.TestOnly:
		return to.Folder + " is for tests"
	case slices.Contains(r.Imports, to.Folder), f.Test() && slices.Contains(r.TestImports, to.Folder):
		return ""
	}
	return fmt.Sprintf("no arrow from %s to %s", r.Folder, to.Folder)
}

// find returns the room that a folder lies in, nil if there is none.
func find(rooms []Room, folder string) *Room {
	for ; folder != "."; folder = path.Dir(folder) {
		for i := range rooms {
			if rooms[i].Folder == folder {
				return &rooms[i]
			}
		}
	}
	return nil
}

// isBelow reports whether a package is one of those listed, or lies below one.
func isBelow(imported string, listed []string) bool {
	return slices.ContainsFunc(listed, func(l string) bool { return imported == l || strings.HasPrefix(imported, l+"/") })
}

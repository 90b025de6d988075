package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// drawTree draws the folders and files of an archive with their sizes. Of
// the segments of a line it shows the first and the last.
func drawTree(w io.Writer, shown, folder string) error {
	fmt.Fprintln(w, shown)
	return drawFolder(w, os.DirFS(folder), ".", "")
}

func drawFolder(w io.Writer, tree fs.FS, at, indent string) error {
	entries, err := fs.ReadDir(tree, at)
	if err != nil {
		return err
	}
	entries = visible(entries)
	for i, e := range entries {
		branch, below := "├── ", "│   "
		if i == len(entries)-1 {
			branch, below = "└── ", "    "
		}
		switch {
		case e.IsDir():
			fmt.Fprintf(w, "%s%s%s/\n", indent, branch, e.Name())
			if err := drawFolder(w, tree, path.Join(at, e.Name()), indent+below); err != nil {
				return err
			}
		case i == 1 && len(entries) > 3:
			fmt.Fprintf(w, "%s├── … %d more\n", indent, len(entries)-2)
		case i == 0 || i == len(entries)-1 || len(entries) <= 3:
			info, err := e.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s%s%s  %s\n", indent, branch, e.Name(), size(info.Size()))
		}
	}
	return nil
}

// visible leaves out what the store keeps for itself.
func visible(entries []fs.DirEntry) []fs.DirEntry {
	var shown []fs.DirEntry
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			shown = append(shown, e)
		}
	}
	return shown
}

// copyFolder copies the regular files of a folder to a new one.
func copyFolder(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	})
}

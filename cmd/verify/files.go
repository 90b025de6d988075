package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ledgerlake/ledgerlake/internal/reach"
)

// writeOut writes a result to a file, or to stdout where name is "-". A file is
// there whole or not at all.
func writeOut(c call, name string, body []byte) error {
	if name == "-" {
		_, err := c.stdout.Write(body)
		return err
	}
	return reach.WriteFile(name, body)
}

// A tileFolder keeps tiles as files.
type tileFolder string

func (d tileFolder) path(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

// Read implements [proof.TileStore].
func (d tileFolder) Read(name string) (body []byte, ok bool, err error) {
	body, err = os.ReadFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return body, err == nil, err
}

// Write implements [proof.TileStore].
func (d tileFolder) Write(name string, body []byte) error {
	path := d.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return reach.WriteFile(path, body)
}

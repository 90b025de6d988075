package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writeOut writes a result to a file, or to stdout where name is "-". A file is
// there whole or not at all.
func writeOut(c call, name string, body []byte) error {
	if name == "-" {
		_, err := c.stdout.Write(body)
		return err
	}
	return writeFile(name, body)
}

// writeFile writes a file beside its place, and then puts it there.
func writeFile(name string, body []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".ledgerlake-*")
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
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
	return writeFile(path, body)
}

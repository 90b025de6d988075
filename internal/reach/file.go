package reach

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A File is written beside its place, and is then put there whole. What cannot be
// replaced, as a device or a pipe, is written to as it is.
type File struct {
	*os.File
	place string // where it is to be; "" of what is written to as it is, and once it is there
}

// Create begins a file. It has the permissions of the file that it is to replace, or
// those that the umask leaves.
func Create(name string) (*File, error) {
	info, none := os.Stat(name)
	switch {
	case name == "":
		return nil, errors.New("want the name of a file")
	case none == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder: want the name of a file", name)
	case none == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{File: f}, nil
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // a link stays one
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(name), ".ledgerlake-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	file := &File{f, name}
	if none != nil {
		return file, nil
	}
	if err := f.Chmod(info.Mode().Perm()); err != nil {
		file.Drop()
		return nil, err
	}
	return file, nil
}

// Put puts the file, which was closed, in its place.
func (f *File) Put() error {
	if f.place == "" {
		return nil
	}
	err := os.Rename(f.Name(), f.place)
	if err == nil {
		f.place = ""
	}
	return err
}

// Drop takes away a file that was not put in its place.
func (f *File) Drop() {
	_ = f.Close()
	if f.place != "" {
		_ = os.Remove(f.Name())
	}
}

// WriteFile writes a file beside its place, and then puts it there.
func WriteFile(name string, body []byte) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	defer f.Drop()
	_, err = f.Write(body)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return f.Put()
}

// IsTerminal reports whether what is written there is read by a person.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

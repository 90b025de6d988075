package reach

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// WriteFile writes a file beside its place, and then puts it there.
func WriteFile(name string, body []byte) error {
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

// IsTerminal reports whether what is written there is read by a person.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

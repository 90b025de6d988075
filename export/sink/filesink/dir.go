package filesink

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Dir returns a Store that writes files below a folder, which is made where it is
// not there. A file and the folders that lead to it are synced before Put returns.
func Dir(name string) (Store, error) {
	if err := os.MkdirAll(name, 0o750); err != nil {
		return nil, err
	}
	root, err := filepath.Abs(name)
	return dir{root}, err
}

type dir struct{ root string }

// Put implements [Store].
func (d dir) Put(ctx context.Context, name string, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path := filepath.Join(d.root, filepath.FromSlash(name))
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return replace(path, body)
}

// makeFolder makes a folder, and syncs those that it is made in.
func makeFolder(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// replace writes a file beside its place, and then puts it there. One that a crash
// left there is written over by the next try.
func replace(path string, body []byte) error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), ".writing-"+filepath.Base(path)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

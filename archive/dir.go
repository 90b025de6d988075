package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
)

// storeFolders are the names that a store which keeps a bucket as a folder
// keeps for itself at its root. ".sgwtmp" is versitygw's, for uploads.
var storeFolders = []string{".sgwtmp"}

// A Dir is an archive as plain files in a folder, read only: a bucket that an
// auditor downloaded, or the folder of a store that keeps objects as files.
// A file's key is its path below the folder, with slashes.
//
// A symbolic link is never followed, and neither it nor a device, socket or
// pipe is an object: what lies elsewhere is no evidence of this archive. Such
// an entry is not passed over in silence either: a listing that meets one ends
// with an error that names it. The folder itself may be reached by a link.
//
// In the folder of a store that keeps versions there, what was deleted may
// still have an empty file: read such a bucket through its store.
//
// A file system that does not tell upper from lower case cannot hold an
// archive whose keys differ in nothing else.
type Dir struct {
	root *os.Root
}

// errNotRegular says that a path leads to, or over, something that is neither
// a file nor a folder.
var errNotRegular = errors.New("not a regular file, and links are not followed")

// OpenDir opens a folder. The folder is held open until Close.
func OpenDir(name string) (*Dir, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open archive folder: %w", err)
	}
	return &Dir{root: root}, nil
}

// Close lets go of the folder.
func (d *Dir) Close() error { return d.root.Close() }

// Get implements [Source].
func (d *Dir) Get(ctx context.Context, key string) ([]byte, error) {
	body, _, err := d.read(ctx, key, func(size int64) (from, n int64) { return 0, size })
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return body, nil
}

// GetTail implements [Source].
func (d *Dir) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	if n < 0 {
		return nil, 0, fmt.Errorf("get tail of %s: %d bytes", key, n)
	}
	tail, size, err := d.read(ctx, key, func(size int64) (from, length int64) { return size - min(n, size), min(n, size) })
	if err != nil {
		return nil, 0, fmt.Errorf("get tail of %s: %w", key, err)
	}
	return tail, size, nil
}

// GetRange implements [Ranger].
func (d *Dir) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	if offset < 0 || n < 0 {
		return nil, fmt.Errorf("get range of %s: %d bytes from %d", key, n, offset)
	}
	body, _, err := d.read(ctx, key, func(size int64) (from, length int64) {
		from = min(offset, size)
		return from, min(n, size-from)
	})
	if err != nil {
		return nil, fmt.Errorf("get range of %s: %w", key, err)
	}
	return body, nil
}

// read returns a part of a file, which part gives for its size, and the size.
func (d *Dir) read(ctx context.Context, key string, part func(size int64) (from, n int64)) ([]byte, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := d.checkKey(key); err != nil {
		return nil, 0, err
	}
	f, err := d.root.Open(key)
	if err != nil {
		return nil, 0, fileError(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fileError(err)
	}
	from, n := part(info.Size())
	if err := CheckSize(key, n); err != nil {
		return nil, 0, err
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(f, from, n), body); err != nil {
		return nil, 0, fmt.Errorf("file ended early: %w", err)
	}
	return body, info.Size(), nil
}

// checkKey returns an error unless key is the path of a regular file that is
// reached over folders only. It looks before the file is opened, because to
// open a pipe is to wait for its other end.
func (d *Dir) checkKey(key string) error {
	if !fs.ValidPath(key) || key == "." {
		return fmt.Errorf("key is not a path of a file: %w", ErrNotFound)
	}
	first, _, _ := strings.Cut(key, "/")
	if slices.Contains(storeFolders, first) {
		return fmt.Errorf("kept by the store for itself: %w", ErrNotFound)
	}
	for i, c := range key + "/" {
		if c != '/' {
			continue
		}
		info, err := d.root.Lstat(key[:i])
		if err != nil {
			return fileError(err)
		}
		if err := checkMode(info.Mode(), i < len(key)); err != nil {
			return fmt.Errorf("%s: %w", key[:i], err)
		}
	}
	return nil
}

// checkMode checks one step of a path: a folder on the way, a file at its end.
func checkMode(mode fs.FileMode, onTheWay bool) error {
	switch {
	case !mode.IsDir() && !mode.IsRegular():
		return errNotRegular
	case mode.IsDir() != onTheWay:
		return ErrNotFound
	}
	return nil
}

// List implements [Source]. It reads a folder at a time.
func (d *Dir) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		w := dirWalk{dir: d, ctx: ctx, prefix: prefix, after: after, yield: yield}
		if _, err := w.folder(""); err != nil {
			yield(Object{}, fmt.Errorf("list %s: %w", prefix, err))
		}
	}
}

// A dirWalk visits files in the order of their keys' bytes, which is not the
// order of a walk: "a-b" sorts before "a/c", and the folder "a" before "a-b".
// So each folder's entries are sorted with the slash that follows in keys.
type dirWalk struct {
	dir           *Dir
	ctx           context.Context
	prefix, after string
	yield         func(Object, error) bool
}

// folder visits a folder, "" or a path that ends with a slash. It reports
// whether the walk goes on.
func (w *dirWalk) folder(at string) (bool, error) {
	if err := w.ctx.Err(); err != nil {
		return false, err
	}
	entries, err := w.entries(at)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if goOn, err := w.entry(at, e); !goOn || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (w *dirWalk) entry(at string, e fs.DirEntry) (bool, error) {
	key := at + keyName(e)
	switch {
	case at == "" && slices.Contains(storeFolders, e.Name()):
		return true, nil
	case e.IsDir():
		if !w.wantsFolder(key) {
			return true, nil
		}
		return w.folder(key)
	case !e.Type().IsRegular() && (w.wantsFile(key) || w.wantsFolder(key+"/")):
		return false, fmt.Errorf("%s: %w", key, errNotRegular)
	case !w.wantsFile(key):
		return true, nil
	}
	info, err := e.Info()
	if err != nil {
		return false, fileError(err)
	}
	return w.yield(Object{Key: key, Size: info.Size(), Modified: info.ModTime().UTC()}, nil), nil
}

// wantsFile reports whether key is asked for.
func (w *dirWalk) wantsFile(key string) bool {
	return strings.HasPrefix(key, w.prefix) && key > w.after
}

// wantsFolder reports whether a key below folder can be one that is asked for.
func (w *dirWalk) wantsFolder(folder string) bool {
	fits := strings.HasPrefix(folder, w.prefix) || strings.HasPrefix(w.prefix, folder)
	return fits && (folder > w.after || strings.HasPrefix(w.after, folder))
}

func (w *dirWalk) entries(at string) ([]fs.DirEntry, error) {
	f, err := w.dir.root.Open(path.Clean("./" + at))
	if err != nil {
		return nil, fileError(err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, fileError(err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(keyName(a), keyName(b)) })
	return entries, nil
}

// keyName is the name of an entry as it continues in keys.
func keyName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// fileError adds what a caller of a Source acts on to an error of a file.
func fileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return err
}

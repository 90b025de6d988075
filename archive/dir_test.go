package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
)

func TestDirIsASource(t *testing.T) {
	archivetest.RunRanger(t, func(t *testing.T, objects map[string][]byte) archive.Ranger {
		return openDir(t, lay(t, t.TempDir(), objects))
	})
}

// Whatever a key or a link says, nothing outside the folder is read: neither
// its bytes nor that it is there.
func TestDirDoesNotLeaveItsFolder(t *testing.T) {
	outside := lay(t, t.TempDir(), map[string][]byte{"secret": []byte("secret"), "bucket/log/x": []byte("x")})
	bucket := filepath.Join(outside, "bucket")
	symlink(t, filepath.Join(outside, "secret"), filepath.Join(bucket, "log/file"))
	symlink(t, outside, filepath.Join(bucket, "log/folder"))
	symlink(t, "x", filepath.Join(bucket, "log/near"))
	symlink(t, "nowhere", filepath.Join(bucket, "log/broken"))
	d := openDir(t, bucket)
	for _, key := range []string{
		"../secret", "log/../../secret", "/secret", filepath.Join(outside, "secret"), "..", ".", "", "log/./x", "log//x",
		"log/file", "log/folder/secret", "log/near", "log/broken", "log/folder",
	} {
		if got, err := d.Get(t.Context(), key); err == nil || got != nil {
			t.Errorf("Get(%q) = %q, %v; want an error", key, got, err)
		}
		if got, _, err := d.GetTail(t.Context(), key, 3); err == nil || got != nil {
			t.Errorf("GetTail(%q) = %q, %v; want an error", key, got, err)
		}
		if got, err := d.GetRange(t.Context(), key, 0, 3); err == nil || got != nil {
			t.Errorf("GetRange(%q) = %q, %v; want an error", key, got, err)
		}
	}
	if got, err := d.Get(t.Context(), "log/x"); err != nil || string(got) != "x" {
		t.Errorf("Get beside the links = %q, %v", got, err)
	}
}

// A link that could stand for objects that are asked for ends the listing with
// its name; one elsewhere is of no interest.
func TestDirNamesALinkInsteadOfFollowingIt(t *testing.T) {
	bucket := lay(t, t.TempDir(), map[string][]byte{"anchor/x": {}, "log/b/x": {}, "log/b/z": {}})
	symlink(t, "b", filepath.Join(bucket, "log/c"))
	symlink(t, "x", filepath.Join(bucket, "log/b/y"))
	for _, c := range []struct{ prefix, after, names string }{
		{"", "", "log/b/y"},
		{"log/", "", "log/b/y"},
		{"log/b/y", "", "log/b/y"},
		{"log/", "log/b/y", "log/b/y"}, // it could be a folder
		{"log/", "log/b/z", "log/c"},
		{"log/c", "", "log/c"},
		{"log/c/x", "", "log/c"},
		{"log/b/z", "", ""},
		{"anchor/", "", ""},
		{"log/", "log/d", ""},
	} {
		err := listErr(t, openDir(t, bucket), c.prefix, c.after)
		if (err == nil) != (c.names == "") || err != nil && !strings.Contains(err.Error(), " "+c.names+":") {
			t.Errorf("List(%q, after %q) ends with %v; want one that names %q", c.prefix, c.after, err, c.names)
		}
	}
}

// Only what a store keeps at the root, for itself, is left out; the same name
// below is somebody's object.
func TestDirLeavesOutWhatAStoreKeepsForItself(t *testing.T) {
	d := openDir(t, lay(t, t.TempDir(), map[string][]byte{
		".sgwtmp/multipart/x": []byte("upload"), "log/.sgwtmp/x": {}, ".sgwtmp2": {}, ".other/x": {},
	}))
	var got []string
	for o, err := range d.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Key)
	}
	if want := ".other/x .sgwtmp2 log/.sgwtmp/x"; strings.Join(got, " ") != want {
		t.Errorf("List = %q, want %q", got, want)
	}
	if _, err := d.Get(t.Context(), ".sgwtmp/multipart/x"); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("Get of an upload's part: %v, want ErrNotFound", err)
	}
}

func TestOpenDirWantsAFolder(t *testing.T) {
	file := filepath.Join(lay(t, t.TempDir(), map[string][]byte{"f": {}}), "f")
	for _, name := range []string{file, file + "2", ""} {
		if d, err := archive.OpenDir(name); err == nil {
			d.Close()
			t.Errorf("OpenDir(%q) gives no error", name)
		}
	}
}

// What the user may not read is a denial, not an absence: an archive that
// cannot be read must not pass for an empty one.
func TestDirTellsDeniedFromAbsent(t *testing.T) {
	bucket := lay(t, t.TempDir(), map[string][]byte{"log/x": []byte("x")})
	if err := os.Chmod(filepath.Join(bucket, "log"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(bucket, "log"), 0o700)
	if _, err := os.ReadDir(filepath.Join(bucket, "log")); err == nil {
		t.Skip("this user may read everything")
	}
	d := openDir(t, bucket)
	if _, err := d.Get(t.Context(), "log/x"); !errors.Is(err, archive.ErrDenied) {
		t.Errorf("Get: %v, want ErrDenied", err)
	}
	if err := listErr(t, d, "", ""); !errors.Is(err, archive.ErrDenied) {
		t.Errorf("List: %v, want ErrDenied", err)
	}
}

func openDir(t *testing.T, name string) *archive.Dir {
	t.Helper()
	d, err := archive.OpenDir(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// lay writes objects as files below root, and returns root.
func lay(t *testing.T, root string, objects map[string][]byte) string {
	t.Helper()
	for key, body := range objects {
		file := filepath.Join(root, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func symlink(t *testing.T, to, at string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func listErr(t *testing.T, d *archive.Dir, prefix, after string) error {
	t.Helper()
	for _, err := range d.List(t.Context(), prefix, after) {
		if err != nil {
			return err
		}
	}
	return nil
}

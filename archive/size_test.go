package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// What is larger than anything that belongs there is not read.
func TestWhatIsTooLargeIsNotRead(t *testing.T) {
	folder := t.TempDir()
	for key, size := range map[string]int64{"anchor/a/b/00000/0.note": 256<<20 + 1, "log/a/b/00000/0.parquet": 1 << 40, "data/a.parquet": 8<<30 + 1} {
		path := filepath.Join(folder, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Skip(err) // the file system has no holes
		}
		d, err := archive.OpenDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Get(t.Context(), key); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%s: %v", key, err)
		}
		if tail, n, err := d.GetTail(t.Context(), key, 10); err != nil || n != size || len(tail) != 10 {
			t.Errorf("%s: its tail: %v", key, err)
		}
	}
	if err := archive.CheckSize("log/a/b/00000/0.parquet", 256<<20); err != nil {
		t.Error(err)
	}
}

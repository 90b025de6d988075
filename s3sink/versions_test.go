package s3sink

import (
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
)

func TestBucketIsAStore(t *testing.T) {
	for name, versioning := range map[string]archive.Versioning{"unversioned": archive.Unversioned, "versioned": archive.Versioned, "suspended": archive.Suspended} {
		t.Run(name, func(t *testing.T) {
			archivetest.RunStore(t, func(t *testing.T) *archivetest.Yard { return yard(t, versioning) })
		})
	}
}

// yard is a part of a store whose pages are small, beside another archive.
func yard(t *testing.T, versioning archive.Versioning) *archivetest.Yard {
	s := newMemoryStore(t, versioning)
	s.page = 7
	s.memory.Overwrite("archive-2/log/x", []byte("another archive beside it"))
	s.memory.Overwrite("archive/", nil)
	y := &archivetest.Yard{
		Store: s.open(t, "archive"), Versioning: versioning,
		Overwrite: func(key string, body []byte) { s.memory.Overwrite("archive/"+key, body) },
		Remove:    func(key string) { s.memory.Remove("archive/" + key) },
		Begin:     func(key string) { s.memory.Begin("archive/" + key) },
	}
	if versioning == archive.Versioned {
		y.Suspend = func() { s.memory.SetVersioning(archive.Suspended) }
	}
	return y
}

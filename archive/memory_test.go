package archive_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
)

func TestMemoryIsABucket(t *testing.T) {
	archivetest.Run(t, func(*testing.T) archive.Bucket { return archive.NewMemory() })
}

// The store's time is that of the clock that was handed in, whole seconds of
// UTC, also where the key was taken.
func TestMemoryTellsItsOwnTime(t *testing.T) {
	m := archive.NewMemory()
	m.Clock = func() time.Time {
		return time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("", 3600))
	}
	want := time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)
	for _, wantErr := range []error{nil, archive.ErrExists} {
		at, err := m.Create(t.Context(), "log/x", nil)
		if at != want || !errors.Is(err, wantErr) {
			t.Errorf("Create = %v, %v; want %v, %v", at, err, want, wantErr)
		}
	}
}

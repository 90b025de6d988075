package archive_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
)

func TestMemoryIsABucket(t *testing.T) {
	archivetest.Run(t, func(*testing.T) archive.Bucket { return archive.NewMemory() })
}

func TestMemoryIsAStore(t *testing.T) {
	for name, versioning := range map[string]archive.Versioning{"unversioned": archive.Unversioned, "versioned": archive.Versioned, "suspended": archive.Suspended} {
		t.Run(name, func(t *testing.T) {
			archivetest.RunStore(t, func(*testing.T) *archivetest.Yard { return yard(versioning) })
		})
	}
}

func TestMemoryIsASwapper(t *testing.T) {
	for _, versioning := range []archive.Versioning{archive.Unversioned, archive.Versioned} {
		archivetest.RunSwapper(t, func(*testing.T) archive.Swapper {
			m := archive.NewMemory()
			m.SetVersioning(versioning)
			return m
		})
	}
}

func yard(versioning archive.Versioning) *archivetest.Yard {
	m := archive.NewMemory()
	m.SetVersioning(versioning)
	return &archivetest.Yard{
		Store: m, Versioning: versioning, Overwrite: m.Overwrite, Remove: m.Remove,
		Suspend: map[bool]func(){true: func() { m.SetVersioning(archive.Suspended) }}[versioning == archive.Versioned],
		Begin:   func(key string) { m.Begin(key) },
	}
}

// What is locked, and what the test has fail, stays; the rest goes.
func TestMemoryKeepsWhatItIsTold(t *testing.T) {
	for _, versioning := range []archive.Versioning{archive.Unversioned, archive.Versioned} {
		m := archive.NewMemory()
		m.SetVersioning(versioning)
		fails := errors.New("slow down")
		m.DeleteFails = func(v archive.Version) error {
			if v.Key == "log/2" {
				return fails
			}
			return nil
		}
		for _, key := range []string{"log/1", "log/2", "log/3", "log/4"} {
			if _, err := m.Create(t.Context(), key, []byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		m.Lock("log/3", true)
		var all []archive.Version
		for v := range m.Versions(t.Context(), "") {
			all = append(all, v)
		}
		kept := m.Delete(t.Context(), all)
		if len(kept) != 2 || kept[0].Version != all[1] || !errors.Is(kept[0].Err, fails) || kept[1].Version != all[2] || !errors.Is(kept[1].Err, archive.ErrLocked) {
			t.Errorf("kept are %+v; want log/2, which fails, and log/3, which is locked", kept)
		}
		m.Lock("log/3", false)
		if kept = m.Delete(t.Context(), all); len(kept) != 1 || kept[0].Key != "log/2" {
			t.Errorf("kept are %+v; want log/2 alone", kept)
		}
	}
}

// Without an id nothing is deleted that has versions: S3 would put a marker
// above it and call that done.
func TestMemoryDeletesNoVersionUnnamed(t *testing.T) {
	m := archive.NewMemory()
	m.SetVersioning(archive.Versioned)
	if _, err := m.Create(t.Context(), "log/x", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if kept := m.Delete(t.Context(), []archive.Version{{Key: "log/x"}}); len(kept) != 1 {
		t.Errorf("kept are %+v", kept)
	}
	if _, err := m.Get(t.Context(), "log/x"); err != nil {
		t.Error(err)
	}
}

// Everything is what lies on the disks: old versions too.
func TestMemoryShowsEverything(t *testing.T) {
	m := archive.NewMemory()
	m.SetVersioning(archive.Versioned)
	m.Overwrite("log/x", []byte("old"))
	m.Overwrite("log/x", []byte("new"))
	m.Remove("log/x")
	var bodies []string
	for v, body := range m.Everything() {
		bodies = append(bodies, string(body))
		if v.Marker != (len(body) == 0) {
			t.Errorf("%+v holds %q", v, body)
		}
	}
	if !slices.Equal(bodies, []string{"", "new", "old"}) {
		t.Errorf("everything is %q", bodies)
	}
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

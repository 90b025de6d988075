package archive_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// Of many that create an archive at once, all end up in the same one.
func TestCreateRootHasOneWinner(t *testing.T) {
	b := archive.NewMemory()
	ids := make([]string, 32)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			r, err := archive.CreateRoot(t.Context(), b, strings.Repeat("A", 25)+string(rune('A'+i%20)), time.Unix(0, 0))
			if err != nil {
				t.Error(err)
			}
			ids[i] = r.ArchiveID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("archives %s and %s", id, ids[0])
		}
	}
}

// No archive, another format and a damaged document are three answers.
func TestOpenRootRefuses(t *testing.T) {
	if _, err := archive.OpenRoot(t.Context(), archive.NewMemory()); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("no archive: %v", err)
	}
	good := `{"format":"ledgerlake-v1","archiveId":"01KBCDEFGHM9S346Q3D2000001","createdAt":"2026-05-28T20:26:40.000000Z","graceSeconds":3600}`
	if _, err := archive.DecodeRoot([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, swap := range [][2]string{{"-v1", "-v2"}, {"01KBCDEFGHM9S346Q3D2000001", ""}, {"3600", "0"}, {"3600}", "3600"}, {`"graceSeconds"`, `"archiveId"`}} {
		bad := strings.Replace(good, swap[0], swap[1], 1)
		if _, err := archive.DecodeRoot([]byte(bad)); err == nil {
			t.Errorf("accepted %s", bad)
		}
	}
}

// A bucket whose root was lost gets no other one: it would make another archive
// of what is there, and be in the way of the one that is restored.
func TestALostRootIsNotMadeAnew(t *testing.T) {
	for _, key := range []string{"log/t/id/00000/00000000000000000000.parquet", "anchor/t/id/00000/00000000000000000000.note", "data/a/day=2026-01-01/x.parquet"} {
		m := archive.NewMemory()
		if _, err := m.Create(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.CreateRoot(t.Context(), m, "01KBCDEFGHJKMNPQRSTVWXYZ01", time.Unix(0, 0)); !errors.Is(err, archive.ErrNoRoot) {
			t.Errorf("beside %s: %v", key, err)
		}
		if _, err := m.Get(t.Context(), archive.RootKey); !errors.Is(err, archive.ErrNotFound) {
			t.Errorf("beside %s: a root was made: %v", key, err)
		}
	}
}

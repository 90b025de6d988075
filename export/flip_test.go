package export_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// Whatever byte of whatever object is another one, no row is shown that is not as
// it was archived; a range that misses one says that something is wrong; and
// nothing hangs or panics.
func TestAnyByteMayBeAnother(t *testing.T) {
	a, _, _ := small()
	anyByte(t, a.Objects())
	w := newWorld(t)
	w.compact(compaction.New(w.settings))
	compacted := map[string][]byte{}
	for o, err := range w.store.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		body, err := w.store.Get(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		compacted[o.Key] = body
	}
	anyByte(t, compacted)
}

func anyByte(t *testing.T, objects map[string][]byte) {
	want := map[string]string{}
	for _, r := range collect(t, open(t, prooftest.Bucket(objects), export.Options{}).Range(t.Context(), export.Range{})) {
		want[names([]*export.Row{r})[0]] = content(r)
	}
	random := rand.New(rand.NewPCG(7, 7))
	keys := slices.Sorted(maps.Keys(objects))
	for range 60 {
		changed := maps.Clone(objects)
		key := keys[random.IntN(len(keys))]
		body := slices.Clone(objects[key])
		at, bit := random.IntN(len(body)), byte(1<<random.IntN(8))
		if random.IntN(3) == 0 { // where footers and metadata are
			at = len(body) - 1 - random.IntN(min(len(body), 9000))
		}
		body[at] ^= bit
		changed[key] = body
		where := fmt.Sprintf("%s, byte %d, bit %02x", key, at, bit)
		for _, memory := range []int64{1, 0} {
			e, err := export.Open(t.Context(), prooftest.Bucket(changed), export.Options{Memory: memory})
			if err != nil {
				continue
			}
			rows, faults := 0, 0
			for r, err := range e.Range(t.Context(), export.Range{}) {
				if err != nil {
					if faults++; !errors.Is(err, export.ErrTampered) {
						t.Errorf("%s: %v", where, err)
					}
					continue
				}
				rows++
				same(t, where, r, want)
			}
			if rows < len(want) && faults == 0 && !archiveNeverSaid(key) {
				t.Errorf("%s: %d rows of %d, and no word of it", where, rows, len(want))
			}
			for _, tenant := range []string{"acme", "other", "globex"} {
				turn, err := e.Turn(t.Context(), tenant, "", "turn-0")
				session, fault := e.Session(t.Context(), tenant, "sess-0", export.Page{Limit: 5})
				if err := errors.Join(err, fault); err != nil && !errors.Is(err, export.ErrTampered) {
					t.Errorf("%s: %v", where, err)
				}
				for _, r := range append(turn, session...) {
					same(t, where, r, want)
				}
			}
		}
	}
}

// content writes what a row says.
func content(r *export.Row) string {
	return fmt.Sprintf("%+v", r.Record) + r.RowHash.String() + r.PrevHash.String() + r.PayloadCommit.String()
}

func same(t *testing.T, where string, r *export.Row, want map[string]string) {
	t.Helper()
	name := names([]*export.Row{r})[0]
	if want[name] != content(r) {
		t.Errorf("%s: %s is shown, and is not what was archived", where, name)
	}
}

// archiveNeverSaid reports whether a line is gone for who only reads: the one
// object that says that it has rows is nobody's any more.
func archiveNeverSaid(key string) bool {
	n, ok := archive.ParseSegmentKey(key)
	return ok && n.Partition == 1
}

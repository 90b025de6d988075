package archivetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A Yard is a store of its own for one test, and what the test does to it that
// no [archive.Store] can.
type Yard struct {
	archive.Store
	Versioning archive.Versioning // what is kept of what is overwritten
	// Suspend switches versions off again; nil: not tried.
	Suspend func()
	// Overwrite and Remove write and delete as one does who names no version;
	// nil: old versions are not tried.
	Overwrite func(key string, body []byte)
	Remove    func(key string)
	// Begin begins an upload in parts; nil: uploads are not tried.
	Begin func(key string)
}

// RunStore checks what a compactor needs. Open returns an empty store of its
// own for each test. That a Store is a Bucket, Run checks.
func RunStore(t *testing.T, open func(t *testing.T) *Yard) {
	for _, c := range []struct {
		name  string
		check func(*testing.T, *Yard)
	}{
		{"GetRange", func(t *testing.T, y *Yard) {
			fill(t, y, readable)
			getRangeReturnsTheMiddle(t, y)
		}},
		{"Now", theStoreTellsTheTime},
		{"Modified", whatIsListedHasItsTime},
		{"Versions", everyObjectHasAVersion},
		{"VersionPages", versionsGoOverPages},
		{"VersionsStop", versionsStopWhenTold},
		{"Delete", exactlyTheseAreDeleted},
		{"DeleteMany", manyAreDeleted},
		{"DeleteTwice", goneIsGone},
		{"OldVersions", oldVersionsAreSeenAndGo},
		{"Suspended", nullVersionsAreSeenAndGo},
		{"Uploads", uploadsAreSeenAndEnd},
		{"StoreCancelled", takingAwayStopsWithItsContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, open(t)) })
	}
}

// getRangeReturnsTheMiddle is for a source that holds what is readable.
func getRangeReturnsTheMiddle(t *testing.T, y archive.Ranger) {
	for key, whole := range readable {
		size := int64(len(whole))
		for _, at := range [][2]int64{{0, 0}, {0, 1}, {0, size}, {1, 2}, {size / 2, 4096}, {size - 1, 1}, {size - 1, 100}, {size, 10}, {size + 5, 10}, {0, size + 9}} {
			offset, n := max(at[0], 0), max(at[1], 0)
			want := whole[min(offset, size):min(offset+n, size)]
			got, err := y.GetRange(t.Context(), key, offset, n)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("GetRange(%q, %d, %d) = %d bytes, %v; want %d", key, offset, n, len(got), err, len(want))
			}
		}
	}
	for _, n := range []int64{0, 8} {
		if got, err := y.GetRange(t.Context(), "log/absent", 0, n); !errors.Is(err, archive.ErrNotFound) || got != nil {
			t.Errorf("GetRange of an absent key = %d bytes, %v; want ErrNotFound", len(got), err)
		}
	}
	for _, at := range [][2]int64{{-1, 1}, {0, -1}} {
		if _, err := y.GetRange(t.Context(), "ledgerlake.json", at[0], at[1]); err == nil {
			t.Errorf("GetRange of %d bytes from %d gives no error", at[1], at[0])
		}
	}
}

func theStoreTellsTheTime(t *testing.T, y *Yard) {
	created, err := y.Create(t.Context(), "log/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	now, err := y.Now(t.Context())
	if err != nil || now.IsZero() || now != now.Truncate(time.Second).UTC() || now.Before(created) {
		t.Errorf("Now = %v, %v; want whole seconds of UTC, not before %v, when an object was created", now, err, created)
	}
}

// A grace is the store's time less that of an object.
func whatIsListedHasItsTime(t *testing.T, y *Yard) {
	before, err := y.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fill(t, y, map[string][]byte{"log/x": []byte("x")})
	after, err := y.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, at time.Time) {
		// Some keep times to the second, and round.
		if at.Location() != time.UTC || at.Before(before.Add(-time.Second)) || at.After(after.Add(2*time.Second)) {
			t.Errorf("%s gives %v to an object that was created between %v and %v", what, at, before, after)
		}
	}
	for o, err := range y.List(t.Context(), "log/", "") {
		if err != nil {
			t.Fatal(err)
		}
		check("List", o.Modified)
	}
	for _, v := range versions(t, y, "log/") {
		check("Versions", v.Modified)
	}
}

func everyObjectHasAVersion(t *testing.T, y *Yard) {
	fill(t, y, readable)
	for _, prefix := range []string{"", "log/", "log/a", "log/a/", "ledgerlake.json", "data/a", "nothing"} {
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(readable)), func(key string) bool { return !strings.HasPrefix(key, prefix) })
		var got []string
		for _, v := range versions(t, y, prefix) {
			got = append(got, v.Key)
			if v.Marker || !v.Latest || v.Size != int64(len(readable[v.Key])) {
				t.Errorf("the only version of an object is %+v; want the latest, %d bytes", v, len(readable[v.Key]))
			}
			if y.Versioning == archive.Versioned && (v.ID == "" || v.ID == "null") {
				t.Errorf("the version of %s in a bucket with versions has the id %q", v.Key, v.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("Versions(%q) =\n%q, want\n%q", prefix, got, want)
		}
	}
}

func versionsGoOverPages(t *testing.T, y *Yard) {
	many := manyObjects()
	fill(t, y, many)
	var got []string
	for _, v := range versions(t, y, "log/a/") {
		got = append(got, v.Key)
	}
	if want := slices.Sorted(maps.Keys(many)); !slices.Equal(got, want) {
		t.Errorf("Versions gives %d keys, want %d", len(got), len(want))
	}
}

func versionsStopWhenTold(t *testing.T, y *Yard) {
	fill(t, y, map[string][]byte{"log/1": nil, "log/2": nil, "log/3": nil})
	n := 0
	for range y.Versions(t.Context(), "log/") {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d versions before the loop ended, want 2", n)
	}
}

func exactlyTheseAreDeleted(t *testing.T, y *Yard) {
	fill(t, y, readable)
	doomed := versions(t, y, "log/a")
	remove(t, y, doomed)
	want := map[string][]byte{}
	for key, body := range readable {
		if !strings.HasPrefix(key, "log/a") {
			want[key] = body
			holds(t, y, key, body)
		}
	}
	if got := keys(t, y.List(t.Context(), "", "")); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("after a delete there are %q, want %q", got, slices.Sorted(maps.Keys(want)))
	}
	if left := versions(t, y, "log/a"); len(left) > 0 {
		t.Errorf("after a delete there are versions %+v", left)
	}
	for _, v := range doomed {
		if _, err := y.Get(t.Context(), v.Key); !errors.Is(err, archive.ErrNotFound) {
			t.Errorf("Get of what was deleted: %v, want ErrNotFound", err)
		}
		fill(t, y, map[string][]byte{v.Key: []byte("anew")}) // no marker is in the way
		holds(t, y, v.Key, []byte("anew"))
	}
}

// More than two requests of S3 take at once.
func manyAreDeleted(t *testing.T, y *Yard) {
	many := map[string][]byte{"log/b": nil}
	for i := range 2105 {
		many[fmt.Sprintf("log/a/T/00000/%020d.parquet", i)] = nil
	}
	fill(t, y, many)
	remove(t, y, versions(t, y, "log/a/"))
	if got := keys(t, y.List(t.Context(), "", "")); !slices.Equal(got, []string{"log/b"}) {
		t.Errorf("after a delete there are %d keys, want log/b", len(got))
	}
}

func goneIsGone(t *testing.T, y *Yard) {
	fill(t, y, map[string][]byte{"log/x": nil, "log/y": nil})
	doomed := versions(t, y, "log/x")
	for range 2 {
		remove(t, y, doomed)
		remove(t, y, append(doomed, doomed...))
	}
	remove(t, y, nil)
	holds(t, y, "log/y", []byte{})
}

// A key that was overwritten and deleted has two versions and a marker. Each
// goes by its id, and only when all have gone nothing is left.
func oldVersionsAreSeenAndGo(t *testing.T, y *Yard) {
	if y.Versioning != archive.Versioned || y.Overwrite == nil {
		t.Skip("keeps no versions")
	}
	fill(t, y, map[string][]byte{"log/x": []byte("old"), "log/x2": nil})
	y.Overwrite("log/x", []byte("newer"))
	y.Remove("log/x")
	marker, bodies := sorted(t, y, "log/x")
	if len(marker) != 1 || !marker[0].Latest || len(bodies) != 2 || bodies[0].Latest || bodies[1].Latest {
		t.Fatalf("versions are %+v and markers %+v; want two, and a latest marker", bodies, marker)
	}
	if keys(t, y.List(t.Context(), "log/", ""))[0] != "log/x2" {
		t.Error("what is below a marker is listed")
	}
	remove(t, y, marker)
	holds(t, y, "log/x", []byte("newer"))
	marker, bodies = sorted(t, y, "log/x")
	if len(marker) != 0 || len(bodies) != 2 {
		t.Fatalf("without the marker there are %+v, %+v", bodies, marker)
	}
	old := slices.IndexFunc(bodies, func(v archive.Version) bool { return v.Size == 3 })
	if bodies[old].Latest || !bodies[1-old].Latest {
		t.Errorf("of %+v the newer one is the latest", bodies)
	}
	remove(t, y, bodies[old:old+1])
	holds(t, y, "log/x", []byte("newer"))
	remove(t, y, []archive.Version{bodies[1-old]})
	if left := versions(t, y, "log/"); len(left) != 1 || left[0].Key != "log/x2" {
		t.Errorf("in the end there are %+v, want log/x2 alone", left)
	}
}

// A bucket whose versions were suspended keeps the old ones, and has one more
// for each key, called null.
func nullVersionsAreSeenAndGo(t *testing.T, y *Yard) {
	if y.Suspend == nil || y.Overwrite == nil {
		t.Skip("cannot be suspended")
	}
	fill(t, y, map[string][]byte{"log/x": []byte("versioned")})
	y.Suspend()
	y.Overwrite("log/x", []byte("null"))
	fill(t, y, map[string][]byte{"log/y": []byte("null too")})
	_, bodies := sorted(t, y, "log/")
	if len(bodies) != 3 {
		t.Fatalf("versions are %+v, want 3", bodies)
	}
	remove(t, y, bodies)
	if left := versions(t, y, ""); len(left) > 0 {
		t.Errorf("in the end there are %+v", left)
	}
	fill(t, y, map[string][]byte{"log/z": []byte("in the way")})
	y.Remove("log/z") // leaves a null marker
	marker, bodies := sorted(t, y, "log/")
	if len(marker) != 1 || len(bodies) != 0 {
		t.Errorf("a null marker over a null version leaves %+v, %+v; want the marker alone", bodies, marker)
	}
	remove(t, y, marker)
	if left := versions(t, y, ""); len(left) > 0 {
		t.Errorf("in the end there are %+v", left)
	}
}

func uploadsAreSeenAndEnd(t *testing.T, y *Yard) {
	if got := uploads(t, y, ""); len(got) > 0 {
		t.Errorf("an empty store has uploads %+v", got)
	}
	if y.Begin == nil {
		t.Skip("uploads are not tried")
	}
	for _, key := range []string{"data/b ü", "data/a", "data/a", "log/x"} {
		y.Begin(key)
	}
	got := uploads(t, y, "data/")
	if len(got) != 3 || got[0].Key != "data/a" || got[1].Key != "data/a" || got[2].Key != "data/b ü" || got[0].ID == got[1].ID || got[0].Begun.IsZero() {
		t.Fatalf("uploads are %+v; want two of data/a and one of data/b ü, each with an id and a time", got)
	}
	for range 2 {
		if err := y.Abort(t.Context(), got[0]); err != nil {
			t.Error(err)
		}
	}
	if left := uploads(t, y, ""); len(left) != 3 || left[0] != got[1] {
		t.Errorf("after one was aborted there are %+v", left)
	}
}

func takingAwayStopsWithItsContext(t *testing.T, y *Yard) {
	fill(t, y, map[string][]byte{"log/x": []byte("x"), "log/y": nil})
	doomed := versions(t, y, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kept := y.Delete(ctx, doomed)
	if len(kept) != 2 || kept[0].Version != doomed[0] || !errors.Is(kept[0].Err, context.Canceled) || !errors.Is(kept[1].Err, context.Canceled) {
		t.Errorf("Delete with a cancelled context keeps %+v", kept)
	}
	holds(t, y, "log/x", []byte("x"))
	wantCancelled := func(what string, err error) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: %v", what, err)
		}
	}
	_, err := y.Now(ctx)
	wantCancelled("Now", err)
	_, err = y.GetRange(ctx, "log/x", 0, 1)
	wantCancelled("GetRange", err)
	wantCancelled("Abort", y.Abort(ctx, archive.Upload{Key: "log/x", ID: "x"}))
	wantCancelled("Versions", lastError(y.Versions(ctx, "")))
	wantCancelled("Uploads", lastError(y.Uploads(ctx, "")))
}

func lastError[T any](seq iter.Seq2[T, error]) (last error) {
	for _, err := range seq {
		last = err
	}
	return last
}

// remove deletes versions, all of which must go.
func remove(t *testing.T, s archive.Store, versions []archive.Version) {
	t.Helper()
	for _, k := range s.Delete(t.Context(), versions) {
		t.Errorf("Delete keeps %+v: %v", k.Version, k.Err)
	}
}

// versions goes through a listing, which must not fail and must be in order.
func versions(t *testing.T, s archive.Store, prefix string) []archive.Version {
	t.Helper()
	var got []archive.Version
	for v, err := range s.Versions(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("listing versions fails after %d: %v", len(got), err)
		}
		if len(got) > 0 && v.Key < got[len(got)-1].Key {
			t.Fatalf("version of %s comes after one of %s", v.Key, got[len(got)-1].Key)
		}
		got = append(got, v)
	}
	return got
}

// sorted tells markers from the rest, for the prefix and nothing beside it.
func sorted(t *testing.T, s archive.Store, prefix string) (markers, bodies []archive.Version) {
	t.Helper()
	for _, v := range versions(t, s, prefix) {
		switch {
		case v.Key != prefix && !strings.HasSuffix(prefix, "/"):
		case v.Marker:
			markers = append(markers, v)
		default:
			bodies = append(bodies, v)
		}
	}
	return markers, bodies
}

func uploads(t *testing.T, s archive.Store, prefix string) []archive.Upload {
	t.Helper()
	var got []archive.Upload
	for u, err := range s.Uploads(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("listing uploads fails after %d: %v", len(got), err)
		}
		got = append(got, u)
	}
	return got
}

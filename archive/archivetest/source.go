// Package archivetest checks that an object store keeps the contract of
// archive.Bucket, which the commit stands on.
//
//	create-only    a taken key is ErrExists, and its object never changes
//	one winner     of 32 who create a key at once, for small and large bodies
//	whole reads    bytes and sizes are those that were written, from 0 to 8 MiB
//	order          listings are in the order of the keys' bytes, over all pages
//	absence        a key that is not there is ErrNotFound, beside any other key
//	cancelling     a done context is an error, and no half a result
//
// [RunSource] is the reading half, for a store that can only be read,
// [RunRanger] that with ranges, and [RunStore] what a compactor needs of a store
// besides: ranges, the store's time, every version, deletes by version and uploads that were not finished.
//
// It does not check durability, which no test of a running process can see,
// nor how a store behaves when it fails: that is each implementation's own
// business. Keys of which one is a folder of another ("k" and "k/x") are not
// tried, because stores that keep files cannot hold both and no archive does.
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
	"sync"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// bigSize is more than 8 MiB, where stores and clients change their ways: they
// ask before they send, and cut what they send into parts.
const bigSize = 8<<20 + 12345

// RunSource checks the reading half of the contract. Open returns a source
// that holds exactly the objects given.
func RunSource(t *testing.T, open func(t *testing.T, objects map[string][]byte) archive.Source) {
	for _, c := range []struct {
		name  string
		check func(*testing.T, archive.Source)
	}{
		{"Get", getReturnsWholeObjects},
		{"GetTail", getTailReturnsTheEnd},
		{"NotFound", absentKeysAreNotFound},
		{"List", listIsInByteOrder},
		{"ListStops", listStopsWhenTold},
		{"Cancelled", readingStopsWithItsContext},
		{"ConcurrentRead", readsMayRunAtOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, open(t, maps.Clone(readable))) })
	}
	t.Run("ListPages", func(t *testing.T) { listGoesOverPages(t, open(t, manyObjects())) })
	t.Run("Empty", func(t *testing.T) {
		if got := keys(t, open(t, nil).List(t.Context(), "", "")); len(got) != 0 {
			t.Errorf("an empty store lists %q", got)
		}
	})
}

// RunRanger checks what [RunSource] does, and that parts of objects can be read.
func RunRanger(t *testing.T, open func(t *testing.T, objects map[string][]byte) archive.Ranger) {
	RunSource(t, func(t *testing.T, objects map[string][]byte) archive.Source { return open(t, objects) })
	t.Run("GetRange", func(t *testing.T) { getRangeReturnsTheMiddle(t, open(t, maps.Clone(readable))) })
	t.Run("RangeCancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := open(t, maps.Clone(readable)).GetRange(ctx, "ledgerlake.json", 0, 1); !errors.Is(err, context.Canceled) || got != nil {
			t.Errorf("GetRange with a cancelled context = %d bytes, %v", len(got), err)
		}
	})
}

// readable holds keys that sort otherwise as paths than as bytes, escapes as
// docs/format.md section 5 makes them, and sizes at both ends.
var readable = map[string][]byte{
	"ledgerlake.json": []byte(`{"format":"ledgerlake-v1"}`),
	"log/a-b/T/00000/00000000000000000000.parquet":                []byte("dash"),
	"log/a/T/00000/00000000000000000000.parquet":                  []byte("zero"),
	"log/a/T/00000/00000000000000000001.parquet":                  {},
	"log/a/T/00001/00000000000000000000.parquet":                  []byte("another partition"),
	"log/a.b/T/00000/00000000000000000000.parquet":                []byte("dot"),
	"log/a~2Fb/T/00000/00000000000000000000.parquet":              []byte("slash in a name"),
	"log/~2E~2E/T/00000/00000000000000000000.parquet":             []byte("two dots"),
	"log/~C3~BC~20~25~00/T/00000/00000000000000000000.parquet":    []byte("anything"),
	"data/_unattributed/day=2026-01-31/T.00000.0-1.01ABC.parquet": []byte("hive"),
	"data/a/day=2026-01-31/big.parquet":                           bytes.Repeat([]byte("0123456789abcdef!"), bigSize/17+1)[:bigSize],
}

func getReturnsWholeObjects(t *testing.T, src archive.Source) {
	for key, want := range readable {
		got, err := src.Get(t.Context(), key)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("Get(%q) = %d bytes, %v; want the %d that were written", key, len(got), err, len(want))
		}
	}
}

// Tails longer than the object give all of it, and an empty object has an
// empty tail: stores answer these with errors of their own.
func getTailReturnsTheEnd(t *testing.T, src archive.Source) {
	for key, whole := range readable {
		size := int64(len(whole))
		for _, n := range []int64{0, 1, 8, size - 1, size, size + 1, 1 << 20} {
			if n < 0 {
				continue
			}
			want := whole[size-min(n, size):]
			got, gotSize, err := src.GetTail(t.Context(), key, n)
			if err != nil || gotSize != size || !bytes.Equal(got, want) {
				t.Errorf("GetTail(%q, %d) = %d bytes of %d, %v; want %d of %d", key, n, len(got), gotSize, err, len(want), size)
			}
		}
	}
	if _, _, err := src.GetTail(t.Context(), "ledgerlake.json", -1); err == nil {
		t.Error("GetTail of -1 bytes gives no error")
	}
}

func absentKeysAreNotFound(t *testing.T, src archive.Source) {
	for _, key := range []string{
		"absent", "log/a/T/00000/00000000000000000002.parquet", "ledgerlake.jso", "ledgerlake.json2",
		"Ledgerlake.json", "log/a", "log/a/T/00000", "log/a/T/00000/", "log/a%2Fb/T/00000/00000000000000000000.parquet",
	} {
		if got, err := src.Get(t.Context(), key); !errors.Is(err, archive.ErrNotFound) || got != nil {
			t.Errorf("Get(%q) = %d bytes, %v; want ErrNotFound", key, len(got), err)
		}
		for _, n := range []int64{0, 8} {
			if got, _, err := src.GetTail(t.Context(), key, n); !errors.Is(err, archive.ErrNotFound) || got != nil {
				t.Errorf("GetTail(%q, %d) = %d bytes, %v; want ErrNotFound", key, n, len(got), err)
			}
		}
	}
}

func listIsInByteOrder(t *testing.T, src archive.Source) {
	all := slices.Sorted(maps.Keys(readable))
	prefixes := []string{"", "l", "log", "log/", "log/a", "log/a/", "log/a/T/0000", "log/a~", "data/", "nothing", "ledgerlake.json", "zzz"}
	afters := append([]string{"", "a", "log", "log/", "log/a", "log/a/", "log/a/T/00000/", "log/a0", "log/b", "ledgerlake.jso", "~"}, all...)
	for _, prefix := range prefixes {
		for _, after := range afters {
			want := slices.DeleteFunc(slices.Clone(all), func(key string) bool {
				return !strings.HasPrefix(key, prefix) || key <= after
			})
			if got := keys(t, src.List(t.Context(), prefix, after)); !slices.Equal(got, want) {
				t.Errorf("List(%q, after %q) =\n%q, want\n%q", prefix, after, got, want)
			}
		}
	}
	for o, err := range src.List(t.Context(), "", "") {
		if want := int64(len(readable[o.Key])); err != nil || o.Size != want {
			t.Errorf("List gives %q %d bytes, %v; want %d", o.Key, o.Size, err, want)
		}
	}
}

func listStopsWhenTold(t *testing.T, src archive.Source) {
	seq := src.List(t.Context(), "log/", "")
	for range 2 { // a sequence may be gone through again
		var first []string
		for o, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if first = append(first, o.Key); len(first) == 2 {
				break
			}
		}
		if want := keys(t, src.List(t.Context(), "log/", ""))[:2]; !slices.Equal(first, want) {
			t.Errorf("the first two of a listing are %q, want %q", first, want)
		}
	}
}

// manyObjects are more than the 1,000 keys that a page of S3 holds.
func manyObjects() map[string][]byte {
	many := map[string][]byte{}
	for i := range 1105 {
		many[fmt.Sprintf("log/a/T/00000/%020d.parquet", i)] = []byte{byte(i)}
	}
	return many
}

func listGoesOverPages(t *testing.T, src archive.Source) {
	want := slices.Sorted(maps.Keys(manyObjects()))
	if got := keys(t, src.List(t.Context(), "log/a/", "")); !slices.Equal(got, want) {
		t.Errorf("List gives %d keys, want %d", len(got), len(want))
	}
	if got := keys(t, src.List(t.Context(), "log/a/", want[52])); !slices.Equal(got, want[53:]) {
		t.Errorf("List after the key %q gives %d keys, want %d", want[52], len(got), len(want)-53)
	}
}

func readingStopsWithItsContext(t *testing.T, src archive.Source) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := src.Get(ctx, "ledgerlake.json"); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("Get with a cancelled context = %q, %v", got, err)
	}
	if got, _, err := src.GetTail(ctx, "ledgerlake.json", 8); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("GetTail with a cancelled context = %q, %v", got, err)
	}
	var last error
	for o, err := range src.List(ctx, "", "") {
		if last != nil || err == nil {
			t.Errorf("List with a cancelled context goes on with %v, %v", o, err)
		}
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("List with a cancelled context ends with %v", last)
	}
}

func readsMayRunAtOnce(t *testing.T, src archive.Source) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for key, want := range readable {
		for range 3 {
			wg.Go(func() {
				got, err := src.Get(t.Context(), key)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("Get(%q) beside others = %d bytes, %v; want %d", key, len(got), err, len(want))
				}
				for range src.List(t.Context(), "log/", "") {
				}
			})
		}
	}
}

// keys goes through a listing, which must not fail.
func keys(t *testing.T, list iter.Seq2[archive.Object, error]) []string {
	t.Helper()
	var got []string
	for o, err := range list {
		if err != nil {
			t.Fatalf("listing fails after %d keys: %v", len(got), err)
		}
		got = append(got, o.Key)
	}
	return got
}

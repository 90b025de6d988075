package archivetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// racers is how many create one key at once.
const racers = 32

// Run checks the whole contract. Open returns an empty bucket of its own for
// each test, for instance another prefix of one store.
func Run(t *testing.T, open func(t *testing.T) archive.Bucket) {
	t.Run("Source", func(t *testing.T) {
		RunSource(t, func(t *testing.T, objects map[string][]byte) archive.Source {
			b := open(t)
			fill(t, b, objects)
			return b
		})
	})
	for _, c := range []struct {
		name  string
		check func(*testing.T, archive.Bucket)
	}{
		{"CreateOnly", aTakenKeyIsKept},
		{"Race", oneOfManyWins},
		{"RaceBig", oneOfManyWinsWithBigBodies},
		{"SeenAtOnce", whatIsCreatedIsSeenAtOnce},
		{"StoreTime", theTimeIsTheStores},
		{"BodyIsTheirs", theCallerKeepsItsBytes},
		{"CreateCancelled", creatingStopsWithItsContext},
		{"Concurrent", differentKeysDoNotMix},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, open(t)) })
	}
}

// fill creates objects, several at a time, and stops the test at the first
// that fails.
func fill(t *testing.T, b archive.Bucket, objects map[string][]byte) {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	queue := make(chan string)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for key := range queue {
				if _, err := b.Create(ctx, key, objects[key]); err != nil {
					stop(err) // the first one counts
				}
			}
		})
	}
	for key := range objects {
		queue <- key
	}
	close(queue)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		t.Fatalf("the objects of the test cannot be created: %v", err)
	}
	stop(nil)
}

func aTakenKeyIsKept(t *testing.T, b archive.Bucket) {
	const key = "log/a~2Fb/T/00000/00000000000000000000.parquet"
	fill(t, b, map[string][]byte{key: []byte("first")})
	for _, body := range []string{"second", "", "first"} {
		if _, err := b.Create(t.Context(), key, []byte(body)); !errors.Is(err, archive.ErrExists) {
			t.Errorf("Create(%q) over an object: %v, want ErrExists", body, err)
		}
		holds(t, b, key, []byte("first"))
	}
	// An empty object takes its key as well.
	if _, err := b.Create(t.Context(), "log/empty", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Create(t.Context(), "log/empty", []byte("more")); !errors.Is(err, archive.ErrExists) {
		t.Errorf("Create over an empty object: %v, want ErrExists", err)
	}
	holds(t, b, "log/empty", []byte{})
}

func oneOfManyWins(t *testing.T, b archive.Bucket) {
	for round := range 4 {
		race(t, b, fmt.Sprintf("log/race/%d", round), 200)
	}
}

// A loser with a large body may find the connection closed while it still
// sends, and must be told ErrExists all the same.
func oneOfManyWinsWithBigBodies(t *testing.T, b archive.Bucket) {
	race(t, b, "log/race/big", bigSize)
}

// race has all racers create key with a body of their own. A racer that is
// told of a conflict, or of no answer, tries again, as the commit does.
func race(t *testing.T, b archive.Bucket, key string, size int) {
	t.Helper()
	bodies := make([][]byte, racers)
	results := make([]error, racers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range racers {
		bodies[i] = bytes.Repeat([]byte{byte('A' + i)}, size)
		wg.Go(func() {
			<-start
			results[i] = createUntilTold(t.Context(), b, key, bodies[i])
		})
	}
	close(start)
	wg.Wait()
	winner := slices.Index(results, nil)
	if winner < 0 {
		t.Fatalf("%s: nobody won: %v", key, errors.Join(results...))
	}
	for i, err := range results {
		if i != winner && !errors.Is(err, archive.ErrExists) {
			t.Errorf("%s: racer %d won, and racer %d was told %v", key, winner, i, err)
		}
	}
	holds(t, b, key, bodies[winner])
}

func createUntilTold(ctx context.Context, b archive.Bucket, key string, body []byte) error {
	var err error
	for range 10 {
		if _, err = b.Create(ctx, key, body); !errors.Is(err, archive.ErrConflict) {
			return err
		}
	}
	return err
}

func whatIsCreatedIsSeenAtOnce(t *testing.T, b archive.Bucket) {
	var want []string
	for i := range 20 {
		key := fmt.Sprintf("log/a/T/00000/%020d.parquet", i)
		if _, err := b.Get(t.Context(), key); !errors.Is(err, archive.ErrNotFound) {
			t.Fatalf("Get before Create: %v, want ErrNotFound", err)
		}
		fill(t, b, map[string][]byte{key: []byte(key)})
		holds(t, b, key, []byte(key))
		want = append(want, key)
		if got := keys(t, b.List(t.Context(), "log/", "")); !slices.Equal(got, want) {
			t.Fatalf("List after Create = %q, want %q", got, want)
		}
	}
}

// The commit subtracts the store's times from one another, so they must not go
// back, and come to the second.
func theTimeIsTheStores(t *testing.T, b archive.Bucket) {
	var last time.Time
	for i := range 3 {
		at, err := b.Create(t.Context(), fmt.Sprint("log/", i), []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		if !at.Equal(at.Truncate(time.Second)) || at.Before(last) {
			t.Errorf("Create says %v after %v; want whole seconds that do not go back", at, last)
		}
		last = at
	}
}

func theCallerKeepsItsBytes(t *testing.T, b archive.Bucket) {
	body := []byte("mine")
	fill(t, b, map[string][]byte{"log/x": body})
	copy(body, "else")
	holds(t, b, "log/x", []byte("mine"))
	got, err := b.Get(t.Context(), "log/x")
	if err != nil {
		t.Fatal(err)
	}
	copy(got, "else")
	tail, _, err := b.GetTail(t.Context(), "log/x", 4)
	if err != nil || string(tail) != "mine" {
		t.Errorf("GetTail after the caller wrote into what Get gave: %q, %v", tail, err)
	}
	copy(tail, "else")
	holds(t, b, "log/x", []byte("mine"))
}

func creatingStopsWithItsContext(t *testing.T, b archive.Bucket) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Create(ctx, "log/x", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Create with a cancelled context: %v", err)
	}
}

func differentKeysDoNotMix(t *testing.T, b archive.Bucket) {
	objects := map[string][]byte{}
	for i := range 64 {
		objects[fmt.Sprintf("log/%02d/x", i)] = bytes.Repeat([]byte{byte(i)}, 1000+i)
	}
	fill(t, b, objects)
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		holds(t, b, key, objects[key])
	}
}

func holds(t *testing.T, b archive.Bucket, key string, want []byte) {
	t.Helper()
	got, err := b.Get(t.Context(), key)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s holds %d bytes, %v; want the %d of its creator, unchanged", key, len(got), err, len(want))
	}
}

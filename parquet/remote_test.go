package parquet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
)

// A counter is an object that counts what is read of it.
type counter struct {
	object []byte
	mu     sync.Mutex
	gets   int
	bytes  int64
}

func (c *counter) get(_ context.Context, offset, n int64) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if offset < 0 || n <= 0 || offset+n > int64(len(c.object)) {
		return nil, fmt.Errorf("%d bytes at %d of %d", n, offset, len(c.object))
	}
	c.gets, c.bytes = c.gets+1, c.bytes+n
	return append([]byte(nil), c.object[offset:offset+n]...), nil
}

func openRemote(t testing.TB, object []byte) (*Remote, *counter) {
	t.Helper()
	c := &counter{object: object}
	r, err := OpenRemote(t.Context(), int64(len(object)), c.get)
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

// find returns copies of the rows that are found.
func find(t testing.TB, r *Remote, any ...Match) (rows []chain.Row) {
	t.Helper()
	for row, err := range r.Find(t.Context(), any...) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, *row)
	}
	return rows
}

// meant returns those rows that matches mean.
func meant(rows []chain.Row, any ...Match) (all []chain.Row) {
	for i := range rows {
		for _, m := range any {
			if m.holds(&rows[i]) {
				all = append(all, rows[i])
				break
			}
		}
	}
	return all
}

// sameFound looks up rows from afar and in all that there are.
func sameFound(t testing.TB, object []byte, rows []chain.Row, any ...Match) *counter {
	t.Helper()
	r, c := openRemote(t, object)
	sameRows(t, find(t, r, any...), meant(rows, any...))
	return c
}

// oddMatches mean rows of a rowMaker in every way there is.
func oddMatches(m rowMaker, rows []chain.Row) (all [][]Match) {
	one := func(match ...Cond) { all = append(all, []Match{match}) }
	one()
	for i := range columns {
		c := &columns[i]
		if c.text == nil && c.num == nil {
			continue
		}
		one(Null(c.name))
		r := &rows[m.IntN(len(rows))]
		if c.text != nil {
			one(Is(c.name, c.text(r).S, "absent"))
			one(Is(c.name, "nowhere"))
			continue
		}
		one(Between(c.name, c.num(r).N, c.num(r).N))
		one(OneOf(c.name, c.num(r).N, 12345, -7))
		one(Between(c.name, -5, 500), Is("kind", rows[0].Kind.S))
	}
	return append(all,
		nil,
		[]Match{{Is("user_id", rows[0].UserID.S)}, {Is("kind", rows[1].Kind.S)}},
		[]Match{{Is("turn_id", rows[2].TurnID.S), Is("session_id", rows[2].SessionID.S)}, {Null("created_at"), Between("kafka_timestamp", 0, 1<<60)}, {}},
	)
}

// Whatever is asked of whatever rows, it is answered as by one who reads them all.
func TestRemoteFindsWhatIsThere(t *testing.T) {
	for seed, n := range []int{3, 4, 65, 700, 2500} {
		m := newRowMaker(uint64(seed))
		m.nulls = []float64{0.3, 1, 0, 0.9, 0.5}[seed]
		rows := m.rows(n)
		for name, object := range map[string][]byte{
			"data file": dataFile(t, NewDataWriter(DataOptions{GroupRows: 700}), rows, 64, "{}"),
			"segment":   encode(t, rows, []byte("{}")),
		} {
			for i, any := range oddMatches(m, rows) {
				t.Run(fmt.Sprintf("%d %s %d", n, name, i), func(t *testing.T) { sameFound(t, object, rows, any...) })
			}
		}
	}
}

func TestRemoteErrors(t *testing.T) {
	object := dataFile(t, NewDataWriter(DataOptions{}), turnRows(100), 64, "{}")
	down := errors.New("down")
	r, c := openRemote(t, object)
	c.object = nil
	r.get = func(context.Context, int64, int64) ([]byte, error) { return nil, down }
	for _, err := range r.Find(t.Context(), Match{Is("no such", "x")}) {
		if err == nil || errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
	}
}

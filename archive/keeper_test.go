package archive_test

import (
	"context"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// Anchors and parts are asked for once while each reading asks for them; all else
// is asked for each time, also what has a part's name in its topic.
func TestKeeper(t *testing.T) {
	for key, kept := range map[string]bool{
		"anchor/t/i/00000/00000000000000000000.note":     true,
		"catalog/t/i/00000/part/2026-11-30/ab.json":      true,
		"catalog/t/i/00000/00000000000000000000.note":    false,
		"log/part/i/00000/00000000000000000000.parquet":  false,
		"data/acme/day=2026-11-30/part/00000000.parquet": false,
	} {
		m := archive.NewMemory()
		if _, err := m.Create(t.Context(), key, []byte("x")); err != nil {
			t.Fatal(err)
		}
		src := &counted{Source: m}
		k := archive.NewKeeper(src, func(key string) bool { return archive.IsAnchor(key) || archive.IsCatalogPart(key) })
		read := func() int {
			src.gets = 0
			for range 2 {
				if body, err := k.Get(t.Context(), key); err != nil || string(body) != "x" {
					t.Fatalf("%s: %q, %v", key, body, err)
				}
			}
			return src.gets
		}
		first := read()
		k.Turn()
		second := read()
		k.Turn()
		k.Turn()
		third := read()
		want := [3]int{2, 2, 2}
		if kept {
			want = [3]int{1, 0, 1}
		}
		if got := [3]int{first, second, third}; got != want {
			t.Errorf("%s: %v GETs, want %v", key, got, want)
		}
	}
}

// A counted source counts what is read whole, and the tails.
type counted struct {
	archive.Source
	gets, tails int
}

func (c *counted) Get(ctx context.Context, key string) ([]byte, error) {
	c.gets++
	return c.Source.Get(ctx, key)
}

func (c *counted) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	c.tails++
	return c.Source.GetTail(ctx, key, n)
}

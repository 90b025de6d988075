package proof_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerlake/ledgerlake/chain"
	lake "github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// memoryTiles keeps tiles in memory.
type memoryTiles map[string][]byte

func (m memoryTiles) Read(name string) ([]byte, bool, error) {
	body, ok := m[name]
	return body, ok, nil
}

func (m memoryTiles) Write(name string, body []byte) error {
	m[name] = slices.Clone(body)
	return nil
}

// publicTiles reads tiles as a public client does that knows package tlog and
// the names of C2SP.
type publicTiles struct{ files memoryTiles }

func (p publicTiles) Height() int                     { return 8 }
func (p publicTiles) SaveTiles([]tlog.Tile, [][]byte) {}
func (p publicTiles) name(t tlog.Tile) (name string) {
	return strings.Replace(t.Path(), "tile/8/", "tile/", 1)
}

func (p publicTiles) ReadTiles(tiles []tlog.Tile) (all [][]byte, err error) {
	for _, t := range tiles {
		body, ok := p.files[p.name(t)]
		if !ok {
			return nil, fmt.Errorf("no %s", p.name(t))
		}
		all = append(all, body)
	}
	return all, nil
}

// tiled is an archive with one log that outgrows tiles, anchored now and then.
func tiled(segments, rows int) *provable {
	p := newProvable(0, 0, 1)
	grow(p, segments, rows)
	return p
}

func grow(p *provable, segments, rows int) {
	for range segments {
		p.line.Segment(func(b *prooftest.Batch) {
			for range rows {
				b.Call("acme")
			}
		})
		p.line.Anchor()
	}
}

// Tiles grow with the log; at each size a public client reads every row's proof
// from them, and full tiles have the names and sizes of C2SP.
func TestTilesCanBeFollowed(t *testing.T) {
	p := tiled(1, 200)
	files := memoryTiles{}
	for round, more := range []int{0, 100, 300} {
		if more > 0 {
			grow(p, 1, more)
		}
		r, err := p.prover(t, lake.ProveOptions{Keys: p.ring()}).WriteTiles(context.Background(), lake.Want{Tenant: "acme"}, files)
		if err != nil {
			t.Fatal(err)
		}
		rows := p.rows("acme")
		size := int64(len(rows))
		if r.Size != size || r.From != size-int64(more)-int64(200*btoi(round == 0)) || !slices.Equal(r.SignedBy, []string{p.key.VKey()}) {
			t.Errorf("%+v", r)
		}
		root := p.line.Logs["acme"].Tree.Root()
		hashes := tlog.TileHashReader(tlog.Tree{N: size, Hash: tlog.Hash(root)}, publicTiles{files})
		for _, i := range []int64{0, 1, 199, 255, 256, size - 1} {
			if i >= size {
				continue
			}
			path, err := tlog.ProveRecord(size, i, hashes)
			if err == nil {
				err = tlog.CheckRecord(path, size, tlog.Hash(root), i, tlog.Hash(chain.LeafHash(rows[i].RowHash)))
			}
			if err != nil {
				t.Errorf("row %d of %d: %v", i, size, err)
			}
		}
	}
	want := []string{"checkpoint", "tile/0/000", "tile/0/000.p/200", "tile/0/001", "tile/0/001.p/44", "tile/0/002.p/88", "tile/1/000.p/1", "tile/1/000.p/2"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) || len(files["tile/0/001"]) != 8192 {
		t.Errorf("%q", got)
	}
	again, err := p.prover(t, lake.ProveOptions{}).WriteTiles(context.Background(), lake.Want{Tenant: "acme"}, files)
	if err != nil || again.From != again.Size {
		t.Errorf("%+v, %v", again, err)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Tiles are a help, never evidence: changed ones give no proof, and what does not
// continue them is said.
func TestTilesThatLie(t *testing.T) {
	p := tiled(3, 200)
	files := memoryTiles{}
	want := lake.Want{Tenant: "acme"}
	if _, err := p.prover(t, lake.ProveOptions{}).WriteTiles(context.Background(), want, files); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		for at := range 3 {
			bad := maps.Clone(files)
			bad[name] = slices.Clone(files[name])
			bad[name][at*len(bad[name])/3] ^= 1
			before := maps.Clone(bad)
			q := tiled(3, 200)
			grow(q, 1, 100)
			_, err := q.prover(t, lake.ProveOptions{Keys: q.ring()}).WriteTiles(context.Background(), want, bad)
			// Full tiles that the extension does not touch are checked when they are read.
			// The signature of a checkpoint that is replaced does not matter.
			if name == "tile/0/000" || name == "tile/0/001" || name == "checkpoint" && at == 2 {
				continue
			}
			if err == nil || !slices.Equal(bad["checkpoint"], before["checkpoint"]) {
				t.Errorf("%s changed: %v", name, err)
			}
		}
	}
	for name, change := range map[string]func(*provable) *provable{
		"a shorter log": func(*provable) *provable { return tiled(2, 200) },
		"another log": func(*provable) *provable {
			q := newProvable(0, 0, 1)
			q.line = q.Line("other", 0)
			grow(q, 4, 200)
			return q
		},
		"a fork": func(*provable) *provable {
			q := newProvable(0, 0, 1)
			q.line.Segment(func(b *prooftest.Batch) { b.Large("acme") })
			grow(q, 4, 200)
			return q
		},
	} {
		bad := maps.Clone(files)
		_, err := change(p).prover(t, lake.ProveOptions{}).WriteTiles(context.Background(), want, bad)
		if err == nil || !slices.Equal(bad["checkpoint"], files["checkpoint"]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	forged := p.ring().Clone()
	if _, err := p.prover(t, lake.ProveOptions{Keys: forged}).WriteTiles(context.Background(), want, memoryTiles{}); err != nil {
		t.Error(err)
	}
	stranger := newProvable(0, 0, 1)
	stranger.key = prooftest.Signer("key.example/two")
	if _, err := p.prover(t, lake.ProveOptions{Keys: stranger.ring()}).WriteTiles(context.Background(), want, memoryTiles{}); !errors.Is(err, lake.ErrTampered) {
		t.Errorf("not signed by the key: %v", err)
	}
}

// With tiles a proof in the newest tree reads no more than one in the first.
func TestTilesSpareReads(t *testing.T) {
	p := tiled(20, 60)
	files := memoryTiles{}
	if _, err := p.prover(t, lake.ProveOptions{}).WriteTiles(context.Background(), lake.Want{Tenant: "acme"}, files); err != nil {
		t.Fatal(err)
	}
	tiles, err := lake.OpenTiles(files)
	if err != nil {
		t.Fatal(err)
	}
	gets := map[string]int64{}
	var bundles []*lake.Bundle
	for name, o := range map[string]lake.ProveOptions{"first": {}, "newest": {Newest: true}, "tiles": {Newest: true, Tiles: tiles}} {
		pr := p.prover(t, o)
		seq := int64(130)
		b := bundleOf(t, pr, lake.Want{Tenant: "acme", Seq: &seq}, lake.Disclosure{})
		gets[name] = pr.Cost().Gets
		if name != "first" {
			bundles = append(bundles, b)
		}
	}
	if gets["tiles"] > gets["first"]+2 || gets["newest"] < gets["tiles"]+10 {
		t.Error(gets)
	}
	if !slices.Equal(bundles[0].Path, bundles[1].Path) || bundles[0].Tree.Size != 1200 {
		t.Errorf("tiles and rows give different paths")
	}
}

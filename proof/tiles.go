package proof

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// tileHeight: a tile has 2^8 hashes.
const tileHeight = 8

// A TileStore keeps the files of one log as c2sp.org/tlog-tiles names them:
// "checkpoint", and tile/<L>/<N> or tile/<L>/<N>.p/<W>.
type TileStore interface {
	// Read returns a file; ok is false where there is none.
	Read(name string) (body []byte, ok bool, err error)
	// Write writes a file, also over another one.
	Write(name string, body []byte) error
}

// checkpointName is the one file that changes.
const checkpointName = "checkpoint"

// Tiles is a log's tree as a folder of tiles, outside the archive. What is read
// of it is checked against the root in its checkpoint.
type Tiles struct {
	Origin string
	Tree   BundleTree
	Note   string // the checkpoint

	store TileStore
	hash  tlog.HashReader
}

// OpenTiles opens tiles; nil and no error where there is no checkpoint yet.
func OpenTiles(store TileStore) (*Tiles, error) {
	body, ok, err := store.Read(checkpointName)
	if err != nil || !ok {
		return nil, err
	}
	n, err := sign.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", checkpointName, err)
	}
	origin, size, root, err := chain.ParseCheckpointText(n.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", checkpointName, err)
	}
	t := &Tiles{Origin: origin, Tree: BundleTree{size, root}, Note: string(body), store: store}
	t.hash = tileHashes(t.Tree, store)
	return t, nil
}

func tileHashes(tree BundleTree, store TileStore) tlog.HashReader {
	return tlog.TileHashReader(tlog.Tree{N: tree.Size, Hash: tlog.Hash(tree.Root)}, tileFiles{store})
}

func (t *Tiles) isOf(l chain.Log) bool { return t.Origin == chain.CheckpointOrigin(l) }

// node returns the root of a perfect subtree of the tiles' tree.
func (t *Tiles) node(s seqSpan) (chain.Hash, bool) {
	n := s.hi - s.lo
	if s.hi > t.Tree.Size || n&(n-1) != 0 || s.lo%n != 0 {
		return chain.Hash{}, false
	}
	level := bits.TrailingZeros64(uint64(n))
	h, err := t.hash.ReadHashes([]int64{tlog.StoredHashIndex(level, s.lo>>level)})
	if err != nil {
		return chain.Hash{}, false
	}
	return chain.Hash(h[0]), true
}

// tileFiles reads tiles for package tlog, which checks them.
type tileFiles struct{ store TileStore }

func (f tileFiles) Height() int { return tileHeight }

func (f tileFiles) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	all := make([][]byte, len(tiles))
	for i, t := range tiles {
		body, ok, err := f.store.Read(tileName(t))
		if err == nil && !ok && t.W < 1<<tileHeight {
			// A full tile begins with each partial one.
			full := t
			full.W = 1 << tileHeight
			if body, ok, err = f.store.Read(tileName(full)); len(body) > t.W*tlog.HashSize {
				body = body[:t.W*tlog.HashSize]
			}
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s is missing", tileName(t))
		}
		all[i] = body
	}
	return all, nil
}

func (f tileFiles) SaveTiles([]tlog.Tile, [][]byte) {}

// tileName returns the C2SP name of a tile: that of package tlog without the
// height, which is always 8.
func tileName(t tlog.Tile) string {
	return "tile/" + strings.TrimPrefix(t.Path(), fmt.Sprintf("tile/%d/", tileHeight))
}

// tileBatch is how many rows are put into tiles at once.
const tileBatch = 1 << 16

// A TilesReport says what was written.
type TilesReport struct {
	Log        chain.Log
	From, Size int64 // rows before and after
	SignedBy   []string
	Anchor     int64 // whose checkpoint it is
}

// WriteTiles extends the tiles of a log to the newest checkpoint that the
// archive has of it. They are checked before the checkpoint is written; where it
// is not, the folder is as good as it was.
func (p *Prover) WriteTiles(ctx context.Context, w Want, store TileStore) (*TilesReport, error) {
	l, err := p.oneLine(ctx, w)
	if err != nil {
		return nil, err
	}
	g := l.log(w.Tenant)
	target, a, err := l.newestCheckpoint(ctx, g)
	if err != nil {
		return nil, err
	}
	old, err := OpenTiles(store)
	if err != nil {
		return nil, err
	}
	if old == nil {
		old = &Tiles{Origin: target.Origin, Tree: BundleTree{Root: (&chain.Tree{}).Root()}}
	}
	switch {
	case old.Origin != target.Origin:
		return nil, fmt.Errorf("the folder has the tiles of another log: %s", Printable(old.Origin))
	case old.Tree.Size > target.Tree.Size:
		return nil, tampered("the tiles have %d rows, the archive's newest checkpoint has %d", old.Tree.Size, target.Tree.Size)
	case old.Tree.Size == target.Tree.Size && old.Tree.Root != target.Tree.Root:
		return nil, tampered("tiles and archive have different roots at %d rows", old.Tree.Size)
	}
	r := &TilesReport{Log: g.name, From: old.Tree.Size, Size: target.Tree.Size, Anchor: a.Number}
	if r.SignedBy, err = p.signersOf(ctx, l, a, target.Note); err != nil || r.From == r.Size {
		return r, err
	}
	if err := g.extendTiles(ctx, store, old.Tree, target.Tree); err != nil {
		return nil, err
	}
	return r, store.Write(checkpointName, []byte(target.Note))
}

// signersOf returns the keys that are given, or introduced by those, which
// signed a checkpoint.
func (p *Prover) signersOf(ctx context.Context, l *provenLine, a *linkedAnchor, text string) ([]string, error) {
	if p.keys.Empty() {
		return nil, nil
	}
	s, err := l.introduced(ctx, a)
	if err != nil {
		return nil, err
	}
	n, err := sign.Parse([]byte(text))
	if err != nil {
		return nil, tampered("checkpoint: %v", err)
	}
	v := s.Check(n, sign.Anchor, a.Time.Time)
	if v.State != sign.Good {
		return nil, tampered("the checkpoint of anchor %d is not signed by a key that was given, nor by one that such a key introduces", a.Number)
	}
	return v.By, nil
}

// introduced returns the keys that are good where an anchor was signed.
func (l *provenLine) introduced(ctx context.Context, a *linkedAnchor) (*sign.Ring, error) {
	notes, _, err := l.introductions(ctx, a.note, a.Time.Time, 0)
	if err != nil {
		return nil, err
	}
	ring := l.p.keys.Clone()
	if err := introduce(ring, notes, l.p.root.ArchiveID); err != nil {
		return nil, tampered("%v", err)
	}
	return ring, nil
}

// newestCheckpoint returns the newest checkpoint of a log.
func (l *provenLine) newestCheckpoint(ctx context.Context, g *provenLog) (*Tiles, *linkedAnchor, error) {
	n, err := l.newest(ctx)
	if err != nil {
		return nil, nil, err
	}
	for ; n >= 0; n-- {
		a, err := l.anchor(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range a.Checkpoints {
			if c.Tenant != g.name.Tenant {
				continue
			}
			t, err := checkpointOf(c.Note)
			if err == nil && !t.isOf(g.name) {
				err = fmt.Errorf("it is of another log")
			}
			if h := headIn(a.Anchor, c.Tenant); err == nil && (h == nil || h.Size != t.Tree.Size || h.Root != t.Tree.Root) {
				err = fmt.Errorf("it is not that of the head")
			}
			if err != nil {
				return nil, nil, tampered("anchor %d: checkpoint: %v", n, err)
			}
			return t, a, nil
		}
	}
	return nil, nil, fmt.Errorf("no checkpoint of the log: %w", ErrNoRow)
}

// checkpointOf parses a checkpoint; it has no tiles.
func checkpointOf(note string) (*Tiles, error) {
	n, err := sign.Parse([]byte(note))
	if err != nil {
		return nil, err
	}
	origin, size, root, err := chain.ParseCheckpointText(n.Text)
	return &Tiles{Origin: origin, Tree: BundleTree{size, root}, Note: note}, err
}

// A growingTree has hashes that are new, and reads the others from tiles.
type growingTree struct {
	old   tlog.HashReader
	since int64 // index of the first hash that is new
	fresh []tlog.Hash
}

// ReadHashes implements [tlog.HashReader].
func (t *growingTree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	all := make([]tlog.Hash, len(indexes))
	for i, n := range indexes {
		if n >= t.since {
			if n-t.since >= int64(len(t.fresh)) {
				return nil, fmt.Errorf("hash %d is not there yet", n)
			}
			all[i] = t.fresh[n-t.since]
			continue
		}
		h, err := t.old.ReadHashes([]int64{n})
		if err != nil {
			return nil, err
		}
		all[i] = h[0]
	}
	return all, nil
}

// extendTiles writes the tiles of a tree that has grown.
func (g *provenLog) extendTiles(ctx context.Context, store TileStore, from, to BundleTree) error {
	at, tree := from, (*growingTree)(nil)
	size := from.Size
	flush := func() error {
		for _, t := range tlog.NewTiles(tileHeight, at.Size, size) {
			data, err := tlog.ReadTileData(t, tree)
			if err == nil {
				err = store.Write(tileName(t), data)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", tileName(t), err)
			}
		}
		root, err := tlog.TreeHash(size, tree)
		at, tree = BundleTree{size, chain.Hash(root)}, nil
		return err
	}
	err := g.each(ctx, seqSpan{from.Size, to.Size}, func(h chain.Hash) error {
		if tree == nil {
			tree = &growingTree{old: tileHashes(at, store), since: tlog.StoredHashCount(at.Size)}
		}
		fresh, err := tlog.StoredHashesForRecordHash(size, tlog.Hash(chain.LeafHash(h)), tree)
		if err != nil {
			return err
		}
		tree.fresh = append(tree.fresh, fresh...)
		if size++; size%tileBatch == 0 {
			return flush()
		}
		return nil
	})
	if err == nil && tree != nil {
		err = flush()
	}
	if err == nil && at != to {
		err = tampered("the row hashes of the archive do not give the root that its checkpoint states at %d rows, or the tiles are not its older ones", to.Size)
	}
	return err
}

// oneLine returns the line of the log that w names, which has to be one.
func (p *Prover) oneLine(ctx context.Context, w Want) (*provenLine, error) {
	lines, err := p.lines(ctx, w)
	if err != nil {
		return nil, err
	}
	var found *provenLine
	for _, l := range lines {
		switch _, _, err := l.newestHead(ctx, w.Tenant); {
		case errors.Is(err, ErrNoRow):
			continue
		case err != nil:
			return nil, err
		}
		if found != nil {
			return nil, fmt.Errorf("tenant %s has logs in more than one partition: say --topic and --partition (there is %s/%d, and %s/%d)", Printable(w.Tenant), Printable(found.line.Topic), found.line.Partition, Printable(l.line.Topic), l.line.Partition)
		}
		found = l
	}
	if found == nil {
		return nil, fmt.Errorf("tenant %s has no anchored log there: %w", Printable(w.Tenant), ErrNoRow)
	}
	return found, nil
}

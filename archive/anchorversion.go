package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// An AnchorVersion is an anchor as it lies in the bucket.
type AnchorVersion struct {
	*Anchor
	Note   *sign.Note // text and signatures
	SHA256 chain.Hash // of the text
}

// ReadAnchor reads the anchor of a number. The error matches [ErrNotFound] where
// it is not there, and [ErrOtherAnchor] where what is there is none of the line and
// of the archive. Signatures are not looked at.
func ReadAnchor(ctx context.Context, src Source, root *Root, l Line, number int64) (*AnchorVersion, error) {
	body, err := src.Get(ctx, AnchorKey(l, number))
	if errors.Is(err, ErrDamaged) {
		return nil, fmt.Errorf("anchor %d: %w: %w: restore it", number, ErrOtherAnchor, err)
	}
	if err != nil {
		return nil, fmt.Errorf("anchor %d: %w", number, err)
	}
	n, err := sign.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("anchor %d: %w: %w", number, ErrOtherAnchor, err)
	}
	a, err := DecodeAnchor(n.Text)
	if err == nil && (a.Line() != l || a.Number != number || a.ArchiveID != root.ArchiveID || a.ArchiveSHA256 != root.SHA256) {
		err = errors.New("it is that of another archive or line")
	}
	if err != nil {
		return nil, fmt.Errorf("anchor %d: %w: %w", number, ErrOtherAnchor, err)
	}
	return &AnchorVersion{a, n, TextHash(n.Text)}, nil
}

// NewestGoodAnchor returns the newest anchor of a line that counts, nil where none
// of the newest [FullEvery] does, and the number of the newest that is there. One
// counts that a key of the ring signed which is good for anchors, or which such an
// anchor introduces (the ring learns it); where the ring is empty, each does that
// can be read. The ring also learns the keys that the anchor itself introduces. hint
// is the number that an earlier call returned, -1 where there was none.
//
// The cost is that of [NewestAnchor], and one GET where the newest one counts.
func NewestGoodAnchor(ctx context.Context, src Source, root *Root, l Line, ring *sign.Ring, hint int64) (good *AnchorVersion, newest int64, err error) {
	if newest, err = NewestAnchor(ctx, src, l, hint); err != nil {
		return nil, 0, err
	}
	var read []*AnchorVersion // downwards
	for n := newest; n >= 0 && n > newest-FullEvery; n-- {
		a, err := ReadAnchor(ctx, src, root, l, n)
		if errors.Is(err, ErrOtherAnchor) || errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		v, err := a.verdict(ctx, src, ring)
		if err != nil {
			return nil, 0, err
		}
		if v == sign.Good || ring.Empty() {
			good, err = newerBy(ctx, src, ring, a, read)
			return good, newest, err
		}
		read = append(read, a)
	}
	return nil, newest, nil
}

func (a *AnchorVersion) verdict(ctx context.Context, src Source, ring *sign.Ring) (sign.State, error) {
	return Verdict(ctx, src, ring, a.ArchiveID, a.Note, sign.Anchor, a.Time.Time)
}

// newerBy goes up again from a good anchor, by the keys that it introduces.
func newerBy(ctx context.Context, src Source, ring *sign.Ring, good *AnchorVersion, newer []*AnchorVersion) (*AnchorVersion, error) {
	good.introduce(ring)
	for _, a := range slices.Backward(newer) {
		v, err := a.verdict(ctx, src, ring)
		if err != nil {
			return nil, err
		}
		if v == sign.Good {
			good = a
			good.introduce(ring)
		}
	}
	return good, nil
}

// introduce adds to a ring the keys that a good anchor lists. A ring that asks for
// no signature stays as it is.
func (a *AnchorVersion) introduce(ring *sign.Ring) {
	if ring.Empty() {
		return
	}
	for role, vkeys := range map[sign.Role][]string{sign.Anchor: a.Keys.Anchor, sign.Catalog: a.Keys.Catalog, sign.Control: a.Keys.Control} {
		for _, vkey := range vkeys {
			_ = ring.Add(vkey, role, "anchor") // one that is no key signs nothing
		}
	}
}

// headsParallel is how many anchors [AnchorVersion.AllHeads] reads at once.
const headsParallel = 16

// ErrTrail: anchors do not follow each other, or one of them is missing.
var ErrTrail = errors.New("the anchors in front of it do not lead to it: restore them")

// AllHeads returns what the anchor says of every log of its line, by tenant: it reads
// those from the full one in front of it on, up to [FullEvery] − 1. Each has to
// follow the one before it, so that what they say is as good as the anchor itself;
// else the error matches [ErrTrail].
func (a *AnchorVersion) AllHeads(ctx context.Context, src Source, root *Root) (map[string]AnchorHead, error) {
	from := a.Number - a.Number%FullEvery
	trail := make([]*AnchorVersion, a.Number-from+1)
	trail[a.Number-from] = a
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(headsParallel)
	for i := range trail[:len(trail)-1] {
		g.Go(func() (err error) {
			trail[i], err = ReadAnchor(gctx, src, root, a.Line(), from+int64(i))
			return err
		})
	}
	err := g.Wait()
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrOtherAnchor) {
		return nil, fmt.Errorf("anchor %d: %w: %w", a.Number, ErrTrail, err)
	}
	if err != nil {
		return nil, err
	}
	heads := map[string]AnchorHead{}
	for i, at := range trail {
		if i > 0 {
			if err := at.FollowsAnchor(trail[i-1].Anchor, trail[i-1].SHA256); err != nil {
				return nil, fmt.Errorf("anchor %d: %w: %w", a.Number, ErrTrail, err)
			}
		}
		for _, h := range at.Heads {
			heads[h.Tenant] = h
		}
	}
	return heads, nil
}

package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// A GoodAnchor names an anchor that counts.
type GoodAnchor struct {
	Number  int64
	Ordinal int64 // of the last segment that it covers
	Time    time.Time
	SHA256  chain.Hash // of the text
}

// An AnchorWatch finds the newest anchor of a line that counts, again and again. It
// remembers little of it: an anchor of many logs is large. The zero AnchorWatch has
// found nothing. It is used by one goroutine at a time.
type AnchorWatch struct {
	next int64 // anchors in front of it were looked at
	good *GoodAnchor
}

// Look returns the newest anchor that counts, nil where none does. One counts that
// a key of the ring signed which is good for anchors, or which such an anchor
// introduces; the ring learns all that a good one introduces. Where the ring is
// empty, each counts that can be read. An anchor that was found goes on counting
// though it is taken away. Of those that are new the newest [FullEvery] are looked
// at.
//
// The cost is that of [NewestAnchor] from the last one on, two reads of one byte
// where none is new; and one GET where the newest one counts.
func (w *AnchorWatch) Look(ctx context.Context, src Source, root *Root, l Line, ring *sign.Ring) (*GoodAnchor, error) {
	newest, err := NewestAnchor(ctx, src, l, w.next-1)
	if err != nil {
		return nil, err
	}
	var read []*AnchorVersion // downwards
	for n := newest; n >= w.next && n > newest-FullEvery; n-- {
		a, err := ReadAnchor(ctx, src, root, l, n)
		if errors.Is(err, ErrOtherAnchor) || errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v, err := a.verdict(ctx, src, ring)
		if err != nil {
			return nil, err
		}
		if v == sign.Good || ring.Empty() {
			if a, err = newerBy(ctx, src, ring, a, read); err != nil {
				return nil, err
			}
			w.good = &GoodAnchor{a.Number, a.Ordinal, a.Time.Time, a.SHA256}
			break
		}
		read = append(read, a)
	}
	w.next = max(w.next, newest+1)
	return w.good, nil
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

// headsParallel is how many anchors [GoodAnchor.Heads] reads at once.
const headsParallel = 16

// ErrTrail: anchors do not follow each other, or one of them is missing.
var ErrTrail = errors.New("the anchors in front of it do not lead to it: restore them")

// Heads returns what the anchor says of every log of its line, by tenant: it reads
// it, and those in front of it from the full one on, up to [FullEvery] together.
// Each has to follow the one before it, so that what they say is as good as the
// anchor itself; else the error matches [ErrTrail].
func (g *GoodAnchor) Heads(ctx context.Context, src Source, root *Root, l Line) (map[string]AnchorHead, error) {
	from := g.Number - g.Number%FullEvery
	trail := make([]*AnchorVersion, g.Number-from+1)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(headsParallel)
	for i := range trail {
		group.Go(func() (err error) {
			trail[i], err = ReadAnchor(gctx, src, root, l, from+int64(i))
			return err
		})
	}
	err := group.Wait()
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrOtherAnchor):
		return nil, fmt.Errorf("anchor %d: %w: %w", g.Number, ErrTrail, err)
	case err != nil:
		return nil, err
	case trail[len(trail)-1].SHA256 != g.SHA256:
		return nil, fmt.Errorf("anchor %d: %w: it is another one than was there", g.Number, ErrTrail)
	}
	return headsOf(trail)
}

// headsOf returns what anchors say of each log, of which each has to follow the one
// before it.
func headsOf(trail []*AnchorVersion) (map[string]AnchorHead, error) {
	heads := map[string]AnchorHead{}
	for i, at := range trail {
		if i > 0 {
			if err := at.FollowsAnchor(trail[i-1].Anchor, trail[i-1].SHA256); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrTrail, err)
			}
		}
		for _, h := range at.Heads {
			heads[h.Tenant] = h
		}
	}
	return heads, nil
}

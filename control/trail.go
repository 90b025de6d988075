package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// ErrAnchors: the anchors of a control line are none to go by. An operator has to
// look.
var ErrAnchors = errors.New("its anchors are not to be gone by")

// ErrObject: an object of a control line is not what belongs there. An operator has
// to restore it.
var ErrObject = errors.New("it is not what belongs there: restore it")

// InForceAfter is how long after the first anchor that lists control keys a row
// without a signature may still have been stamped.
const InForceAfter = 5 * time.Minute

// anchorsParallel is how many anchors are read at once.
const anchorsParallel = 16

// A trail is what the anchors of a line say, up to the newest one that counts.
type trail struct {
	notes []*archive.AnchorVersion // from a full one on; empty where no anchor counts
	// All anchors below next were read for the keys that they introduce.
	next  int64
	last  chain.Hash // of the text of the one before next
	since int64      // time of the first that lists control keys, microseconds; 0: none does
}

// ordinal returns that of the newest segment that anchors cover, -1 for none.
func (t *trail) ordinal() int64 {
	if len(t.notes) == 0 {
		return -1
	}
	return t.notes[len(t.notes)-1].Ordinal
}

// heads returns what the anchors state of each log.
func (t *trail) heads() map[string]archive.AnchorHead {
	heads := map[string]archive.AnchorHead{}
	for _, n := range t.notes {
		for _, h := range n.Heads {
			heads[h.Tenant] = h
		}
	}
	return heads
}

// refuses reports whether a row's signature does not count, and has to.
func (t *trail) refuses(r *Row) bool {
	return r.Unsigned != "" && t.since != 0 && r.ArchivedAt > t.since+InForceAfter.Microseconds()
}

// read finds the newest anchor that counts, and reads back to the full one before
// it: at most 100 beside those that do not count.
func (t *trail) read(ctx context.Context, lr *lineReader) error {
	hint := int64(-1)
	if n := len(t.notes); n > 0 {
		hint = t.notes[n-1].Number
	}
	newest, err := archive.NewestAnchor(ctx, lr.r.src, lr.line, hint)
	if err != nil {
		return err
	}
	if newest < hint {
		return fmt.Errorf("%w: anchor %d was there, and is gone: restore it", ErrAnchors, hint)
	}
	for from := newest - newest%archive.FullEvery; newest >= 0; from -= archive.FullEvery {
		notes, err := lr.anchors(ctx, lr.r.src, from, newest+1)
		if err != nil {
			return err
		}
		good, err := lr.good(ctx, notes)
		if err != nil {
			return err
		}
		if t.notes = notes[:good]; good > 0 || from == 0 {
			return nil
		}
	}
	t.notes = nil
	return nil
}

// good returns how many of the notes there are up to the newest one that counts.
func (lr *lineReader) good(ctx context.Context, notes []*archive.AnchorVersion) (good int, err error) {
	if lr.ring.Empty() {
		return len(notes), nil
	}
	for i, n := range notes {
		v, err := archive.Verdict(ctx, lr.r.src, lr.ring, lr.r.o.Root.ArchiveID, n.Note, sign.Anchor, n.Time.Time)
		switch {
		case err != nil:
			return 0, err
		case v == sign.Bad:
			return 0, fmt.Errorf("%w: anchor %d: one of its signatures (%s) is not that of the key", ErrAnchors, n.Number, archive.Signers(n.Note))
		case v == sign.Good:
			good = i + 1
			lr.introduce(n.Keys)
		}
	}
	return good, nil
}

// introduce adds the keys that an anchor lists, and reports whether one is new.
func (lr *lineReader) introduce(k archive.AnchorKeys) (grown bool) {
	before := len(lr.ring.Keys())
	for role, vkeys := range map[sign.Role][]string{sign.Anchor: k.Anchor, sign.Catalog: k.Catalog, sign.Control: k.Control} {
		for _, vkey := range vkeys {
			_ = lr.ring.Add(vkey, role, "anchor") // one that is no key signs nothing
		}
	}
	return len(lr.ring.Keys()) > before
}

// anchors reads from src the anchors from ≤ number < to, each of which follows the one
// before it.
func (lr *lineReader) anchors(ctx context.Context, src archive.Source, from, to int64) ([]*archive.AnchorVersion, error) {
	notes := make([]*archive.AnchorVersion, to-from)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(anchorsParallel)
	for i := range notes {
		group.Go(func() (err error) {
			notes[i], err = lr.anchor(gctx, src, from+int64(i))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := 1; i < len(notes); i++ {
		if err := notes[i].FollowsAnchor(notes[i-1].Anchor, notes[i-1].SHA256); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAnchors, err)
		}
	}
	return notes, nil
}

func (lr *lineReader) anchor(ctx context.Context, src archive.Source, number int64) (*archive.AnchorVersion, error) {
	a, err := archive.ReadAnchor(ctx, src, &lr.r.o.Root, lr.line, number)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return nil, fmt.Errorf("%w: %v: restore it", ErrAnchors, err) // compaction takes no anchor: no other try finds it
	case errors.Is(err, archive.ErrOtherAnchor):
		return nil, fmt.Errorf("%w: %w", ErrAnchors, err)
	}
	return a, err
}

// readAll reads all anchors for the keys that they introduce, once: there may be
// rows that only those explain. It reports whether the ring grew.
func (t *trail) readAll(ctx context.Context, lr *lineReader) (grown bool, err error) {
	if len(t.notes) == 0 {
		return false, nil
	}
	end := t.notes[len(t.notes)-1].Number + 1
	for t.next < end {
		notes, err := lr.anchors(ctx, lr.r.src.Source, t.next, min(end, t.next+archive.FullEvery))
		if err != nil {
			return false, err
		}
		if t.next > 0 && (notes[0].Previous == nil || *notes[0].Previous != t.last) {
			return false, fmt.Errorf("%w: anchor %d does not follow the one before it", ErrAnchors, t.next)
		}
		before := len(lr.ring.Keys())
		if _, err := lr.good(ctx, notes); err != nil {
			return false, err
		}
		grown = grown || len(lr.ring.Keys()) > before
		for _, n := range notes {
			t.note(ctx, lr, n)
		}
		t.next, t.last = t.next+int64(len(notes)), notes[len(notes)-1].SHA256
	}
	return grown, nil
}

// note takes down since when control keys are in force.
func (t *trail) note(ctx context.Context, lr *lineReader, n *archive.AnchorVersion) {
	if t.since != 0 || len(n.Keys.Control) == 0 {
		return
	}
	v, err := archive.Verdict(ctx, lr.r.src, lr.ring, lr.r.o.Root.ArchiveID, n.Note, sign.Anchor, n.Time.Time)
	if err == nil && v == sign.Good {
		t.since = n.Time.UnixMicro()
	}
}

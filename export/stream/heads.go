package stream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/event"
)

// heads are what anchors say of a destination's logs and what it was not told yet:
// of each log the oldest such head and the newest.
type heads struct {
	next  int64 // the next anchor to look at
	asked time.Time
	logs  map[string]*logHeads
}

type logHeads struct{ first, last *anchorHead }

// An anchorHead is what one anchor says of one log.
type anchorHead struct {
	archive.AnchorHead
	number  int64
	ordinal int64 // of the last segment that it covers
	time    time.Time
	note    string
}

// oldest returns the anchor from which on a restart has to look.
func (h *heads) oldest() int64 {
	from := h.next
	for _, l := range h.logs {
		from = min(from, l.first.number)
	}
	return from
}

// forget drops what waits for a log that goes on elsewhere.
func (h *heads) forget(tenant string) { delete(h.logs, tenant) }

// headsEvery is how often a line without news is asked for a new anchor.
const headsEvery = 10 * time.Second

// anchorsAtOnce is how many anchors are looked at in one pass.
const anchorsAtOnce = 100

// readHeads looks at the anchors that are new, and sends each log's newest head
// that covers no more than was delivered.
func (r *runner) readHeads(ctx context.Context) error {
	if !r.d.Heads || r.job != nil {
		return nil
	}
	if now := r.e.s.Now(); now.Sub(r.heads.asked) >= headsEvery {
		r.heads.asked = now
		for range anchorsAtOnce {
			more, err := r.readAnchor(ctx)
			if err != nil {
				return err
			}
			if !more {
				break
			}
			r.heads.asked = time.Time{} // there may be more
		}
	}
	return r.sendHeads(ctx)
}

// readAnchor takes in the next anchor, where it is there.
func (r *runner) readAnchor(ctx context.Context) (bool, error) {
	a, err := r.watch.anchor(ctx, r.heads.next)
	if a == nil || err != nil {
		return false, err
	}
	r.heads.next++
	if !a.good {
		return true, nil
	}
	if r.heads.logs == nil {
		r.heads.logs = map[string]*logHeads{}
	}
	notes := map[string]string{}
	for i := range a.Checkpoints {
		notes[a.Checkpoints[i].Tenant] = a.Checkpoints[i].Note
	}
	for _, h := range a.Heads {
		g := r.laneOf(h.Tenant)
		if g == nil || h.Size <= g.Head {
			continue
		}
		head := &anchorHead{h, a.Number, a.Ordinal, a.Time.Time, notes[h.Tenant]}
		if l := r.heads.logs[h.Tenant]; l != nil {
			l.last = head
		} else {
			r.heads.logs[h.Tenant] = &logHeads{head, head}
		}
	}
	return true, nil
}

// sendHeads puts into the batch what is due. A head is sent behind the rows that
// it covers.
func (r *runner) sendHeads(ctx context.Context) error {
	for _, tenant := range slices.Sorted(maps.Keys(r.heads.logs)) {
		g, l := r.lanes[tenant], r.heads.logs[tenant]
		var due *anchorHead
		switch {
		case g == nil:
			delete(r.heads.logs, tenant)
		case g.stopped != nil:
		case l.last.Size <= g.read.next:
			due = l.last
			delete(r.heads.logs, tenant)
		case l.first.Size <= g.read.next:
			due, l.first = l.first, l.last
		case !r.behind && !g.behind && r.ordinal > l.first.ordinal:
			// All that it covers was read.
			r.stop(g, missing(g.Tenant, g.read.next, l.first.Size, l.first.number, l.first.time, l.first.ordinal))
		}
		if due == nil {
			continue
		}
		if err := g.agrees(due); err != nil {
			r.stop(g, err)
			continue
		}
		if err := r.add(ctx, r.newHead(g, due)); err != nil {
			return err
		}
	}
	return nil
}

// agrees holds an anchor's head against where the lane stands, where that is the
// same place.
func (g *lane) agrees(h *anchorHead) error {
	if h.Size != g.read.next || g.read.hash == nil || *g.read.hash == h.AnchorHead.Head {
		return nil
	}
	return tampered("tenant %q: the row in front of seq %d has hash %s, and anchor %d says %s", g.Tenant, h.Size, g.read.hash, h.number, h.AnchorHead.Head)
}

func (r *runner) newHead(g *lane, h *anchorHead) *item {
	it := &item{ev: event.NewHead(r.line, g.Tenant, event.Head{
		Size: h.Size, Hash: h.AnchorHead.Head, Root: h.Root, Epoch: h.Epoch, Anchor: h.number, Time: h.time, Note: h.note,
	})}
	it.done = func() {
		g.Head = max(g.Head, h.Size)
		r.dirty = true
	}
	r.encode(it)
	return it
}

// takeCuts has lanes go on behind what retention dropped in front of their next
// row, and tells the destination of the gap: a head says where the log goes on.
func (r *runner) takeCuts(ctx context.Context) error {
	c := r.v.catalog
	if c == nil || c == r.cuts {
		return nil
	}
	for i := range c.Cuts {
		cut := &c.Cuts[i]
		g := r.laneOf(cut.Tenant)
		if g == nil || g.stopped != nil || g.read.next >= cut.Size {
			continue
		}
		ordered, err := r.cutOrdered(ctx, cut)
		if err != nil {
			return err
		}
		if !ordered {
			r.stop(g, tampered("%s: it says that rows of tenant %q below seq %d were cut, and no order that counts says so", c.Key, cut.Tenant, cut.Size))
			continue
		}
		if err := r.skip(ctx, g, cut); err != nil {
			return err
		}
	}
	r.cuts = c
	return nil
}

// cutOrdered reports whether a cut is one that a control row says.
func (r *runner) cutOrdered(ctx context.Context, cut *archive.CatalogCut) (bool, error) {
	for range 2 {
		now, err := r.e.governor.current(ctx)
		if err != nil {
			return false, err
		}
		if c := now.Tenant(cut.Tenant).Cut(r.line, cut.Size); c != nil && c.Anchored && c.Cut.Head == cut.Head {
			return true, nil
		}
		if err := r.e.governor.refresh(ctx); err != nil {
			return false, err
		}
	}
	return false, nil
}

// skip moves a lane over rows that are gone.
func (r *runner) skip(ctx context.Context, g *lane, cut *archive.CatalogCut) error {
	from, at := g.read.next, g.read
	head := cut.Head
	r.jump(g, position{cut.Size, &head, g.read.epoch})
	g.Dropped += cut.Size - from
	r.dirty, r.behind = true, true
	if r.e.s.Events.Dropped != nil {
		r.e.s.Events.Dropped(r.d.Name, r.line, g.Tenant, from, cut.Size)
	}
	tree := chain.Tree{Size: cut.Size, Frontier: cut.Frontier}
	it := &item{g: g, at: at, ev: event.NewHead(r.line, g.Tenant, event.Head{
		Size: cut.Size, Hash: cut.Head, Root: tree.Root(), Epoch: g.read.epoch, Anchor: -1, Time: r.v.catalog.Time.Time,
	})}
	r.encode(it)
	return r.add(ctx, it)
}

// anchors are those that were read of a line lately, so that each lane need not
// read them for itself.
type anchors struct {
	held map[int64]*anchor
}

type anchor struct {
	*archive.Anchor
	good bool // a good key signed it, or none is asked for
}

// anchorsHeld is how many are remembered.
const anchorsHeld = 16

// anchor returns an anchor of the line; nil where it is not there.
func (w *watch) anchor(ctx context.Context, number int64) (*anchor, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.anchors.held[number]; a != nil {
		return a, nil
	}
	v, err := archive.ReadAnchor(ctx, w.e.s.Archive, &w.e.s.Root, w.line, number)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return nil, nil
	case errors.Is(err, archive.ErrOtherAnchor):
		return nil, tampered("%s: %w", archive.AnchorKey(w.line, number), err)
	case err != nil:
		return nil, err
	}
	a, err := w.judge(ctx, v)
	if err != nil {
		return nil, err
	}
	if len(w.anchors.held) >= anchorsHeld || w.anchors.held == nil {
		w.anchors.held = map[int64]*anchor{}
	}
	w.anchors.held[number] = a
	return a, nil
}

func (w *watch) judge(ctx context.Context, v *archive.AnchorVersion) (*anchor, error) {
	if w.ring.Empty() {
		return &anchor{v.Anchor, true}, nil
	}
	state, err := archive.Verdict(ctx, w.e.s.Archive, w.ring, v.ArchiveID, v.Note, sign.Anchor, v.Time.Time)
	if err != nil {
		return nil, err
	}
	if state == sign.Bad {
		return nil, tampered("%s: one of its signatures (%s) is not that of the key", archive.AnchorKey(w.line, v.Number), archive.Signers(v.Note))
	}
	return &anchor{v.Anchor, state == sign.Good}, nil
}

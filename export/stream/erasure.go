package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/export/event"
)

// notices returns what a receipt of an erasure means to the destination: a notice
// for each log of which it had some of the rows. They wait in front of the
// receipt's own row, so that they are told as surely as a row is.
func (r *runner) notices(ctx context.Context, g *lane, at position, row *chain.Row) ([]*item, error) {
	c, err := control.ParseRow(row)
	if err != nil || c.Receipt == nil {
		return nil, nil // it says nothing
	}
	counts, err := r.counts(ctx, c)
	if err != nil || !counts {
		return nil, err
	}
	what := c.Receipt.Sentinel(c.Receipt.RedactionID)
	if !what.Valid() {
		return nil, nil
	}
	e := event.Erasure{What: what, Time: time.UnixMicro(c.CreatedAt).UTC()}
	if c.Receipt.RequestRef != nil {
		e.RequestRef = *c.Receipt.RequestRef
	}
	var items []*item
	for _, log := range c.Receipt.Erased {
		had, err := r.e.had(ctx, r.d.Name, log.Log, c.Tenant)
		if err != nil {
			return nil, err
		}
		for ranges := range slices.Chunk(intersect(log.Ranges, had), event.MaxRanges) {
			e.Ranges = ranges
			items = append(items, r.noticesOf(g, at, event.NewErasure(log.Log, c.Tenant, e), r.encoder.MaxRanges())...)
		}
	}
	return items, nil
}

// counts reports whether a receipt is not one that somebody forged: with control
// keys in force one of them must have signed it.
func (r *runner) counts(ctx context.Context, c *control.Row) (bool, error) {
	for range 2 {
		now, err := r.e.governor.current(ctx)
		if err != nil {
			return false, err
		}
		if known := now.Tenant(c.Tenant).Row(c.ID, audit.KindErasureDone); known != nil {
			return !known.Refused, nil
		}
		if err := r.e.governor.refresh(ctx); err != nil { // it is younger than what is known
			return false, err
		}
	}
	return false, nil
}

// had returns which rows of a log a destination had, by its cursors: first and
// last seq, both in it.
func (e *Engine) had(ctx context.Context, destination string, l archive.Line, tenant string) (had [][2]int64, err error) {
	jobs, err := listJobs(ctx, e.s.Archive, destination)
	if err != nil {
		return nil, err
	}
	for _, job := range append([]string{""}, jobs...) {
		c, err := ReadCursors(ctx, e.s.Archive, e.s.Root.ArchiveID, destination, job, l)
		if errors.Is(err, ErrCursor) {
			e.warn(destination, "erasure: which rows it had is not known", err)
			had = append(had, [2]int64{0, 1<<62 - 1})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cursors: %w", err)
		}
		if c == nil {
			continue
		}
		if at := c.Of(tenant); at != nil && at.Next > at.First {
			had = append(had, [2]int64{at.First, at.Next - 1})
		}
	}
	return had, nil
}

// intersect returns what lies in both, in order and joined.
func intersect(ranges, had [][2]int64) (both [][2]int64) {
	for _, a := range ranges {
		for _, b := range had {
			if first, last := max(a[0], b[0]), min(a[1], b[1]); first <= last {
				both = append(both, [2]int64{first, last})
			}
		}
	}
	slices.SortFunc(both, func(a, b [2]int64) int { return int(min(max(a[0]-b[0], -1), 1)) })
	joined := both[:0]
	for _, s := range both {
		if n := len(joined); n > 0 && s[0] <= joined[n-1][1]+1 {
			joined[n-1][1] = max(joined[n-1][1], s[1])
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

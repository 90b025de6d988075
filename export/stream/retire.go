package stream

import (
	"context"
	"errors"
	"slices"
)

// retire notes once which destinations are set for no exporter any more: they are
// in the bucket, and not among ours, and nobody shows a sign of life for them.
// Their cursors stay.
func (e *Engine) retire(ctx context.Context) {
	names, err := Names(ctx, e.s.Archive)
	if err != nil {
		if ctx.Err() == nil {
			e.warn("", "whether destinations were removed is not known", err)
		}
		return
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(e.destinations, func(d *destination) bool { return d.Name == name })
	})
	before := map[string]int64{}
	for _, name := range names {
		if l, err := ReadLease(ctx, e.s.Archive, name); err == nil && l != nil {
			before[name] = l.Count
		}
	}
	if len(before) == 0 || pause(ctx, e.s.StandBy+e.s.StandBy/2) != nil {
		return
	}
	for name, count := range before {
		l, err := ReadLease(ctx, e.s.Archive, name)
		if err != nil || l == nil || l.Count != count {
			continue // another exporter has it
		}
		s, changed, err := SetState(ctx, e.s.Archive, name, Removed, "no exporter is set to have it", e.s.ID, e.s.Now())
		switch {
		case errors.Is(err, ErrNoDestination):
		case err != nil:
			e.warn(name, "that it was removed is not stored", err)
		case changed && e.s.Events.Changed != nil:
			e.s.Events.Changed(s)
		}
	}
}

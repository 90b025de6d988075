package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// A view is a line at one moment: each of its rows is in a data file of the
// catalog, or in one of the segments. It does not change.
type view struct {
	line     archive.Line
	catalog  *archive.CatalogVersion // nil where the line was never compacted
	segments []archive.Object        // dense, from the watermark on
	taken    time.Time               // when the catalog was read
	lacks    *lacks                  // nil where it has all that its newest good anchor covers
}

func (v *view) watermark() int64 {
	if v.catalog == nil {
		return 0
	}
	return v.catalog.Watermark
}

// next returns the ordinal behind the newest segment.
func (v *view) next() int64 { return v.watermark() + int64(len(v.segments)) }

// segment returns the object of an ordinal that the view has.
func (v *view) segment(ordinal int64) *archive.Object { return &v.segments[ordinal-v.watermark()] }

// parts returns the parts of the catalog from a day on, oldest first.
func (v *view) parts(day string) []archive.CatalogPartRef {
	if v.catalog == nil {
		return nil
	}
	parts := slices.DeleteFunc(slices.Clone(v.catalog.Parts), func(p archive.CatalogPartRef) bool { return p.Day < day })
	slices.SortFunc(parts, func(a, b archive.CatalogPartRef) int { return cmp.Compare(a.Day, b.Day) })
	return parts
}

// lacks is what anchors state of a line that ends in front of what they cover: its
// newest segments are gone, or the catalog is an older one than there was.
type lacks struct {
	anchor *archive.GoodAnchor
	heads  map[string]archive.AnchorHead // by tenant
}

// of returns what is missing of a log that ends in front of a seq; nil where nothing
// is. A chain reset declares no row void that an anchor covers.
func (l *lacks) of(tenant string, next int64) error {
	if l == nil || next >= l.heads[tenant].Size {
		return nil
	}
	a := l.anchor
	return missing(tenant, next, l.heads[tenant].Size, a.Number, a.Time, a.Ordinal)
}

// missing says that a log ends in front of rows that an anchor states.
func missing(tenant string, next, size, anchor int64, at time.Time, ordinal int64) error {
	return tampered("the log of tenant %q ends at seq %d, and anchor %d (of %s) states %d rows: restore the catalog of its line, or its segments up to %d",
		tenant, next, anchor, at.UTC().Format(time.RFC3339), size, ordinal)
}

// watches are the lines that lanes look at, so that all of one line cost what one
// does.
type watches struct {
	e     *Engine
	mu    sync.Mutex
	lines map[archive.Line]*watch
}

func (w *watches) of(l archive.Line) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lines[l] == nil {
		w.lines[l] = &watch{e: w.e, line: l, ring: w.e.s.Keys.Clone()}
	}
	return w.lines[l]
}

// A watch looks at a line. Between two looks at its catalog it only lists what
// segments are new.
type watch struct {
	e    *Engine
	line archive.Line
	ring *sign.Ring

	mu      sync.Mutex
	v       *view
	looked  time.Time
	newest  archive.AnchorWatch
	anchors anchors
	known   map[string]*archive.Segment // metadata of segments, by key; without frontiers
}

// knownSegments is how many segments' metadata is remembered of a line.
const knownSegments = 4096

// knows returns the metadata of a segment that was read before; nil where it is not
// remembered.
func (w *watch) knows(key string) *archive.Segment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[key]
}

func (w *watch) remember(key string, m *archive.Segment) {
	for i := range m.Logs {
		m.Logs[i].Frontier = nil
	}
	m.Duplicates, m.Gaps = nil, nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil || len(w.known) >= knownSegments {
		w.known = map[string]*archive.Segment{}
	}
	w.known[key] = m
}

// How old a catalog may be before it is read again though nothing was missed, and
// how many segments a view may have grown to.
const (
	catalogAge   = 2 * time.Minute
	viewSegments = 4096
)

// view returns the line as it is now, or was less than Poll ago.
func (w *watch) view(ctx context.Context) (*view, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.e.s.Now()
	if w.v != nil && now.Sub(w.looked) < w.e.s.Poll {
		return w.v, nil
	}
	if w.v != nil && now.Sub(w.v.taken) < catalogAge && len(w.v.segments) < viewSegments {
		err := w.grow(ctx)
		if err == nil || !errors.Is(err, archive.ErrBreaks) {
			return w.v, err
		}
	}
	return w.v, w.take(ctx)
}

// grow adds the segments that are new.
func (w *watch) grow(ctx context.Context) error {
	more, err := archive.ListSegments(ctx, w.e.s.Archive, w.line, w.v.next())
	if err != nil {
		return err
	}
	if w.looked = w.e.s.Now(); len(more) > 0 {
		v := *w.v
		v.segments = append(v.segments[:len(v.segments):len(v.segments)], more...)
		if v.lacks != nil && v.next() > v.lacks.anchor.Ordinal {
			v.lacks = nil
		}
		w.v = &v
	}
	return nil
}

// viewTries is how often a view is begun anew because compaction went on.
const viewTries = 10

// take reads the catalog, lists what lies above it, and holds that against the
// newest good anchor. What is listed once the anchor was read is decisive: its
// segments were there before it.
func (w *watch) take(ctx context.Context) error {
	var good *archive.GoodAnchor
	for range viewTries {
		v, err := w.look(ctx)
		if err != nil {
			return err
		}
		if v == nil {
			continue // compaction went on
		}
		decisive := good != nil
		if !decisive {
			if good, err = w.newestGood(ctx); err != nil {
				return err
			}
		}
		if good != nil && v.next() <= good.Ordinal {
			if !decisive {
				continue
			}
			if v.lacks, err = w.lacking(ctx, good); err != nil {
				return err
			}
		}
		w.v, w.looked = v, w.e.s.Now()
		return nil
	}
	return fmt.Errorf("%s: its catalog went on %d times while it was read: try again", archive.CatalogPrefix(w.line), viewTries)
}

// look reads the catalog and lists what lies above it; nil where compaction went on
// meanwhile.
func (w *watch) look(ctx context.Context) (*view, error) {
	src := w.e.s.Archive
	signed := archive.CatalogsSignedBy(src, w.ring, w.e.s.Root.ArchiveID)
	c, err := archive.NewestCatalog(ctx, src, w.line, archive.CatalogsIntroduced(signed, func(ctx context.Context) error {
		_, err := w.newestGood(ctx)
		return err
	}))
	if err != nil {
		return nil, err
	}
	if c != nil && c.ArchiveID != w.e.s.Root.ArchiveID {
		return nil, fmt.Errorf("%s: it is of another archive: %w", c.Key, archive.ErrCatalog)
	}
	v := &view{line: w.line, catalog: c, taken: w.e.s.Now()}
	v.segments, err = archive.ListSegments(ctx, src, w.line, v.watermark())
	if err != nil && !errors.Is(err, archive.ErrBreaks) {
		return nil, err
	}
	version := int64(-1)
	if c != nil {
		version = c.Version
	}
	newer, fault := archive.NewestCatalogObject(ctx, src, w.line, version)
	switch {
	case fault != nil:
		return nil, fault
	case newer != nil:
		return nil, nil
	}
	return v, err
}

// newestGood returns the newest anchor that counts; nil where none does.
func (w *watch) newestGood(ctx context.Context) (*archive.GoodAnchor, error) {
	return w.newest.Look(ctx, w.e.s.Archive, &w.e.s.Root, w.line, w.ring)
}

// lacking reads what the anchors up to a good one say of each log.
func (w *watch) lacking(ctx context.Context, good *archive.GoodAnchor) (*lacks, error) {
	heads, err := good.Heads(ctx, w.e.s.Archive, &w.e.s.Root, w.line)
	if errors.Is(err, archive.ErrTrail) {
		return nil, tampered("%s/%d ends in front of segment %d, which an anchor covers: %w", w.line.Topic, w.line.Partition, good.Ordinal, err)
	}
	if err != nil {
		return nil, err
	}
	return &lacks{good, heads}, nil
}

// gone notes that something of a view is not there any more: the next one is
// taken from the beginning.
func (w *watch) gone(v *view) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.v == v {
		w.v = nil
	}
}

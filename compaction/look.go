package compaction

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Sight is what a pass found of a line before it does anything.
type Sight struct {
	Line     archive.Line
	Base     *archive.CatalogVersion // the newest; nil: never compacted
	Files    []archive.CatalogFile   // by tenant and first seq
	Anchors  []*archive.Anchor       // from the one before that covers the watermark on, up to one that counts
	Newest   *archive.Anchor         // the last of them; nil: none counts
	Tenants  map[string]bool         // that have a log on the line, as far as orders ask
	Made     int64                   // how many files the segments of the last pass became, 0 where that is not known
	StoreNow time.Time               // by the store's clock
	// Versions are the versions of the catalog that are there, and when they were
	// written by the store's clock; Parts the keys of parts that are there.
	Versions map[int64]time.Time
	Parts    []string

	links  *links // nil: no manifests are kept
	newest int64  // the number of the newest anchor that is there
	behind bool   // there are anchors that were not read: a further pass does
}

// watermark returns the first ordinal that is not compacted.
func (s *Sight) watermark() int64 {
	if s.Base == nil {
		return 0
	}
	return s.Base.Watermark
}

// version returns that of the base, -1 where there is none.
func (s *Sight) version() int64 {
	if s.Base == nil {
		return -1
	}
	return s.Base.Version
}

// anchored returns the last ordinal that an anchor covers that counts.
func (s *Sight) anchored() int64 {
	if s.Newest == nil {
		return -1
	}
	return s.Newest.Ordinal
}

// look reads what a pass goes by: first the catalog, then the anchors, so that
// these are never older than what the catalog was made of.
func (e *Engine) look(ctx context.Context, l archive.Line, m *memo, d *Duties) (*Sight, error) {
	s := &Sight{Line: l, Tenants: map[string]bool{}, Made: m.made}
	var err error
	if s.StoreNow, err = e.Archive.Now(ctx); err != nil {
		return nil, fmt.Errorf("the store's time: %w", err)
	}
	if s.Base, err = archive.NewestCatalog(ctx, e.Archive, l, e.catalogCounts(l)); err != nil {
		return nil, catalogFault(err)
	}
	if s.Base != nil {
		if s.Base.ArchiveID != e.Root.ArchiveID {
			return nil, halt("%s: it is of archive %.40q", s.Base.Key, s.Base.ArchiveID)
		}
		if s.Files, err = e.files(ctx, s.Base, m); err != nil {
			return nil, err
		}
	}
	if err := e.readLinks(ctx, s, m); err != nil {
		return nil, err
	}
	newest, err := e.anchors(ctx, s, m)
	if err != nil {
		return nil, err
	}
	s.newest = newest
	if err := e.tenants(ctx, s, m, d, newest); err != nil {
		return nil, err
	}
	return s, e.listCatalog(ctx, s)
}

// catalogFault makes of a catalog that does not count a reason to halt.
func catalogFault(err error) error {
	if errors.Is(err, archive.ErrCatalog) {
		return halt("%w: restore the object if it was damaged; nobody but a compactor writes there (docs/compaction.md, section Halted)", err)
	}
	return err
}

// files reads the parts of a version, unless the line's memo has them. One that
// is gone means that somebody else went on: the pass begins anew.
func (e *Engine) files(ctx context.Context, c *archive.CatalogVersion, m *memo) ([]archive.CatalogFile, error) {
	if m.text == c.SHA256 {
		return m.files, nil
	}
	files, err := c.Files(ctx, e.Archive)
	if errors.Is(err, archive.ErrNotFound) {
		newer, fault := archive.NewestCatalogObject(ctx, e.Archive, c.Line(), c.Version)
		if fault != nil {
			return nil, fault
		}
		if newer != nil {
			return nil, fmt.Errorf("%w: %w", ErrRaced, err)
		}
		return nil, halt("%w: the newest version of the catalog names it: restore the object", err)
	}
	if err != nil {
		return nil, catalogFault(err)
	}
	m.text, m.files = c.SHA256, files
	return files, nil
}

// anchors reads the anchors that list segments from the watermark on, and those
// from which the base took what lies below it. It returns the number of the newest
// anchor that is there.
func (e *Engine) anchors(ctx context.Context, s *Sight, m *memo) (newest int64, err error) {
	if newest, err = archive.NewestAnchor(ctx, e.Archive, s.Line, m.anchor); err != nil {
		return 0, err
	}
	if newest < 0 {
		if s.watermark() > 0 {
			return 0, halt("the watermark is %d and there is no anchor: anchors are never deleted: restore them", s.watermark())
		}
		return newest, nil
	}
	r := e.anchorsOf(s.Line)
	first, err := r.firstAbove(ctx, m.anchor, newest, s.watermark()-1)
	if err != nil {
		return 0, err
	}
	for bytes := e.windowBytes(); ; bytes *= 4 {
		all, err := r.readAll(ctx, max(first-1, 0), newest+1, bytes)
		if err != nil {
			return 0, err
		}
		if err := e.judge(ctx, s, all); err != nil {
			return 0, err
		}
		last := all[len(all)-1]
		if s.behind = last.Number < newest; s.behind && s.anchored() < s.watermark() {
			continue // none of these counts
		}
		m.anchor = last.Number
		if len(s.Anchors) < len(all) && m.warned != newest {
			m.warned = newest
			e.warn(s.Line, "anchors do not count, and what they cover waits", fmt.Errorf("anchor %d is signed by %q, and by no key that is known here", last.Number, archive.Signers(last.note)))
		}
		break
	}
	if s.anchored() < s.watermark()-1 {
		return 0, halt("the watermark is %d, and anchors that count cover segments up to %d only: anchors are missing, or are not signed by a key that is known here", s.watermark(), s.anchored())
	}
	return newest, nil
}

func (e *Engine) warn(l archive.Line, text string, err error) {
	if e.Events.Warn != nil {
		e.Events.Warn(l, text, err)
	}
}

// firstAbove finds the first anchor that covers the segment of an ordinal, by
// doubling from a hint and by halving: ordinals never go down. Where none does,
// it returns newest+1.
func (r *anchorReader) firstAbove(ctx context.Context, hint, newest, ordinal int64) (int64, error) {
	low, high := int64(-1), newest+1 // does not cover it, and does
	at, step := min(max(hint, 0), newest), int64(1)
	for high-low > 1 {
		a, err := r.read(ctx, at)
		if err != nil {
			return 0, err
		}
		if a.Ordinal < ordinal {
			low = at
		} else {
			high, step = at, newest
		}
		at = low + step
		if step *= 2; at >= high {
			at = low + (high-low)/2
		}
	}
	return high, nil
}

func (e *Engine) readAnchors(ctx context.Context, l archive.Line, from, to, bytes int64) ([]*readAnchor, error) {
	return e.anchorsOf(l).readAll(ctx, from, to, bytes)
}

// readAll reads anchors from ≤ number < to, until what they list has as many
// bytes as a pass can take.
func (r *anchorReader) readAll(ctx context.Context, from, to, bytes int64) (all []*readAnchor, err error) {
	for from < to && bytes > 0 {
		some := make([]*readAnchor, min(to-from, anchorsParallel))
		g, gctx := errgroup.WithContext(ctx)
		for i := range some {
			g.Go(func() (err error) {
				some[i], err = r.read(gctx, from+int64(i))
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for _, a := range some {
			for i := range a.Segments {
				bytes -= a.Segments[i].Bytes
			}
		}
		all, from = append(all, some...), from+int64(len(some))
	}
	return all, nil
}

// anchorsParallel is how many anchors are read at once.
const anchorsParallel = 16

// An anchorReader reads anchors of a line, each once.
type anchorReader struct {
	e    *Engine
	line archive.Line
	mu   sync.Mutex
	seen map[int64]*readAnchor
}

func (e *Engine) anchorsOf(l archive.Line) *anchorReader {
	return &anchorReader{e: e, line: l, seen: map[int64]*readAnchor{}}
}

func (r *anchorReader) read(ctx context.Context, number int64) (*readAnchor, error) {
	r.mu.Lock()
	a := r.seen[number]
	r.mu.Unlock()
	if a != nil {
		return a, nil
	}
	a, err := r.e.readAnchor(ctx, r.line, number)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[number] = a
	return a, nil
}

// readAnchor reads one anchor of the line and of this archive.
func (e *Engine) readAnchor(ctx context.Context, l archive.Line, number int64) (*readAnchor, error) {
	key := archive.AnchorKey(l, number)
	body, err := e.Archive.Get(ctx, key)
	if errors.Is(err, archive.ErrNotFound) || errors.Is(err, archive.ErrDamaged) {
		return nil, halt("%w: anchors are never deleted: restore it", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	n, err := sign.Parse(body)
	if err != nil {
		return nil, halt("%s: %w", key, err)
	}
	a, err := archive.DecodeAnchor(n.Text)
	switch {
	case err != nil:
		return nil, halt("%s: %w", key, err)
	case a.Line() != l || a.Number != number:
		return nil, halt("%s: it says that it is number %d of %v", key, a.Number, a.Line())
	case a.ArchiveID != e.Root.ArchiveID || a.ArchiveSHA256 != e.Root.SHA256:
		return nil, halt("%s: it is of archive %.40q, or %s was changed", key, a.ArchiveID, archive.RootKey)
	}
	return &readAnchor{a, n, archive.TextHash(n.Text)}, nil
}

// A readAnchor is an anchor as it lies in the bucket.
type readAnchor struct {
	*archive.Anchor
	note *sign.Note
	sum  chain.Hash // of its text
}

// judge keeps the anchors up to the newest one that counts, and requires that
// each follows the one before it.
func (e *Engine) judge(ctx context.Context, s *Sight, all []*readAnchor) error {
	good := 0
	s.Anchors, s.Newest = nil, nil
	for i, a := range all {
		if i > 0 {
			if err := a.FollowsAnchor(all[i-1].Anchor, all[i-1].sum); err != nil {
				return halt("%w", err)
			}
		}
		v, err := archive.Verdict(ctx, e.Archive, e.ring, e.Root.ArchiveID, a.note, sign.Anchor, a.Time.Time)
		if err != nil {
			return err
		}
		if v == sign.Bad {
			return halt("%s: one of its signatures (%s) is not that of the key", archive.AnchorKey(s.Line, a.Number), archive.Signers(a.note))
		}
		if v == sign.Good {
			e.introduce(s.Line, a.Keys)
		}
		if v == sign.Good || e.ring.Empty() {
			good = i + 1
		}
	}
	for _, a := range all[:good] {
		s.Anchors = append(s.Anchors, a.Anchor)
	}
	if good > 0 {
		s.Newest = s.Anchors[good-1]
	}
	return nil
}

// introduce takes in the keys that a good anchor names.
func (e *Engine) introduce(l archive.Line, k archive.AnchorKeys) {
	for role, keys := range map[sign.Role][]string{sign.Anchor: k.Anchor, sign.Catalog: k.Catalog, sign.Control: k.Control} {
		for _, vkey := range keys {
			if err := e.ring.Add(vkey, role, "an anchor"); err != nil {
				e.warn(l, "a good anchor names a key that is none", err)
			}
		}
	}
}

// catalogCounts is [archive.CatalogsSignedBy], and learns what the newest anchors
// introduce before it refuses a version.
func (e *Engine) catalogCounts(l archive.Line) archive.CheckNote {
	check := archive.CatalogsSignedBy(e.Archive, e.ring, e.Root.ArchiveID)
	return func(ctx context.Context, n *sign.Note, at time.Time) error {
		err := check(ctx, n, at)
		if !errors.Is(err, archive.ErrCatalog) {
			return err
		}
		newest, fault := archive.NewestAnchor(ctx, e.Archive, l, -1)
		if fault != nil {
			return fault
		}
		some, fault := e.readAnchors(ctx, l, max(newest-anchorsParallel, 0), newest+1, 1)
		if fault != nil {
			return fault
		}
		if fault := e.judge(ctx, &Sight{Line: l}, some); fault != nil {
			return fault
		}
		return check(ctx, n, at)
	}
}

// tenants finds out which tenants have a log on the line, as far as orders ask:
// those of data files and cuts are known, others from the newest full anchor on.
func (e *Engine) tenants(ctx context.Context, s *Sight, m *memo, d *Duties, newest int64) error {
	for i := range s.Files {
		s.Tenants[s.Files[i].Tenant] = true
	}
	if s.Base != nil {
		for i := range s.Base.Cuts {
			s.Tenants[s.Base.Cuts[i].Tenant] = true
		}
	}
	for _, a := range s.Anchors {
		for i := range a.Heads {
			s.Tenants[a.Heads[i].Tenant] = true
		}
	}
	asked := false
	for i := range d.Orders {
		asked = asked || d.Orders[i].reaches(s.Line) && !s.Tenants[d.Orders[i].Row.Tenant]
	}
	if !asked || newest < 0 {
		return nil
	}
	from := newest - newest%archive.FullEvery
	if m.listed >= from {
		from = m.listed + 1
	}
	r := e.anchorsOf(s.Line)
	for ; from <= newest; from = m.listed + 1 {
		some, err := r.readAll(ctx, from, min(from+anchorsParallel, newest+1), 1)
		if err != nil {
			return err
		}
		for _, a := range some {
			for i := range a.Heads {
				m.tenants[a.Heads[i].Tenant] = true
			}
			m.listed = a.Number
		}
	}
	for t := range m.tenants {
		s.Tenants[t] = true
	}
	return nil
}

// listCatalog lists what lies in the catalog's folder: when versions were
// written, and which parts are there.
func (e *Engine) listCatalog(ctx context.Context, s *Sight) error {
	s.Versions = map[int64]time.Time{}
	for o, err := range e.Archive.List(ctx, archive.CatalogPrefix(s.Line), "") {
		if err != nil {
			return fmt.Errorf("list the catalog: %w", err)
		}
		if n, ok := archive.ParseCatalogKey(o.Key); ok {
			s.Versions[n.Number] = o.Modified
		} else {
			s.Parts = append(s.Parts, o.Key)
		}
	}
	return nil
}

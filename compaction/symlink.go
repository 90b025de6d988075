package compaction

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Manifests are what a pass keeps for engines of SQL that take files from a list:
// for each log the addresses of the objects that have its rows, each row once. An
// engine that reads a manifest at any moment finds every row of the log that was in
// an earlier one, once, and finds its objects for the grace to come. Source:
// docs/format.md, section 5.
//
// A version of the catalog comes first, then the manifests that it changes, each by
// compare-and-swap, then a document that says so. What the version dooms is deleted
// once the grace has passed since that. A manifest is of one log, and all of a
// log's rows are in it, so that it does not matter in which order they are written.
//
// The tags of manifests are always read before it is made sure that no newer
// version is there: whoever writes by an older one finds another tag.
type Manifests struct {
	Base  string // of addresses, with a slash at its end: s3://bucket/prefix/
	Store archive.Swapper
}

const (
	// manifestSegments is how many segments behind the watermark a manifest may
	// name; rows of later ones come with the passes that follow.
	manifestSegments = 1000
	// manifestTries is how often another writer may be faster.
	manifestTries = 3
	// manifestsParallel is how many manifests are written at once.
	manifestsParallel = 16
	// linkGrains is into how many parts the grace is divided: of versions that were
	// linked within one, the last stands for all.
	linkGrains = 60
)

// links say which version of a catalog its line's manifests follow, and when they
// came to follow it and earlier ones. It is the document of the line.
type links struct {
	ArchiveID string `json:"archiveId"`
	Base      string `json:"base"`
	Version   int64  `json:"version"`
	Linked    []link `json:"linked"` // in the order of versions

	tag string // of the object that holds it; "": there is none
}

// A link says since when no manifest follows an older version.
type link struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"` // by the store's clock
}

// follows reports whether the manifests follow a version of the catalog.
func (k *links) follows(root archive.Root, base string, version int64) bool {
	return k.ArchiveID == root.ArchiveID && k.Base == base && k.Version == version && k.tag != ""
}

// free reports whether no manifest has named what a version dooms for the grace,
// so that nobody is on the way to it any more. Nil links: no manifests are kept.
func (k *links) free(since int64, now time.Time, grace time.Duration) bool {
	if k == nil {
		return true
	}
	for _, l := range k.Linked {
		if l.Version >= since && now.Sub(l.At) > grace {
			return true
		}
	}
	return false
}

// add returns the links once manifests follow a version.
func (k *links) add(root archive.Root, base string, version int64, at time.Time) *links {
	grace := time.Duration(root.GraceSeconds) * time.Second
	next := &links{ArchiveID: root.ArchiveID, Base: base, Version: version, tag: k.tag}
	for i, l := range k.Linked {
		old := at.Sub(l.At) > grace
		if old && i+1 < len(k.Linked) && at.Sub(k.Linked[i+1].At) > grace {
			continue // the next one frees as much
		}
		if n := len(next.Linked); n > 1 && l.At.Sub(next.Linked[n-2].At) < grace/linkGrains {
			next.Linked = next.Linked[:n-1]
		}
		next.Linked = append(next.Linked, l)
	}
	next.Linked = append(next.Linked, link{version, at.UTC()})
	return next
}

// readLinks reads the document of a line. One that cannot be understood is none:
// all manifests are then written anew.
func (e *Engine) readLinks(ctx context.Context, s *Sight, m *memo) error {
	if e.Manifests == nil {
		return nil
	}
	if m.links != nil && s.Base != nil && m.links.follows(e.Root, e.Manifests.Base, s.Base.Version) {
		s.links = m.links
		return nil
	}
	key := archive.ManifestStateKey(s.Line)
	body, tag, err := e.Manifests.Store.GetTagged(ctx, key)
	s.links = &links{}
	if err != nil && !errors.Is(err, archive.ErrNotFound) {
		return fmt.Errorf("%s: %w", key, err)
	}
	if err == nil && json.Unmarshal(body, s.links) != nil || s.links.ArchiveID != e.Root.ArchiveID {
		*s.links = links{}
	}
	s.links.tag = tag
	m.links, m.tags = s.links, map[string]tagged{} // somebody else may have written
	return nil
}

// A tagged is what is known of a manifest in the store.
type tagged struct {
	tag string
	sum chain.Hash // of its text
}

// relink has the manifests follow the base where they do not: after a crash, where
// keeping them has begun, or where the archive is to be found elsewhere. It comes
// before anything is deleted.
func (p *pass) relink() error {
	m := p.e.Manifests
	if m == nil || p.s.Base == nil || p.s.links.follows(p.e.Root, m.Base, p.s.Base.Version) {
		return nil
	}
	l, err := p.lister(p.s.Base.Catalog, p.s.Files)
	if err != nil {
		return err
	}
	all := maps.Clone(l.behind)
	for i := range p.s.Files {
		all[p.s.Files[i].Tenant] = true
	}
	for i := range p.s.Base.Cuts {
		all[p.s.Base.Cuts[i].Tenant] = true
	}
	return p.follow(l, all)
}

// link has the manifests follow the version that the pass wrote. Those that it
// changes are of logs whose files it changed, and of logs that have rows behind the
// watermark.
func (p *pass) link() error {
	if p.e.Manifests == nil || !p.res.Wrote {
		return nil
	}
	l, err := p.lister(p.res.Catalog, p.m.files)
	if err != nil {
		return err
	}
	all := maps.Clone(l.behind)
	for i := range p.added {
		all[p.added[i].Tenant] = true
	}
	for key := range p.removed {
		all[p.file(key).Tenant] = true
	}
	for tenant := range p.cuts {
		all[tenant] = true
	}
	return p.follow(l, all)
}

// follow writes the manifests of tenants, and then the document of the line. A
// crash before that leaves manifests of which some are of the version, and some of
// the one before: the next pass writes those. One that is overtaken writes nothing
// over what the other has written.
func (p *pass) follow(l *lister, tenants map[string]bool) error {
	left := slices.Sorted(maps.Keys(tenants))
	for try := 0; len(left) > 0; try++ {
		if try == manifestTries {
			return fmt.Errorf("%w: manifests of %d logs", ErrRaced, len(left))
		}
		var err error
		if left, err = p.swapAll(l, left); err != nil {
			return err
		}
	}
	return p.tell(l.catalog.Version)
}

// swapAll writes manifests, and returns the tenants of those that somebody else has
// written meanwhile.
func (p *pass) swapAll(l *lister, tenants []string) (lost []string, err error) {
	var mu sync.Mutex
	stale := map[string]bool{} // manifests that are not as they are to be
	if err := p.each(tenants, func(ctx context.Context, tenant string) error {
		is, err := p.isLinked(ctx, tenant, l.text(tenant))
		mu.Lock()
		defer mu.Unlock()
		stale[tenant] = !is
		return err
	}); err != nil {
		return nil, err
	}
	maps.DeleteFunc(stale, func(_ string, is bool) bool { return !is })
	if err := p.newestIs(l.catalog.Version); err != nil {
		return nil, err
	}
	err = p.each(slices.Sorted(maps.Keys(stale)), func(ctx context.Context, tenant string) error {
		err := p.swap(ctx, tenant, l.text(tenant))
		if errors.Is(err, archive.ErrExists) || errors.Is(err, archive.ErrNotFound) {
			mu.Lock()
			defer mu.Unlock()
			lost = append(lost, tenant)
			return nil
		}
		return err
	})
	return lost, err
}

func (p *pass) each(tenants []string, do func(context.Context, string) error) error {
	g, ctx := errgroup.WithContext(p.ctx)
	g.SetLimit(manifestsParallel)
	for _, tenant := range tenants {
		g.Go(func() error { return do(ctx, tenant) })
	}
	return g.Wait()
}

// isLinked reports whether a manifest has a text, and learns its tag. A log that
// has no row, and never had a manifest, needs none.
func (p *pass) isLinked(ctx context.Context, tenant string, text []byte) (bool, error) {
	known, ok := p.m.tagOf(tenant)
	if !ok {
		key := archive.ManifestKey(p.l, tenant)
		body, tag, err := p.e.Manifests.Store.GetTagged(ctx, key)
		if err != nil && !errors.Is(err, archive.ErrNotFound) {
			return false, fmt.Errorf("%s: %w", key, err)
		}
		known = tagged{tag, sha256.Sum256(body)}
		p.m.setTag(tenant, known)
	}
	return known.sum == chain.Hash(sha256.Sum256(text)) && (known.tag != "" || len(text) == 0), nil
}

// newestIs requires that a version is the newest. What was read before may be
// written over then.
func (p *pass) newestIs(version int64) error {
	newer, err := archive.NewestCatalogObject(p.ctx, p.e.Archive, p.l, version)
	if err != nil || newer == nil {
		return err
	}
	return fmt.Errorf("%w: %s is there", ErrRaced, newer.Key)
}

// swap writes a manifest by the tag that is known. After an error it is read again.
func (p *pass) swap(ctx context.Context, tenant string, text []byte) error {
	key := archive.ManifestKey(p.l, tenant)
	known, _ := p.m.tagOf(tenant)
	p.m.setTag(tenant, tagged{})
	tag, err := p.e.Manifests.Store.Swap(ctx, key, text, known.tag)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	p.m.setTag(tenant, tagged{tag, sha256.Sum256(text)})
	return nil
}

// tell writes the document of the line.
func (p *pass) tell(version int64) error {
	now, err := p.e.Archive.Now(p.ctx)
	if err != nil {
		return fmt.Errorf("the store's time: %w", err)
	}
	next := p.s.links.add(p.e.Root, p.e.Manifests.Base, version, now)
	body, err := json.Marshal(next)
	if err != nil {
		return err
	}
	key := archive.ManifestStateKey(p.l)
	p.m.links = nil
	next.tag, err = p.e.Manifests.Store.Swap(p.ctx, key, body, next.tag)
	switch {
	case errors.Is(err, archive.ErrExists), errors.Is(err, archive.ErrNotFound):
		return fmt.Errorf("%w: %s was written", ErrRaced, key)
	case err != nil:
		return fmt.Errorf("%s: %w", key, err)
	}
	p.s.links, p.m.links = next, next
	return nil
}

// A lister makes the texts of a line's manifests.
type lister struct {
	p        *pass
	catalog  *archive.Catalog
	files    map[string][]archive.CatalogFile // by tenant, in the order of seq
	behind   map[string]bool                  // tenants with rows behind the watermark
	segments map[string][]int64
}

// lister returns one for a version of the catalog.
func (p *pass) lister(c *archive.Catalog, files []archive.CatalogFile) (*lister, error) {
	further, err := p.further(c.Watermark)
	return newLister(p, c, files, slices.Concat(p.s.Anchors, further)), err
}

// further reads the anchors behind those of the sight, as far as manifests list
// segments: where there is more than one pass can take, rows wait for long.
func (p *pass) further(watermark int64) ([]*archive.Anchor, error) {
	if !p.s.behind || p.s.Newest == nil {
		return nil, nil
	}
	var all []*readAnchor
	r := p.e.anchorsOf(p.l)
	for from := p.s.Newest.Number; from <= p.s.newest; from += anchorsParallel {
		some, err := r.readAll(p.ctx, from, min(from+anchorsParallel, p.s.newest+1), 1)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); some[len(some)-1].Ordinal >= watermark+manifestSegments {
			break
		}
	}
	s := &Sight{Line: p.l}
	if err := p.e.judge(p.ctx, s, all); err != nil {
		return nil, err
	}
	return s.Anchors[min(1, len(s.Anchors)):], nil
}

// newLister finds out which segments have rows of which logs, as anchors have it: a
// log has some between two anchors where it grew. Only what an anchor covers that
// counts is listed; who writes to the bucket can put anything behind that. Files come
// by tenant and first seq.
func newLister(p *pass, c *archive.Catalog, files []archive.CatalogFile, anchors []*archive.Anchor) *lister {
	l := &lister{p: p, catalog: c, files: map[string][]archive.CatalogFile{}, behind: map[string]bool{}, segments: map[string][]int64{}}
	size := map[string]int64{}
	for i := range c.Cuts {
		size[c.Cuts[i].Tenant] = c.Cuts[i].Size
	}
	for from := 0; from < len(files); {
		tenant, to := files[from].Tenant, from+1
		for to < len(files) && files[to].Tenant == tenant {
			to++
		}
		l.files[tenant], size[tenant] = files[from:to], max(size[tenant], files[to-1].LastSeq+1)
		from = to
	}
	for _, a := range anchors {
		ordinals := ordinalsFrom(a, c.Watermark)
		for i := range a.Heads {
			h := &a.Heads[i]
			if h.Size <= size[h.Tenant] || a.Ordinal < c.Watermark {
				continue
			}
			size[h.Tenant], l.behind[h.Tenant] = h.Size, true
			if a.Ordinal < c.Watermark+manifestSegments {
				l.segments[h.Tenant] = append(l.segments[h.Tenant], ordinals...)
			}
		}
	}
	return l
}

func ordinalsFrom(a *archive.Anchor, watermark int64) (all []int64) {
	for i := range a.Segments {
		if o := a.Segments[i].Ordinal; o >= watermark {
			all = append(all, o)
		}
	}
	return all
}

// text returns the manifest of a tenant.
func (l *lister) text(tenant string) []byte {
	var b bytes.Buffer
	for i := range l.files[tenant] {
		fmt.Fprintf(&b, "%s%s\n", l.p.e.Manifests.Base, l.files[tenant][i].Key)
	}
	for _, ordinal := range l.segments[tenant] {
		fmt.Fprintf(&b, "%s%s\n", l.p.e.Manifests.Base, archive.SegmentKey(l.p.l, ordinal))
	}
	return b.Bytes()
}

// rememberedTags is of how many manifests of a line a pass keeps the tags.
const rememberedTags = 50_000

func (m *memo) tagOf(tenant string) (t tagged, ok bool) {
	m.tagging.Lock()
	defer m.tagging.Unlock()
	t, ok = m.tags[tenant]
	return t, ok
}

// setTag keeps what is known of a manifest; the zero tagged forgets it.
func (m *memo) setTag(tenant string, t tagged) {
	m.tagging.Lock()
	defer m.tagging.Unlock()
	if t == (tagged{}) {
		delete(m.tags, tenant)
		return
	}
	if len(m.tags) >= rememberedTags {
		clear(m.tags)
	}
	m.tags[tenant] = t
}

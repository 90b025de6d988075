package compaction

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A listing is all keys of data files in the archive, with those of which only
// older versions are left, and the uploads that were not finished. Each pass
// holds its line's against what its catalog says.
type listing struct {
	begun   time.Time // by the store's clock
	taken   time.Time // by this process's
	data    map[dataLine][]string
	uploads []archive.Upload
}

// A dataLine is what the key of a data file says of its line.
type dataLine struct {
	topicID   string // escaped
	partition int32
}

// sweep looks for what nothing names: data files, segments below the watermark,
// parts of the catalog, uploads. They are doomed by the next version, like all
// else that is to go, so that nobody who sleeps can be harmed by it: a compactor
// whose files these are loses its race for that version.
func (p *pass) sweep() error {
	if !p.sweeps() {
		return nil
	}
	list, err := p.e.list(p.ctx, p.since())
	if err != nil {
		return err
	}
	if p.m.swept != list {
		p.m.swept = list
		clear(p.m.gone)
		clear(p.m.locked)
	}
	segments, err := p.segmentsBelow()
	if err != nil {
		return err
	}
	candidates := slices.Concat(list.data[dataLine{chain.Escape(p.l.TopicID), p.l.Partition}], segments, p.s.Parts)
	strays, err := p.strays(candidates)
	if err == nil {
		err = p.newest(strays, list)
	}
	if err != nil {
		return err
	}
	p.doom, p.strayed = append(p.doom, strays...), strays
	p.res.Strays = int64(len(strays))
	young, err := p.abort(list.uploads)
	p.swept = !young
	return err
}

// strays returns those of the keys that nothing names, and that are still there:
// what was deleted after the listing is none.
func (p *pass) strays(keys []string) (strays []string, err error) {
	known := p.known()
	unknown := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return known[key] || p.m.gone[key] })
	if err := p.askVersions(unknown); err != nil {
		return nil, err
	}
	for _, key := range unknown {
		if len(p.versions[key]) > 0 {
			strays = append(strays, key)
		} else {
			p.m.gone[key] = true
		}
	}
	slices.Sort(strays)
	return slices.Compact(strays), nil
}

// newest makes sure, where data files are strays, that everything is there which
// the base leads to: the files that it names, and the segment at its watermark. If
// something is not, newer versions of the catalog may have been taken away, and
// the strays be what they named.
func (p *pass) newest(strays []string, list *listing) error {
	isData := func(key string) bool { return strings.HasPrefix(key, archive.DataPrefix) }
	if p.s.Base == nil || !slices.ContainsFunc(strays, isData) {
		return nil
	}
	listed := map[string]bool{}
	for _, key := range list.data[dataLine{chain.Escape(p.l.TopicID), p.l.Partition}] {
		listed[key] = true
	}
	var needed []string // not in the listing: newer than that, or gone
	for i := range p.s.Files {
		if key := p.s.Files[i].Key; !listed[key] {
			needed = append(needed, key)
		}
	}
	if entries := p.s.entries(); len(entries) > 0 {
		needed = append(needed, archive.SegmentKey(p.l, entries[0].Ordinal))
	}
	if err := p.askVersions(needed); err != nil {
		return err
	}
	for _, key := range needed {
		if len(p.versions[key]) == 0 {
			return &missingFile{fmt.Errorf("%s leads to %s, which is gone, while there are data files that it does not name: newer versions of the catalog may have been taken away", p.s.Base.Key, key)}
		}
	}
	return nil
}

// sweeps reports whether it is time: now and then, and where an order waits for
// nothing else. A line that no anchor vouches for sweeps nothing: keys of data
// files name no topic, and whoever can write to the bucket could plant a line
// with the topic id of another one.
func (p *pass) sweeps() bool {
	if p.s.Base == nil {
		return p.e.Once && p.s.Newest != nil
	}
	return p.e.Once || p.e.listDue(p.m.swept) || !p.since().IsZero()
}

// since returns the store's time of the newest version that purged something,
// where nothing but a sweep is missing; zero where none waits.
func (p *pass) since() (at time.Time) {
	for _, e := range p.entries.all {
		if e.State == archive.RedactionPurged && p.clears(e) {
			if t := p.s.Versions[e.Since]; t.After(at) {
				at = t
			}
		}
	}
	return at
}

// known returns what the base names or dooms, and what this pass has written.
func (p *pass) known() map[string]bool {
	known := map[string]bool{}
	for i := range p.s.Files {
		known[p.s.Files[i].Key] = true
	}
	for i := range p.added {
		known[p.added[i].Key] = true
	}
	if p.s.Base == nil {
		return known
	}
	for i := range p.s.Base.Parts {
		known[p.s.Base.Parts[i].Key] = true
	}
	for i := range p.s.Base.Doomed {
		known[p.s.Base.Doomed[i].Key] = true
	}
	return known
}

// segmentsBelow lists the segments below the watermark of the base that are there
// in any version.
func (p *pass) segmentsBelow() (keys []string, err error) {
	for v, err := range p.e.Archive.Versions(p.ctx, archive.SegmentPrefix(p.l)) {
		if err != nil {
			return nil, fmt.Errorf("list segments: %w", err)
		}
		if n, ok := archive.ParseSegmentKey(v.Key); ok && n.Ordinal < p.s.watermark() {
			keys = append(keys, v.Key)
		}
	}
	return slices.Compact(keys), nil
}

// abort ends the line's uploads that were begun before the grace: whoever began
// them is gone. It reports whether younger ones are left.
func (p *pass) abort(uploads []archive.Upload) (young bool, err error) {
	own := func(key string) bool {
		n, ok := archive.ParseDataKey(key)
		return ok && n.TopicID == chain.Escape(p.l.TopicID) && n.Partition == p.l.Partition ||
			strings.HasPrefix(key, archive.SegmentPrefix(p.l)) || strings.HasPrefix(key, archive.CatalogPrefix(p.l))
	}
	grace := time.Duration(p.e.Root.GraceSeconds) * time.Second
	for _, u := range uploads {
		switch {
		case !own(u.Key):
		case u.Begun.IsZero() || p.s.StoreNow.Sub(u.Begun) <= grace:
			young = true
		default:
			if err := p.e.Archive.Abort(p.ctx, u); err != nil {
				return false, fmt.Errorf("abort upload: %w", err)
			}
			p.res.Aborted++
		}
	}
	return young, nil
}

// listDue reports whether there is a listing that was not swept by yet, or the
// last one is too old to go by.
func (e *Engine) listDue(swept *listing) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listing == nil || e.listing != swept || e.Now().Sub(e.listing.taken) >= e.SweepEvery
}

// list returns a listing that was begun after a moment of the store's clock: the
// last one, or a new one.
func (e *Engine) list(ctx context.Context, after time.Time) (*listing, error) {
	e.mu.Lock()
	old := e.listing
	e.mu.Unlock()
	// Stores tell whole seconds.
	if old != nil && !e.Once && e.Now().Sub(old.taken) < e.SweepEvery && (after.IsZero() || old.begun.After(after.Add(time.Second))) {
		return old, nil
	}
	fresh, err := e.relist(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listing = fresh
	return fresh, nil
}

func (e *Engine) relist(ctx context.Context) (*listing, error) {
	now, err := e.Archive.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("the store's time: %w", err)
	}
	l := &listing{begun: now, taken: e.Now(), data: map[dataLine][]string{}}
	last := ""
	for v, err := range e.Archive.Versions(ctx, archive.DataPrefix) {
		if err != nil {
			return nil, fmt.Errorf("list data files: %w", err)
		}
		n, ok := archive.ParseDataKey(v.Key)
		if !ok || v.Key == last {
			continue
		}
		last = v.Key
		at := dataLine{n.TopicID, n.Partition}
		l.data[at] = append(l.data[at], v.Key)
	}
	for u, err := range e.Archive.Uploads(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list uploads: %w", err)
		}
		l.uploads = append(l.uploads, u)
	}
	return l, nil
}

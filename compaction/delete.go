package compaction

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// delete deletes what the base calls doomed and has been so for the grace, with
// all versions and delete markers. A crash here leaves keys on the list that are
// gone; the next pass sees that.
func (p *pass) delete() error {
	var keys []string
	if len(p.plan.Delete) == 0 {
		return nil
	}
	live := p.live()
	for _, key := range p.plan.Delete {
		if live[key] || !p.mayGo(key) {
			return halt("%s: it dooms %s, which is not one that compaction takes: somebody else wrote it", p.s.Base.Key, key)
		}
		switch {
		case p.m.gone[key]:
			p.gone[key] = true
		case p.m.locked[key]:
			p.locked[key] = true // tried again after the next sweep
		default:
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if err := p.askVersions(keys); err != nil {
		return err
	}
	var all []archive.Version
	for _, key := range keys {
		if len(p.versions[key]) == 0 {
			p.gone[key] = true
		}
		all = append(all, p.versions[key]...)
	}
	left := map[string]bool{}
	for _, k := range p.e.Archive.Delete(p.ctx, all) {
		left[k.Key] = true
		p.keep(k)
	}
	p.count(all, left)
	return p.sure(keys)
}

// live returns the keys that the base names.
func (p *pass) live() map[string]bool {
	live := map[string]bool{p.s.Base.Key: true}
	for i := range p.s.Files {
		live[p.s.Files[i].Key] = true
	}
	for i := range p.s.Base.Parts {
		live[p.s.Base.Parts[i].Key] = true
	}
	return live
}

// mayGo reports whether a key is one that compaction of the line ever deletes.
func (p *pass) mayGo(key string) bool {
	if n, ok := archive.ParseDataKey(key); ok {
		return n.TopicID == chain.Escape(p.l.TopicID) && n.Partition == p.l.Partition
	}
	if n, ok := archive.ParseSegmentKey(key); ok {
		return n.Ordinal < p.s.watermark() && strings.HasPrefix(key, archive.SegmentPrefix(p.l))
	}
	return strings.HasPrefix(key, archive.CatalogPrefix(p.l))
}

// keep notes a version that could not be deleted. One that is locked is told of
// once; catalogs may be locked, as they hold no payload: that is no news.
func (p *pass) keep(k archive.Kept) {
	locked := errors.Is(k.Err, archive.ErrLocked)
	if locked {
		p.locked[k.Key], p.m.locked[k.Key] = true, true
	}
	if locked && strings.HasPrefix(k.Key, "catalog/") {
		return
	}
	p.res.Kept = append(p.res.Kept, k)
	if locked && p.m.told[k.Key] {
		return
	}
	p.m.told[k.Key] = locked
	if p.e.Events.Kept != nil {
		p.e.Events.Kept(p.l, k)
	}
}

func (p *pass) count(all []archive.Version, left map[string]bool) {
	objects := map[string]bool{}
	for _, v := range all {
		if !left[v.Key] {
			objects[v.Key] = true
			p.res.DeletedBytes += v.Size
		}
	}
	p.res.Deleted += int64(len(objects))
	if len(objects) > 0 && p.e.Events.Deleted != nil {
		p.e.Events.Deleted(p.l, int64(len(objects)), p.res.DeletedBytes)
	}
}

// sure looks which keys have no version any more: what a store says of a delete
// is not yet that.
func (p *pass) sure(keys []string) error {
	for _, key := range keys {
		delete(p.versions, key)
	}
	if err := p.askVersions(keys); err != nil {
		return err
	}
	for _, key := range keys {
		if len(p.versions[key]) == 0 {
			p.gone[key], p.m.gone[key] = true, true
		}
	}
	return nil
}

// askVersions finds out which versions keys have that were not asked for yet: by
// key, or by folder where it has several of them.
func (p *pass) askVersions(keys []string) error {
	folders := map[string][]string{}
	for _, key := range keys {
		if _, known := p.versions[key]; !known {
			folder := key[:strings.LastIndexByte(key, '/')+1]
			folders[folder] = append(folders[folder], key)
		}
	}
	for _, folder := range sortedKeys(folders) {
		asked := folders[folder]
		prefixes := asked
		if len(asked) > 3 {
			prefixes = []string{folder}
		}
		wanted := map[string]bool{}
		for _, key := range asked {
			wanted[key] = true
			p.versions[key] = nil
		}
		for _, prefix := range prefixes {
			for v, err := range p.e.Archive.Versions(p.ctx, prefix) {
				if err != nil {
					return fmt.Errorf("list versions: %w", err)
				}
				if wanted[v.Key] {
					p.versions[v.Key] = append(p.versions[v.Key], v)
				}
			}
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	all := make([]string, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

package compaction

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// publish writes the parts that changed and the next version of the catalog: from
// then on the pass counts. Where nothing changed that matters, it writes nothing.
func (p *pass) publish() error {
	version := p.s.version() + 1
	if err := p.marks(version); err != nil {
		return err
	}
	p.goes(version)
	if !p.matters() {
		maps.Copy(p.m.looked, p.looked)
		return p.puts.wait()
	}
	c := p.next(version)
	files := p.files()
	if err := p.parts(c, files); err != nil {
		return err
	}
	// All that the version names has to be there before it is.
	if err := p.puts.wait(); err != nil {
		return err
	}
	return p.write(c, files)
}

// goes says which orders nothing is left of but what a lock keeps. What a sweep
// found has to go first, whatever else an order waits for: also where it was gone
// already, and only its receipt is missing. Whoever slept has brought back what
// the receipt would call deleted.
func (p *pass) goes(version int64) {
	for _, e := range p.entries.all {
		gone := e.State == archive.RedactionGone
		if e.State != archive.RedactionPurged && !gone || e.Since == version {
			continue
		}
		if slices.ContainsFunc(p.strayed, func(key string) bool { return p.holdsRows(key, e.Tenant) }) {
			e.State, e.Since, e.Kept, e.changed = archive.RedactionPurged, version, nil, true
			continue
		}
		if !gone && p.swept && p.clears(e) {
			e.State, e.changed = archive.RedactionGone, true
			e.Kept = p.keeps(e)
		}
	}
}

// clears reports whether no doomed key is left that may hold what the order took,
// but those that a lock keeps.
func (p *pass) clears(e *entry) bool {
	for i := range p.s.Base.Doomed {
		if d := &p.s.Base.Doomed[i]; d.Since <= e.Since && !p.gone[d.Key] && !p.m.gone[d.Key] && p.holdsRows(d.Key, e.Tenant) && !p.locked[d.Key] {
			return false
		}
	}
	return true
}

// holdsRows reports whether an object can hold rows of a tenant.
func (p *pass) holdsRows(key, tenant string) bool {
	if n, ok := archive.ParseDataKey(key); ok {
		return n.EscapedTenant == chain.Escape(tenant)
	}
	return strings.HasPrefix(key, archive.LogPrefix)
}

// keeps says what could not go.
func (p *pass) keeps(e *entry) (all []string) {
	for i := range p.s.Base.Doomed {
		if d := &p.s.Base.Doomed[i]; d.Since <= e.Since && p.locked[d.Key] && !p.gone[d.Key] && p.holdsRows(d.Key, e.Tenant) {
			all = append(all, d.Key+" is locked in the store")
			e.Deleted = slices.DeleteFunc(e.Deleted, func(o archive.CatalogDeleted) bool { return o.Key == d.Key })
		}
	}
	return all
}

// matters reports whether a version is worth to be written. That old versions of
// the catalog could be doomed, or are gone, is not: that would go on for ever.
func (p *pass) matters() bool {
	isNote := func(key string) bool { return strings.HasPrefix(key, "catalog/") }
	if p.watermark > p.s.watermark() || len(p.added) > 0 || len(p.removed) > 0 || len(p.cuts) > 0 || p.plan.Holds || p.entries.changed {
		return true
	}
	if slices.ContainsFunc(p.entries.all, func(e *entry) bool { return e.changed }) {
		return true
	}
	for key := range p.gone {
		if !isNote(key) {
			return true
		}
	}
	return slices.ContainsFunc(p.doom, func(key string) bool { return !isNote(key) })
}

// next returns the next version, without its parts.
func (p *pass) next(version int64) *archive.Catalog {
	now := p.e.Now().UTC()
	c := &archive.Catalog{
		ArchiveID: p.e.Root.ArchiveID, Topic: p.l.Topic, TopicID: p.l.TopicID, Partition: p.l.Partition, Version: version,
		Time: archive.Time{Time: now}, Watermark: p.watermark, Holds: p.d.catalogHolds(p.s.Base),
	}
	for _, e := range p.entries.all {
		c.Redactions = append(c.Redactions, e.CatalogRedaction)
	}
	if base := p.s.Base; base != nil {
		c.Previous = &base.SHA256
		if now.Before(base.Time.Time) {
			c.Time = base.Time
		}
		for i := range base.Cuts {
			if p.cuts[base.Cuts[i].Tenant] == nil {
				c.Cuts = append(c.Cuts, base.Cuts[i])
			}
		}
		for _, d := range base.Doomed {
			if !p.gone[d.Key] {
				c.Doomed = append(c.Doomed, d)
			}
		}
	}
	for _, cut := range p.cuts {
		c.Cuts = append(c.Cuts, *cut)
	}
	slices.SortFunc(c.Cuts, func(a, b archive.CatalogCut) int { return cmp.Compare(a.Tenant, b.Tenant) })
	for _, key := range slices.Concat(p.plan.Doom, p.doom) {
		c.Doomed = append(c.Doomed, archive.CatalogDoomed{Key: key, Since: version})
		p.res.Doomed++
	}
	return c
}

// parts writes the parts of days whose files changed; others stay as they are.
func (p *pass) parts(c *archive.Catalog, files []archive.CatalogFile) error {
	days := map[string]*archive.CatalogPart{}
	for i := range files {
		if day := files[i].Day; p.touched[day] {
			if days[day] == nil {
				days[day] = &archive.CatalogPart{}
			}
			days[day].Files = append(days[day].Files, files[i])
		}
	}
	if p.s.Base != nil {
		for _, ref := range p.s.Base.Parts {
			if !p.touched[ref.Day] {
				c.Parts = append(c.Parts, ref)
				continue
			}
			c.Doomed = append(c.Doomed, archive.CatalogDoomed{Key: ref.Key, Since: c.Version})
		}
	}
	for _, day := range sortedKeys(days) {
		ref, err := p.part(c, day, days[day])
		if err != nil {
			return err
		}
		c.Parts = append(c.Parts, ref)
	}
	slices.SortFunc(c.Parts, func(a, b archive.CatalogPartRef) int { return cmp.Compare(a.Day, b.Day) })
	return nil
}

// part writes one part. Files that were a part before make another object: the
// key of the old one is doomed, or soon will be.
func (p *pass) part(c *archive.Catalog, day string, part *archive.CatalogPart) (archive.CatalogPartRef, error) {
	for {
		body, err := archive.EncodeCatalogPart(part)
		if err != nil {
			return archive.CatalogPartRef{}, err
		}
		sum := chain.Hash(sha256.Sum256(body))
		ref := archive.CatalogPartRef{Day: day, Key: archive.CatalogPartKey(p.l, sum), Bytes: int64(len(body)), SHA256: sum, Files: int64(len(part.Files))}
		if part.Once == "" && (slices.Contains(p.s.Parts, ref.Key) || slices.ContainsFunc(c.Doomed, func(d archive.CatalogDoomed) bool { return d.Key == ref.Key })) {
			if part.Once, err = p.e.id(); err != nil {
				return ref, err
			}
			continue
		}
		return ref, p.puts.create(p.ctx, ref.Key, body)
	}
}

// write writes the version. A crash before it leaves strays; one behind it leaves
// nothing undone. A reply that is lost is looked for: the version is this pass's
// if it has its bytes.
func (p *pass) write(c *archive.Catalog, files []archive.CatalogFile) error {
	text, err := archive.EncodeCatalog(c)
	if err != nil {
		return err
	}
	body, err := p.sign(text, c)
	if err != nil {
		return err
	}
	key := archive.CatalogKey(p.l, c.Version)
	at, err := p.e.Archive.Create(p.ctx, key, body)
	if errors.Is(err, archive.ErrExists) {
		var there []byte
		if there, err = p.e.Archive.Get(p.ctx, key); err == nil && !bytes.Equal(there, body) {
			return fmt.Errorf("%w: version %d of the catalog is there", ErrRaced, c.Version)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if err := p.believe(at, key, body); err != nil {
		return err
	}
	p.res.Wrote, p.res.Catalog = true, c
	p.remember(archive.TextHash(text), files)
	return nil
}

// believe makes sure that a version that could be written is the newest: who slept
// for longer than the grace may have come upon a number whose version was there,
// was replaced, and is deleted. Then this one goes at once; should it stay, because
// of a crash here, a later pass dooms it as it does other old versions.
func (p *pass) believe(at time.Time, key string, body []byte) error {
	grace := time.Duration(p.e.Root.GraceSeconds) * time.Second
	if !at.IsZero() && at.Sub(p.s.StoreNow) < grace {
		return nil
	}
	newer, err := archive.NewestCatalogObject(p.ctx, p.e.Archive, p.l, p.s.version()+1)
	if err != nil || newer == nil {
		return err
	}
	there, err := p.e.Archive.Get(p.ctx, key)
	if err == nil && bytes.Equal(there, body) {
		delete(p.versions, key)
		if err = p.askVersions([]string{key}); err == nil {
			for _, k := range p.e.Archive.Delete(p.ctx, p.versions[key]) {
				p.keep(k)
			}
		}
	}
	return errors.Join(fmt.Errorf("%w: %s is there", ErrRaced, newer.Key), err)
}

// errSigner: what this process signs would not count.
var errSigner = errors.New("the key that signs catalogs is not one that counts here: name its vkey among the keys, or use another one")

func (p *pass) sign(text string, c *archive.Catalog) ([]byte, error) {
	var signers []note.Signer
	if p.e.Signers != nil {
		signers = p.e.Signers(p.e.Now())
	}
	body, err := sign.Sign(text, signers...)
	if err != nil || p.e.ring.Empty() {
		return body, err
	}
	n, err := sign.Parse(body)
	if err != nil {
		return nil, err
	}
	v, err := archive.Verdict(p.ctx, p.e.Archive, p.e.ring, p.e.Root.ArchiveID, n, sign.Catalog, c.Time.Time)
	if err == nil && v != sign.Good {
		err = halt("%w", errSigner)
	}
	return body, err
}

// remember keeps what the next pass would else have to read.
func (p *pass) remember(text chain.Hash, files []archive.CatalogFile) {
	m := p.m
	for tenant, s := range p.m.logs {
		if p.logs[tenant] == nil {
			p.logs[tenant] = s
		}
	}
	if len(p.logs) > rememberedLogs {
		p.logs = map[string]*logState{}
	}
	m.text, m.files, m.logsOf, m.logs = text, files, text, p.logs
	if len(m.looked) > rememberedLooks {
		clear(m.looked)
	}
	maps.Copy(m.looked, p.looked)
}

// rememberedLooks is how many times it is remembered that a file has nothing of
// an order.
const rememberedLooks = 200_000

// rememberedLogs is of how many logs of a line a pass keeps where they stand:
// about a kilobyte each.
const rememberedLogs = 20_000

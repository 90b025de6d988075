package proof

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A compaction is what the newest catalog version says of a line: which data
// files hold the rows below its watermark. A prover believes it that far: what
// is found by it must lead to a root that an anchor states.
type compaction struct {
	*archive.Catalog       // nil where the line is not compacted
	version          int64 // -1 there
	parts            map[string]*archive.CatalogPart
}

// watermark returns the first ordinal whose rows are in segments.
func (c *compaction) watermark() int64 {
	if c.Catalog == nil {
		return 0
	}
	return c.Watermark
}

// begin returns the seq that a tenant's log begins with, behind what was cut.
func (c *compaction) begin(tenant string) (seq int64) {
	if c.Catalog == nil {
		return 0
	}
	for i := range c.Cuts {
		if c.Cuts[i].Tenant == tenant {
			seq = max(seq, c.Cuts[i].Size)
		}
	}
	return seq
}

// above returns the segments of the anchor from an ordinal on.
func (a *linkedAnchor) above(watermark int64) []archive.AnchorSegment {
	i, _ := slices.BinarySearchFunc(a.Segments, watermark, func(s archive.AnchorSegment, n int64) int {
		return int(min(max(s.Ordinal-n, -1), 1))
	})
	return a.Segments[i:]
}

// compacted reads the newest catalog version of the line, once.
func (l *provenLine) compacted(ctx context.Context) (*compaction, error) {
	if l.catalog != nil {
		return l.catalog, nil
	}
	newest, err := archive.NewestCatalog(ctx, l.p.src, l.line, nil)
	if errors.Is(err, archive.ErrCatalog) {
		return nil, tampered("%v", err)
	}
	if err != nil {
		return nil, err
	}
	c := &compaction{version: -1, parts: map[string]*archive.CatalogPart{}}
	if newest != nil {
		if newest.ArchiveID != l.p.root.ArchiveID {
			return nil, tampered("%s: it is of another archive", newest.Key)
		}
		c.Catalog, c.version = newest.Catalog, newest.Version
		slices.SortFunc(c.Parts, func(a, b archive.CatalogPartRef) int { return strings.Compare(a.Day, b.Day) })
	}
	l.catalog = c
	return c, nil
}

// steady does what reads an archive, and does it anew where that failed and a
// line that was looked at has been compacted meanwhile.
func steady[T any](ctx context.Context, p *Prover, read func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		v, err := read()
		if err == nil || try == againTries || errors.Is(err, ErrNotAnchored) {
			return v, err
		}
		overtaken, fault := p.overtaken(ctx)
		if fault != nil || !overtaken {
			return v, errors.Join(err, fault)
		}
		p.known, p.certified, p.governs = map[string]*provenLine{}, nil, nil
	}
}

// overtaken reports whether the catalog of a line went on since it was read.
func (p *Prover) overtaken(ctx context.Context) (bool, error) {
	for _, l := range p.known {
		if l.catalog == nil {
			continue
		}
		newer, err := archive.NewestCatalogObject(ctx, p.src, l.line, l.catalog.version)
		if newer != nil || err != nil {
			return newer != nil, err
		}
	}
	return false, nil
}

// part reads a part of the catalog.
func (l *provenLine) part(ctx context.Context, c *compaction, ref *archive.CatalogPartRef) (*archive.CatalogPart, error) {
	if p, ok := c.parts[ref.Key]; ok {
		return p, nil
	}
	body, err := l.p.src.Get(ctx, ref.Key)
	if err != nil {
		return nil, fmt.Errorf("read %s (run it again, if the archive was just compacted): %w", ref.Key, err)
	}
	if ref.SHA256 != sha256.Sum256(body) {
		return nil, tampered("%s does not have the hash that the catalog states", ref.Key)
	}
	p, err := archive.DecodeCatalogPart(body)
	if err != nil {
		return nil, tampered("%s: %v", ref.Key, err)
	}
	c.parts[ref.Key] = p
	return p, nil
}

// fileOf returns the data file that has the row seq. Parts are in the order of
// days, and so in that of seq.
func (g *provenLog) fileOf(ctx context.Context, c *compaction, seq int64) (*piece, error) {
	if c.Catalog == nil {
		return nil, tampered("seq %d of tenant %s is in no segment", seq, Printable(g.name.Tenant))
	}
	n, err := search(int64(len(c.Parts)), func(i int64) (answer, error) {
		p, err := g.l.part(ctx, c, &c.Parts[i])
		if err != nil {
			return silent, err
		}
		said := silent
		for j := range p.Files {
			switch f := &p.Files[j]; {
			case f.Tenant != g.name.Tenant:
			case f.LastSeq >= seq:
				return reached, nil
			default:
				said = before
			}
		}
		return said, nil
	})
	if err != nil {
		return nil, err
	}
	if n < int64(len(c.Parts)) {
		p, err := g.l.part(ctx, c, &c.Parts[n])
		if err != nil {
			return nil, err
		}
		for j := range p.Files {
			if f := &p.Files[j]; f.Tenant == g.name.Tenant && f.FirstSeq <= seq && seq <= f.LastSeq {
				return g.l.p.dataFile(ctx, f)
			}
		}
	}
	return nil, fmt.Errorf("seq %d of tenant %s is in no data file: it was cut, or is missing: %w", seq, Printable(g.name.Tenant), ErrNoRow)
}

// dataFile reads the end of a data file.
func (p *Prover) dataFile(ctx context.Context, f *archive.CatalogFile) (*piece, error) {
	s := &piece{key: f.Key, listed: f}
	if err := s.readTail(ctx, p.src); err != nil {
		return nil, err
	}
	if s.size != f.Bytes {
		return nil, tampered("%s has %d bytes, the catalog says %d", f.Key, s.size, f.Bytes)
	}
	return s, nil
}

// beforeFile adds the frontier in front of a data file.
func (g *provenLog) beforeFile(ctx context.Context, at *piece, seq int64) error {
	f, err := g.metadataOf(ctx, at)
	if err != nil {
		return err
	}
	return g.addFrontier(at.key, seq, f.FirstSeq, f.FrontierIn)
}

// behindFile adds the frontier behind the data file that has the row before seq.
// done is false where that row was cut.
func (g *provenLog) behindFile(ctx context.Context, c *compaction, seq int64) (done bool, err error) {
	s, err := g.fileOf(ctx, c, seq-1)
	if errors.Is(err, ErrNoRow) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f, err := g.metadataOf(ctx, s)
	if err != nil {
		return false, err
	}
	return true, g.addFrontier(s.key, seq, f.FirstSeq+f.Rows, f.FrontierOut)
}

func (g *provenLog) metadataOf(ctx context.Context, s *piece) (*archive.DataFile, error) {
	if s.tail == nil {
		if err := s.readTail(ctx, g.l.p.src); err != nil {
			return nil, err
		}
	}
	text, err := s.metadata(ctx, g.l.p.src)
	if err != nil {
		return nil, err
	}
	f, err := archive.DecodeDataFile(text)
	if err != nil {
		return nil, tampered("%s: metadata: %v", s.key, err)
	}
	log := chain.Log{ArchiveID: f.ArchiveID, Tenant: f.Tenant, Topic: f.Topic, TopicID: f.TopicID, Partition: f.Partition}
	if log != g.name {
		return nil, tampered("%s is of another log", s.key)
	}
	return f, nil
}

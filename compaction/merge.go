package compaction

import (
	"context"
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// merges makes one file of neighbours.
func (p *pass) merges() error {
	for i := range p.plan.Merge {
		if err := p.merge(&p.plan.Merge[i]); err != nil {
			return err
		}
	}
	return nil
}

// An opened is a file that was read to be merged.
type opened struct {
	at   *archive.CatalogFile
	file *parquet.File
	meta *archive.DataFile
}

// merge copies neighbours into one file, up to where an epoch begins. Their rows
// were checked when they were first written, and their bytes have the hashes of
// then; what is written is checked by its hashes.
func (p *pass) merge(step *Step) error {
	var files []*archive.CatalogFile
	for _, key := range step.Keys {
		if p.removed[key] {
			return nil // written again already: the next pass looks at what came of it
		}
		files = append(files, p.file(key))
	}
	p.fit()
	var done []*archive.CatalogFile
	var meta archive.DataFile
	var all archive.CatalogFile
	for o, err := range ahead(p.ctx, files, 2, p.openFile) {
		if err != nil {
			p.writer.Reset()
			return err
		}
		if len(done) > 0 && o.meta.Epoch != meta.Epoch {
			p.m.apart[o.at.Key] = true
			break
		}
		if err := p.writer.File(o.file); err != nil {
			p.writer.Reset()
			return halt("%s: %w: restore the object", o.at.Key, err)
		}
		if len(done) == 0 {
			meta, all = *o.meta, *o.at
		} else {
			follow(&meta, &all, o)
		}
		done = append(done, o.at)
	}
	if len(done) < 2 {
		p.writer.Reset()
		return nil
	}
	text, err := archive.EncodeDataFile(&meta)
	if err != nil {
		return err
	}
	object, err := p.writer.Close(text)
	if err != nil {
		return err
	}
	if err := readBack(object, &meta, p.hashers, false); err != nil {
		return fmt.Errorf("rows %d to %d of tenant %q were written wrongly, and are thrown away: %w", meta.FirstSeq, meta.FirstSeq+meta.Rows-1, meta.Tenant, err)
	}
	p.replace(done...)
	p.res.Merged += int64(len(done))
	return p.put(all, &meta, object)
}

func (p *pass) openFile(_ context.Context, f *archive.CatalogFile) (*opened, error) {
	file, meta, err := p.open(f)
	return &opened{f, file, meta}, err
}

// follow adds what the next file says to what all say.
func follow(m *archive.DataFile, f *archive.CatalogFile, o *opened) {
	m.Rows, m.HeadOut, m.FrontierOut = m.Rows+o.meta.Rows, o.meta.HeadOut, o.meta.FrontierOut
	if f.FirstOffset == nil {
		f.FirstOffset = o.at.FirstOffset
	}
	if o.at.LastOffset != nil {
		f.LastOffset = o.at.LastOffset
	}
	tellCreated(f, o.at.MinCreatedAt, o.at.MaxCreatedAt)
}

package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// How many rows are taken in from a data file when one is asked for, from that
// one on: repeats come in runs.
const storedRun = 1 << 14

// How often a lookup begins anew because compaction went on meanwhile.
const lookupTries = 3

// dataFiles finds rows of a line that compaction has put into data files. It
// reads parts of the catalog as it needs them, the newest days first, and one file
// at a time.
type dataFiles struct {
	shared  *shared
	line    archive.Line
	version *archive.CatalogVersion // nil: none was read yet
	unread  []*archive.CatalogPartRef
	files   map[string][]archive.CatalogFile // of the parts that were read, by tenant
}

// newDataFiles returns a finder of the rows that a version, nil for none that is
// known, has in data files.
func newDataFiles(sh *shared, l archive.Line, c *archive.CatalogVersion) *dataFiles {
	d := &dataFiles{shared: sh, line: l}
	d.take(c)
	return d
}

func (d *dataFiles) take(c *archive.CatalogVersion) {
	d.version, d.unread, d.files = c, nil, map[string][]archive.CatalogFile{}
	if c == nil {
		return
	}
	for i := range c.Parts {
		d.unread = append(d.unread, &c.Parts[i])
	}
	slices.SortFunc(d.unread, func(a, b *archive.CatalogPartRef) int {
		return cmp.Compare(b.Day, a.Day)
	})
}

// more reads the part of the newest day that was not read, and returns its files;
// false where there is none.
func (d *dataFiles) more(ctx context.Context) ([]archive.CatalogFile, bool, error) {
	if len(d.unread) == 0 {
		return nil, false, nil
	}
	files, err := archive.ReadPart(ctx, d.shared.Archive, d.unread[0])
	if err != nil {
		return nil, false, err
	}
	d.unread = d.unread[1:]
	for i := range files {
		d.files[files[i].Tenant] = append(d.files[files[i].Tenant], files[i])
	}
	return files, true, nil
}

// since returns the files that hold rows of an offset or a later one. The offsets
// of a day lie above those of the days before it.
func (d *dataFiles) since(ctx context.Context, offset int64) (found []archive.CatalogFile, err error) {
	for first := int64(math.MaxInt64); first > offset; {
		files, ok, err := d.more(ctx)
		if !ok || err != nil {
			return found, err
		}
		for i := range files {
			f := &files[i]
			if f.FirstOffset == nil {
				continue
			}
			if first = min(first, *f.FirstOffset); *f.LastOffset >= offset {
				found = append(found, *f)
			}
		}
	}
	return found, nil
}

// file returns the file that holds a row, nil where none does.
func (d *dataFiles) file(ctx context.Context, tenant string, seq int64) (*archive.CatalogFile, error) {
	for known := 0; ; {
		for i := range d.files[tenant][known:] {
			if f := &d.files[tenant][known+i]; f.FirstSeq <= seq && seq <= f.LastSeq {
				return f, nil
			}
		}
		known = len(d.files[tenant])
		if _, ok, err := d.more(ctx); !ok || err != nil {
			return nil, err
		}
	}
}

// rows calls see with the row of a seq and those behind it in its file, some
// thousand at most, each checked by the hash of its log. It reports whether
// there is such a row: one that was cut is not.
func (d *dataFiles) rows(ctx context.Context, tenant string, seq int64, see func(*chain.Row)) (found bool, err error) {
	for try := 1; ; try++ {
		var f *archive.CatalogFile
		if f, err = d.file(ctx, tenant, seq); err == nil && f != nil {
			err = d.read(ctx, f, seq, see)
		}
		if gone := errors.Is(err, archive.ErrNotFound); err != nil && !gone || err == nil && f != nil || try == lookupTries {
			return f != nil, err
		}
		newer, fault := d.renew(ctx)
		if fault != nil || !newer {
			return false, cmp.Or(fault, d.shared.stillNamed(ctx, d.line, d.version, err))
		}
	}
}

// stillNamed returns err, why what a version names could not be read. Where it is
// gone and there is no newer version, that is a verdict on the catalog.
func (sh *shared) stillNamed(ctx context.Context, l archive.Line, c *archive.CatalogVersion, err error) error {
	if c == nil || !errors.Is(err, archive.ErrNotFound) {
		return err
	}
	newer, fault := archive.NewestCatalogObject(ctx, sh.Archive, l, c.Version)
	if newer == nil && fault == nil {
		return fmt.Errorf("%s: %w: it is the newest version, and names what is not there: %w: restore it", c.Key, archive.ErrCatalog, err)
	}
	return cmp.Or(fault, err)
}

// renew takes the newest version of the catalog, and reports whether it was not
// the one that was known.
func (d *dataFiles) renew(ctx context.Context) (bool, error) {
	c, err := d.shared.newestCatalog(ctx, d.line)
	if err == nil {
		err = d.shared.checkCatalog(ctx, c)
	}
	if err != nil || c == nil || d.version != nil && c.Version == d.version.Version {
		return false, err
	}
	d.take(c)
	return true, nil
}

// read reads the rows of a file from a seq on.
func (d *dataFiles) read(ctx context.Context, f *archive.CatalogFile, from int64, see func(*chain.Row)) error {
	return d.shared.openData(ctx, f, func(file *parquet.File, m *archive.DataFile) error {
		hasher, err := chain.NewHashers(d.shared.keys).For(m.Scheme, chain.Log{
			ArchiveID: m.ArchiveID, Tenant: m.Tenant, Topic: m.Topic, TopicID: m.TopicID, Partition: m.Partition,
		})
		if err != nil {
			return err
		}
		next := m.FirstSeq
		for row, err := range file.Rows() {
			if err == nil && next >= from {
				err = checkStored(hasher, row, next)
			}
			if err != nil {
				return fmt.Errorf("%s: %w: %w", f.Key, archive.ErrDataFile, err)
			}
			if next >= from {
				see(row)
			}
			if next++; next >= from+storedRun {
				return nil
			}
		}
		return nil
	})
}

func checkStored(hasher *chain.Hasher, row *chain.Row, seq int64) error {
	if row.Seq.N != seq {
		return fmt.Errorf("it has seq %d in the place of %d", row.Seq.N, seq)
	}
	return hasher.Check(row)
}

// openData reads a data file and calls f with it. All partitions together hold so
// many bytes of such objects as records may take, or one object.
func (sh *shared) openData(ctx context.Context, c *archive.CatalogFile, f func(*parquet.File, *archive.DataFile) error) error {
	size := min(c.Bytes, sh.objectBytes())
	if err := sh.objects.Acquire(ctx, size); err != nil {
		return err
	}
	defer sh.objects.Release(size)
	body, err := sh.Archive.Get(ctx, c.Key)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Key, err)
	}
	file, m, err := archive.OpenDataFile(body, c)
	if err != nil {
		return err
	}
	return f(file, m)
}

// find returns what a comparison asks of a row, and puts it and those behind it
// into rows.
func (d *dataFiles) find(ctx context.Context, tenant string, seq int64, rows map[rowKey]archivedRow) (archivedRow, error) {
	found, err := d.rows(ctx, tenant, seq, func(row *chain.Row) { rows[rowKey{tenant, row.Seq.N}] = d.shared.archivedRowOf(tenant, row) })
	if err != nil {
		return archivedRow{}, err
	}
	if !found && d.cut(tenant, seq) {
		return archivedRow{hidden: true}, nil
	}
	return rows[rowKey{tenant, seq}], nil
}

// cut reports whether the version says that a row was dropped.
func (d *dataFiles) cut(tenant string, seq int64) bool {
	return d.version != nil && slices.ContainsFunc(d.version.Cuts, func(c archive.CatalogCut) bool { return c.Tenant == tenant && seq < c.Size })
}

// archivedRowOf returns what a comparison asks of a row.
func (sh *shared) archivedRowOf(tenant string, row *chain.Row) archivedRow {
	r := archivedRow{erased: !row.RowSalt.Valid, tenant: tenant, seq: row.Seq.N, hint: inDataFile}
	if r.coord, r.found = row.Coordinates(); r.found {
		r.content, r.foreign = sh.contentOf(&row.Record)
	}
	r.hidden = r.erased && !r.found && !audit.IsMadeKind(row.Kind.S)
	return r
}

// newestStamp returns when the newest row was stamped that is compacted, in
// microseconds; false where none is left. It is the last one that came from Kafka,
// or one that ingest made behind it, in a file without offsets.
func (d *dataFiles) newestStamp(ctx context.Context) (at int64, found bool, err error) {
	files, _, err := d.more(ctx)
	if err != nil {
		return 0, false, err
	}
	last := int64(-1)
	for i := range files {
		if n := files[i].LastOffset; n != nil {
			last = max(last, *n)
		}
	}
	for i := range files {
		f := &files[i]
		if f.LastOffset != nil && *f.LastOffset < last {
			continue
		}
		err := d.shared.openData(ctx, f, func(file *parquet.File, _ *archive.DataFile) error {
			for row, err := range file.Select("archived_at") {
				if err != nil {
					return fmt.Errorf("%s: %w: %w", f.Key, archive.ErrDataFile, err)
				}
				at, found = max(at, row.ArchivedAt.N), true
			}
			return nil
		})
		if err != nil {
			return 0, false, err
		}
	}
	return at, found, nil
}

// A placed is a row that a window remembers, and where it stands in the line.
type placed struct {
	remembered
	offset int64
}

// readCompacted returns the rows of data files from an offset on that have
// coordinates, in the order of offsets.
func (sh *shared) readCompacted(ctx context.Context, l archive.Line, c *archive.CatalogVersion, from int64) ([]placed, error) {
	files, err := newDataFiles(sh, l, c).since(ctx, from)
	if err != nil {
		return nil, err
	}
	found := make([][]placed, len(files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(windowParallel)
	for i := range files {
		g.Go(func() (err error) {
			found[i], err = sh.readPlaced(gctx, &files[i], from)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.offset, b.offset) })
	return all, nil
}

func (sh *shared) readPlaced(ctx context.Context, f *archive.CatalogFile, from int64) (rows []placed, err error) {
	err = sh.openData(ctx, f, func(file *parquet.File, _ *archive.DataFile) error {
		for row, err := range file.Select(append([]string{"kafka_offset"}, windowColumns...)...) {
			if err != nil {
				return fmt.Errorf("%s: %w: %w", f.Key, archive.ErrDataFile, err)
			}
			if !row.KafkaOffset.Valid || row.KafkaOffset.N < from {
				continue
			}
			if coord, ok := row.Coordinates(); ok {
				rows = append(rows, placed{remembered{coord, entry{seq: row.Seq.N, ordinal: inDataFile, tenant: f.Tenant}}, row.KafkaOffset.N})
			}
		}
		return nil
	})
	return rows, err
}

package archive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// ErrCatalog: what the bucket holds as a line's catalog is none that counts, or
// does not fit what else it holds. Waiting changes nothing.
var ErrCatalog = errors.New("the catalog is not one to go by")

// A CheckNote returns nil if a note counts whose document is of the time at: it
// looks at the signatures. An error that matches [ErrCatalog] is a verdict, any
// other one is the store's. A nil CheckNote lets every note count.
type CheckNote func(ctx context.Context, n *sign.Note, at time.Time) error

// A CatalogVersion is one version of a catalog as it lies in the bucket.
type CatalogVersion struct {
	*Catalog
	Key      string
	Text     string     // exactly what is signed
	Note     *sign.Note // text and signatures
	SHA256   chain.Hash // of the text
	Modified time.Time  // by the store's clock; zero where it does not say
}

// Parts of a catalog that a snapshot reads at once, and how often it begins anew
// because compaction went on meanwhile.
const (
	partsParallel = 16
	snapshotTries = 10
)

// NewestCatalog reads the newest version of a line's catalog, nil where the line
// was never compacted. The cost is that of [NewestCatalogObject], and one GET. The
// error matches [ErrCatalog] where the version is none
// that counts.
func NewestCatalog(ctx context.Context, src Source, l Line, check CheckNote) (*CatalogVersion, error) {
	for try := 1; ; try++ {
		o, err := NewestCatalogObject(ctx, src, l, -1)
		if o == nil || err != nil {
			return nil, err
		}
		c, err := readCatalogVersion(ctx, src, l, o, check)
		if !errors.Is(err, ErrNotFound) || try == snapshotTries {
			return c, err // a version that is gone had its time: there is a newer one
		}
	}
}

// NewestCatalogObject finds the newest version of a line's catalog among those
// above a version, -1 for any; nil where there is none. It costs one LIST; where
// more than 1,000 versions are there, as locks may keep them, two more for each
// doubling of their number.
func NewestCatalogObject(ctx context.Context, src Source, l Line, above int64) (*Object, error) {
	newest, more, err := lastVersion(ctx, src, l, above, versionsPage)
	if !more || err != nil {
		return newest, err
	}
	there, gone := versionOf(newest), int64(-1) // a version that is there, and one above which none is
	for step := int64(versionsPage); gone < 0 || gone-there > versionsPage; {
		try := there + (gone-there)/2
		if gone < 0 {
			try, step = there+step, 2*step
		}
		o, _, err := lastVersion(ctx, src, l, try, 1)
		if err != nil {
			return nil, err
		}
		if o == nil {
			gone = try
		} else {
			there, newest = versionOf(o), o
		}
	}
	last, _, err := lastVersion(ctx, src, l, there, 2*versionsPage)
	return cmp.Or(last, newest), err
}

// The versions that one LIST of a store returns.
const versionsPage = 1000

// lastVersion returns the last one of the first most versions above a version, nil
// where there is none, and whether there are more.
func lastVersion(ctx context.Context, src Source, l Line, above, most int64) (last *Object, more bool, err error) {
	after := ""
	if above >= 0 {
		after = CatalogKey(l, above)
	}
	n := int64(0)
	for o, err := range src.List(ctx, CatalogPrefix(l), after) {
		if err != nil {
			return nil, false, fmt.Errorf("list the catalog: %w", err)
		}
		if o.Key >= CatalogPrefix(l)+"part/" {
			break // versions sort before parts
		}
		if _, isNote := ParseCatalogKey(o.Key); !isNote {
			continue
		}
		if n == most {
			return last, true, nil
		}
		n, last = n+1, &o
	}
	return last, false, nil
}

func versionOf(o *Object) int64 {
	n, _ := ParseCatalogKey(o.Key)
	return n.Number
}

func readCatalogVersion(ctx context.Context, src Source, l Line, o *Object, check CheckNote) (*CatalogVersion, error) {
	body, err := src.Get(ctx, o.Key)
	if errors.Is(err, ErrDamaged) {
		return nil, fmt.Errorf("%s: %w: %w: restore it", o.Key, ErrCatalog, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Key, err)
	}
	n, err := sign.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", o.Key, ErrCatalog, err)
	}
	c, err := DecodeCatalog(n.Text)
	if err == nil && CatalogKey(c.Line(), c.Version) != o.Key {
		err = fmt.Errorf("it says that it is version %d of %v", c.Version, c.Line())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", o.Key, ErrCatalog, err)
	}
	if check != nil {
		if err := check(ctx, n, c.Time.Time); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Key, err)
		}
	}
	return &CatalogVersion{Catalog: c, Key: o.Key, Text: n.Text, Note: n, SHA256: TextHash(n.Text), Modified: o.Modified}, nil
}

// ReadPart reads a part that a catalog version names. The error matches
// [ErrNotFound] where it is gone, as it may be once a newer version is there, and
// [ErrCatalog] where it is another one.
func ReadPart(ctx context.Context, src Source, ref *CatalogPartRef) ([]CatalogFile, error) {
	body, err := src.Get(ctx, ref.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref.Key, err)
	}
	if sum := chain.Hash(sha256.Sum256(body)); sum != ref.SHA256 || int64(len(body)) != ref.Bytes {
		return nil, fmt.Errorf("%s: %w: it is not the part that the version names", ref.Key, ErrCatalog)
	}
	p, err := DecodeCatalogPart(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", ref.Key, ErrCatalog, err)
	}
	if int64(len(p.Files)) != ref.Files {
		return nil, fmt.Errorf("%s: %w: it has %d files, and the version says %d", ref.Key, ErrCatalog, len(p.Files), ref.Files)
	}
	for i := range p.Files {
		if p.Files[i].Day != ref.Day {
			return nil, fmt.Errorf("%s: %w: it has a file of %s, and is the part of %s", ref.Key, ErrCatalog, p.Files[i].Day, ref.Day)
		}
	}
	return p.Files, nil
}

// Files reads all parts of a version: the data files of the line, by tenant and
// first seq. It requires that those of each log follow each other from 0 on, or
// from its cut. Errors are those of [ReadPart].
func (c *CatalogVersion) Files(ctx context.Context, src Source) ([]CatalogFile, error) {
	parts := make([][]CatalogFile, len(c.Parts))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(partsParallel)
	for i := range parts {
		g.Go(func() (err error) {
			parts[i], err = ReadPart(gctx, src, &c.Parts[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	files := slices.Concat(parts...)
	slices.SortFunc(files, func(a, b CatalogFile) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.FirstSeq, b.FirstSeq))
	})
	if err := c.checkFiles(files); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", c.Key, ErrCatalog, err)
	}
	return files, nil
}

func (c *CatalogVersion) checkFiles(files []CatalogFile) error {
	cuts := make(map[string]*CatalogCut, len(c.Cuts))
	for i := range c.Cuts {
		cuts[c.Cuts[i].Tenant] = &c.Cuts[i]
	}
	for i := range files {
		f := &files[i]
		var next int64
		var head *chain.Hash
		if cut := cuts[f.Tenant]; cut != nil {
			next, head = cut.Size, &cut.Head
		}
		if i > 0 && files[i-1].Tenant == f.Tenant {
			next, head = files[i-1].LastSeq+1, &files[i-1].HeadOut
		}
		if f.FirstSeq != next || head != nil && f.HeadIn != *head {
			return fmt.Errorf("the log of tenant %s goes on with %s, and not at seq %d behind the row before it", strconv.Quote(f.Tenant), f.Key, next)
		}
	}
	return nil
}

// A Snapshot is a line at one moment: each of its rows is in one of the files, or
// in one of the segments. Its objects stay readable for graceSeconds; one that is
// gone when it is read means that the snapshot is older, and another is to be
// taken. Void segments are among the segments.
type Snapshot struct {
	Line     Line
	Catalog  *CatalogVersion // nil where the line was never compacted
	Files    []CatalogFile   // by tenant and first seq
	Segments []Object        // dense, from the watermark on
}

// Watermark returns the first ordinal that is not compacted.
func (s *Snapshot) Watermark() int64 {
	if s.Catalog == nil {
		return 0
	}
	return s.Catalog.Watermark
}

// Next returns the ordinal behind the newest segment.
func (s *Snapshot) Next() int64 { return s.Watermark() + int64(len(s.Segments)) }

// ReadSnapshot takes a snapshot of a line. Where compaction goes on meanwhile, it
// begins anew. What it returns is what the catalog says: nothing of it is proved.
//
// The cost is two LISTs of the catalog, the LISTs of the segments, and a GET of
// each part. The error matches [ErrCatalog] where the catalog is none to go by,
// and [ErrBreaks] where a segment is missing that no compaction took.
func ReadSnapshot(ctx context.Context, src Source, l Line, check CheckNote) (*Snapshot, error) {
	for range snapshotTries {
		c, err := NewestCatalog(ctx, src, l, check)
		if err != nil {
			return nil, err
		}
		s, err := c.snapshot(ctx, src, l)
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrBreaks) && !errors.Is(err, ErrCatalog) {
			return nil, err
		}
		newer, fault := NewestCatalogObject(ctx, src, l, c.version())
		if fault != nil {
			return nil, fault
		}
		if newer == nil && errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%w: %w", ErrCatalog, err)
		}
		if newer == nil {
			return s, err
		}
	}
	return nil, fmt.Errorf("%s: its catalog went on %d times while it was read: try again", CatalogPrefix(l), snapshotTries)
}

// version is -1 where the line was never compacted.
func (c *CatalogVersion) version() int64 {
	if c == nil {
		return -1
	}
	return c.Version
}

// snapshot reads what a version, nil for none, leads to.
func (c *CatalogVersion) snapshot(ctx context.Context, src Source, l Line) (s *Snapshot, err error) {
	s = &Snapshot{Line: l, Catalog: c}
	if c != nil {
		if s.Files, err = c.Files(ctx, src); err != nil {
			return nil, err
		}
	}
	if s.Segments, err = ListSegments(ctx, src, l, s.Watermark()); err != nil {
		return nil, err
	}
	return s, nil
}

// ListSegments lists a line's segments from an ordinal on, and requires that none
// is missing between those that are there; else the error matches [ErrBreaks]. It
// costs one LIST for each 1,000 of them.
func ListSegments(ctx context.Context, src Source, l Line, from int64) (segments []Object, err error) {
	after := ""
	if from > 0 {
		after = SegmentKey(l, from-1)
	}
	for o, err := range src.List(ctx, SegmentPrefix(l), after) {
		if err != nil {
			return nil, fmt.Errorf("list segments: %w", err)
		}
		name, ok := ParseSegmentKey(o.Key)
		if !ok {
			continue // a stray: verify names it
		}
		if want := from + int64(len(segments)); name.Ordinal != want {
			return nil, fmt.Errorf("segment %d is missing, segment %d is there: %w", want, name.Ordinal, ErrBreaks)
		}
		segments = append(segments, o)
	}
	return segments, nil
}

// ErrDataFile: bytes are not the data file that a catalog lists. Restore the
// object.
var ErrDataFile = errors.New("it is not the data file that the catalog lists")

// OpenDataFile opens the bytes of a data file that a catalog lists: its hash
// first, then the object's layout, and whether its metadata says what the catalog
// does. No page is decoded. The error matches [ErrDataFile].
func OpenDataFile(body []byte, f *CatalogFile) (*parquet.File, *DataFile, error) {
	file, meta, err := openDataFile(body, f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %w", f.Key, ErrDataFile, err)
	}
	return file, meta, nil
}

func openDataFile(body []byte, f *CatalogFile) (*parquet.File, *DataFile, error) {
	if sum := chain.Hash(sha256.Sum256(body)); sum != f.SHA256 || int64(len(body)) != f.Bytes {
		return nil, nil, fmt.Errorf("its SHA-256 is %s", sum)
	}
	if err := parquet.CheckLayout(body); err != nil {
		return nil, nil, err
	}
	file, err := parquet.Open(body)
	if err != nil {
		return nil, nil, err
	}
	text, ok := file.Metadata()
	if !ok {
		return nil, nil, fmt.Errorf("no metadata %q", MetadataKey)
	}
	m, err := f.decode(text, file.NumRows())
	return file, m, err
}

// Metadata reads the metadata of a data file that a catalog lists, of which no
// more than the end was read, and whether it says what the catalog does. rows are
// those that the footer states. The error matches [ErrDataFile].
func (f *CatalogFile) Metadata(text []byte, rows int64) (*DataFile, error) {
	m, err := f.decode(text, rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", f.Key, ErrDataFile, err)
	}
	return m, nil
}

func (f *CatalogFile) decode(text []byte, rows int64) (*DataFile, error) {
	m, err := DecodeDataFile(text)
	if err != nil {
		return nil, err
	}
	name, ok := ParseDataKey(f.Key)
	switch {
	case !ok || name.TopicID != chain.Escape(m.TopicID) || name.Partition != m.Partition:
		return nil, fmt.Errorf("it says that it is of %s, partition %d", m.TopicID, m.Partition)
	case m.Tenant != f.Tenant || m.FirstSeq != f.FirstSeq || m.Rows != f.Rows || m.HeadIn != f.HeadIn || m.HeadOut != f.HeadOut:
		return nil, errors.New("its metadata has other rows, or other heads")
	case rows != m.Rows:
		return nil, fmt.Errorf("%d rows, the metadata says %d", rows, m.Rows)
	}
	return m, nil
}

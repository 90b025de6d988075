package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// errOvertaken: the line was compacted beyond where this process stands, so that
// nothing it believes of it can be relied on. It starts again from the bucket.
var errOvertaken = fmt.Errorf("%w as it stands: compaction has passed this process, which had slept, and starts the partition again from the bucket", archive.ErrBreaks)

// newestCatalog reads the newest version of a line's catalog, nil for none,
// whoever signed it.
func (sh *shared) newestCatalog(ctx context.Context, l archive.Line) (*archive.CatalogVersion, error) {
	c, err := archive.NewestCatalog(ctx, sh.Archive, l, nil)
	if err == nil && c != nil && c.ArchiveID != sh.Root.ArchiveID {
		err = fmt.Errorf("%s: %w: it is of archive %s", c.Key, archive.ErrCatalog, c.ArchiveID)
	}
	return c, err
}

// checkCatalog requires that a version, nil for none, is signed by a key that is
// good for catalogs, where any is known.
func (sh *shared) checkCatalog(ctx context.Context, c *archive.CatalogVersion) error {
	if c == nil {
		return nil
	}
	err := archive.CatalogsSignedBy(sh.Archive, sh.ring, sh.Root.ArchiveID)(ctx, c.Note, c.Time.Time)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Key, err)
	}
	return nil
}

// watermarkOf returns the first ordinal that is not compacted.
func watermarkOf(c *archive.CatalogVersion) int64 {
	if c == nil {
		return 0
	}
	return c.Watermark
}

// A lookout is when a writer last looked at its line's catalog, and what it saw.
//
// A segment that is written proves nothing where the ordinal had been written,
// compacted and deleted before: that takes graceSeconds from the version that
// compacts it on. So a reply counts that the store gave less than half of that
// after a look that found the ordinal not compacted. Both times are the store's:
// the clock of a process that is stopped does not see it. The half is for replies
// that are late.
//
// A look is of the time of the reply before it, so that nothing else has to be
// asked. It costs one LIST, and a GET where there is a newer version.
type lookout struct {
	shared *shared
	line   archive.Line

	mu   sync.Mutex
	seen *archive.CatalogVersion // nil: none
	at   time.Time               // by the store's clock; zero: not known
}

func newLookout(sh *shared, l archive.Line, seen *archive.CatalogVersion) *lookout {
	return &lookout{shared: sh, line: l, seen: seen}
}

// catalog returns the newest version that was seen, nil for none.
func (k *lookout) catalog() *archive.CatalogVersion {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen
}

// believe returns nil if a reply of a store's time to the write of an ordinal
// proves that the segment is durable. An error matches errOvertaken, or
// [archive.ErrCatalog], or is the store's.
func (k *lookout) believe(ctx context.Context, ordinal int64, storeTime time.Time) error {
	k.mu.Lock()
	at := k.at
	k.mu.Unlock()
	half := time.Duration(k.shared.Root.GraceSeconds) * time.Second / 2
	if since := storeTime.Sub(at); storeTime.IsZero() || at.IsZero() || since.Abs() >= half {
		if err := k.look(ctx); err != nil {
			return err
		}
		k.mu.Lock()
		k.at = storeTime
		k.mu.Unlock()
	}
	return k.passed(ordinal)
}

// passed returns an error that matches errOvertaken where an ordinal is known to
// be compacted.
func (k *lookout) passed(ordinal int64) error {
	if w := watermarkOf(k.catalog()); w > ordinal {
		return fmt.Errorf("segment %d: the line is compacted up to segment %d: %w", ordinal, w-1, errOvertaken)
	}
	return nil
}

// look reads the newest version of the catalog, if there is one that was not seen.
func (k *lookout) look(ctx context.Context) error {
	seen := k.catalog()
	above := int64(-1)
	if seen != nil {
		above = seen.Version
	}
	newer, err := archive.NewestCatalogObject(ctx, k.shared.Archive, k.line, above)
	if newer == nil || err != nil {
		return err
	}
	c, err := k.shared.newestCatalog(ctx, k.line)
	if err == nil {
		err = k.shared.checkCatalog(ctx, c)
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = c
	return nil
}

package export

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A lineView is a line at one moment; where compaction took what it names, at a
// later one.
type lineView struct {
	a    *Archive
	line archive.Line

	mu    sync.Mutex
	snap  *archive.Snapshot
	lacks map[string]error // by tenant: logs that end in front of rows that an anchor states
	err   error            // why there is no snapshot to go by
}

// take takes a snapshot. What it returns is the store's; what is wrong with the
// line is kept for those who ask for it.
func (l *lineView) take(ctx context.Context) error {
	l.a.tell("%s/%d: catalog and segments", l.line.Topic, l.line.Partition)
	for try := 1; ; try++ {
		s, lacks, err := l.look(ctx)
		switch {
		case err == nil:
			l.snap, l.lacks, l.err = s, lacks, nil
			return nil
		case errors.Is(err, archive.ErrCatalog), errors.Is(err, archive.ErrBreaks), errors.Is(err, archive.ErrDamaged), errors.Is(err, archive.ErrTrail):
			l.snap, l.lacks, l.err = nil, nil, tampered("%s/%d: %w", l.line.Topic, l.line.Partition, err)
			return nil
		case errors.Is(err, archive.ErrNotFound) && try < steadyTries: // compaction went on
		default:
			return fmt.Errorf("%s/%d: %w", l.line.Topic, l.line.Partition, err)
		}
	}
}

// look takes a snapshot, and holds it against the newest good anchor.
func (l *lineView) look(ctx context.Context) (*archive.Snapshot, map[string]error, error) {
	s, err := l.snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	good, err := l.a.newest(ctx, l.line)
	if good == nil || err != nil || s.Next() > good.Ordinal {
		return s, nil, err
	}
	// The anchor may be newer. What is listed now was there before it.
	if s, err = l.snapshot(ctx); err != nil || s.Next() > good.Ordinal {
		return s, nil, err
	}
	heads, err := good.Heads(ctx, l.a.src, &l.a.root, l.line)
	if err != nil {
		return nil, nil, fmt.Errorf("it ends in front of segment %d, which an anchor covers: %w", s.Next(), err)
	}
	segments, err := l.segments(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	return s, l.lacking(good, heads, l.a.logsIn(l.line, "", s, segments)), nil
}

func (l *lineView) snapshot(ctx context.Context) (*archive.Snapshot, error) {
	s, err := archive.ReadSnapshot(ctx, l.a.src, l.line, l.a.checkNote(l.line))
	if err == nil && s.Catalog != nil && s.Catalog.ArchiveID != l.a.root.ArchiveID {
		err = fmt.Errorf("%s: it is of another archive: %w", s.Catalog.Key, archive.ErrCatalog)
	}
	return s, err
}

// lacking returns which logs are shorter than an anchor states.
func (l *lineView) lacking(good *archive.GoodAnchor, heads map[string]archive.AnchorHead, logs []Log) map[string]error {
	next := make(map[string]int64, len(logs))
	for i := range logs {
		next[logs[i].Tenant] = logs[i].Next
	}
	lacks := map[string]error{}
	for tenant, h := range heads {
		if n := next[tenant]; n < h.Size {
			lacks[tenant] = tampered("%s/%d: the log of tenant %.80q ends at seq %d, and anchor %d (of %s) states %d rows: restore the catalog of its line, or its segments up to %d",
				l.line.Topic, l.line.Partition, tenant, n, good.Number, good.Time.UTC().Format(time.RFC3339), h.Size, good.Ordinal)
		}
	}
	return lacks
}

// missing returns what is missing of the logs of a tenant, "" for all, as the line
// was seen last.
func (l *lineView) missing(tenant string) (faults []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range slices.Sorted(maps.Keys(l.lacks)) {
		if tenant == "" || tenant == t {
			faults = append(faults, l.lacks[t])
		}
	}
	return faults
}

// anchorWatches are those of all lines.
type anchorWatches struct {
	mu     sync.Mutex
	byLine map[archive.Line]*anchorWatch
}

type anchorWatch struct {
	mu sync.Mutex
	archive.AnchorWatch
}

// newest returns the newest anchor of a line that counts; nil where none does.
func (a *Archive) newest(ctx context.Context, line archive.Line) (*archive.GoodAnchor, error) {
	a.anchors.mu.Lock()
	if a.anchors.byLine == nil {
		a.anchors.byLine = map[archive.Line]*anchorWatch{}
	}
	w := a.anchors.byLine[line]
	if w == nil {
		w = &anchorWatch{}
		a.anchors.byLine[line] = w
	}
	a.anchors.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Look(ctx, a.src, &a.root, line, a.ring)
}

// current returns the snapshot to read by.
func (l *lineView) current() (*archive.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.snap, l.err
}

// after returns a snapshot that is newer than one of which something is gone.
func (l *lineView) after(ctx context.Context, old *archive.Snapshot) (*archive.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.snap == old {
		if err := l.take(ctx); err != nil {
			return nil, err
		}
	}
	return l.snap, l.err
}

// A segment is what the metadata of a segment says.
type segment struct {
	key     string
	size    int64
	ordinal int64
	logs    []archive.LogInterval // by tenant; without frontiers
	voided  []archive.Voided
	err     error // why it says nothing
}

// log returns what the segment says of a tenant's log; nil where it has none of
// its rows.
func (s *segment) log(tenant string) *archive.LogInterval {
	i, ok := slices.BinarySearchFunc(s.logs, tenant, func(l archive.LogInterval, t string) int {
		switch {
		case l.Tenant < t:
			return -1
		case l.Tenant > t:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return &s.logs[i]
}

// segments returns the segments of a snapshot that are not void, in order. It
// costs one GET for each that was not asked for before.
func (l *lineView) segments(ctx context.Context, s *archive.Snapshot) ([]*segment, error) {
	var all []*segment
	void := map[int64]bool{}
	for seg, err := range ahead(ctx, s.Segments, segmentsParallel, func(ctx context.Context, o archive.Object) (*segment, error) { return l.a.segment(ctx, l.line, o) }) {
		if err != nil {
			return nil, err
		}
		for _, v := range seg.voided {
			void[v.Ordinal] = true
		}
		all = append(all, seg)
	}
	for j := len(all) - 1; j >= 0; j-- {
		if void[s.Watermark()+int64(j)] {
			all = slices.Delete(all, j, j+1)
		}
	}
	return all, nil
}

// segmentsParallel is how many segments are read at once, of each line.
const segmentsParallel = 8

// segment reads the metadata of a segment, or remembers it.
func (a *Archive) segment(ctx context.Context, line archive.Line, o archive.Object) (*segment, error) {
	if s := a.known.get(o.Key); s != nil {
		return s, nil
	}
	r, err := a.remote(ctx, o.Key, o.Size)
	if errors.Is(err, ErrTampered) {
		return &segment{key: o.Key, size: o.Size, err: err}, nil
	}
	if err != nil {
		return nil, err
	}
	text, _ := r.Metadata()
	s := newSegment(a.root.ArchiveID, line, o, text)
	if s.err == nil {
		a.known.put(s)
	}
	return s, nil
}

func newSegment(archiveID string, line archive.Line, o archive.Object, text []byte) *segment {
	s := &segment{key: o.Key, size: o.Size}
	m, err := archive.DecodeSegment(text)
	if err == nil && (m.ArchiveID != archiveID || archive.SegmentKey(m.Line(), m.Ordinal) != o.Key || m.Line() != line) {
		err = fmt.Errorf("it says that it is segment %d of %.80q/%d, in archive %.40q", m.Ordinal, m.Topic, m.Partition, m.ArchiveID)
	}
	if err != nil {
		s.err = tampered("%s: %w", o.Key, err)
		return s
	}
	s.ordinal, s.voided = m.Ordinal, m.Voided
	for _, l := range m.Logs {
		l.Frontier = nil
		s.logs = append(s.logs, l)
	}
	slices.SortFunc(s.logs, func(a, b archive.LogInterval) int {
		if a.Tenant < b.Tenant {
			return -1
		}
		return 1
	})
	return s
}

// A segmentCache keeps what segments say of themselves, which does not change.
type segmentCache struct {
	mu    sync.Mutex
	byKey map[string]*segment
	logs  int // of all
}

// maxCachedLogs bounds a segmentCache: some 200 bytes for each log of a segment.
const maxCachedLogs = 1 << 18

func (c *segmentCache) get(key string) *segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key]
}

func (c *segmentCache) put(s *segment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil || c.logs+len(s.logs) > maxCachedLogs {
		c.byKey, c.logs = map[string]*segment{}, 0
	}
	c.byKey[s.key] = s
	c.logs += len(s.logs) + 1
}

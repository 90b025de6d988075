package compaction

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// segmentsParallel is how many segments are read at once, as far as they fit into
// an eighth of the memory: inflated, about inflation times their bytes.
const (
	segmentsParallel = 8
	inflation        = 6
)

func (e *Engine) parallel(segments []archive.AnchorSegment) int {
	largest := int64(1)
	for i := range segments {
		largest = max(largest, segments[i].Bytes)
	}
	return int(min(segmentsParallel, max(1, e.Memory/8/(largest*inflation))))
}

// A window is the rows of consecutive segments, by log. What a row's own columns
// can show of it is checked.
type window struct {
	from, to int64 // ordinals: the first one, and the one behind the last
	segments []archive.AnchorSegment
	logs     map[string]*windowLog
	rows     int64
	bytes    int64 // of the objects
	keyless  map[string]bool
}

// A windowLog is the rows of one log, and where segments end in them.
type windowLog struct {
	rows      []*chain.Row
	intervals []interval
}

// An interval is what a segment says of a log, and where its rows end.
type interval struct {
	archive.LogInterval
	ordinal int64
	end     int // index behind its last row in rows
}

// rowBytes is what a row takes beside what it points to.
const rowBytes = int64(unsafe.Sizeof(chain.Row{}))

// readWindow reads segments, which anchors list, in order, until they are all
// read or their rows take a quarter of the memory: one segment at least.
func (p *pass) readWindow(segments []archive.AnchorSegment) (*window, error) {
	w := &window{from: p.s.watermark(), to: p.s.watermark(), logs: map[string]*windowLog{}, keyless: map[string]bool{}}
	limit := p.e.Memory / 4
	for o, err := range ahead(p.ctx, segments, p.e.parallel(segments), p.readSegment) {
		if err != nil {
			return nil, err
		}
		if limit -= o.size; limit < 0 && w.to > w.from {
			p.res.More = true
			break
		}
		w.add(o)
	}
	return w, nil
}

func (w *window) add(o *segment) {
	w.to, w.rows, w.bytes = o.at.Ordinal+1, w.rows+int64(len(o.rows)), w.bytes+o.at.Bytes
	w.segments = append(w.segments, o.at)
	for i := range o.rows {
		tenant := o.rows[i].TenantID.S
		if w.logs[tenant] == nil {
			w.logs[strings.Clone(tenant)] = &windowLog{}
		}
		l := w.logs[tenant]
		l.rows = append(l.rows, &o.rows[i])
	}
	for _, l := range o.meta.Logs {
		if log := w.logs[l.Tenant]; log != nil {
			log.intervals = append(log.intervals, interval{l, o.at.Ordinal, len(log.rows)})
		}
	}
	for _, tenant := range o.keyless {
		w.keyless[tenant] = true
	}
}

// tenants returns those that have rows, in order.
func (w *window) tenants() []string {
	all := make([]string, 0, len(w.logs))
	for t := range w.logs {
		all = append(all, t)
	}
	slices.Sort(all)
	return all
}

// A segment is one segment, whose hash is the one that its anchor states.
type segment struct {
	at      archive.AnchorSegment
	meta    *archive.Segment
	rows    []chain.Row
	size    int64 // about what it takes in memory
	keyless []string
}

func (p *pass) readSegment(ctx context.Context, at archive.AnchorSegment) (*segment, error) {
	o, err := p.e.readSegment(ctx, p.l, at)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", at.Ordinal, err)
	}
	return o, nil
}

// readSegment reads a segment, and checks its rows one by one.
func (e *Engine) readSegment(ctx context.Context, l archive.Line, at archive.AnchorSegment) (*segment, error) {
	body, err := e.Archive.Get(ctx, archive.SegmentKey(l, at.Ordinal))
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return nil, fmt.Errorf("%w: %w", errSegmentGone, err)
	case errors.Is(err, archive.ErrDamaged):
		return nil, halt("%w: restore it", err)
	case err != nil:
		return nil, err
	}
	if sum := chain.Hash(sha256.Sum256(body)); sum != at.SHA256 {
		return nil, halt("its SHA-256 is %s, its anchor states %s: it was changed: restore it", sum, at.SHA256)
	}
	o := &segment{at: at}
	if err := o.decode(body); err != nil {
		return nil, halt("%w", err)
	}
	if o.meta.Line() != l || o.meta.Ordinal != at.Ordinal || o.meta.ArchiveID != e.Root.ArchiveID {
		return nil, halt("it says that it is number %d of %v", o.meta.Ordinal, o.meta.Line())
	}
	if err := o.check(e.LogKeys); err != nil {
		return nil, halt("%w", err)
	}
	return o, nil
}

// errSegmentGone: an anchored segment is missing. Another compactor may have gone
// on; where none has, it has to be restored.
var errSegmentGone = errors.New("an anchor covers it, and no catalog says that it is compacted")

func (o *segment) decode(body []byte) error {
	f, err := parquet.Open(body)
	if err != nil {
		return err
	}
	text, ok := f.Metadata()
	if !ok {
		return fmt.Errorf("no metadata %q", archive.MetadataKey)
	}
	if o.meta, err = archive.DecodeSegment(text); err != nil {
		return err
	}
	if o.size, err = f.Inflated(); err != nil {
		return err
	}
	o.size += f.NumRows() * rowBytes
	o.rows = make([]chain.Row, 0, min(f.NumRows(), archive.MaxSegmentRows))
	for row, err := range f.Rows() {
		if err != nil {
			return err
		}
		o.rows = append(o.rows, *row)
	}
	return nil
}

// check checks what each row can show by itself. Whether they follow each other
// is for the log to find out.
func (o *segment) check(keys chain.Keys) error {
	schemes := map[string]string{}
	for _, l := range o.meta.Logs {
		schemes[l.Tenant] = l.Scheme
	}
	hashers := chain.NewHashers(keys)
	for i := range o.rows {
		row, keyless := &o.rows[i], false
		scheme, ok := schemes[row.TenantID.S]
		if !ok {
			return fmt.Errorf("row %d is of a log that the metadata does not list", i)
		}
		if err := checkRow(hashers, scheme, o.meta.Log(row.TenantID.S), row, &keyless); err != nil {
			return named(o.meta.Log(row.TenantID.S), row.Seq.N, err)
		}
		if keyless && !slices.Contains(o.keyless, row.TenantID.S) {
			o.keyless = append(o.keyless, row.TenantID.S)
		}
	}
	return nil
}

// ordinalOf returns the ordinal of the segment that holds an offset.
func (w *window) ordinalOf(offset int64) (int64, bool) {
	i, _ := slices.BinarySearchFunc(w.segments, offset, func(s archive.AnchorSegment, offset int64) int {
		if s.NextOffset <= offset {
			return -1
		}
		return 1
	})
	if i == len(w.segments) || offset < w.segments[i].FirstOffset {
		return 0, false
	}
	return w.segments[i].Ordinal, true
}

package export

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
)

// LineObjects are the objects of a line that hold each of its rows once, at one
// moment: what an engine reads that cannot ask the catalog itself. They stay
// readable for graceSeconds of ledgerlake.json; what they name may go after that.
type LineObjects struct {
	Line      archive.Line
	Version   int64 // of the catalog; -1: the line was never compacted
	Watermark int64 // the first ordinal that is not compacted
	Files     []archive.CatalogFile
	Segments  []SegmentObject // from the watermark on, without void ones
}

// A SegmentObject is a segment, and whose rows it has.
type SegmentObject struct {
	Key     string
	Ordinal int64
	Tenants []string // in the order of their ids
}

// objectsTries is how often compaction may be faster than a list.
const objectsTries = 5

// Objects lists the objects of every line; with a tenant only those that may have
// rows of it. Beyond what [Open] has read it costs a GET for each segment that is
// not compacted. The error matches [ErrTampered] where a line is not as it must be,
// or a log of it lacks rows that an anchor states.
func (a *Archive) Objects(ctx context.Context, tenant string) ([]LineObjects, error) {
	for try := 1; ; try++ {
		all, err := a.objects(ctx, tenant)
		if err == nil || try == objectsTries || !errors.Is(err, archive.ErrNotFound) {
			return all, err
		}
		if err := a.Refresh(ctx); err != nil { // compaction has taken a segment meanwhile
			return nil, err
		}
	}
}

func (a *Archive) objects(ctx context.Context, tenant string) (all []LineObjects, err error) {
	v := a.view.Load()
	if v.fault != nil {
		return nil, v.fault
	}
	for _, l := range v.lines {
		o, err := l.objects(ctx, tenant)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

func (l *lineView) objects(ctx context.Context, tenant string) (o LineObjects, err error) {
	snap, err := l.current()
	if err != nil {
		return o, err
	}
	if faults := l.missing(tenant); len(faults) > 0 {
		return o, errors.Join(faults...)
	}
	o = LineObjects{Line: l.line, Version: -1, Watermark: snap.Watermark()}
	if snap.Catalog != nil {
		o.Version = snap.Catalog.Version
	}
	for i := range snap.Files {
		if tenant == "" || snap.Files[i].Tenant == tenant {
			o.Files = append(o.Files, snap.Files[i])
		}
	}
	segments, err := l.segments(ctx, snap)
	if err != nil {
		return o, fmt.Errorf("%s/%d: %w", l.line.Topic, l.line.Partition, err)
	}
	for _, s := range segments {
		if s.err != nil {
			return o, s.err
		}
		if tenant != "" && s.log(tenant) == nil {
			continue
		}
		named := SegmentObject{Key: s.key, Ordinal: s.ordinal}
		for i := range s.logs {
			named.Tenants = append(named.Tenants, s.logs[i].Tenant)
		}
		named.Tenants = slices.Compact(named.Tenants)
		o.Segments = append(o.Segments, named)
	}
	return o, nil
}

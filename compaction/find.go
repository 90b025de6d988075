package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// Found is what an order would reach in one line now.
type Found struct {
	Line archive.Line
	Extent
	Erased int64 // more rows that it means, of which nothing is left to take
	Held   int64 // rows that a legal hold keeps
}

// findTries is how often a line is looked through again because compaction went
// on meanwhile.
const findTries = 5

// Find says what an order would erase if it were carried out now: every row is
// looked at that may be meant. Nothing is written. r is the order as it would be
// archived, or is.
func (g *Governor) Find(ctx context.Context, r *control.Row) (all []Found, err error) {
	s, err := g.surveyAll(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.whole(r.Tenant); err != nil {
		return nil, err
	}
	target := &r.Redaction.Target
	for _, l := range s.lines {
		if target.Log != nil && *target.Log != l {
			continue
		}
		f, err := g.findIn(ctx, s, l, r)
		if err != nil {
			return nil, fmt.Errorf("%s/%d: %w", l.Topic, l.Partition, err)
		}
		if f.Rows+f.Erased > 0 {
			all = append(all, *f)
		}
	}
	return all, nil
}

func (g *Governor) findIn(ctx context.Context, s *survey, l archive.Line, r *control.Row) (f *Found, err error) {
	for range findTries {
		var snapshot *archive.Snapshot
		if snapshot, err = archive.ReadSnapshot(ctx, g.engine.Archive, l, g.engine.catalogCounts(l)); err != nil {
			return nil, err
		}
		finder := &finder{g: g, row: r, holds: s.gov.Tenant(r.Tenant).Holds(), found: &Found{Line: l}}
		if err = finder.look(ctx, snapshot); !errors.Is(err, archive.ErrNotFound) {
			return finder.found, err
		}
	}
	return nil, err
}

// A finder goes through one snapshot.
type finder struct {
	g     *Governor
	row   *control.Row
	holds []*control.Row
	found *Found
}

func (f *finder) look(ctx context.Context, s *archive.Snapshot) error {
	duty := Duty{Row: f.row}
	for i := range s.Files {
		file := &s.Files[i]
		if file.Tenant != f.row.Tenant || !duty.mayBeIn(file) {
			continue
		}
		filters, err := f.g.engine.filters(ctx, file)
		if err != nil {
			return err
		}
		if filters.mayMean(&f.row.Redaction.Target) {
			if err := f.file(ctx, file); err != nil {
				return err
			}
		}
	}
	get := func(ctx context.Context, o archive.Object) ([]byte, error) { return f.g.engine.Archive.Get(ctx, o.Key) }
	i := 0
	for body, err := range ahead(ctx, s.Segments, segmentsParallel, get) {
		key := s.Segments[i].Key
		i++
		if err == nil {
			err = f.segment(body)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func (f *finder) file(ctx context.Context, at *archive.CatalogFile) error {
	body, err := f.g.engine.Archive.Get(ctx, at.Key)
	if err != nil {
		return fmt.Errorf("%s: %w", at.Key, err)
	}
	file, _, err := archive.OpenDataFile(body, at)
	if err != nil {
		return err
	}
	return f.rows(file, at.Bytes)
}

// segment looks through a segment, unless it has no row of the tenant.
func (f *finder) segment(body []byte) error {
	file, err := archive.OpenForeignSegment(body)
	if err != nil {
		return err
	}
	text, _ := file.Metadata()
	meta, err := archive.DecodeSegment(text)
	if err != nil {
		return err
	}
	for i := range meta.Logs {
		if meta.Logs[i].Tenant == f.row.Tenant {
			return f.rows(file, int64(len(body)))
		}
	}
	return nil
}

func (f *finder) rows(file *parquet.File, bytes int64) error {
	before := f.found.Rows
	for row, err := range file.Rows() {
		if err != nil {
			return err
		}
		if row.TenantID.S == f.row.Tenant && f.row.Reaches(row) {
			f.take(row)
		}
	}
	if f.found.Rows > before {
		f.found.Files++
		f.found.Bytes += bytes
	}
	return nil
}

func (f *finder) take(row *chain.Row) {
	state, err := chain.StateOf(row)
	if err == nil && f.row.Redaction.Left(row, state) == "" {
		f.found.Erased++
		return
	}
	for _, h := range f.holds {
		if h.Hold.Scope.Holds(row) || row.Kind.S == audit.KindLegalHold && strings.EqualFold(row.RecordID.S, h.ID) {
			f.found.Held++
			break
		}
	}
	at := time.UnixMicro(row.ArchivedAt.N).UTC()
	f.found.Rows++
	f.found.span(at, at)
}

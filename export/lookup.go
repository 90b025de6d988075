package export

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Turn returns the rows of a turn, of all logs of the tenant: seqWithinTurn
// ascending, then by time. A turn that is unknown has none. session "" means any.
//
// What is wrong with an object is an error that matches [ErrTampered]; the rows
// that were found in others come all the same.
func (a *Archive) Turn(ctx context.Context, tenant, session, turn string) ([]*Row, error) {
	rows, err := a.find(ctx, lookup{tenant: tenant, match: func(row *chain.Row) bool {
		return has(row.TurnID, turn) && (session == "" || has(row.SessionID, session))
	}})
	slices.SortFunc(rows, inTurn)
	return rows, err
}

func has(t audit.Text, value string) bool { return t.Valid && t.S == value }

// A Page is which rows of a session are asked for.
type Page struct {
	Limit  int    // rows; 0 means 100
	Before string // a ULID: rows whose [Row.Cursor] is less; "" means from the newest on
}

// DefaultLimit is how many rows a page has where nothing else is said.
const DefaultLimit = 100

// Session returns rows of a session, the newest first: by record_id, rows without
// one by their time. Where several rows have the [Row.Cursor] of the last one, all
// of them are returned, so that a page may have more rows than the limit, and the
// next one begins before the last one's.
func (a *Archive) Session(ctx context.Context, tenant, session string, p Page) ([]*Row, error) {
	if p.Limit <= 0 {
		p.Limit = DefaultLimit
	}
	before := strings.ToUpper(p.Before)
	rows, err := a.find(ctx, lookup{tenant: tenant, match: func(row *chain.Row) bool {
		return has(row.SessionID, session) && (before == "" || (&Row{Row: *row}).Cursor() < before)
	}})
	slices.SortFunc(rows, newestFirst)
	if len(rows) > p.Limit {
		end := p.Limit
		for end < len(rows) && rows[end].Cursor() == rows[p.Limit-1].Cursor() {
			end++
		}
		rows = rows[:end]
	}
	return rows, err
}

// Record returns the rows of a record id, in the order of their places; none where
// there is no such id. tenant "" means any.
func (a *Archive) Record(ctx context.Context, tenant, recordID string) ([]*Row, error) {
	id, err := audit.ParseRecordID(recordID)
	if err != nil {
		return nil, nil
	}
	rows, err := a.find(ctx, lookup{tenant: tenant, match: func(row *chain.Row) bool { return has(row.RecordID, id) }})
	slices.SortFunc(rows, (*Row).Place)
	return rows, err
}

// At returns the row of a seq in each log of a tenant that has one, on the lines
// that lines names; nil means all.
func (a *Archive) At(ctx context.Context, tenant string, lines func(archive.Line) bool, seq int64) ([]*Row, error) {
	rows, err := a.find(ctx, lookup{
		tenant: tenant, lines: lines, match: func(row *chain.Row) bool { return row.Seq.N == seq },
		skips: func(first, end int64) bool { return seq < first || seq >= end },
	})
	slices.SortFunc(rows, (*Row).Place)
	return rows, err
}

// A lookup is which few rows are asked for.
type lookup struct {
	tenant string // "" means any
	lines  func(archive.Line) bool
	match  func(*chain.Row) bool
	skips  func(first, end int64) bool // the rows of an object, by seq; nil: none is skipped
}

// find returns the rows that are asked for, in no order.
func (a *Archive) find(ctx context.Context, q lookup) ([]*Row, error) {
	v := a.view.Load()
	f := &found{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(linesParallel)
	for _, l := range v.lines {
		if q.lines == nil || q.lines(l.line) {
			g.Go(func() error { return a.findIn(gctx, v, l, q, f) })
		}
	}
	if err := g.Wait(); err != nil {
		return f.rows, err
	}
	if v.fault != nil {
		f.faults = append(f.faults, v.fault)
	}
	return f.rows, errors.Join(f.faults...)
}

// found collects what lines have.
type found struct {
	mu     sync.Mutex
	rows   []*Row
	faults []error
}

func (f *found) add(rows []*Row, faults []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows, f.faults = append(f.rows, rows...), append(f.faults, faults...)
}

// findIn looks through one line, by as many snapshots as it takes.
func (a *Archive) findIn(ctx context.Context, v *view, l *lineView, q lookup, into *found) error {
	missed := map[string]bool{}
	for s, err := l.current(); ; s, err = l.after(ctx, s) {
		switch {
		case err != nil && errors.Is(err, ErrTampered):
			into.add(nil, []error{err})
			return nil
		case err != nil:
			return err
		}
		f := &finder{a: a, l: l, q: q, show: a.shower(v, l.line, q.match), missed: missed}
		err = f.snapshot(ctx, s)
		if err == nil {
			into.add(f.rows, f.faults)
			return nil
		}
		if !errors.Is(err, archive.ErrNotFound) {
			return err
		}
	}
}

// A finder looks through one snapshot.
type finder struct {
	a      *Archive
	l      *lineView
	q      lookup
	show   *shower
	missed map[string]bool
	rows   []*Row
	faults []error
}

func (f *finder) snapshot(ctx context.Context, s *archive.Snapshot) error {
	segments, err := f.l.segments(ctx, s)
	if err != nil {
		return err
	}
	w := &walker{a: f.a, l: f.l, ask: ask{tenant: f.q.tenant}, missed: f.missed}
	for p, err := range aheadWithin(ctx, f.pieces(s, segments), segmentsParallel, f.a.o.Memory, func(p *piece) int64 { return p.size }, w.fetch) {
		if err != nil {
			return err
		}
		if p.gone != nil {
			err = p.gone
		} else {
			err = f.piece(p)
		}
		if err != nil {
			f.faults = append(f.faults, err)
		}
	}
	return nil
}

func (f *finder) pieces(s *archive.Snapshot, segments []*segment) (all []*piece) {
	for i := range s.Files {
		file := &s.Files[i]
		if f.q.tenant != "" && file.Tenant != f.q.tenant || f.q.skips != nil && f.q.skips(file.FirstSeq, file.LastSeq+1) {
			continue
		}
		all = append(all, &piece{key: file.Key, size: file.Bytes, file: file})
	}
	for _, seg := range segments {
		switch {
		case seg.err != nil:
			f.faults = append(f.faults, seg.err)
		case f.mayHave(seg):
			all = append(all, &piece{key: seg.key, size: seg.size, seg: seg})
		}
	}
	return all
}

func (f *finder) mayHave(seg *segment) bool {
	if f.q.tenant == "" {
		return true
	}
	l := seg.log(f.q.tenant)
	return l != nil && (f.q.skips == nil || !f.q.skips(l.FirstSeq, l.FirstSeq+l.Rows))
}

// piece takes what an object has.
func (f *finder) piece(p *piece) error {
	f.a.tell("%s", p.key)
	scheme := ""
	if p.file != nil {
		file, meta, err := archive.OpenDataFile(p.body, p.file)
		if err != nil {
			return tampered("%w", err)
		}
		scheme = meta.Scheme
		return f.take(p.key, file.Rows(), func(tenant string) string {
			if tenant != p.file.Tenant {
				return ""
			}
			return scheme
		})
	}
	file, err := archive.OpenForeignSegment(p.body)
	if err != nil {
		return tampered("%s: %w", p.key, err)
	}
	return f.take(p.key, file.Rows(), func(tenant string) string {
		if l := p.seg.log(tenant); l != nil {
			return l.Scheme
		}
		return ""
	})
}

func (f *finder) take(key string, rows func(func(*chain.Row, error) bool), scheme func(tenant string) string) error {
	for row, err := range rows {
		if err != nil {
			return tampered("%s: %w", key, err)
		}
		s := scheme(row.TenantID.S)
		switch {
		case s == "":
			return tampered("%s: it has a row of tenant %.80q, and says that it has none", key, row.TenantID.S)
		case f.q.tenant != "" && row.TenantID.S != f.q.tenant:
			continue
		}
		shown, err := f.show.show(row, s, key)
		if err != nil {
			f.faults = append(f.faults, err)
			continue
		}
		if shown != nil {
			shown.keep()
			f.rows = append(f.rows, shown)
		}
	}
	return nil
}

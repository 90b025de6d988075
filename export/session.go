package export

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A Page is which rows of a session are asked for.
type Page struct {
	Limit  int    // rows; 0 means [DefaultLimit]
	Before string // a ULID: rows whose [Row.Cursor] is less; "" means from the newest on
}

// DefaultLimit is how many rows a page has where nothing else is said.
const DefaultLimit = 100

// Session returns rows of a session, the newest first: by record_id, rows without
// one by their time. Where several rows have the [Row.Cursor] of the last one, all
// of them are returned, so that a page may have more rows than the limit, and the
// next one begins before the last one's.
//
// It opens the end of each data file of the tenant, which also tells nearly always
// whether the session is in it, then reads those that may have newer rows first,
// and none that cannot have any of the page. Errors are those of [Archive.Turn].
func (a *Archive) Session(ctx context.Context, tenant, session string, p Page) ([]*Row, error) {
	if p.Limit <= 0 {
		p.Limit = DefaultLimit
	}
	p.Limit, p.Before = min(p.Limit, math.MaxInt32/8), strings.ToUpper(p.Before)
	q := &lookup{tenant: tenant, by: by("session_id", session), match: func(row *chain.Row) bool {
		return has(row.SessionID, session) && (p.Before == "" || (&Row{Row: *row}).Cursor() < p.Before)
	}}
	missed := &missing{}
	for {
		s := &sessionReader{a: a, v: a.view.Load(), q: q, page: p, missed: missed}
		err := s.read(ctx)
		if errors.Is(err, archive.ErrNotFound) && s.at != nil {
			// Compaction went on: all of it once more, for rows may have moved.
			if _, err = s.at.l.after(ctx, s.at.s); err == nil || errors.Is(err, ErrTampered) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		return s.found.rows, errors.Join(append(s.found.faults, s.v.fault)...)
	}
}

// A sessionReader reads one page.
type sessionReader struct {
	a      *Archive
	v      *view
	q      *lookup
	page   Page
	missed *missing
	found  looked
	at     *sessionPiece // what is read now
}

// A sessionPiece is an object that may have rows of the page.
type sessionPiece struct {
	*piece
	l *lineView
	s *archive.Snapshot
	// No row of it has a greater cursor; "" where none of it is less than
	// [Page.Before].
	newest string
}

func (s *sessionReader) read(ctx context.Context) error {
	pieces, err := s.pieces(ctx)
	if err != nil {
		return err
	}
	if pieces, err = s.bound(ctx, pieces); err != nil {
		return err
	}
	slices.SortStableFunc(pieces, func(a, b *sessionPiece) int { return -cmp.Compare(a.newest, b.newest) })
	for _, p := range pieces {
		if s.full() && s.found.rows[s.page.Limit-1].Cursor() > p.newest {
			break
		}
		s.at = p
		if err := s.a.look(ctx, s.v, p.l, s.q, p.piece, s.missed, s.add); err != nil {
			return err
		}
		s.trim()
	}
	return nil
}

// add takes a row. Of a long session no more are held than some pages.
func (s *sessionReader) add(row *Row, err error) bool {
	s.found.add(row, err)
	if len(s.found.rows) > 4*s.page.Limit+1000 {
		s.trim()
	}
	return true
}

func (s *sessionReader) full() bool { return len(s.found.rows) >= s.page.Limit }

// trim keeps the rows of the page, with all that stand where the last one does.
func (s *sessionReader) trim() {
	rows, faults := once(s.found.rows)
	s.found.rows, s.found.faults = rows, append(s.found.faults, faults...)
	slices.SortFunc(rows, newestFirst)
	if !s.full() {
		return
	}
	end := s.page.Limit
	for end < len(rows) && rows[end].Cursor() == rows[s.page.Limit-1].Cursor() {
		end++
	}
	clear(rows[end:])
	s.found.rows = rows[:end]
}

// pieces lists the objects of all lines that have the tenant.
func (s *sessionReader) pieces(ctx context.Context) (all []*sessionPiece, err error) {
	for _, l := range s.v.lines {
		err := l.steady(ctx, s.q.tenant, func(snap *archive.Snapshot) error {
			pieces, faults, err := s.a.candidates(ctx, l, s.q, snap)
			if err != nil {
				return err
			}
			for _, p := range pieces {
				all = append(all, &sessionPiece{piece: p, l: l, s: snap})
			}
			s.found.faults = append(s.found.faults, faults...)
			return nil
		}, func(err error) error { s.found.faults = append(s.found.faults, err); return nil })
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// bound finds out how new the rows of each piece can be, and drops those that have
// none of the page.
func (s *sessionReader) bound(ctx context.Context, pieces []*sessionPiece) (all []*sessionPiece, err error) {
	for p, err := range ahead(ctx, pieces, piecesParallel, func(ctx context.Context, p *sessionPiece) (*sessionPiece, error) {
		r, err := s.a.remote(ctx, p.key, p.size)
		err = s.missed.met(p.piece, err)
		switch {
		case err == nil:
			p.newest = newestCursor(p.piece, r, s.page.Before)
		case errors.Is(err, ErrTampered):
			p.newest, err = lastCursor, nil // it says so itself once it is read
		}
		return p, err
	}) {
		if s.at = p; err != nil {
			return nil, err
		}
		if p.newest != "" {
			all = append(all, p)
		}
	}
	return all, nil
}

// lastCursor is not less than any.
const lastCursor = "~"

// newestCursor returns what no [Row.Cursor] of a piece is above, by the bounds that
// it states; "" where none is less than before.
func newestCursor(p *piece, r *parquet.Remote, before string) string {
	low, high, nulls, ok := r.Bounds("record_id")
	switch {
	case ok && nulls == 0:
		if before != "" && low >= before {
			return ""
		}
		return high
	case !ok && nulls < r.NumRows(), p.file == nil:
		return lastCursor
	}
	// Rows without a record_id stand by created_at, or archived_at.
	if f := p.file; f.MaxCreatedAt != nil {
		high = max(high, ulidAt(f.MaxCreatedAt.UnixMicro()))
	}
	if _, end, ok := dayOf(p.file); ok {
		return max(high, ulidAt(end))
	}
	return lastCursor
}

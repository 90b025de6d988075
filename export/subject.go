package export

import (
	"context"
	"errors"
	"iter"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// Subject yields all rows of a person in all logs: those of the user id, and
// rejected rows that hold it, plain or escaped (see [control.Mentions]). tenant ""
// means all tenants. They come line by line, those of each log in the order of its
// chain. Of an object those parts are read that may have some; one row that does
// not check does not end its log.
func (a *Archive) Subject(ctx context.Context, tenant, user string) iter.Seq2[*Row, error] {
	scope := control.Scope{User: &user}
	q := &lookup{tenant: tenant, match: scope.Holds, by: []parquet.Match{{parquet.Is("user_id", user)}, {parquet.Is("kind", audit.KindRejected)}}}
	return func(yield func(*Row, error) bool) {
		v := a.view.Load()
		for _, l := range v.lines {
			s := &subjectReader{a: a, v: v, l: l, q: q, missed: &missing{}, next: map[string]int64{}, yield: yield}
			err := l.steady(ctx, q.tenant, func(snap *archive.Snapshot) error { return s.read(ctx, snap) }, s.fault)
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
		if v.fault != nil {
			yield(nil, v.fault)
		}
	}
}

// A subjectReader goes along one line.
type subjectReader struct {
	a      *Archive
	v      *view
	l      *lineView
	q      *lookup
	missed *missing
	next   map[string]int64 // by tenant: rows in front of it were looked at
	yield  func(*Row, error) bool
}

func (s *subjectReader) fault(err error) error {
	if !s.yield(nil, err) {
		return errStop
	}
	return nil
}

func (s *subjectReader) read(ctx context.Context, snap *archive.Snapshot) error {
	pieces, faults, err := s.a.candidates(ctx, s.l, s.q, snap)
	if err != nil {
		return err
	}
	for _, err := range faults {
		if s.missed.new(err) {
			if err := s.fault(err); err != nil {
				return err
			}
		}
	}
	// The ends are read ahead: most objects have nothing of a person.
	open := func(ctx context.Context, p *piece) (*piece, error) {
		_, err := s.a.remote(ctx, p.key, p.size)
		if errors.Is(err, ErrTampered) {
			err = nil // it says so again when it is looked into
		}
		return p, s.missed.met(p, err)
	}
	for p, err := range ahead(ctx, pieces, piecesParallel, open) {
		if err != nil && !errors.Is(err, ErrTampered) {
			return err
		}
		if err := s.piece(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// piece yields what an object has that was not yielded before.
func (s *subjectReader) piece(ctx context.Context, p *piece) error {
	if !s.ahead(p) {
		return nil
	}
	err := s.a.look(ctx, s.v, s.l, s.q, p, s.missed, func(row *Row, err error) bool {
		if err != nil {
			return s.yield(nil, err)
		}
		tenant := row.TenantID.S
		if row.Seq.N < s.next[tenant] {
			return true
		}
		s.next[tenant] = row.Seq.N + 1
		return s.yield(row, nil)
	})
	if err != nil {
		return err
	}
	if f := p.file; f != nil {
		s.next[f.Tenant] = max(s.next[f.Tenant], f.LastSeq+1)
		return nil
	}
	for i := range p.seg.logs {
		l := &p.seg.logs[i]
		s.next[l.Tenant] = max(s.next[l.Tenant], l.FirstSeq+l.Rows)
	}
	return nil
}

// ahead reports whether a piece has rows that were not looked at.
func (s *subjectReader) ahead(p *piece) bool {
	if f := p.file; f != nil {
		return f.LastSeq >= s.next[f.Tenant]
	}
	for i := range p.seg.logs {
		l := &p.seg.logs[i]
		if (s.q.tenant == "" || l.Tenant == s.q.tenant) && l.FirstSeq+l.Rows > s.next[l.Tenant] {
			return true
		}
	}
	return false
}

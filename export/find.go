package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// piecesParallel is how many objects of a line a look-up reads parts of at once.
const piecesParallel = 8

// lookBytes is what a look into one object holds of it, at most, as a rule: see
// [parquet.Remote.Find].
const lookBytes = 17 << 20

// A lookup is which few rows are asked for.
type lookup struct {
	tenant string                      // "" means any
	lines  func(archive.Line) bool     // nil: all
	skips  func(first, end int64) bool // the rows of a log in an object, by seq; nil: none is skipped
	by     []parquet.Match             // how they are found; the tenant is added
	match  func(*chain.Row) bool       // what may be shown of one is still asked for
}

// matches returns by what rows are found in a piece.
func (q *lookup) matches(p *piece) []parquet.Match {
	if p.file != nil || q.tenant == "" {
		return q.by
	}
	var all []parquet.Match
	for _, m := range q.by {
		all = append(all, append(slices.Clone(m), parquet.Is("tenant_id", q.tenant)))
	}
	return all
}

// find returns the rows that are asked for, in no order. Errors that match
// [ErrTampered] are of some object: the others were looked through.
func (a *Archive) find(ctx context.Context, q lookup) ([]*Row, error) {
	v := a.view.Load()
	f := &found{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(linesParallel)
	for _, l := range v.lines {
		if q.lines == nil || q.lines(l.line) {
			g.Go(func() error { return a.findIn(gctx, v, l, &q, f) })
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	rows, faults := once(f.rows)
	return rows, errors.Join(append(append(f.faults, faults...), v.fault)...)
}

// once returns rows without those that come again, as they do where somebody copied
// one, and what is wrong: two that differ in one place.
func once(rows []*Row) (all []*Row, faults []error) {
	slices.SortStableFunc(rows, (*Row).Place)
	for _, r := range rows {
		if n := len(all); n > 0 && all[n-1].Place(r) == 0 {
			if all[n-1].RowHash != r.RowHash {
				faults = append(faults, faultAt(r.Key, &r.Row, fmt.Errorf("another row stands in the same place in %s", all[n-1].Key)))
			}
			continue
		}
		all = append(all, r)
	}
	return all, faults
}

// found collects what lines have.
type found struct {
	mu     sync.Mutex
	rows   []*Row
	faults []error
}

func (f *found) add(rows []*Row, faults ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows, f.faults = append(f.rows, rows...), append(f.faults, faults...)
}

// findIn looks through one line, by as many snapshots as it takes.
func (a *Archive) findIn(ctx context.Context, v *view, l *lineView, q *lookup, into *found) error {
	missed := &missing{}
	return l.steady(ctx, q.tenant, func(s *archive.Snapshot) error {
		pieces, faults, err := a.candidates(ctx, l, q, s)
		if err != nil {
			return err
		}
		var rows []*Row
		for found, err := range ahead(ctx, pieces, piecesParallel, func(ctx context.Context, p *piece) (*looked, error) {
			f := &looked{}
			weight := min(p.size, lookBytes, a.o.Memory)
			if err := a.held.Acquire(ctx, weight); err != nil {
				return f, err
			}
			defer a.held.Release(weight)
			return f, a.look(ctx, v, l, q, p, missed, f.add)
		}) {
			if err != nil {
				return err
			}
			rows, faults = append(rows, found.rows...), append(faults, found.faults...)
		}
		into.add(rows, faults...)
		return nil
	}, func(err error) error { into.add(nil, err); return nil })
}

// steadyTries bounds how often a line is read again because compaction went on.
const steadyTries = 20

// steady does what reads a line by a snapshot, and does it again by a newer one
// where something of it was gone, for compaction went on. What is wrong with the
// line as a whole, or missing of the logs of a tenant ("" for all), is given to
// broken.
func (l *lineView) steady(ctx context.Context, tenant string, read func(*archive.Snapshot) error, broken func(error) error) error {
	s, err := l.current()
	for try := 1; ; try++ {
		if errors.Is(err, ErrTampered) {
			return broken(err)
		}
		if err != nil {
			return err
		}
		err = read(s)
		if err == nil {
			break
		}
		if !errors.Is(err, archive.ErrNotFound) || try == steadyTries {
			return err
		}
		s, err = l.after(ctx, s)
	}
	for _, fault := range l.missing(tenant) {
		if err := broken(fault); err != nil {
			return err
		}
	}
	return nil
}

// missing remembers which objects were gone, and which faults were told. An object
// that a newer snapshot still names is missing for good.
type missing struct {
	mu   sync.Mutex
	keys map[string]bool
	told map[string]bool
}

// new reports whether a fault was not told before, by an older snapshot.
func (m *missing) new(err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told == nil {
		m.told = map[string]bool{}
	}
	was := m.told[err.Error()]
	m.told[err.Error()] = true
	return !was
}

// met notes an error of reading a piece, and returns what it means: an error that
// matches [ErrTampered] where the piece is lost, else the error itself.
func (m *missing) met(p *piece, err error) error {
	if !errors.Is(err, archive.ErrNotFound) || errors.Is(err, ErrTampered) {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys[p.key] {
		return tampered("the archive as it is now has it, and it is missing or another one: restore it: %v", err)
	}
	if m.keys == nil {
		m.keys = map[string]bool{}
	}
	m.keys[p.key] = true
	return err
}

// looked is what was found in one object, in its order.
type looked struct {
	rows   []*Row
	faults []error
}

func (f *looked) add(row *Row, err error) bool {
	if err != nil {
		f.faults = append(f.faults, err)
		return true
	}
	row.keep()
	f.rows = append(f.rows, row)
	return true
}

// candidates lists the objects of a snapshot that can have rows, by what catalog
// and segments say of tenants, and what is wrong with others. They come as
// [Snapshot] has them.
func (a *Archive) candidates(ctx context.Context, l *lineView, q *lookup, s *archive.Snapshot) (all []*piece, faults []error, err error) {
	segments, err := l.segments(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	for i := range s.Files {
		f := &s.Files[i]
		if (q.tenant == "" || f.Tenant == q.tenant) && (q.skips == nil || !q.skips(f.FirstSeq, f.LastSeq+1)) {
			all = append(all, &piece{key: f.Key, size: f.Bytes, file: f})
		}
	}
	for _, seg := range segments {
		switch {
		case seg.err != nil:
			faults = append(faults, seg.err)
		case q.mayBeIn(seg):
			all = append(all, &piece{key: seg.key, size: seg.size, seg: seg})
		}
	}
	return all, faults, nil
}

func (q *lookup) mayBeIn(seg *segment) bool {
	for i := range seg.logs {
		l := &seg.logs[i]
		if (q.tenant == "" || l.Tenant == q.tenant) && (q.skips == nil || !q.skips(l.FirstSeq, l.FirstSeq+l.Rows)) {
			return true
		}
	}
	return false
}

// emit is given a row that was found, or what is wrong with one or with all of an
// object, and returns false where that is enough.
type emit func(*Row, error) bool

// maxFaults is how many rows of one object, at most, are told of that do not check.
const maxFaults = 100

// look finds rows in an object. An error is the store's, or [errStop]; where it
// matches [archive.ErrNotFound], a newer snapshot is to be taken.
func (a *Archive) look(ctx context.Context, v *view, l *lineView, q *lookup, p *piece, missed *missing, emit emit) error {
	n, faults := 0, 0
	counted := func(row *Row, err error) bool {
		if err != nil {
			faults++
		}
		return faults <= maxFaults && emit(row, err)
	}
	err := a.lookInto(ctx, v, l, q, p, func(row *Row, err error) bool { n++; return counted(row, err) })
	if errors.Is(err, parquet.ErrWhole) {
		err = a.lookThrough(ctx, v, l, q, p, func(row *Row, err error) bool {
			if n--; n >= 0 {
				return true // it was emitted before
			}
			return counted(row, err)
		})
	}
	if faults > maxFaults {
		err = tampered("%s: more than %d of its rows do not check: those behind them were not looked at", p.key, maxFaults)
	}
	if err = missed.met(p, err); errors.Is(err, ErrTampered) {
		if !emit(nil, err) {
			return errStop
		}
		err = nil
	}
	return err
}

// lookInto reads the parts of an object that may have the rows.
func (a *Archive) lookInto(ctx context.Context, v *view, l *lineView, q *lookup, p *piece, emit emit) error {
	a.tell("%s", p.key)
	r, err := a.remote(ctx, p.key, p.size)
	if err != nil {
		return err
	}
	text, _ := r.Metadata()
	var whole *archive.DataFile
	if p.file != nil {
		if whole, err = p.file.Metadata(text, r.NumRows()); err != nil {
			return tampered("%w", err)
		}
	}
	show := a.shower(v, l.line, q.match)
	for row, err := range r.Find(ctx, q.matches(p)...) {
		if err != nil {
			return readFault(p.key, err)
		}
		if !show.found(p, row, whole, emit) {
			return errStop
		}
	}
	return nil
}

// lookThrough reads an object whole, where another writer made it.
func (a *Archive) lookThrough(ctx context.Context, v *view, l *lineView, q *lookup, p *piece, emit emit) error {
	body, err := a.src.Get(ctx, p.key)
	if err != nil {
		return readFault(p.key, err)
	}
	var file *parquet.File
	var whole *archive.DataFile
	if p.file != nil {
		file, whole, err = archive.OpenDataFile(body, p.file)
	} else {
		file, err = archive.OpenForeignSegment(body)
	}
	if err != nil {
		return tampered("%s: %w", p.key, err)
	}
	show := a.shower(v, l.line, q.match)
	for row, err := range file.Rows() {
		if err != nil {
			return tampered("%s: %w", p.key, err)
		}
		if (q.tenant == "" || row.TenantID.S == q.tenant || p.file != nil) && q.match(row) && !show.found(p, row, whole, emit) {
			return errStop
		}
	}
	return nil
}

// found emits a row that was found in a piece. One that does not check is a fault
// of its own: the others may be right.
func (s *shower) found(p *piece, row *chain.Row, whole *archive.DataFile, emit emit) bool {
	scheme, of := p.says(row.TenantID.S, row.Seq.N, whole)
	if scheme == "" {
		return emit(nil, faultAt(p.key, row, errors.New("the object says that it has no such row")))
	}
	if err := of.Check(row); err != nil {
		return emit(nil, faultAt(p.key, row, err))
	}
	shown, err := s.show(row, scheme, p.key)
	if shown == nil && err == nil {
		return true
	}
	return emit(shown, err)
}

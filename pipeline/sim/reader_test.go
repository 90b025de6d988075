package sim_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// look starts a process that reads a line once, as every reader does: a snapshot,
// then its objects, in its own time.
func (w *world) look() {
	l := w.lines[w.dice.IntN(len(w.lines))]
	n := w.started("r")
	p := w.newProcess(fmt.Sprintf("r%d", n), n)
	p.compacts = true
	p.reads = true
	w.run(p, func(ctx context.Context) error { return p.look(ctx, l) })
}

// look reads a line until one try goes through.
func (p *process) look(ctx context.Context, l *line) error {
	for ctx.Err() == nil {
		begun, had := time.Now(), p.w.sizes(l)
		got, err := p.readLine(ctx, l)
		switch age := time.Since(begun); {
		case p.dead.Load() || ctx.Err() != nil:
			return nil
		case errors.Is(err, archive.ErrNotFound) && age < p.w.plan.grace-time.Second:
			p.w.fail("%s reads a snapshot of %s that is %v old: %v", p.name, p.w.name(l.Line), age, err)
			return err
		case errors.Is(err, errInvisible):
			p.w.fail("%s reads %s: %v", p.name, p.w.name(l.Line), err)
			return err
		case err == nil:
			p.w.count("line-read")
			return p.compareSizes(l, had, got)
		}
		p.say("reads %s again: %v", p.w.name(l.Line), err)
		if sleep(ctx, time.Second) != nil {
			return nil
		}
	}
	return nil
}

var errInvisible = errors.New("rows are invisible, or other ones")

// sizes returns how many rows each log has.
func (w *world) sizes(l *line) map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int64{}
	for tenant, log := range l.logs {
		out[tenant] = int64(len(log))
	}
	return out
}

// readLine reads all that a snapshot names, and returns the size of each log.
func (p *process) readLine(ctx context.Context, l *line) (map[string]int64, error) {
	src := &store{p}
	s, err := archive.ReadSnapshot(ctx, src, l.Line, nil)
	if err != nil {
		return nil, err
	}
	next := map[string]int64{}
	if s.Catalog != nil {
		for _, c := range s.Catalog.Cuts {
			next[c.Tenant] = c.Size
		}
	}
	for i := range s.Files {
		f := &s.Files[i]
		body, err := src.Get(ctx, f.Key)
		if err != nil {
			return nil, err
		}
		file, _, err := archive.OpenDataFile(body, f)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errInvisible, err)
		}
		if err := p.w.readRows(l, file, next); err != nil {
			return nil, err
		}
	}
	for _, o := range s.Segments {
		n, _ := archive.ParseSegmentKey(o.Key)
		if l.forged >= 0 && n.Ordinal >= l.forged {
			break
		}
		body, err := src.Get(ctx, o.Key)
		if err != nil {
			return nil, err
		}
		file, err := parquet.Open(body)
		if err != nil {
			return nil, err
		}
		if err := p.w.readRows(l, file, next); err != nil {
			return nil, fmt.Errorf("%s: %w", short(o.Key), err)
		}
	}
	return next, nil
}

// readRows requires that the rows of an object are the next ones of their logs.
func (w *world) readRows(l *line, file *parquet.File, next map[string]int64) error {
	rows, err := rowsOf(file)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range rows {
		r := &rows[i]
		log, at := l.logs[r.TenantID.S], next[r.TenantID.S]
		switch {
		case r.Seq.N < at && at > 0 && l.begins(r.TenantID.S) > r.Seq.N:
			continue // it was cut, and stands in a segment still
		case r.Seq.N != at:
			return fmt.Errorf("%w: the log of %s goes on with seq %d, not %d", errInvisible, r.TenantID.S, r.Seq.N, at)
		case at >= int64(len(log)) || log[at].row.RowHash != r.RowHash:
			return fmt.Errorf("%w: seq %d of %s is not what was archived", errInvisible, at, r.TenantID.S)
		}
		next[r.TenantID.S] = at + 1
	}
	return nil
}

// compareSizes requires that a reader has seen all that was there before.
func (p *process) compareSizes(l *line, had, got map[string]int64) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	for tenant, n := range had {
		if got[tenant] < n {
			p.w.failLocked("%s sees %d rows of %s in %s, and %d are acknowledged", p.name, got[tenant], tenant, p.w.name(l.Line), n)
		}
	}
	return nil
}

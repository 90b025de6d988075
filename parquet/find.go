package parquet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/chain"
)

// lookUp finds the rows in the first of some row groups, as many of these as fit
// into keyBytes, and returns how many they were.
func (f *finder) lookUp(groups []*groupFind) (n int, err error) {
	defer caught(&err)
	var spans []Span
	size := int64(0)
	for _, g := range groups {
		more := []Span{}
		for i, m := range g.matches {
			pages, err := f.keyPages(g, f.any[m])
			if err != nil {
				return 0, err
			}
			g.keys = append(g.keys[:i:i], pages)
			for _, p := range pages {
				more = append(more, p.span)
			}
		}
		for _, s := range more {
			size += s.Size
		}
		if n > 0 && size > keyBytes {
			break
		}
		spans, n = append(spans, more...), n+1
	}
	if err := f.parts.fetch(f.ctx, spans, 2, keyBytes); err != nil {
		return 0, err
	}
	for _, g := range groups[:n] {
		if err := f.look(g); err != nil {
			return 0, fmt.Errorf("row group %d: %w", g.index, err)
		}
	}
	return n, nil
}

// index reads the offset indexes of row groups, and the column indexes of keys.
func (f *finder) index(groups []*groupFind) error {
	var spans []Span
	for _, g := range groups {
		all := f.file.meta.RowGroups[g.index].Columns
		for j := range all {
			s, err := f.span("offset index", max(all[j].OffsetIndexOffset, int64(len(magic))), int64(all[j].OffsetIndexLength))
			if err != nil {
				return err
			}
			spans = append(spans, s)
		}
		for _, m := range g.matches {
			if len(f.any[m]) == 0 || f.leaf(f.any[m][0].column) < 0 {
				continue
			}
			c := &all[f.leaf(f.any[m][0].column)]
			s, err := f.span("column index", max(c.ColumnIndexOffset, int64(len(magic))), int64(c.ColumnIndexLength))
			if err != nil {
				return err
			}
			spans = append(spans, s)
		}
	}
	return f.parts.fetch(f.ctx, spans, 1, 4<<20)
}

// locate finds out where the pages of a row group are.
func (f *finder) locate(g *groupFind) error {
	if g.chunks != nil {
		return nil
	}
	group := &f.file.meta.RowGroups[g.index]
	g.chunks = make([]*pieces, len(f.file.leaves))
	for j := range f.file.leaves {
		l, c := &f.file.leaves[j], &group.Columns[j]
		if l.column < 0 || nulls(l, &c.MetaData) {
			continue
		}
		if c.OffsetIndexLength == 0 {
			g.chunks[j] = wholeChunk(l, &c.MetaData, group.NumRows)
			continue
		}
		b, err := f.parts.must(Span{Offset: c.OffsetIndexOffset, Size: int64(c.OffsetIndexLength)})
		if err == nil {
			g.chunks[j], err = readPieces(b, l, &c.MetaData, group.NumRows)
		}
		if err != nil {
			return fmt.Errorf("row group %d: column %s: %w", g.index, l.path, err)
		}
	}
	return nil
}

// keyPages returns where the first condition of a match may hold.
func (f *finder) keyPages(g *groupFind, m Match) (pages []rowPage, err error) {
	if err := f.locate(g); err != nil {
		return nil, err
	}
	rows := f.file.meta.RowGroups[g.index].NumRows
	everywhere := []rowPage{{rows: interval{0, rows - 1}}}
	if len(m) == 0 {
		return everywhere, nil
	}
	at := f.leaf(m[0].column)
	if at < 0 || g.chunks[at] == nil {
		return everywhere, nil // where all are null
	}
	chunk := g.chunks[at]
	x, err := f.bounds(g, at, len(chunk.all))
	if err != nil {
		return nil, err
	}
	for i, p := range chunk.all {
		if x == nil || x.may(i, &m[0]) {
			pages = append(pages, rowPage{rows: interval{p.first, p.end - 1}, span: p.Span})
		}
	}
	if len(pages) > 0 && chunk.dict.Size > 0 {
		pages = append([]rowPage{{rows: interval{0, -1}, span: chunk.dict}}, pages...)
	}
	return pages, nil
}

// bounds reads the column index of a chunk; nil: it has none that fits.
func (f *finder) bounds(g *groupFind, leaf, pages int) (*columnIndex, error) {
	c := &f.file.meta.RowGroups[g.index].Columns[leaf]
	if c.ColumnIndexLength == 0 || g.chunks[leaf].whole {
		return nil, nil
	}
	b, err := f.parts.must(Span{Offset: c.ColumnIndexOffset, Size: int64(c.ColumnIndexLength)})
	if err != nil {
		return nil, err
	}
	r, x := thriftReader{b: b}, new(columnIndex)
	x.read(&r)
	if err := r.whole(); err != nil {
		return nil, fmt.Errorf("column index: %w", err)
	}
	if x.pages != pages || len(x.low) != pages || len(x.high) != pages {
		return nil, fmt.Errorf("column index of %d pages, there are %d", x.pages, pages)
	}
	return x, nil
}

// may reports whether page i may have a value for which the condition holds.
func (x *columnIndex) may(i int, c *Cond) bool {
	switch {
	case c.null:
		return x.nullPages[i] || len(x.nulls) != x.pages || x.nulls[i] != 0
	case x.nullPages[i]:
		return false
	default:
		return c.mayLie(x.low[i], x.high[i])
	}
}

// look reads the pages of keys of a row group, and keeps which rows they leave.
func (f *finder) look(g *groupFind) error {
	var rows []interval
	for i, m := range g.matches {
		for _, p := range g.keys[i] {
			if len(f.any[m]) == 0 || f.keyless(g, f.any[m]) {
				rows = append(rows, p.rows)
			}
		}
		if len(f.any[m]) == 0 || f.keyless(g, f.any[m]) {
			continue
		}
		found, err := f.lookIn(g, g.keys[i], &f.any[m][0])
		if err != nil {
			return err
		}
		rows = append(rows, found...)
	}
	g.rows, g.keys = union(rows), nil
	return nil
}

// keyless reports whether the column of the first condition is null everywhere.
func (f *finder) keyless(g *groupFind, m Match) bool {
	at := f.leaf(m[0].column)
	return at < 0 || g.chunks[at] == nil
}

// lookIn returns the rows for which a condition holds.
func (f *finder) lookIn(g *groupFind, pages []rowPage, cond *Cond) (found []interval, err error) {
	c := newCursor(&f.parts, g.chunks[f.leaf(cond.column)])
	defer c.close()
	for _, p := range pages {
		for at := p.rows.first; at <= p.rows.last; {
			rows := f.batch[:min(int64(len(f.batch)), p.rows.last-at+1)]
			if err := c.guard(func() error { return c.fillAt(rows, at) }); err != nil {
				return nil, err
			}
			for i := range rows {
				if cond.holds(&rows[i]) {
					found = appendRow(found, at+int64(i))
				}
			}
			at += int64(len(rows))
		}
	}
	return found, nil
}

// appendRow appends a row behind others.
func appendRow(all []interval, row int64) []interval {
	if n := len(all); n > 0 && all[n-1].last == row-1 {
		all[n-1].last = row
		return all
	}
	return append(all, interval{row, row})
}

// union returns the rows that are in one of the intervals, in order.
func union(all []interval) []interval {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	n := 0
	for _, i := range all {
		if n > 0 && i.first <= all[n-1].last+1 {
			all[n-1].last = max(all[n-1].last, i.last)
			continue
		}
		all[n] = i
		n++
	}
	return all[:n]
}

// A portion is rows that are read at once.
type portion struct {
	rows  []groupRows
	spans []Span
	size  int64
	taken []int // by leaf: the piece that was taken last, from 1; 0: none of the group
}

// groupRows are rows of one row group.
type groupRows struct {
	*groupFind
	rows []interval
}

// read yields rows of row groups: at once, where what is left of mostBytes has room
// for their pages, else portion after portion.
func (f *finder) read(groups []*groupFind) error {
	var all []*portion
	split(groups, max(mostBytes-f.parts.read-roomForGaps, pageBytes), func(p *portion) bool {
		all = append(all, p)
		return len(all) < 2
	})
	switch len(all) {
	case 0:
		return nil
	case 1:
		return f.readPortion(all[0])
	}
	var err error
	split(groups, pageBytes, func(p *portion) bool {
		err = f.readPortion(p)
		return err == nil && !f.done
	})
	return err
}

// split makes portions of the rows of row groups, of no more than most bytes unless
// a single row has more, and gives them to do until that has enough.
func split(groups []*groupFind, most int64, do func(*portion) bool) {
	p := new(portion)
	for _, g := range groups {
		p.enter(g)
		for _, rows := range g.rows {
			for at := rows.first; at <= rows.last; {
				last, more := p.step(at, rows.last)
				if p.size > 0 && p.size+more > most {
					if !do(p) {
						return
					}
					p = new(portion)
					p.enter(g)
					continue
				}
				p.take(interval{at, last})
				at = last + 1
			}
		}
	}
	if len(p.spans) > 0 {
		do(p)
	}
}

// enter goes on with a row group.
func (p *portion) enter(g *groupFind) {
	p.rows = append(p.rows, groupRows{groupFind: g})
	p.taken = make([]int, len(g.chunks))
}

// step returns how far the pieces reach which row at needs, and how many bytes
// they add.
func (p *portion) step(at, last int64) (_, size int64) {
	g := &p.rows[len(p.rows)-1]
	for j, c := range g.chunks {
		if c == nil {
			continue
		}
		i := c.with(at)
		last = min(last, c.all[i].end-1)
		if p.taken[j] == 0 {
			size += c.dict.Size
		}
		if p.taken[j] != i+1 {
			size += c.all[i].Size
		}
	}
	return last, size
}

// take adds rows that lie in one piece of each column.
func (p *portion) take(rows interval) {
	g := &p.rows[len(p.rows)-1]
	add := func(s Span) {
		p.spans, p.size = append(p.spans, s), p.size+s.Size
	}
	for j, c := range g.chunks {
		if c == nil {
			continue
		}
		i := c.with(rows.first)
		if p.taken[j] == 0 {
			add(c.dict)
		}
		if p.taken[j] != i+1 {
			add(c.all[i].Span)
		}
		p.taken[j] = i + 1
	}
	g.rows = append(g.rows, rows)
}

// readPortion reads the pages of some rows, and yields these.
func (f *finder) readPortion(p *portion) error {
	most, limit := mostGets-f.parts.gets, mostBytes-f.parts.read
	if most <= 0 || limit < p.size {
		most, limit = mostGets/2, mostBytes
	}
	have := len(f.parts.have)
	if err := f.parts.fetch(f.ctx, p.spans, most, limit); err != nil {
		return err
	}
	for _, g := range p.rows {
		if err := f.yieldRows(g); err != nil {
			return fmt.Errorf("row group %d: %w", g.index, err)
		}
		if f.done {
			break
		}
	}
	f.parts.forget(have)
	return nil
}

// yieldRows decodes and yields rows of one row group.
func (f *finder) yieldRows(g groupRows) error {
	clear(f.batch)
	var all []*cursor
	defer func() {
		for _, c := range all {
			c.close()
		}
	}()
	for _, c := range g.chunks {
		if c != nil {
			all = append(all, newCursor(&f.parts, c))
		}
	}
	for _, i := range union(g.rows) {
		for at := i.first; at <= i.last; {
			rows := f.batch[:min(int64(len(f.batch)), i.last-at+1)]
			for _, c := range all {
				if err := c.guard(func() error { return c.fillAt(rows, at) }); err != nil {
					return err
				}
			}
			if f.give(rows); f.done {
				return nil
			}
			at += int64(len(rows))
		}
	}
	return nil
}

// give yields those of the rows that are meant.
func (f *finder) give(rows []chain.Row) {
	for i := range rows {
		meant := slices.ContainsFunc(f.any, func(m Match) bool { return m.holds(&rows[i]) })
		if meant && !f.yield(&rows[i], nil) {
			f.done = true
			return
		}
	}
}

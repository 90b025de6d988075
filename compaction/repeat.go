package compaction

import (
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// repeats marks rows that repeat an older one of their log: of equal coordinates,
// and of equal content as far as the older one has any. They are looked for among
// the rows of the window, and in the newest files of the log, of which bloom
// filters tell which may have a turn. What ingest remembers reaches further than a
// window most often; a repeat that neither sees stays unmarked.
func (p *pass) repeats(tenant string, rows []*chain.Row) error {
	if p.e.RepeatFiles < 0 {
		return nil
	}
	w := wanted{first: map[audit.Fingerprint]*chain.Row{}, turns: map[string]bool{}}
	for _, row := range rows {
		w.take(row)
	}
	left := p.e.RepeatFiles
	for _, f := range slices.Backward(p.s.filesOf(tenant)) {
		if left--; left < 0 || f.Bytes > p.looking {
			break
		}
		if p.e.blooms.get(f.Key) == nil {
			if p.asking--; p.asking < 0 {
				break
			}
		}
		if err := p.repeatsIn(&f, &w); err != nil {
			return err
		}
	}
	p.res.Repeats += w.found
	return nil
}

// filesOf returns the files of a log, in order.
func (s *Sight) filesOf(tenant string) []archive.CatalogFile {
	from, _ := slices.BinarySearchFunc(s.Files, tenant, func(f archive.CatalogFile, tenant string) int {
		if f.Tenant < tenant {
			return -1
		}
		return 1
	})
	to := from
	for to < len(s.Files) && s.Files[to].Tenant == tenant {
		to++
	}
	return s.Files[from:to]
}

// wanted are rows of which older ones are looked for: the first of each
// coordinates.
type wanted struct {
	first map[audit.Fingerprint]*chain.Row
	turns map[string]bool
	found int64
}

// take takes the next row, and marks it where it repeats one of the window.
func (w *wanted) take(row *chain.Row) {
	at, ok := row.Coordinates()
	if !ok {
		return
	}
	if first := w.first[at]; first != nil {
		w.match(row, first)
		return
	}
	w.first[at] = row
	if row.TurnID.Valid {
		w.turns[row.TurnID.S] = true
	}
}

// match marks row as a repeat of an older one that has its coordinates, where it
// says the same. What was erased from the older one says nothing any more.
func (w *wanted) match(row, older *chain.Row) {
	if older.RowSalt.Valid && row.ContentHash() != older.ContentHash() {
		return
	}
	row.RepeatOf = audit.I64(older.Seq.N)
	w.found++
}

// repeatsIn looks for older rows in a file.
func (p *pass) repeatsIn(f *archive.CatalogFile, w *wanted) error {
	x, err := p.e.filters(p.ctx, f)
	if err != nil {
		return err
	}
	may := false
	for turn := range w.turns {
		may = may || x.mayHave("turn_id", turn)
	}
	if !may {
		return nil
	}
	p.looking -= f.Bytes
	file, _, err := p.open(f)
	if err != nil {
		return err
	}
	seqs := map[int64]*chain.Row{}
	for row, err := range file.Select(append([]string{"seq"}, audit.CoordinateColumns...)...) {
		if err != nil {
			return halt("%s: %w: restore the object", f.Key, err)
		}
		if at, ok := row.Coordinates(); ok && w.first[at] != nil {
			seqs[row.Seq.N] = w.first[at]
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	for older, err := range file.Rows() {
		if err != nil {
			return halt("%s: %w: restore the object", f.Key, err)
		}
		if row := seqs[older.Seq.N]; row != nil && !row.RepeatOf.Valid {
			w.match(row, older)
		}
	}
	return nil
}

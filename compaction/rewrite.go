package compaction

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// rewrites carries cuts and orders out in the files that there are.
func (p *pass) rewrites() error {
	if err := p.drops(); err != nil {
		return err
	}
	left := p.e.PassBytes
	for i := range p.plan.Look {
		step := &p.plan.Look[i]
		f := p.file(step.Keys[0])
		if p.removed[f.Key] {
			continue // dropped, or written again already
		}
		t := p.tenant(f.Tenant)
		orders := p.ordersOf(t, f.Key, step.Orders)
		if t == nil || len(orders) == 0 {
			continue
		}
		if left < 0 {
			for _, e := range orders {
				e.unread = true
			}
			p.res.More = true
			continue
		}
		n, err := p.lookInto(f, t, orders)
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// ordersOf returns the orders of a step that have not looked into the file yet.
func (p *pass) ordersOf(t *tenant, key string, ids []string) (orders []*entry) {
	if t == nil {
		return nil
	}
	for _, e := range t.entries {
		if !e.open || !slices.Contains(ids, e.ID) {
			continue
		}
		holds, known := p.m.looked[look{key, e.ID, e.duty.Closing}]
		switch {
		case !known || holds != "" && holds != t.heldBy:
			orders = append(orders, e)
		case holds != "":
			e.held = true // what is held there is held still
		}
	}
	return orders
}

// lookInto looks for rows that orders mean in a file, first in its bloom filters,
// then in the columns that tell, and writes it again without what goes. It
// returns how many bytes it read.
func (p *pass) lookInto(f *archive.CatalogFile, t *tenant, orders []*entry) (read int64, err error) {
	may, err := p.mayHold(f, orders)
	if err != nil {
		return 0, err
	}
	for _, e := range t.entries {
		e.heldHere = false
	}
	takes := false
	if may {
		file, meta, err := p.open(f)
		if err != nil {
			return 0, err
		}
		for row, err := range file.Select(t.lookColumns()...) {
			if err != nil {
				return 0, halt("%s: %w: restore the object", f.Key, err)
			}
			takes = t.would(row) || takes
		}
		if read = f.Bytes; takes {
			written := len(p.added)
			if err := p.rewrite(f, file, meta, t, 0); err != nil {
				return 0, err
			}
			for i := range p.added[written:] {
				p.lookedInto(p.added[written+i].Key, t, orders)
			}
			return 2 * read, nil
		}
	}
	p.lookedInto(f.Key, t, orders)
	return read, nil
}

// lookedInto notes that orders have nothing more to take from a file, as long as
// the same holds are in force. It counts once the pass does.
func (p *pass) lookedInto(key string, t *tenant, orders []*entry) {
	for _, e := range orders {
		holds := ""
		if e.heldHere {
			holds = t.heldBy
		}
		p.looked[look{key, e.ID, e.duty.Closing}] = holds
	}
}

// open reads a file that the base names.
func (p *pass) open(f *archive.CatalogFile) (*parquet.File, *archive.DataFile, error) {
	body, err := p.e.Archive.Get(p.ctx, f.Key)
	if err != nil {
		return nil, nil, fileFault(f.Key, err)
	}
	file, meta, err := archive.OpenDataFile(body, f)
	if err == nil && (meta.ArchiveID != p.e.Root.ArchiveID || meta.Topic != p.l.Topic) {
		err = fmt.Errorf("%s: it says that it is of %s/%d of archive %.40q", f.Key, meta.Topic, meta.Partition, meta.ArchiveID)
	}
	if err != nil {
		return nil, nil, halt("%w: restore the object", err)
	}
	return file, meta, nil
}

// rewrite writes a file again: without the rows below a size, and without what
// orders take. Each row is checked before something is taken from it.
func (p *pass) rewrite(f *archive.CatalogFile, file *parquet.File, meta *archive.DataFile, t *tenant, below int64) error {
	c := &checker{log: logOf(meta), hashers: p.hashers, state: &logState{
		scheme: meta.Scheme, head: meta.HeadIn, tree: chain.Tree{Size: meta.FirstSeq, Frontier: slices.Clone(meta.FrontierIn)}, unknown: true,
	}}
	p.fit()
	rows := make([]chain.Row, batchRows) // an output hands them over before they are used again
	var out *output
	at := 0
	for read, err := range file.Rows() {
		if err != nil {
			return halt("%s: %w: restore the object", f.Key, err)
		}
		row := &rows[at%batchRows]
		*row = *read
		if err := c.follow(row); err != nil {
			return halt("%s: seq %d of tenant %s: %w: restore the object", f.Key, row.Seq.N, strconv.Quote(f.Tenant), err)
		}
		if row.Seq.N < below {
			p.res.Dropped++
			c.advance(row)
			continue
		}
		if err := p.eraseFrom(f, t, c, row); err != nil {
			return err
		}
		if out != nil && !out.takes(row) {
			if err := out.close(true); err != nil {
				return err
			}
			out = nil
		}
		if out == nil {
			out, at = p.begin(c.log, c.state, meta.Scheme, row), 0
			rows[0] = *row
			row = &rows[0]
		}
		c.advance(row)
		if err := out.add(row); err != nil {
			return err
		}
		at++
	}
	if out != nil {
		if err := out.close(true); err != nil {
			return err
		}
	}
	if c.keyless && !slices.Contains(p.res.Keyless, f.Tenant) {
		p.res.Keyless = append(p.res.Keyless, f.Tenant)
	}
	p.replace(f)
	p.res.Rewritten++
	return nil
}

func (p *pass) eraseFrom(f *archive.CatalogFile, t *tenant, c *checker, row *chain.Row) error {
	changed, err := t.erase(p.hashers, c, row)
	if err != nil {
		return halt("%s: seq %d of tenant %s: %w: restore the object", f.Key, row.Seq.N, strconv.Quote(f.Tenant), err)
	}
	if changed {
		p.res.Erased++
		t.source(f.Key)
	}
	return nil
}

// drops carries cuts out, as far as what they say is so and nothing is held.
func (p *pass) drops() error {
	for from := 0; from < len(p.plan.Drop); {
		to := from
		for to < len(p.plan.Drop) && p.plan.Drop[to].Tenant == p.plan.Drop[from].Tenant {
			to++
		}
		if err := p.drop(p.plan.Drop[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// drop carries one cut out: steps are all files of its log that begin below it.
func (p *pass) drop(steps []Step) error {
	tenant := steps[0].Tenant
	row := p.d.cut(p.l, tenant)
	last := p.file(steps[len(steps)-1].Keys[0])
	refuse := func(why string) error {
		p.res.Refused = append(p.res.Refused, fmt.Sprintf("the cut %s of tenant %s at %d rows: %s", row.ID, strconv.Quote(tenant), row.Cut.Size, why))
		return nil
	}
	why, err := p.heldBelow(steps, row.Cut.Size)
	if err != nil {
		return err
	}
	if why != "" {
		return refuse(why)
	}
	fits, err := p.cutFits(last, row.Cut)
	if err != nil {
		return err
	}
	if !fits {
		return refuse("its head or frontier is not that of the log there")
	}
	for _, step := range steps {
		f := p.file(step.Keys[0])
		if f.LastSeq < row.Cut.Size {
			p.replace(f)
			p.res.Dropped += f.Rows
			continue
		}
		file, meta, err := p.open(f)
		if err != nil {
			return err
		}
		if err := p.rewrite(f, file, meta, p.tenant(tenant), row.Cut.Size); err != nil {
			return err
		}
	}
	p.cuts[tenant] = &archive.CatalogCut{Tenant: tenant, ID: row.ID, Size: row.Cut.Size, Head: row.Cut.Head, Frontier: row.Cut.Frontier}
	return nil
}

// cutFits reports whether a log has the head and the tree, at the size of a cut,
// that the cut states: the log goes on from there. f is the file that holds the
// row before.
func (p *pass) cutFits(f *archive.CatalogFile, cut *control.Cut) (bool, error) {
	if f.LastSeq+1 == cut.Size {
		m, err := p.e.dataMetadata(p.ctx, f)
		return err == nil && m.HeadOut == cut.Head && slices.Equal(m.FrontierOut, cut.Frontier), err
	}
	file, m, err := p.open(f)
	if err != nil {
		return false, err
	}
	tree := chain.Tree{Size: m.FirstSeq, Frontier: slices.Clone(m.FrontierIn)}
	head := m.HeadIn
	for row, err := range file.Select("row_hash") {
		if err != nil {
			return false, halt("%s: %w: restore the object", f.Key, err)
		}
		if tree.Size == cut.Size {
			break
		}
		tree.Append(row.RowHash)
		head = row.RowHash
	}
	return head == cut.Head && slices.Equal(tree.Frontier, cut.Frontier), nil
}

// heldBelow says why a cut must wait: a hold reaches a row below it. "" where
// none does.
func (p *pass) heldBelow(steps []Step, size int64) (string, error) {
	holds := p.d.holds(steps[0].Tenant)
	if len(holds) == 0 {
		return "", nil
	}
	t := newTenant(holds)
	for _, step := range steps {
		f := p.file(step.Keys[0])
		if held(holds, &chain.Row{}) {
			return "a hold keeps all rows of the tenant", nil
		}
		file, _, err := p.open(f)
		if err != nil {
			return "", err
		}
		for row, err := range file.Select(t.lookColumns()...) {
			if err != nil {
				return "", halt("%s: %w: restore the object", f.Key, err)
			}
			if row.Seq.N < size && held(holds, row) {
				return fmt.Sprintf("a hold keeps seq %d", row.Seq.N), nil
			}
		}
	}
	return "", nil
}

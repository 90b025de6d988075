package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A pass is one pass of one line.
type pass struct {
	e       *Engine
	ctx     context.Context
	l       archive.Line
	d       *Duties
	m       *memo
	s       *Sight
	plan    *Plan
	res     *Result
	hashers *chain.Hashers
	writer  *parquet.DataWriter
	puts    *putter

	watermark int64
	byKey     map[string]*archive.CatalogFile // of the base
	added     []archive.CatalogFile
	removed   map[string]bool // keys of files that the next version does not name
	touched   map[string]bool // days
	doom      []string        // besides
	gone      map[string]bool // doomed keys of which no version is left
	locked    map[string]bool // doomed keys that a lock keeps
	logs      map[string]*logState
	cuts      map[string]*archive.CatalogCut // that are carried out in this pass
	entries   *entries
	above     *bool                        // whether there are segments that no anchor covers; nil: nobody asked
	looked    map[look]string              // what came of looks
	swept     bool                         // there was a sweep, and no upload may still come to something
	strayed   []string                     // what it found
	asking    int                          // of how many files filters are still read to find repeats
	looking   int64                        // bytes of files that are still read to find repeats
	versions  map[string][]archive.Version // by key, as far as they were asked for
}

// Pass does one bounded piece of what there is to do for a line. It may be called
// again at once where Result.More says so, and with ErrRaced; it is no error that
// there is nothing to do.
//
// Its writes, in order: data files; parts of the catalog; the next version of the
// catalog; manifests, where they are kept. Before them it deletes what the newest version calls doomed. A crash
// before the version leaves strays, and one behind it leaves nothing undone but
// manifests, which the next pass writes first.
func (e *Engine) Pass(ctx context.Context, l archive.Line, d *Duties) (Result, error) {
	if d == nil {
		d = &Duties{}
	}
	p := &pass{e: e, ctx: ctx, l: l, d: d, m: e.memo(l), res: &Result{Line: l, Anchored: -1, Began: e.Now()}}
	err := p.run()
	if p.puts != nil {
		if fault := p.puts.wait(); err == nil {
			err = fault
		}
	}
	err = p.missing(err)
	if p.res.Ended = e.Now(); e.Events.Ended != nil {
		e.Events.Ended(p.res, err)
	}
	switch {
	case err == nil:
		if e.Events.Passed != nil {
			e.Events.Passed(p.res)
		}
	case errors.Is(err, ErrHalted) && e.Events.Halted != nil:
		e.Events.Halted(l, err)
	case errors.Is(err, ErrRaced) && e.Events.Raced != nil && p.s != nil:
		e.Events.Raced(l, p.s.version()+1)
	}
	return *p.res, err
}

// Plan says what a pass would do now. Nothing is written or deleted.
func (e *Engine) Plan(ctx context.Context, l archive.Line, d *Duties) (*Plan, error) {
	if d == nil {
		d = &Duties{}
	}
	m := e.memo(l)
	s, err := e.look(ctx, l, m, d)
	if err != nil {
		return nil, err
	}
	return makePlan(s, d, &e.Settings, m.apart, e.Now()), nil
}

func (p *pass) run() (err error) {
	err = p.phase("look", func() (err error) { p.s, err = p.e.look(p.ctx, p.l, p.m, p.d); return err })
	if err != nil {
		return err
	}
	if h := p.d.stale(p.s.Base); h != nil {
		return fmt.Errorf("%w: it knows of the hold %s, which is archived, and this one does not yet", ErrRaced, h.ID)
	}
	p.begins()
	if p.plan = makePlan(p.s, p.d, &p.e.Settings, p.m.apart, p.e.Now()); p.plan.More || p.s.behind {
		p.res.More = true
	}
	p.res.Plan = p.plan
	for _, ph := range []struct {
		name string
		do   func() error
	}{{"relink", p.relink}, {"delete", p.delete}, {"compact", p.compact}, {"rewrite", p.rewrites}, {"merge", p.merges}, {"sweep", p.sweep}, {"publish", p.publish}, {"link", p.link}} {
		if err := p.phase(ph.name, ph.do); err != nil {
			return err
		}
	}
	p.res.More = p.res.More || p.res.Wrote && p.more()
	return nil
}

// phase does a part of the pass, and notes how long it took.
func (p *pass) phase(name string, do func() error) error {
	began := p.e.Now()
	err := do()
	p.res.Phases = append(p.res.Phases, Phase{name, began, p.e.Now()})
	return err
}

// more reports whether the version that was written leaves something to do: what
// was written can be merged, a cut has come into reach.
func (p *pass) more() bool {
	s := *p.s
	s.Base, s.Files = &archive.CatalogVersion{Catalog: p.res.Catalog}, p.m.files
	next := makePlan(&s, p.d, &p.e.Settings, p.m.apart, p.e.Now())
	return next.Compact.Why != "" || len(next.Merge) > 0 || len(next.Drop) > 0 && len(p.res.Refused) == 0
}

// begins makes ready for the work.
func (p *pass) begins() {
	p.hashers, p.puts = chain.NewHashers(p.e.LogKeys), newPutter(p.e)
	p.watermark, p.res.Anchored, p.looking = p.s.watermark(), p.s.anchored(), p.e.PassBytes/16
	p.asking = filtersAsked
	p.removed, p.touched, p.gone, p.locked = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	p.versions, p.cuts = map[string][]archive.Version{}, map[string]*archive.CatalogCut{}
	p.entries = newEntries(p.s, p.d)
	if p.s.Base != nil {
		p.res.Catalog = p.s.Base.Catalog
	}
	if p.s.Base == nil || p.m.text != p.s.Base.SHA256 || p.m.logsOf != p.m.text {
		p.m.logs = map[string]*logState{}
	}
	p.logs, p.looked = map[string]*logState{}, map[look]string{}
	p.byKey = make(map[string]*archive.CatalogFile, len(p.s.Files))
	for i := range p.s.Files {
		p.byKey[p.s.Files[i].Key] = &p.s.Files[i]
	}
}

// id returns a ULID that was never used.
func (e *Engine) id() (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(e.Now()), e.Rand)
	return id.String(), err
}

// fit gives the writer that all files of a pass are written with, one at a time.
func (p *pass) fit() *parquet.DataWriter {
	if p.writer == nil {
		p.writer = parquet.NewDataWriter(parquet.DataOptions{})
	}
	return p.writer
}

// compact turns the next segments into data files.
func (p *pass) compact() error {
	if p.plan.Compact.Why == "" {
		return nil
	}
	entries := p.s.entries()
	n := 0
	for n < len(entries) && entries[n].Ordinal < p.plan.Compact.To {
		n++
	}
	var w *window
	err := p.phase("read", func() (err error) { w, err = p.readWindow(entries[:n]); return err })
	if err != nil {
		return err
	}
	if err := p.states(w.tenants()); err != nil {
		return err
	}
	p.fit()
	for _, tenant := range w.tenants() {
		if err := p.compactLog(w, tenant); err != nil {
			return err
		}
		delete(w.logs, tenant)
	}
	p.m.made = int64(len(p.added))
	p.watermark = w.to
	if next := p.plan.Compact.To; w.to == next && int64(n) == p.plan.Waiting && !p.s.behind {
		p.watermark = max(p.watermark, p.s.anchored()+1) // void ones at the end
	}
	for ordinal := w.from; ordinal < p.watermark; ordinal++ {
		p.doom = append(p.doom, archive.SegmentKey(p.l, ordinal))
	}
	p.res.Segments, p.res.Rows, p.res.SegmentBytes = int64(len(w.segments)), w.rows, w.bytes
	p.res.Keyless = slices.Sorted(maps.Keys(w.keyless))
	return p.checkHeads()
}

// compactLog turns the rows of one log into data files.
func (p *pass) compactLog(w *window, tenant string) error {
	state := p.stateOf(tenant)
	t := &logTask{
		pass: p, w: w, rows: w.logs[tenant].rows, tenant: p.tenant(tenant),
		c: &checker{log: p.logOf(tenant), state: state, hashers: p.hashers},
	}
	if err := p.repeats(tenant, t.rows); err != nil {
		return err
	}
	for i := range w.logs[tenant].intervals {
		iv := &w.logs[tenant].intervals[i]
		if err := t.interval(iv); err != nil {
			if errors.Is(err, errRow) {
				err = halt("segment %d: tenant %s: %w", iv.ordinal, strconv.Quote(tenant), err)
			}
			return err
		}
	}
	p.logs[tenant] = state
	return t.close()
}

// errRow: a row is not as it must be.
var errRow = errors.New("rows are not those that the chain was made of")

// A logTask is the rows of one log in a window, on their way to data files.
type logTask struct {
	*pass
	w      *window
	tenant *tenant
	rows   []*chain.Row
	at     int // of rows: the next one
	c      *checker
	out    *output
}

// interval takes the rows that one segment has of the log.
func (t *logTask) interval(iv *interval) error {
	if err := t.c.begin(iv.Scheme); err != nil {
		return fmt.Errorf("%w: %w", errRow, err)
	}
	for ; t.at < iv.end; t.at++ {
		if err := t.row(t.rows[t.at]); err != nil {
			return err
		}
	}
	if s := t.c.state; s.head != iv.HeadOut || s.tree.Size != iv.Size || !slices.Equal(s.tree.Frontier, iv.Frontier) {
		return fmt.Errorf("%w: they lead to another head or tree than the segment states", errRow)
	}
	return nil
}

// row takes one row, which was checked by itself.
func (t *logTask) row(row *chain.Row) error {
	if err := t.c.follows(row); err != nil {
		return fmt.Errorf("%w: seq %d: %w", errRow, row.Seq.N, err)
	}
	defer t.c.advance(row)
	changed, err := t.tenant.erase(t.hashers, t.c, row)
	if err != nil {
		return fmt.Errorf("%w: seq %d: %w", errRow, row.Seq.N, err)
	}
	if changed {
		t.res.Erased++
		t.tenant.source(t.sourceOf(row))
	}
	if t.out != nil && !t.out.takes(row) {
		if err := t.close(); err != nil {
			return err
		}
	}
	if t.out == nil {
		t.out = t.begin(t.c.log, t.c.state, t.c.state.scheme, row)
	}
	return t.out.add(row)
}

func (t *logTask) close() error {
	if t.out == nil {
		return nil
	}
	out := t.out
	t.out = nil
	return out.close(true)
}

// sourceOf returns the key of the segment that holds a row.
func (t *logTask) sourceOf(row *chain.Row) string {
	ordinal, ok := t.w.ordinalOf(row.KafkaOffset.N)
	if !ok || !row.KafkaOffset.Valid {
		return ""
	}
	return archive.SegmentKey(t.l, ordinal)
}

func (p *pass) logOf(tenant string) chain.Log {
	return chain.Log{ArchiveID: p.e.Root.ArchiveID, Tenant: tenant, Topic: p.l.Topic, TopicID: p.l.TopicID, Partition: p.l.Partition}
}

// filtersAsked is of how many files one pass reads the filters to find repeats:
// those that were written lately are remembered.
const filtersAsked = 256

// statesParallel is how many logs are asked for at once where they stand.
const statesParallel = 16

// states finds out where logs stand that the pass before did not leave.
func (p *pass) states(tenants []string) error {
	tenants = slices.DeleteFunc(slices.Clone(tenants), func(tenant string) bool {
		return p.m.logs[tenant] != nil || p.s.last(tenant) == nil
	})
	i := 0
	for m, err := range ahead(p.ctx, tenants, statesParallel, func(ctx context.Context, tenant string) (*archive.DataFile, error) {
		return p.e.dataMetadata(ctx, p.s.last(tenant))
	}) {
		if err != nil {
			return err
		}
		p.m.logs[tenants[i]] = &logState{scheme: m.Scheme, epoch: m.Epoch, head: m.HeadOut, tree: chain.Tree{Size: m.FirstSeq + m.Rows, Frontier: m.FrontierOut}}
		i++
	}
	return nil
}

// stateOf returns a log behind its newest row that is compacted: as the pass
// before or its newest file leaves it, by its cut, or empty.
func (p *pass) stateOf(tenant string) *logState {
	if s := p.m.logs[tenant]; s != nil {
		return s.clone()
	}
	if cut := p.s.cut(tenant); cut != nil {
		return &logState{head: cut.Head, tree: chain.Tree{Size: cut.Size, Frontier: slices.Clone(cut.Frontier)}}
	}
	return &logState{}
}

// tailBytes is how much of the end of an object is read for its metadata.
const tailBytes = 64 << 10

// dataMetadata reads what a data file says of itself, without its rows. What
// follows is held against it by hashes.
func (e *Engine) dataMetadata(ctx context.Context, f *archive.CatalogFile) (*archive.DataFile, error) {
	for n := int64(tailBytes); ; {
		tail, size, err := e.Archive.GetTail(ctx, f.Key, n)
		if err != nil {
			return nil, fileFault(f.Key, err)
		}
		text, _, err := parquet.TailMetadata(tail, size)
		var short *parquet.ShortTailError
		if errors.As(err, &short) {
			n = short.Need
			continue
		}
		if err != nil {
			return nil, halt("%s: %w: restore the object", f.Key, err)
		}
		m, err := archive.DecodeDataFile(text)
		if err != nil || m.Tenant != f.Tenant || m.FirstSeq != f.FirstSeq || m.Rows != f.Rows || m.HeadOut != f.HeadOut {
			return nil, halt("%s: its metadata does not say what the catalog does (%v): restore the object", f.Key, err)
		}
		return m, nil
	}
}

// fileFault says what it means that a file cannot be read that the newest version
// names. Where somebody went on meanwhile, the next pass sees that.
func fileFault(key string, err error) error {
	if errors.Is(err, archive.ErrNotFound) || errors.Is(err, archive.ErrDamaged) {
		return &missingFile{fmt.Errorf("%s: %w", key, err)}
	}
	return fmt.Errorf("%s: %w", key, err)
}

// A missingFile is a file that the base names and that is not there.
type missingFile struct{ error }

func (m *missingFile) Unwrap() error { return m.error }

// missing says of an object that is not there whether somebody else went on, or
// it is lost.
func (p *pass) missing(err error) error {
	var file *missingFile
	if p.s == nil || !errors.As(err, &file) && !errors.Is(err, errSegmentGone) {
		return err
	}
	newer, fault := archive.NewestCatalogObject(p.ctx, p.e.Archive, p.l, p.s.version())
	switch {
	case fault != nil:
		return fault
	case newer != nil:
		return fmt.Errorf("%w: %w", ErrRaced, err)
	}
	return halt("%w: restore the object", err)
}

// checkHeads holds the logs, as they are behind the window, against the newest
// anchor that ends there.
func (p *pass) checkHeads() error {
	for _, a := range p.s.Anchors {
		if a.Ordinal != p.watermark-1 {
			continue
		}
		for i := range a.Heads {
			h := &a.Heads[i]
			if s := p.logs[h.Tenant]; s != nil && !s.equals(h) {
				return halt("anchor %d: tenant %s: its head of %d rows is not that of the rows", a.Number, strconv.Quote(h.Tenant), h.Size)
			}
		}
	}
	return nil
}

// file returns the file of the base that has a key.
func (p *pass) file(key string) *archive.CatalogFile { return p.byKey[key] }

// files returns what the next version names, by tenant and first seq.
func (p *pass) files() []archive.CatalogFile {
	files := make([]archive.CatalogFile, 0, len(p.s.Files)+len(p.added))
	for i := range p.s.Files {
		if !p.removed[p.s.Files[i].Key] {
			files = append(files, p.s.Files[i])
		}
	}
	files = append(files, p.added...)
	slices.SortFunc(files, func(a, b archive.CatalogFile) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.FirstSeq, b.FirstSeq))
	})
	return files
}

// replace notes that files are replaced, or dropped.
func (p *pass) replace(files ...*archive.CatalogFile) {
	for _, f := range files {
		p.removed[f.Key], p.touched[f.Day] = true, true
		p.doom = append(p.doom, f.Key)
	}
}

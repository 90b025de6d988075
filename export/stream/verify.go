package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

// verify holds stored cursors against the archive and returns what does not match,
// by tenant; "" is the store's fault, or that of the whole line.
//
// A cursor stands behind a row. That row is looked for in the catalog, where a
// file ends there or begins behind it, in the file that has it, and in the
// segments above the watermark. A cursor of the newest rows of a line that was
// never compacted, and grew by more than verifySegments since, is left to its next
// row, which has to follow it.
func (r *runner) verify(ctx context.Context, c *Cursors) map[string]error {
	v := &verifier{r: r, faults: map[string]error{}, open: map[string]*Cursor{}}
	for i := range c.Logs {
		g := &c.Logs[i]
		if g.Next > 0 && g.RowHash != nil && r.d.Filter.HasTenant(g.Tenant) {
			v.open[g.Tenant] = g
		}
	}
	for _, look := range []func(context.Context) error{v.cuts, v.segments, v.files} {
		if len(v.open) == 0 {
			break
		}
		if err := look(ctx); err != nil {
			v.faults[""] = err
			return v.faults
		}
	}
	if !v.cutOff {
		for tenant, g := range v.open {
			v.fault(g, fmt.Sprintf("and the log of tenant %q ends at seq %d", tenant, v.ends[tenant]))
		}
	}
	return v.faults
}

// verifySegments is how many segments are looked at.
const verifySegments = 2000

type verifier struct {
	r      *runner
	faults map[string]error
	open   map[string]*Cursor // not found yet
	ends   map[string]int64   // sizes that were met
	cutOff bool               // not all segments were looked at
}

// met holds the cursor of a log against the hash of the row in front of a seq. No
// row in front of it is of an epoch above epoch; -1 where that is not known.
func (v *verifier) met(tenant string, next int64, hash chain.Hash, epoch int32, where string) {
	g := v.open[tenant]
	if v.ends == nil {
		v.ends = map[string]int64{}
	}
	v.ends[tenant] = max(v.ends[tenant], next)
	if g == nil || g.Next != next {
		return
	}
	delete(v.open, tenant)
	switch {
	case *g.RowHash != hash:
		v.fault(g, fmt.Sprintf("and that row of tenant %q has %s (%s)", tenant, hash, where))
	case epoch >= 0 && g.Epoch > epoch:
		v.fault(g, fmt.Sprintf("of epoch %d, and that row of tenant %q is of epoch %d (%s)", g.Epoch, tenant, epoch, where))
	}
}

func (v *verifier) fault(g *Cursor, found string) {
	v.faults[g.Tenant] = fmt.Errorf("%w: %s stands at seq %d behind row hash %s, %s: it is of another archive, or one of the two was restored or changed", ErrCursor, v.r.doc.key, g.Next, g.RowHash, found)
}

func (v *verifier) cuts(context.Context) error {
	if v.r.v.catalog == nil {
		return nil
	}
	for i := range v.r.v.catalog.Cuts {
		c := &v.r.v.catalog.Cuts[i]
		v.met(c.Tenant, c.Size, c.Head, -1, v.r.v.catalog.Key)
		if g := v.open[c.Tenant]; g != nil && g.Next < c.Size {
			delete(v.open, c.Tenant) // the row is gone, and with it what could be asked
		}
	}
	return nil
}

// files asks the catalog, and reads the files in the middle of which a cursor
// stands.
func (v *verifier) files(ctx context.Context) error {
	for _, ref := range slices.Backward(v.r.v.parts("")) {
		if len(v.open) == 0 {
			return nil
		}
		files, err := v.r.part(ctx, &ref)
		if err != nil {
			return err
		}
		for i := range files {
			f := &files[i]
			g := v.open[f.Tenant]
			if g != nil && g.Next >= f.FirstSeq && g.Next <= f.LastSeq+1 && (g.Epoch > 0 || g.Next > f.FirstSeq && g.Next <= f.LastSeq) {
				if err := v.file(ctx, f, g); err != nil {
					return err
				}
			}
			v.met(f.Tenant, f.FirstSeq, f.HeadIn, -1, f.Key)
			v.met(f.Tenant, f.LastSeq+1, f.HeadOut, -1, f.Key)
		}
	}
	return nil
}

func (v *verifier) file(ctx context.Context, f *archive.CatalogFile, g *Cursor) error {
	release, err := v.r.d.share.take(ctx, f.Bytes)
	if err != nil {
		return err
	}
	defer release()
	body, err := v.r.e.cached(f.Bytes).Get(ctx, f.Key)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Key, err)
	}
	file, m, err := archive.OpenDataFile(body, f)
	if err != nil {
		delete(v.open, g.Tenant) // what is wrong with it is said when it is read
		return nil
	}
	v.met(f.Tenant, f.FirstSeq, f.HeadIn, m.Epoch, f.Key)
	v.met(f.Tenant, f.LastSeq+1, f.HeadOut, m.Epoch, f.Key)
	if v.open[f.Tenant] == nil {
		return nil
	}
	for row, err := range file.Select("seq", "row_hash") {
		if err != nil {
			break
		}
		if row.Seq.N == g.Next-1 {
			v.met(f.Tenant, g.Next, row.RowHash, m.Epoch, f.Key)
			return nil
		}
	}
	delete(v.open, g.Tenant)
	return nil
}

// segments goes down from the newest segment.
func (v *verifier) segments(ctx context.Context) error {
	void := map[int64]bool{}
	all := v.r.v.segments
	v.cutOff = len(all) > verifySegments
	all = all[len(all)-min(len(all), verifySegments):]
	const atOnce = 64
	for len(all) > 0 && len(v.open) > 0 {
		some := all[len(all)-min(len(all), atOnce):]
		all = all[:len(all)-len(some)]
		if err := v.r.learn(ctx, some); err != nil {
			return err
		}
		for _, o := range slices.Backward(some) {
			if err := v.segment(ctx, o.Key, void); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) segment(ctx context.Context, key string, void map[int64]bool) error {
	m, err := v.r.metadata(ctx, key)
	if err != nil && !errors.Is(err, archive.ErrNotFound) && ctx.Err() == nil {
		return nil // what is wrong with it is said when it is read
	}
	if err != nil {
		return err
	}
	for _, s := range m.Voided {
		void[s.Ordinal] = true
	}
	if void[m.Ordinal] {
		return v.voided(ctx, m, key)
	}
	for i := range m.Logs {
		l := &m.Logs[i]
		if g := v.open[l.Tenant]; g != nil && g.Epoch < l.Epoch && g.Next > l.FirstSeq {
			delete(v.open, l.Tenant) // a chain reset has declared void what it stands behind
		}
		v.met(l.Tenant, l.Size, l.HeadOut, l.Epoch, key)
		v.met(l.Tenant, l.FirstSeq, l.HeadIn, l.Epoch, key)
		if g := v.open[l.Tenant]; g != nil && g.Next > l.FirstSeq && g.Next < l.Size {
			if err := v.rows(ctx, key, l.Tenant, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// voided lets pass what was delivered and declared void since.
func (v *verifier) voided(_ context.Context, m *archive.Segment, _ string) error {
	for i := range m.Logs {
		l := &m.Logs[i]
		if g := v.open[l.Tenant]; g != nil && g.Next > l.FirstSeq && g.Next <= l.Size {
			delete(v.open, l.Tenant)
		}
	}
	return nil
}

// rows looks for the row in front of a cursor that stands within a segment.
func (v *verifier) rows(ctx context.Context, key, tenant string, g *Cursor) error {
	body, err := v.r.e.s.Archive.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	file, err := archive.OpenForeignSegment(body)
	if err == nil {
		for row, err := range file.Select("tenant_id", "seq", "row_hash", "epoch") {
			if err != nil {
				break
			}
			if row.TenantID.S == tenant && row.Seq.N == g.Next-1 {
				v.met(tenant, g.Next, row.RowHash, int32(row.Epoch.N), key)
				return nil
			}
		}
	}
	delete(v.open, tenant)
	return nil
}

// CheckCursors holds all stored cursors of the engine's destinations against the
// archive, and calls each for every log of which that cannot be right; its error
// matches [ErrCursor] and names the place. For a cursor, state or lease that is
// damaged it matches [ErrDocument]. It moves nothing. The error of CheckCursors
// itself is the store's.
func (e *Engine) CheckCursors(ctx context.Context, each func(destination string, l archive.Line, err error)) error {
	lines, err := e.lines(ctx)
	if err != nil {
		return err
	}
	for _, d := range e.destinations {
		if err := d.checkDocuments(ctx, each); err != nil {
			return err
		}
		for _, l := range lines {
			if err := d.checkCursors(ctx, l, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDocuments reads the destination's state and lease.
func (d *destination) checkDocuments(ctx context.Context, each func(string, archive.Line, error)) error {
	_, state := ReadState(ctx, d.e.s.Archive, d.Name)
	_, lease := ReadLease(ctx, d.e.s.Archive, d.Name)
	for _, err := range []error{state, lease} {
		if errors.Is(err, ErrDocument) {
			each(d.Name, archive.Line{}, err)
		}
	}
	return ctx.Err() // what else is wrong with them is told by who uses them
}

// storesFault returns err where it is the store's: what is wrong with a line is
// said when it is read, and holds up no other.
func storesFault(err error) error {
	for _, verdict := range []error{archive.ErrCatalog, archive.ErrBreaks, archive.ErrDamaged, export.ErrTampered} {
		if errors.Is(err, verdict) {
			return nil
		}
	}
	return err
}

func (d *destination) checkCursors(ctx context.Context, l archive.Line, each func(string, archive.Line, error)) error {
	for range missTries {
		c, err := ReadCursors(ctx, d.e.s.Archive, d.e.s.Root.ArchiveID, d.Name, "", l)
		if errors.Is(err, ErrCursor) || errors.Is(err, ErrDocument) {
			each(d.Name, l, err)
			return nil
		}
		if c == nil || err != nil {
			return err
		}
		r := &runner{e: d.e, d: d, line: l, watch: d.e.watches.of(l), doc: document{key: cursorKey(d.Name, "", l)}}
		if r.v, err = r.watch.view(ctx); err != nil {
			return storesFault(err)
		}
		faults := r.verify(ctx, c)
		if errors.Is(faults[""], archive.ErrNotFound) {
			r.watch.gone(r.v)
			continue
		}
		if faults[""] != nil {
			return storesFault(faults[""])
		}
		for _, fault := range faults {
			each(d.Name, l, fault)
		}
		return nil
	}
	return fmt.Errorf("%s/%d: compaction went on %d times while it was read: try again", l.Topic, l.Partition, missTries)
}

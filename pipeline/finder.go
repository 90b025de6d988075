package pipeline

import (
	"context"
	"errors"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A rowFinder finds archived rows of a line below a segment: by the segment that
// a window says they are in, by the data files of the catalog, or by walking back
// through the metadata of what is not compacted. It reads nothing twice, for
// repeats come in runs.
type rowFinder struct {
	shared *shared
	data   *dataFiles
	line   archive.Line
	keys   chain.Keys
	looked bool
	next   int64 // the ordinal above the next whose metadata is to be read
	spans  map[string][]span
	loaded map[int64]bool
	rows   map[rowKey]archivedRow
}

// A span is the rows of one log that a segment has.
type span struct{ first, end, ordinal int64 }

type rowKey struct {
	tenant string
	seq    int64
}

// An archivedRow is what a comparison asks of a row.
type archivedRow struct {
	coord   audit.Fingerprint
	content audit.Fingerprint
	erased  bool // its content is gone
	found   bool // it is there, and has coordinates
	hidden  bool // erased hard, or cut: nobody can say what it was

	foreign bool // content is of a row that another policy scrubbed: see contentOf
	tenant  string
	seq     int64
	hint    int64 // the ordinal of its segment, or inDataFile
}

// newRowFinder returns a finder of rows that st knows of.
func newRowFinder(sh *shared, st *archive.State) *rowFinder {
	return &rowFinder{
		shared: sh, data: newDataFiles(sh, st.Line, nil), line: st.Line, keys: st.Keys, next: st.Ordinal,
		spans: map[string][]span{}, loaded: map[int64]bool{}, rows: map[rowKey]archivedRow{},
	}
}

// find returns the row of a seq of a tenant's log; hint is the ordinal of its
// segment, inDataFile, or nowhere.
func (f *rowFinder) find(ctx context.Context, tenant string, seq, hint int64) (archivedRow, error) {
	if r, ok := f.rows[rowKey{tenant, seq}]; ok {
		return r, nil
	}
	var err error
	if hint == nowhere {
		if hint, err = f.ordinal(ctx, tenant, seq); err != nil {
			return archivedRow{}, err
		}
	}
	if hint >= 0 {
		err = f.load(ctx, hint)
	}
	if hint < 0 || errors.Is(err, archive.ErrNotFound) { // compaction has taken it
		return f.data.find(ctx, tenant, seq, f.rows)
	}
	return f.rows[rowKey{tenant, seq}], err
}

// now returns a row as the newest data files have it: erased, or hidden, where it
// is by now; one that is not found where it is in none.
func (f *rowFinder) now(ctx context.Context, tenant string, seq int64) (archivedRow, error) {
	if err := f.look(ctx); err != nil {
		return archivedRow{}, err
	}
	if r, ok := f.rows[rowKey{tenant, seq}]; ok && r.hint == inDataFile {
		return r, nil
	}
	delete(f.rows, rowKey{tenant, seq})
	return f.data.find(ctx, tenant, seq, f.rows)
}

// ordinal walks back to the segment of a row; inDataFile where it is none that is
// not compacted.
func (f *rowFinder) ordinal(ctx context.Context, tenant string, seq int64) (int64, error) {
	if err := f.look(ctx); err != nil {
		return inDataFile, err
	}
	known := 0
	for {
		for _, s := range f.spans[tenant][known:] {
			if s.first <= seq && seq < s.end {
				return s.ordinal, nil
			}
		}
		known = len(f.spans[tenant])
		if f.next <= watermarkOf(f.data.version) {
			return inDataFile, nil
		}
		seg, err := archive.GetMetadata(ctx, f.shared.Archive, f.line, f.next-1)
		if newer, fault := f.meanwhile(ctx, err); newer || fault != nil {
			return inDataFile, fault
		}
		f.next--
		for _, l := range seg.Logs {
			f.spans[l.Tenant] = append(f.spans[l.Tenant], span{l.FirstSeq, l.FirstSeq + l.Rows, f.next})
		}
		if len(seg.Voided) > 0 {
			f.next = seg.Voided[0].Ordinal // rows of void segments are none
		}
	}
}

// look reads the catalog, once.
func (f *rowFinder) look(ctx context.Context) error {
	if f.looked {
		return nil
	}
	_, err := f.data.renew(ctx)
	f.looked = err == nil
	return err
}

// meanwhile reports whether compaction has taken the segment that could not be
// read for the reason of err, which else it returns.
func (f *rowFinder) meanwhile(ctx context.Context, err error) (bool, error) {
	if err == nil {
		return false, nil
	}
	if _, fault := f.data.renew(ctx); fault != nil {
		return false, fault
	}
	if f.next <= watermarkOf(f.data.version) {
		return true, nil
	}
	return false, err
}

// load reads the rows of a segment.
func (f *rowFinder) load(ctx context.Context, ordinal int64) error {
	if f.loaded[ordinal] {
		return nil
	}
	o, err := archive.GetSegment(ctx, f.shared.Archive, f.line, ordinal, f.keys)
	if err != nil {
		return err
	}
	f.loaded[ordinal] = true
	tenants := interner{}
	for i := range o.Rows {
		r := &o.Rows[i]
		if coord, ok := r.Coordinates(); ok {
			row := archivedRow{coord: coord, erased: !r.RowSalt.Valid, found: true, tenant: tenants.name(r.TenantID.S), seq: r.Seq.N, hint: ordinal}
			row.content, row.foreign = f.shared.contentOf(&r.Record)
			f.rows[rowKey{row.tenant, row.seq}] = row
		}
	}
	return nil
}

// record reads a row that was found, whole; nil where it is gone since.
func (f *rowFinder) record(ctx context.Context, tenant string, seq, ordinal int64) (*audit.Record, error) {
	err := archive.ErrNotFound
	var o *archive.SegmentObject
	if ordinal >= 0 {
		o, err = archive.GetSegment(ctx, f.shared.Archive, f.line, ordinal, f.keys)
	}
	if err == nil {
		for i := range o.Rows {
			if r := &o.Rows[i]; r.TenantID.S == tenant && r.Seq.N == seq {
				return &r.Record, nil
			}
		}
		return nil, nil
	}
	if !errors.Is(err, archive.ErrNotFound) {
		return nil, err
	}
	var found *audit.Record
	_, err = f.data.rows(ctx, tenant, seq, func(row *chain.Row) {
		if row.Seq.N == seq {
			kept := row.Record
			found = &kept
		}
	})
	return found, err
}

// check reads a row and checks it, as far as it is there, by the hash of its log.
func (f *rowFinder) check(ctx context.Context, tenant string, seq int64) error {
	_, err := f.find(ctx, tenant, seq, nowhere)
	return err
}

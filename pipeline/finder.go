package pipeline

import (
	"context"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A rowFinder finds archived rows of a line below a segment: by the segment that
// a window says they are in, or by walking back through the metadata. It reads
// nothing twice, for repeats come in runs.
type rowFinder struct {
	src    archive.Source
	line   archive.Line
	keys   chain.Keys
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
}

// newRowFinder returns a finder of rows that st knows of.
func newRowFinder(src archive.Source, st *archive.State) *rowFinder {
	return &rowFinder{src: src, line: st.Line, keys: st.Keys, next: st.Ordinal, spans: map[string][]span{}, loaded: map[int64]bool{}, rows: map[rowKey]archivedRow{}}
}

// find returns the row of a seq of a tenant's log; hint is the ordinal of its
// segment, -1 where that is not known.
func (f *rowFinder) find(ctx context.Context, tenant string, seq, hint int64) (archivedRow, error) {
	if hint < 0 {
		var err error
		if hint, err = f.ordinal(ctx, tenant, seq); hint < 0 || err != nil {
			return archivedRow{}, err
		}
	}
	if err := f.load(ctx, hint); err != nil {
		return archivedRow{}, err
	}
	return f.rows[rowKey{tenant, seq}], nil
}

// ordinal walks back to the segment of a row; -1 where there is none.
func (f *rowFinder) ordinal(ctx context.Context, tenant string, seq int64) (int64, error) {
	known := 0
	for {
		for _, s := range f.spans[tenant][known:] {
			if s.first <= seq && seq < s.end {
				return s.ordinal, nil
			}
		}
		known = len(f.spans[tenant])
		if f.next == 0 {
			return -1, nil
		}
		seg, err := archive.GetMetadata(ctx, f.src, f.line, f.next-1)
		if err != nil {
			return -1, err
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

// load reads the rows of a segment.
func (f *rowFinder) load(ctx context.Context, ordinal int64) error {
	if f.loaded[ordinal] {
		return nil
	}
	o, err := archive.GetSegment(ctx, f.src, f.line, ordinal, f.keys)
	if err != nil {
		return err
	}
	f.loaded[ordinal] = true
	tenants := interner{}
	for i := range o.Rows {
		r := &o.Rows[i]
		if coord, ok := r.Coordinates(); ok {
			f.rows[rowKey{tenants.name(r.TenantID.S), r.Seq.N}] = archivedRow{coord: coord, content: r.ContentHash(), erased: !r.RowSalt.Valid, found: true}
		}
	}
	return nil
}

package archivetest

import (
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// Forge returns the object of a segment that continues st and has the rows,
// duplicates and gaps of o, whatever those are: rows are stamped anew, and the
// metadata is made to fit. Its chain holds; only Kafka can tell that it lies. It
// is what anybody can do who may write to the bucket.
func Forge(st *archive.State, o *archive.SegmentObject) ([]byte, error) {
	seg := *o.Segment
	seg.ArchiveID, seg.Ordinal, seg.PreviousSHA256 = st.ArchiveID, st.Ordinal, st.PreviousSHA256
	seg.Logs, seg.Rows = nil, int64(len(o.Rows))
	logs := map[string]*archive.LogInterval{}
	hasher := chain.NewHasher(nil)
	rows := make([]*chain.Row, len(o.Rows))
	for i := range o.Rows {
		row := o.Rows[i]
		rows[i] = &row
		tenant := row.TenantID.S
		l := logs[tenant]
		if l == nil {
			h := st.Head(tenant)
			l = &archive.LogInterval{
				Tenant: tenant, Scheme: h.Scheme, Epoch: h.Epoch, FirstSeq: h.Tree.Size,
				HeadIn: h.Hash, HeadOut: h.Hash, Size: h.Tree.Size, Frontier: h.Tree.Clone().Frontier,
			}
			logs[tenant] = l
			seg.Logs = append(seg.Logs, archive.LogInterval{Tenant: tenant})
		}
		row.Seq.N = l.Size
		hasher.Stamp(&row, l.HeadOut, row.RowSalt.Hash)
		tree := chain.Tree{Size: l.Size, Frontier: l.Frontier}
		tree.Append(row.RowHash)
		l.Size, l.Frontier, l.HeadOut, l.Rows = tree.Size, tree.Frontier, row.RowHash, l.Rows+1
	}
	for i := range seg.Logs {
		seg.Logs[i] = *logs[seg.Logs[i].Tenant]
	}
	meta, err := archive.EncodeSegment(&seg)
	if err != nil {
		return nil, fmt.Errorf("forge: %w", err)
	}
	return parquet.NewEncoder().EncodeRefs(rows, meta)
}

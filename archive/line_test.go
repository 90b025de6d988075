package archive_test

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

const archiveID = "01KBCDEFGHJKMNPQRSTVWXYZ01"

var line = archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3}

// newLine returns the state of an empty line that begins at offset 0.
func newLine() *archive.State {
	st := archive.NewState(archiveID, line)
	st.NextOffset = 0
	return st
}

// segment makes the next segment of a state: a row for each tenant named, in
// that order. salt tells two segments of the same rows apart.
func segment(t *testing.T, st *archive.State, salt byte, tenants ...string) []byte {
	t.Helper()
	seg := &archive.Segment{
		Format: archive.Format, ArchiveID: st.ArchiveID, Topic: st.Line.Topic, TopicID: st.Line.TopicID, Partition: st.Line.Partition,
		Ordinal: st.Ordinal, PreviousSHA256: st.PreviousSHA256, FirstOffset: st.NextOffset,
		NextOffset: st.NextOffset + int64(len(tenants)), LeaderEpoch: 0, Rows: int64(len(tenants)),
		Writer: archive.Writer{Version: "test", Policy: "none", Settings: chain.Hash{}.String()},
	}
	heads := st.Clone()
	logs := map[string]*archive.LogInterval{}
	hasher := chain.NewHasher(nil)
	rows := make([]chain.Row, len(tenants))
	for i, tenant := range tenants {
		h := heads.Head(tenant)
		l := logs[tenant]
		if l == nil {
			l = &archive.LogInterval{Tenant: tenant, Scheme: h.Scheme, FirstSeq: h.Tree.Size, HeadIn: h.Hash}
			logs[tenant] = l
		}
		r := &rows[i]
		r.TenantID, r.Topic, r.TopicID = audit.Str(tenant), audit.Str(st.Line.Topic), audit.Str(st.Line.TopicID)
		r.Partition, r.Seq, r.Epoch = audit.I64(int64(st.Line.Partition)), audit.I64(h.Tree.Size), audit.I64(0)
		r.KafkaOffset, r.KafkaTimestamp, r.ArchivedAt = audit.I64(seg.FirstOffset+int64(i)), audit.I64(1), audit.I64(1000*(st.Ordinal+1))
		r.Kind, r.RedactionPolicy = audit.Str(audit.KindCall), audit.Str("none")
		hasher.Stamp(r, h.Hash, saltOf(salt, st.Ordinal, i))
		tree := h.Tree.Clone()
		tree.Append(r.RowHash)
		heads.Heads[tenant] = archive.Head{Scheme: h.Scheme, Hash: r.RowHash, Tree: tree}
		l.Rows, l.HeadOut, l.Size, l.Frontier = l.Rows+1, r.RowHash, tree.Size, tree.Frontier
	}
	for _, tenant := range tenants {
		if l := logs[tenant]; l != nil {
			seg.Logs = append(seg.Logs, *l)
			delete(logs, tenant)
		}
	}
	meta, err := archive.EncodeSegment(seg)
	if err != nil {
		t.Fatal(err)
	}
	body, err := parquet.NewEncoder().Encode(rows, meta)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func saltOf(salt byte, ordinal int64, row int) chain.Hash {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte{salt, byte(row)}, uint64(ordinal)))
}

// advance moves a state past a segment.
func advance(t *testing.T, st *archive.State, body []byte) *archive.SegmentObject {
	t.Helper()
	o, err := archive.ReadSegment(body, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Continues(o.Segment); err != nil {
		t.Fatal(err)
	}
	st.Take(o)
	return o
}

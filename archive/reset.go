package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Reset is what a chain-reset row says: the first of a new epoch of its log.
// Source: docs/format.md, section 4.
type Reset struct {
	Reason       audit.Text
	PreviousHead chain.Hash // of the last good row; the log's genesis where there is none
	PreviousSize int64      // rows up to it, from seq 0 on
	Voided       []Voided   // the segments just before, in order
}

// ParseReset reads the context of a chain-reset row.
func ParseReset(context []byte) (*Reset, error) {
	var r Reset
	err := jsondoc.Read(context,
		jsondoc.Field{Name: "reason", Read: func(d *jsondoc.Document) { r.Reason = d.NullStr() }},
		jsondoc.Field{Name: "previousHead", Read: func(d *jsondoc.Document) { r.PreviousHead = d.Hash() }},
		jsondoc.Field{Name: "previousSize", Read: func(d *jsondoc.Document) { r.PreviousSize = d.Count() }},
		jsondoc.Field{Name: "voided", Read: func(d *jsondoc.Document) {
			d.Array(func(d *jsondoc.Document) {
				var v Voided
				d.Tuple(func(d *jsondoc.Document) { v.Ordinal = d.Count() }, func(d *jsondoc.Document) { v.SHA256 = d.Hash() })
				r.Voided = append(r.Voided, v)
			})
		}})
	return &r, err
}

// context is the inverse of ParseReset, of a reason that is not null.
func (r *Reset) context() ([]byte, error) {
	return json.Marshal(struct {
		Reason       string     `json:"reason"`
		PreviousHead chain.Hash `json:"previousHead"`
		PreviousSize int64      `json:"previousSize"`
		Voided       []Voided   `json:"voided"`
	}{r.Reason.S, r.PreviousHead, r.PreviousSize, r.Voided})
}

// Void moves the state past segments that an operator declares void: the next
// one must say so, in its metadata and by a chain-reset row for each log that it
// touches. voided are all segments from st.Ordinal on, in order, at least one.
func (s *State) Void(voided []Voided) {
	last := voided[len(voided)-1]
	s.Ordinal, s.PreviousSHA256 = last.Ordinal+1, &last.SHA256
	s.Voided = slices.Clone(voided)
}

// resetGenesis returns what prev_hash of a chain-reset row must be, given the
// log before it.
func resetGenesis(seg *Segment, before *LogInterval, row *chain.Row) (chain.Hash, error) {
	r, err := ParseReset(row.Slots[audit.SlotContext])
	switch {
	case err != nil:
		return chain.Hash{}, err
	case len(seg.Voided) == 0 || !slices.Equal(r.Voided, seg.Voided):
		return chain.Hash{}, errors.New("it and the metadata declare other segments void")
	case r.PreviousHead != before.HeadOut || r.PreviousSize != before.FirstSeq+before.Rows:
		return chain.Hash{}, errors.New("it begins an epoch behind another row than the last")
	case row.Epoch.N != int64(before.Epoch):
		return chain.Hash{}, fmt.Errorf("it begins epoch %d, the metadata says %d", row.Epoch.N, before.Epoch)
	}
	return chain.ResetGenesis(before.Scheme, seg.Log(row.TenantID.S), before.Epoch, r.PreviousHead, r.PreviousSize, r.Reason), nil
}

// A ResetOrder is an operator's order to begin the logs of a line anew.
type ResetOrder struct {
	Tenants []string // whose logs the void segments held
	Reason  string
	At      int64 // microseconds
	Writer  Writer
	Rand    io.Reader // of salts
}

// NewReset returns the segment that carries an order out, and its rows: one for
// each log. st is the state behind [State.Void], and is not changed. The error
// matches [chain.ErrNoKey] where the key of a keyed log is not there.
func NewReset(st *State, o ResetOrder) (*Segment, []*chain.Row, error) {
	if len(o.Tenants) > MaxSegmentRows {
		return nil, nil, fmt.Errorf("%d logs: a segment has %d rows at most", len(o.Tenants), MaxSegmentRows)
	}
	n := int64(len(o.Tenants))
	seg := &Segment{
		Format: Format, ArchiveID: st.ArchiveID, Topic: st.Line.Topic, TopicID: st.Line.TopicID, Partition: st.Line.Partition,
		Ordinal: st.Ordinal, PreviousSHA256: st.PreviousSHA256, FirstOffset: st.NextOffset, NextOffset: st.NextOffset, LeaderEpoch: st.LeaderEpoch,
		Rows: n, Made: n, Voided: st.Voided, Writer: o.Writer,
	}
	hashers, rows := chain.NewHashers(st.Keys), make([]*chain.Row, 0, n)
	for _, tenant := range o.Tenants {
		row, interval, err := resetLog(st, hashers, tenant, o)
		if err != nil {
			return nil, nil, err
		}
		rows, seg.Logs = append(rows, row), append(seg.Logs, interval)
	}
	return seg, rows, nil
}

func resetLog(st *State, hashers *chain.Hashers, tenant string, o ResetOrder) (*chain.Row, LogInterval, error) {
	h := st.Head(tenant)
	hasher, err := hashers.For(h.Scheme, st.Log(tenant))
	if err != nil {
		return nil, LogInterval{}, err
	}
	var salt chain.Hash
	if _, err := io.ReadFull(o.Rand, salt[:]); err != nil {
		return nil, LogInterval{}, fmt.Errorf("salts: %w", err)
	}
	r := Reset{Reason: audit.Str(o.Reason), PreviousHead: h.Hash, PreviousSize: h.Tree.Size, Voided: st.Voided}
	context, err := r.context()
	if err != nil {
		return nil, LogInterval{}, err
	}
	row := &chain.Row{Record: audit.Record{TenantID: audit.Str(tenant), Kind: audit.Str(audit.KindChainReset)}}
	row.Topic, row.TopicID, row.Partition = audit.Str(st.Line.Topic), audit.Str(st.Line.TopicID), audit.I64(int64(st.Line.Partition))
	row.Seq, row.Epoch, row.ArchivedAt = audit.I64(h.Tree.Size), audit.I64(int64(h.Epoch)+1), audit.I64(max(o.At, st.ArchivedAt))
	row.Slots[audit.SlotContext] = context
	hasher.Stamp(row, chain.ResetGenesis(h.Scheme, st.Log(tenant), h.Epoch+1, h.Hash, h.Tree.Size, r.Reason), salt)
	tree := h.Tree.Clone()
	tree.Append(row.RowHash)
	return row, LogInterval{
		Tenant: tenant, Scheme: h.Scheme, Epoch: h.Epoch + 1, FirstSeq: h.Tree.Size, Rows: 1,
		HeadIn: h.Hash, HeadOut: row.RowHash, Size: tree.Size, Frontier: tree.Frontier,
	}, nil
}

package export

import (
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/redact"
)

// A shower makes of a row that is stored the one that may be shown. It is used by
// one goroutine.
type shower struct {
	archiveID string
	line      archive.Line
	governs   *control.Governance
	match     func(*chain.Row) bool // nil: every row
	unchecked bool
	hashers   *chain.Hashers
	plain     *chain.Hasher
}

func (a *Archive) shower(v *view, l archive.Line, match func(*chain.Row) bool) *shower {
	return &shower{
		archiveID: a.root.ArchiveID, line: l, governs: v.governs, match: match,
		hashers: chain.NewHashers(a.o.LogKeys), plain: chain.NewHasher(nil),
	}
}

// show returns what may be shown of a row, nil where that is not what is asked
// for. Of what is decoded nothing is copied. The error matches [ErrTampered].
func (s *shower) show(row *chain.Row, scheme, key string) (*Row, error) {
	gates := s.governs.Gating(row)
	if len(gates) == 0 && !s.matches(row) {
		return nil, nil
	}
	out := &Row{Row: *row, Line: s.line, Scheme: scheme, Key: key}
	if err := s.check(out); err != nil {
		return nil, faultAt(key, row, err)
	}
	for _, g := range gates {
		changed, err := redact.Erase(s.plain, &out.Row, g.Redaction.Sentinel(g.ID))
		if err != nil {
			return nil, faultAt(key, row, err)
		}
		if changed {
			out.Gated = append(out.Gated, g.ID)
		}
	}
	if len(gates) > 0 && !s.matches(&out.Row) {
		return nil, nil
	}
	return out, nil
}

func (s *shower) matches(row *chain.Row) bool { return s.match == nil || s.match(row) }

// check checks a row by itself, before anything is taken from it.
func (s *shower) check(row *Row) error {
	if row.Topic.S != s.line.Topic || row.TopicID.S != s.line.TopicID || row.Partition.N != int64(s.line.Partition) {
		return fmt.Errorf("it is a row of %.80q/%d", row.Topic.S, row.Partition.N)
	}
	if s.unchecked {
		return nil
	}
	l := chain.Log{ArchiveID: s.archiveID, Tenant: row.TenantID.S, Topic: s.line.Topic, TopicID: s.line.TopicID, Partition: s.line.Partition}
	h, err := s.hashers.For(row.Scheme, l)
	switch {
	case err == nil:
		row.Checked = true
	case errors.Is(err, chain.ErrNoKey):
		h = s.plain
	default:
		return err
	}
	err = h.Check(&row.Row)
	var f *chain.Fault
	if !row.Checked && errors.As(err, &f) && f.Column == "row_hash" {
		return nil // which takes the key
	}
	if row.Checked && row.Scheme == chain.SchemeHMACv1 && errors.As(err, &f) && f.Column == "row_hash" {
		return archive.ErrKey
	}
	return err
}

// faultAt says where a fault is.
func faultAt(key string, row *chain.Row, err error) error {
	return tampered("%s: seq %d of tenant %.80q: %w", key, row.Seq.N, row.TenantID.S, err)
}

package export

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
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

// show checks a row, and returns what may be shown of it; nil where that is not
// what is asked for. Of what is decoded nothing is copied. The error matches
// [ErrTampered].
func (s *shower) show(row *chain.Row, scheme, key string) (*Row, error) {
	checked, err := s.check(row, scheme)
	if err != nil {
		return nil, faultAt(key, row, err)
	}
	gates := s.governs.Gating(row)
	if len(gates) == 0 && !s.matches(row) {
		return nil, nil
	}
	out := &Row{Row: *row, Line: s.line, Scheme: scheme, Checked: checked, Key: key}
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
		return nil, nil // it is not found by what it no longer says
	}
	return out, nil
}

func (s *shower) matches(row *chain.Row) bool { return s.match == nil || s.match(row) }

// check checks a row by itself, before anything is taken from it, and reports
// whether that was all of it.
func (s *shower) check(row *chain.Row, scheme string) (all bool, err error) {
	if row.Topic.S != s.line.Topic || row.TopicID.S != s.line.TopicID || row.Partition.N != int64(s.line.Partition) {
		return false, fmt.Errorf("it is a row of %.80q/%d", row.Topic.S, row.Partition.N)
	}
	if s.unchecked {
		return false, nil
	}
	l := chain.Log{ArchiveID: s.archiveID, Tenant: row.TenantID.S, Topic: s.line.Topic, TopicID: s.line.TopicID, Partition: s.line.Partition}
	h, err := s.hashers.For(scheme, l)
	keyless := errors.Is(err, chain.ErrNoKey)
	if keyless {
		h, err = s.plain, nil
	}
	if err != nil {
		return false, err
	}
	err = h.Check(row)
	if f := (*chain.Fault)(nil); errors.As(err, &f) && f.Column == "row_hash" && scheme == chain.SchemeHMACv1 {
		err = archive.ErrKey
		if keyless {
			err = nil // what is left of the row was checked before row_hash
		}
	}
	if err == nil && !derivedFits(row) {
		err = errors.New("a derived column does not say what the decision slot says")
	}
	return !keyless, err
}

// derivedFits derives the columns again that repeat the decision slot: no hash has
// them.
func derivedFits(row *chain.Row) bool {
	want := audit.Derive(row.Slots[audit.SlotDecision])
	return row.RequestedModel == want.RequestedModel && row.SelectedReason == want.SelectedReason && row.RungOrdinal == want.RungOrdinal &&
		slices.Equal(row.FallbackChain, want.FallbackChain) && (row.FallbackChain == nil) == (want.FallbackChain == nil)
}

// faultAt says where a fault is.
func faultAt(key string, row *chain.Row, err error) error {
	return tampered("%s: seq %d of tenant %.80q: %w", key, row.Seq.N, row.TenantID.S, err)
}

package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Record is a call as a ledger keeps it.
type Record struct {
	Call            // what is left of it, where something was erased
	Row  *chain.Row // its place in a chain
	// Gated are the ids of orders of erasure that took something of it here and
	// are not carried out in what is stored.
	Gated []string
}

// RecordOf returns the record of a row, which it shares memory with. The error
// matches [audit.ErrRestore] where the row's slots are not what a decoder
// writes.
func RecordOf(row *chain.Row) (*Record, error) {
	value, err := audit.Restore(nil, &row.Record)
	if err != nil {
		return nil, err
	}
	r := &Record{Row: row}
	if err := r.UnmarshalJSON(value); err != nil {
		return nil, fmt.Errorf("%w: %w", audit.ErrRestore, err)
	}
	return r, nil
}

// Redaction returns what was erased of the record, and false where nothing was.
func (r *Record) Redaction() (chain.Sentinel, bool) {
	if r.Row == nil || !r.Row.Redaction.Valid {
		return chain.Sentinel{}, false
	}
	s, err := chain.ParseSentinel(r.Row.Redaction.S)
	return s, err == nil
}

// ByTurn compares calls as those of a turn stand: by seqWithinTurn, then by
// recordId.
func ByTurn(a, b *Record) int {
	if a.SeqWithinTurn != b.SeqWithinTurn {
		return int(max(min(a.SeqWithinTurn-b.SeqWithinTurn, 1), -1))
	}
	return strings.Compare(a.RecordID, b.RecordID)
}

// Newest compares calls as those of a session stand: the newest first.
func Newest(a, b *Record) int { return strings.Compare(b.RecordID, a.RecordID) }

// Once returns records without those that repeat one before them.
func Once(records []*Record) []*Record {
	seen := make(map[audit.Fingerprint]bool, len(records))
	return slices.DeleteFunc(records, func(r *Record) bool {
		at, ok := r.Row.Coordinates()
		if !ok || !seen[at] {
			seen[at] = ok
			return false
		}
		return true
	})
}

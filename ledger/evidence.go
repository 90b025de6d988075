package ledger

import (
	"github.com/ledgerlake/ledgerlake/chain"
)

// Chained is the evidence of archives: the anchor of a record is its row_hash
// (package chain), the initial one of a log is [chain.Genesis]. The zero Chained
// is [chain.SchemeV1]. It may be used by several goroutines at once.
type Chained struct {
	Key []byte // of the log, for [chain.SchemeHMACv1]; empty means SchemeV1
}

var _ TamperEvidence = Chained{}

// Scheme returns the scheme of the log.
func (c Chained) Scheme() string {
	if len(c.Key) > 0 {
		return chain.SchemeHMACv1
	}
	return chain.SchemeV1
}

func (c Chained) hasher() *chain.Hasher {
	if len(c.Key) > 0 {
		return chain.NewHasher(c.Key)
	}
	return chain.NewHasher(nil)
}

// Link returns the row_hash of the record's row, behind previous. The row needs
// its salt, or what an erasure has left of it ([chain.StateOf]); PrevHash, the
// commitments and RowHash, where they are set, do not matter. The error is
// [ErrErased], or a [*chain.Fault].
func (c Chained) Link(r *Record, previous chain.Hash) (chain.Hash, error) {
	if r.Row == nil {
		return chain.Hash{}, &chain.Fault{Column: "row_salt", Problem: "the record has no row"}
	}
	if s, ok := r.Redaction(); ok && s.Hard {
		return chain.Hash{}, ErrErased
	}
	row, h := *r.Row, c.hasher()
	user, payload, err := h.Commits(&row)
	if err != nil {
		return chain.Hash{}, err
	}
	row.PrevHash, row.UserCommit, row.PayloadCommit = previous, user, payload
	return h.RowHash(&row), nil
}

// VerifySequence holds each row against the one before, and against all that it
// shows itself ([chain.Hasher.Check]). Of a row that was erased with its header
// only the place is left to hold against.
func (c Chained) VerifySequence(records []*Record, initial chain.Hash) *Break {
	h := c.hasher()
	for i, r := range records {
		if r.Row == nil {
			return &Break{i, r.RecordID, "the record has no row"}
		}
		if r.Row.PrevHash != initial {
			return &Break{i, r.Row.RecordID.S, "it does not follow the one before"}
		}
		if err := h.Check(r.Row); err != nil {
			return &Break{i, r.Row.RecordID.S, err.Error()}
		}
		initial = r.Row.RowHash
	}
	return nil
}

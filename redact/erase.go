package redact

import (
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// ErrOrder: a sentinel orders nothing that a row can say. It has no ULID, or
// takes nothing, or is hard without "*" and user_id.
var ErrOrder = errors.New("no erasure: it needs a ULID and something to take, and a hard one takes * and user_id")

// firstHard is the index in audit.Header of record_id, the first of the columns
// that a hard erasure takes (10 to 31).
const firstHard = 9

// Erase takes from a row what s says, with the salts and the derived columns
// that would give it away, and notes it in the row's sentinel. s names slots, or
// all of them, user_id, or (hard) header columns 10 to 31 besides.
//
//	row             slots, "*" too           user_id, user_salt         residual
//	live            those of s go            go with User, else kept    the salts of the slots that stay, the commitments of those that went
//	partly erased   those of both            go if either says so       the same, from the old residual
//	erased, hard    none is left             go if either says so       null
//
// Only All makes a row erased; all slots by name leave a residual. A further
// erasure adds up: the sentinel keeps the id of the first one. prev_hash,
// row_hash, payload_commit and user_commit never move, so that all proofs stay.
//
// It reports whether the row changed: not where all that s says went before.
// An error is [ErrOrder], or a [*chain.Fault] where the row is in no state of
// [chain.StateOf]; the row is then as it was. Erase does not recompute what the
// row commits to: a row is to be checked ([chain.Hasher.Check]) before something
// is taken that could show later that it was wrong. Source: docs/format.md,
// section 3.1.
func Erase(h *chain.Hasher, row *chain.Row, s chain.Sentinel) (changed bool, err error) {
	if !s.Valid() {
		return false, ErrOrder
	}
	state, err := chain.StateOf(row)
	if err != nil {
		return false, err
	}
	if state != chain.Live {
		before, err := chain.ParseSentinel(row.Redaction.S)
		if err != nil {
			return false, fmt.Errorf("redaction: %w", err)
		}
		s = before.Union(s)
		if s == before {
			return false, nil
		}
	}
	return true, erase(h, row, state, &s)
}

// erase makes row, which is in a state, the row whose sentinel is s.
func erase(h *chain.Hasher, row *chain.Row, state chain.State, s *chain.Sentinel) error {
	residual := audit.Text{}
	if !s.All {
		r, err := h.Residual(row, s.Slots)
		if err != nil {
			return err
		}
		residual = audit.Str(r.String())
	}
	for slot := range audit.NumSlots {
		if s.All || s.Slots.Has(slot) {
			row.Slots[slot] = nil
		}
	}
	if s.All || s.Slots.Has(audit.SlotDecision) {
		row.Derived = audit.Derived{}
	}
	eraseUser(row, state, s)
	if s.Hard {
		eraseHeader(&row.Record)
	}
	row.RowSalt, row.Residual = chain.NullHash{}, residual
	row.Redaction, row.RedactionID = audit.Str(s.String()), audit.Str(s.ID)
	return nil
}

// eraseUser takes user_id with its salt, or leaves it with a salt of its own: of
// row_salt all others could be computed.
func eraseUser(row *chain.Row, state chain.State, s *chain.Sentinel) {
	switch {
	case s.User:
		row.UserID, row.UserSalt = audit.Text{}, chain.NullHash{}
	case state == chain.Live && row.UserID.Valid:
		row.UserSalt = chain.NullHash{Hash: chain.SlotSalt(row.RowSalt.Hash, "user_id"), Valid: true}
	}
}

// eraseHeader takes what the header says beyond the place of the row.
func eraseHeader(r *audit.Record) {
	for i := range audit.Header[firstHard:] {
		c := &audit.Header[firstHard+i]
		if c.Text != nil {
			*c.Text(r) = audit.Text{}
		} else {
			*c.Int(r) = audit.Int{}
		}
	}
}

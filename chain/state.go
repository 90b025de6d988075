package chain

import (
	"fmt"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A State says how much of a row's content is left.
//
//	state         row_salt  residual  user_salt               slots       redaction, redaction_id
//	live          set       null      null                    as stamped  null
//	partly erased null      set       set if user_id is kept  some null   set
//	erased        null      null      set if user_id is kept  all null    set, slots "*"
//	hard erased   null      null      null                    all null    set, slots "*", hard
//
// Of a hard-erased row header columns 10 to 31 and user_id are null too.
// Source: docs/format.md, section 3.1.
type State int

// The states of a row.
const (
	Live State = iota
	PartlyErased
	Erased
	HardErased
)

// String returns the state in words.
func (s State) String() string {
	return [...]string{"live", "partly erased", "erased", "hard erased"}[s]
}

// A Fault says which column of a row is wrong, and how. It shows nothing of the
// row's content.
type Fault struct {
	Column  string
	Problem string
}

func (f *Fault) Error() string { return f.Column + " " + f.Problem }

// StateOf returns the state of a row, or a [*Fault] that names the first column
// that does not fit. What it looks at is which columns are set, and what
// residual and redaction say; it recomputes no hash.
func StateOf(row *Row) (State, error) {
	var residual Residual
	return stateOf(row, &residual)
}

// stateOf fills residual where the row is partly erased.
func stateOf(row *Row, residual *Residual) (State, error) {
	if row.RowSalt.Valid {
		return Live, checkLive(row)
	}
	s, err := sentinelOf(row)
	if err != nil {
		return 0, err
	}
	if err := checkUser(row, &s); err != nil {
		return 0, err
	}
	switch {
	case !s.All:
		return PartlyErased, checkPartlyErased(row, &s, residual)
	case s.Hard:
		return HardErased, checkHardErased(row)
	default:
		return Erased, checkErased(row)
	}
}

func checkLive(row *Row) error {
	switch {
	case row.Residual.Valid:
		return &Fault{"residual", "is set beside row_salt"}
	case row.UserSalt.Valid:
		return &Fault{"user_salt", "is set beside row_salt"}
	case row.Redaction.Valid:
		return &Fault{"redaction", "is set beside row_salt"}
	case row.RedactionID.Valid:
		return &Fault{"redaction_id", "is set beside row_salt"}
	case row.UserID.Valid != row.UserCommit.Valid:
		return &Fault{"user_commit", "is set where user_id is null, or null where it is set"}
	}
	return nil
}

func sentinelOf(row *Row) (Sentinel, error) {
	if !row.Redaction.Valid {
		return Sentinel{}, &Fault{"redaction", "is null, and so is row_salt"}
	}
	s, err := ParseSentinel(row.Redaction.S)
	switch {
	case err != nil:
		return s, &Fault{"redaction", "is no sentinel"}
	case !row.RedactionID.Valid:
		return s, &Fault{"redaction_id", "is null, and so is row_salt"}
	case row.RedactionID.S != s.ID:
		return s, &Fault{"redaction_id", "is not the sentinel's"}
	}
	return s, nil
}

// checkUser checks that user_id is there with its salt, or gone with it.
func checkUser(row *Row, s *Sentinel) error {
	switch {
	case row.UserID.Valid && s.User:
		return &Fault{"user_id", "is set, and the sentinel says that it went"}
	case row.UserID.Valid && !row.UserCommit.Valid:
		return &Fault{"user_commit", "is null where user_id is set"}
	case row.UserID.Valid != row.UserSalt.Valid:
		return &Fault{"user_salt", "is set where user_id is null, or null where it is kept"}
	case !row.UserID.Valid && row.UserCommit.Valid && !s.User:
		return &Fault{"user_id", "is gone, and the sentinel does not say so"}
	}
	return nil
}

func checkErased(row *Row) error {
	if row.Residual.Valid {
		return &Fault{"residual", "is set where all slots were erased"}
	}
	for s := range audit.NumSlots {
		if row.Slots[s] != nil {
			return &Fault{s.String(), "has content where all slots were erased"}
		}
	}
	return nil
}

// hardColumns is the index in audit.Header of record_id, the first of the
// columns that a hard erasure takes (10 to 31).
const hardColumns = 9

func checkHardErased(row *Row) error {
	for i := hardColumns; i < len(audit.Header); i++ {
		if c := &audit.Header[i]; c.Text != nil && c.Text(&row.Record).Valid || c.Int != nil && c.Int(&row.Record).Valid {
			return &Fault{c.Name, "has content in a hard-erased row"}
		}
	}
	return checkErased(row)
}

// checkPartlyErased checks that residual has the salt of each slot with
// content, the commitment of each erased one, and nothing else.
func checkPartlyErased(row *Row, s *Sentinel, residual *Residual) error {
	if !row.Residual.Valid {
		return &Fault{"residual", "is null where not all slots were erased"}
	}
	var err error
	if *residual, err = ParseResidual(row.Residual.S); err != nil {
		return &Fault{"residual", err.Error()}
	}
	for slot := range audit.NumSlots {
		kept, erased := row.Slots[slot] != nil, s.Slots.Has(slot)
		switch {
		case kept && erased:
			return &Fault{slot.String(), "has content, and the sentinel says that it went"}
		case kept != residual.Salts[slot].Valid:
			return &Fault{"residual", fmt.Sprintf("has a salt of %s that is null, or none of one that is not", slot)}
		case residual.Commits[slot].Valid && !erased:
			return &Fault{"residual", fmt.Sprintf("has a commitment of %s, which the sentinel does not name", slot)}
		}
	}
	return nil
}

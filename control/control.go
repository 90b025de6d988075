// Package control reads and writes what governs an archive: the rows of control
// logs, which order erasures, cuts and holds, and say what was done.
//
//	redaction            what is to be erased: a target, and what goes of the rows that it means
//	redaction-cancelled  takes a redaction back
//	erasure-done         the receipt of one, in parts
//	retention-cut        a prefix of one log goes
//	legal-hold           set or lifted
//
// Each is a record of the control topic that ingest archives as a row; its value
// stands in the row's context. [Record] makes one, [ParseRow] reads the row,
// [Governance] takes in the rows of all control logs and says what counts: which
// receipts are whole, which orders were taken back, which holds are in force.
// Source: docs/format.md, section 4.
//
// All of it is pure, but [Read], which reads the control logs of an archive.
// The package erases nothing, and does not judge whether an order is lawful:
// that is for redact and retention.
package control

import (
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Row is one row of a control log.
//
// One of the documents is set, the one of its kind; none where the context is
// gone or cannot be read, and then the row orders nothing.
type Row struct {
	Tenant     string
	ID         string // a ULID in upper case
	Kind       string
	Seq        int64
	ArchivedAt int64  // microseconds
	CreatedAt  int64  // microseconds, as the record says; ArchivedAt where it says nothing
	Anchored   bool   // an anchor covers it: only then does it count
	Gone       bool   // its context was erased
	Unsigned   string // why its signature does not count; "" where it does, or nobody asked
	Refused    bool   // Unsigned, and control keys are in force: it orders nothing
	reach      int64  // archived_at of the first row of the id, where this one repeats an order that is closed; else 0

	Redaction *Redaction
	Cancel    *Cancel
	Receipt   *Receipt
	Cut       *Cut
	Hold      *Hold
}

// A Redaction orders that something is erased from the rows that a target means.
type Redaction struct {
	Target Target
	Erasure
	Reason     string
	RequestRef *string // the request outside, by its own name
	By         string
}

// A Cancel takes a redaction back, as long as nothing was erased by it.
type Cancel struct {
	RedactionID string
	Reason      string
	By          string
}

// A Receipt is one part of the statement that a redaction was carried out.
type Receipt struct {
	RedactionID string
	Erasure
	Reason      string
	RequestRef  *string
	Part, Parts int64 // from 1
	Erased      []Erased
	Deleted     []Deleted
	OutOfReach  []string // what could not go, in words
}

// MaxRanges is the most ranges that one part of a receipt has.
const MaxRanges = 5000

// An Erased is the rows of one log that a receipt names.
type Erased struct {
	Log    archive.Line
	Ranges [][2]int64 // first and last seq, both in it
}

// A Deleted is an object that is gone, and the versions of it that were removed.
type Deleted struct {
	Key      string
	Versions []string // none where the store has no versions
}

// A Cut says that the rows of a log below a size are dropped, and what a log
// goes on from.
type Cut struct {
	Log      archive.Line
	Size     int64
	Head     chain.Hash
	Frontier []chain.Hash
	Policy   string
}

// A Hold keeps rows from being erased and dropped, or lifts that again.
type Hold struct {
	Scope  Scope
	Set    bool
	Reason string
	By     string
}

// A Scope is what a hold reaches: all of the tenant, a session, or a user. One of
// the three is set.
type Scope struct {
	Tenant        bool
	Session, User *string
}

// Holds reports whether the row lies in the scope; by its user also where it is
// a rejected row whose bytes hold the user's id.
func (s *Scope) Holds(row *chain.Row) bool {
	switch {
	case s.Tenant:
		return true
	case s.Session != nil:
		return row.SessionID.Valid && row.SessionID.S == *s.Session
	case s.User != nil:
		return (&rejectedRow{row: row}).isOf(*s.User)
	}
	return false
}

// Same reports whether two scopes are one: a hold is lifted by its own.
func (s *Scope) Same(o *Scope) bool { return s.key() == o.key() }

// key names the scope, so that a hold and what lifts it meet.
func (s *Scope) key() string {
	switch {
	case s.Session != nil:
		return "s" + *s.Session
	case s.User != nil:
		return "u" + *s.User
	}
	return "t"
}

// ParseRow reads a control row. Where the context says nothing that its kind
// says, the row has no document, and the error says why; one whose context was
// erased is no error. Anchored and Unsigned are for the caller to find out. Nothing of the
// row is kept.
func ParseRow(row *chain.Row) (*Row, error) {
	r := &Row{
		Tenant: strings.Clone(row.TenantID.S), ID: strings.Clone(strings.ToUpper(row.RecordID.S)), Kind: strings.Clone(row.Kind.S),
		Seq: row.Seq.N, ArchivedAt: row.ArchivedAt.N, CreatedAt: row.ArchivedAt.N,
	}
	if row.CreatedAt.Valid {
		r.CreatedAt = row.CreatedAt.N
	}
	text := row.Slots[audit.SlotContext]
	if r.Gone = text == nil; r.Gone {
		return r, nil
	}
	if err := r.read(text); err != nil {
		r.Redaction, r.Cancel, r.Receipt, r.Cut, r.Hold = nil, nil, nil, nil, nil
		return r, fmt.Errorf("%s %s: %w", r.Kind, r.ID, err)
	}
	return r, nil
}

func (r *Row) read(text []byte) (err error) {
	switch r.Kind {
	case audit.KindRedaction:
		r.Redaction, err = readRedaction(text)
	case audit.KindRedactionCancelled:
		r.Cancel, err = readCancel(text)
	case audit.KindErasureDone:
		r.Receipt, err = readReceipt(text)
	case audit.KindRetentionCut:
		r.Cut, err = readCut(text)
	case audit.KindLegalHold:
		r.Hold, err = readHold(text)
	}
	return err
}

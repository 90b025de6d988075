// Package ledger is what an application that calls models has of its ledger:
// the records that it writes, and five contracts, each with forms to choose
// from.
//
//	Ledger          takes calls                  None, Unwired, memory, emit.Emitter
//	Query           gives them back              None, Unwired, memory, archived
//	TamperEvidence  links them, and checks that  NoEvidence, Chained
//	Redactor        takes content out, before    NoRedactor, scrub
//	SoftDelete      takes content out, later     Unwired, memory, archived
//
// The forms are in packages of their own, so that an application has only what
// it uses: ledger/memory keeps all in the process (for tests, and for
// applications that have no archive yet), ledger/archived asks an archive and
// orders erasures of it, ledger/scrub applies a policy file of package redact,
// and package emit sends records to Kafka. Package ledgertest is what they all
// pass.
//
// A [Call], a [DecisionRecord] and an [Entry] are records as they go over the
// wire: docs/wire-columns.md says which column each member becomes, and what is
// unknown is kept and written again. Source of the contracts: docs/emit.md.
//
// The package is pure: no clock, no network, no goroutine.
package ledger

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Errors that the contracts know. A form may have others of its own.
var (
	// ErrUnwired: nothing is wired that could do what was asked for.
	ErrUnwired = errors.New("no ledger is wired")
	// ErrConflict: there is another call at the same coordinates, which says
	// something else. The first one stands.
	ErrConflict = errors.New("another call has these coordinates")
	// ErrUnknownRecord: no record has that id.
	ErrUnknownRecord = errors.New("no record has this id")
	// ErrErased: nothing of the row is left that could be linked.
	ErrErased = errors.New("the row was erased with its header")
)

// A Ledger takes calls. It is append-only: no call is ever changed, or taken
// back.
//
// Methods may be called concurrently, and never panic. The coordinates of a call
// are tenant, sessionId, turnId, stageId and seqWithinTurn.
type Ledger interface {
	// RecordCall adds a call. To add it again is a no-op; another one with its
	// coordinates is [ErrConflict], from who can know it, and changes nothing.
	// The call is not kept: it may be changed once RecordCall has returned. An
	// error is for who wants to look: no caller needs to fail for it.
	RecordCall(ctx context.Context, c *Call) error
}

// A Query gives back what a ledger has of a tenant.
//
// Methods may be called concurrently. What is unknown is empty, and no error.
// Calls of other tenants are never seen. Where something was erased, the record
// comes without it, and says so.
type Query interface {
	// Turn returns the calls of a turn in a session: seqWithinTurn ascending.
	Turn(ctx context.Context, tenant, session, turn string) ([]*Record, error)
	// Session returns calls of a session, the newest first, by recordId.
	Session(ctx context.Context, tenant, session string, p Page) ([]*Record, error)
	// Range yields the calls of a stretch of time, some at a time, each once,
	// in no order. It ends with the first error.
	Range(ctx context.Context, tenant string, r Range) iter.Seq2[[]*Record, error]
}

// A Page says which calls of a session are asked for.
type Page struct {
	Limit  int    // calls; 0 means [DefaultLimit]
	Before string // a ULID: calls whose recordId is less; "" means from the newest on
}

// A Range says which calls of a tenant are asked for: createdAt in [From, To).
// The zero times are no bounds.
type Range struct {
	From, To  time.Time
	ChunkSize int // calls at a time; 0 means [DefaultChunk]
}

// Rows returns how many calls the page has at most.
func (p Page) Rows() int {
	if p.Limit <= 0 {
		return DefaultLimit
	}
	return p.Limit
}

// Cursor returns Before in upper case, as ids are compared; an error where it is
// no ULID.
func (p Page) Cursor() (string, error) {
	if p.Before == "" {
		return "", nil
	}
	return audit.ParseRecordID(p.Before)
}

// Has reports whether an instant is in the range.
func (r Range) Has(at time.Time) bool {
	return (r.From.IsZero() || !at.Before(r.From)) && (r.To.IsZero() || at.Before(r.To))
}

// Chunk returns how many calls come at a time.
func (r Range) Chunk() int {
	if r.ChunkSize <= 0 {
		return DefaultChunk
	}
	return r.ChunkSize
}

// What a Page and a Range ask for where they do not say it.
const (
	DefaultLimit = 100
	DefaultChunk = 500
)

// TamperEvidence links records so that what is changed, swapped or taken out
// later shows.
type TamperEvidence interface {
	// Scheme returns [SchemeNone], [chain.SchemeV1] or [chain.SchemeHMACv1].
	Scheme() string
	// Link returns the anchor of a record that comes after previous: the same for
	// the same two, always.
	Link(r *Record, previous chain.Hash) (chain.Hash, error)
	// VerifySequence goes through records that follow each other, the first one
	// after initial, and returns where they break first; nil where they do not.
	VerifySequence(records []*Record, initial chain.Hash) *Break
}

// SchemeNone is the scheme of who links nothing.
const SchemeNone = "none"

// A Break is where a sequence of records does not hold.
type Break struct {
	Index    int    // of the record
	RecordID string // its id; "" where it was erased with its header
	Problem  string // shows nothing of what the record says
}

// A Redactor takes out of a call what must not be stored.
type Redactor interface {
	// PolicyID names what is taken out; [audit.PolicyNone] where nothing is.
	PolicyID() string
	// Redact returns what is to be stored in place of c, once for each call. It is
	// pure: c stays as it was, equal calls give equal ones, and a call that was
	// redacted stays as it is. After an error nothing of the call may be stored.
	Redact(c *Call) (*Call, error)
}

// SoftDelete takes content out of a record that is stored: its place, its
// identity and the shape of the call stay, and so does all evidence.
type SoftDelete interface {
	// SoftDelete orders it, and returns the sentinel that stands in place of what
	// goes. A second call returns the first sentinel as it is, whatever it asks
	// for: redactions do not chain. An unknown id is [ErrUnknownRecord], and who
	// cannot delete says [ErrUnwired].
	SoftDelete(ctx context.Context, tenant, recordID string, r Request) (chain.Sentinel, error)
}

// A Request says why something is deleted.
type Request struct {
	Reason     string
	RequestRef string // the request outside, by its own name; "" is none
	By         string // who asked; "" is none
}

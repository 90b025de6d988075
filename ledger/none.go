package ledger

import (
	"context"
	"iter"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// None is a ledger that keeps nothing, for applications that have turned it off:
// calls are taken and forgotten, queries are empty. It cannot delete, and says so:
// whoever asks for a deletion must not believe that it was done.
type None struct{ noDelete }

// Unwired is a ledger that is not there yet: all that is asked of it is
// [ErrUnwired].
type Unwired struct{ noDelete }

var (
	_ Ledger     = None{}
	_ Query      = None{}
	_ SoftDelete = None{}
	_ Ledger     = Unwired{}
	_ Query      = Unwired{}
	_ SoftDelete = Unwired{}
)

// RecordCall forgets the call.
func (None) RecordCall(context.Context, *Call) error { return nil }

// Turn returns nothing.
func (None) Turn(context.Context, string, string, string) ([]*Record, error) { return nil, nil }

// Session returns nothing.
func (None) Session(context.Context, string, string, Page) ([]*Record, error) { return nil, nil }

// Range yields nothing.
func (None) Range(context.Context, string, Range) iter.Seq2[[]*Record, error] {
	return func(func([]*Record, error) bool) {}
}

// RecordCall returns [ErrUnwired].
func (Unwired) RecordCall(context.Context, *Call) error { return ErrUnwired }

// Turn returns [ErrUnwired].
func (Unwired) Turn(context.Context, string, string, string) ([]*Record, error) {
	return nil, ErrUnwired
}

// Session returns [ErrUnwired].
func (Unwired) Session(context.Context, string, string, Page) ([]*Record, error) {
	return nil, ErrUnwired
}

// Range yields [ErrUnwired].
func (Unwired) Range(context.Context, string, Range) iter.Seq2[[]*Record, error] {
	return func(yield func([]*Record, error) bool) { yield(nil, ErrUnwired) }
}

type noDelete struct{}

// SoftDelete returns [ErrUnwired].
func (noDelete) SoftDelete(context.Context, string, string, Request) (chain.Sentinel, error) {
	return chain.Sentinel{}, ErrUnwired
}

// NoRedactor takes nothing out.
type NoRedactor struct{}

var _ Redactor = NoRedactor{}

// PolicyID returns [audit.PolicyNone].
func (NoRedactor) PolicyID() string { return audit.PolicyNone }

// Redact returns c itself.
func (NoRedactor) Redact(c *Call) (*Call, error) { return c, nil }

// NoEvidence links nothing: each anchor is the one before, and no sequence
// breaks.
type NoEvidence struct{}

var _ TamperEvidence = NoEvidence{}

// Scheme returns [SchemeNone].
func (NoEvidence) Scheme() string { return SchemeNone }

// Link returns previous.
func (NoEvidence) Link(_ *Record, previous chain.Hash) (chain.Hash, error) { return previous, nil }

// VerifySequence returns nil.
func (NoEvidence) VerifySequence([]*Record, chain.Hash) *Break { return nil }

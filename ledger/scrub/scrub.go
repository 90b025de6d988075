// Package scrub is a [ledger.Redactor] by a policy of package redact: what
// ledgerlake-ingest scrubs with scrub-file, taken out in the producer already,
// so that it never leaves the process.
package scrub

import (
	"fmt"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/ledger"
	"github.com/ledgerlake/ledgerlake/redact"
)

// A Redactor applies a policy. It may be used by several goroutines at once.
type Redactor struct{ policy *redact.Policy }

var _ ledger.Redactor = Redactor{}

// By returns the redactor of a policy; nil takes nothing out.
func By(p *redact.Policy) Redactor { return Redactor{p} }

// PolicyID is [redact.Policy.ID].
func (r Redactor) PolicyID() string { return r.policy.ID() }

// Redact scrubs what an archive would: the slots of the call, not what becomes
// a column of its own (docs/scrubbing.md). A call that an archive would reject
// cannot be scrubbed: the error matches [ledger.ErrNoRecord].
func (r Redactor) Redact(c *ledger.Call) (*ledger.Call, error) {
	if r.policy == nil {
		return c, nil
	}
	var row audit.Record
	m := audit.Message{Key: []byte(c.Tenant()), Value: c.AppendJSON(nil)}
	d := audit.Decoder{PromptPaths: []string{}} // prompts stay in their places, and are scrubbed there
	if reject := d.Decode(&row, &m); reject != nil {
		return nil, fmt.Errorf("%w: %s: %s", ledger.ErrNoRecord, reject.Reason, reject.Detail)
	}
	if err := r.policy.Scrub(&row); err != nil {
		return nil, err
	}
	value, err := audit.Restore(nil, &row)
	if err != nil {
		return nil, err
	}
	redacted := new(ledger.Call)
	return redacted, redacted.UnmarshalJSON(value)
}

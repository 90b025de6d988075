package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A Policy says what is scrubbed from records before they are stored. nil scrubs
// nothing. It does not change, and serves any number of goroutines.
type Policy struct {
	id      string
	rules   *ruleSet            // of tenants that have none of their own
	tenants map[string]*ruleSet // of those that have
}

// ID returns what redaction_policy says of rows that the policy was applied to:
// its name, "@", and the first 16 hex digits of the SHA-256 of what it says;
// [audit.PolicyNone] for nil. Files that say the same have the same id, whatever
// their layout; and a version of this package whose rules find something else
// gives other ids.
func (p *Policy) ID() string {
	if p == nil {
		return audit.PolicyNone
	}
	return p.id
}

func (p *Policy) rulesOf(tenant string) *ruleSet {
	if rules, ok := p.tenants[tenant]; ok {
		return rules
	}
	return p.rules
}

// rulesVersion changes whenever a rule finds something else than before, or
// replaces it by something else: such rows are of another policy.
const rulesVersion = 1

// idOf returns the id of what a policy file says.
func idOf(name string, says *policyText) string {
	text, err := json.Marshal(struct {
		Version int
		*policyText
	}{rulesVersion, says})
	if err != nil {
		panic(err) // strings always marshal
	}
	sum := sha256.Sum256(text)
	return name + "@" + hex.EncodeToString(sum[:8])
}

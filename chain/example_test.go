package chain_test

import (
	"fmt"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A row is stamped, loses a slot to an erasure, and still checks: no hash
// moved.
func Example() {
	log := chain.Log{ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ01", Tenant: "acme", Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A"}
	hasher := chain.NewHasher(nil)

	var row chain.Row
	row.TenantID, row.Topic, row.Kind = audit.Str("acme"), audit.Str("audit.calls"), audit.Str(audit.KindCall)
	row.Slots[audit.SlotPrompts] = []byte(`{"call.prompt":"who am I?"}`)
	row.Slots[audit.SlotTokenCost] = []byte(`{"inputTokens":4}`)
	salt := chain.Hash{1, 2, 3} // from crypto/rand, in earnest
	hasher.Stamp(&row, chain.Genesis(chain.SchemeV1, log), salt)
	stamped := row.RowHash

	gone := chain.Sentinel{ID: "01KBCDEFGHJKMNPQRSTVWXYZ02", Slots: chain.SlotSetOf(audit.SlotPrompts)}
	residual, err := hasher.Residual(&row, gone.Slots)
	if err != nil {
		fmt.Println(err)
		return
	}
	row.Slots[audit.SlotPrompts], row.RowSalt = nil, chain.NullHash{}
	row.Residual = audit.Str(residual.String())
	row.Redaction, row.RedactionID = audit.Str(gone.String()), audit.Str(gone.ID)

	state, err := chain.StateOf(&row)
	fmt.Println(state, err)
	fmt.Println(hasher.Check(&row), row.RowHash == stamped)
	row.Slots[audit.SlotTokenCost] = []byte(`{"inputTokens":5}`)
	fmt.Println(hasher.Check(&row))
	// Output:
	// partly erased <nil>
	// <nil> true
	// payload_commit does not recompute
}

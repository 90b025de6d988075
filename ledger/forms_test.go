package ledger_test

import (
	"context"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/ledger"
	"github.com/ledgerlake/ledgerlake/ledger/ledgertest"
	"github.com/ledgerlake/ledgerlake/ledger/memory"
	"github.com/ledgerlake/ledgerlake/ledger/scrub"
	"github.com/ledgerlake/ledgerlake/redact"
)

func TestNone(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledgertest.Form {
		return ledgertest.Form{Ledger: ledger.None{}, Query: ledger.None{}, SoftDelete: ledger.None{}, Redactor: ledger.NoRedactor{}, Evidence: ledger.NoEvidence{}}
	})
}

func TestUnwired(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledgertest.Form {
		return ledgertest.Form{Ledger: ledger.Unwired{}, Query: ledger.Unwired{}, SoftDelete: ledger.Unwired{}, Refuses: ledger.ErrUnwired}
	})
}

func TestMemory(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.Form { return inMemory(memory.Options{}) })
}

func TestKeyedMemory(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.Form { return inMemory(memory.Options{Key: make([]byte, chain.MinKey)}) })
}

func TestScrubbedMemory(t *testing.T) {
	policy, err := redact.ParsePolicy([]byte("name: pii-us\nrules:\n  - rule: ssn-us\n"))
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Run(t, func(t *testing.T) ledgertest.Form {
		form := inMemory(memory.Options{Redactor: scrub.By(policy)})
		form.Redactor, form.Secret = scrub.By(policy), "219-09-9999"
		return form
	})
}

func inMemory(o memory.Options) ledgertest.Form {
	l := memory.New(o)
	return ledgertest.Form{
		Ledger: l, Query: l, SoftDelete: l, Evidence: l.Evidence(ledgertest.Tenant), Redactor: scrub.By(nil),
		Log:   func(_ context.Context, tenant string) ([]*ledger.Record, chain.Hash, error) { return l.Log(tenant) },
		Keeps: true, Checks: true, Conflicts: true, Deletes: true,
	}
}

// What the redactor takes out is not in what is kept, and the row says which
// policy it was.
func TestMemoryRedacts(t *testing.T) {
	policy, err := redact.ParsePolicy([]byte("name: pii-us\nrules:\n  - rule: ssn-us\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := memory.New(memory.Options{Redactor: scrub.By(policy)})
	c := ledgertest.Call("t-1", 1)
	c.ToolSelection = []byte(`{"q":"219-09-9999"}`)
	if err := l.RecordCall(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got, err := l.Turn(t.Context(), ledgertest.Tenant, "s-1", "t-1")
	if err != nil || len(got) != 1 || string(got[0].ToolSelection) != `{"q":"[redacted:ssn-us]"}` || got[0].Row.RedactionPolicy.S != policy.ID() {
		t.Errorf("%v, %v", got, err)
	}
}

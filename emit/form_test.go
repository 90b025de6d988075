package emit

import (
	"context"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/ledger"
	"github.com/ledgerlake/ledgerlake/ledger/ledgertest"
	"github.com/ledgerlake/ledgerlake/ledger/memory"
)

// As a ledger, an emitter keeps the contract with an archive at its other end: here
// one in memory, into which settle puts what was sent.
func TestAsLedger(t *testing.T) {
	for name, wait := range map[string]bool{"waiting": true, "not waiting": false} {
		t.Run(name, func(t *testing.T) {
			ledgertest.Run(t, func(t *testing.T) ledgertest.Form {
				k, kept := &truck{}, memory.New(memory.Options{})
				e := startOn(Options{Topic: topic}, k)
				t.Cleanup(func() { e.Close() })
				return ledgertest.Form{
					Ledger: e.AsLedger(wait), Query: kept, SoftDelete: kept, Evidence: ledger.Chained{},
					Log:   func(_ context.Context, tenant string) ([]*ledger.Record, chain.Hash, error) { return kept.Log(tenant) },
					Keeps: true, Deletes: true, Checks: wait, Fills: true,
					Settle: func() {
						if err := e.Flush(context.Background()); err != nil {
							t.Error(err)
						}
						for _, r := range k.records() {
							var c ledger.Call
							if err := c.UnmarshalJSON(r.Value); err != nil {
								t.Error(err)
							}
							_ = kept.RecordCall(context.Background(), &c) // a repeat, or a conflict, for what was settled before
						}
					},
				}
			})
		})
	}
}

// What a call costs whoever makes it.
func BenchmarkRecord(b *testing.B) {
	k := &truck{blocks: make(chan struct{})}
	e := startOn(Options{Topic: topic}, k)
	defer close(k.blocks)
	e.StartTurn("msg-1", acme())
	at := Site{TurnKey: "msg-1", Provider: "anthropic", Model: "m-1", CallClass: "worker"}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			e.RecordFamilyLockDecision(context.Background(), at, ledger.FamilyLock{ResolverPath: "session>matrix", ByokActive: new(true)})
		}
	})
}

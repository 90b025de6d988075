package ledger_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ledgerlake/ledgerlake/ledger"
	"github.com/ledgerlake/ledgerlake/ledger/memory"
)

// A ledger in memory keeps a turn, loses a call's content to a deletion, and still
// shows that nothing else was changed.
func Example() {
	ctx := context.Background()
	l := memory.New(memory.Options{})
	for n := range int64(3) {
		err := l.RecordCall(ctx, &ledger.Call{
			RecordID: fmt.Sprintf("01KBCDEFGHJKMNPQRSTVWXYZ0%d", n), SessionID: "session-7", TurnID: "turn-42", StageID: "tool-loop", SeqWithinTurn: n,
			CreatedAt: time.Date(2026, 11, 30, 12, 0, int(n), 0, time.UTC), Principal: ledger.Principal{TenantID: "acme"},
			ToolSelection: []byte(`{"chosen":"search"}`),
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	if _, err := l.SoftDelete(ctx, "acme", "01KBCDEFGHJKMNPQRSTVWXYZ01", ledger.Request{Reason: "erasure request", RequestRef: "R-17"}); err != nil {
		fmt.Println(err)
	}
	calls, err := l.Turn(ctx, "acme", "session-7", "turn-42")
	for _, c := range calls {
		_, deleted := c.Redaction()
		fmt.Println(c.SeqWithinTurn, string(c.ToolSelection), deleted)
	}
	records, genesis, err2 := l.Log("acme")
	fmt.Println(err, err2, l.Evidence("acme").VerifySequence(records, genesis))
	// Output:
	// 0 {"chosen":"search"} false
	// 1  true
	// 2 {"chosen":"search"} false
	// <nil> <nil> <nil>
}

// What a later version of the producer says is kept, and written again as it was.
func ExampleCall_UnmarshalJSON() {
	var c ledger.Call
	err := c.UnmarshalJSON([]byte(`{"seqWithinTurn":3,"call":{"model":"m-1","region":"eu"},"routing":{"weight":0.70}}`))
	fmt.Println(err, c.Ran.Model, string(c.Ran.Extra.Get("region")))
	c.Ran.Model = "m-2"
	fmt.Println(string(c.AppendJSON(nil)))
	// Output:
	// <nil> m-1 "eu"
	// {"seqWithinTurn":3,"call":{"model":"m-2","region":"eu"},"routing":{"weight":0.70}}
}

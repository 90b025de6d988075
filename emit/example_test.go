package emit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/emit"
	"github.com/ledgerlake/ledgerlake/ledger"
)

// A service answers messages, and every step of a turn is recorded. The Kafka here
// is one in the process.
func Example() {
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "audit.calls"))
	if err != nil {
		log.Fatal(err)
	}
	defer kafka.Close()

	audit, err := emit.New(emit.Options{Topic: "audit.calls", Kafka: []kgo.Opt{kgo.SeedBrokers(kafka.ListenAddrs()...)}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	audit.StartTurn("message-1", emit.Turn{Session: "session-7", Principal: ledger.Principal{TenantID: "acme", ActorKind: "user"}})
	audit.RecordFamilyLockDecision(ctx, emit.Site{TurnKey: "message-1", Provider: "anthropic"}, ledger.FamilyLock{ResolverPath: "session>tenant>matrix"})
	audit.RecordTokenCostDecision(ctx, emit.Site{TurnKey: "message-1"}, ledger.TokenCost{InputTokens: new(int64(1200)), OutputTokens: new(int64(80))})
	audit.EndTurn("message-1")

	err = audit.Close()
	fmt.Println(audit.Stats().Acknowledged, err)
	// Output: 2 <nil>
}

// Where no answer may be given before its record is kept, the record is waited for.
// What is filled in once can be recorded again, as often as it takes, and is
// archived once.
func ExampleEmitter_RecordSync() {
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "audit.calls"))
	if err != nil {
		log.Fatal(err)
	}
	defer kafka.Close()
	audit, err := emit.New(emit.Options{Topic: "audit.calls", Kafka: []kgo.Opt{kgo.SeedBrokers(kafka.ListenAddrs()...)}})
	if err != nil {
		log.Fatal(err)
	}
	defer audit.Close()

	ctx := context.Background()
	turn := audit.NewTurn(emit.Turn{Session: "session-7", Principal: ledger.Principal{TenantID: "acme"}})
	call, err := audit.Fill(turn, &ledger.Call{StageID: "synthesize", Outcome: ledger.Outcome{Status: "ok"}})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if err = audit.RecordSync(ctx, "", call); err == nil {
			break
		}
	}
	fmt.Println(err)
	// Output: <nil>
}

// The trace of a request goes with its records, here from a header; with
// OpenTelemetry, propagation.TraceContext{}.Inject writes the text from the context.
func ExampleOptions_traceparent() {
	type key struct{}
	options := emit.Options{
		Topic:       "audit.calls",
		Kafka:       []kgo.Opt{kgo.SeedBrokers("localhost:9092")},
		Traceparent: func(ctx context.Context) string { trace, _ := ctx.Value(key{}).(string); return trace },
	}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), key{}, r.Header.Get("traceparent"))
		fmt.Println(options.Traceparent(ctx))
	})
	request, _ := http.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	handler.ServeHTTP(nil, request)
	// Output: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
}

// The nil Emitter is auditing turned off: nothing is recorded, and no call needs
// to ask.
func ExampleEmitter() {
	var audit *emit.Emitter
	audit.StartTurn("message-1", emit.Turn{})
	audit.RecordTokenCostDecision(context.Background(), emit.Site{TurnKey: "message-1"}, ledger.TokenCost{})
	fmt.Println(audit.Stats().Recorded, audit.Close())
	// Output: 0 <nil>
}

// Command go is an agent that is audited: one turn of two steps. With a Kafka that
// listens on 127.0.0.1:9092 (bin/ledgerlake-devstack up starts one):
//
//	go run ./examples/go
//
// KAFKA_BROKERS and AUDIT_TOPIC name another Kafka and another topic.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/emit"
	"github.com/ledgerlake/ledgerlake/ledger"
)

func main() {
	// Once in the process.
	audit, err := emit.New(emit.Options{
		Topic:   cmp.Or(os.Getenv("AUDIT_TOPIC"), "audit.calls"),
		Kafka:   []kgo.Opt{kgo.SeedBrokers(strings.Split(cmp.Or(os.Getenv("KAFKA_BROKERS"), "127.0.0.1:9092"), ",")...)},
		Trouble: func(err error) { fmt.Fprintln(os.Stderr, "audit:", err) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	turn(context.Background(), audit)

	if err := audit.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d records are acknowledged\n", audit.Stats().Acknowledged)
}

// turn answers one message of a user.
func turn(ctx context.Context, audit *emit.Emitter) {
	turn := audit.NewTurn(emit.Turn{Session: "session-7", Principal: ledger.Principal{TenantID: "acme", UserID: "u-4711", ActorKind: "user", SessionAuthMethod: "api-key"}})
	defer audit.EndTurn(turn)
	fmt.Println("turn", turn)

	audit.RecordPlanGenerationDecision(ctx, emit.Site{TurnKey: turn}, map[string]any{"steps": []string{"orders.lookup", "answer"}})
	audit.Record(ctx, turn, &ledger.Call{
		StageID:   "synthesize",
		Ran:       ledger.Ran{CallClass: "writer", Provider: "anthropic", Model: "claude-haiku", Transport: "native"},
		Outcome:   ledger.Outcome{Status: "ok", LatencyMS: new(455.0), FinishReason: "stop", HTTPStatus: new(int64(200))},
		TokenCost: &ledger.TokenCost{InputTokens: new(int64(1200)), OutputTokens: new(int64(80))},
	})
}

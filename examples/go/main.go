// Command go is an agent that is audited: one turn, which is a plan, a tool that a
// first model fails at, and an answer. With a Kafka that listens on 127.0.0.1:9092
// (bin/ledgerlake-devstack up starts one):
//
//	go run ./examples/go [TURN]
//
// KAFKA_BROKERS and AUDIT_TOPIC name another Kafka and another topic. What package
// emit does for it, docs/emit.md says.
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
	if err := run(os.Args[1:], os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, getenv func(string) string) error {
	audit, err := emit.New(emit.Options{ // one for the process
		Topic:       cmp.Or(getenv("AUDIT_TOPIC"), "audit.calls"),
		Kafka:       []kgo.Opt{kgo.SeedBrokers(strings.Split(cmp.Or(getenv("KAFKA_BROKERS"), "127.0.0.1:9092"), ",")...)},
		Traceparent: func(context.Context) string { return "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" },
		Trouble:     func(err error) { fmt.Fprintln(os.Stderr, "audit:", err) },
	})
	if err != nil {
		return err
	}
	as := emit.Turn{
		Session:   "session-go",
		Principal: ledger.Principal{TenantID: "acme", UserID: "user-1003", ActorKind: "user", SessionAuthMethod: "api-key"},
	}
	if len(args) > 0 { // nobody else records this turn: numbers begin at 0
		as.TurnID = args[0]
	}
	turn := audit.NewTurn(as)
	answer(context.Background(), audit, turn)
	audit.EndTurn(turn)
	if err := audit.Close(); err != nil { // waits for Kafka, two seconds at most
		return err
	}
	fmt.Printf("Kafka has %d records of %s\n", audit.Stats().Acknowledged, turn)
	return nil
}

// answer serves one message of a user. No call of audit's waits for anything, or
// fails.
func answer(ctx context.Context, audit *emit.Emitter, turn string) {
	gpt := emit.Site{TurnKey: turn, Provider: "openai", Model: "gpt-5", CallClass: "planner", Transport: "native"}
	gpt.Outcome = ledger.Outcome{Status: "ok", LatencyMS: new(912.5), FinishReason: "stop", HTTPStatus: new(int64(200))}
	audit.RecordPlanGenerationDecision(ctx, gpt, map[string]any{"steps": []string{"look the order up", "answer"}})

	audit.Record(ctx, turn, &ledger.Call{
		StageID: "tool-loop", ToolName: "orders.lookup",
		Ran:      ledger.Ran{CallClass: "worker", Provider: "openai", Model: "gpt-5", Transport: "native"},
		Decision: &ledger.Decision{RequestedModel: "gpt-5", SelectedReason: "matrix-pick", RungOrdinal: new(int64(0)), FallbackChain: []string{}},
		Outcome:  ledger.Outcome{Status: "timeout", LatencyMS: new(30000.0)},
	})

	mini := emit.Site{TurnKey: turn, Stage: "tool-loop", Provider: "openai", Model: "gpt-5-mini", CallClass: "worker", Transport: "native", ToolName: "orders.lookup"}
	mini.Decision = &ledger.Decision{RequestedModel: "gpt-5", SelectedReason: "fallback-rung", RungOrdinal: new(int64(1)), FallbackChain: []string{"gpt-5"}}
	mini.Outcome = ledger.Outcome{Status: "ok", LatencyMS: new(380.0), FinishReason: "tool_calls", HTTPStatus: new(int64(200))}
	audit.RecordFallbackStepDecision(ctx, mini, ledger.FallbackStep{OriginalModel: "gpt-5", AttemptModel: "gpt-5-mini", AttemptIndex: new(int64(1)), Reason: "timeout", InFamily: new(true)})

	gpt.CallClass, gpt.Stage = "writer", "synthesize"
	gpt.Outcome = ledger.Outcome{Status: "ok", LatencyMS: new(1480.0), FinishReason: "stop", HTTPStatus: new(int64(200))}
	audit.RecordTokenCostDecision(ctx, gpt, ledger.TokenCost{
		InputTokens: new(int64(2300)), OutputTokens: new(int64(280)), Extra: ledger.Members{{Name: "microUsd", Value: []byte("5675")}},
	})

	audit.Record(ctx, turn, &ledger.Call{ // the end of a turn: what has come is archived at once
		StageID: "post-turn", Ran: ledger.Ran{CallClass: "housekeeping", Provider: "openai", Model: "unresolved"},
		Outcome: ledger.Outcome{Status: "ok", LatencyMS: new(2.0)},
	})
}

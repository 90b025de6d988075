//go:build it

package quickstart

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// An example is a producer of examples/, in a language of its own.
type example struct {
	name string
	turn string // a command that sends a turn; %s is its id
	user string
	// Of those that are no library of ours:
	away string // a program that sends awayRecords records of one tenant and says when
	bad  string // a program that sends 50 good records of one tenant, one that Kafka refuses and one that is no JSON
}

var ulid = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

// awayRecords is more than a producer of the examples keeps while Kafka is away.
const awayRecords = 10_500

var examples = []example{
	{name: "go", turn: "go run ./examples/go %s", user: "user-1003"},
	{
		name: "typescript", turn: "cd examples/typescript && node dist/main.js %s", user: "user-1001",
		away: `cd examples/typescript && node --input-type=module -e '
import { Kafka, logLevel } from "kafkajs";
import { Audit } from "./dist/audit.js";
const audit = new Audit(new Kafka({ brokers: [process.env.KAFKA_BROKERS], logLevel: logLevel.NOTHING }), "audit.calls", () => {});
const principal = { tenantId: "away-typescript", userId: null, actorKind: "system", sessionAuthMethod: "internal" };
const turn = audit.turn({ sessionId: "s", turnId: "t", principal });
for (let i = 0; i < 10500; i++) turn.record({ stageId: "tool-loop", call: { callClass: "worker", provider: "p", model: "m" }, outcome: { status: "ok", latencyMs: 1 } });
console.log("emitted");
console.log("left", await audit.close(40000));
process.exit(0);'`,
		bad: `cd examples/typescript && node --input-type=module -e '
import { Kafka, logLevel } from "kafkajs";
import { randomBytes } from "node:crypto";
import { Audit } from "./dist/audit.js";
const audit = new Audit(new Kafka({ brokers: [process.env.KAFKA_BROKERS], logLevel: logLevel.NOTHING }), "audit.calls", () => {});
const principal = { tenantId: "bad-typescript", userId: null, actorKind: "system", sessionAuthMethod: "internal" };
const turn = audit.turn({ sessionId: "s", turnId: "t", principal });
const step = { stageId: "tool-loop", call: { callClass: "worker", provider: "p", model: "m" }, outcome: { status: "ok", latencyMs: 1 } };
for (let i = 0; i < 25; i++) turn.record(step);
turn.record({ ...step, big: randomBytes(3000000).toString("hex") });
turn.record({ ...step, wrong: 1n });
for (let i = 0; i < 25; i++) turn.record({ ...step, cut: "😀".slice(0, 1) });
console.log("left", await audit.close(40000));'`,
	},
	{
		name: "python", turn: "cd examples/python && .venv/bin/python main.py %s", user: "user-1002",
		away: `cd examples/python && .venv/bin/python -c '
import os, audit
a = audit.Audit(os.environ["KAFKA_BROKERS"], "audit.calls")
turn = a.turn("s", "t", {"tenantId": "away-python", "userId": None, "actorKind": "system", "sessionAuthMethod": "internal"})
for i in range(10500):
    turn.record("tool-loop", {"callClass": "worker", "provider": "p", "model": "m"}, {"status": "ok", "latencyMs": 1})
print("emitted", flush=True)
print("left", a.close(40))'`,
		bad: `cd examples/python && .venv/bin/python -c '
import os, audit
a = audit.Audit(os.environ["KAFKA_BROKERS"], "audit.calls", **{"message.max.bytes": 10_000_000})
turn = a.turn("s", "t", {"tenantId": "bad-python", "userId": None, "actorKind": "system", "sessionAuthMethod": "internal"})
for i in range(52):
    more = {25: {"big": os.urandom(3_000_000).hex()}, 26: {"wrong": float("nan")}}.get(i, {"cut": chr(0xd83d)})
    turn.record("tool-loop", {"callClass": "worker", "provider": "p", "model": "m"}, {"status": "ok", "latencyMs": 1}, **more)
print("left", a.close(40))'`,
	},
}

// A row is an exported record, as far as it is looked at here.
type row struct {
	RecordID      string         `json:"recordId"`
	SessionID     string         `json:"sessionId"`
	TurnID        string         `json:"turnId"`
	StageID       string         `json:"stageId"`
	SeqWithinTurn int            `json:"seqWithinTurn"`
	CreatedAt     string         `json:"createdAt"`
	Version       int            `json:"auditRecordVersion"`
	Principal     map[string]any `json:"principal"`
	FallbackStep  map[string]any `json:"fallbackStep"`
	TokenCost     map[string]any `json:"tokenCost"`
	Detail        struct {
		Count int `json:"count"` // of dropped records
	} `json:"resultDetail"`
	Place struct {
		Kind      string          `json:"kind"`
		Partition int             `json:"partition"`
		Headers   json.RawMessage `json:"headers"`
	} `json:"$ledgerlake"`
}

// examples tries what the producers of examples/ promise, on the stack that
// the page has brought up.
func (n *newcomer) examples() {
	for _, e := range examples {
		n.t.Run(e.name, func(t *testing.T) {
			n := &newcomer{t: t, shell: n.shell, ports: n.ports, kafka: n.kafka}
			n.sends(e)
			n.repeats(e)
			if e.bad != "" {
				n.passes(e)
			}
		})
	}
	n.t.Run("away", func(t *testing.T) {
		n := &newcomer{t: t, shell: n.shell, ports: n.ports, kafka: n.kafka}
		n.outlives()
	})
}

// sends requires that a turn is archived as it was sent: each member in its
// place, ids in order, and in the partition into which a client in Go puts the
// same tenant.
func (n *newcomer) sends(e example) {
	turn := "turn-of-" + e.name
	n.run(fmt.Sprintf(e.turn, turn), "Kafka has 5 records of "+turn)
	rows := n.rows("turn --turn "+turn, "acme", 5)
	var stages, ids []string
	for i, r := range rows {
		stages, ids = append(stages, r.StageID), append(ids, r.RecordID)
		if r.SeqWithinTurn != i || r.SessionID != "session-"+e.name || r.TurnID != turn || r.Version != 19 || r.Place.Kind != "call" {
			n.t.Errorf("row %d: %+v", i, r)
		}
		if r.Principal["userId"] != e.user || r.Principal["actorKind"] != "user" {
			n.t.Errorf("row %d: principal %v", i, r.Principal)
		}
		if !ulid.MatchString(r.RecordID) {
			n.t.Errorf("row %d: record id %s", i, r.RecordID)
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", r.CreatedAt); err != nil {
			n.t.Error(err)
		}
		if want := partitionOf("acme", 4); r.Place.Partition != want {
			n.t.Errorf("row %d is in partition %d; clients in Go put it into %d", i, r.Place.Partition, want)
		}
	}
	if want := []string{"anchor-plan", "tool-loop", "tool-loop", "synthesize", "post-turn"}; !slices.Equal(stages, want) {
		n.t.Errorf("stages %v, want %v", stages, want)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		n.t.Errorf("record ids are not in order: %v", ids)
	}
	if rows[2].FallbackStep["attemptIndex"] != 1.0 || rows[3].TokenCost["microUsd"] == nil {
		n.t.Errorf("slots: %v, %v", rows[2].FallbackStep, rows[3].TokenCost)
	}
	if said := n.ask("turn --turn "+turn, "acme"); strings.Count(said, "traceparent") != 5 {
		n.t.Errorf("traceparent is not in each row:\n%s", said)
	}
}

// repeats requires what the READMEs of the examples say of a turn that is sent
// a second time: five repeats, and the turn as it was.
func (n *newcomer) repeats(e example) {
	turn := "turn-of-" + e.name
	before, archived := n.ask("turn --turn "+turn, "acme"), n.accounts().Duplicates
	n.run(fmt.Sprintf(e.turn, turn), "Kafka has 5 records of "+turn)
	n.eventually(func() bool { return n.accounts().Duplicates >= archived+5 })
	if got := n.accounts(); got.Duplicates != archived+5 || len(got.Rejects) > 0 {
		n.t.Errorf("%d repeats, want %d; rejects %v", got.Duplicates, archived+5, got.Rejects)
	}
	if after := n.ask("turn --turn "+turn, "acme"); after != before {
		n.t.Errorf("the turn is\n%s\nand was\n%s", after, before)
	}
}

// accounts are what verify counts in the archive.
type accounts struct {
	Duplicates int            `json:"duplicates"`
	Rejects    map[string]int `json:"rejects"`
}

func (n *newcomer) accounts() accounts {
	n.t.Helper()
	said, code, err := n.shell.ask("bin/ledgerlake-verify --json --key data/quickstart/anchors.vkey data/quickstart/stack/s3/audit 2>/dev/null")
	var report struct{ Totals accounts }
	if err != nil || code == 1 || code == 2 || json.Unmarshal([]byte(said), &report) != nil {
		n.t.Fatalf("verify ended with %d, %v:\n%s", code, err, said)
	}
	return report.Totals
}

// passes requires that a record that cannot be sent costs no other one, and is
// counted.
func (n *newcomer) passes(e example) {
	n.run(e.bad, "left 0")
	n.accounted("bad-"+e.name, 50, 2)
}

// accounted waits until a tenant has so many calls, and that it was said how
// many more were dropped.
func (n *newcomer) accounted(tenant string, wantCalls, wantDropped int) {
	n.t.Helper()
	var calls, dropped int
	n.eventually(func() bool {
		calls, dropped = n.tally(tenant)
		return calls+dropped >= wantCalls+wantDropped
	})
	if calls != wantCalls || dropped != wantDropped {
		n.t.Errorf("%s: %d records archived and %d dropped, want %d and %d", tenant, calls, dropped, wantCalls, wantDropped)
	}
}

// outlives takes Kafka (and the bucket) away, has each example send more than
// it keeps, and brings them back. Each record is in the archive, or in the
// count that the producer sent of what it dropped; none is there twice.
func (n *newcomer) outlives() {
	examples := slices.DeleteFunc(slices.Clone(examples), func(e example) bool { return e.away == "" })
	n.paste("kill -9 %1; wait %1 || true")
	for _, e := range examples {
		n.paste("(" + e.away + ") > " + e.name + ".log 2>&1 &")
	}
	for _, e := range examples {
		n.until("cat "+e.name+".log", "emitted", 0)
	}
	n.paste(n.ports.Replace("bin/ledgerlake-devstack up --dir data/quickstart/stack >> data/quickstart/devstack.log 2>&1 &"))
	for _, e := range examples {
		n.until("cat "+e.name+".log", "left 0", 0)
		tenant := "away-" + e.name
		var calls, dropped int
		n.eventually(func() bool {
			calls, dropped = n.tally(tenant)
			return calls+dropped >= awayRecords
		})
		if calls+dropped != awayRecords || dropped == 0 || calls < 9_000 {
			n.t.Errorf("%s: %d records archived and %d dropped, of %d", e.name, calls, dropped, awayRecords)
		}
	}
}

// tally counts the calls of a tenant, and returns the last count of dropped ones.
func (n *newcomer) tally(tenant string) (calls, dropped int) {
	for _, r := range n.parse(n.ask("range --from 2026-01-01", tenant)) {
		switch r.Place.Kind {
		case "call":
			calls++
		case "queue-dropped":
			dropped = max(dropped, r.Detail.Count)
		default:
			n.t.Fatalf("%s has a row of kind %s", tenant, r.Place.Kind)
		}
	}
	return calls, dropped
}

// rows asks until there are so many.
func (n *newcomer) rows(query, tenant string, want int) (rows []row) {
	n.t.Helper()
	n.eventually(func() bool {
		rows = n.parse(n.ask(query, tenant))
		return len(rows) >= want
	})
	if len(rows) != want {
		n.t.Fatalf("%s has %d rows, want %d", query, len(rows), want)
	}
	return rows
}

func (n *newcomer) parse(said string) (rows []row) {
	n.t.Helper()
	for line := range strings.Lines(said) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			n.t.Fatalf("%v: %s", err, line)
		}
		rows = append(rows, r)
	}
	return rows
}

// ask is what ledgerlake-export prints on stdout.
func (n *newcomer) ask(query, tenant string) string {
	n.t.Helper()
	said, code, err := n.shell.ask("bin/ledgerlake-export " + query + " --tenant " + tenant + " 2>>export.log")
	if err != nil || code != 0 {
		n.t.Fatalf("%s: ended with %d, %v", query, code, err)
	}
	return said
}

// run runs a command that must succeed and print something.
func (n *newcomer) run(command, want string) {
	n.t.Helper()
	if said, code, err := n.shell.ask(command); err != nil || code != 0 || !strings.Contains(said, want) {
		n.t.Fatalf("%s: ended with %d, %v:\n%s", command, code, err, said)
	}
}

func (n *newcomer) paste(commands string) {
	n.t.Helper()
	if said, code, err := n.shell.paste(commands); err != nil || code != 0 {
		n.t.Fatalf("%s: ended with %d, %v:\n%s", commands, code, err, said)
	}
}

func (n *newcomer) eventually(there func() bool) {
	n.t.Helper()
	for began := time.Now(); !there(); time.Sleep(200 * time.Millisecond) {
		if time.Since(began) > patience {
			n.t.Fatal("it does not come")
		}
	}
}

// partitionOf is where franz-go puts a record with a key.
func partitionOf(key string, partitions int) int {
	return kgo.StickyKeyPartitioner(nil).ForTopic("").Partition(&kgo.Record{Key: []byte(key)}, partitions)
}

// One turn of an agent: a plan, a tool that a first model fails at, an answer.
//
//   npm start -- [TURN]     KAFKA_BROKERS (127.0.0.1:9092), AUDIT_TOPIC (audit.calls)
import { Kafka, logLevel } from "kafkajs";
import { ulid } from "ulid";
import { Audit } from "./audit.js";

const kafka = new Kafka({
  clientId: "example-typescript",
  brokers: (process.env["KAFKA_BROKERS"] ?? "127.0.0.1:9092").split(","),
  logLevel: logLevel.ERROR,
});
const audit = new Audit(kafka, process.env["AUDIT_TOPIC"] ?? "audit.calls");

// A turn is sent once: a second one of this id would be a repeat, or a conflict if it said something else.
const turnId = process.argv[2] ?? `turn-${ulid()}`;
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void audit.close().then(() => process.exit(1)));

const turn = audit.turn({
  sessionId: "session-typescript",
  turnId,
  principal: { tenantId: "acme", userId: "user-1001", actorKind: "user", sessionAuthMethod: "api-key" },
  headers: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
});

turn.record({
  stageId: "anchor-plan",
  call: { callClass: "planner", provider: "anthropic", model: "claude-sonnet", transport: "native" },
  decision: { requestedModel: null, selectedReason: "family-lock", rungOrdinal: 0, fallbackChain: [] },
  outcome: { status: "ok", latencyMs: 812.5, finishReason: "end_turn", httpStatus: 200 },
  inputTokens: 1200,
  outputTokens: 80,
  planGeneration: { steps: ["look the order up", "answer"] },
});
turn.record({
  stageId: "tool-loop",
  toolName: "orders.lookup",
  call: { callClass: "worker", provider: "anthropic", model: "claude-sonnet", transport: "native" },
  decision: { requestedModel: "claude-sonnet", selectedReason: "matrix-pick", rungOrdinal: 0, fallbackChain: [] },
  outcome: { status: "provider-error", latencyMs: 30_000, finishReason: null, httpStatus: 529 },
});
turn.record({
  stageId: "tool-loop",
  toolName: "orders.lookup",
  call: { callClass: "worker", provider: "anthropic", model: "claude-haiku", transport: "native" },
  decision: { requestedModel: "claude-sonnet", selectedReason: "fallback-rung", rungOrdinal: 1, fallbackChain: ["claude-sonnet"] },
  outcome: { status: "ok", latencyMs: 455, finishReason: "tool_use", httpStatus: 200 },
  fallbackStep: { originalModel: "claude-sonnet", attemptModel: "claude-haiku", attemptIndex: 1, reason: "overloaded", inFamily: true },
});
turn.record({
  stageId: "synthesize",
  call: { callClass: "writer", provider: "anthropic", model: "claude-sonnet", transport: "native" },
  outcome: { status: "ok", latencyMs: 1_640, finishReason: "end_turn", httpStatus: 200 },
  tokenCost: { inputTokens: 2100, outputTokens: 310, microUsd: 10950 },
});
// The end of a turn: what has come is archived at once.
turn.record({
  stageId: "post-turn",
  call: { callClass: "housekeeping", provider: "anthropic", model: "unresolved" },
  outcome: { status: "ok", latencyMs: 3 },
});

const left = await audit.close(10_000);
console.log(left === 0 ? `Kafka has 5 records of ${turnId}` : `${left} records did not reach Kafka`);
process.exit(left === 0 ? 0 : 1);

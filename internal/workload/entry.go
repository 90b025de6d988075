package workload

import (
	"crypto/sha256"
	"encoding/hex"
)

// wireKind gives the other spelling of a kind, as it stands in a member.
var wireKind = map[string]string{
	"llm-request": "LlmRequest", "llm-response": "LlmResponse", "tool-call": "ToolCall",
	"world-mutation": "WorldMutation", "policy-decision": "PolicyDecision",
	"source-chain-reset": "ChainReset", "source-rotation": "RotationMarker", "queue-dropped": "QueueDropped",
}

// decision writes a decision record: the agent's choice, which one time in
// three is not to act.
func (g *Generator) decision(o *object, r *Record, s step) {
	r.Headers = append(r.Headers, Header{"ledgerlake-kind", []byte("decision")})
	if g.chance(0.1) {
		r.Headers = append(r.Headers, Header{"ledgerlake-retain-prompts", []byte("true")})
	}
	o.str("decisionId", "d"+s.turn.id[1:])
	o.str("tenantId", r.Tenant)
	if g.chance(0.5) {
		o.time("timestamp", g.now)
	} else {
		o.int("timestamp", int(g.now.UnixMilli()))
	}
	o.open("inputs")
	o.str("intent", pick(g, []string{"refund", "reschedule", "escalate", "answer", "purchase"}))
	o.str("conversationId", s.turn.who.id)
	o.str("satelliteId", "edge-"+string(g.appendHex(nil, 4)))
	o.close()
	o.str("conversationId", s.turn.who.id)
	o.raw("workersConsulted", `["policy","pricing","memory"]`)
	o.raw("calls", `[{"provider":"`+s.turn.family.provider+`","model":"`+s.turn.family.models[0]+`","inputTokens":912,"outputTokens":40,"prompt":"`+
		pick(g, sentences)+`"},{"provider":"mistral","model":"ministral-8b","inputTokens":210,"outputTokens":12}]`)
	if g.chance(0.35) {
		o.str("verdict", pick(g, []string{"denied", "deferred"}))
		o.raw("action", "null")
		o.str("outcome", "no-action")
	} else {
		o.str("verdict", "allowed")
		o.raw("action", `{"type":"run-turn","budget":{"tokens":32000}}`)
		o.str("outcome", "acted")
	}
	o.raw("context", `{"note":"`+pick(g, sentences)+`","locale":"de-DE"}`)
	o.close()
}

// entry writes one entry of a turn's interaction log, chained as chained JSONL
// is: hash is the SHA-256 of prevHash and the entry with an empty hash.
func (g *Generator) entry(o *object, r *Record, s step) {
	kind := s.kind
	if g.chance(0.5) { // half of them carry the kind as a header
		r.Headers = append(r.Headers, Header{"ledgerlake-kind", []byte(s.kind)})
	} else if g.chance(0.5) {
		kind = wireKind[s.kind]
	}
	o.int("seq", s.turn.entries)
	s.turn.entries++
	o.time("ts", g.now)
	o.str("kind", kind)
	o.str("traceId", s.turn.id)
	o.str("tenantId", r.Tenant)
	o.str("actor", pick(g, []string{"user", "system", "planner-agent"}))
	g.detail(o, s)
	o.str("sourceTag", "runtime")
	o.str("prevHash", s.turn.logHead)
	o.str("hash", "")
	o.close()
	g.seal(o, s.turn)
}

// seal computes the entry's hash and puts it between its empty quotes.
func (g *Generator) seal(o *object, t *turn) {
	h := sha256.New()
	h.Write([]byte(t.logHead))
	h.Write(o.b)
	t.logHead = hex.EncodeToString(h.Sum(nil))
	o.b = append(o.b[:len(o.b)-len(`"}`)], t.logHead...)
	o.b = append(o.b, `"}`...)
}

func (g *Generator) detail(o *object, s step) {
	switch s.kind {
	case "llm-request", "llm-response":
		o.str("model", s.turn.family.models[0])
		o.hex64("promptHash", g)
		if s.kind == "llm-response" {
			o.str("result", pick(g, []string{"ok", "ok", "ok", "error", "timeout"}))
			o.tenths("durationMs", g.between(400, 90_000))
		}
	case "tool-call", "policy-decision":
		o.str("toolName", s.tool)
		o.raw("args", `{"query":"`+pick(g, sentences)+`","limit":20}`)
		o.str("policyDecision", s.phase)
		o.str("result", pick(g, []string{"ok", "pending"}))
		o.int("durationMs", g.between(1, 900))
	case "world-mutation":
		o.str("toolName", s.tool)
		o.raw("worldDiff", `[{"op":"replace","path":"/tickets/4711/state","from":"open","value":"waiting"}]`)
		o.str("rollbackHandle", "rb-"+string(g.appendHex(nil, 12)))
		o.str("result", "ok")
	default:
		o.raw("resultDetail", `{"reason":"`+pick(g, sentences)+`","count":3}`)
	}
}

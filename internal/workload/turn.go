package workload

import (
	"slices"
	"strconv"
)

// A tenant is one customer of the fleet: the session that it is in, and what
// is left of its turn.
type tenant struct {
	id      string
	session session
	steps   []step
}

// A session is one conversation: who talks, and how they logged in.
type session struct {
	id, user, actor, auth string
	turnsLeft             int
}

// A turn serves one user message. Its counters number the records as they are
// sent, so that a turn's numbers have no holes of their own.
type turn struct {
	id, parent string
	who        session
	depth      int // of the subagent; 0 is the agent itself
	version    int // auditRecordVersion of the producer
	family     family
	transport  string
	seq        int // next seqWithinTurn
	entries    int // next seq of the interaction log
	logHead    string
}

// A step is one record to come.
type step struct {
	turn   *turn
	kind   string // as rows spell it
	stage  string // of a call
	tool   string // of a call or entry, "" for none
	next   string // the tool that a failed one cascades to, "" where none is left
	rung   int    // of the fallback ladder; 0 is the first pick
	failed bool   // the provider or the tool did not answer
	slots  slots
	phase  string // of a policy decision or a tool call: allowed, started, completed …
}

// slots is the set of typed slots of a call.
type slots uint

const (
	familyLock slots = 1 << iota
	fallbackStep
	providerCascade
	cacheBreakpoint
	toolFallbackStep
	tokenCost
	synthesisQuality
	toolSelection
	planGeneration
	interruptDecision
	pluginPayloads
	prompts // message texts inside call
)

// A family is a provider and its models, the best first: the ladder that a
// call falls down.
type family struct {
	provider string
	models   []string
}

var families = []family{
	{"anthropic", []string{"claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5", "claude-haiku-3-5"}},
	{"openai", []string{"gpt-5.1", "gpt-5-mini", "gpt-5-nano", "gpt-4.1"}},
	{"google", []string{"gemini-3-pro", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.0-flash"}},
	{"mistral", []string{"mistral-large-3", "mistral-medium-3", "mistral-small-3", "ministral-8b"}},
}

var tools = []string{"web.search", "sql.query", "files.read", "crm.lookup", "calendar.create", "mail.draft", "code.run", "vector.recall"}

// beginTurn plans the next turn of a tenant, in a new session where the last
// one has ended.
func (g *Generator) beginTurn(t *tenant) {
	if t.session.turnsLeft == 0 {
		t.session = g.newSession()
	}
	t.session.turnsLeft--
	t.steps = g.plan(g.newTurn(t.session, nil), t.steps[:0])
}

func (g *Generator) newSession() session {
	s := session{
		id:        "s-" + g.unique(),
		actor:     pick(g, []string{"user", "user", "user", "guest", "scheduled", "system"}),
		turnsLeft: g.between(1, 12),
	}
	s.auth = map[string]string{"user": "clerk", "guest": "guest-token", "scheduled": "internal", "system": "api-key"}[s.actor]
	if s.actor != "guest" {
		s.user = "user_" + string(g.appendHex(nil, 12))
	}
	return s
}

func (g *Generator) newTurn(who session, parent *turn) *turn {
	t := &turn{
		id: "t-" + g.unique(), who: who, version: 19, family: pick(g, families),
		transport: pick(g, []string{"native", "native", "openrouter", "byok-native", "byok-openrouter"}),
	}
	// One producer in ten is old, and one in a hundred is ahead of us.
	if g.chance(0.1) {
		t.version = g.between(8, 18)
	} else if g.chance(0.01) {
		t.version = 20
	}
	if parent != nil {
		t.parent, t.depth = parent.id, parent.depth+1
	}
	return t
}

// unique returns a name that no other seed's and no other call's collides with.
func (g *Generator) unique() string {
	g.turns++
	return strconv.FormatUint(g.seed, 36) + "-" + strconv.Itoa(g.turns)
}

// plan appends the steps of a whole turn.
func (g *Generator) plan(t *turn, to []step) []step {
	if t.depth == 0 && g.chance(0.12) {
		to = append(to, step{turn: t, kind: "decision"})
		if g.chance(0.3) { // it decided not to act: that is all there is
			return append(to, step{turn: t, kind: "call", stage: "post-turn", slots: pluginPayloads})
		}
	}
	logged := g.chance(0.2)
	to = g.think(t, to, step{turn: t, kind: "call", stage: "anchor-plan", slots: familyLock | planGeneration | tokenCost | cacheBreakpoint | prompts}, logged)
	for range g.between(1, 5) {
		to = g.useTool(t, to, logged)
	}
	if t.depth < 2 && g.chance(0.05) {
		to = g.plan(g.newTurn(t.who, t), to)
	}
	to = g.think(t, to, step{turn: t, kind: "call", stage: "synthesize", slots: synthesisQuality | tokenCost | cacheBreakpoint | prompts}, logged)
	if g.chance(0.01) {
		to = append(to, step{turn: t, kind: pick(g, []string{"queue-dropped", "source-rotation", "source-chain-reset"})})
	}
	return append(to, step{turn: t, kind: "call", stage: "post-turn", slots: tokenCost | pluginPayloads})
}

// think appends a call of a model: now and then down a ladder of rungs, or
// over to another provider, before one answers.
func (g *Generator) think(t *turn, to []step, s step, logged bool) []step {
	if logged {
		to = append(to, step{turn: t, kind: "llm-request"})
	}
	if g.chance(0.08) {
		for range g.between(1, 3) {
			failed := s
			failed.failed, failed.slots = true, s.slots&familyLock|fallbackStep
			if g.chance(0.4) {
				failed.slots |= providerCascade
			}
			to = append(to, failed)
			s.rung++
		}
		s.slots |= fallbackStep
	}
	to = append(to, s)
	if logged {
		to = append(to, step{turn: t, kind: "llm-response"})
	}
	return to
}

// useTool appends a step of the tool loop: the choice and the call, perhaps a
// question to a human first, perhaps a cascade of tools.
func (g *Generator) useTool(t *turn, to []step, logged bool) []step {
	s := step{turn: t, kind: "call", stage: "tool-loop", tool: pick(g, tools), slots: toolSelection | tokenCost}
	if g.chance(0.05) {
		s.slots |= interruptDecision
	}
	if g.chance(0.2) {
		s.slots |= pluginPayloads
	}
	if logged {
		to = append(to, step{turn: t, kind: "policy-decision", tool: s.tool, phase: pick(g, []string{"allowed", "allowed", "denied", "repaired"})})
	}
	if g.chance(0.1) {
		to, s.tool = g.cascade(to, s)
	}
	to = g.think(t, to, s, false)
	if logged {
		to = append(to, step{turn: t, kind: "tool-call", tool: s.tool, phase: "completed"})
		if g.chance(0.3) {
			to = append(to, step{turn: t, kind: "world-mutation", tool: s.tool})
		}
	}
	return to
}

// cascade appends tools that fail one after another, and returns the one that
// will answer.
func (g *Generator) cascade(to []step, s step) ([]step, string) {
	tool := slices.Index(tools, s.tool)
	for range g.between(1, 2) {
		failed := s
		failed.tool, failed.next = tools[tool], tools[(tool+1)%len(tools)]
		failed.failed, failed.slots = true, toolFallbackStep|toolSelection
		to = append(to, failed)
		tool = (tool + 1) % len(tools)
	}
	return to, tools[tool]
}

package replay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/replay"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A sent is one record of a producer.
type sent struct {
	retain bool
	kind   string
	value  string
}

// call writes a call. more are members beside those that all calls have.
func call(turn string, seq int, stage, model, status, more string) sent {
	text := fmt.Sprintf(`{"auditRecordVersion":19,"recordId":"01KBCDEFGHJKMNPQRSTV%06d","sessionId":"s","turnId":%q,"stageId":%q,"seqWithinTurn":%d,`+
		`"createdAt":"2026-05-28T20:26:%02d.000Z","principal":{"tenantId":"acme","userId":"u","actorKind":"user","sessionAuthMethod":"clerk"},`+
		`"outcome":{"status":%q,"latencyMs":12.5},%s}`, seq, turn, stage, seq, 10+seq, status, more)
	return sent{true, "", strings.ReplaceAll(text, "MODEL", model)}
}

// aTurn is a turn that plans, falls down a rung, asks a tool, has a subagent, and
// answers.
func aTurn() []sent {
	child := call("child", 0, "synthesize", "model-c", "ok", `"subagentDepth":1,"parentTurnId":"top","call":{"callClass":"writer","provider":"p","model":"MODEL","transport":"native","completion":"found it"}`)
	child.value = strings.ReplaceAll(child.value, "26:10.000", "26:11.500")
	return []sent{
		call("top", 0, "anchor-plan", "model-a", "provider-error", `"call":{"callClass":"planner","provider":"p","model":"MODEL","transport":"native","messages":[{"role":"user","content":"find it"}]},
			"decision":{"requestedModel":"model-a","selectedReason":"matrix-pick","rungOrdinal":0,"fallbackChain":[]},"fallbackStep":{"reason":"overloaded","ladderStep":0}`),
		call("top", 1, "anchor-plan", "model-b", "ok", `"call":{"callClass":"planner","provider":"p","model":"MODEL","transport":"native","messages":[{"role":"user","content":"find it"}],"completion":"use the tool"},
			"decision":{"requestedModel":"model-a","selectedReason":"fallback-rung","rungOrdinal":1,"fallbackChain":["model-a"]}`),
		child,
		call("top", 2, "tool-loop", "unresolved", "ok", `"toolName":"web.search","call":{"callClass":"worker","model":"MODEL"},"toolFallbackStep":{"originalTool":"sql.query","cascadedTo":"web.search"},"toolSelection":{"chosen":"web.search"}`),
		call("top", 3, "synthesize", "model-b", "ok", `"call":{"callClass":"writer","provider":"p","model":"MODEL","transport":"native","completion":{"text":"here: 1.50","n":1e2}}`),
		call("top", 4, "post-turn", "unresolved", "ok", `"call":{"callClass":"housekeeping","model":"MODEL"}`),
	}
}

// lay archives records, and returns what reads them.
func lay(t *testing.T, all []sent, govern func(b *prooftest.Batch)) *export.Archive {
	t.Helper()
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) {
		for _, s := range all {
			b.Row("acme", func(r *audit.Record) {
				d := audit.Decoder{RetainPrompts: func(string) bool { return s.retain }}
				m := audit.Message{Topic: "audit.calls", Offset: r.KafkaOffset.N, Timestamp: time.UnixMicro(r.KafkaTimestamp.N), Key: []byte("acme"), Value: []byte(s.value)}
				if s.kind != "" {
					m.Headers = []audit.MessageHeader{{Name: audit.HeaderKind, Value: []byte(s.kind)}}
				}
				stamped := *r
				if reject := d.Decode(r, &m); reject != nil {
					t.Fatalf("%s: %+v", s.value, reject)
				}
				r.ArchivedAt, r.Epoch, r.TopicID, r.RedactionPolicy = stamped.ArchivedAt, stamped.Epoch, stamped.TopicID, audit.Str(audit.PolicyNone)
			})
		}
	})
	if govern != nil {
		a.Line(audit.ControlTopic, 0).Segment(govern)
	}
	e, err := export.Open(t.Context(), prooftest.Bucket(a.Objects()), export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func bundle(t *testing.T, e *export.Archive, turn string) *replay.Bundle {
	t.Helper()
	branches, err := e.Tree(t.Context(), "acme", turn)
	if err != nil {
		t.Fatal(err)
	}
	b, err := replay.New(e.Root().ArchiveID, "acme", turn, branches)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// errFresh: a run asked a model for something that its bundle does not have.
var errFresh = errors.New("a fresh call")

// A provider is a stub that answers from a bundle alone, and fails on any fresh
// call.
type provider struct{ left []replay.Step }

func (p *provider) ask(model string) (answer string, err error) {
	if len(p.left) == 0 {
		return "", errFresh
	}
	s := p.left[0]
	p.left = p.left[1:]
	switch {
	case s.ResolvedModel == nil || *s.ResolvedModel != model:
		return "", errFresh
	case s.Response == nil:
		return "", fmt.Errorf("%s: %s", model, *s.Outcome.Status)
	case s.Response.State != replay.Present || len(s.Response.Texts) != 1:
		return "", errFresh
	}
	for _, text := range s.Response.Texts {
		answer = string(text)
	}
	return answer, nil
}

// rerun runs a turn again from the text of a bundle, and returns what it did.
func rerun(text []byte) (did []string, err error) {
	var b replay.Bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, err
	}
	var p provider
	for _, s := range b.Steps {
		if s.Kind == replay.Model {
			p.left = append(p.left, s)
		}
	}
	for _, s := range b.Steps {
		if s.Kind == replay.Tool {
			did = append(did, "tool "+*s.Tool.Name)
			continue
		}
		answer, err := p.ask(*s.ResolvedModel)
		if errors.Is(err, errFresh) {
			return did, err
		}
		if err != nil {
			answer = "failed"
		}
		did = append(did, fmt.Sprintf("%s %s: %s", s.Turn, *s.ResolvedModel, answer))
	}
	if len(p.left) > 0 {
		return did, errors.New("answers are left")
	}
	return did, nil
}

// A turn is run again from its bundle alone, without a fresh call: the rung that
// failed fails again, the subagent answers where it did.
func TestATurnRunsAgainFromItsBundle(t *testing.T) {
	b := bundle(t, lay(t, aTurn(), nil), "top")
	if !b.Complete || len(b.Lacks) > 0 {
		t.Fatalf("it lacks %q", b.Lacks)
	}
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	did, err := rerun(text)
	want := []string{
		"top model-a: failed", `top model-b: "use the tool"`, `child model-c: "found it"`, "tool web.search", `top model-b: {"text":"here: 1.50","n":1e2}`,
	}
	for i := range did {
		did[i] = strings.Join(strings.Fields(did[i]), " ")
	}
	if err == nil && len(did) == len(want) {
		did[4] = strings.NewReplacer("{ ", "{", " }", "}", `": `, `":`, `, "n`, `,"n`).Replace(did[4])
	}
	if err != nil || !slices.Equal(did, want) {
		t.Errorf("%v\n%q\nwant\n%q", err, did, want)
	}
	s := b.Steps[1]
	if *s.RequestedModel != "model-a" || *s.ResolvedModel != "model-b" || *s.Ladder.RungOrdinal != 1 || !slices.Equal(s.Ladder.FallbackChain, []string{"model-a"}) || s.Request.State != replay.Present {
		t.Errorf("%+v", s)
	}
	if s := b.Steps[3]; string(s.Tool.Cascade) != `{"originalTool":"sql.query","cascadedTo":"web.search"}` || s.Response != nil {
		t.Errorf("%+v", s)
	}
	if len(b.Turns) != 2 || *b.Turns[1].Parent != "top" || len(b.Turns[0].Records) != 5 {
		t.Errorf("%+v", b.Turns)
	}
}

// A bundle says what it lacks, and a run from it asks a model anew, which is what
// must not happen unseen.
func TestABundleSaysWhatItLacks(t *testing.T) {
	without := func(i int) []sent {
		all := aTurn()
		all[i].retain = false
		return all
	}
	erase := func(target map[string]any, slots any) func(b *prooftest.Batch) {
		return func(b *prooftest.Batch) {
			b.Order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(target, slots))
		}
	}
	record := map[string]any{"recordId": "01KBCDEFGHJKMNPQRSTV000003"}
	for name, c := range map[string]struct {
		records []sent
		govern  func(*prooftest.Batch)
		lacks   string
	}{
		"an answer that was not retained":  {without(4), nil, `turn "top", record 3: the response of the model is not-retained`},
		"one of the subagent":              {without(2), nil, `turn "child", record 0: the response of the model is not-retained`},
		"an answer that is erased":         {aTurn(), erase(record, "*"), `turn "top", record 3: the response of the model is erased`},
		"prompts alone that are erased":    {aTurn(), erase(record, []string{"prompts"}), `turn "top", record 3: the response of the model is erased`},
		"a ladder that is erased":          {aTurn(), erase(map[string]any{"recordId": "01KBCDEFGHJKMNPQRSTV000001"}, []string{"decision"}), `turn "top", record 1: how the model was come by is erased`},
		"a call that was never archived":   {slices.Delete(aTurn(), 3, 4), nil, `turn "top": the call with seqWithinTurn 2 is not in the archive`},
		"several that were never archived": {slices.Delete(aTurn(), 0, 4), nil, `turn "top": the calls with seqWithinTurn 0 to 2 are not in the archive`},
		"a turn that nobody knows":         {aTurn()[2:3], nil, `turn "top": the archive has no record of it`},
	} {
		b := bundle(t, lay(t, c.records, c.govern), "top")
		if b.Complete || !slices.Contains(b.Lacks, c.lacks) {
			t.Errorf("%s: %q", name, b.Lacks)
		}
		text, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rerun(text); strings.Contains(c.lacks, "response") && !errors.Is(err, errFresh) {
			t.Errorf("%s: a run from it: %v", name, err)
		}
	}
}

// What was not retained of a request does not hinder a run, nor does an order that
// takes what had nothing in it.
func TestWhatARunDoesNotNeed(t *testing.T) {
	all := aTurn()
	all[0].retain = false // the rung that failed, which had no answer
	e := lay(t, all, func(b *prooftest.Batch) {
		b.Order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "top", "sessionId": "s"}, []string{"plan_generation"}))
	})
	if b := bundle(t, e, "top"); !b.Complete || b.Steps[0].Request.State != replay.NotRetained || b.Steps[0].Response != nil {
		t.Errorf("%q, %+v", b.Lacks, b.Steps[0])
	}
}

// A record that was archived twice ran once.
func TestARepeatIsNoStep(t *testing.T) {
	all := aTurn()
	all = append(all, all[1])
	b := bundle(t, lay(t, all, nil), "top")
	if !b.Complete || len(b.Steps) != 5 || len(b.Turns[0].Records) != 6 {
		t.Errorf("%q, %d steps, %d records", b.Lacks, len(b.Steps), len(b.Turns[0].Records))
	}
}

// A decision comes with its inputs, and with the answer of each of its calls.
func TestADecisionRunsAgain(t *testing.T) {
	decision := sent{true, "decision", `{"decisionId":"d","tenantId":"acme","timestamp":1780000000000,"inputs":{"intent":"refund"},"verdict":"allowed",
		"calls":[{"provider":"p","model":"m","inputTokens":3,"outputTokens":4,"prompt":"may we?","completion":"yes"},{"provider":"q","model":"n","Model":"evil","completion":"no"}],"action":null}`}
	entries := []sent{
		{true, "", `{"seq":0,"ts":"2026-05-28T20:26:41Z","kind":"LlmRequest","traceId":"d","tenantId":"acme","model":"m","messages":[]}`},
		{true, "", `{"seq":1,"ts":"2026-05-28T20:26:42Z","kind":"LlmResponse","traceId":"d","tenantId":"acme","model":"m","result":"ok","responseText":"yes"}`},
		{true, "", `{"seq":2,"ts":"2026-05-28T20:26:43Z","kind":"LlmResponse","traceId":"d","tenantId":"acme","model":"m","result":"timeout"}`},
		{true, "", `{"seq":3,"ts":"2026-05-28T20:26:44Z","kind":"ToolCall","traceId":"d","tenantId":"acme","toolName":"crm","args":{"a":1},"result":"ok"}`},
	}
	b := bundle(t, lay(t, append([]sent{decision}, entries...), nil), "d")
	b.NeedDecision()
	var got []string
	for _, s := range b.Steps {
		text := "-"
		if s.Response != nil {
			for path, v := range s.Response.Texts {
				text = path + "=" + string(v)
			}
		}
		model := "-"
		if s.ResolvedModel != nil {
			model = *s.ResolvedModel
		}
		got = append(got, fmt.Sprint(s.Kind, " ", model, " ", text))
	}
	slices.Sort(got)
	want := []string{"model m -", "model m -", `model m calls.0.completion="yes"`, `model m responseText="yes"`, `model n calls.1.completion="no"`, "tool - -"}
	if !b.Complete || !slices.Equal(got, want) {
		t.Errorf("%q\n%q\nwant\n%q", b.Lacks, got, want)
	}
	decision.retain = false
	b = bundle(t, lay(t, []sent{decision}, nil), "d")
	if len(b.Lacks) != 2 || b.Lacks[0] != `turn "d", record 0: the response of the model in calls[0] is not-retained` {
		t.Errorf("%q", b.Lacks)
	}
	b = bundle(t, lay(t, entries, nil), "d")
	if b.NeedDecision(); b.Complete {
		t.Error("a bundle without the decision says that it is complete")
	}
}

// Subagents that name each other do not go round for ever.
func TestATreeThatIsNone(t *testing.T) {
	all := []sent{
		call("a", 0, "synthesize", "m", "ok", `"parentTurnId":"b","call":{"model":"MODEL","completion":"1"}`),
		call("b", 0, "synthesize", "m", "ok", `"parentTurnId":"a","call":{"model":"MODEL","completion":"2"}`),
		call("c", 0, "synthesize", "m", "ok", `"parentTurnId":"c","call":{"model":"MODEL","completion":"3"}`),
	}
	e := lay(t, all, nil)
	if b := bundle(t, e, "a"); len(b.Turns) != 2 || !b.Complete {
		t.Errorf("%+v", b.Turns)
	}
	children, err := e.Children(t.Context(), "acme", "c")
	if len(children) > 0 || err != nil {
		t.Errorf("%q, %v", children, err)
	}
}

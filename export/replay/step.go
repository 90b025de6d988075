package replay

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

// unresolved stands for the model of a call that asked none.
const unresolved = "unresolved"

// answers are the names of members that come from a model; the other prompts go
// to it.
var answers = map[string]bool{"completion": true, "completions": true, "responseText": true}

// unanswered are the statuses of calls that may have had no response.
var unanswered = map[string]bool{
	"provider-error": true, "guard-rejected": true, "timeout": true, "user-aborted": true, // of calls
	"error": true, "pending": true, // of interaction logs
}

// stepsOf returns what a record says that was done.
func stepsOf(row *export.Row, at Ref) []Step {
	switch row.Kind.S {
	case audit.KindCall:
		return callSteps(row, at)
	case audit.KindDecision:
		return decisionSteps(row, at)
	case audit.KindLLMRequest:
		s := newStep(Model, row, at)
		s.Request = contentOf(row, "", false)
		return []Step{s}
	case audit.KindLLMResponse:
		s := newStep(Model, row, at)
		s.Response = responseOf(row, "")
		return []Step{s}
	case audit.KindToolCall, audit.KindWorldMutation:
		return []Step{toolStep(row, at)}
	}
	return nil
}

func newStep(kind Kind, row *export.Row, at Ref) Step {
	return Step{
		Kind: kind, Record: at, At: moment(row), Stage: text(row.StageID),
		ResolvedModel: text(row.ModelID), Provider: text(row.Family), CallClass: text(row.CallClass), Transport: text(row.Transport),
		Outcome: Outcome{
			Status: text(row.Status), HTTPStatus: number(row.HTTPStatus), FinishReason: text(row.FinishReason), LatencyUS: number(row.LatencyUS),
			InputTokens: number(row.InputTokens), OutputTokens: number(row.OutputTokens),
		},
	}
}

// callSteps returns the step of a call. One whose model is unresolved asked none:
// it is a tool's, where it names one, or no step.
func callSteps(row *export.Row, at Ref) []Step {
	asked := row.ModelID.Valid && row.ModelID.S != unresolved
	if !asked && !row.ToolName.Valid {
		return nil
	}
	s := newStep(Tool, row, at)
	if asked {
		s = newStep(Model, row, at)
		s.Request, s.Response = contentOf(row, "", false), responseOf(row, "")
	}
	s.RequestedModel, s.Ladder = text(row.RequestedModel), ladderOf(row)
	if row.ToolName.Valid {
		s.Tool = &ToolRun{Name: text(row.ToolName), Selection: row.Slots[audit.SlotToolSelection], Cascade: row.Slots[audit.SlotToolFallbackStep]}
	}
	return []Step{s}
}

func ladderOf(row *export.Row) *Ladder {
	l := &Ladder{
		SelectedReason: text(row.SelectedReason), RungOrdinal: number(row.RungOrdinal), FallbackChain: row.FallbackChain,
		FallbackStep: row.Slots[audit.SlotFallbackStep], ProviderCascade: row.Slots[audit.SlotProviderCascade], FamilyLock: row.Slots[audit.SlotFamilyLock],
		State: slotState(row, audit.SlotDecision),
	}
	for _, s := range []audit.Slot{audit.SlotFallbackStep, audit.SlotProviderCascade, audit.SlotFamilyLock} {
		if slotState(row, s) == Erased {
			l.State = Erased
		}
	}
	return l
}

// decisionSteps returns a step for each call of a decision, as calls lists them.
func decisionSteps(row *export.Row, at Ref) (all []Step) {
	var said map[string]json.RawMessage
	var calls []map[string]json.RawMessage
	// What is not of these types says nothing here: the record has it.
	_ = json.Unmarshal(row.Slots[audit.SlotContext], &said)
	_ = json.Unmarshal(said["calls"], &calls)
	for i, c := range calls {
		s := newStep(Model, row, at)
		s.Call, s.Provider, s.ResolvedModel = &i, read[string](c["provider"]), read[string](c["model"])
		s.Outcome = Outcome{InputTokens: read[int64](c["inputTokens"]), OutputTokens: read[int64](c["outputTokens"])}
		prefix := "calls." + strconv.Itoa(i) + "."
		s.Request, s.Response = contentOf(row, prefix, false), contentOf(row, prefix, true)
		all = append(all, s)
	}
	if calls == nil && slotState(row, audit.SlotContext) == Erased {
		s := newStep(Model, row, at)
		s.Request, s.Response = &Content{State: Erased}, &Content{State: Erased}
		all = append(all, s)
	}
	return all
}

func toolStep(row *export.Row, at Ref) Step {
	s := newStep(Tool, row, at)
	s.Tool = &ToolRun{Name: text(row.ToolName), Detail: row.Slots[audit.SlotContext]}
	if slotState(row, audit.SlotContext) == Erased {
		s.Response = &Content{State: Erased}
	}
	return s
}

// responseOf returns what a model answered; nil where it did not, and that is how
// the call came out.
func responseOf(row *export.Row, prefix string) *Content {
	c := contentOf(row, prefix, true)
	if c.State == NotRetained && row.Status.Valid && unanswered[row.Status.S] {
		return nil
	}
	return c
}

// contentOf returns the prompts of a record whose paths begin with a prefix: those
// that came from a model, or those that went to it.
func contentOf(row *export.Row, prefix string, answer bool) *Content {
	c := &Content{State: slotState(row, audit.SlotPrompts), Texts: map[string]json.RawMessage{}}
	if c.State == Erased {
		return c
	}
	c.State = NotRetained
	var prompts map[string]json.RawMessage
	_ = json.Unmarshal(row.Slots[audit.SlotPrompts], &prompts) // null, or an object of paths
	for path, value := range prompts {
		name, ok := strings.CutPrefix(path, prefix)
		if ok && answers[name[strings.LastIndexByte(name, '.')+1:]] == answer {
			c.Texts[path], c.State = value, Present
		}
	}
	return c
}

// slotState says whether a record still has a slot, or had none.
func slotState(row *export.Row, s audit.Slot) State {
	if row.Slots[s] != nil {
		return Present
	}
	if !row.Redaction.Valid {
		return NotRetained
	}
	sentinel, err := chain.ParseSentinel(row.Redaction.S)
	if err != nil || sentinel.All {
		return Erased // whether it had one, nothing tells any more
	}
	residual, err := chain.ParseResidual(row.Residual.S)
	if sentinel.Slots.Has(s) && (err != nil || residual.Commits[s].Valid) {
		return Erased
	}
	return NotRetained
}

func text(t audit.Text) *string {
	if !t.Valid {
		return nil
	}
	return &t.S
}

func number(n audit.Int) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.N
}

// read reads a member; nil where it is not of the type.
func read[T any](member json.RawMessage) *T {
	var v *T
	if json.Unmarshal(member, &v) != nil {
		return nil
	}
	return v
}

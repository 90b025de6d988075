// Package replay makes of a turn a bundle from which it can be run again: what it
// did, in order, with the answers that models gave.
//
//	export.Archive.Tree ── New ──▶ Bundle ── Encode ──▶ JSON: docs/replay.md
//
// A bundle says of each answer whether it is there: present; not-retained, as
// prompts are kept only where that was asked for; or erased. It is complete where
// nothing that a run needs is missing, so that one that takes answers from it asks
// no model anew.
//
// The package is pure. It runs nothing, and does not judge whether a run that goes
// another way than the turn went is right.
package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/render"
)

// Format is the name of the format of bundles, as they state it.
const Format = "ledgerlake-replay-v1"

// A Bundle is all that the archive has of a turn. Its JSON is described in
// docs/replay.md.
type Bundle struct {
	Format    string   `json:"format"`
	ArchiveID string   `json:"archiveId"`
	Tenant    string   `json:"tenant"`
	Turn      string   `json:"turnId"` // or decisionId, or traceId
	Complete  bool     `json:"complete"`
	Lacks     []string `json:"lacks"` // why it is not complete, in words
	Turns     []Turn   `json:"turns"` // each in front of those that it set off
	Steps     []Step   `json:"steps"` // in the order in which they ran
}

// A Turn is one turn of a bundle.
type Turn struct {
	Turn    string            `json:"turnId"`
	Parent  *string           `json:"parentTurnId"` // the turn of the bundle that set it off; null for the first
	Depth   int               `json:"depth"`
	Session *string           `json:"sessionId"` // of its first record; null where none says one
	Records []json.RawMessage `json:"records"`   // in order, in wire shape: [render.AppendJSON]

	decided bool // one of them is a decision
}

// A Ref names a record of a bundle: the index of its turn, and in that.
type Ref [2]int

// A Kind says what a step is.
type Kind string

// The kinds of steps.
const (
	Model Kind = "model" // a model was asked
	Tool  Kind = "tool"  // a tool ran
)

// A Step is one call of a model, or one run of a tool.
type Step struct {
	Kind   Kind    `json:"kind"`
	Turn   string  `json:"turnId"`
	Record Ref     `json:"record"`
	Call   *int    `json:"call"` // of a decision: the index in calls
	At     *string `json:"at"`   // RFC 3339, UTC
	Stage  *string `json:"stageId"`

	RequestedModel *string `json:"requestedModel"`
	ResolvedModel  *string `json:"resolvedModel"`
	Provider       *string `json:"provider"`
	CallClass      *string `json:"callClass"`
	Transport      *string `json:"transport"`

	Ladder  *Ladder  `json:"ladder"` // of a call
	Tool    *ToolRun `json:"tool"`
	Outcome Outcome  `json:"outcome"`

	Request  *Content `json:"request"`  // null where the record is not that of a request
	Response *Content `json:"response"` // null where there was none: outcome says why
}

// A Ladder is how the model of a call was come by.
type Ladder struct {
	SelectedReason  *string         `json:"selectedReason"`
	RungOrdinal     *int64          `json:"rungOrdinal"` // 0: the first pick
	FallbackChain   []string        `json:"fallbackChain"`
	FallbackStep    json.RawMessage `json:"fallbackStep"`    // null where none fired
	ProviderCascade json.RawMessage `json:"providerCascade"` // null where none fired
	FamilyLock      json.RawMessage `json:"familyLock"`      // null where none fired
	State           State           `json:"state"`           // of what the record said of it
}

// A ToolRun is what a record says of a tool.
type ToolRun struct {
	Name      *string         `json:"name"`
	Selection json.RawMessage `json:"selection"` // slot toolSelection; null where there is none
	Cascade   json.RawMessage `json:"cascade"`   // slot toolFallbackStep; null where there is none
	Detail    json.RawMessage `json:"detail"`    // of interaction logs: args, result and what else the entry says
}

// An Outcome is how a step came out.
type Outcome struct {
	Status       *string `json:"status"`
	HTTPStatus   *int64  `json:"httpStatus"`
	FinishReason *string `json:"finishReason"`
	LatencyUS    *int64  `json:"latencyUs"` // microseconds
	InputTokens  *int64  `json:"inputTokens"`
	OutputTokens *int64  `json:"outputTokens"`
}

// A State says whether something is still there.
type State string

// The states.
const (
	Present     State = "present"
	NotRetained State = "not-retained" // it was never archived
	Erased      State = "erased"       // or an order hides it
)

// A Content is the text that went to a model, or came from it.
type Content struct {
	State State                      `json:"state"`
	Texts map[string]json.RawMessage `json:"texts"` // by the names of the record's members; empty unless present
}

// New makes a bundle of a turn and its subagents.
func New(archiveID, tenant, turn string, branches []export.Branch) (*Bundle, error) {
	b := &Bundle{Format: Format, ArchiveID: archiveID, Tenant: tenant, Turn: turn, Lacks: []string{}, Turns: []Turn{}, Steps: []Step{}}
	var lanes [][]timed
	for i := range branches {
		t, steps, err := b.turn(i, &branches[i])
		if err != nil {
			return nil, err
		}
		b.Turns, lanes = append(b.Turns, t), append(lanes, steps)
	}
	b.Steps = append(b.Steps, merge(lanes)...)
	if len(branches) == 0 || len(branches[0].Rows) == 0 {
		b.lack("turn %q: the archive has no record of it", turn)
	}
	for i := range b.Steps {
		b.missing(&b.Steps[i])
	}
	b.Complete = len(b.Lacks) == 0
	return b, nil
}

func (b *Bundle) lack(format string, a ...any) { b.Lack(fmt.Sprintf(format, a...)) }

// Lack notes that something is missing, which makes the bundle incomplete.
func (b *Bundle) Lack(text string) { b.Lacks, b.Complete = append(b.Lacks, text), false }

// NeedDecision makes the bundle incomplete where it has no decision of the id that
// was asked for.
func (b *Bundle) NeedDecision() {
	if len(b.Turns) == 0 || !b.Turns[0].decided {
		b.lack("decision %q: the archive has no record of it", b.Turn)
	}
}

// Encode returns the JSON of the bundle, with a line feed behind it. Numbers and
// strings of records are as their producers wrote them.
func (b *Bundle) Encode() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(b); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// A timed step has the moment by which it stands among those of other turns.
type timed struct {
	Step
	at int64
}

// turn makes one turn, and the steps of its records.
func (b *Bundle) turn(i int, from *export.Branch) (t Turn, steps []timed, err error) {
	t = Turn{Turn: from.Turn, Depth: from.Depth, Records: []json.RawMessage{}}
	if i > 0 {
		t.Parent = &from.Parent
	}
	seen := map[audit.Fingerprint]bool{}
	for j, row := range from.Rows {
		if row.SessionID.Valid && t.Session == nil {
			t.Session = &row.SessionID.S
		}
		t.decided = t.decided || row.Kind.S == audit.KindDecision
		record, err := render.AppendJSON(nil, row, render.Options{})
		if err != nil {
			return t, nil, err
		}
		t.Records = append(t.Records, record)
		if at, ok := row.Coordinates(); ok {
			if seen[at] || row.RepeatOf.Valid {
				continue // it was sent twice, and ran once
			}
			seen[at] = true
		}
		for _, s := range stepsOf(row, Ref{i, j}) {
			s.Turn = from.Turn
			steps = append(steps, timed{s, row.At().UnixMicro()})
		}
	}
	b.holes(from)
	return t, steps, nil
}

// holes notes which calls of a turn are missing: they are counted from 0 on.
func (b *Bundle) holes(from *export.Branch) {
	var have []int64
	for _, r := range from.Rows {
		if r.Kind.S == audit.KindCall && r.SeqWithinTurn.Valid {
			have = append(have, r.SeqWithinTurn.N)
		}
	}
	slices.Sort(have)
	next := int64(0)
	for _, n := range have {
		switch {
		case n == next+1:
			b.lack("turn %q: the call with seqWithinTurn %d is not in the archive", from.Turn, next)
		case n > next:
			b.lack("turn %q: the calls with seqWithinTurn %d to %d are not in the archive", from.Turn, next, n-1)
		}
		next = max(next, n+1)
	}
}

// missing notes what a step has not that a run needs.
func (b *Bundle) missing(s *Step) {
	what := map[Kind]string{Model: "the response of the model", Tool: "the run of the tool"}[s.Kind]
	if s.Call != nil {
		what = fmt.Sprintf("the response of the model in calls[%d]", *s.Call)
	}
	if s.Response != nil && s.Response.State != Present {
		b.lack("turn %q, record %d: %s is %s", s.Turn, s.Record[1], what, s.Response.State)
	}
	if s.Ladder != nil && s.Ladder.State == Erased {
		b.lack("turn %q, record %d: how the model was come by is erased", s.Turn, s.Record[1])
	}
}

// merge puts the steps of all turns in the order of time. Those of one turn stay
// in theirs.
func merge(lanes [][]timed) (all []Step) {
	for {
		first := -1
		for i, lane := range lanes {
			if len(lane) > 0 && (first < 0 || lane[0].at < lanes[first][0].at) {
				first = i
			}
		}
		if first < 0 {
			return all
		}
		all = append(all, lanes[first][0].Step)
		lanes[first] = lanes[first][1:]
	}
}

func moment(row *export.Row) *string {
	text := row.At().Format(time.RFC3339Nano)
	return &text
}

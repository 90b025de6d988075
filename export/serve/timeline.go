package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

// timelineRows is how many of a session's rows are summed up.
const timelineRows = 5000

// A timeline is a turn, prepared for people: docs/serve.md describes it. It says
// nothing that the records do not say; what a step means is worked out here and
// not in the page, so that it can be tested without a browser.
type timeline struct {
	Turn      string      `json:"turn"` // "" where it has no records: an answer repeats nothing that was asked for
	Sessions  []string    `json:"sessions"`
	Parent    string      `json:"parent,omitempty"` // turn that this is a subagent of
	Complete  bool        `json:"complete"`         // false: some stored object does not fit, and may have had rows of the turn
	Sums      sums        `json:"sums"`
	Steps     []*step     `json:"steps"`
	Subagents []*subagent `json:"subagents"`
	Cut       bool        `json:"subagentsCut"` // there are too many below it to be told
}

// sums are those of the rows of one turn, repeats left out.
type sums struct {
	Records      int    `json:"records"`
	InputTokens  int64  `json:"inputTokens"`
	OutputTokens int64  `json:"outputTokens"`
	MicroUSD     *int64 `json:"microUsd"`  // null where no record tells a price
	LatencyUS    int64  `json:"latencyUs"` // of all steps, which may have run side by side
	Start        string `json:"start"`
	End          string `json:"end"`
	Failed       int    `json:"failed"`
	Fallbacks    int    `json:"fallbacks"`
	Regressions  int    `json:"regressions"`
	Cascades     int    `json:"cascades"`
	Erased       int    `json:"erased"`
	NotActed     int    `json:"notActed"`
}

// A subagent is a turn whose records name the one above as their parentTurnId.
type subagent struct {
	Turn      string      `json:"turn"`
	Session   string      `json:"session"`
	Depth     int64       `json:"depth"`
	Sums      sums        `json:"sums"`
	Subagents []*subagent `json:"subagents"`
}

// A step is one record.
type step struct {
	Place    string  `json:"place"`
	RecordID string  `json:"recordId,omitempty"`
	Kind     string  `json:"kind"`
	Stage    string  `json:"stage,omitempty"`
	Seq      *int64  `json:"seqWithinTurn"`
	At       string  `json:"at"`     // created_at, else archived_at
	AtUS     int64   `json:"atUs"`   // the same, in microseconds
	Lasts    *int64  `json:"lastUs"` // latency in microseconds
	Status   string  `json:"status,omitempty"`
	HTTP     *int64  `json:"httpStatus"`
	Finish   string  `json:"finishReason,omitempty"`
	Failed   bool    `json:"failed"`
	Actor    string  `json:"actor,omitempty"`
	User     string  `json:"user,omitempty"`
	Class    string  `json:"callClass,omitempty"`
	Tool     string  `json:"tool,omitempty"`
	Depth    *int64  `json:"subagentDepth"`
	In       *int64  `json:"inputTokens"`
	Out      *int64  `json:"outputTokens"`
	CacheIn  *int64  `json:"cacheReadTokens"`
	MicroUSD *int64  `json:"microUsd"`
	Model    *model  `json:"model"`
	Rung     *rung   `json:"fallback"`
	Provider *pivot  `json:"providerCascade"`
	Cascade  *toolGo `json:"toolCascade"`
	NotActed *notAct `json:"notActed"`
	Erased   *erased `json:"erased"`
	Rejected string  `json:"rejected,omitempty"` // the reason, of a record that could not be archived as it was
	RepeatOf *int64  `json:"repeatOf"`
	Scrubbed string  `json:"redactionPolicy,omitempty"`
	Topic    string  `json:"topic"`
	Hash     string  `json:"rowHash"`
	Checked  bool    `json:"checked"` // its hash was recomputed
}

// A model says what was asked for and what ran.
type model struct {
	Requested string   `json:"requested,omitempty"`
	Resolved  string   `json:"resolved,omitempty"`
	Provider  string   `json:"provider,omitempty"`
	Transport string   `json:"transport,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Rung      *int64   `json:"rung"`
	Chain     []string `json:"chain"` // models tried before
}

// A rung is one step of the fallback ladder.
type rung struct {
	From       string `json:"from,omitempty"`
	To         string `json:"to,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Attempt    *int64 `json:"attempt"`
	Original   *int64 `json:"originalStep"`
	Step       *int64 `json:"step"`
	InFamily   *bool  `json:"inFamily"`
	Regression bool   `json:"regression"`
}

// A pivot is a change of provider.
type pivot struct {
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Trigger string `json:"trigger,omitempty"`
	Error   string `json:"errorType,omitempty"`
	Source  string `json:"source,omitempty"`
}

// A toolGo is a step of a tool cascade; To is empty where none was left.
type toolGo struct {
	From       string `json:"from,omitempty"`
	To         string `json:"to,omitempty"`
	Capability string `json:"capability,omitempty"`
	Failure    string `json:"failureClass,omitempty"`
	Attempt    *int64 `json:"attempt"`
	Applied    *bool  `json:"applied"`
}

// A notAct is a decision not to act, or one that was left to a human.
type notAct struct {
	Why      string `json:"why"` // one of the words below
	Text     string `json:"text,omitempty"`
	Answer   string `json:"answer,omitempty"`
	Declined bool   `json:"declined"` // false: a human was asked, and let it go on
}

// Why there was no action.
const (
	whyHuman    = "human"    // a human was asked: interruptDecision
	whyGuard    = "guard"    // a guard rejected the answer
	whyAborted  = "aborted"  // the user ended it
	whyPolicy   = "policy"   // a policy denied it
	whyNoAction = "noAction" // a decision record without an action
)

// An erased says what went from a row, and by which order.
type erased struct {
	By      string   `json:"by"`
	All     bool     `json:"all"`
	Hard    bool     `json:"hard"`
	User    bool     `json:"user"`
	Parts   []string `json:"parts"`
	Pending []string `json:"pending"` // orders that are not carried out yet, and hide something here already
}

// timeline answers with a turn for people.
func (s *Server) timeline(c *call) error {
	turn := c.path["turn"]
	tree, err := s.o.Archive.Tree(c.ctx, c.tenant, turn)
	cut := errors.Is(err, export.ErrTree)
	if cut {
		s.tell(c, err)
		var rows []*export.Row
		rows, err = s.o.Archive.Turn(c.ctx, c.tenant, c.query["session"], turn)
		tree = []export.Branch{{Turn: turn, Rows: rows}}
	}
	complete, err := s.partly(c, err)
	if err != nil {
		return err
	}
	for _, b := range tree {
		for _, r := range b.Rows {
			if err := c.foreign(r); err != nil {
				return err
			}
		}
	}
	t := newTimeline(nil)
	if len(tree) > 0 {
		t = newTimeline(ofSession(tree[0].Rows, c.query["session"]))
		t.Subagents = subagentsOf(turn, tree[1:])
	}
	t.Complete, t.Cut = complete, cut
	return c.json(t)
}

// ofSession returns the rows of a session, and those of a turn that have none; "" is
// any session.
func ofSession(rows []*export.Row, session string) []*export.Row {
	if session == "" {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r *export.Row) bool { return r.SessionID.Valid && r.SessionID.S != session })
}

// subagentsOf returns the turns below a turn, as they began.
func subagentsOf(turn string, tree []export.Branch) []*subagent {
	all := []*subagent{}
	for i := range tree {
		b := &tree[i]
		if b.Parent != turn {
			continue
		}
		t := newTimeline(b.Rows)
		a := &subagent{Turn: b.Turn, Depth: int64(b.Depth), Sums: t.Sums, Subagents: subagentsOf(b.Turn, tree[i+1:])}
		if len(t.Sessions) > 0 {
			a.Session = t.Sessions[0]
		}
		all = append(all, a)
	}
	slices.SortStableFunc(all, func(a, b *subagent) int { return cmp.Compare(a.Sums.Start, b.Sums.Start) })
	return all
}

// A sessionTurn is a turn of a session.
type sessionTurn struct {
	Turn   string `json:"turn"`
	Parent string `json:"parent,omitempty"`
	Sums   sums   `json:"sums"`
}

// turns answers with the turns of a session, newest first.
func (s *Server) turns(c *call) error {
	of := map[string]*timeline{}
	rows, complete, err := s.eachOf(c, c.path["session"], func(r *export.Row) {
		if !r.TurnID.Valid {
			return
		}
		if of[r.TurnID.S] == nil {
			of[r.TurnID.S] = newTimeline(nil)
		}
		of[r.TurnID.S].add(r)
	})
	if err != nil {
		return err
	}
	all := []*sessionTurn{}
	for turn, t := range of {
		all = append(all, &sessionTurn{turn, t.Parent, t.Sums})
	}
	slices.SortFunc(all, func(a, b *sessionTurn) int {
		return cmp.Or(-cmp.Compare(a.Sums.Start, b.Sums.Start), cmp.Compare(a.Turn, b.Turn))
	})
	return c.json(map[string]any{"turns": all, "complete": complete, "cut": rows >= timelineRows})
}

// eachPage is how many rows are held at once of those that are only summed up.
const eachPage = 250

// eachOf goes through the newest rows of a session, and returns how many there
// were.
func (s *Server) eachOf(c *call, session string, f func(*export.Row)) (n int, complete bool, err error) {
	complete = true
	for before := ""; n < timelineRows; {
		rows, err := s.o.Archive.Session(c.ctx, c.tenant, session, export.Page{Limit: eachPage, Before: before})
		whole, err := s.partly(c, err)
		if err != nil {
			return n, false, err
		}
		complete = complete && whole
		for _, r := range rows {
			if err := c.foreign(r); err != nil {
				return n, false, err
			}
			f(r)
		}
		if n += len(rows); len(rows) < eachPage {
			break
		}
		before = rows[len(rows)-1].Cursor()
	}
	return n, complete, nil
}

// partly says of an error whether it leaves an answer: where some stored objects
// do not fit together, what others have is shown all the same, and the answer
// says that it may not be all. The operator hears what it is.
func (s *Server) partly(c *call, err error) (complete bool, fatal error) {
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, export.ErrTampered):
		return false, err
	}
	s.tell(c, err)
	return false, nil
}

// tell has the operator hear what an answer leaves out.
func (s *Server) tell(c *call, err error) {
	if s.o.Events.Failed != nil {
		s.o.Events.Failed(Request{Route: c.route.path, Token: c.tokenName(), Tenant: c.tenant, Status: c.w.status}, err)
	}
}

// newTimeline makes the timeline of rows, which are in order.
func newTimeline(rows []*export.Row) *timeline {
	t := &timeline{Sessions: []string{}, Steps: []*step{}, Subagents: []*subagent{}}
	for _, r := range rows {
		t.add(r)
	}
	return t
}

// add adds a row.
func (t *timeline) add(r *export.Row) {
	if r.SessionID.Valid && !slices.Contains(t.Sessions, r.SessionID.S) {
		t.Sessions = append(t.Sessions, r.SessionID.S)
	}
	t.Turn, t.Parent = cmp.Or(t.Turn, r.TurnID.S), cmp.Or(t.Parent, r.ParentTurnID.S)
	s := newStep(r)
	t.Steps = append(t.Steps, s)
	if s.RepeatOf == nil {
		t.Sums.add(s)
	}
}

func (t *sums) add(s *step) {
	t.Records++
	t.InputTokens += value(s.In)
	t.OutputTokens += value(s.Out)
	t.LatencyUS += value(s.Lasts)
	if s.MicroUSD != nil {
		sum := value(t.MicroUSD) + *s.MicroUSD
		t.MicroUSD = &sum
	}
	if t.Start == "" || s.At < t.Start {
		t.Start = s.At
	}
	if s.At > t.End {
		t.End = s.At
	}
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	count(&t.Failed, s.Failed)
	count(&t.Fallbacks, s.Rung != nil)
	count(&t.Regressions, s.Rung != nil && s.Rung.Regression)
	count(&t.Cascades, s.Cascade != nil || s.Provider != nil)
	count(&t.Erased, s.Erased != nil)
	count(&t.NotActed, s.NotActed != nil && s.NotActed.Declined)
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func number(n audit.Int) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.N
}

// newStep makes the step of a row.
func newStep(r *export.Row) *step {
	s := &step{
		Place: placeOf(r).String(), RecordID: r.RecordID.S, Kind: r.Kind.S, Stage: r.StageID.S, Seq: number(r.SeqWithinTurn),
		At: r.At().Format(stamp), AtUS: r.At().UnixMicro(), Lasts: number(r.LatencyUS), Status: r.Status.S, HTTP: number(r.HTTPStatus), Finish: r.FinishReason.S,
		Actor: r.ActorKind.S, User: r.UserID.S, Class: r.CallClass.S, Tool: r.ToolName.S, Depth: number(r.SubagentDepth),
		In: number(r.InputTokens), Out: number(r.OutputTokens), RepeatOf: number(r.RepeatOf), Topic: r.Line.Topic, Hash: r.RowHash.String(), Checked: r.Checked,
	}
	if r.RedactionPolicy.S != audit.PolicyNone {
		s.Scrubbed = r.RedactionPolicy.S
	}
	s.Failed = failed(s)
	s.setModel(r)
	s.setSlots(r)
	s.setNotActed(r)
	s.setErased(r)
	return s
}

// failed reports whether a step did not do what it was to do.
func failed(s *step) bool {
	switch s.Status {
	case "provider-error", "timeout", "error":
		return true
	}
	return s.Kind == audit.KindRejected
}

func (s *step) setModel(r *export.Row) {
	m := &model{
		Requested: r.RequestedModel.S, Resolved: r.ModelID.S, Provider: r.Family.S, Transport: r.Transport.S, Reason: r.SelectedReason.S,
		Rung: number(r.RungOrdinal), Chain: append([]string{}, r.FallbackChain...),
	}
	if m.Requested != "" || m.Resolved != "" || m.Provider != "" || m.Rung != nil || len(m.Chain) > 0 {
		s.Model = m
	}
}

// A members is a JSON object; nil has none. Members of another type than is asked
// for are not there: producers may write what they like.
type members map[string]any

func membersOf(text []byte) members {
	var m members
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if len(text) == 0 || d.Decode(&m) != nil {
		return nil
	}
	return m
}

func (m members) text(name string) string {
	s, _ := m[name].(string)
	return s
}

func (m members) number(name string) *int64 {
	n, _ := m[name].(json.Number)
	i, err := n.Int64()
	if err != nil {
		return nil
	}
	return &i
}

func (m members) truth(name string) *bool {
	b, ok := m[name].(bool)
	if !ok {
		return nil
	}
	return &b
}

func yes(b *bool) bool { return b != nil && *b }

func (s *step) setSlots(r *export.Row) {
	if m := membersOf(r.Slots[audit.SlotFallbackStep]); m != nil {
		s.Rung = &rung{
			From: m.text("originalModel"), To: m.text("attemptModel"), Reason: m.text("reason"), Attempt: m.number("attemptIndex"),
			Original: m.number("originalLadderStep"), Step: m.number("ladderStep"), InFamily: m.truth("inFamily"), Regression: yes(m.truth("ladderRegression")),
		}
	}
	if m := membersOf(r.Slots[audit.SlotProviderCascade]); m != nil {
		s.Provider = &pivot{From: m.text("providerFrom"), To: m.text("providerTo"), Trigger: m.text("trigger"), Error: m.text("errorType"), Source: m.text("source")}
	}
	if m := membersOf(r.Slots[audit.SlotToolFallbackStep]); m != nil {
		s.Cascade = &toolGo{
			From: m.text("originalTool"), To: m.text("cascadedTo"), Capability: m.text("capabilityId"), Failure: m.text("failureClass"),
			Attempt: m.number("attemptIndex"), Applied: m.truth("cascadeApplied"),
		}
	}
	if m := membersOf(r.Slots[audit.SlotCacheBreakpoint]); m != nil {
		s.CacheIn = m.number("cacheReadTokens")
	}
	if m := membersOf(r.Slots[audit.SlotTokenCost]); m != nil {
		s.MicroUSD = price(m)
	}
	if s.Kind == audit.KindRejected {
		s.Rejected = membersOf(r.Slots[audit.SlotContext]).text("reason")
	}
}

// price returns what a step cost in millionths of a US dollar. tokenCost is free
// in its form: these are the names that are known.
func price(m members) *int64 {
	if n := m.number("microUsd"); n != nil {
		return n
	}
	for _, name := range []string{"usd", "costUsd", "totalUsd", "totalCostUsd"} {
		n, ok := m[name].(json.Number)
		if !ok {
			continue
		}
		if f, err := n.Float64(); err == nil && f >= 0 && f < 1e9 {
			micros := int64(f*1e6 + .5)
			return &micros
		}
	}
	return nil
}

func (s *step) setNotActed(r *export.Row) {
	if m := membersOf(r.Slots[audit.SlotInterruptDecision]); m != nil {
		answer := cmp.Or(m.text("answer"), m.text("decision"), m.text("action"))
		s.NotActed = &notAct{Why: whyHuman, Text: cmp.Or(m.text("question"), m.text("reason")), Answer: answer, Declined: declines(answer)}
		return
	}
	switch s.Status {
	case "guard-rejected":
		s.NotActed = &notAct{Why: whyGuard, Text: s.Finish, Declined: true}
		return
	case "user-aborted":
		s.NotActed = &notAct{Why: whyAborted, Text: s.Finish, Declined: true}
		return
	}
	m := membersOf(r.Slots[audit.SlotContext])
	switch action, there := m["action"]; {
	case s.Kind == audit.KindPolicyDecision && m.text("policyDecision") == "denied":
		s.NotActed = &notAct{Why: whyPolicy, Text: s.Tool, Declined: true}
	case s.Kind == audit.KindDecision && m != nil && (!there || action == nil):
		s.NotActed = &notAct{Why: whyNoAction, Text: cmp.Or(s.Status, m.text("outcome")), Declined: true}
	}
}

// declines reports whether a human's answer stopped what was asked about.
func declines(answer string) bool {
	switch strings.ToLower(answer) {
	case "reject", "rejected", "deny", "denied", "no", "abort", "aborted", "cancel", "cancelled", "stop", "decline", "declined":
		return true
	}
	return false
}

func (s *step) setErased(r *export.Row) {
	if !r.Redaction.Valid {
		return
	}
	e := &erased{By: r.RedactionID.S, Parts: []string{}, Pending: append([]string{}, r.Gated...)}
	if sentinel, err := chain.ParseSentinel(r.Redaction.S); err == nil {
		e.All, e.Hard, e.User = sentinel.All, sentinel.Hard, sentinel.User
		for slot := range audit.NumSlots {
			if sentinel.Slots.Has(slot) {
				e.Parts = append(e.Parts, slot.String())
			}
		}
	}
	s.Erased = e
}

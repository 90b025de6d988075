package ledger

import (
	"encoding/json"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A DecisionRecord is one decision of an agent, also one not to act. Absent and
// unknown members are as those of a [Call]. An archive requires TenantID,
// DecisionID and Timestamp. Source: docs/wire-columns.md, decision record.
type DecisionRecord struct {
	TenantID         string
	RecordID         string // a ULID
	DecisionID       string // becomes turn_id
	Timestamp        time.Time
	ConversationID   string // becomes session_id; else that of Inputs does
	Inputs           DecisionInputs
	Verdict          string   // of the policy
	WorkersConsulted []string // nil is absent
	Calls            []DecisionCall
	Action           json.RawMessage // nil: the decision was not to act
	Outcome          json.RawMessage // a text or an object
	Context          json.RawMessage // an object of the producer's own form
	Principal        Principal
	Extra            Members
}

// DecisionInputs are what a decision was made from.
type DecisionInputs struct {
	Intent         string
	ConversationID string
	SatelliteID    string
	Extra          Members
}

// A DecisionCall is one call of a model that a decision took. Its prompt, if it
// has one, is in Extra; archives keep it only where prompts are retained.
type DecisionCall struct {
	Provider     string
	Model        string
	InputTokens  *int64
	OutputTokens *int64
	Extra        Members
}

func (d *DecisionRecord) walk(o *codec) {
	o.begin(d.Extra)
	o.text("decisionId", &d.DecisionID)
	o.text("tenantId", &d.TenantID)
	o.text("recordId", &d.RecordID)
	o.time("timestamp", &d.Timestamp)
	o.text("conversationId", &d.ConversationID)
	if o.open("inputs", true) {
		d.Inputs.walk(o)
		o.close(false)
	}
	o.text("verdict", &d.Verdict)
	o.texts("workersConsulted", &d.WorkersConsulted)
	list(o, "calls", &d.Calls, (*DecisionCall).walk)
	o.free("action", &d.Action)
	o.free("outcome", &d.Outcome)
	o.free("context", &d.Context)
	if o.open("principal", true) {
		d.Principal.walk(o)
		o.close(false)
	}
	o.end(&d.Extra)
}

func (i *DecisionInputs) walk(o *codec) {
	o.begin(i.Extra)
	o.text("intent", &i.Intent)
	o.text("conversationId", &i.ConversationID)
	o.text("satelliteId", &i.SatelliteID)
	o.end(&i.Extra)
}

func (c *DecisionCall) walk(o *codec) {
	o.begin(c.Extra)
	o.text("provider", &c.Provider)
	o.text("model", &c.Model)
	o.int("inputTokens", &c.InputTokens)
	o.int("outputTokens", &c.OutputTokens)
	o.end(&c.Extra)
}

// AppendJSON is as that of a [Call].
func (d *DecisionRecord) AppendJSON(dst []byte) []byte {
	o := codec{dst: dst}
	d.walk(&o)
	return o.dst
}

// MarshalJSON returns what [DecisionRecord.AppendJSON] appends.
func (d *DecisionRecord) MarshalJSON() ([]byte, error) { return d.AppendJSON(nil), nil }

// UnmarshalJSON is as that of a [Call].
func (d *DecisionRecord) UnmarshalJSON(text []byte) error {
	in, err := read(text)
	if err != nil {
		return err
	}
	*d = DecisionRecord{}
	d.walk(&codec{reading: true, in: in})
	return nil
}

// Tenant returns the tenant that the record names.
func (d *DecisionRecord) Tenant() string {
	if d.TenantID != "" {
		return d.TenantID
	}
	return d.Principal.TenantID
}

// Check is as that of a [Call].
func (d *DecisionRecord) Check() error {
	return check(d.Tenant(), audit.KindDecision, d.AppendJSON(nil))
}

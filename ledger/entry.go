package ledger

import (
	"encoding/json"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
)

// An Entry is one entry of an interaction log: llm-request, llm-response,
// tool-call, world-mutation, policy-decision; and what such logs say of
// themselves: source-chain-reset, source-rotation, queue-dropped. Absent and
// unknown members are as those of a [Call]. An archive requires TenantID and
// Kind; and of the first five TraceID and TS too. Source: docs/wire-columns.md,
// interaction entry.
type Entry struct {
	TenantID       string
	RecordID       string // a ULID
	SessionID      string
	TraceID        string // becomes turn_id
	Seq            int64  // with TraceID and Kind, the key of an entry; always written
	TS             time.Time
	Kind           string // see [audit.ParseKind]
	Actor          string
	Model          string
	PromptHash     string
	ToolName       string
	Args           json.RawMessage
	PolicyDecision string // allowed, denied, repaired, started, completed, failed
	Result         string // ok, error, pending, timeout
	ResultDetail   json.RawMessage
	DurationMS     *float64 // milliseconds
	WorldDiff      json.RawMessage
	RollbackHandle string
	SourceTag      string
	PrevHash       string // of chained JSONL
	Hash           string
	Principal      Principal
	Extra          Members
}

func (e *Entry) walk(o *codec) {
	o.begin(e.Extra)
	o.number("seq", &e.Seq)
	o.time("ts", &e.TS)
	o.text("kind", &e.Kind)
	o.text("traceId", &e.TraceID)
	o.text("tenantId", &e.TenantID)
	o.text("recordId", &e.RecordID)
	o.text("sessionId", &e.SessionID)
	o.text("actor", &e.Actor)
	o.text("model", &e.Model)
	o.text("promptHash", &e.PromptHash)
	o.text("toolName", &e.ToolName)
	o.free("args", &e.Args)
	o.text("policyDecision", &e.PolicyDecision)
	o.text("result", &e.Result)
	o.free("resultDetail", &e.ResultDetail)
	o.float("durationMs", &e.DurationMS)
	o.free("worldDiff", &e.WorldDiff)
	o.text("rollbackHandle", &e.RollbackHandle)
	o.text("sourceTag", &e.SourceTag)
	if o.open("principal", true) {
		e.Principal.walk(o)
		o.close(false)
	}
	o.text("prevHash", &e.PrevHash)
	o.text("hash", &e.Hash)
	o.end(&e.Extra)
}

// AppendJSON is as that of a [Call].
func (e *Entry) AppendJSON(dst []byte) []byte {
	o := codec{dst: dst}
	e.walk(&o)
	return o.dst
}

// MarshalJSON returns what [Entry.AppendJSON] appends.
func (e *Entry) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

// UnmarshalJSON is as that of a [Call].
func (e *Entry) UnmarshalJSON(text []byte) error {
	in, err := read(text)
	if err != nil {
		return err
	}
	*e = Entry{}
	e.walk(&codec{reading: true, in: in})
	return nil
}

// Tenant returns the tenant that the entry names.
func (e *Entry) Tenant() string {
	if e.TenantID != "" {
		return e.TenantID
	}
	return e.Principal.TenantID
}

// Check is as that of a [Call].
func (e *Entry) Check() error {
	kind, _ := audit.ParseKind(e.Kind)
	return check(e.Tenant(), kind, e.AppendJSON(nil))
}

package event

import "github.com/ledgerlake/ledgerlake/audit"

// A severity is how much a person should care. The levels are those of OCSF.
type severity int

const (
	informational severity = 1
	low           severity = 2
	medium        severity = 3
	high          severity = 4
)

// severities says what a level is called, and what it is where levels go from
// 0 to 10 (CEF, LEEF, ECS) or by OTLP's numbers.
var severities = map[severity]struct {
	name     string
	ten      int64
	otlp     int
	otlpText string
}{
	informational: {"Informational", 1, 9, "INFO"},
	low:           {"Low", 3, 13, "WARN"},
	medium:        {"Medium", 5, 14, "WARN2"},
	high:          {"High", 8, 17, "ERROR"},
}

// An outcome is how something ended, as SIEMs class it.
type outcome int

const (
	unknownOutcome outcome = iota
	success
	failure
	otherOutcome
)

// outcomes says what an outcome is in OCSF and in ECS.
var outcomes = [...]struct {
	name   string // also OCSF's status
	ocsf   int64  // status_id
	ecs    string // event.outcome
	inLEEF string // cat
}{
	unknownOutcome: {"Unknown", 0, "unknown", "unknown"},
	success:        {"Success", 1, "success", "success"},
	failure:        {"Failure", 2, "failure", "failure"},
	otherOutcome:   {"Other", 99, "unknown", "other"},
}

// A mapped kind is what the kind of a row, or of an event that is no row, is in
// the terms of the formats.
type mappedKind struct {
	name     string
	title    string // the name of an event of CEF; the beginning of messages
	activity int64  // OCSF's activity_id
	doing    string // OCSF's activity_name
	severity severity
	outcome  outcome // where no status says more
	category string  // ECS's event.category
	typ      string  // ECS's event.type
	genAI    string  // the operation of OpenTelemetry's GenAI conventions; "" is none
}

// OCSF's activities of the class API Activity.
const (
	updateActivity = 3
	deleteActivity = 4
	otherActivity  = 99
)

// kinds maps every kind of row, and then the events that are no rows.
var kinds = []mappedKind{
	{audit.KindCall, "Model call", otherActivity, "Call", informational, unknownOutcome, "api", "access", "chat"},
	{audit.KindDecision, "Agent decision", otherActivity, "Decide", informational, unknownOutcome, "api", "info", ""},
	{audit.KindLLMRequest, "Model request", otherActivity, "Request", informational, unknownOutcome, "api", "start", "chat"},
	{audit.KindLLMResponse, "Model response", otherActivity, "Respond", informational, unknownOutcome, "api", "end", "chat"},
	{audit.KindToolCall, "Tool call", otherActivity, "Call", informational, unknownOutcome, "api", "access", "execute_tool"},
	{audit.KindWorldMutation, "Change by an agent", updateActivity, "Update", informational, unknownOutcome, "api", "change", ""},
	{audit.KindPolicyDecision, "Policy decision", otherActivity, "Decide", informational, unknownOutcome, "api", "info", ""},
	{audit.KindSourceChainReset, "Source log reset", otherActivity, "Reset", medium, otherOutcome, "api", "info", ""},
	{audit.KindSourceRotation, "Source log rotated", otherActivity, "Rotate", informational, success, "api", "info", ""},
	{audit.KindQueueDropped, "Records dropped at the source", otherActivity, "Drop", medium, failure, "api", "info", ""},
	{audit.KindRejected, "Record rejected", otherActivity, "Reject", low, failure, "api", "info", ""},
	{audit.KindGap, "Records lost before they were archived", otherActivity, "Lose", high, failure, "api", "info", ""},
	{audit.KindChainReset, "Chain reset", otherActivity, "Reset", high, otherOutcome, "api", "admin", ""},
	{audit.KindRedaction, "Erasure ordered", deleteActivity, "Delete", informational, success, "api", "admin", ""},
	{audit.KindRedactionCancelled, "Erasure cancelled", otherActivity, "Cancel", informational, success, "api", "admin", ""},
	{audit.KindErasureDone, "Erasure done", deleteActivity, "Delete", informational, success, "api", "deletion", ""},
	{audit.KindRetentionCut, "Rows past their time dropped", deleteActivity, "Delete", informational, success, "api", "deletion", ""},
	{audit.KindLegalHold, "Legal hold", updateActivity, "Update", informational, success, "api", "admin", ""},
	{string(KindHead), "Head of a log", otherActivity, "Attest", informational, success, "api", "info", ""},
	{string(KindErasure), "Rows erased that were sent", deleteActivity, "Delete", informational, success, "api", "deletion", ""},
	{string(KindCheck), "Test of a destination", otherActivity, "Test", informational, success, "api", "info", ""},
}

// unknownKind is what a kind is that the tables do not know: of rows that a
// later version archived.
var unknownKind = mappedKind{"", "Record", otherActivity, "Other", informational, unknownOutcome, "api", "info", ""}

var kindByName = func() map[string]*mappedKind {
	m := make(map[string]*mappedKind)
	for i := range kinds {
		m[kinds[i].name] = &kinds[i]
	}
	return m
}()

// A mappedStatus is what a status says, or a policy's verdict.
type mappedStatus struct {
	outcome  outcome
	severity severity
}

// statuses maps the statuses and verdicts that producers are known to write.
// All others are outcomes of no class.
var statuses = map[string]mappedStatus{
	// outcome.status of calls
	"ok":             {success, informational},
	"provider-error": {failure, low},
	"guard-rejected": {failure, medium},
	"timeout":        {failure, low},
	"user-aborted":   {otherOutcome, informational},
	// result of entries
	"error":   {failure, low},
	"pending": {unknownOutcome, informational},
	// policyDecision of entries
	"allowed":   {success, informational},
	"denied":    {failure, medium},
	"repaired":  {success, low},
	"started":   {unknownOutcome, informational},
	"completed": {success, informational},
	"failed":    {failure, low},
	// verdict of decisions, which is free
	"allow":    {success, informational},
	"approve":  {success, informational},
	"approved": {success, informational},
	"deny":     {failure, medium},
	"reject":   {failure, medium},
	"rejected": {failure, medium},
	"block":    {failure, medium},
	"blocked":  {failure, medium},
}

// reasons maps the reasons of rejects that are worth more than low: somebody
// may have tried something.
var reasons = map[audit.Reason]severity{
	audit.ReasonTenantMismatch: high,
	audit.ReasonUnauthorised:   high,
	audit.ReasonReservedKind:   medium,
	audit.ReasonConflict:       medium,
}

// actors maps actor_kind to OCSF's type_id of a user, and its caption.
var actors = map[string]struct {
	id   int64
	name string
}{
	"user":      {1, "User"},
	"guest":     {99, "guest"},
	"scheduled": {99, "scheduled"},
	"system":    {3, "System"},
}

package audit

// The versions of AuditableCall whose members are known. A later one is
// archived whole all the same.
const (
	FirstVersion  = 8
	LatestVersion = 19
)

// A Version is one bump of auditRecordVersion. What is not known is empty.
type Version struct {
	To       int      `json:"to"`
	LandedAt string   `json:"landedAt,omitempty"` // a date, as RFC 3339 writes it
	Reason   string   `json:"reason,omitempty"`
	Members  []string `json:"members,omitempty"` // that are new, as paths
}

const promotes = "additive: promotes typed slots"

// Versions is the history of AuditableCall, oldest first. No version takes a
// member away or changes its type.
var Versions = []Version{
	{To: 8, Members: []string{"pluginPayloads"}},
	{To: 9, Reason: promotes},
	{To: 10, Reason: promotes},
	{To: 11, Reason: promotes},
	{To: 12, Reason: promotes},
	{To: 13, Reason: promotes},
	{To: 14, Reason: promotes},
	{To: 15, Reason: promotes},
	{To: 16, Reason: promotes},
	{To: 17, Reason: promotes},
	{To: 18, Reason: "model, provider and usage are what was resolved", Members: []string{"decision.requestedModel"}},
	{To: 19, Members: []string{"outcome.why"}},
}

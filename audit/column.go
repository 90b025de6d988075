package audit

// A ColumnType says how a header column is stored and hashed.
type ColumnType int

// The types of header columns.
const (
	String ColumnType = iota // UTF-8
	Int32                    // hashed as an integer, stored in 32 bits
	Int64
	Time // microseconds since 1970-01-01 UTC
)

// A Column is one header column: its name, its type, and where a Record keeps
// it. Exactly one of Text and Int is set.
type Column struct {
	Name     string
	Type     ColumnType
	Required bool
	Text     func(*Record) *Text
	Int      func(*Record) *Int
}

// Header lists the header columns in hashed order. It must not be changed.
// Source: docs/format.md, section 3.2.
var Header = [31]Column{
	{Name: "tenant_id", Required: true, Text: func(r *Record) *Text { return &r.TenantID }},
	{Name: "topic", Required: true, Text: func(r *Record) *Text { return &r.Topic }},
	{Name: "partition", Type: Int32, Required: true, Int: func(r *Record) *Int { return &r.Partition }},
	{Name: "seq", Type: Int64, Required: true, Int: func(r *Record) *Int { return &r.Seq }},
	{Name: "kafka_offset", Type: Int64, Int: func(r *Record) *Int { return &r.KafkaOffset }},
	{Name: "kafka_timestamp", Type: Time, Int: func(r *Record) *Int { return &r.KafkaTimestamp }},
	{Name: "archived_at", Type: Time, Required: true, Int: func(r *Record) *Int { return &r.ArchivedAt }},
	{Name: "kind", Required: true, Text: func(r *Record) *Text { return &r.Kind }},
	{Name: "audit_record_version", Type: Int32, Int: func(r *Record) *Int { return &r.AuditRecordVersion }},
	{Name: "record_id", Text: func(r *Record) *Text { return &r.RecordID }},
	{Name: "session_id", Text: func(r *Record) *Text { return &r.SessionID }},
	{Name: "turn_id", Text: func(r *Record) *Text { return &r.TurnID }},
	{Name: "stage_id", Text: func(r *Record) *Text { return &r.StageID }},
	{Name: "seq_within_turn", Type: Int64, Int: func(r *Record) *Int { return &r.SeqWithinTurn }},
	{Name: "created_at", Type: Time, Int: func(r *Record) *Int { return &r.CreatedAt }},
	{Name: "actor_kind", Text: func(r *Record) *Text { return &r.ActorKind }},
	{Name: "session_auth_method", Text: func(r *Record) *Text { return &r.SessionAuthMethod }},
	{Name: "call_class", Text: func(r *Record) *Text { return &r.CallClass }},
	{Name: "family", Text: func(r *Record) *Text { return &r.Family }},
	{Name: "model_id", Text: func(r *Record) *Text { return &r.ModelID }},
	{Name: "transport", Text: func(r *Record) *Text { return &r.Transport }},
	{Name: "tool_name", Text: func(r *Record) *Text { return &r.ToolName }},
	{Name: "subagent_depth", Type: Int64, Int: func(r *Record) *Int { return &r.SubagentDepth }},
	{Name: "parent_turn_id", Text: func(r *Record) *Text { return &r.ParentTurnID }},
	{Name: "input_tokens", Type: Int64, Int: func(r *Record) *Int { return &r.InputTokens }},
	{Name: "output_tokens", Type: Int64, Int: func(r *Record) *Int { return &r.OutputTokens }},
	{Name: "status", Text: func(r *Record) *Text { return &r.Status }},
	{Name: "latency_us", Type: Int64, Int: func(r *Record) *Int { return &r.LatencyUS }},
	{Name: "finish_reason", Text: func(r *Record) *Text { return &r.FinishReason }},
	{Name: "http_status", Type: Int64, Int: func(r *Record) *Int { return &r.HTTPStatus }},
	{Name: "redaction_policy", Text: func(r *Record) *Text { return &r.RedactionPolicy }},
}

package audit

// The kinds of rows. Source: docs/format.md, section 4.
const (
	KindCall             = "call"
	KindDecision         = "decision"
	KindLLMRequest       = "llm-request"
	KindLLMResponse      = "llm-response"
	KindToolCall         = "tool-call"
	KindWorldMutation    = "world-mutation"
	KindPolicyDecision   = "policy-decision"
	KindSourceChainReset = "source-chain-reset"
	KindSourceRotation   = "source-rotation"
	KindQueueDropped     = "queue-dropped"

	// Rows that only ingest makes.
	KindRejected   = "rejected"
	KindGap        = "gap"
	KindChainReset = "chain-reset"

	// Control rows, which only the control topic can bring.
	KindRedaction          = "redaction"
	KindRedactionCancelled = "redaction-cancelled"
	KindErasureDone        = "erasure-done"
	KindRetentionCut       = "retention-cut"
	KindLegalHold          = "legal-hold"
)

// Reserved tenants. A producer cannot use them: its ids may not begin with "_".
const (
	TenantPartition    = "_partition"    // gap rows
	TenantUnattributed = "_unattributed" // rejects whose tenant cannot be known
)

// ControlTopic is the usual name of the topic that governs an archive.
const ControlTopic = "ledgerlake.control"

// A Reason is the class of a reject. Source: docs/format.md, section 4.
type Reason string

// The reasons of rejects.
const (
	ReasonNullValue      Reason = "null_value"
	ReasonEmptyValue     Reason = "empty_value"
	ReasonInvalidJSON    Reason = "invalid_json"
	ReasonInvalidUnicode Reason = "invalid_unicode"
	ReasonDuplicateKey   Reason = "duplicate_key"
	ReasonMissingField   Reason = "missing_field"
	ReasonWrongType      Reason = "wrong_type"
	ReasonOutOfRange     Reason = "out_of_range"
	ReasonBadTenantID    Reason = "bad_tenant_id"
	ReasonTenantMismatch Reason = "tenant_mismatch"
	ReasonBadRecordID    Reason = "bad_record_id"
	ReasonBadTimestamp   Reason = "bad_timestamp"
	ReasonUnknownKind    Reason = "unknown_kind"
	ReasonReservedKind   Reason = "reserved_kind"
	ReasonUnauthorised   Reason = "unauthorised"
	ReasonTooDeep        Reason = "too_deep"
	ReasonTooLarge       Reason = "too_large"
	ReasonConflict       Reason = "conflict"
)

// A kindClass says who brings rows of a kind.
type kindClass int

const (
	fromProducers kindClass = iota
	fromIngest
	fromControl
)

var kindClasses = map[string]kindClass{
	KindCall: fromProducers, KindDecision: fromProducers, KindLLMRequest: fromProducers, KindLLMResponse: fromProducers,
	KindToolCall: fromProducers, KindWorldMutation: fromProducers, KindPolicyDecision: fromProducers,
	KindSourceChainReset: fromProducers, KindSourceRotation: fromProducers, KindQueueDropped: fromProducers,

	KindRejected: fromIngest, KindGap: fromIngest, KindChainReset: fromIngest,

	KindRedaction: fromControl, KindRedactionCancelled: fromControl, KindErasureDone: fromControl,
	KindRetentionCut: fromControl, KindLegalHold: fromControl,
}

// kindSpellings are the names of kinds that are not the kind itself.
var kindSpellings = map[string]string{
	"LlmRequest":     KindLLMRequest,
	"LlmResponse":    KindLLMResponse,
	"ToolCall":       KindToolCall,
	"WorldMutation":  KindWorldMutation,
	"PolicyDecision": KindPolicyDecision,
	"ChainReset":     KindSourceChainReset,
	"RotationMarker": KindSourceRotation,
	"RotationAnchor": KindSourceRotation,
	"QueueDropped":   KindQueueDropped,
}

// ParseKind returns the kind that a producer's spelling names: the kind itself,
// or the name that interaction logs use. Spellings match exactly.
func ParseKind(spelling string) (kind string, ok bool) {
	if k, ok := kindSpellings[spelling]; ok {
		return k, true
	}
	_, ok = kindClasses[spelling]
	return spelling, ok
}

// IsControlKind says whether only the control topic can bring rows of a kind.
func IsControlKind(kind string) bool {
	class, ok := kindClasses[kind]
	return ok && class == fromControl
}

// IsMadeKind says whether rows of a kind are made by ingest, never by a
// producer.
func IsMadeKind(kind string) bool {
	class, ok := kindClasses[kind]
	return ok && class == fromIngest
}

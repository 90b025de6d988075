package audit

// A Text is a nullable string column. The zero Text is null.
type Text struct {
	S     string // valid UTF-8 where Valid
	Valid bool   // false: null
}

// Str returns the Text that holds s.
func Str(s string) Text { return Text{S: s, Valid: true} }

// An Int is a nullable integer column: a count, a number or a time in
// microseconds since 1970-01-01 UTC. The zero Int is null.
type Int struct {
	N     int64
	Valid bool // false: null
}

// I64 returns the Int that holds n.
func I64(n int64) Int { return Int{N: n, Valid: true} }

// A Record is the content of one row: the 31 header columns in hashed order,
// the user, the slots, and the columns derived from them.
//
// The zero Record has every column null. Strings and slots may share memory
// with the Kafka message that they were decoded from. Source: docs/format.md,
// section 3.
type Record struct {
	TenantID           Text // opaque, 1 to 256 bytes
	Topic              Text
	Partition          Int
	Seq                Int // dense per log, from 0
	KafkaOffset        Int // null on rows that ingest itself makes
	KafkaTimestamp     Int // microseconds
	ArchivedAt         Int // microseconds, by the writer's clock
	Kind               Text
	AuditRecordVersion Int
	RecordID           Text // a ULID
	SessionID          Text
	TurnID             Text
	StageID            Text
	SeqWithinTurn      Int
	CreatedAt          Int // microseconds
	ActorKind          Text
	SessionAuthMethod  Text
	CallClass          Text
	Family             Text
	ModelID            Text
	Transport          Text
	ToolName           Text
	SubagentDepth      Int
	ParentTurnID       Text
	InputTokens        Int
	OutputTokens       Int
	Status             Text
	LatencyUS          Int // microseconds
	FinishReason       Text
	HTTPStatus         Int
	RedactionPolicy    Text

	UserID Text // enters the hash through a commitment only

	// Slots hold JSON text exactly as the producer wrote it, and SlotRaw the
	// bytes of a rejected record. nil is null; an empty slot is not null.
	Slots [NumSlots][]byte

	Derived

	TopicID  Text // the topic's UUID, base64url without padding, 22 characters
	Epoch    Int
	RepeatOf Int // seq of the row that this one repeats; data files only
}

// Derived are the columns that repeat what the decision slot says, so that a
// query need not open JSON. They are not hashed; a verifier derives them again.
type Derived struct {
	RequestedModel Text
	SelectedReason Text
	RungOrdinal    Int
	FallbackChain  []string // nil is null; an empty chain is not null
}

// A Slot is one erasable part of a row, in hashed order.
type Slot int

// The slots, in hashed order.
const (
	SlotDecision Slot = iota
	SlotOutcomeWhy
	SlotFamilyLock
	SlotFallbackStep
	SlotProviderCascade
	SlotCacheBreakpoint
	SlotToolFallbackStep
	SlotTokenCost
	SlotSynthesisQuality
	SlotToolSelection
	SlotPlanGeneration
	SlotInterruptDecision
	SlotPluginPayloads
	SlotContext
	SlotPrompts
	SlotExt
	SlotRaw // binary; the others hold JSON text
	NumSlots
)

var slotNames = [NumSlots]string{
	"decision", "outcome_why", "family_lock", "fallback_step", "provider_cascade", "cache_breakpoint",
	"tool_fallback_step", "token_cost", "synthesis_quality", "tool_selection", "plan_generation",
	"interrupt_decision", "plugin_payloads", "context", "prompts", "ext", "raw",
}

// String returns the slot's column name.
func (s Slot) String() string { return slotNames[s] }

// ParseSlot returns the slot of a column name.
func ParseSlot(name string) (Slot, bool) {
	for i, n := range slotNames {
		if n == name {
			return Slot(i), true
		}
	}
	return 0, false
}

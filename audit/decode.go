package audit

import "time"

// A Message is one Kafka record as it was delivered.
type Message struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time // the record's own, in milliseconds
	Key       []byte    // nil is null
	Value     []byte    // nil is null: a tombstone
	Headers   []MessageHeader
}

// A MessageHeader is one header of a Message. Names may repeat.
type MessageHeader struct {
	Name  string
	Value []byte // nil is null
}

// A Decoder turns messages into records. Its fields are settings; the zero
// Decoder reads a data topic and keeps no prompts. It may be used by several
// goroutines at once.
type Decoder struct {
	// Control is true for the control topic: only there are control kinds
	// welcome, and only they.
	Control bool
	// KeyIsTenant lets a record's key name the tenant where neither header nor
	// value does.
	KeyIsTenant bool
	// RetainPrompts says whether the text of a tenant's prompts is kept. nil
	// keeps none. The header ledgerlake-retain-prompts overrides it for one
	// record.
	RetainPrompts func(tenant string) bool
	// PromptPaths lists the members that hold prompt text. nil means
	// [DefaultPromptPaths].
	PromptPaths []string
}

// A Reject says why a message could not be archived as it is.
type Reject struct {
	Reason Reason
	Detail string // for a person; never shows the payload
}

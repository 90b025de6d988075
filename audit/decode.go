package audit

import (
	"sync"
	"time"
)

// The limits of a record. Beyond them it is a reject: too_large, too_deep.
const (
	MaxValueBytes = 16 << 20 // of the value; and, apart from it, of key and headers together
	MaxDepth      = 64       // objects and arrays within each other
	MaxMembers    = 1 << 16  // at the top level and in the groups that are taken apart, together
)

// largeValue is the size above which values are decoded one at a time. What a
// decoder needs for one is a few times its size, and must not be needed for
// every partition at once.
const largeValue = 1 << 20

var decodingLarge sync.Mutex

// The headers that a decoder reads. They do not come back in ext.
const (
	HeaderTenant        = "tenant"
	HeaderKind          = "ledgerlake-kind"
	HeaderRetainPrompts = "ledgerlake-retain-prompts"
)

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

// A Decoder turns messages into records. Its fields are settings, which do not
// change after the first Decode; the zero Decoder reads a data topic and keeps
// no prompts. It may be used by several goroutines at once, and is not to be
// copied.
type Decoder struct {
	// Control is true for the control topic: only there are control kinds
	// welcome, and only they.
	Control bool
	// KeyIsTenant lets a record's key name the tenant where neither header nor
	// value does.
	KeyIsTenant bool
	// RetainPrompts says whether the text of a tenant's prompts is kept. nil
	// keeps none. The header ledgerlake-retain-prompts overrides it for one
	// record: "true" keeps, all else does not.
	RetainPrompts func(tenant string) bool
	// PromptPaths lists the members that hold prompt text, as
	// [CheckPromptPaths] says. nil means [DefaultPromptPaths]; an empty list
	// leaves all text where it is.
	PromptPaths []string
	// Authorise says what a good record of the control topic lacks to govern an
	// archive, in words that do not show the payload, or "". nil asks for
	// nothing.
	Authorise func(r *Record, m *Message) string

	compile sync.Once
	prompts *promptNode
}

// Decode fills dst from a message and returns nil, or says why the message
// cannot be archived as it is; dst is then its row of kind rejected, complete
// but for the stamping. It never panics, whatever the bytes.
//
// Seq, ArchivedAt, TopicID and Epoch stay null: they are the stamping side's.
// dst shares memory with m, which must not change any more.
func (d *Decoder) Decode(dst *Record, m *Message) *Reject {
	if len(m.Value) > largeValue {
		decodingLarge.Lock()
		defer decodingLarge.Unlock()
	}
	w := workspaces.Get().(*workspace)
	defer w.release()
	w.d, w.m, w.dst, w.promptRoot = d, m, dst, d.promptRoot()
	dst.arrive(m)
	w.decode()
	if w.reject == nil && d.Control && d.Authorise != nil {
		if lacks := d.Authorise(dst, m); lacks != "" {
			w.reject = &Reject{ReasonUnauthorised, lacks}
		}
	}
	if w.reject != nil {
		dst.becomeRejected(m, w.reject)
	}
	return w.reject
}

func (d *Decoder) promptRoot() *promptNode {
	d.compile.Do(func() {
		paths := d.PromptPaths
		if paths == nil {
			paths = DefaultPromptPaths
		}
		d.prompts = compilePrompts(paths)
	})
	return d.prompts
}

// arrive empties a record and fills in what Kafka says of a message. A
// timestamp that readers could not print is brought to the nearest that they
// can; such a message becomes a reject, whose detail has the true one.
func (r *Record) arrive(m *Message) {
	*r = Record{}
	r.TenantID = Str(TenantUnattributed)
	r.Topic = Str(m.Topic)
	r.Partition = I64(int64(m.Partition))
	r.KafkaOffset = I64(m.Offset)
	r.KafkaTimestamp = I64(nearMicros(m.Timestamp.UnixMilli()))
}

// A Reject says why a message could not be archived as it is.
type Reject struct {
	Reason Reason
	Detail string // for a person; never shows the payload
}

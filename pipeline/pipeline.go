// Package pipeline is the engine of ingest: Kafka partitions become committed
// segments.
//
//	fetch ─ decode ─ scrub ─ dedupe ─ stamp ─ encode ─ create-only PUT ─ offset commit
//
// One goroutine owns each assigned partition; the only order is offset order.
// At most one PUT of a partition is in flight, and while it is, the next batch
// grows. The bucket is the truth: a partition starts where its newest segment
// ends, whatever the group's committed offset says, which is a hint for people
// and for lag monitors. No offset is ever reset.
//
// Every offset has one of three fates: a row, a counted repeat of a row, or a
// rejected row. Offsets that Kafka does not deliver are gaps, with a cause.
//
// The package never logs, never reads a flag, and takes time and randomness as
// values, so that all of it runs in a testing/synctest bubble. It does not
// prove anything.
package pipeline

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/redact"
)

// ErrWentBack: ingest has ended because the bucket does not hold what Kafka knows
// that it held. The error says what is missing, and what to do.
var ErrWentBack = errors.New("the bucket went back in time")

// ErrPartitionStopped: ingest ended cleanly, but a partition of it had stopped
// before. The alarm said why.
var ErrPartitionStopped = errors.New("a partition had stopped")

// Settings are all that shapes a run. [Settings.withDefaults] gives each zero
// value its default, as each field says.
type Settings struct {
	Archive archive.Bucket // required
	Root    archive.Root   // of the archive; default: [OpenArchive] opens or makes it
	Client  []kgo.Opt      // seed brokers, TLS, SASL: everything that is connection
	// What is read: data topics by name, by a pattern (RE2, of the whole name;
	// topics that are made later too), or exactly these partitions, without
	// joining the group. One of the three is required, and the last excludes the
	// others.
	Topics       []string
	TopicPattern string
	Assign       []Partition
	ControlTopic string // the topic of control records; "" reads none
	Group        string // default "ledgerlake"
	// TrustTail accepts archived segments that no longer can be compared with
	// Kafka, because it has deleted their offsets.
	TrustTail   bool
	Batch       Batch
	Memory      int64 // bytes of records and windows held at once; default 256 MiB
	Window      int   // coordinates remembered per partition; default 200,000
	DLQTopic    string
	KeyIsTenant bool
	// KeyedTopics are the topics whose logs begin as keyed ones
	// (chain.SchemeHMACv1); "*" is all. A log that has begun goes on as it did.
	KeyedTopics []string
	MasterKey   []byte     // of which the keys of logs are made; nil: none
	LogKeys     chain.Keys // keys of single logs, which go before the master key; nil: none
	// RetainPrompts names the tenants whose prompt text is kept; "*" is all.
	RetainPrompts []string
	PromptPaths   []string // default [audit.DefaultPromptPaths]
	// Scrub takes content out of records before anything of them is stored, hashed
	// or compared; nil takes nothing. What goes to DLQTopic is not scrubbed.
	Scrub *redact.Policy
	// ShutdownTimeout bounds a clean stop: what is not durable by then is left
	// to the next owner. Default 20 s.
	ShutdownTimeout time.Duration
	// CommitInterval is how often durable offsets are committed to Kafka.
	// Default 1 s.
	CommitInterval time.Duration
	// Signers sign anchors and checkpoints; nil leaves them unsigned, and the
	// archive proves nothing against who owns the bucket. It is asked for every
	// anchor, must not block, and the same keys should be among Keys. Where it
	// returns none, the anchor waits.
	Signers func(now time.Time) []note.Signer
	Keys    *sign.Ring // whose anchors are believed; nil: nobody's
	// AnchorKeys are what anchors say of keys that are good from the next one on.
	// Where it names control keys, a control record that none of them signed is
	// rejected.
	AnchorKeys archive.AnchorKeys
	// AnchorEvery is how long a change waits for its anchor. Default 1 min;
	// below 0, none is written.
	AnchorEvery time.Duration
	AnchorRows  int64 // and how many rows do; default 100,000
	// AnchorTopic is where Kafka keeps the newest anchor of each line, by which a
	// bucket that went back in time is noticed; "" is nowhere.
	AnchorTopic string
	// AnchorCopy is a second bucket for anchors; nil is none.
	AnchorCopy archive.Bucket
	// TrustBucket goes on from what the bucket has where Kafka knows that it had
	// more. It is for one start.
	TrustBucket bool
	// TraceContexts is how many trace contexts of its records a Commit has at most;
	// 0: records are not looked at for any.
	TraceContexts int
	Version       string           // of the writer, as segments state it
	Now           func() time.Time // default time.Now
	Rand          io.Reader        // salts, ids and jitter; default crypto/rand
}

// A Partition is one partition of one topic.
type Partition struct {
	Topic  string
	Number int32
}

// Batch says when a batch closes: at Rows rows, Age after its first row, or at
// the end of a turn, whichever is first, and when no PUT of the partition is in
// flight. While one is, the batch grows up to GrowRows or GrowBytes.
type Batch struct {
	Rows      int           // default 32
	Age       time.Duration // default 50 ms
	Strict    bool          // never grow above Rows; costs throughput
	GrowRows  int           // default 50,000
	GrowBytes int64         // bytes of records; default 8 MiB
	EmptyAge  time.Duration // a batch without rows closes so long after its first offset; default 10 s
}

// Events hears what happens. Each func may be nil, may be called from several
// goroutines at once, and must not block.
type Events struct {
	Assigned  func(l archive.Line, offset, ordinal int64)
	Revoked   func(l archive.Line)
	Committed func(Commit)
	Rejected  func(l archive.Line, offset int64, tenant string, r audit.Reject)
	Gap       func(l archive.Line, from, to int64) // offsets that Kafka no longer had: an alarm
	Retrying  func(l archive.Line, key string, attempt int, err error)
	Comparing func(l archive.Line, ordinal int64) // a segment that this process did not write is compared with Kafka
	Anchored  func(Anchor)
	// CopyFailed hears of an anchor that is in the bucket and not where it is also to
	// be kept.
	CopyFailed func(l archive.Line, what string, err error)
	Stopped    func(l archive.Line, err error) // an alarm; other partitions go on
	Offsets    func(OffsetCommit)              // Kafka was told how far partitions are durable, or could not be
	SecondLog  func(tenant string, l archive.Line)
	Warn       func(what string, err error)
}

// An Anchor is one anchor that is durable.
type Anchor struct {
	Line    archive.Line
	Number  int64
	Ordinal int64         // of the newest segment that it covers
	Bytes   int64         // of the object
	Took    time.Duration // from taking down what it says to durable
	Adopted bool          // somebody else wrote it
}

// A Commit is one segment that is durable.
type Commit struct {
	Line       archive.Line
	Ordinal    int64
	Rows       int64 // all rows of the segment, rejects and made rows too
	Made       int64
	Rejects    map[audit.Reason]int64
	Duplicates int64
	Bytes      int64         // of the object
	NextOffset int64         // the first offset not accounted for
	Took       time.Duration // from the batch's closing to durable
	Adopted    bool          // somebody else wrote it
	// Where this process wrote it:
	Timestamps []int64          // of the segment's records, in milliseconds since 1970
	Tenants    map[string]int64 // rows by log
	Opened     time.Time        // when the first of it came
	Closed     time.Time        // when the batch closed
	Encoded    time.Time        // when the object was made
	Durable    time.Time        // when it was known to be in the bucket
	Attempts   int              // of the write, 1 or more
	Contexts   []TraceContext   // of its records, each once; at most Settings.TraceContexts
}

// A TraceContext is what a record's headers traceparent and tracestate say (W3C
// Trace Context). It is not checked.
type TraceContext struct{ Parent, State string }

// An OffsetCommit is one commit of durable offsets to Kafka.
type OffsetCommit struct {
	Lines        []archive.Line // of which something new was durable
	Began, Ended time.Time
	Err          error // nil: Kafka has it
}

func (s Settings) withDefaults() Settings {
	setDefault(&s.Group, "ledgerlake")
	setDefault(&s.Batch.Rows, 32)
	setDefault(&s.Batch.Age, 50*time.Millisecond)
	setDefault(&s.Batch.GrowRows, 50_000)
	setDefault(&s.Batch.GrowBytes, 8<<20)
	setDefault(&s.Batch.EmptyAge, 10*time.Second)
	setDefault(&s.Memory, 256<<20)
	setDefault(&s.Window, 200_000)
	setDefault(&s.ShutdownTimeout, 20*time.Second)
	setDefault(&s.CommitInterval, time.Second)
	setDefault(&s.AnchorEvery, time.Minute)
	setDefault(&s.AnchorRows, 100_000)
	setDefault(&s.Version, "dev")
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Rand == nil {
		s.Rand = rand.Reader
	}
	if s.PromptPaths == nil {
		s.PromptPaths = audit.DefaultPromptPaths
	}
	return s
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// decoder returns the decoder of a topic.
func (s *Settings) decoder(topic string) *audit.Decoder {
	d := &audit.Decoder{Control: topic == s.ControlTopic, KeyIsTenant: s.KeyIsTenant, PromptPaths: s.PromptPaths, Authorise: s.authorise()}
	if len(s.RetainPrompts) > 0 {
		d.RetainPrompts = func(tenant string) bool {
			return slices.Contains(s.RetainPrompts, tenant) || slices.Contains(s.RetainPrompts, "*")
		}
	}
	return d
}

// reader returns what makes rows of the records of a topic.
func (s *Settings) reader(topic string) *reader { return &reader{s.decoder(topic), s.Scrub} }

// writer says what makes the segments of this run.
func (s *Settings) writer() archive.Writer {
	shape, err := json.Marshal(struct {
		ControlTopic  string
		KeyIsTenant   bool
		RetainPrompts []string
		PromptPaths   []string
		Policy        string
		KeyedTopics   []string `json:",omitempty"`
		ControlKeys   []string `json:",omitempty"`
	}{s.ControlTopic, s.KeyIsTenant, s.RetainPrompts, s.PromptPaths, s.Scrub.ID(), s.KeyedTopics, s.AnchorKeys.Control})
	if err != nil {
		panic(err) // strings and booleans always marshal
	}
	sum := sha256.Sum256(shape)
	return archive.Writer{Version: s.Version, Policy: s.Scrub.ID(), Settings: hex.EncodeToString(sum[:])}
}

// An Ingest is one ingest process.
type Ingest struct {
	settings Settings
	events   Events
	running  atomic.Pointer[consumer]
}

// New returns an ingest that does nothing yet.
func New(s Settings, ev Events) *Ingest { return &Ingest{settings: s.withDefaults(), events: ev} }

// Run is New and [Ingest.Run].
func Run(ctx context.Context, s Settings, ev Events) error { return New(s, ev).Run(ctx) }

// Run archives until ctx is done, and then stops cleanly: what was read becomes
// durable within ShutdownTimeout or is left to the next owner. It returns nil
// after a clean stop, an error matching [ErrPartitionStopped] after one in
// whose run a partition had stopped and was not given away since, one matching
// [ErrWentBack] where it stopped by itself for that, and any other error where it
// could not start. It must be called once.
func (in *Ingest) Run(ctx context.Context) error {
	s := in.settings
	if len(s.Topics) == 0 && s.TopicPattern == "" && len(s.Assign) == 0 {
		return errors.New("no topic to read")
	}
	if err := s.checkKeys(); err != nil {
		return err
	}
	if s.Root == (archive.Root{}) {
		var err error
		if s.Root, err = OpenArchive(ctx, s); err != nil {
			return err
		}
	}
	c, err := newConsumer(s, in.events)
	if err != nil {
		return err
	}
	in.running.Store(c)
	return c.run(ctx)
}

// OpenArchive opens the archive in the bucket of s, or makes it.
func OpenArchive(ctx context.Context, s Settings) (archive.Root, error) {
	s = s.withDefaults()
	id, err := ulid.New(ulid.Timestamp(s.Now()), s.Rand)
	if err != nil {
		return archive.Root{}, fmt.Errorf("archive id: %w", err)
	}
	root, err := archive.CreateRoot(ctx, s.Archive, id.String(), s.Now())
	if err != nil {
		return archive.Root{}, fmt.Errorf("open archive: %w", err)
	}
	return root, nil
}

package config

import (
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// Ingest is the settings of ledgerlake-ingest. The zero Ingest has no
// defaults; [Load] fills them in.
type Ingest struct {
	Bucket       string
	Topics       []string
	TopicPattern string      // RE2, of whole names; "" is none
	Assign       []Partition // without a group's help; nil is as a member of Group
	Brokers      []string
	Group        string
	ControlTopic string // "" is none
	DLQTopic     string // "" is none
	KeyIsTenant  bool

	RetainPrompts []string // tenants; "*" is all
	PromptPaths   []string // nil is the decoder's own
	ScrubPolicy   string   // a file; "" is none

	TrustTail bool

	Memory          int64 // bytes
	Window          int   // coordinates a partition
	Batch           Batch
	ShutdownTimeout time.Duration

	Anchors Anchors
	Keys    Keys

	Chain Chain
	Kafka Kafka
	S3    s3sink.Options // over which the parameters of Bucket go
	HTTP  HTTP
	Log   Log
}

// A Partition is one partition of a topic.
type Partition struct {
	Topic  string
	Number int32
}

// Batch says when a batch of rows becomes a segment.
type Batch struct {
	Rows      int
	Age       time.Duration
	Strict    bool
	GrowRows  int
	GrowBytes int64
	EmptyAge  time.Duration
}

// HTTP is what a process tells whoever asks it.
type HTTP struct {
	Listen     string        // host:port; "" is nobody
	ReadyAge   time.Duration // of a commit
	LagBy      string        // LagByPartition or LagByTopic
	TopTenants int           // that metrics name; 0 is none
}

// The words of metrics.lag-by.
const (
	LagByPartition = "partition"
	LagByTopic     = "topic"
)

// Log is what a command says while it runs.
type Log struct {
	Level    string
	Format   string
	Tenants  bool
	Progress time.Duration // 0 is never
}

// Sections returns the settings in the order of help, each of them bound to
// its field of s.
func (s *Ingest) Sections() []Section {
	return []Section{
		{"What is read", s.source()},
		{"Where it is kept", append(s.bucket(), storeSettings("s3.", &s.S3)...)},
		{"Anchors", s.Anchors.settings()},
		{"Keys that sign", s.Keys.settings()},
		{"What becomes of a record", s.decoding()},
		{"Keyed logs", s.Chain.settings()},
		{"Batches and memory", s.batching()},
		{"Connection to Kafka", slices.Concat(s.Kafka.settings(), s.Kafka.SASL.settings())},
		{"Health and metrics", s.HTTP.settings()},
		{"Logs and life", s.life()},
	}
}

func (s *Ingest) source() []Setting {
	return []Setting{
		{
			Name: "topics", Help: "The topics whose records are archived. One of topics, topic-pattern and assign is needed.",
			Value: texts(&s.Topics, "TOPIC", "the name of a Kafka topic", isTopic),
		},
		{
			Name: "topic-pattern", Help: "Topics whose whole name matches are archived as well, also those that are made later; never dlq-topic, ledgerlake.anchors or Kafka's own, and the control topic only as such.",
			Value: text(&s.TopicPattern, "REGEXP", "a regular expression (RE2), such as audit\\..*", isPattern),
		},
		{
			Name: "assign", Help: "Exactly these partitions are read, and no group is joined, so no other process is kept from reading them too; the archive stays one line, each row once. group is where their offsets are committed.",
			Value: partitions(&s.Assign),
		},
		{
			Name: "brokers", Default: "127.0.0.1:9092", Help: "The brokers that are asked first for the rest of the cluster.",
			Value: texts(&s.Brokers, "HOST:PORT", "host:port", isHostPort),
		},
		{
			Name: "group", Default: "ledgerlake", Help: "The consumer group. Processes of one group share the partitions.",
			Value: text(&s.Group, "NAME", "the name of a consumer group", isGroup),
		},
		{
			Name: "control-topic", Default: "ledgerlake.control",
			Help:  "The topic whose records govern the archive (erasures, holds). It is read if it exists; none: not at all.",
			Value: textOrNone(&s.ControlTopic, "TOPIC", "the name of a Kafka topic", isTopic),
		},
		{
			Name: "trust-tail", Default: "false",
			Help:  "Go on from archived segments whose records Kafka has deleted meanwhile, so that they cannot be compared with it. Without it such a partition stops. For one start, after an outage longer than the topic's retention, and only if nobody else could write to the bucket in that time.",
			Value: boolean(&s.TrustTail),
		},
	}
}

func (s *Ingest) bucket() []Setting {
	url := single("URL", "s3://bucket/prefix?setting=value", func(text string) error {
		_, err := s3sink.ParseURL(text)
		s.Bucket = text
		return err
	})
	url.hidden = true // someone may have put a secret into it
	return []Setting{{
		Name: "bucket", Required: true, Value: url,
		Help: "The archive: s3://BUCKET/PREFIX?endpoint=URL&region=NAME. The prefix may be left out. The parameters are the settings that begin with s3. (secrets excepted), and win over them.",
	}}
}

// storeSettings are the settings of s3sink, under a prefix.
func storeSettings(prefix string, o *s3sink.Options) []Setting {
	var settings []Setting
	for _, option := range s3sink.Settings() {
		v := single("VALUE", option.Doc, func(text string) error { return o.Set(option.Name, text) })
		if v.secret = option.Secret; v.secret {
			v.from = func(path string) { renewFrom(o, option.Name, path) }
		}
		settings = append(settings, Setting{Name: prefix + option.Name, Help: sentence(option.Doc), Value: v})
	}
	return settings
}

// renewFrom has a secret of the store read from its file again where the store
// refuses the one at hand.
func renewFrom(o *s3sink.Options, name, path string) {
	others := o.Renew
	o.Renew = func(o *s3sink.Options) error {
		if others != nil {
			if err := others(o); err != nil {
				return err
			}
		}
		text, err := readSecretFile(path)
		if err != nil {
			return err
		}
		return o.Set(name, text)
	}
}

// sentence makes a sentence of a few words.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

func (s *Ingest) decoding() []Setting {
	return []Setting{
		{
			Name: "key-is-tenant", Default: "false",
			Help:  "Let a record's key name the tenant where neither its headers nor its value do.",
			Value: boolean(&s.KeyIsTenant),
		},
		{
			Name: "retain-prompts", Help: "The tenants whose prompts are kept in the slot prompts; * is all. Others lose the text, and keep its length.",
			Value: texts(&s.RetainPrompts, "TENANT", "a tenant id, or *", notEmpty),
		},
		{
			Name: "prompt-paths", Help: "The members that hold the text of prompts, instead of the usual ones (docs/wire-columns.md).",
			Value: texts(&s.PromptPaths, "PATH", "a path of member names joined by dots", notEmpty),
		},
		scrubPolicy(&s.ScrubPolicy),
		{
			Name: "dlq-topic", Default: None,
			Help:  "A topic that rejected records are also sent to, as they came (not scrubbed), with the reason in headers.",
			Value: textOrNone(&s.DLQTopic, "TOPIC", "the name of a Kafka topic", isTopic),
		},
	}
}

// maxRows is less than a segment may have by more than a batch gets beside its
// records.
const (
	maxRows = 60_000
	_       = uint(archive.MaxSegmentRows - maxRows - 1024)
)

func (s *Ingest) batching() []Setting {
	b := &s.Batch
	return []Setting{
		{Name: "batch.rows", Default: "32", Help: "A batch with this many rows becomes a segment.", Value: count(&b.Rows, 1, maxRows)},
		{
			Name: "batch.age", Default: "50ms", Help: "A batch becomes a segment this long after its first row came.",
			Value: duration(&b.Age, time.Millisecond, time.Hour),
		},
		{
			Name: "batch.strict", Default: "false", Help: "Keep both limits exactly, also while the store is busy with the segment before.",
			Value: boolean(&b.Strict),
		},
		{
			Name: "batch.grow-rows", Default: "50000", Help: "While the store is busy with the segment before, a batch grows up to this many rows.",
			Value: count(&b.GrowRows, 1, maxRows),
		},
		{
			Name: "batch.grow-bytes", Default: "8MiB", Help: "And up to this many bytes of records.",
			Value: size(&b.GrowBytes, 1<<10, 64<<20),
		},
		{
			Name: "batch.empty-age", Default: "10s", Help: "Repeats and Kafka's own markers, which make no row, are accounted for by a segment after this long.",
			Value: duration(&b.EmptyAge, time.Millisecond, time.Hour),
		},
		{
			Name: "memory", Default: "256MiB", Help: "What all partitions together may hold: three quarters of it records that are not in the bucket yet (fetching pauses when that is spent), a quarter the windows. The heap is kept to this, a quarter of it and 64MiB, unless GOMEMLIMIT says otherwise.",
			Value: size(&s.Memory, 32<<20, 1<<40),
		},
		{
			Name: "window", Default: "200000", Help: "Repeats are found among this many records of a partition.",
			Value: count(&s.Window, 1, 100_000_000),
		},
	}
}

func (h *HTTP) settings() []Setting {
	return []Setting{
		{
			Name: "http.listen", Default: "127.0.0.1:9404",
			Help:  "Where /healthz, /readyz and /metrics are served (docs/operations.md); none: nowhere. Port 0 takes a free one, which the log names. Who sets it cannot start where it is taken; without that, ingest then starts without.",
			Value: textOrNone(&h.Listen, "HOST:PORT", "host:port or :port", isListen),
		},
		{
			Name: "http.ready-age", Default: "1m",
			Help:  "How long something that was read may wait to become durable before /readyz says that this process is not ready.",
			Value: duration(&h.ReadyAge, time.Second, 24*time.Hour),
		},
		{
			Name: "metrics.lag-by", Default: LagByPartition,
			Help:  "Lag is given for each partition or summed for each topic. It is summed all the same where a process has more than 1,000 partitions.",
			Value: oneOf(&h.LagBy, LagByPartition, LagByTopic),
		},
		{
			Name: "metrics.top-tenants", Default: "0",
			Help:  "Name so many tenants, those with the most rows, in the label of a metric; all others are one more. 0: no tenant id stands in a metric.",
			Value: count(&h.TopTenants, 0, 1000),
		},
	}
}

func (s *Ingest) life() []Setting {
	return life(&s.Log, &s.ShutdownTimeout, "How long a clean stop may take after SIGTERM or SIGINT; then the process ends all the same, with exit code 1. A second signal ends it at once.")
}

// life returns the settings of what a process logs, and of how it ends; help says
// what a stop means to it.
func life(l *Log, shutdown *time.Duration, help string) []Setting {
	return []Setting{
		{
			Name: "shutdown-timeout", Default: "20s", Help: help,
			Value: duration(shutdown, time.Second, time.Hour),
		},
		{Name: "log-level", Default: "info", Help: "The least that is logged.", Value: oneOf(&l.Level, "debug", "info", "warn", "error")},
		{
			Name: "log-format", Default: "json", Help: "How the log is written to stderr: one JSON object a line, or text for people.",
			Value: oneOf(&l.Format, "json", "console"),
		},
		{
			Name: "log-tenants", Default: "false", Help: "Let tenant ids stand in the log. Payload and user ids never do.",
			Value: boolean(&l.Tenants),
		},
		{
			Name: "progress", Default: "30s", Help: "How often a line of the log sums up what was done; 0s: never.",
			Value: duration(&l.Progress, 0, 24*time.Hour),
		},
	}
}

var (
	topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
	groupName = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)
)

// isTopic takes what Kafka takes as the name of a topic.
func isTopic(s string) bool { return topicName.MatchString(s) && s != "." && s != ".." && s != None }

// isPattern takes a regular expression that [regexp.Compile] takes.
func isPattern(s string) bool {
	_, err := regexp.Compile(s)
	return s != "" && err == nil
}

// partitions is a list of TOPIC/NUMBER.
func partitions(p *[]Partition) Value {
	var names []string
	v := texts(&names, "TOPIC/PARTITION", "a topic, a slash and the number of a partition", func(s string) bool {
		_, ok := parsePartition(s)
		return ok
	})
	check := v.set
	v.set = func(texts []string) error {
		if err := check(texts); err != nil {
			return err
		}
		*p = nil
		for _, s := range names {
			one, _ := parsePartition(s)
			*p = append(*p, one)
		}
		return nil
	}
	return v
}

func parsePartition(s string) (Partition, bool) {
	topic, number, _ := strings.Cut(s, "/")
	n, ok := parseDecimal(number)
	return Partition{topic, int32(n)}, ok && n <= math.MaxInt32 && isTopic(topic)
}

func isGroup(s string) bool { return groupName.MatchString(s) }

func isHostPort(s string) bool {
	host, port, ok := splitHostPort(s)
	return ok && host != "" && port != 0
}

// isListen takes what a listener takes: any host may be left out, and port 0 is
// a free one.
func isListen(s string) bool {
	_, _, ok := splitHostPort(s)
	return ok
}

func splitHostPort(s string) (host string, port int64, ok bool) {
	host, digits, err := net.SplitHostPort(s)
	port, number := parseDecimal(digits)
	return host, port, err == nil && number && port <= 65535
}

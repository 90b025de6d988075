package config

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/s3sink"
)

// Ingest is the settings of ledgerlake-ingest. The zero Ingest has no
// defaults; [Load] fills them in.
type Ingest struct {
	Bucket       string
	Topics       []string
	Brokers      []string
	Group        string
	ControlTopic string // "" is none
	DLQTopic     string // "" is none
	KeyIsTenant  bool

	RetainPrompts []string // tenants; "*" is all
	PromptPaths   []string // nil is the decoder's own

	Memory          int64 // bytes
	Window          int   // coordinates a partition
	Batch           Batch
	ShutdownTimeout time.Duration

	Kafka Kafka
	S3    s3sink.Options // over which the parameters of Bucket go
	Log   Log
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

// Kafka is how a client connects to the brokers.
type Kafka struct {
	ClientID string
	TLS      bool
	CAFile   string
	CertFile string
	KeyFile  string
	SASL     SASL
}

// SASL is how a client says who it is.
type SASL struct {
	Mechanism string // "" is none
	User      string
	Password  Secret
}

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
		{"Where it is kept", append(s.bucket(), storeSettings(&s.S3)...)},
		{"What becomes of a record", s.decoding()},
		{"Batches and memory", s.batching()},
		{"Connection to Kafka", s.Kafka.settings()},
		{"Logs and life", s.life()},
	}
}

func (s *Ingest) source() []Setting {
	return []Setting{
		{
			Name: "topics", Required: true, Help: "The topics whose records are archived.",
			Value: texts(&s.Topics, "TOPIC", "the name of a Kafka topic", isTopic),
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

// storeSettings are the settings of s3sink, under s3.
func storeSettings(o *s3sink.Options) []Setting {
	var settings []Setting
	for _, option := range s3sink.Settings() {
		v := single("VALUE", option.Doc, func(text string) error { return o.Set(option.Name, text) })
		v.secret = option.Secret
		settings = append(settings, Setting{Name: "s3." + option.Name, Help: sentence(option.Doc), Value: v})
	}
	return settings
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
		{
			Name: "dlq-topic", Default: None,
			Help:  "A topic that rejected records are also sent to, as they came (not scrubbed), with the reason in headers.",
			Value: textOrNone(&s.DLQTopic, "TOPIC", "the name of a Kafka topic", isTopic),
		},
	}
}

func (s *Ingest) batching() []Setting {
	b := &s.Batch
	return []Setting{
		{Name: "batch.rows", Default: "32", Help: "A batch with this many rows becomes a segment.", Value: count(&b.Rows, 1, 1_000_000)},
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
			Value: count(&b.GrowRows, 1, 1_000_000),
		},
		{
			Name: "batch.grow-bytes", Default: "8MiB", Help: "And up to this many bytes of records.",
			Value: size(&b.GrowBytes, 1<<10, 1<<30),
		},
		{
			Name: "batch.empty-age", Default: "10s", Help: "Repeats and Kafka's own markers, which make no row, are accounted for by a segment after this long.",
			Value: duration(&b.EmptyAge, time.Millisecond, time.Hour),
		},
		{
			Name: "memory", Default: "256MiB", Help: "What all partitions together may hold: three quarters of it records that are not in the bucket yet (fetching pauses when that is spent), a quarter the windows. The heap is kept to about twice of it, unless GOMEMLIMIT says otherwise.",
			Value: size(&s.Memory, 32<<20, 1<<40),
		},
		{
			Name: "window", Default: "200000", Help: "Repeats are found among this many records of a partition.",
			Value: count(&s.Window, 1, 100_000_000),
		},
	}
}

func (k *Kafka) settings() []Setting {
	return []Setting{
		{
			Name: "kafka.client-id", Default: "ledgerlake-ingest", Help: "The name that the brokers' logs and quotas know this client by.",
			Value: text(&k.ClientID, "NAME", "a name", notEmpty),
		},
		{Name: "kafka.tls", Default: "false", Help: "Talk to the brokers over TLS.", Value: boolean(&k.TLS)},
		{
			Name: "kafka.ca-file", Help: "The certificates that sign the brokers' (PEM), instead of the system's.",
			Value: text(&k.CAFile, "FILE", "the path of a file", notEmpty),
		},
		{
			Name: "kafka.cert-file", Help: "This client's certificate (PEM), where the brokers ask for one.",
			Value: text(&k.CertFile, "FILE", "the path of a file", notEmpty),
		},
		{
			Name: "kafka.key-file", Help: "The private key of that certificate (PEM).",
			Value: text(&k.KeyFile, "FILE", "the path of a file", notEmpty),
		},
		{
			Name: "kafka.sasl.mechanism", Default: None, Help: "How this client proves who it is.",
			Value: oneOfOrNone(&k.SASL.Mechanism, SASLPlain, SASLScram256, SASLScram512),
		},
		{Name: "kafka.sasl.user", Help: "Who it is.", Value: text(&k.SASL.User, "NAME", "the name of a user", notEmpty)},
		{Name: "kafka.sasl.password", Help: "Its password.", Value: secret(&k.SASL.Password)},
	}
}

// The SASL mechanisms.
const (
	SASLPlain    = "plain"
	SASLScram256 = "scram-sha-256"
	SASLScram512 = "scram-sha-512"
)

func (s *Ingest) life() []Setting {
	l := &s.Log
	return []Setting{
		{
			Name: "shutdown-timeout", Default: "20s", Help: "How long a clean stop may take after SIGTERM or SIGINT; then the process ends all the same, with exit code 1. A second signal ends it at once.",
			Value: duration(&s.ShutdownTimeout, time.Second, time.Hour),
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

// Check finds the faults that lie between settings. origins names where the
// values came from.
func (s *Ingest) Check(origins Origins) error {
	k := &s.Kafka
	for _, rule := range []struct {
		broken bool
		name   string
		fault  string
	}{
		{slices.Contains(s.Topics, s.ControlTopic), "topics", "has the control topic " + strconv.Quote(s.ControlTopic) + ", which is read anyway: leave it out"},
		{slices.Contains(s.Topics, s.DLQTopic), "dlq-topic", "is one of the topics that are read: rejects would come back for ever"},
		{s.DLQTopic != "" && s.DLQTopic == s.ControlTopic, "dlq-topic", "is the control topic: want another"},
		{s.Batch.GrowRows < s.Batch.Rows, "batch.grow-rows", "is less than batch.rows: want at least " + strconv.Itoa(s.Batch.Rows)},
		{!k.TLS && k.CAFile != "", "kafka.ca-file", "has no use without kafka.tls"},
		{!k.TLS && k.CertFile != "", "kafka.cert-file", "has no use without kafka.tls"},
		{(k.CertFile == "") != (k.KeyFile == ""), "kafka.cert-file", "goes with kafka.key-file: want both or none"},
		{k.SASL.Mechanism != "" && k.SASL.User == "", "kafka.sasl.mechanism", "needs kafka.sasl.user"},
		{k.SASL.Mechanism != "" && k.SASL.Password == Secret{}, "kafka.sasl.mechanism", "needs kafka.sasl.password or kafka.sasl.password-file"},
		{k.SASL.Mechanism == "" && k.SASL.User != "", "kafka.sasl.user", "has no use without kafka.sasl.mechanism"},
	} {
		if rule.broken {
			return &Error{Name: rule.name, Source: origins[rule.name], Fault: rule.fault}
		}
	}
	return nil
}

var (
	topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
	groupName = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)
)

// isTopic takes what Kafka takes as the name of a topic.
func isTopic(s string) bool { return topicName.MatchString(s) && s != "." && s != ".." && s != None }

func isGroup(s string) bool { return groupName.MatchString(s) }

func isHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, number := parseDecimal(port)
	return err == nil && host != "" && number && n >= 1 && n <= 65535
}

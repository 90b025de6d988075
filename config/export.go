package config

import (
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/s3sink"
)

// Stream is the settings of ledgerlake-export stream, without its destinations:
// those are [Destinations]. The zero Stream has no defaults; [Load] fills them in.
type Stream struct {
	Bucket       string
	Brokers      []string // for AuditTopic
	ControlTopic string   // "" is none

	AuditTopic  string // "" is none: changes of destinations are not recorded
	AuditTenant string

	Memory      int64 // bytes
	Poll        time.Duration
	GovernEvery time.Duration
	CursorEvery time.Duration
	StandBy     time.Duration
	Instance    string // "" is the host's name
	NoVerify    bool

	ShutdownTimeout time.Duration

	Good  []string // vkeys that are good for all
	Keys  Keys     // of it the lists of good keys
	Chain Chain
	Kafka Kafka
	S3    s3sink.Options
	HTTP  HTTP
	Log   Log
}

// streamDefaults are what stream takes where settings that it shares with others
// are not set.
var streamDefaults = map[string]string{"http.listen": "127.0.0.1:9406", "kafka.client-id": "ledgerlake-export"}

// Sections returns the settings in the order of help, each of them bound to its
// field of s.
func (s *Stream) Sections() []Section {
	shared := Ingest{}
	sections := []Section{
		{"Where the archive is", slices.Concat(shared.bucket(), storeSettings("s3.", &s.S3))},
		{"Delivery", s.delivering()},
		{"Keys that are good", s.good()},
		{"Keyed logs", slices.DeleteFunc(s.Chain.settings(), func(s Setting) bool { return s.Name == "chain.keyed-topics" })},
		{"Records of changes", s.auditing(&shared)},
		{"Connection to Kafka", slices.Concat(s.Kafka.settings(), s.Kafka.SASL.settings())},
		{"Health and metrics", slices.DeleteFunc(s.HTTP.settings(), func(s Setting) bool { return strings.HasPrefix(s.Name, "metrics.") || s.Name == "http.ready-age" })},
		{"Logs and life", s.life()},
	}
	sections[0].Settings[0].Value.set = into(&s.Bucket, sections[0].Settings[0].Value.set)
	for i := range sections {
		for j := range sections[i].Settings {
			if one := &sections[i].Settings[j]; streamDefaults[one.Name] != "" {
				one.Default = streamDefaults[one.Name]
			}
		}
	}
	return sections
}

func (s *Stream) delivering() []Setting {
	return []Setting{
		{Name: "stream.memory", Default: "512MiB", Help: "What all destinations together may hold of objects and of batches; each has its share. The heap is kept to this, a half of it and 64MiB, unless GOMEMLIMIT says otherwise.", Value: size(&s.Memory, 32<<20, 1<<40)},
		{Name: "stream.poll", Default: "1s", Help: "How often a line (a partition) without news is looked at. It costs one LIST.", Value: duration(&s.Poll, 100*time.Millisecond, time.Hour)},
		{Name: "stream.govern-every", Default: "10s", Help: "How old what is known of orders of erasure may be: so long after it was archived an order may still miss a row that is sent.", Value: duration(&s.GovernEvery, time.Second, time.Hour)},
		{Name: "stream.cursor-every", Default: "1s", Help: "How often the cursors of a destination and a line are stored, which costs one PUT. A crash repeats what was delivered since.", Value: duration(&s.CursorEvery, 10*time.Millisecond, time.Hour)},
		{Name: "stream.stand-by", Default: "30s", Help: "An exporter that has shown no sign of life for so long is taken for dead, and another one goes on. The same for all that share a destination.", Value: duration(&s.StandBy, time.Second, time.Hour)},
		{Name: "stream.instance", Help: "A name that stays when this exporter is started again after it died, so that it goes on at once instead of after stream.stand-by. Exporters that run beside each other need names of their own. Default: the name of the host.", Value: text(&s.Instance, "NAME", "a name", notEmpty)},
		{Name: "no-verify", Default: "false", Help: "Send rows of all destinations without checking their hashes; events then say verified: false.", Value: boolean(&s.NoVerify)},
	}
}

// good are the keys by which anchors, catalogs and control records count.
func (s *Stream) good() []Setting {
	settings := []Setting{{
		Name: "key", Help: "Verifier keys that are good for anchors, catalogs and control records: those of ledgerlake-verify's --key. Where any key is set here or below, what no good key signed does not count.",
		Value: vkeys(&s.Good),
	}}
	for _, one := range s.Keys.settings() {
		if slices.Contains([]string{"anchor-keys", "catalog-keys", "control-keys"}, one.Name) {
			settings = append(settings, one)
		}
	}
	return settings
}

func (s *Stream) auditing(shared *Ingest) []Setting {
	named := map[string]Setting{}
	for _, one := range shared.source() {
		named[one.Name] = one
	}
	brokers, control := named["brokers"], named["control-topic"]
	brokers.Help, brokers.Value = "The brokers that are asked first for the rest of the cluster. They are reached for stream.audit-topic alone.", texts(&s.Brokers, "HOST:PORT", "host:port", isHostPort)
	control.Help, control.Value = "The topic whose archived records govern the archive: orders of erasure are read from them. Kafka is not asked.", textOrNone(&s.ControlTopic, "TOPIC", "the name of a Kafka topic", isTopic)
	return []Setting{
		control,
		{Name: "stream.audit-topic", Default: None, Help: "A topic that ledgerlake-ingest archives: a decision record goes there for each change of a destination (new, changed, paused, resumed, suspended, removed). none: changes are logged, and not recorded.", Value: textOrNone(&s.AuditTopic, "TOPIC", "the name of a Kafka topic", isTopic)},
		{Name: "stream.audit-tenant", Help: "The tenant of those records. Needed with stream.audit-topic.", Value: text(&s.AuditTenant, "TENANT", "a tenant id", notEmpty)},
		brokers,
	}
}

func (s *Stream) life() []Setting {
	return life(&s.Log, &s.ShutdownTimeout, "How long a clean stop may take; what is not stored by then is delivered once more.")
}

// Check finds the faults that lie between settings.
func (s *Stream) Check(origins Origins) error {
	for _, r := range slices.Concat(s.rules(), s.Kafka.tlsRules(), s.Kafka.saslRules()) {
		if r.broken {
			return &Error{Name: r.name, Source: origins[r.name], Fault: r.fault}
		}
	}
	return nil
}

func (s *Stream) rules() []rule {
	return []rule{
		{s.AuditTopic != "" && s.AuditTenant == "", "stream.audit-tenant", "not set: stream.audit-topic needs it"},
		{s.AuditTopic == "" && s.AuditTenant != "", "stream.audit-tenant", "has no use without stream.audit-topic"},
		{s.AuditTopic != "" && s.AuditTopic == s.ControlTopic, "stream.audit-topic", "is the control topic: want one that agents' records go to"},
	}
}

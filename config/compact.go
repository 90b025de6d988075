package config

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// Compact is the settings of ledgerlake-compact. The zero Compact has no
// defaults; [Load] fills them in.
type Compact struct {
	Bucket       string
	Brokers      []string
	ControlTopic string // "" is none

	Topics       []string // whose partitions the group shares
	TopicPattern string
	Assign       string // AssignGroup, AssignAll or AssignOffline
	Group        string
	Every        time.Duration

	PurgeAfter    time.Duration
	LateWindow    time.Duration
	ErasureWithin time.Duration
	RetentionFile string // "" is none

	Memory      int64 // bytes, as all sizes
	TargetBytes int64
	MinSegments int
	MaxAge      time.Duration
	MergeFiles  int
	PassBytes   int64
	SweepEvery  time.Duration
	RepeatFiles int
	Manifests   bool // for engines of SQL

	ShutdownTimeout time.Duration

	CatalogLock s3sink.Lock // of catalogs and notes on keys

	Good    []string // vkeys that are good for all
	Keys    Keys
	Control string // file with the key that signs control records; "" is none
	Chain   Chain
	Kafka   Kafka
	S3      s3sink.Options
	HTTP    HTTP
	Log     Log
}

// The words of compact.assign.
const (
	AssignGroup   = "group"
	AssignAll     = "all"
	AssignOffline = "offline"
)

// compactDefaults are what ledgerlake-compact takes where settings that it
// shares with ledgerlake-ingest are not set.
var compactDefaults = map[string]string{"http.listen": "127.0.0.1:9405", "kafka.client-id": "ledgerlake-compact"}

// Sections returns the settings in the order of help, each of them bound to its
// field of c.
func (c *Compact) Sections() []Section {
	shared := Ingest{}
	sections := []Section{
		{"What is compacted", c.source(&shared)},
		{"Where it is kept", slices.Concat(shared.bucket(), lockSettings("catalog", "catalogs, and notes on the keys that sign them", &c.CatalogLock), storeSettings("s3.", &c.S3))},
		{"Erasure and retention", c.governing()},
		{"Keys that are good, and keys that sign", c.signing()},
		{"Keyed logs", slices.DeleteFunc(c.Chain.settings(), func(s Setting) bool { return s.Name == "chain.keyed-topics" })},
		{"Files and memory", c.files()},
		{"Connection to Kafka", slices.Concat(c.Kafka.settings(), c.Kafka.SASL.settings())},
		{"Health and metrics", slices.DeleteFunc(c.HTTP.settings(), func(s Setting) bool { return strings.HasPrefix(s.Name, "metrics.") || s.Name == "http.ready-age" })},
		{"Logs and life", c.life()},
	}
	sections[1].Settings[0].Value.set = into(&c.Bucket, sections[1].Settings[0].Value.set)
	for i := range sections {
		for j := range sections[i].Settings {
			if s := &sections[i].Settings[j]; compactDefaults[s.Name] != "" {
				s.Default = compactDefaults[s.Name]
			}
		}
	}
	return sections
}

// into has a value of one text go to another place too, once it was accepted.
func into(p *string, set func([]string) error) func([]string) error {
	return func(texts []string) error {
		err := set(texts)
		if err == nil {
			*p = texts[0]
		}
		return err
	}
}

func (c *Compact) source(shared *Ingest) []Setting {
	named := map[string]Setting{}
	for _, s := range shared.source() {
		named[s.Name] = s
	}
	topics, pattern, brokers := named["topics"], named["topic-pattern"], named["brokers"]
	topics.Help, topics.Value = "The topics that ledgerlake-ingest archives: the group shares their partitions. Lines of topics that are gone from Kafka are found in the bucket, and belong to whoever holds the control topic.", texts(&c.Topics, "TOPIC", "the name of a Kafka topic", isTopic)
	pattern.Help, pattern.Value = "Topics whose whole name matches, as well.", text(&c.TopicPattern, "REGEXP", "a regular expression (RE2), such as audit\\..*", isPattern)
	brokers.Value = texts(&c.Brokers, "HOST:PORT", "host:port", isHostPort)
	control := named["control-topic"]
	control.Help, control.Value = "The topic whose records govern the archive: what is ordered goes there, and what was done.", textOrNone(&c.ControlTopic, "TOPIC", "the name of a Kafka topic", isTopic)
	return []Setting{
		topics, pattern, brokers, control,
		{
			Name: "compact.assign", Default: AssignGroup,
			Help:  "Which lines this process compacts. group: those that the group gives it; all: every line of the bucket, and no group is joined; offline: every line, and Kafka is never reached, so that nothing is receipted, cut or expires. Any number of processes may compact one line: it only costs.",
			Value: oneOf(&c.Assign, AssignGroup, AssignAll, AssignOffline),
		},
		{
			Name: "compact.group", Default: "ledgerlake-compact", Help: "The consumer group by which processes share lines. Never that of ledgerlake-ingest.",
			Value: text(&c.Group, "NAME", "the name of a consumer group", isGroup),
		},
		{
			Name: "compact.every", Default: "1m", Help: "How often a line is looked at. Where there is much to do, the next pass follows at once.",
			Value: duration(&c.Every, 100*time.Millisecond, 24*time.Hour),
		},
	}
}

func (c *Compact) governing() []Setting {
	return []Setting{
		{
			Name: "purge-after", Default: "7d", Help: "How long after it was archived a request for erasure is carried out; until then it can be taken back. A hard one is carried out in the next pass.",
			Value: period(&c.PurgeAfter, time.Second),
		},
		{
			Name: "late-window", Default: "7d", Help: "How long after the receipt of an erasure rows that it means are still erased when they come. Then the request's own context, which may name a person, is erased too.",
			Value: period(&c.LateWindow, time.Second),
		},
		{
			Name: "erasure-within", Default: "30d", Help: "How long after it was archived an erasure must be receipted at the latest; not less than purge-after. One that is not is told by compact erasures (exit code 4) and by a metric.",
			Value: period(&c.ErasureWithin, time.Second),
		},
		{
			Name: "retention-file", Default: None, Help: "A YAML file of how long what is kept (docs/retention.md). none: for ever.",
			Value: textOrNone(&c.RetentionFile, "FILE", "the path of a file", notEmpty),
		},
	}
}

func (c *Compact) signing() []Setting {
	settings := []Setting{
		{
			Name: "key", Help: "Verifier keys that are good for anchors, catalogs and control records: those of ledgerlake-verify's --key. Where any key is set here or below, anchors and catalogs that no good key signed do not count, and their lines are halted.",
			Value: vkeys(&c.Good),
		},
		{
			Name: "catalog-key", Help: "Files with the private keys that sign catalogs. ledgerlake-ingest must name their vkeys in catalog-keys, so that anchors vouch for them.",
			Value: privately(texts(&c.Keys.Files, "FILE", "the path of a file with a private key", isKeyPath)),
		},
		{
			Name: "catalog-kms-key", Help: "A key of AWS KMS that certifies a key which this process makes and signs catalogs with, as anchor-kms-key does.",
			Value: text(&c.Keys.KMS.Key, "KEY", "the id, the ARN or the alias of a KMS key", isKMSKey),
		},
		{
			Name: "catalog-key-name", Help: "What the key of catalog-kms-key is called in notes.",
			Value: text(&c.Keys.Name, "NAME", "a name without spaces and without +", func(s string) bool { return sign.CheckName(s) == nil }),
		},
		{
			Name: "catalog-key-life", Default: "168h", Help: "How long the key in memory is certified for. Another one takes its place at half of it.",
			Value: duration(&c.Keys.Life, time.Hour, 10_000*time.Hour),
		},
		{
			Name: "control-key", Help: "A file with the private key that signs records of the control topic. Needed where control-keys are set: ledgerlake-ingest rejects what none of them signed.",
			Value: privately(text(&c.Control, "FILE", "the path of a file with a private key", isKeyPath)),
		},
	}
	for _, s := range c.Keys.settings() {
		switch s.Name {
		case "kms.region", "kms.endpoint":
			s.Help = strings.ReplaceAll(s.Help, "anchor-kms-key", "catalog-kms-key")
		case "anchor-keys":
			s.Help = "More keys whose anchors are good."
		case "catalog-keys":
			s.Help = "More keys whose catalogs are good."
		case "control-keys":
			s.Help = "Keys by which records of the control topic are good, as ledgerlake-ingest has them."
		default:
			continue
		}
		settings = append(settings, s)
	}
	return settings
}

func (c *Compact) files() []Setting {
	return []Setting{
		{Name: "compact.memory", Default: "512MiB", Help: "What a pass may hold. The heap is kept to this, a quarter of it and 64MiB, unless GOMEMLIMIT says otherwise.", Value: size(&c.Memory, 64<<20, 1<<40)},
		{Name: "compact.target-bytes", Default: "128MiB", Help: "The size of a full data file; at most a quarter of compact.memory.", Value: size(&c.TargetBytes, 1<<20, 4<<30)},
		{Name: "compact.min-segments", Default: "64", Help: "So many segments that an anchor covers are compacted without delay.", Value: count(&c.MinSegments, 1, 1_000_000)},
		{Name: "compact.max-age", Default: "10m", Help: "So old segments are compacted however few there are.", Value: duration(&c.MaxAge, time.Second, 30*24*time.Hour)},
		{Name: "compact.merge-files", Default: "8", Help: "So many neighbouring files of a day become one.", Value: count(&c.MergeFiles, 2, 1000)},
		{Name: "compact.pass-bytes", Default: "2GiB", Help: "So much of data files one pass reads to rewrite or merge them.", Value: size(&c.PassBytes, 1<<20, 1<<40)},
		{Name: "compact.sweep-every", Default: "10m", Help: "How often objects that nothing names are looked for.", Value: duration(&c.SweepEvery, time.Second, 24*time.Hour)},
		{Name: "compact.repeat-files", Default: "4", Help: "So many of the newest files of a log are asked for rows that new ones repeat (repeat_of); 0: none.", Value: count(&c.RepeatFiles, 0, math.MaxInt32)},
		{Name: "compact.sql-manifests", Default: "false", Help: "Keep lists of objects below sql/, by which Athena and Trino read the archive while it is compacted (docs/queries.md). A pass that changes something then writes one small object more for each log that it changed. All processes that compact an archive must have the same value.", Value: boolean(&c.Manifests)},
	}
}

func (c *Compact) life() []Setting {
	return life(&c.Log, &c.ShutdownTimeout, "How long a clean stop may take; what a pass has not finished by then is thrown away, and harms nothing.")
}

// Check finds the faults that lie between settings. origins names where the
// values came from.
func (c *Compact) Check(origins Origins) error {
	for _, r := range slices.Concat(c.rules(), c.keyRules(origins), c.Kafka.tlsRules(), c.Kafka.saslRules(), lockRules("catalog", c.CatalogLock)) {
		if r.broken {
			return &Error{Name: r.name, Source: origins[r.name], Fault: r.fault}
		}
	}
	return nil
}

func (c *Compact) rules() []rule {
	return []rule{
		{c.Assign == AssignGroup && len(c.Topics) == 0 && c.TopicPattern == "", "topics", "not set: give the topics that ledgerlake-ingest archives (--topics, or --topic-pattern), whose partitions the group shares; or --compact.assign all"},
		{c.ErasureWithin < c.PurgeAfter, "erasure-within", "is less than purge-after, " + FormatPeriod(c.PurgeAfter) + ": a request that waits so long could never keep it"},
		{slices.Contains(c.Topics, c.ControlTopic), "topics", "has the control topic, which is read anyway: leave it out"},
		{c.Group == "ledgerlake", "compact.group", "is the group of ledgerlake-ingest by its default: its partitions would go unread"},
	}
}

func (c *Compact) keyRules(origins Origins) []rule {
	const noKMS = "has no use without catalog-kms-key"
	_, life := origins["catalog-key-life"]
	none := c.Keys.KMS.Key == ""
	return []rule{
		{!none && c.Keys.Name == "", "catalog-key-name", "not set: catalog-kms-key needs it"},
		{none && c.Keys.Name != "", "catalog-key-name", noKMS},
		{none && life, "catalog-key-life", noKMS},
	}
}

// CheckSigning finds what keeps a process from writing catalogs that count.
func (c *Compact) CheckSigning(origins Origins) error {
	signs := len(c.Keys.Files) > 0 || c.Keys.KMS.Key != ""
	anchors := len(c.Good) > 0 || len(c.Keys.Anchor) > 0
	return firstBroken(origins, []rule{
		{signs && !anchors, "key", "not set: catalogs are to be signed, so give the vkey that signs anchors (--key, or anchor-keys): what nobody vouched for is not compacted"},
		{len(c.Keys.Control) > 0 && c.Control == "" && c.Assign != AssignOffline, "control-key", "not set: with control-keys, ledgerlake-ingest rejects receipts that none of them signed"},
		{anchors && !signs, "catalog-key", "not set: anchors are signed, and catalogs that nobody signed would not count. Make one with ledgerlake-verify keygen, and name its vkey in ledgerlake-ingest's catalog-keys"},
	})
}

// everything is the settings of all commands that share a file and the
// environment.
func everything() []Section {
	var ingest Ingest
	var compact Compact
	var stream Stream
	return slices.Concat(ingest.Sections(), compact.Sections(), stream.Sections())
}

// withOthers adds the settings that only other commands have.
func withOthers(mine []Setting) []Setting {
	all := slices.Clip(mine)
	for _, s := range flatten(everything()) {
		if !slices.ContainsFunc(all, func(m Setting) bool { return m.Name == s.Name }) {
			all = append(all, s)
		}
	}
	return all
}

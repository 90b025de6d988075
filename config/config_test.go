package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/config"
)

// needed are the arguments without which nothing loads.
var needed = []string{"--bucket", "s3://bucket", "--topics", "t"}

// load loads the settings of ingest, with body as the file if it is not empty.
func load(t *testing.T, args, environ []string, body string) (config.Ingest, config.Origins, error) {
	t.Helper()
	if body != "" {
		t.Chdir(t.TempDir())
		write(t, "l.yaml", body)
		args = append([]string{"--config", "l.yaml"}, args...)
	}
	var s config.Ingest
	all := s.Sections()
	origins, err := config.Load(all, all, config.Input{Args: args, Environ: environ})
	if err == nil {
		err = s.Check(origins)
	}
	return s, origins, err
}

func write(t *testing.T, path, body string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Of the four places of a value the first one that has it wins: flag,
// environment, file, default. TestPrecedence takes them away one by one.
func TestPrecedence(t *testing.T) {
	const body = "batch: {rows: 300}"
	environ := []string{"LEDGERLAKE_BATCH_ROWS=200", "PATH=/bin"}
	flag := append([]string{"--batch.rows", "100"}, needed...)
	for _, tt := range []struct {
		args, environ []string
		body          string
		want          int
		origin        string
	}{
		{flag, environ, body, 100, "flag --batch.rows"},
		{needed, environ, body, 200, "environment LEDGERLAKE_BATCH_ROWS"},
		{needed, nil, body, 300, "file l.yaml line 1"},
		{needed, nil, "", 32, ""},
		{needed, []string{"LEDGERLAKE_BATCH_ROWS="}, "", 32, ""}, // empty is not set
	} {
		s, origins, err := load(t, tt.args, tt.environ, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		if s.Batch.Rows != tt.want || origins["batch.rows"] != tt.origin {
			t.Errorf("batch.rows = %d from %q, want %d from %q", s.Batch.Rows, origins["batch.rows"], tt.want, tt.origin)
		}
	}
}

// The defaults are what ingest promises to do when it is told nothing.
func TestDefaults(t *testing.T) {
	s, _, err := load(t, needed, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Ingest{
		Bucket: "s3://bucket", Topics: []string{"t"}, Brokers: []string{"127.0.0.1:9092"}, Group: "ledgerlake",
		ControlTopic: "ledgerlake.control", Memory: 256 << 20, Window: 200_000, ShutdownTimeout: 20 * time.Second,
		Anchors: config.Anchors{Every: time.Minute, Rows: 100_000, Topic: "ledgerlake.anchors"}, Keys: config.Keys{Life: 168 * time.Hour},
		Batch: config.Batch{Rows: 32, Age: 50 * time.Millisecond, GrowRows: 50_000, GrowBytes: 8 << 20, EmptyAge: 10 * time.Second},
		Kafka: config.Kafka{ClientID: "ledgerlake-ingest", MetadataAge: time.Minute, SessionTimeout: 45 * time.Second, GroupProtocol: config.GroupClassic},
		HTTP:  config.HTTP{Listen: "127.0.0.1:9404", ReadyAge: time.Minute, LagBy: config.LagByPartition},
		Log:   config.Log{Level: "info", Format: "json", Progress: 30 * time.Second},
	}
	if got, want := fmt.Sprintf("%+v", s), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("defaults\n got %s\nwant %s", got, want)
	}
}

// A list is written with commas, by a flag that is given again, or as a list
// of the file; there an item may have a comma in it.
func TestLists(t *testing.T) {
	for _, tt := range []struct {
		args, environ []string
		body          string
		want          []string
	}{
		{args: []string{"--retain-prompts", "a, b", "--retain-prompts=c"}, want: []string{"a", "b", "c"}},
		{environ: []string{"LEDGERLAKE_RETAIN_PROMPTS=a,b"}, want: []string{"a", "b"}},
		{body: "retain-prompts: [a, 'b,c']", want: []string{"a", "b,c"}},
		{body: "retain-prompts:\n- a\n- 010", want: []string{"a", "010"}}, // as written, not what YAML makes of it
		{body: "retain-prompts: a,b", want: []string{"a", "b"}},
	} {
		s, _, err := load(t, append(tt.args, needed...), tt.environ, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprintf("%q", s.RetainPrompts), fmt.Sprintf("%q", tt.want); got != want {
			t.Errorf("%q %q %q: %s, want %s", tt.args, tt.environ, tt.body, got, want)
		}
	}
}

// Whatever cannot be right is refused, and the one line says which setting it
// is, where its value stands, and what would be allowed.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name          string
		args, environ []string
		body          string
		want          string
	}{
		{
			name: "a value that a flag has", args: []string{"--batch.rows", "many"},
			want: `batch.rows (flag --batch.rows): "many" is not allowed: want a whole number from 1 to 60000`,
		},
		{
			name: "a value that the environment has", environ: []string{"LEDGERLAKE_MEMORY=256"},
			want: `memory (environment LEDGERLAKE_MEMORY): "256" is not allowed: want a size from 32MiB to 1TiB, in B, kB, MB, GB, TB, KiB, MiB, GiB or TiB`,
		},
		{
			name: "a value that the file has", body: "batch:\n  strict: true\n  age: 50\n",
			want: `batch.age (file l.yaml line 3): "50" is not allowed: want a duration from 1ms to 1h, in ms, s, m or h`,
		},
		{name: "out of range", args: []string{"--batch.rows", "0"}, want: `batch.rows (flag --batch.rows): "0" is not allowed: want a whole number from 1 to 60000`},
		{name: "octal", body: "window: 010", want: `window (file l.yaml line 1): "010" is not allowed: want a whole number from 1 to 100000000`},
		{name: "another word", args: []string{"--log-level=loud"}, want: `log-level (flag --log-level): "loud" is not allowed: want one of debug, info, warn, error`},
		{name: "a switch", environ: []string{"LEDGERLAKE_KAFKA_TLS=yes"}, want: `kafka.tls (environment LEDGERLAKE_KAFKA_TLS): "yes" is not allowed: want true or false`},
		{name: "an item of a list", args: []string{"--brokers", "a:1,b"}, want: `brokers (flag --brokers): "a:1,b" is not allowed: want one or more of: host:port`},
		{name: "an item twice", args: []string{"--topics", "t"}, want: `topics (flag --topics): "t,t" is not allowed: want one or more of: the name of a Kafka topic`},
		{name: "not a bucket", args: []string{"--bucket", "/tmp/x"}, want: `bucket (flag --bucket): bucket URL does not begin with s3://`},
		{name: "a bucket with a secret", args: []string{"--bucket", "s3://key:hunter2@bucket"}, want: `bucket (flag --bucket): bucket URL holds credentials: put them in settings or in the environment`},
		{name: "an option of the store", environ: []string{"LEDGERLAKE_S3_ATTEMPTS=many"}, want: `s3.attempts (environment LEDGERLAKE_S3_ATTEMPTS): "many" is not allowed: setting attempts=many: strconv.Atoi: parsing "many": invalid syntax`},
		{
			name: "a list where one value belongs", body: "group: [a, b]",
			want: `group (file l.yaml line 1): want the name of a consumer group`,
		},
		{name: "no value", body: "group:\n", want: `group (file l.yaml line 1): want the name of a consumer group`},
		{name: "no value in a list", body: "topics: [a, ]\nbrokers: [~]", want: `brokers (file l.yaml line 2): want one or more of: host:port`},
		{name: "a long value", args: []string{"--group", strings.Repeat("x", 300)}, want: `group (flag --group): "` + strings.Repeat("x", 120) + `..." is not allowed: want the name of a consumer group`},
		{name: "a value of two lines", args: []string{"--group", "a\nb"}, want: `group (flag --group): "a\nb" is not allowed: want the name of a consumer group`},

		{name: "unknown flag", args: []string{"--batch.row", "1"}, want: `flag --batch.row: no such setting; did you mean --batch.rows?`},
		{name: "unknown flag, nothing near", args: []string{"--quixotic"}, want: `flag --quixotic: no such setting; --help lists them`},
		{name: "short flag", args: []string{"-b", "1"}, want: `flag -b: no such flag; flags have two dashes and a whole name`},
		{name: "flag without value", args: []string{"--group"}, want: `flag needs an argument: --group`},
		{
			name: "argument", args: []string{"topic"},
			want: `argument "topic": not understood: all arguments are flags, --name value or --name=value (a switch: --name or --name=false)`,
		},
		{name: "unknown variable", environ: []string{"LEDGERLAKE_BATCH_ROW=1"}, want: `environment LEDGERLAKE_BATCH_ROW: no such setting; did you mean LEDGERLAKE_BATCH_ROWS?`},
		{
			name: "of two unknown variables the first one", environ: []string{"LEDGERLAKE_QQQQQQQQQQQQQ=1", "LEDGERLAKE_ZZZZZZZZZZZZZ=1"},
			want: `environment LEDGERLAKE_QQQQQQQQQQQQQ: no such setting; --help lists them`,
		},
		{name: "unknown key", body: "batch:\n  row: 1\n", want: `batch.row (file l.yaml line 2): no such setting; did you mean batch.rows?`},
		{name: "unknown key at the top", body: "topic: [a]", want: `topic (file l.yaml line 1): no such setting; did you mean topics?`},
		{name: "a key with a dot", body: "batch.rows: 1", want: `batch.rows (file l.yaml line 1): a dot in a name of the file: write batch: {rows: …}, not batch.rows: …`},
		{name: "a key with two dots", body: "kafka.sasl.user: a", want: `kafka.sasl.user (file l.yaml line 1): a dot in a name of the file: write kafka: {sasl: {user: …}}, not kafka.sasl.user: …`},
		{name: "a key twice", body: "group: a\ngroup: b", want: `group (file l.yaml line 2): set twice`},
		{name: "a value where more keys belong", body: "batch: 3", want: `batch (file l.yaml line 1): want settings, one a line: name: value`},
		{name: "no mapping", body: "- a", want: `file l.yaml line 1: want settings, one a line: name: value`},
		{name: "no YAML", body: "a: b: c\n\n", want: `file l.yaml: yaml: mapping values are not allowed in this context`},
		{name: "two documents", body: "group: a\n---\ngroup: b\n", want: `file l.yaml: want one YAML document, there are more`},
		{name: "the file's own name in it", body: "config: other.yaml", want: `config (file l.yaml line 1): no such setting; --help lists them`},
		{name: "no file", args: []string{"--config", "none.yaml"}, want: `config (flag --config): open none.yaml: no such file or directory`},
		{name: "no file, says the environment", environ: []string{"LEDGERLAKE_CONFIG=none.yaml"}, want: `config (environment LEDGERLAKE_CONFIG): open none.yaml: no such file or directory`},

		{name: "topic and control topic", args: []string{"--topics", "ledgerlake.control"}, want: `topics (flag --topics): has the control topic "ledgerlake.control", which is read anyway: leave it out`},
		{name: "rejects that come back", args: []string{"--dlq-topic", "t"}, want: `dlq-topic (flag --dlq-topic): is one of the topics that are read: rejects would come back for ever`},
		{name: "rejects that govern", args: []string{"--dlq-topic", "ledgerlake.control"}, want: `dlq-topic (flag --dlq-topic): is the control topic: want another`},
		{name: "growth that is none", args: []string{"--batch.rows", "64", "--batch.grow-rows", "63"}, want: `batch.grow-rows (flag --batch.grow-rows): is less than batch.rows: want at least 64`},
		{name: "CA without TLS", args: []string{"--kafka.ca-file", "x"}, want: `kafka.ca-file (flag --kafka.ca-file): has no use without kafka.tls`},
		{name: "certificate without TLS", args: []string{"--kafka.cert-file", "x"}, want: `kafka.cert-file (flag --kafka.cert-file): has no use without kafka.tls`},
		{name: "certificate without key", args: []string{"--kafka.tls", "--kafka.cert-file", "x"}, want: `kafka.cert-file (flag --kafka.cert-file): goes with kafka.key-file: want both or none`},
		{name: "nobody", args: []string{"--kafka.sasl.mechanism", "plain"}, want: `kafka.sasl.mechanism (flag --kafka.sasl.mechanism): needs kafka.sasl.user`},
		{name: "no password", args: []string{"--kafka.sasl.mechanism", "plain", "--kafka.sasl.user", "u"}, want: `kafka.sasl.mechanism (flag --kafka.sasl.mechanism): needs kafka.sasl.password or kafka.sasl.password-file`},
		{name: "user for nothing", args: []string{"--kafka.sasl.user", "u"}, want: `kafka.sasl.user (flag --kafka.sasl.user): has no use without kafka.sasl.mechanism`},

		{name: "not a pattern", args: []string{"--topic-pattern", "audit.("}, want: `topic-pattern (flag --topic-pattern): "audit.(" is not allowed: want a regular expression (RE2), such as audit\..*`},
		{name: "a partition without a number", args: []string{"--assign", "t"}, want: `assign (flag --assign): "t" is not allowed: want one or more of: a topic, a slash and the number of a partition`},
		{name: "a partition below 0", args: []string{"--assign", "t/-1"}, want: `assign (flag --assign): "t/-1" is not allowed: want one or more of: a topic, a slash and the number of a partition`},
		{name: "a partition beyond int32", args: []string{"--assign", "t/2147483648"}, want: `assign (flag --assign): "t/2147483648" is not allowed: want one or more of: a topic, a slash and the number of a partition`},
		{name: "a partition twice", args: []string{"--assign", "t/1,t/1"}, want: `assign (flag --assign): "t/1,t/1" is not allowed: want one or more of: a topic, a slash and the number of a partition`},
		{name: "partitions and topics", args: []string{"--assign", "u/0"}, want: `assign (flag --assign): goes without topics: a process reads given partitions, or topics that a group shares`},

		{name: "listen nowhere", args: []string{"--http.listen", "9404"}, want: `http.listen (flag --http.listen): "9404" is not allowed: want host:port or :port, or none`},
		{name: "too many tenants", args: []string{"--metrics.top-tenants", "1001"}, want: `metrics.top-tenants (flag --metrics.top-tenants): "1001" is not allowed: want a whole number from 0 to 1000`},

		{name: "a session too short", args: []string{"--kafka.session-timeout", "5s"}, want: `kafka.session-timeout (flag --kafka.session-timeout): "5s" is not allowed: want a duration from 6s to 30m, in ms, s, m or h`},
		{
			name: "a session that the brokers time", args: []string{"--kafka.session-timeout", "60s", "--kafka.group-protocol", "consumer"},
			want: `kafka.session-timeout (flag --kafka.session-timeout): has no use with kafka.group-protocol=consumer: the brokers' group.consumer.session.timeout.ms decides`,
		},
		{name: "no token", args: []string{"--kafka.sasl.mechanism", "oauthbearer"}, want: `kafka.sasl.mechanism (flag --kafka.sasl.mechanism): needs kafka.sasl.token, kafka.sasl.token-file or kafka.sasl.oauth.token-url`},
		{
			name: "a password for a token", args: []string{"--kafka.sasl.mechanism", "oauthbearer"}, environ: []string{"LEDGERLAKE_KAFKA_SASL_PASSWORD=hunter2"},
			want: `kafka.sasl.password (environment LEDGERLAKE_KAFKA_SASL_PASSWORD): has no use with kafka.sasl.mechanism=oauthbearer`,
		},
		{
			name: "a user for a token", args: []string{"--kafka.sasl.mechanism", "oauthbearer", "--kafka.sasl.user", "u"},
			want: `kafka.sasl.user (flag --kafka.sasl.user): has no use with kafka.sasl.mechanism=oauthbearer`,
		},
		{
			name: "a token for nothing", environ: []string{"LEDGERLAKE_KAFKA_SASL_TOKEN=hunter2"},
			want: `kafka.sasl.token (environment LEDGERLAKE_KAFKA_SASL_TOKEN): has no use without kafka.sasl.mechanism=oauthbearer`,
		},
		{
			name: "two sources of tokens", args: []string{"--kafka.sasl.mechanism", "oauthbearer", "--kafka.sasl.oauth.token-url", "https://id.example/token"}, environ: []string{"LEDGERLAKE_KAFKA_SASL_TOKEN=hunter2"},
			want: `kafka.sasl.token (environment LEDGERLAKE_KAFKA_SASL_TOKEN): and kafka.sasl.oauth.token-url are two sources of a token: want one`,
		},
		{
			name: "nobody asks", args: []string{"--kafka.sasl.mechanism", "oauthbearer", "--kafka.sasl.oauth.token-url", "https://id.example/token"},
			want: `kafka.sasl.oauth.token-url (flag --kafka.sasl.oauth.token-url): needs kafka.sasl.oauth.client-id`,
		},
		{
			name: "asks without a secret", args: []string{"--kafka.sasl.mechanism", "oauthbearer", "--kafka.sasl.oauth.token-url", "https://id.example/token", "--kafka.sasl.oauth.client-id", "c"},
			want: `kafka.sasl.oauth.token-url (flag --kafka.sasl.oauth.token-url): needs kafka.sasl.oauth.client-secret or kafka.sasl.oauth.client-secret-file`,
		},
		{name: "asks nobody", args: []string{"--kafka.sasl.oauth.client-id", "c"}, want: `kafka.sasl.oauth.client-id (flag --kafka.sasl.oauth.client-id): has no use without kafka.sasl.oauth.token-url`},
		{name: "scopes of nothing", args: []string{"--kafka.sasl.oauth.scopes", "kafka"}, want: `kafka.sasl.oauth.scopes (flag --kafka.sasl.oauth.scopes): has no use without kafka.sasl.oauth.token-url`},
		{name: "tokens for nothing", args: []string{"--kafka.sasl.oauth.token-url", "https://id.example/token"}, want: `kafka.sasl.oauth.token-url (flag --kafka.sasl.oauth.token-url): has no use without kafka.sasl.mechanism=oauthbearer`},
		{name: "extensions of nothing", args: []string{"--kafka.sasl.oauth.extensions", "a=b"}, want: `kafka.sasl.oauth.extensions (flag --kafka.sasl.oauth.extensions): has no use without kafka.sasl.mechanism=oauthbearer`},
		{name: "not an extension", args: []string{"--kafka.sasl.oauth.extensions", "auth=b"}, want: `kafka.sasl.oauth.extensions (flag --kafka.sasl.oauth.extensions): "auth=b" is not allowed: want one or more of: letters, =, and a text`},
		{name: "not a URL of tokens", args: []string{"--kafka.sasl.oauth.token-url", "id.example"}, want: `kafka.sasl.oauth.token-url (flag --kafka.sasl.oauth.token-url): "id.example" is not allowed: want https://host/path`},
		{name: "IAM in the clear", args: []string{"--kafka.sasl.mechanism", "aws-msk-iam"}, want: `kafka.sasl.mechanism (flag --kafka.sasl.mechanism): needs kafka.tls: Amazon MSK takes IAM over TLS alone`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{}, needed...)
			if strings.Contains(tt.want, `bucket (`) {
				args = args[2:]
			}
			_, _, err := load(t, append(args, tt.args...), tt.environ, tt.body)
			checkFault(t, err, tt.want)
		})
	}
}

// Something must be read: topics, those of a pattern, both, or given
// partitions. Without a group nothing of a group can be set.
func TestSources(t *testing.T) {
	const (
		noGroup = " has no use with assign, which joins no group"
		nothing = "topics: not set: give --topics (or LEDGERLAKE_TOPICS, or topics in the file), one or more of: the name of a Kafka topic; or --topic-pattern, or --assign"
	)
	for _, tt := range []struct {
		args []string
		want string // the fault
	}{
		{[]string{"--topics", "t"}, ""},
		{[]string{"--topic-pattern", `audit\..*`}, ""},
		{[]string{"--topics", "t", "--topic-pattern", `audit\..*`}, ""},
		{[]string{"--assign", "t/0,t/12,u/0"}, ""},
		{[]string{"--assign", "ledgerlake.control/0"}, ""},
		{nil, nothing},
		{[]string{"--assign", "t/0", "--topic-pattern", "t"}, "assign (flag --assign): goes without topic-pattern: a process reads given partitions, or topics that a group shares"},
		{[]string{"--assign", "t/0", "--dlq-topic", "t"}, "dlq-topic (flag --dlq-topic): is one of the topics that are read: rejects would come back for ever"},
		{[]string{"--assign", "t/0", "--kafka.instance-id", "one"}, "kafka.instance-id (flag --kafka.instance-id):" + noGroup},
		{[]string{"--assign", "t/0", "--kafka.session-timeout", "1m"}, "kafka.session-timeout (flag --kafka.session-timeout):" + noGroup},
		{[]string{"--assign", "t/0", "--kafka.group-protocol", "consumer"}, "kafka.group-protocol (flag --kafka.group-protocol):" + noGroup},
	} {
		s, _, err := load(t, append(tt.args, "--bucket", "s3://bucket"), nil, "")
		if tt.want != "" {
			checkFault(t, err, tt.want)
		} else if err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
		if strings.Contains(fmt.Sprint(tt.args), "t/12") && fmt.Sprint(s.Assign) != "[{t 0} {t 12} {u 0}]" {
			t.Errorf("assigned %v", s.Assign)
		}
	}
}

// Where ingest listens: any host, a free port, or nowhere.
func TestListen(t *testing.T) {
	for text, want := range map[string]string{":9404": ":9404", "127.0.0.1:0": "127.0.0.1:0", "[::1]:80": "[::1]:80", "none": ""} {
		s, _, err := load(t, append([]string{"--http.listen", text}, needed...), nil, "")
		if err != nil || s.HTTP.Listen != want {
			t.Errorf("%s: %q, error %v", text, s.HTTP.Listen, err)
		}
	}
}

// A secret with a file of its own can be read again after the file was
// replaced; so can the keys of the store. What others gave stays.
func TestSecretsAreRenewed(t *testing.T) {
	dir := t.TempDir()
	password, id, key := filepath.Join(dir, "password"), filepath.Join(dir, "id"), filepath.Join(dir, "key")
	fill := func(text string) {
		for _, path := range []string{password, id, key} {
			write(t, path, text+"\n")
		}
	}
	fill("old")
	args := append([]string{
		"--kafka.sasl.mechanism", "plain", "--kafka.sasl.user", "u", "--kafka.sasl.password-file", password,
		"--s3.access-key-file", id, "--s3.secret-key-file", key,
	}, needed...)
	s, _, err := load(t, args, []string{"LEDGERLAKE_S3_SESSION_TOKEN=constant"}, "")
	if err != nil {
		t.Fatal(err)
	}
	fill("new")
	if now, err := s.Kafka.SASL.Password.Renewed(); now != "new" || err != nil || s.Kafka.SASL.Password.Reveal() != "old" {
		t.Errorf("password %q, error %v", now, err)
	}
	o := s.S3
	if err := s.S3.Renew(&o); err != nil || o.AccessKey != "new" || o.SecretKey != "new" || o.SessionToken != "constant" {
		t.Errorf("keys %q %q %q, error %v", o.AccessKey, o.SecretKey, o.SessionToken, err)
	}
	fill("")
	if _, err := s.Kafka.SASL.Password.Renewed(); err == nil || !strings.HasPrefix(err.Error(), password+": want a file") {
		t.Errorf("an empty file: %v", err)
	}
	if err := s.S3.Renew(&o); err == nil || o.AccessKey != "new" {
		t.Errorf("key %q, error %v", o.AccessKey, err)
	}
	if constant := config.NewSecret("x"); constant.IsZero() || !new(config.Secret).IsZero() {
		t.Error("IsZero is wrong")
	} else if now, err := constant.Renewed(); now != "x" || err != nil {
		t.Errorf("%q, error %v", now, err)
	}
}

func checkFault(t *testing.T, err error, want string) {
	t.Helper()
	var fault *config.Error
	if !errors.As(err, &fault) {
		t.Fatalf("error %v, want a *config.Error: %s", err, want)
	}
	if err.Error() != want {
		t.Errorf("\n got %s\nwant %s", err, want)
	}
}

// A command needs what it offers, and no more; but a file that several
// commands share may hold the settings of all of them.
func TestOffered(t *testing.T) {
	var s config.Ingest
	all := s.Sections()
	offered := config.Select(all, func(s config.Setting) bool { return s.Name == "bucket" })
	in := config.Input{Args: []string{"--bucket", "s3://bucket"}, Environ: []string{"LEDGERLAKE_GROUP=g"}}
	if _, err := config.Load(all, offered, in); err != nil || s.Group != "g" {
		t.Errorf("group %q, error %v", s.Group, err)
	}
	in.Args = []string{"--group", "g"}
	_, err := config.Load(all, offered, in)
	checkFault(t, err, "group (flag --group): this command has no use for it; --help lists its flags")
	in.Args = nil
	_, err = config.Load(all, offered, in)
	checkFault(t, err, "bucket: not set: give --bucket (or LEDGERLAKE_BUCKET, or bucket in the file), s3://bucket/prefix?setting=value")
}

// Who asks for help gets the caller's, and none that is written behind its back.
func TestAskingForHelp(t *testing.T) {
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func(was *os.File) { os.Stderr = was; _ = stderr.Close() }(os.Stderr)
	os.Stderr = stderr
	for _, args := range [][]string{{"--help"}, {"-h"}, {"--help", "--nonsense"}} {
		if _, _, err := load(t, args, nil, ""); !errors.Is(err, config.ErrHelp) {
			t.Errorf("%v: error %v, want ErrHelp", args, err)
		}
	}
	if wrote, err := os.ReadFile(stderr.Name()); err != nil || len(wrote) > 0 {
		t.Errorf("wrote %q to stderr, error %v", wrote, err)
	}
}

// A service of Kubernetes whose name begins with ledgerlake puts variables
// into every pod beside it. They must not stop us; misspelt settings must.
func TestServiceLinks(t *testing.T) {
	links := []string{
		"LEDGERLAKE_SERVICE_HOST=10.0.0.1", "LEDGERLAKE_SERVICE_PORT=80", "LEDGERLAKE_SERVICE_PORT_METRICS=80",
		"LEDGERLAKE_PORT=tcp://10.0.0.1:80", "LEDGERLAKE_PORT_80_TCP=tcp://10.0.0.1:80",
		"LEDGERLAKE_PORT_80_TCP_PROTO=tcp", "LEDGERLAKE_PORT_80_TCP_PORT=80", "LEDGERLAKE_PORT_80_TCP_ADDR=10.0.0.1",
		"LEDGERLAKE_INGEST_SERVICE_HOST=10.0.0.2",
	}
	if _, _, err := load(t, needed, links, ""); err != nil {
		t.Error(err)
	}
	_, _, err := load(t, needed, []string{"LEDGERLAKE_PORTS=1"}, "")
	checkFault(t, err, "environment LEDGERLAKE_PORTS: no such setting; --help lists them")
}

// A secret is taken from a variable, the file or a file of its own, never from
// the command line; and no way of printing it, nor any error, shows it.
func TestSecrets(t *testing.T) {
	const password = "hunter2-€"
	sasl := append([]string{"--kafka.sasl.mechanism", "plain", "--kafka.sasl.user", "u"}, needed...)
	path := filepath.Join(t.TempDir(), "password")
	write(t, path, password+"\r\n")
	for _, tt := range []struct {
		name          string
		args, environ []string
		body          string
	}{
		{name: "variable", environ: []string{"LEDGERLAKE_KAFKA_SASL_PASSWORD=" + password}},
		{name: "file", body: "kafka: {sasl: {password: " + password + "}}"},
		{name: "file of its own by flag", args: []string{"--kafka.sasl.password-file", path}},
		{name: "file of its own by variable", environ: []string{"LEDGERLAKE_KAFKA_SASL_PASSWORD_FILE=" + path}},
		{name: "file of its own by file", body: "kafka: {sasl: {password-file: " + path + "}}"},
	} {
		s, _, err := load(t, append(tt.args, sasl...), tt.environ, tt.body)
		if err != nil || s.Kafka.SASL.Password.Reveal() != password {
			t.Fatalf("%s: %q, error %v", tt.name, s.Kafka.SASL.Password.Reveal(), err)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			if shown := fmt.Sprintf(verb, s.Kafka); strings.Contains(shown, "hunter") || strings.Contains(shown, "68756e746572") {
				t.Errorf("%s shows the secret: %s", verb, shown)
			}
		}
	}
}

// Faults of secrets name the setting and its source, but not the secret.
func TestSecretFaults(t *testing.T) {
	dir := t.TempDir()
	empty, long, one := filepath.Join(dir, "empty"), filepath.Join(dir, "long"), filepath.Join(dir, "one")
	write(t, empty, "\n")
	write(t, long, strings.Repeat("hunter2", 10_000))
	write(t, one, "hunter2")
	const file = "kafka.sasl.password-file (flag --kafka.sasl.password-file): "
	for _, tt := range []struct {
		args, environ []string
		body, want    string
	}{
		{
			args: []string{"--kafka.sasl.password=hunter2"},
			want: "kafka.sasl.password (flag --kafka.sasl.password): a command line is no place for a secret: use LEDGERLAKE_KAFKA_SASL_PASSWORD, the file, or --kafka.sasl.password-file FILE",
		},
		{args: []string{"--kafka.sasl.password-file", empty}, want: file + "want a file with a secret in it, of 1 byte to 64KiB"},
		{args: []string{"--kafka.sasl.password-file", long}, want: file + "want a file with a secret in it, of 1 byte to 64KiB"},
		{args: []string{"--kafka.sasl.password-file", dir + "/none"}, want: file + "open " + dir + "/none: no such file or directory"},
		{
			args: []string{"--kafka.sasl.password-file", one}, environ: []string{"LEDGERLAKE_KAFKA_SASL_PASSWORD=hunter2"},
			want: "kafka.sasl.password (environment LEDGERLAKE_KAFKA_SASL_PASSWORD): kafka.sasl.password-file is set as well (flag --kafka.sasl.password-file): want one of the two",
		},
		{body: "kafka: {sasl: {password: [hunter2]}}", want: "kafka.sasl.password (file l.yaml line 1): want a secret that is not empty"},
		{body: "kafka: {sasl: {password: ''}}", want: "kafka.sasl.password (file l.yaml line 1): want a secret that is not empty"},
	} {
		_, _, err := load(t, append(tt.args, needed...), tt.environ, tt.body)
		checkFault(t, err, tt.want)
	}
}

// One name each: no two settings share a flag, a key or a variable, none is
// the prefix under which another stands in the file, and each is fit for
// people: a sentence of help, and a default that it takes itself.
func TestTable(t *testing.T) {
	var s config.Ingest
	seen := map[string]string{"LEDGERLAKE_CONFIG": "config", "config": "config"}
	var names []string
	for _, section := range s.Sections() {
		for _, setting := range section.Settings {
			names = append(names, setting.Name, setting.Name+"-file")
			for _, name := range []string{setting.Name, setting.Env()} {
				if other, taken := seen[name]; taken {
					t.Errorf("%s and %s are both called %s", other, setting.Name, name)
				}
				seen[name] = setting.Name
			}
			if !strings.HasSuffix(setting.Help, ".") {
				t.Errorf("%s: help is no sentence", setting.Name)
			}
			if setting.Value.Allowed == "" {
				t.Errorf("%s: does not say what is allowed", setting.Name)
			}
		}
	}
	for _, a := range names {
		for _, b := range names {
			if strings.HasPrefix(b, a+".") {
				t.Errorf("%s is a value and a key above %s", a, b)
			}
		}
	}
}

// Help has every setting once, and names the variables of secrets, which have
// no flag.
func TestHelp(t *testing.T) {
	var s config.Ingest
	var help bytes.Buffer
	config.WriteHelp(&help, s.Sections())
	for _, want := range []string{
		"\n  --batch.rows COUNT\n        A batch with this many rows becomes a segment. Default: 32.\n",
		"\n  --key-is-tenant\n        Let a record's",
		"\n  LEDGERLAKE_S3_SECRET_KEY  (no flag)\n",
		"\n  --s3.secret-key-file FILE\n        A file that holds s3.secret-key, and nothing else.\n",
		"and win over them. Required.\n",
	} {
		if strings.Count(help.String(), want) != 1 {
			t.Errorf("help has %q %d times, want 1", want, strings.Count(help.String(), want))
		}
	}
	if strings.Contains(help.String(), "--s3.secret-key ") {
		t.Error("help offers a flag for a secret")
	}
	for _, line := range strings.Split(help.String(), "\n") {
		if len(line) > 8+96 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("line of %d bytes: %s", len(line), line)
		}
	}
}

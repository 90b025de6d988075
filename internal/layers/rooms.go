package layers

import "slices"

// Drivers, by what they drive.
const (
	kfake     = "github.com/twmb/franz-go/pkg/kfake"
	aws       = "github.com/aws/aws-sdk-go-v2"
	smithy    = "github.com/aws/smithy-go"
	parquetGo = "github.com/parquet-go/parquet-go"
	zstd      = "github.com/klauspost/compress"
	ulid      = "github.com/oklog/ulid/v2"
	sync      = "golang.org/x/sync"
	pflag     = "github.com/spf13/pflag"
	zap       = "go.uber.org/zap"
	prom      = "github.com/prometheus/client_golang"
	oauth2    = "golang.org/x/oauth2"
	note      = "golang.org/x/mod/sumdb/note"
	otel      = "go.opentelemetry.io/otel"
)

// kafka is franz-go without kfake, the embedded broker.
var kafka = []string{
	"github.com/twmb/franz-go/pkg/kgo", "github.com/twmb/franz-go/pkg/kadm", "github.com/twmb/franz-go/pkg/kerr",
	"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/sasl", "github.com/twmb/franz-go/plugin",
}

// talking are the packages that only a process as a whole may use: engines
// report through values, and get their settings as values.
var talking = []string{"log", "log/slog", "flag", "expvar", "os/signal"}

// impure are the packages by which equal inputs could give different bytes.
var impure = append([]string{"time", "os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand"}, talking...)

// impureButTime are those of a package that has instants, and no clock.
var impureButTime = impure[1:]

// Rooms is the table, lowest first. ARCHITECTURE.md draws it.
var Rooms = []Room{
	{
		Folder: "audit", Never: talking,
		Drivers: []string{ulid},
	},
	{
		Folder: "chain", Never: impure,
		Imports:     []string{"audit"},
		TestDrivers: []string{"golang.org/x/mod/sumdb", "github.com/transparency-dev/merkle"},
	},
	{
		// Files of rules, read strictly.
		Folder: "internal/strictyaml", Never: impure,
		Drivers: []string{"go.yaml.in/yaml/v3"},
	},
	{
		Folder: "redact", Never: talking,
		Imports:     []string{"audit", "chain", "internal/strictyaml"},
		Drivers:     []string{"golang.org/x/text"},
		TestDrivers: []string{ulid},
		TestImports: []string{"internal/workload"},
	},
	{
		Folder: "parquet", Never: talking,
		Imports: []string{"audit", "chain"},
		Drivers: []string{parquetGo, zstd}, // parquet-go compresses by the same zstd
	},
	{
		Folder: "archive", Never: talking,
		Imports:     []string{"audit", "chain", "parquet"},
		Drivers:     []string{"golang.org/x/mod/sumdb/note", sync},
		TestImports: []string{"archive/archivetest"},
	},
	{
		// What every Bucket must do, segments that lie, and what a compactor writes.
		Folder: "archive/archivetest", TestOnly: true,
		Imports: []string{"audit", "archive", "chain", "parquet"},
		Drivers: []string{note},
	},
	{
		Folder: "s3sink", Never: talking,
		Imports:     []string{"archive"},
		Drivers:     []string{aws, smithy},
		TestImports: []string{"archive/archivetest"},
	},
	{
		Folder: "awskms", Never: talking,
		Imports:     []string{"archive"},
		Drivers:     []string{aws, smithy},
		TestImports: []string{"awskms/kmstest"},
	},
	{
		// A stand-in for KMS.
		Folder: "awskms/kmstest", TestOnly: true,
	},
	{
		// Its periods are counted from times that it is given.
		Folder: "retention", Never: append([]string{"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand"}, talking...),
		Imports: []string{"audit", "chain", "internal/strictyaml"},
	},
	{
		// What orders erasures, cuts and holds, and says what was done.
		Folder: "control", Never: talking,
		Imports: []string{"audit", "chain", "parquet", "archive"},
		Drivers: []string{ulid, note, sync},
	},
	{
		Folder: "proof", Never: talking,
		Imports:     []string{"audit", "chain", "redact", "parquet", "archive", "control"},
		Drivers:     []string{ulid, "golang.org/x/mod/sumdb/tlog"},
		TestImports: []string{"redact", "proof/prooftest"},
		TestDrivers: []string{"github.com/transparency-dev/merkle"},
	},
	{
		// The programs that check an archive without the product, as files.
		Folder: "proof/offline", Never: impure,
	},
	{
		// Archives that are built, and damaged, by hand.
		Folder: "proof/prooftest", TestOnly: true,
		Imports: []string{"audit", "chain", "redact", "parquet", "archive", "proof"},
		Drivers: []string{"golang.org/x/mod/sumdb/note"},
	},
	{
		// The command that tampers with archives: make tamper.
		Folder: "proof/tamper", TestOnly: true,
		Imports: []string{"audit", "chain", "parquet", "archive", "proof", "proof/prooftest"},
		Drivers: []string{parquetGo},
	},
	{
		Folder: "pipeline", Never: talking,
		Imports:     []string{"audit", "chain", "parquet", "archive", "redact", "control"},
		Drivers:     slices.Concat(kafka, []string{ulid, sync, note}),
		TestDrivers: []string{kfake, parquetGo}, // whose decoders must not go from bubble to bubble
		TestImports: []string{"proof", "archive/archivetest", "internal/workload"},
	},
	{
		// The engine in a simulated world, and the command that builds and runs it.
		Folder: "pipeline/sim", TestOnly: true,
		TestImports: []string{"audit", "chain", "redact", "parquet", "archive", "archive/archivetest", "control", "proof", "pipeline", "compaction"},
		TestDrivers: slices.Concat(kafka, []string{kfake, parquetGo, "golang.org/x/mod/sumdb/note"}),
	},
	{
		Folder: "compaction", Never: talking,
		Imports:     []string{"audit", "chain", "redact", "parquet", "archive", "control", "retention"},
		Drivers:     slices.Concat(kafka, []string{ulid, sync, note}),
		TestImports: []string{"proof", "proof/prooftest", "archive/archivetest", "internal/scan"},
	},
	{
		// Answers from an archive.
		Folder: "export", Never: talking,
		Imports:     []string{"audit", "chain", "redact", "parquet", "archive", "control"},
		Drivers:     []string{sync},
		TestImports: []string{"proof/prooftest", "compaction"},
		TestDrivers: []string{note},
	},
	{
		// Rows as files. It opens none itself.
		Folder: "export/render", Never: append([]string{"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand"}, talking...),
		Imports:     []string{"audit", "chain", "parquet", "export"},
		TestImports: []string{"internal/workload", "redact", "proof", "archive"},
	},
	{
		// SQL by which engines read an archive, as text. Pure.
		Folder: "export/sqlview", Never: append([]string{"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand"}, talking...),
		Imports:     []string{"audit", "chain", "archive", "control"},
		TestImports: []string{"parquet"},
	},
	{
		// Bundles from which a turn can be run again.
		Folder: "export/replay", Never: append([]string{"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand"}, talking...),
		Imports:     []string{"audit", "chain", "export", "export/render"},
		TestImports: []string{"archive", "redact", "proof/prooftest"},
	},
	{
		// What of an archive goes to a SIEM, and in which formats.
		Folder: "export/event", Never: append([]string{"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand"}, talking...),
		Imports:     []string{"audit", "chain", "archive"},
		TestImports: []string{"redact", "export/event/eventtest"},
	},
	{
		// What a destination is to who delivers to it.
		Folder: "export/sink", Never: talking,
		Imports: []string{"export/event"},
	},
	{
		// Amazon Security Lake.
		Folder: "export/sink/securitylake", Never: talking,
		Imports:     []string{"archive", "export/event", "export/sink"},
		Drivers:     []string{parquetGo},
		TestImports: []string{"export/event/eventtest", "export/sink/securitylake/laketest"},
	},
	{
		// A stand-in for the bucket of a lake.
		Folder: "export/sink/securitylake/laketest", TestOnly: true,
		Imports: []string{"archive"},
		Drivers: []string{parquetGo},
	},
	{
		// Destinations that take events by HTTP.
		Folder: "export/sink/httpsink", Never: talking,
		Imports:     []string{"export/event", "export/sink"},
		Drivers:     []string{zstd, "go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"},
		TestImports: []string{"audit", "chain", "export/event/eventtest", "export/sink/httpsink/siemtest"},
		TestDrivers: []string{"github.com/standard-webhooks/standard-webhooks/libraries"},
	},
	{
		// Stand-ins for SIEMs.
		Folder: "export/sink/httpsink/siemtest", TestOnly: true,
		Drivers: []string{zstd, "go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"},
	},
	{
		Folder: "export/sink/filesink", Never: talking,
		Imports:     []string{"chain", "archive", "export/event", "export/sink"},
		Drivers:     []string{zstd, sync},
		TestImports: []string{"redact", "export/event/eventtest"},
	},
	{
		// Syslog over TLS.
		Folder: "export/sink/syslog", Never: talking,
		Imports:     []string{"export/event", "export/sink"},
		Drivers:     []string{"golang.org/x/sys/unix"},
		TestImports: []string{"export/event/eventtest"},
	},
	{
		// Topics of Apache Kafka.
		Folder: "export/sink/kafkasink", Never: talking,
		Imports:     []string{"export/event", "export/sink"},
		Drivers:     kafka,
		TestImports: []string{"export/event/eventtest"},
		TestDrivers: []string{kfake},
	},
	{
		// Streams of NATS.
		Folder: "export/sink/natssink", Never: talking,
		Imports:     []string{"export/event", "export/sink"},
		Drivers:     []string{"github.com/nats-io"},
		TestImports: []string{"export/event/eventtest"},
	},
	{
		// The engine that delivers rows to destinations.
		Folder: "export/stream", Never: talking,
		Imports:     []string{"audit", "chain", "redact", "parquet", "archive", "control", "export", "export/event", "export/sink"},
		Drivers:     []string{sync},
		TestDrivers: []string{note, parquetGo}, // whose decoders must not go from bubble to bubble
		TestImports: []string{"proof/prooftest", "compaction"},
	},
	{
		// Answers over HTTP, and the timeline page.
		Folder: "export/serve", Never: talking,
		Imports:     []string{"audit", "chain", "archive", "control", "proof", "export", "export/render", "internal/strictyaml"},
		Drivers:     []string{zstd, "golang.org/x/time/rate", sync},
		TestImports: []string{"proof/prooftest", "export/serve/servetest"},
		TestDrivers: []string{note},
	},
	{
		// What tests of serve and of its page look at.
		Folder: "export/serve/servetest", TestOnly: true,
		Imports: []string{"audit", "chain", "proof/prooftest"},
	},
	{
		// What applications have of their ledger.
		Folder: "ledger", Never: impureButTime,
		Imports:     []string{"audit", "chain"},
		TestImports: []string{"ledger/memory", "ledger/scrub", "ledger/ledgertest", "internal/workload", "redact"},
	},
	{
		Folder: "ledger/memory", Never: talking,
		Imports:     []string{"audit", "chain", "redact", "ledger"},
		Drivers:     []string{ulid},
		TestImports: []string{"ledger/ledgertest", "ledger/scrub"},
	},
	{
		Folder: "ledger/scrub", Never: talking,
		Imports: []string{"audit", "redact", "ledger"},
	},
	{
		// What every form of a ledger must do.
		Folder: "ledger/ledgertest", TestOnly: true,
		Imports: []string{"audit", "chain", "ledger"},
	},
	{
		// A ledger over an archive.
		Folder: "ledger/archived", Never: talking,
		Imports:     []string{"audit", "chain", "archive", "control", "export", "ledger"},
		Drivers:     slices.Concat(kafka, []string{ulid, note}),
		TestImports: []string{"ledger/ledgertest", "proof/prooftest"},
		TestDrivers: []string{kfake},
	},
	{
		// What producers send with.
		Folder: "emit", Never: talking,
		Imports:     []string{"audit", "ledger"},
		Drivers:     []string{"github.com/twmb/franz-go/pkg/kgo", ulid},
		TestImports: []string{"chain", "ledger/ledgertest", "ledger/memory"},
		TestDrivers: []string{kfake, "github.com/twmb/franz-go/pkg/kmsg"},
	},
	{
		// An agent that is audited.
		Folder:  "examples/go",
		Imports: []string{"emit", "ledger"},
		Drivers: []string{"github.com/twmb/franz-go/pkg/kgo"},
	},
	{
		Folder: "config", Never: []string{"log", "log/slog", "os/signal"},
		Imports: []string{
			"audit", "archive", "chain", "redact", "s3sink", "pipeline", // whose settings it fills
			"export/event", "export/sink", "export/sink/filesink", "export/sink/syslog", "export/sink/kafkasink", "export/sink/natssink", "export/sink/httpsink", "export/sink/securitylake", "internal/strictyaml", // those of destinations
		},
		Drivers: []string{"github.com/knadh/koanf", pflag, "go.yaml.in/yaml/v3"},
	},
	{
		// How the commands reach Kafka.
		Folder: "kafka", Never: talking,
		Imports:     []string{"config"},
		Drivers:     slices.Concat(kafka, []string{oauth2, aws, smithy}), // AWS's credentials
		TestDrivers: []string{kfake},
	},
	{
		// Spans of OpenTelemetry. It knows no engine.
		Folder: "telemetry", Never: talking,
		Drivers:     []string{otel, "go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"},
		TestImports: []string{"telemetry/telemetrytest"},
	},
	{
		// A collector.
		Folder: "telemetry/telemetrytest", TestOnly: true,
		Drivers: []string{"go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"},
	},
	{
		// What the commands that run for long have in common.
		Folder:  "daemon",
		Imports: []string{"config", "s3sink", "pipeline", "telemetry"},
		Drivers: slices.Concat(kafka, []string{zap, prom}),
	},
	{
		// Holds docs/metrics.md against the metrics of commands.
		Folder: "internal/metricspage", TestOnly: true,
		Drivers: []string{prom},
	},
	{
		// What a process signs with.
		Folder:      "signing",
		Imports:     []string{"archive", "awskms", "config", "s3sink", "pipeline"},
		Drivers:     []string{zap, note},
		TestImports: []string{"daemon"},
	},
	{
		// Plausible records to try all of it with.
		Folder: "internal/workload", Never: talking,
		TestImports: []string{"audit"},
	},
	{
		// Events of every kind, to try formats and destinations with.
		Folder: "export/event/eventtest", TestOnly: true,
		Imports: []string{"audit", "chain", "redact", "archive", "export/event", "internal/workload"},
	},
	{
		// How much memory another process took.
		Folder: "internal/peak", Never: talking,
	},
	{
		// The embedded Kafka and S3. It knows none of the engines.
		Folder: "internal/devstack", Never: talking,
		Imports:     []string{"archive"},
		Drivers:     []string{kfake, "github.com/versity/versitygw", "github.com/gofiber/fiber/v3", aws, smithy},
		TestImports: []string{"audit", "chain", "parquet", "archive/archivetest", "s3sink", "proof", "pipeline", "internal/workload"},
		TestDrivers: kafka,
	},
	{
		// Queries by DuckDB in process: a module of its own, as it needs cgo.
		Folder: "internal/duckdb", Never: talking, TestOnly: true,
		TestImports: []string{"audit", "chain", "parquet", "archive", "proof", "proof/prooftest", "proof/offline"},
		TestDrivers: []string{"github.com/duckdb/duckdb-go/v2"},
	},
	{
		// Looks for erased values in every byte of an object.
		Folder: "internal/scan", Never: talking,
		Drivers:     []string{parquetGo, zstd},
		TestImports: []string{"audit", "chain", "redact", "parquet"},
	},
	{
		// How commands are told which archive they read.
		Folder: "internal/reach", Never: []string{"log", "log/slog", "os/signal"},
		Imports: []string{"archive", "chain", "config", "s3sink"},
	},
	{
		Folder:      "cmd/ingest",
		Imports:     slices.Concat(product, []string{"config", "kafka", "telemetry", "daemon", "signing"}),
		Drivers:     slices.Concat(kafka, []string{zap, pflag, prom}),
		TestDrivers: []string{kfake, otel},
		TestImports: []string{"awskms/kmstest", "internal/metricspage", "telemetry/telemetrytest"},
	},
	{
		Folder:      "cmd/compact",
		Imports:     slices.Concat(product, []string{"control", "retention", "compaction", "config", "kafka", "telemetry", "daemon", "signing"}),
		Drivers:     slices.Concat(kafka, []string{ulid, zap, pflag, prom, note}),
		TestDrivers: []string{kfake},
		TestImports: []string{"internal/devstack", "internal/scan", "internal/metricspage", "telemetry/telemetrytest"},
	},
	{
		Folder:      "cmd/verify",
		Imports:     slices.Concat(product, []string{"config", "kafka", "internal/reach", "proof/offline"}),
		Drivers:     slices.Concat(kafka, []string{zap, pflag, prom}), // copies of anchors lie in Kafka
		TestImports: []string{"proof/prooftest", "internal/metricspage"},
		TestDrivers: []string{kfake},
	},
	{
		Folder:      "cmd/export",
		Imports:     slices.Concat(product, []string{"control", "config", "internal/reach", "export", "export/render", "export/replay", "export/serve", "export/sink", "export/sqlview", "export/stream", "kafka", "telemetry", "daemon"}),
		Drivers:     slices.Concat(kafka, []string{ulid, zap, prom}), // where changes of destinations are recorded
		TestImports: []string{"internal/devstack", "internal/metricspage", "telemetry/telemetrytest", "proof/prooftest"},
	},
	{
		Folder:      "cmd/devstack",
		Imports:     slices.Concat(product, []string{"config", "internal/devstack", "internal/workload", "internal/peak"}),
		Drivers:     slices.Concat(kafka, []string{parquetGo, zap, pflag}),
		TestImports: []string{"proof/prooftest"},
	},
	{
		Folder: "internal/layers",
	},
	{
		// Tests of what is written for people.
		Folder: "docs", TestOnly: true,
		TestDrivers: []string{"golang.org/x/mod"},
	},
	{
		// Tests of natssink against a server in the process: a module of its own.
		Folder: "it/nats", TestOnly: true,
		Imports: []string{"export/event", "export/event/eventtest", "export/sink", "export/sink/natssink"},
		Drivers: []string{"github.com/nats-io"},
	},
	{
		// The chart and the image: a module of its own.
		Folder: "it/helm", TestOnly: true,
		Imports: []string{"config", "redact", "retention"},
		Drivers: []string{
			"helm.sh/helm/v3", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go/kubernetes/scheme", "k8s.io/pod-security-admission",
			"sigs.k8s.io/yaml", "go.yaml.in/yaml/v3", "github.com/santhosh-tekuri/jsonschema/v6", "github.com/moby/buildkit", "github.com/moby/patternmatcher",
		},
	},
	{
		// Alert rules and dashboards by Prometheus itself: a module of its own.
		Folder: "it/promtool", TestOnly: true,
		Drivers: []string{"github.com/prometheus/prometheus", "go.yaml.in/yaml/v3"},
	},
	{
		// Tests of the page in Chromium: a module of its own.
		Folder: "it/browser", TestOnly: true,
		Imports: []string{"archive", "export", "export/serve", "export/serve/servetest", "proof/prooftest"},
		Drivers: []string{"github.com/chromedp", "github.com/getkin/kin-openapi"},
	},
	{
		// Tests of the whole product, embedded and against real components.
		Folder: "it", TestOnly: true,
		Imports: slices.Concat(product, []string{"compaction", "export", "export/event", "export/event/eventtest", "export/sink", "export/sink/httpsink", "export/sink/kafkasink", "export/sink/natssink", "export/sink/syslog", "export/sink/securitylake", "export/sink/securitylake/laketest", "export/sqlview", "archive/archivetest", "proof/prooftest", "proof/offline", "config", "internal/devstack", "emit", "ledger", "ledger/archived", "internal/workload", "internal/scan", "internal/peak"}),
		Drivers: slices.Concat(kafka, []string{kfake, aws, smithy, "github.com/transparency-dev/merkle", parquetGo, zstd, "golang.org/x/mod/sumdb/note", sync, "github.com/nats-io"}),
	},
}

// product is what a command may put together.
var product = []string{"audit", "chain", "redact", "parquet", "archive", "s3sink", "control", "proof", "pipeline"}

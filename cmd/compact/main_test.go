package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/internal/metricspage"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another text now; if it should be, run go test ./cmd/compact -update:\n%s", path, got)
	}
}

// call runs the program as main does and returns what it left behind.
func call(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, log bytes.Buffer
	err := run(t.Context(), args, environ, &out, &log)
	if err != nil {
		log.WriteString(program + ": " + err.Error() + "\n")
	}
	return out.String(), log.String(), exitCode(err)
}

// What --help prints stands in testdata, so that a change of it is seen.
func TestHelp(t *testing.T) {
	stdout, stderr, code := call(t, nil, "--help")
	if stderr != "" || code != exitDone {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	golden(t, "help.txt", stdout)
	for _, c := range commands() {
		stdout, stderr, code := call(t, nil, c.name, "--help")
		if stderr != "" || code != exitDone {
			t.Errorf("%s: exit %d, stderr %q", c.name, code, stderr)
		}
		golden(t, "help-"+c.name+".txt", stdout)
	}
}

// Bad use ends with exit code 2 and one line, before anything was reached.
func TestBadUse(t *testing.T) {
	dir := t.TempDir()
	policies := filepath.Join(dir, "retention.yaml")
	if err := os.WriteFile(policies, []byte("default:\n  rows: 30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, testKey, err := sign.Generate(rand.Reader, "anchors.example")
	if err != nil {
		t.Fatal(err)
	}
	const bucket = "s3://bucket?region=x"
	where := []string{"--bucket", bucket}
	erase := func(args ...string) []string {
		return append([]string{"erase", "--bucket", bucket, "--tenant", "t", "--reason", "r", "--request-ref", "x"}, args...)
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, "not understood: no command: want run, once, plan, "},
		{"misspelt command", []string{"rnu"}, `not understood: no command "rnu": want run, once, plan, `},
		{"nothing to compact", append([]string{"run"}, where...), "topics: not set: give the topics that ledgerlake-ingest archives"},
		{"a promise that cannot be kept", append([]string{"run", "--topics", "t", "--purge-after", "31d"}, where...), "erasure-within: is less than purge-after, 31d"},
		{"a period without a unit", append([]string{"run", "--topics", "t", "--purge-after", "7"}, where...), `purge-after (flag --purge-after): "7" is not allowed`},
		{"catalogs that would not count", append([]string{"once", "--key", testKey}, where...), "catalog-key: not set: anchors are signed"},
		{"receipts that nobody would take", append([]string{"once", "--key", testKey, "--catalog-key", "x", "--control-keys", testKey}, where...), "control-key: not set: with control-keys"},
		{"policies that could be misread", append([]string{"once", "--retention-file", policies}, where...), "retention-file (flag --retention-file): " + policies + `: default.rows (line 2): "30" is not allowed`},
		{"no policies", append([]string{"retention"}, where...), "retention-file: not set"},
		{"no bucket", []string{"status"}, "bucket: not set: give --bucket"},
		{"a flag of another command", append([]string{"status", "--topics", "t"}, where...), "topics (flag --topics): this command has no use for it"},
		{"no target", erase(), "record-id: not set: give one of --record-id"},
		{"two targets", erase("--turn", "t", "--user", "u"), "record-id: is one of several targets"},
		{"half of coordinates", erase("--turn", "t", "--stage", "s"), "stage (flag --stage): goes with session, turn and seq-within-turn"},
		{"a turn of a session", erase("--turn", "t", "--session", "s"), "turn (flag --turn): goes without session"},
		{"no record id", erase("--record-id", "1"), `record-id (flag --record-id): "1" is not allowed: want a record id (ULID)`},
		{"no offset", erase("--offset", "t/1/2"), `offset (flag --offset): "t/1/2" is not allowed`},
		{"no slot", erase("--turn", "t", "--slots", "header"), `slots (flag --slots): "header" is not allowed`},
		{"all and one slot", erase("--turn", "t", "--slots", "*,raw"), "slots (flag --slots): has * beside names"},
		{"a hard one in part", erase("--turn", "t", "--slots", "raw", "--hard"), "hard (flag --hard): takes all slots"},
		{"no reason", []string{"erase", "--bucket", bucket, "--tenant", "t", "--request-ref", "x", "--turn", "t"}, "reason: not set"},
		{"no request", []string{"erase", "--bucket", bucket, "--tenant", "t", "--reason", "r", "--turn", "t"}, "request-ref: not set"},
		{"no control topic", erase("--turn", "t", "--control-topic", "none"), "control-topic (flag --control-topic): is none: nothing can be ordered"},
		{"a hold of nothing", []string{"hold", "--bucket", bucket, "--tenant", "t", "--reason", "r"}, "all: want one of --all, --session and --user"},
		{"a hold of two", []string{"release", "--bucket", bucket, "--tenant", "t", "--reason", "r", "--all", "--user", "u"}, "all (flag --all): want one of --all, --session and --user"},
		{"cancel what", []string{"cancel", "--bucket", bucket, "--tenant", "t", "--reason", "r"}, "id: not set"},
		{"no key in it", append([]string{"erasures", "--key", "x"}, where...), "key (flag --key): want one or more of: a verifier key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := call(t, nil, tt.args...)
			if want := program + ": " + tt.want; stdout != "" || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 || code != exitBadUse {
				t.Errorf("exit %d, want %d\n got %s%s\nwant %s", code, exitBadUse, stdout, stderr, want)
			}
		})
	}
}

// The exit codes say what is to be done next.
func TestExitCodes(t *testing.T) {
	for err, want := range map[error]int{
		nil: 0, errors.New("x"): 1, fmt.Errorf("l: %w", compaction.ErrHalted): 1, &config.Error{}: 2, fmt.Errorf("%w: x", errUsage): 2,
		fmt.Errorf("%w: x", errNothing): 3, fmt.Errorf("%w: x", errOverdue): 4,
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: exit %d, want %d", err, got, want)
		}
	}
}

// A record id that stands alone is the order that cancel takes back.
func TestNamedID(t *testing.T) {
	const id = "01KBCDEFGHJKMNPQRSTW000001"
	for args, want := range map[string]string{
		id + " --tenant t":        "--id " + id + " --tenant t",
		"--tenant t " + id:        "--tenant t --id " + id,
		"--tenant=t " + id:        "--tenant=t --id " + id,
		"--tenant t --json " + id: "--tenant t --json --id " + id,
		"--id " + id:              "--id " + id,
		"--tenant t":              "--tenant t",
	} {
		if got := strings.Join(namedID(strings.Fields(args)), " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// Who listens hears every event.
func TestMergeHasEveryEvent(t *testing.T) {
	r := newReport(daemon.NewLogger(new(bytes.Buffer), config.Log{Level: "debug", Format: "json"}), false)
	m := newMetrics(&health{})
	for name, ev := range map[string]compaction.Events{"report": r.events(), "metrics": m.events(), "merge": merge(r.events(), m.events())} {
		v := reflect.ValueOf(ev)
		for i := range v.NumField() {
			if v.Field(i).IsNil() {
				t.Errorf("%s does not hear %s", name, v.Type().Field(i).Name)
			}
		}
	}
}

// Tenants stand in the log only where they may.
func TestKeysInTheLog(t *testing.T) {
	key := archive.DataKey(archive.Line{Topic: "t", TopicID: "i"}, "acme", "2026-05-28", 0, 1, "01KBCDEFGHJKMNPQRSTW000001")
	for _, tenants := range []bool{false, true} {
		r := &report{tenants: tenants}
		if got := r.key(key); strings.Contains(got, "acme") != tenants {
			t.Errorf("tenants %v: %s", tenants, got)
		}
	}
}

// Prometheus' own rules of names and help are kept.
func TestMetricsLint(t *testing.T) {
	m := newMetrics(&health{})
	m.Requested(s3sink.Request{Operation: "PutObject", Status: 200})
	problems, err := testutil.GatherAndLint(m.Registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// docs/metrics.md has what the code has.
func TestMetricsAreDocumented(t *testing.T) {
	m := newMetrics(&health{})
	m.Requested(s3sink.Request{Operation: "PutObject", Status: 200})
	metricspage.Check(t, "../../docs/metrics.md", "Metrics of ledgerlake-compact", m.Registry, namespace, *update)
}

// A line whose catalog cannot be read has no numbers; one that was never compacted
// has all but a version.
func TestStatusRow(t *testing.T) {
	l := archive.Line{Topic: "audit.calls", TopicID: "dHJpYWwtb2YtdGhlLWlkcw", Partition: 3}
	fresh := statusRow(&compaction.LineStatus{Line: l, Version: -1, Segments: 7})
	if fresh[1] != "-" || fresh[3] != "7" {
		t.Errorf("never compacted: %q", fresh)
	}
	bad := statusRow(&compaction.LineStatus{Line: l, Version: -1, Segments: 7, Err: errors.New("damaged")})
	if len(bad) != len(fresh) || bad[1] != "fault" || strings.Join(bad[2:], "") != strings.Repeat("-", len(bad)-2) {
		t.Errorf("damaged: %q", bad)
	}
}

//go:build it

package cases

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/scan"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/proof/offline"
)

// token stands in what a case has erased, and in nothing else.
const token = "ERASE-ME-7f3a"

// quick are settings by which a minute of a compactor's life is a second or two.
var quick = []string{
	"--purge-after", "1s", "--compact.every", "300ms", "--compact.max-age", "1s", "--compact.sweep-every", "1s", "--http.listen", "none",
}

// govern makes the control topic, and an archive whose grace is 2 seconds.
func (s *stage) govern() {
	s.Helper()
	s.must(s.kafka.CreateTopic(audit.ControlTopic, 1, map[string]string{"retention.ms": "-1"}))
	root, err := json.Marshal(archive.Root{
		Format: archive.Format, ArchiveID: "01KBARCH0000000000000000AR", CreatedAt: time.Now().UTC().Format(archive.TimeLayout), GraceSeconds: 2,
	})
	s.must(err)
	s.store.Set(archive.RootKey, root)
}

// archiving starts ingest such that anchors, and so compaction, follow at once.
func (s *stage) archiving(args ...string) {
	s.Helper()
	s.start(append([]string{"--anchor-every", "1s", "--batch.rows", "1", "--batch.strict", "--http.listen", "none"}, args...)...)
}

// compactEnv is what every command of compact is told: one environment serves
// them all.
func (s *stage) compactEnv() []string {
	return append(slices.Clip(s.env), "LEDGERLAKE_BROKERS="+strings.Join(s.addrs, ","), "LEDGERLAKE_BUCKET="+s.bucket())
}

// compactor starts a compactor of all lines.
func (s *stage) compactor(args ...string) *parts.Process {
	s.Helper()
	s.runs++ // its log is held to the same rules
	log := filepath.Join(s.dir, fmt.Sprintf("ingest-%d.log", s.runs))
	if !slices.Contains(args, "--late-window") {
		args = append(args, "--late-window", "2s")
	}
	args = slices.Concat([]string{"run", "--compact.assign", "all"}, quick, args)
	p, err := parts.Start("compact", log, s.compactEnv(), parts.Binary("ledgerlake-compact"), args...)
	s.must(err)
	s.Cleanup(func() {
		p.Kill()
		if s.Failed() {
			s.Logf("%s:\n%s", log, tail(p.Output()))
		}
	})
	return p
}

// compact runs a command of ledgerlake-compact and returns what it printed. Its
// exit code must be want.
func (s *stage) compact(want int, command string, args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), parts.Binary("ledgerlake-compact"), append([]string{command}, args...)...)
	cmd.Env = parts.Environ(s.compactEnv())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		s.Fatalf("compact %s: exit %d, want %d: %s%s", command, code, want, &stdout, &stderr)
	}
	return stdout.String()
}

// erase orders an erasure and returns its id.
func (s *stage) erase(args ...string) string {
	s.Helper()
	var placed struct{ ID string }
	args = append(args, "--reason", "a case", "--request-ref", "CASE-1", "--json")
	s.must(json.Unmarshal([]byte(s.compact(0, "erase", args...)), &placed))
	return placed.ID
}

// await waits until an order of erasure has come to a state.
func (s *stage) await(id, state string) {
	s.Helper()
	last := ""
	s.within(waitLong, "order "+id+" "+state, func() bool {
		var all struct {
			Erasures []struct{ ID, State, Why string }
		}
		s.must(json.Unmarshal([]byte(s.compact(0, "erasures", "--json")), &all))
		for _, e := range all.Erasures {
			if e.ID == id {
				last = e.State + " " + e.Why
				return e.State == state
			}
		}
		return false
	}, &last)
}

// within waits until ok, and says what was last seen where that takes too long.
func (s *stage) within(d time.Duration, what string, ok func() bool, last *string) {
	s.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("%s: not within %v; last seen: %s", what, d, *last)
		}
		s.must(s.alive())
	}
}

// compacted waits until at most n segments of a topic are left, all of whose
// rows then lie in data files.
func (s *stage) compacted(topic string, n int) {
	s.Helper()
	last := ""
	s.within(waitLong, "compaction of "+topic, func() bool {
		left := len(s.store.Keys("log/" + topic + "/"))
		last = fmt.Sprint(left, " segments")
		return left <= n
	}, &last)
}

// rows answers a question about the view rows: each row of the archive once, in
// data files and segments, as DuckDB's users are told to read it.
func (s *stage) rows(a oracle.Archive, sql string) [][]any {
	s.Helper()
	script, err := offline.Programs.ReadFile("rows.sql")
	s.must(err)
	return s.query(a, "SET VARIABLE archive = '"+a.Dir+"'", string(script), sql)
}

// scan looks for values in every byte of every version of every object, packed
// or not, and returns where they are.
func (s *stage) scan(values ...string) (found []string) {
	s.Helper()
	needles, err := scan.NewNeedles(values)
	s.must(err)
	n := 0
	for name, body := range s.store.Everything() {
		hits, err := needles.Find(body)
		if err != nil {
			s.Errorf("%s: %v", name, err)
		}
		if len(hits) > 0 {
			found = append(found, name)
		}
		n++
	}
	if n == 0 {
		s.Error("nothing was scanned")
	}
	return found
}

// topicID returns a topic's id as keys have it.
func (s *stage) topicID(topic string) string {
	s.Helper()
	topics, err := kadm.NewClient(s.client).ListTopics(s.Context(), topic)
	s.must(err)
	id := topics[topic].ID
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// sdk is a client of the store that is not ours.
func (s *stage) sdk() *s3.Client { return parts.S3Client(s.store.URL) }

// bucketName is the bucket as requests name it.
var bucketName = func() *string { name := faults3.Bucket; return &name }()

// waitLong is for what takes several passes and graces.
const waitLong = 90 * time.Second

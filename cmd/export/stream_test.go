package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/devstack"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// A stage is a store with an archive, a Kafka, and a file of destinations.
type stage struct {
	t       *testing.T
	stack   *devstack.Stack
	bucket  *s3sink.Bucket
	url     string
	file    string
	out     string
	environ []string
	log     syncBuffer // of the stream that runs
}

const auditTopic = "audit.calls"

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, out: t.TempDir()}
	s.file = filepath.Join(t.TempDir(), "export.yaml")
	stack, err := devstack.Up(t.Context(), devstack.Options{Dir: t.TempDir(), Topics: []devstack.Topic{{Name: auditTopic, Partitions: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	s.stack = stack
	t.Cleanup(func() { _ = stack.Close() })
	s.url = fmt.Sprintf("s3://%s?endpoint=%s&region=%s", devstack.DefaultBucket, stack.Endpoint(), devstack.Region)
	s.environ = []string{
		"LEDGERLAKE_S3_ACCESS_KEY=" + devstack.AccessKey, "LEDGERLAKE_S3_SECRET_KEY=" + devstack.SecretKey, "LEDGERLAKE_BUCKET=" + s.url,
		"LEDGERLAKE_HTTP_LISTEN=none", "LEDGERLAKE_BROKERS=" + stack.Brokers(), "USER=dpo",
	}
	if s.bucket, err = s3sink.Open(t.Context(), s.url, s3sink.Options{AccessKey: devstack.AccessKey, SecretKey: devstack.SecretKey}); err != nil {
		t.Fatal(err)
	}
	a, _ := example()
	for key, body := range a.Objects() {
		if _, err := s.bucket.Create(t.Context(), key, body); err != nil {
			t.Fatal(err)
		}
	}
	s.destinations("files", "")
	return s
}

// destinations writes the file of destinations: one that is a folder.
func (s *stage) destinations(name, more string) {
	s.t.Helper()
	text := fmt.Sprintf("destinations:\n- name: %s\n  type: file\n  path: %s\n  linger: 0s\n%s", name, filepath.Join(s.out, name), more)
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// command runs a command to its end.
func (s *stage) command(args ...string) (code int, out string) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	code, err := run(s.t.Context(), args, s.environ, &stdout, &stderr)
	if err != nil {
		fmt.Fprintf(&stderr, "%v\n", err)
	}
	return code, stdout.String() + stderr.String()
}

// want runs a command and requires its exit code, and that it says some texts.
func (s *stage) want(code int, texts []string, args ...string) string {
	s.t.Helper()
	got, out := s.command(args...)
	if got != code {
		s.t.Fatalf("%v: exit %d, want %d: %s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.t.Errorf("%v does not say %q:\n%s", args, text, out)
		}
	}
	return out
}

// A syncBuffer is written and read by goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// streaming runs stream until done reports true, and returns what it logged.
func (s *stage) streaming(done func() bool, args ...string) (log string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 60*time.Second)
	defer cancel()
	s.log.reset()
	over := make(chan struct{})
	go func() {
		defer close(over)
		code, err := run(ctx, append([]string{"stream", "--config", s.file}, args...), s.environ, io.Discard, &s.log)
		if code != exitDone || err != nil {
			s.t.Errorf("stream: exit %d, %v", code, err)
		}
	}()
	for !done() && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	if ctx.Err() != nil {
		s.t.Errorf("it did not get there:\n%s", &s.log)
	}
	cancel()
	<-over
	return s.log.String()
}

// records returns the record events in the files of a destination.
func (s *stage) records(name string) (all []map[string]any) {
	s.t.Helper()
	_ = filepath.WalkDir(filepath.Join(s.out, name), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl.gz") {
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return nil // it is being replaced
		}
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			s.t.Error(err)
			return nil
		}
		text, _ := io.ReadAll(r)
		for line := range bytes.Lines(text) {
			var ev map[string]any
			if err := json.Unmarshal(line, &ev); err != nil {
				s.t.Errorf("%s: %v", path, err)
			}
			all = append(all, ev)
		}
		return nil
	})
	return all
}

// The commands about destinations, from the first row to the last dead letter.
func TestStream(t *testing.T) {
	s := newStage(t)
	const rows = 10
	log := s.streaming(s.delivered, "--stream.audit-topic", auditTopic, "--stream.audit-tenant", "ops", "--stream.poll", "100ms")
	if n := len(s.records("files")); n != rows {
		t.Errorf("%d rows in files, want %d", n, rows)
	}
	for _, ev := range s.records("files") {
		if ev["verified"] != true || ev["rowHash"] == nil || ev["prevHash"] == nil {
			t.Errorf("an event says %v", ev)
		}
	}
	if strings.Contains(log, `"tenant":"acme"`) {
		t.Errorf("a tenant stands in the log:\n%s", log)
	}
	s.audited("new")

	s.want(exitDone, []string{"files", "file, active", "10 delivered, 0 to go"}, "status")
	s.want(exitDone, []string{`"state": "active"`, `"delivered": 10`}, "status", "--json")
	s.want(exitDone, []string{"files is paused"}, "pause", "files", "--reason", "maintenance")
	s.want(exitDone, []string{"files is paused already"}, "pause", "files")
	s.want(exitDone, []string{"paused", "maintenance"}, "status")
	s.want(exitDone, []string{"files is active"}, "resume", "files")
	s.want(exitIncomplete, []string{"no such destination"}, "pause", "nowhere")
	s.want(exitCannotRun, []string{"want the name of a destination"}, "pause")
	s.want(exitDone, []string{"files took event"}, "check", "files", "--config", s.file)
	s.want(exitCannotRun, []string{`no destination "siem" is set: there are files`}, "check", "siem", "--config", s.file)
	s.want(exitDone, []string{"no dead letters"}, "dead", "files")
	s.want(exitIncomplete, []string{"never exported to"}, "dead", "nowhere")
	s.want(exitDone, []string{"nothing to send again"}, "dead", "files", "--replay")
	s.want(exitIncomplete, []string{"never exported to"}, "backfill", "nowhere")
	s.want(exitCannotRun, []string{"from"}, "backfill", "files", "--from", "yesterday")
	s.want(exitCannotRun, []string{"--from is not before --to"}, "backfill", "files", "--from", "2026-12-01", "--to", "2026-11-01")
	s.want(exitDone, []string{"is registered"}, "backfill", "files", "--tenant", "globex")
	s.streaming(func() bool { _, out := s.command("status"); return strings.Contains(out, "done 2") }, "--stream.poll", "100ms")
	s.want(exitDone, []string{"1 rows delivered of 1 passed"}, "status")
}

// audited requires that a change of a destination was recorded, as a decision that
// ingest takes.
func (s *stage) audited(change string) {
	s.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.stack.Brokers()), kgo.ConsumeTopics(auditTopic))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	fetches := c.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		s.t.Fatal(err)
	}
	rec := fetches.Records()[0]
	m := audit.Message{Topic: rec.Topic, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		m.Headers = append(m.Headers, audit.MessageHeader{Name: h.Key, Value: h.Value})
	}
	var row audit.Record
	if reject := (&audit.Decoder{}).Decode(&row, &m); reject != nil || row.Kind.S != audit.KindDecision || row.TenantID.S != "ops" {
		s.t.Errorf("ingest would make %s of %s: %+v", row.Kind.S, rec.Value, reject)
	}
	var value map[string]any
	if err := json.Unmarshal(rec.Value, &value); err != nil || value["verdict"] != change || !strings.Contains(string(rec.Value), "type: file") {
		s.t.Errorf("it recorded %s, %v", rec.Value, err)
	}
}

// A cursor that does not match the archive ends a start with exit code 1, and the
// place is named; status says the same, and counts none of its rows as rows to go.
func TestStreamFindsATamperedCursor(t *testing.T) {
	s := newStage(t)
	s.streaming(s.delivered, "--stream.poll", "100ms")
	const key = "export/files/cursor/audit.calls/"
	kept := s.cursors(key)
	for name, c := range map[string]struct{ old, changed, says string }{
		"hash":   {`"next":7,"rowHash":"`, `"next":7,"rowHash":"00000000`, "behind row hash 00000000"},
		"seq":    {`"next":7,`, `"next":6,`, "stands at seq 6"},
		"ahead":  {`"next":7,`, `"next":8,`, "stands at seq 8"},
		"beyond": {`"next":1,"rowHash"`, `"next":90,"rowHash"`, "ends at seq 1"},
		"epoch":  {`"epoch":0,"delivered":7`, `"epoch":3,"delivered":7`, "of epoch 3"},
	} {
		changed := 0
		for at, body := range kept {
			i := bytes.Index(body, []byte(c.old))
			if i < 0 {
				s.put(at, body)
				continue
			}
			was := len(c.old)
			if name == "hash" {
				was += 8
			}
			s.put(at, slices.Concat(body[:i], []byte(c.changed), body[i+was:]))
			changed++
		}
		if changed == 0 {
			t.Fatalf("%s: no cursor has %s: %s", name, c.old, kept)
		}
		out := s.want(exitTampered, []string{"the cursor does not match the archive", key, c.says}, "stream", "--config", s.file)
		if strings.Contains(out, "export starts") {
			t.Errorf("%s: it started all the same:\n%s", name, out)
		}
		s.want(exitTampered, []string{"files", "active", "stopped at " + fmt.Sprint(changed) + " log", "10 delivered, 0 to go", "the cursor does not match the archive", key, c.says}, "status")
		s.want(exitTampered, []string{`"misfits": [`, `"tenant": "`, c.says}, "status", "--json")
	}
}

// delivered reports whether all rows are, and the cursors are stored.
func (s *stage) delivered() bool {
	_, out := s.command("status")
	return strings.Contains(out, "10 delivered, 0 to go")
}

// An object of a destination that the disk has changed under the store, so that its
// checksum does not fit any more, ends a start with exit code 1: it is named, and
// what to do, and nothing is sent. An object of the archive holds up no other line.
func TestStreamFindsADamagedObject(t *testing.T) {
	s := newStage(t)
	s.streaming(s.delivered, "--stream.poll", "100ms")
	for part, says := range map[string]string{
		"/cursor/audit.calls/": "all rows of its line are sent once more then",
		"/destination.json":    "the destination is active then",
		"/lease.json":          "an exporter takes a new lease then",
	} {
		key, mend := s.damage("export/files/", part)
		out := s.want(exitTampered, []string{"damaged", key, says}, "stream", "--config", s.file)
		if strings.Contains(out, "export starts") || strings.Contains(out, "does not answer") {
			t.Errorf("%s:\n%s", part, out)
		}
		s.want(exitTampered, []string{"damaged", key, says}, "status")
		mend()
	}
	_, mend := s.damage("catalog/", "0.note")
	defer mend()
	log := s.streaming(func() bool { return strings.Contains(s.log.String(), "export starts") }, "--stream.poll", "100ms")
	if strings.Contains(log, "does not answer") {
		t.Errorf("it waited for a catalog:\n%s", log)
	}
}

// damage changes a byte of an object on the disk, and returns its key, and how to
// mend it.
func (s *stage) damage(prefix, part string) (key string, mend func()) {
	s.t.Helper()
	for at := range s.cursors(prefix) {
		if strings.Contains(at, part) {
			key = at
		}
	}
	file := filepath.Join(s.stack.BucketDir(), filepath.FromSlash(key))
	body, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	write := func(body []byte) {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		_, err = f.WriteAt(body, 0)
		if err := errors.Join(err, f.Close()); err != nil {
			s.t.Fatal(err)
		}
	}
	changed := slices.Clone(body)
	changed[len(changed)/2] ^= 1
	write(changed)
	return key, func() { write(body) }
}

// cursors reads the objects below a prefix.
func (s *stage) cursors(prefix string) map[string][]byte {
	s.t.Helper()
	all := map[string][]byte{}
	for o, err := range s.bucket.List(s.t.Context(), prefix, "") {
		if err != nil {
			s.t.Fatal(err)
		}
		if all[o.Key], err = s.bucket.Get(s.t.Context(), o.Key); err != nil {
			s.t.Fatal(err)
		}
	}
	return all
}

// put writes an object, whatever is there.
func (s *stage) put(key string, body []byte) {
	s.t.Helper()
	_, tag, err := s.bucket.GetTagged(s.t.Context(), key)
	if err == nil {
		_, err = s.bucket.Swap(s.t.Context(), key, body, tag)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// What cannot be right is told in one line, and nothing starts.
func TestStreamRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		name := filepath.Join(dir, fmt.Sprint(len(text))+".yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const bucket = "LEDGERLAKE_BUCKET=s3://nowhere?endpoint=http://127.0.0.1:1&region=x"
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "destinations: none are set"},
		{[]string{"--config", filepath.Join(dir, "absent")}, "absent"},
		{[]string{"--config", file("destinations: []")}, "none are set"},
		{[]string{"--config", file("destinations: [{name: x, type: fax}]")}, `no type "fax": want one of`},
		{[]string{"--config", file("destination: []")}, "no such setting; did you mean destinations"},
		{[]string{"--config", file("destinations: [{name: x, type: file, path: /x}]"), "--stream.audit-topic", "t"}, "stream.audit-tenant: not set"},
		{[]string{"--stream.poll", "1"}, "want a duration"},
		{[]string{"siem"}, "not understood"},
	} {
		var stdout, stderr bytes.Buffer
		code, err := run(t.Context(), append([]string{"stream"}, c.args...), []string{bucket}, &stdout, &stderr)
		if code != exitCannotRun || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: exit %d, %v; want %s", c.args, code, err, c.want)
		}
	}
}

// Each command about destinations teaches itself.
func TestDestinationHelp(t *testing.T) {
	for _, name := range []string{"stream", "status", "pause", "resume", "check", "backfill", "dead"} {
		var stdout, stderr bytes.Buffer
		code, err := run(t.Context(), []string{name, "--help"}, nil, &stdout, &stderr)
		if code != exitDone || err != nil || !strings.Contains(stdout.String(), "ledgerlake-export "+name) || !strings.Contains(stdout.String(), "Exit codes") {
			t.Errorf("%s --help: exit %d, %v\n%s", name, code, err, &stdout)
		}
	}
}

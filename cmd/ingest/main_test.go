package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

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

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another text now; if it should be, run go test ./cmd/ingest -update:\n%s", path, got)
	}
}

// What --help prints stands in testdata, so that a change of it is seen.
func TestHelp(t *testing.T) {
	for file, args := range map[string][]string{
		"help.txt":          {"--help"},
		"help-run.txt":      {"run", "--help"},
		"help-doctor.txt":   {"doctor", "--help"},
		"help-scrub.txt":    {"scrub", "--help"},
		"help-versions.txt": {"versions", "--help"},
		"help-reset.txt":    {"reset-chain", "--help"},
	} {
		stdout, stderr, code := call(t, nil, args...)
		if stderr != "" || code != exitClean {
			t.Errorf("%v: exit %d, stderr %q", args, code, stderr)
		}
		golden(t, file, stdout)
	}
}

// The version history is printed for people and for programs.
func TestVersions(t *testing.T) {
	for file, args := range map[string][]string{
		"versions.txt":  {"versions"},
		"versions.json": {"versions", "--json"},
	} {
		stdout, stderr, code := call(t, nil, args...)
		if stderr != "" || code != exitClean {
			t.Errorf("%v: exit %d, stderr %q", args, code, stderr)
		}
		golden(t, file, stdout)
	}
}

// Bad use ends with exit code 2 and one line, before anything was reached or
// written.
func TestBadUse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ledgerlake.yaml")
	if err := os.WriteFile(file, []byte("batch:\n  rows: 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	needed := []string{"run", "--topics", "t", "--bucket", "s3://bucket"}
	with := func(args ...string) []string { return append(append([]string{}, needed...), args...) }
	for _, tt := range []struct {
		name          string
		args, environ []string
		want          string
	}{
		{"nothing", nil, nil, "not understood: no command: want run, doctor, scrub, versions or reset-chain; --help says more"},
		{"no command", []string{"--topics", "t"}, nil, `not understood: no command "--topics": want run, doctor, scrub, versions or reset-chain; --help says more`},
		{"misspelt command", []string{"runn"}, nil, `not understood: no command "runn": want run, doctor, scrub, versions or reset-chain; --help says more`},
		{"nothing to read", []string{"run", "--bucket", "s3://bucket"}, nil, "topics: not set: give --topics (or LEDGERLAKE_TOPICS, or topics in the file), one or more of: the name of a Kafka topic; or --topic-pattern, or --assign"},
		{"nowhere to write", []string{"run", "--topics", "t"}, nil, "bucket: not set: give --bucket (or LEDGERLAKE_BUCKET, or bucket in the file), s3://bucket/prefix?setting=value"},
		{"nothing to probe", []string{"doctor"}, nil, "bucket: not set: give --bucket (or LEDGERLAKE_BUCKET, or bucket in the file), s3://bucket/prefix?setting=value"},
		{"flag", with("--batch.rows", "0"), nil, `batch.rows (flag --batch.rows): "0" is not allowed: want a whole number from 1 to 60000`},
		{"environment", needed, []string{"LEDGERLAKE_BATCH_ROWS=0"}, `batch.rows (environment LEDGERLAKE_BATCH_ROWS): "0" is not allowed: want a whole number from 1 to 60000`},
		{"file", with("--config", file), nil, `batch.rows (file ` + file + ` line 2): "0" is not allowed: want a whole number from 1 to 60000`},
		{"file for doctor", []string{"doctor", "--bucket", "s3://bucket", "--config", file}, nil, `batch.rows (file ` + file + ` line 2): "0" is not allowed: want a whole number from 1 to 60000`},
		{"unknown flag", with("--batch.rosw", "1"), nil, "flag --batch.rosw: no such setting; did you mean --batch.rows?"},
		{"unknown variable", needed, []string{"LEDGERLAKE_BUKCET=x"}, "environment LEDGERLAKE_BUKCET: no such setting; did you mean LEDGERLAKE_BUCKET?"},
		{"flag of another command", []string{"doctor", "--bucket", "s3://bucket", "--topics", "t"}, nil, "topics (flag --topics): this command has no use for it; --help lists its flags"},
		{"settings that clash", with("--dlq-topic", "t"), nil, "dlq-topic (flag --dlq-topic): is one of the topics that are read: rejects would come back for ever"},
		{"a path of prompts that is a column", with("--prompt-paths", "call.model"), nil, `prompt-paths (flag --prompt-paths): bad prompt path: "call.model" fills a column or a slot`},
		{"bucket URL", []string{"run", "--topics", "t", "--bucket", "s3://bucket?regoin=x"}, nil, `bucket (flag --bucket): bucket URL: no setting is called "regoin"; there are region, endpoint, path-style, access-key, secret-key, session-token, profile, role-arn, external-id, sse, kms-key, storage-class, checksum, timeout, attempts`},
		{"half of a key", needed, []string{"LEDGERLAKE_S3_ACCESS_KEY=id"}, "s3: settings of bucket: access-key and secret-key go together"},
		{"no such CA", with("--kafka.tls", "--kafka.ca-file", dir+"/none"), nil, "kafka.ca-file (flag --kafka.ca-file): open " + dir + "/none: no such file or directory"},
		{"no CA in it", with("--kafka.tls", "--kafka.ca-file", file), nil, "kafka.ca-file (flag --kafka.ca-file): want certificates in PEM, found none"},
		{"no certificate", with("--kafka.tls", "--kafka.cert-file", file, "--kafka.key-file", file), nil, "kafka.cert-file (flag --kafka.cert-file): tls: failed to find any PEM data in certificate input"},
		{"versions", []string{"versions", "--yaml"}, nil, `versions: not understood: want --json or nothing, not ["--yaml"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := call(t, tt.environ, tt.args...)
			if want := program + ": " + tt.want + "\n"; stdout != "" || stderr != want || code != exitBadUse {
				t.Errorf("exit %d, want %d\n got %s%s\nwant %s", code, exitBadUse, stdout, stderr, want)
			}
		})
	}
}

// A store that cannot be used is no bad configuration: exit code 1, and one
// line that says why; ingest has not begun.
func TestStoreThatRefuses(t *testing.T) {
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>no</Message></Error>`))
	}))
	defer store.Close()
	keys := []string{"LEDGERLAKE_S3_ACCESS_KEY=id", "LEDGERLAKE_S3_SECRET_KEY=hunter2"}
	bucket := "s3://bucket?endpoint=" + store.URL
	for _, args := range [][]string{{"run", "--topics", "t", "--bucket", bucket, "--http.listen", "none"}, {"doctor", "--bucket", bucket}} {
		_, stderr, code := call(t, keys, args...)
		if code != exitFailure || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "unsafe store: list: ") || strings.Contains(stderr, "hunter2") {
			t.Errorf("%s: exit %d, stderr %q", args[0], code, stderr)
		}
	}
}

// Where a store refuses the first write, which makes the archive, ingest says
// what the doctor finds: here, which checksum the store would take.
func TestStoreThatRefusesChecksums(t *testing.T) {
	answer := func(w http.ResponseWriter, status int, code string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `<Error><Code>%s</Code></Error>`, code)
	}
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.Header.Get("X-Amz-Checksum-Crc32") != "":
			answer(w, http.StatusBadRequest, "InvalidArgument")
		case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
			_, _ = io.WriteString(w, `<ListBucketResult/>`)
		case r.Method == http.MethodGet:
			answer(w, http.StatusNotFound, "NoSuchKey")
		}
	}))
	defer store.Close()
	keys := []string{"LEDGERLAKE_S3_ACCESS_KEY=id", "LEDGERLAKE_S3_SECRET_KEY=x"}
	_, stderr, code := call(t, keys, "run", "--topics", "t", "--http.listen", "none", "--bucket", "s3://bucket?endpoint="+store.URL)
	if code != exitFailure || !strings.Contains(stderr, "unsafe store: checksum: the store refuses uploads with checksum=crc32") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

// Who gives up before the store has answered gets no verdict.
func TestGivingUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	environ := []string{"LEDGERLAKE_S3_ACCESS_KEY=id", "LEDGERLAKE_S3_SECRET_KEY=x"}
	err := run(ctx, []string{"doctor", "--bucket", "s3://bucket?endpoint=http://127.0.0.1:1"}, environ, new(bytes.Buffer), new(bytes.Buffer))
	if exitCode(err) != exitFailure || !strings.Contains(err.Error(), "no verdict") {
		t.Errorf("exit %d, error %v", exitCode(err), err)
	}
}

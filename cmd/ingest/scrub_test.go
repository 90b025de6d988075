package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
)

// The policy that scrub-policy names is that of every row; neither the log nor the
// metrics show what it took.
func TestRunScrubs(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("name: pii\nrules: [{rule: ssn-us}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	a := s.start("--topics", "audit.calls", "--scrub-policy", policy)
	for _, value := range []string{
		`{"recordId":"01KRNR3ZG00000000000000001","sessionId":"s","turnId":"t","stageId":"post-turn","seqWithinTurn":0,"createdAt":"2026-05-15T12:00:00.000Z","tenantId":"acme","note":"123-45-6789"}`,
		`no JSON: 123-45-6789`,
	} {
		if err := s.client.ProduceSync(t.Context(), &kgo.Record{Topic: "audit.calls", Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s.until("both are durable", func() bool { return s.committed("audit.calls", 0) == 2 })
	shown := metricsOf(a)
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	if shown += a.log.String(); strings.Contains(shown, "6789") || !strings.Contains(shown, `"scrubbing":"pii@`) {
		t.Errorf("log and metrics: %s", shown)
	}
	rows := 0
	for o, err := range s.store.List(t.Context(), "log/", "") {
		if err != nil {
			t.Fatal(err)
		}
		body, err := s.store.Get(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		segment, err := archive.ReadSegment(body, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range segment.Rows {
			rows++
			stored := string(row.Slots[audit.SlotExt]) + string(row.Slots[audit.SlotRaw])
			if strings.Contains(stored, "6789") || !strings.Contains(stored, "[redacted:ssn-us]") || row.RedactionPolicy.Valid && !strings.HasPrefix(row.RedactionPolicy.S, "pii@") {
				t.Errorf("offset %d: %s, policy %v", row.KafkaOffset.N, stored, row.RedactionPolicy)
			}
		}
	}
	if rows != 2 || s.proved() != 2 {
		t.Errorf("%d rows", rows)
	}
}

// The command prints lines as they would be stored, and what was done.
func TestScrub(t *testing.T) {
	dir := t.TempDir()
	policy, lines := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "lines")
	for path, text := range map[string]string{
		policy: "name: pii\nrules: [{rule: ssn-us}]\ntenants: {beta: []}\n",
		lines:  `{"a":"123-45-6789","b":1}` + "\nno JSON: 123-45-6789\nnothing",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, code := call(t, nil, "scrub", "--scrub-policy", policy, "--in", lines)
	if want := `{"a":"[redacted:ssn-us]","b":1}` + "\nno JSON: [redacted:ssn-us]\nnothing\n"; stdout != want || code != exitClean {
		t.Errorf("exit %d: %s", code, stdout)
	}
	if !strings.HasPrefix(stderr, "pii@") || !strings.HasSuffix(stderr, ": 2 of 3 lines changed\n") {
		t.Errorf("stderr %q", stderr)
	}
	if stdout, _, _ := call(t, nil, "scrub", "--scrub-policy", policy, "--in", lines, "--tenant", "beta"); strings.Contains(stdout, "redacted") {
		t.Errorf("a tenant without rules: %s", stdout)
	}
	for want, args := range map[string][]string{
		"scrub-policy: not set":             {"scrub"},
		"want name and rules":               {"scrub", "--scrub-policy", os.DevNull},
		"no such file":                      {"scrub", "--scrub-policy", policy, "--in", lines + "x"},
		"want run, doctor, scrub, versions": {"scrubs"},
	} {
		if _, stderr, code := call(t, nil, args...); code != exitBadUse || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %q", args, code, stderr)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ledgerlake/ledgerlake/internal/metricspage"
	"github.com/ledgerlake/ledgerlake/proof"
)

// says returns the values of a file of metrics, by name.
func says(t *testing.T, name string) map[string]string {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(body)) {
		metric, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		name, _, _ := strings.Cut(metric, "{")
		if ok && line[0] != '#' {
			values[strings.TrimPrefix(name, namespace+"_")] = value
		}
	}
	return values
}

// A run that goes wrong says so, and leaves standing when one last went well;
// one without a verdict has no counts. Nothing but the file is left in its folder.
func TestMetricsFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "ledgerlake.prom")
	sound, bad := lay(t, good), lay(t, changed)
	run := func(exit int, target string) map[string]string {
		t.Helper()
		if code, _, _, err := do(t, "--metrics-file", name, target); code != exit {
			t.Fatalf("exit %d, want %d: %v", code, exit, err)
		}
		return says(t, name)
	}
	if m := run(2, filepath.Join(dir, "nowhere")); m["exit_code"] != "2" || m["last_success_timestamp_seconds"] != "" || m["last_run_timestamp_seconds"] == "" || m["rows"] != "" {
		t.Errorf("no archive, and nothing before: %v", m)
	}
	first := run(0, sound)
	if first["exit_code"] != "0" || first["rows"] != "7" || first["segments"] != "4" || first["faults"] != "0" || first["last_success_timestamp_seconds"] != first["last_run_timestamp_seconds"] {
		t.Errorf("a sound archive: %v", first)
	}
	if m := run(1, bad); m["exit_code"] != "1" || m["faults"] == "0" || m["last_success_timestamp_seconds"] != first["last_success_timestamp_seconds"] {
		t.Errorf("a bad archive after a sound one at %s: %v", first["last_success_timestamp_seconds"], m)
	}
	if m := run(2, filepath.Join(dir, "nowhere")); m["exit_code"] != "2" || m["last_success_timestamp_seconds"] != first["last_success_timestamp_seconds"] || m["rows"] != "" {
		t.Errorf("no archive: %v", m)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A file that cannot be written is no success, and hides no fault.
func TestMetricsFileCannotBeWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "nowhere", "ledgerlake.prom")
	if code, _, _, err := do(t, "--metrics-file", name, lay(t, good)); code != 2 || err == nil || !strings.Contains(err.Error(), "--metrics-file") {
		t.Errorf("a sound archive: exit %d, %v", code, err)
	}
	if code, _, _, err := do(t, "--metrics-file", name, lay(t, changed)); code != 1 || err == nil {
		t.Errorf("a bad archive: exit %d, %v", code, err)
	}
}

// How a store is reached stands in no label.
func TestTargetLabel(t *testing.T) {
	for target, want := range map[string]string{"s3://audit/x?endpoint=http://10.0.0.1:9000": "s3://audit/x", "./copy": "./copy"} {
		if got := targetLabel(target); got != want {
			t.Errorf("%s is %s, want %s", target, got, want)
		}
	}
}

// docs/metrics.md has what the code has, by Prometheus' own rules.
func TestMetricsAreDocumented(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := metricsFile{target: "s3://audit"}
	r := f.metrics(&ran{began: now, ended: now, report: &proof.Report{}}, now)
	metricspage.Check(t, "../../docs/metrics.md", "Metrics of ledgerlake-verify", r, namespace, *update)
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/config"
)

// What is wrong with the file of a policy is said with the setting and the line.
func TestReadScrubPolicy(t *testing.T) {
	if p, err := config.ReadScrubPolicy("", nil); p != nil || err != nil {
		t.Errorf("no file: %v, %v", p, err)
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	origins := config.Origins{"scrub-policy": "--scrub-policy"}
	for text, want := range map[string]string{
		"":                                 "empty file",
		"name: x\nrules:\n- {rule: ssn}\n": `rules.1.rule (line 3): "ssn" is no rule`,
		"name: x\nrules:\n- {rule: ssn-us}\nx: y": "x (line 4): no such member",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var fault *config.Error
		if _, err := config.ReadScrubPolicy(path, origins); !errors.As(err, &fault) || fault.Name != "scrub-policy" || fault.Source != "--scrub-policy" || !strings.Contains(fault.Fault, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(path, []byte("name: x\nrules: [{rule: ssn-us}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := config.ReadScrubPolicy(path, origins); err != nil || !strings.HasPrefix(p.ID(), "x@") {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := config.ReadScrubPolicy(path+"x", origins); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no such file: %v", err)
	}
}

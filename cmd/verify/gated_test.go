package main

import (
	"os"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// row, prove and pack show nothing that was ordered to be erased, in any of their
// forms, and say that they leave it out.
func TestCommandsHideWhatIsGated(t *testing.T) {
	const secret = "user-1000"
	target := lay(t, func(a *prooftest.Archive, l *prooftest.Line) {
		l.Anchor()
		c := a.Line(audit.ControlTopic, 0)
		c.Segment(func(b *prooftest.Batch) {
			m := prooftest.Redaction(map[string]any{"userId": secret}, "*")
			m["user"] = true
			b.Order("acme", audit.KindRedaction, prooftest.OrderID(1), m)
		})
		c.Anchor()
	})
	const says = "redaction 01KBCDEFGHJKMNPQRSTW000001 was ordered"
	file := t.TempDir() + "/out"
	for _, args := range [][]string{
		{"row", "--tenant", "acme", "--seq", "0", target},
		{"row", "--tenant", "acme", "--seq", "0", "--json", target},
		{"prove", "--tenant", "acme", "--seq", "0", target, "-o", file},
		{"pack", "--tenant", "acme", "--from", "2026-01-01", target, "-o", file},
	} {
		os.Remove(file)
		_, stdout, stderr, err := runs(args...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		written, _ := os.ReadFile(file)
		if all := stdout + stderr + string(written); strings.Contains(all, secret) || strings.Contains(all, "requestedModel") && args[0] != "pack" {
			t.Errorf("%q shows what is gated: %s", args, all)
		}
		if !strings.Contains(stderr, says) && !strings.Contains(stderr, "shown without what is to be erased") {
			t.Errorf("%q does not say that something is left out: %s", args, stderr)
		}
	}
	// By another topic's word it would be shown: the test looks at the right row.
	_, stdout, _, err := runs("row", "--tenant", "acme", "--seq", "0", "--control-topic", "other", target)
	if err != nil || !strings.Contains(stdout, secret) || !strings.Contains(stdout, "requestedModel") {
		t.Errorf("%v: %s", err, stdout)
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/proof"
)

// An operator is shown what a reset would do; does it; and the partition goes
// on, with the reset in plain sight.
func TestResetChain(t *testing.T) {
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	first := s.start("--topics", "audit.calls", "--anchor-every", "24h")
	s.until("it holds the partition", first.holds(1))
	s.produce("audit.calls", 0, 3)
	s.until("three rows", func() bool { return s.committed("audit.calls", 0) == 3 })
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	order := func(more ...string) (stdout, stderr string, code int) {
		args := append([]string{
			"reset-chain", "--topic", "audit.calls", "--partition", "0", "--reason", "a test",
			"--brokers", strings.Join(s.cluster.ListenAddrs(), ","), "--bucket", "s3://bucket?endpoint=" + s.store.url, "--control-topic", "none",
		}, more...)
		return call(t, []string{"LEDGERLAKE_S3_ACCESS_KEY=id", "LEDGERLAKE_S3_SECRET_KEY=secret"}, args...)
	}
	if _, stderr, code := order("--yes"); code != exitFailure || !strings.Contains(stderr, "nothing is to be declared void") {
		t.Errorf("a line that is whole: exit %d, %s", code, stderr)
	}
	if _, stderr, code := order("--reason", ""); code != exitBadUse {
		t.Errorf("no reason: exit %d, %s", code, stderr)
	}

	// Somebody writes into the line.
	root, err := archive.OpenRoot(t.Context(), s.store.Memory)
	if err != nil {
		t.Fatal(err)
	}
	var newest string
	for o, err := range s.store.Memory.List(t.Context(), "log/", "") {
		if err != nil {
			t.Fatal(err)
		}
		newest = o.Key
	}
	name, ok := archive.ParseSegmentKey(newest)
	if !ok {
		t.Fatal(newest)
	}
	l := archive.Line{Topic: "audit.calls", TopicID: name.TopicID}
	bad := name.Ordinal + 1
	if _, err := s.store.Memory.Create(t.Context(), archive.SegmentKey(l, bad), []byte("PAR1 garbage PAR1")); err != nil {
		t.Fatal(err)
	}
	stopped := s.start("--topics", "audit.calls")
	s.until("it stops", func() bool {
		return strings.Contains(stopped.log.String(), "reset-chain --topic audit.calls --partition 0")
	})
	_ = stopped.stop()

	stdout, stderr, code := order()
	for _, want := range []string{"does not continue the line", "whose rows it holds cannot be told", "log 1: 3 rows stay, 0 go; epoch 1", "read again from offset 3 on; it holds 0 to 3", "nothing is lost", "Nothing was done. --yes does it."} {
		if code != exitClean || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, %s\nwant %q in\n%s", code, stderr, want, stdout)
		}
	}
	if strings.Contains(stdout+stderr, "acme") {
		t.Error("a tenant is named, which nobody asked for")
	}
	if stdout, stderr, code = order("--yes", "--log-tenants"); code != exitClean || !strings.Contains(stdout, "Done: segment") || !strings.Contains(stdout, `tenant "acme"`) {
		t.Errorf("exit %d, %s, %s", code, stdout, stderr)
	}
	again := s.start("--topics", "audit.calls")
	s.until("it goes on", again.holds(1))
	s.produce("audit.calls", 0, 2)
	s.until("five rows", func() bool { return s.committed("audit.calls", 0) == 5 })
	if err := again.stop(); err != nil {
		t.Fatal(err)
	}
	r, err := proof.Verify(t.Context(), s.store.Memory, proof.Options{Unsigned: true})
	if err != nil || r.ExitCode() != 4 || r.ArchiveID != root.ArchiveID || r.Totals.Rows != 6 {
		t.Errorf("verify: %+v, %v", r, err)
	}
}

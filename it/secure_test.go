//go:build it

package it

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// An archive does not show how its records came: each way to reach a broker
// that keeps strangers out gives one that is proved and complete. Who is kept
// out says why, and tries again.
func TestSecureConnections(t *testing.T) {
	k, p := securePair(t)
	wrong := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(wrong, []byte("guess\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	right := "LEDGERLAKE_KAFKA_SASL_PASSWORD=" + parts.KafkaPassword
	trust := []string{"--kafka.tls", "--kafka.ca-file", k.CAFile}
	mtls := append(trust[:3:3], "--kafka.cert-file", k.CertFile, "--kafka.key-file", k.KeyFile)
	sasl := func(mechanism string) []string {
		return []string{"--kafka.sasl.mechanism", mechanism, "--kafka.sasl.user", parts.KafkaUser}
	}
	guess := []string{"--kafka.sasl.password-file", wrong}
	refused := p.startRefused(t, []refusal{
		{"wrong password by scram", k.SASLAddr, slices.Concat(trust, sasl("scram-sha-512"), guess), "", "SASL_AUTHENTICATION_FAILED"},
		{"wrong password by plain", k.SASLAddr, slices.Concat(trust, sasl("plain"), guess), "", "SASL_AUTHENTICATION_FAILED"},
		{"a stranger's certificate", k.SASLAddr, append(sasl("plain"), "--kafka.tls"), right, "certificate signed by unknown authority"},
		{"no certificate of the client's", k.TLSAddr, trust, "", "bad certificate"},
		{"no TLS", k.SASLAddr, sasl("scram-sha-512"), right, "is this a plaintext connection speaking to a tls endpoint?"},
	})
	for _, c := range []struct {
		name string
		addr string
		args []string
		env  string
	}{
		{"scram-sha-512", k.SASLAddr, slices.Concat(trust, sasl("scram-sha-512")), right},
		{"scram-sha-256", k.SASLAddr, slices.Concat(trust, sasl("scram-sha-256")), right},
		{"plain", k.SASLAddr, slices.Concat(trust, sasl("plain")), right},
		{"mtls", k.TLSAddr, mtls, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := p.newStream(t, "secure."+c.name).by(c.addr, c.env)
			s.waitForTopic(t)
			ingest := s.ingest(t, c.args...)
			sent, err := s.sendWithFranz(t.Context(), 500, 0)
			if err != nil {
				t.Fatal(err)
			}
			s.finish(t, ingest)
			s.requireAll(t, sent)
			if strings.Contains(ingest.Output(), parts.KafkaPassword) {
				t.Error("the log shows the password")
			}
		})
	}
	for _, r := range refused {
		t.Run(r.name, func(t *testing.T) { r.requireWaiting(t) })
	}
}

// waitForTopic waits until the broker answers for a topic that it has just
// made. A client that asks before asks again seconds later.
func (s *stream) waitForTopic(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		ends, err := kadm.NewClient(s.client).ListEndOffsets(t.Context(), s.topic)
		if err = errors.Join(err, ends.Error()); err == nil && len(ends[s.topic]) == partitions {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", s.topic, err)
		}
	}
}

// A refusal is a way not to reach a broker, and what a log must say of it.
type refusal struct {
	name string
	addr string
	args []string
	env  string
	says string
}

// A refused is an ingest that a broker keeps out.
type refused struct {
	refusal
	*stream
	process *parts.Process
}

// startRefused starts an ingest for each way, all at once: what they have to
// show takes time.
func (p *pair) startRefused(t *testing.T, ways []refusal) []refused {
	t.Helper()
	var all []refused
	for i, way := range ways {
		s := p.newStream(t, fmt.Sprintf("refused-%d", i)).by(way.addr, way.env)
		all = append(all, refused{way, s, s.ingest(t, way.args...)})
	}
	return all
}

// requireWaiting requires that ingest says why it reaches no broker, that it
// goes on trying, and that a SIGTERM is a clean end all the same.
func (r refused) requireWaiting(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); strings.Count(warnings(r.process.Output()), r.says) < 2; time.Sleep(50 * time.Millisecond) {
		if !r.process.Running() || time.Now().After(end) {
			t.Fatalf("ingest has ended, or has not said %q twice: %s", r.says, tail(r.process.Output()))
		}
	}
	if code, err := r.process.Stop(30 * time.Second); err != nil || code != 0 {
		t.Errorf("ingest: exit %d after SIGTERM, %v", code, err)
	}
	if n := r.segments(t); n != 0 {
		t.Errorf("%d segments of a broker that let nobody in", n)
	}
}

// warnings returns the lines of a log that are warnings or worse.
func warnings(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// securePair returns a broker that is also reached over TLS, and the pair of
// which it is a part, by its plain listener.
func securePair(t *testing.T) (*parts.SecureKafka, *pair) {
	t.Helper()
	k, err := parts.StartSecureKafka(filepath.Join(t.TempDir(), "kafka"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Kill() })
	s := store(t)
	return k, &pair{brokers: k.Addr, bucket: parts.BucketURL(s.Endpoint, "archive"), bucketDir: s.Dir("archive"), env: parts.Credentials()}
}

// by returns the stream with an ingest that reaches the broker at another
// address, and has one more variable in its environment.
func (s *stream) by(addr, env string) *stream {
	p := *s.pair
	p.brokers = addr
	if env != "" {
		p.env = append(p.env[:len(p.env):len(p.env)], env)
	}
	s.pair = &p
	return s
}

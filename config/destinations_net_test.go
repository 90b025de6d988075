package config

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink/kafkasink"
)

const netFile = `destinations:
  - name: siem
    type: syslog
    address: siem.example:6514
    format: cef
    facility: 16
  - name: bus
    type: nats
    urls: [tls://a.example:4222, tls://b.example:4222]
    prefix: audit.eu
    token-env: BUS_TOKEN
  - name: topic
    type: kafka
    brokers: [a.example:9092]
    topic: audit.{tenant}
    tls: true
    sasl:
      mechanism: scram-sha-512
      user: export
      password-env: KAFKA_PASSWORD
`

var netEnviron = []string{"BUS_TOKEN=hush", "KAFKA_PASSWORD=hush"}

// Destinations of a protocol of their own are read whole, and opened without that
// anything is reached.
func TestNetSettings(t *testing.T) {
	all, err := parseDestinations([]byte(netFile), netEnviron)
	if err != nil {
		t.Fatal(err)
	}
	if all[0].Format != event.CEF || all[0].Linger != time.Second || all[1].Format != event.JSON {
		t.Errorf("%+v", all)
	}
	var reached *Kafka
	for i := range all {
		d := &all[i]
		d.Brokers = func(_ context.Context, brokers []string, k *Kafka) (kafkasink.Connection, error) {
			reached = k
			return nil, nil
		}
		s, err := d.Open(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if l := s.Limits(); l.Events == 0 || l.EventBytes == 0 || l.BatchBytes == 0 {
			t.Errorf("%s: no limits: %+v", d.Name, l)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if strings.Contains(d.Spec, "hush") {
			t.Errorf("%s: the spec tells a secret: %s", d.Name, d.Spec)
		}
	}
	if reached == nil || reached.ClientID != "ledgerlake-export" || !reached.TLS || reached.SASL.Password.Reveal() != "hush" {
		t.Errorf("%+v", reached)
	}
}

// What cannot be is refused by the name of its setting, as it stands in the file.
func TestNetSettingsThatCannotBe(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"address: siem.example:6514", "address: siem.example", "host:port"},
		{"    address: siem.example:6514\n", "", "no address"},
		{"facility: 16", "facility: 24", "from 1 to 23"},
		{"facility: 16", "enterprise: x", "32473"},
		{"facility: 16", "tls:\n      certificate-env: BUS_TOKEN", "tls.certificate: goes with tls.key"},
		{"facility: 16", "allow-plaintext: true\n    tls:\n      ca-env: BUS_TOKEN", "allow-plaintext"},
		{"facility: 16", "confirm: perhaps", "close, open"},
		{"tls://a.example:4222", "nats://user:hush@a.example", "without a user"},
		{"prefix: audit.eu", "prefix: audit.*", "letters, digits"},
		{"token-env: BUS_TOKEN", "token: hush", "token-file"},
		{"topic: audit.{tenant}", "topic: audit/{tenant}", "{tenant} or {kind}"},
		{"tls: true", "ca-file: /ca.pem", "ca-file: has no use without tls"},
		{"user: export", "scopes: [x]", "sasl"},
	} {
		if !strings.Contains(netFile, c.from) {
			t.Fatalf("no %q", c.from)
		}
		_, err := parseDestinations([]byte(strings.Replace(netFile, c.from, c.to, 1)), netEnviron)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush@") {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}

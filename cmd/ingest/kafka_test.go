package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ledgerlake/ledgerlake/config"
)

// A broker that speaks TLS, asks for a client's certificate and wants a
// password lets in who has them all, and nobody else.
func TestConnection(t *testing.T) {
	own := newIdentity(t)
	ca, cert, key, server := own.cert, own.cert, own.key, own.server()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(server), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "plain", "secret"), kfake.Superuser("SCRAM-SHA-256", "s256", "secret"), kfake.Superuser("SCRAM-SHA-512", "s512", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	right := config.Kafka{ClientID: "test", TLS: true, CAFile: ca, CertFile: cert, KeyFile: key}
	for _, tt := range []struct {
		name                      string
		change                    func(*config.Kafka)
		mechanism, user, password string
		want                      bool
	}{
		{"wrong password", nil, config.SASLPlain, "plain", "guess", false},
		{"another mechanism", nil, config.SASLScram256, "plain", "secret", false},
		{"no password", nil, "", "", "", false},
		{"no TLS", func(k *config.Kafka) { k.TLS = false }, config.SASLPlain, "plain", "secret", false},
		{"the system's CAs", func(k *config.Kafka) { k.CAFile = "" }, config.SASLPlain, "plain", "secret", false},
		{"no certificate", func(k *config.Kafka) { k.CertFile, k.KeyFile = "", "" }, config.SASLPlain, "plain", "secret", false},
		{"plain", nil, config.SASLPlain, "plain", "secret", true},
		{"scram-sha-256", nil, config.SASLScram256, "s256", "secret", true},
		{"scram-sha-512", nil, config.SASLScram512, "s512", "secret", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := config.Ingest{Brokers: cluster.ListenAddrs(), Kafka: right}
			if tt.change != nil {
				tt.change(&s.Kafka)
			}
			s.Kafka.SASL = config.SASL{Mechanism: tt.mechanism, User: tt.user, Password: config.NewSecret(tt.password)}
			if got := ping(t, &s); got != tt.want {
				t.Errorf("let in is %v, want %v", got, tt.want)
			}
		})
	}
}

// A topic that is not there, and a password that is sent in the clear, are
// warned of; a topic that is there is not.
func TestWarnings(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "there"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "plain", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	s := config.Ingest{Brokers: cluster.ListenAddrs(), Topics: []string{"there", "not-there"}}
	s.Kafka = config.Kafka{ClientID: "test", SASL: config.SASL{Mechanism: config.SASLPlain, User: "plain", Password: config.NewSecret("secret")}}
	opts, err := connection(t.Context(), &s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, log := reporting(false)
	warnings(t.Context(), newLogger(log, config.Log{Level: "info", Format: "json"}), &s, opts)
	got := lines(t, log)
	if len(got) != 2 || !strings.Contains(fmt.Sprint(got[0]["msg"]), "in the clear") || got[1]["topic"] != "not-there" {
		t.Errorf("warned of %v", got)
	}
}

// Of each secret that anybody on the way can read there is a word, and of none
// that is safe.
func TestInTheClear(t *testing.T) {
	for _, tt := range []struct {
		k    config.Kafka
		want int
	}{
		{config.Kafka{SASL: config.SASL{Mechanism: config.SASLPlain}}, 1},
		{config.Kafka{SASL: config.SASL{Mechanism: config.SASLOAuthBearer}}, 1},
		{config.Kafka{SASL: config.SASL{Mechanism: config.SASLOAuthBearer, OAuth: config.OAuth{TokenURL: "http://id.example"}}}, 2},
		{config.Kafka{TLS: true, SASL: config.SASL{Mechanism: config.SASLOAuthBearer, OAuth: config.OAuth{TokenURL: "http://id.example"}}}, 1},
		{config.Kafka{TLS: true, SASL: config.SASL{Mechanism: config.SASLOAuthBearer, OAuth: config.OAuth{TokenURL: "https://id.example"}}}, 0},
		{config.Kafka{TLS: true, SASL: config.SASL{Mechanism: config.SASLPlain}}, 0},
		{config.Kafka{SASL: config.SASL{Mechanism: config.SASLScram512}}, 0},
		{config.Kafka{}, 0},
	} {
		if got := inTheClear(&tt.k); len(got) != tt.want {
			t.Errorf("%+v: %q", tt.k, got)
		}
	}
}

// What is named in the settings is warned of where it is not there, also where
// only a partition of it is named; a pattern names nothing.
func TestNamed(t *testing.T) {
	for _, tt := range []struct {
		s    config.Ingest
		want string
	}{
		{config.Ingest{Topics: []string{"a", "b"}, TopicPattern: "c.*"}, "[a b]"},
		{config.Ingest{Assign: []config.Partition{{Topic: "a", Number: 1}, {Topic: "b"}}}, "[a b]"},
		{config.Ingest{TopicPattern: "c.*"}, "[]"},
	} {
		if got := fmt.Sprint(named(&tt.s)); got != tt.want {
			t.Errorf("named %s, want %s", got, tt.want)
		}
	}
}

// ping reports whether a client with these settings is let in.
func ping(t *testing.T, s *config.Ingest) bool {
	t.Helper()
	opts, err := connection(t.Context(), s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return letIn(t, opts)
}

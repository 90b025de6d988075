package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
)

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
	warnings(t.Context(), daemon.NewLogger(log, config.Log{Level: "info", Format: "json"}), &s, opts)
	got := lines(t, log)
	if len(got) != 2 || !strings.Contains(fmt.Sprint(got[0]["msg"]), "in the clear") || got[1]["topic"] != "not-there" {
		t.Errorf("warned of %v", got)
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

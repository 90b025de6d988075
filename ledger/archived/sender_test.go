package archived_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/ledger/archived"
)

// An order goes to the only partition of the control topic as it is; a topic that
// is not there, or has two partitions, is refused.
func TestSender(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, audit.ControlTopic), kfake.SeedTopics(2, "two"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	brokers := kgo.SeedBrokers(c.ListenAddrs()...)
	m := audit.Message{Key: []byte("acme"), Value: []byte(`{"a":1}`), Headers: []audit.MessageHeader{{Name: audit.HeaderKind, Value: []byte("redaction")}}}
	for topic, says := range map[string]string{"": "", "two": "has 2 partitions", "none": "does not exist"} {
		s, err := archived.NewSender(topic, brokers)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Send(t.Context(), m)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("topic %q: %v, want %s", topic, err, says)
		}
		s.Close()
	}
	client, err := kgo.NewClient(brokers, kgo.ConsumeTopics(audit.ControlTopic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	records := client.PollFetches(ctx).Records()
	if len(records) != 1 || string(records[0].Key) != "acme" || string(records[0].Value) != `{"a":1}` || len(records[0].Headers) != 1 || string(records[0].Headers[0].Value) != "redaction" {
		t.Errorf("%+v", records)
	}
}

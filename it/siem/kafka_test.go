//go:build it

package siem

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/kafkasink"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// A read is a record as kcat prints it.
type read struct {
	Topic     string
	Partition int
	Offset    int64
	Key       string
	Payload   string
	Headers   []string
}

func (r *read) header(name string) string {
	for i := 0; i+1 < len(r.Headers); i += 2 {
		if r.Headers[i] == name {
			return r.Headers[i+1]
		}
	}
	return ""
}

// kcat returns all that a topic has, in the order of its partitions.
func kcat(t *testing.T, broker, topic string) (all []read) {
	t.Helper()
	out, err := exec.Command("kcat", "-C", "-q", "-e", "-J", "-b", broker, "-t", topic, "-X", "fetch.message.max.bytes=10000000").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var r read
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %.200s", err, line)
		}
		all = append(all, r)
	}
	return all
}

func startKafka(t *testing.T, topics map[string]map[string]*string) (*parts.Kafka, kafkasink.Connection) {
	t.Helper()
	k, err := parts.StartKafka(filepath.Join(t.TempDir(), "kafka"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Kill)
	connection := kafkasink.Connection{kgo.SeedBrokers(k.Addr)}
	client, err := kgo.NewClient(connection...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for topic, config := range topics {
		if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 3, 1, config, topic); err != nil {
			t.Fatal(err)
		}
	}
	return k, connection
}

// What is delivered to Apache Kafka is there by kcat: a tenant in one partition, in
// its order, with its headers, once.
func TestKafkaHasAllOfIt(t *testing.T) {
	k, connection := startKafka(t, map[string]map[string]*string{"audit": nil})
	s, err := kafkasink.New(kafkasink.Options{Connection: connection, Topic: "audit"})
	if err != nil {
		t.Fatal(err)
	}
	sent := deliverAll(t, s, event.JSON, utf8Events(3000))
	byTenant := map[string][]message{}
	for _, m := range sent {
		byTenant[m.ev.Tenant] = append(byTenant[m.ev.Tenant], m)
	}
	got := kcat(t, k.Addr, "audit")
	if len(got) != len(sent) {
		t.Errorf("sent %d, found %d", len(sent), len(got))
	}
	partitions := map[string]int{}
	for _, r := range got {
		tenant := r.header("tenant")
		if at, ok := partitions[tenant]; ok && at != r.Partition && tenant != "" {
			t.Fatalf("tenant %q is in two partitions", tenant)
		}
		partitions[tenant] = r.Partition
		if tenant == "" {
			continue // checks, which have no key
		}
		want := byTenant[tenant][0]
		byTenant[tenant] = byTenant[tenant][1:]
		if r.Payload != string(want.body) || r.Key != tenant {
			t.Fatalf("tenant %q: %.200q, want %.200q", tenant, r.Payload, want.body)
		}
		if ev := want.ev; ev.IsRow() && (r.header("seq") != fmt.Sprint(ev.Seq) || r.header("row_hash") != ev.ID || r.header("kind") != ev.Row.Kind.S) {
			t.Fatalf("headers %v of seq %d", r.Headers, ev.Seq)
		}
	}
}

// utf8Events are those whose headers kcat can print.
func utf8Events(n int) (all []*event.Event) {
	for _, ev := range someEvents(n) {
		if utf8.ValidString(ev.Tenant) && (!ev.IsRow() || utf8.ValidString(ev.Row.Kind.S)) {
			all = append(all, ev)
		}
	}
	return all
}

// A topic that takes less than we think splits, one that is not there suspends, and
// a broker that is gone is waited for.
func TestKafkaRefusals(t *testing.T) {
	small := "20000"
	k, connection := startKafka(t, map[string]map[string]*string{"small": {"max.message.bytes": &small}})
	deliver := func(topic string, size int) sink.Verdict {
		s, err := kafkasink.New(kafkasink.Options{Connection: connection, Topic: topic, Compression: kafkasink.None, Timeout: 5e9})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		return s.Deliver(t.Context(), []sink.Message{{Event: eventtest.Events(1, 1)[0], Body: make([]byte, size)}}).Verdicts[0]
	}
	if v := deliver("small", 1000); v.Outcome != sink.Delivered {
		t.Error(v)
	}
	if v := deliver("small", 30_000); v.Outcome != sink.Split {
		t.Error(v)
	}
	if v := deliver("none", 1000); v.Outcome != sink.Suspend || !strings.Contains(v.Reason, "UNKNOWN_TOPIC") {
		t.Error(v)
	}
	k.Kill()
	if v := deliver("small", 1000); v.Outcome != sink.Retry {
		t.Error(v)
	}
}

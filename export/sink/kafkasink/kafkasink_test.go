package kafkasink

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

func start(t *testing.T, topics ...string) (*kfake.Cluster, Connection) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topics...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, Connection{kgo.SeedBrokers(c.ListenAddrs()...), kgo.MetadataMinAge(10 * time.Millisecond)}
}

func open(t *testing.T, o Options) *Sink {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	return s
}

func messages(n int) (all []sink.Message) {
	for _, ev := range eventtest.Events(5, n) {
		all = append(all, sink.Message{Event: ev, Body: []byte(ev.ID)})
	}
	return all
}

// consume returns n records of some topics, those of a partition in its order.
func consume(t *testing.T, c Connection, n int, topics ...string) (all []*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(append(c, kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for len(all) < n {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		fetches := client.PollFetches(ctx)
		cancel()
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of %d: %v", len(all), n, err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

// A tenant's events are in one partition, in their order, each with headers that
// say what it is, whatever the tenant is called.
func TestTenantsKeepTheirOrder(t *testing.T) {
	_, c := start(t, "audit")
	s := open(t, Options{Connection: c, Topic: "audit"})
	all := messages(1000)
	byTenant := map[string][]*event.Event{}
	for i := 0; i < len(all); i += 100 {
		batch := all[i:min(i+100, len(all))]
		if r := s.Deliver(t.Context(), batch); !r.Done() {
			t.Fatalf("%+v", r)
		}
	}
	for _, m := range all {
		byTenant[m.Event.Tenant] = append(byTenant[m.Event.Tenant], m.Event)
	}
	partitions := map[string]int32{}
	for _, r := range consume(t, c, len(all), "audit") {
		h := map[string]string{}
		for _, one := range r.Headers {
			h[one.Key] = string(one.Value)
		}
		tenant := h["tenant"]
		if at, ok := partitions[tenant]; ok && at != r.Partition && tenant != "" || string(r.Key) != tenant {
			t.Fatalf("tenant %q: key %q in partition %d", tenant, r.Key, r.Partition)
		}
		partitions[tenant] = r.Partition
		if tenant == "" {
			continue // no key, no order
		}
		ev := byTenant[tenant][0]
		byTenant[tenant] = byTenant[tenant][1:]
		if string(r.Value) != ev.ID || h["event"] != string(ev.Kind) {
			t.Fatalf("tenant %q: %s, want %s", tenant, r.Value, ev.ID)
		}
		if ev.IsRow() && (h["seq"] != fmt.Sprint(ev.Seq) || h["row_hash"] != ev.ID || h["kind"] != ev.Row.Kind.S) || !ev.IsRow() && h["id"] != ev.ID {
			t.Fatalf("%v of seq %d", h, ev.Seq)
		}
	}
}

// Topics by pattern are topics whatever a tenant is called, and no two of one name.
func TestTopicsByPattern(t *testing.T) {
	seen := map[string]string{}
	for _, tenant := range append(eventtest.Hostile, "acme", "ac.me", "ac_me", "ac_2eme", "é") {
		name := Escape(tenant)
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("%.50q is %.50q", tenant, name)
		}
		if before, ok := seen[name]; ok && before != tenant {
			t.Errorf("%.50q and %.50q are both %.50q", before, tenant, name)
		}
		seen[name] = tenant
	}
	_, c := start(t, "audit.ac_2eme.call")
	s := open(t, Options{Connection: c, Topic: "audit.{tenant}.{kind}"})
	m := messages(1)[0]
	row := *m.Event.Row
	row.Kind.S = "call"
	ev := *m.Event
	ev.Tenant, ev.Row = "ac.me", &row
	long := ev
	long.Tenant = strings.Repeat("é", 100)
	r := s.Deliver(t.Context(), []sink.Message{{Event: &ev, Body: []byte("x")}, {Event: &long, Body: []byte("x")}})
	if r.Verdicts[0].Outcome != sink.Delivered || r.Verdicts[1].Outcome != sink.Poison {
		t.Errorf("%+v", r)
	}
}

// What a broker says of a batch is what becomes of its records; what comes again
// after an answer that did not arrive is there once.
func TestBrokersAnswers(t *testing.T) {
	for _, c := range []struct {
		answer *kerr.Error
		want   sink.Outcome
	}{
		{kerr.MessageTooLarge, sink.Split},
		{kerr.InvalidRecord, sink.Poison},
		{kerr.TopicAuthorizationFailed, sink.Suspend},
		{kerr.PolicyViolation, sink.Suspend},
		{kerr.NotEnoughReplicas, sink.Retry},
		{kerr.KafkaStorageError, sink.Retry},
	} {
		cluster, conn := start(t, "audit")
		cluster.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			req := kreq.(*kmsg.ProduceRequest)
			resp := req.ResponseKind().(*kmsg.ProduceResponse)
			for _, topic := range req.Topics {
				of := kmsg.NewProduceResponseTopic()
				of.Topic, of.TopicID = topic.Topic, topic.TopicID
				for _, p := range topic.Partitions {
					at := kmsg.NewProduceResponseTopicPartition()
					at.Partition, at.ErrorCode = p.Partition, c.answer.Code
					of.Partitions = append(of.Partitions, at)
				}
				resp.Topics = append(resp.Topics, of)
			}
			return resp, nil, true
		})
		s := open(t, Options{Connection: conn, Topic: "audit", Timeout: time.Second})
		if v := s.Deliver(t.Context(), messages(1)).Verdicts[0]; v.Outcome != c.want || v.Reason == "" {
			t.Errorf("%v: %v, want %v", c.answer, v, c.want)
		}
	}
}

// A topic that is not there is for a person to make; brokers that are away are
// waited for, no longer than an attempt.
func TestNoTopicNoBroker(t *testing.T) {
	cluster, c := start(t, "audit")
	if v := open(t, Options{Connection: c, Topic: "none", Timeout: 20 * time.Second}).Deliver(t.Context(), messages(1)).Verdicts[0]; v.Outcome != sink.Suspend {
		t.Error(v)
	}
	cluster.Close()
	if v := open(t, Options{Connection: c, Topic: "audit", Timeout: time.Second}).Deliver(t.Context(), messages(1)).Verdicts[0]; v.Outcome != sink.Retry {
		t.Error(v)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for want, o := range map[string]Options{
		"compression": {Topic: "a", Compression: "lzma"},
		"topic":       {Topic: "a/b"},
		"messages of": {Topic: "a", MessageBytes: 10},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	for _, topic := range []string{"", ".", "..", "{tenant", "a b", strings.Repeat("a", 250)} {
		if ValidTopic(topic) {
			t.Errorf("%q is a topic", topic)
		}
	}
}

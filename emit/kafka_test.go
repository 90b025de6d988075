package emit

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/ledger"
)

// broker starts a Kafka with a topic of three partitions.
func broker(t *testing.T) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// readAll reads n records of the topic.
func readAll(t *testing.T, c *kfake.Cluster, n int) (all []*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for len(all) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("%d of %d records: %v", len(all), n, err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

// What is recorded is in the topic once Close has returned: under the tenant's key,
// a tenant's records in one partition and in their order.
func TestKafkaHasWhatWasRecorded(t *testing.T) {
	c := broker(t)
	e, err := New(Options{Topic: topic, Kafka: []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"acme", "beta"} {
		e.StartTurn(tenant, Turn{Session: "s", FirstSeq: new(int64(0)), Principal: ledger.Principal{TenantID: tenant}})
		for range 100 {
			e.RecordTokenCostDecision(t.Context(), Site{TurnKey: tenant}, ledger.TokenCost{})
		}
		e.EndTurn(tenant)
	}
	if err := e.RecordSync(t.Context(), e.NewTurn(Turn{Principal: ledger.Principal{TenantID: "gamma"}, Session: "s"}), &ledger.Call{}); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if s := e.Stats(); s.Recorded != 201 || s.Acknowledged != 201 {
		t.Errorf("%+v", s)
	}
	next, partition := map[string]int64{}, map[string]int32{}
	for _, r := range readAll(t, c, 201) {
		tenant := string(r.Key)
		row := decoded(t, r)
		if row.TenantID.S != tenant || row.SeqWithinTurn.N != next[tenant] {
			t.Errorf("%s: seq %d, want %d", tenant, row.SeqWithinTurn.N, next[tenant])
		}
		if next[tenant]++; next[tenant] == 1 {
			partition[tenant] = r.Partition
		} else if partition[tenant] != r.Partition {
			t.Errorf("%s is in partitions %d and %d", tenant, partition[tenant], r.Partition)
		}
		if d := r.Timestamp.UnixMicro() - row.CreatedAt.N; d != 0 {
			t.Errorf("%s: Kafka's time is %d µs off", tenant, d)
		}
	}
}

// Options that would write twice, or give up, are refused, in words.
func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no topic":       {},
		"not idempotent": {Topic: topic, Kafka: []kgo.Opt{kgo.DisableIdempotentWrite()}},
		"gives up":       {Topic: topic, Kafka: []kgo.Opt{kgo.RecordDeliveryTimeout(time.Minute)}},
		"by hand":        {Topic: topic, Kafka: []kgo.Opt{kgo.ManualFlushing()}},
		"transactions":   {Topic: topic, Kafka: []kgo.Opt{kgo.TransactionalID("x")}},
		"no broker":      {Topic: topic, Kafka: []kgo.Opt{kgo.SeedBrokers()}},
	} {
		if e, err := New(o); err == nil {
			e.Close()
			t.Errorf("%s is no error", name)
		}
	}
	e, err := New(Options{Topic: topic, Kafka: []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1"), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}})
	if err == nil {
		e.Close()
		t.Error("acknowledged by the leader alone")
	}
	e, err = New(Options{Topic: topic, Kafka: []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("nothing was recorded: %v", err)
	}
}

// A broker that cannot be reached is told of.
func TestBrokerThatIsNotThere(t *testing.T) {
	told := make(chan error, 1)
	e, err := New(Options{Topic: topic, CloseTimeout: time.Millisecond, Kafka: []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")}, Trouble: func(err error) {
		select {
		case told <- err:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.RecordTokenCostDecision(t.Context(), Site{TurnKey: e.NewTurn(acme())}, ledger.TokenCost{})
	if err := <-told; !strings.Contains(err.Error(), "broker 127.0.0.1:1: ") {
		t.Errorf("told %v", err)
	}
}

// A broker that answers nothing delays Close by its timeout, and no emit.
func TestBrokerThatHangs(t *testing.T) {
	c := broker(t)
	release := make(chan struct{})
	defer close(release)
	c.ControlKey(0, func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		<-release
		return nil, nil, false
	})
	e, err := New(Options{Topic: topic, Queue: 100, CloseTimeout: 200 * time.Millisecond, Kafka: []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}})
	if err != nil {
		t.Fatal(err)
	}
	e.StartTurn("t", Turn{Session: "s", Principal: ledger.Principal{TenantID: "acme"}})
	for range 500 {
		e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "t"}, ledger.TokenCost{})
	}
	err = e.Close()
	left, ok := err.(*Undelivered)
	if s := e.Stats(); !ok || left.Records != 100 || left.Uncounted != 400 || s.Dropped != 400 || s.Recorded != 500 || s.Waiting != 0 {
		t.Errorf("%v; %+v", err, s)
	}
}

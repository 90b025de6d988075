package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/kafka"
)

// A group is this process as a member of its consumer group, which only serves to
// share the lines: no record is read, and no offset committed.
type group struct {
	client  *kgo.Client
	control string
	changed chan struct{} // has one where the share was changed and nobody has looked yet

	mu       sync.Mutex
	assigned map[string][]int32
	joined   bool
}

// join joins the group.
func (t *tool) join() (*group, error) {
	c := t.settings
	g := &group{control: c.ControlTopic, changed: make(chan struct{}, 1), assigned: map[string][]int32{}}
	opts := slices.Concat(t.kafka, kafka.Membership(&c.Kafka, c.Group, t.kafka), []kgo.Opt{
		kgo.ConsumerGroup(c.Group), kgo.DisableAutoCommit(), kgo.WithLogger(daemon.ClientLog{To: t.often.Sugar()}),
		kgo.OnPartitionsAssigned(g.take), kgo.OnPartitionsRevoked(g.give), kgo.OnPartitionsLost(g.give),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()), kgo.Balancers(kgo.CooperativeStickyBalancer()),
	})
	topics := append([]string{}, c.Topics...)
	if c.ControlTopic != "" {
		topics = append(topics, c.ControlTopic)
	}
	if c.TopicPattern == "" {
		opts = append(opts, kgo.ConsumeTopics(topics...))
	} else {
		opts = append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics(patterns(topics, c.TopicPattern)...))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	g.client = client
	return g, nil
}

// take hears of partitions that are this process's from now on. Nothing is
// fetched of them.
func (g *group) take(_ context.Context, client *kgo.Client, given map[string][]int32) {
	client.PauseFetchPartitions(given)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined = true
	for topic, partitions := range given {
		g.assigned[topic] = append(g.assigned[topic], partitions...)
	}
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// given has one when partitions became this process's, and nobody has looked yet.
// Where none is joined nothing ever comes.
func (g *group) given() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.changed
}

// give hears of partitions that are another's from now on. A pass that is under
// way may go on: it only costs.
func (g *group) give(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for topic, partitions := range taken {
		g.assigned[topic] = slices.DeleteFunc(g.assigned[topic], func(p int32) bool { return slices.Contains(partitions, p) })
	}
}

// metadataTimeout is how long brokers may take to say which partitions there are.
const metadataTimeout = 20 * time.Second

// share returns what is this process's now. There is what topics the group has,
// by the client's own list.
func (g *group) share(ctx context.Context) (*compaction.Share, error) {
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	s := &compaction.Share{Control: g.control}
	names := g.client.GetConsumeTopics()
	if len(names) > 0 {
		topics, err := kadm.NewClient(g.client).ListTopics(ctx, names...)
		if err != nil {
			return nil, err
		}
		topics.EachPartition(func(d kadm.PartitionDetail) {
			s.There = append(s.There, compaction.Partition{Topic: d.Topic, Number: d.Partition})
		})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for topic, partitions := range g.assigned {
		for _, p := range partitions {
			s.Assigned = append(s.Assigned, compaction.Partition{Topic: topic, Number: p})
		}
	}
	return s, nil
}

// member reports whether the group has given this process its share, perhaps
// nothing.
func (g *group) member() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.joined
}

func (g *group) leave() { g.client.Close() }

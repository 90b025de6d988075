//go:build it

package oracle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A Group is a consumer group, seen from outside.
type Group struct {
	Client *kgo.Client // of an observer that is no member
	Name   string
}

// Committed returns the group's committed offset of each partition of the
// topics, 0 where there is none, by topic/partition.
func (g Group) Committed(ctx context.Context, topics ...string) (map[string]int64, error) {
	fetched, err := kadm.NewClient(g.Client).FetchOffsetsForTopics(ctx, g.Name, topics...)
	if err != nil {
		return nil, err
	}
	at := map[string]int64{}
	fetched.Each(func(o kadm.OffsetResponse) { at[place(o.Topic, o.Partition)] = max(o.At, 0) })
	return at, nil
}

// Lag returns how many offsets of the topics are not committed yet.
func (g Group) Lag(ctx context.Context, topics ...string) (int64, error) {
	ends, err := kadm.NewClient(g.Client).ListEndOffsets(ctx, topics...)
	if err != nil {
		return 0, err
	}
	committed, err := g.Committed(ctx, topics...)
	if err != nil {
		return 0, err
	}
	var lag int64
	ends.Each(func(o kadm.ListedOffset) { lag += o.Offset - committed[place(o.Topic, o.Partition)] })
	return lag, ends.Error()
}

// WaitDrained waits until the lag is 0. alive is asked meanwhile, and its
// error ends the wait.
func (g Group) WaitDrained(ctx context.Context, alive func() error, topics ...string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := int64(-1)
	for {
		lag, err := g.Lag(ctx, topics...)
		if lag == 0 && err == nil {
			return nil
		}
		if err == nil {
			last = lag
		}
		if err := alive(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("group %s is not drained: %w: lag %d", g.Name, ctx.Err(), last)
		case <-tick.C:
		}
	}
}

// Evict makes every member leave the group, as an administrator does with
// members that were killed, so that nobody waits for their sessions to end.
// While the broker has no coordinator for the group, it tries again.
func (g Group) Evict(ctx context.Context) error {
	for {
		err := g.evict(ctx)
		if !kerr.IsRetriable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (g Group) evict(ctx context.Context) error {
	groups, err := kadm.NewClient(g.Client).DescribeGroups(ctx, g.Name)
	var shards *kadm.ShardErrors
	if errors.As(err, &shards) {
		return shards.Errs[0].Err
	}
	if err != nil {
		return err
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = g.Name
	for _, m := range groups[g.Name].Members {
		who := kmsg.NewLeaveGroupRequestMember()
		who.MemberID, who.InstanceID = m.MemberID, m.InstanceID
		leave.Members = append(leave.Members, who)
	}
	if len(leave.Members) == 0 {
		return nil
	}
	_, err = leave.RequestWith(ctx, g.Client)
	return err
}

func place(topic string, partition int32) string { return fmt.Sprintf("%s/%d", topic, partition) }

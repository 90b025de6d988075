package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// leaveTimeout bounds how long a process that has stopped tries to say so.
const leaveTimeout = 5 * time.Second

// StaticallyAway is the member epoch by which a static member of a group of
// KIP-848 says that it will be back.
const StaticallyAway = -2

// A staticLeave says to the brokers that a static member is away, once its
// client is closed, so that the next process of its name is let in at once.
//
// franz-go 1.22.3 says it without the instance id, which Kafka refuses; that
// process would then wait until the session of this one has timed out.
type staticLeave struct {
	group, instance string
	kafka           []kgo.Opt // how to connect
}

var _ kgo.HookClientClosed = (*staticLeave)(nil)

// OnClientClosed implements [kgo.HookClientClosed]. Where it fails, the session
// times out.
func (l *staticLeave) OnClientClosed(closed *kgo.Client) {
	member, _ := closed.GroupMetadata()
	if member == "" {
		return
	}
	client, err := kgo.NewClient(l.kafka...)
	if err != nil {
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	away := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	away.Group, away.MemberID, away.InstanceID, away.MemberEpoch = l.group, member, &l.instance, StaticallyAway
	_, _ = away.RequestWith(ctx, client)
}

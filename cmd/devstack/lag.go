package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// errEnded: the process that was waited for has ended.
var errEnded = errors.New("ingest ended too early")

// waitForGroup waits until the group has committed the end of each partition
// of the topic, which ingest does only for what is durable. It gives up when
// ctx is done or ended is closed.
func waitForGroup(ctx context.Context, brokers, group, topic string, ended <-chan struct{}) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.ClientID(program))
	if err != nil {
		return err
	}
	admin := kadm.NewClient(client)
	defer admin.Close()
	var left int64
	for tick := time.Tick(100 * time.Millisecond); ; {
		if left, err = lag(ctx, admin, group, topic); err == nil && left == 0 {
			return nil
		}
		select {
		case <-tick:
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("waiting for ingest, %d records behind: %w", left, errors.Join(err, ctx.Err()))
		}
	}
}

// lag returns how many records of the topic the group has not committed yet.
func lag(ctx context.Context, admin *kadm.Client, group, topic string) (int64, error) {
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	if err := ends.Error(); err != nil {
		return 0, err
	}
	committed, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return 0, err
	}
	var behind int64
	ends.Each(func(end kadm.ListedOffset) {
		at, _ := committed.Lookup(topic, end.Partition) // none: 0
		behind += end.Offset - at.At
	})
	return behind, nil
}

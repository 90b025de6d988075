package main

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/kafka"
)

// anchorTopic is where ingest keeps copies of anchors, unless it is told
// otherwise.
const anchorTopic = "ledgerlake.anchors"

// kafkaStall is how long brokers may give nothing before the end of a topic.
const kafkaStall = 30 * time.Second

// kafkaNotes returns the notes of a topic: kafka://HOST:PORT[,HOST:PORT…][/TOPIC].
func kafkaNotes(place string, k *config.Kafka) (func(context.Context) iter.Seq2[[]byte, error], error) {
	brokers, topic, _ := strings.Cut(strings.TrimPrefix(place, "kafka://"), "/")
	if brokers == "" || strings.Contains(topic, "/") {
		return nil, errors.New("want kafka://HOST:PORT[,HOST:PORT…][/TOPIC]")
	}
	if topic == "" {
		topic = anchorTopic
	}
	own := *k
	own.ClientID = program
	opts, err := kafka.Connect(context.Background(), kafka.Connection{
		Brokers: strings.Split(brokers, ","), Kafka: &own, Agent: program + "/" + version, Warn: func(string, error) {},
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			if err := readTopic(ctx, opts, topic, func(value []byte) bool { return yield(value, nil) }); err != nil {
				yield(nil, err)
			}
		}
	}, nil
}

// kafkaHelp is the part of help that lists the settings of Kafka.
func kafkaHelp() string { return reach.KafkaHelp("Kafka (--expect-from kafka:// only)") }

// readTopic gives take the value of each record of a topic, up to where its
// partitions end when it begins.
func readTopic(ctx context.Context, opts []kgo.Opt, topic string, take func([]byte) bool) error {
	probe, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	left, from, err := bounds(ctx, probe, topic)
	probe.Close()
	if err != nil || len(left) == 0 {
		return err
	}
	client, err := kgo.NewClient(append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.KeepControlRecords())...)
	if err != nil {
		return err
	}
	defer client.Close()
	for len(left) > 0 {
		if on, err := poll(ctx, client, left, take); err != nil || !on {
			return err
		}
	}
	return nil
}

// bounds returns where the partitions of a topic begin, and where those that are
// not empty end.
func bounds(ctx context.Context, client *kgo.Client, topic string) (left map[int32]int64, from map[int32]kgo.Offset, err error) {
	ctx, cancel := context.WithTimeout(ctx, kafkaStall)
	defer cancel()
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, nil, err
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	left, from = map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		if start, ok := starts.Lookup(topic, end.Partition); ok && start.Offset < end.Offset {
			left[end.Partition], from[end.Partition] = end.Offset, kgo.NewOffset().At(start.Offset)
		}
	})
	return left, from, err
}

// poll takes what comes next. Compaction leaves the last record of a partition,
// so that its end is seen.
func poll(ctx context.Context, client *kgo.Client, left map[int32]int64, take func([]byte) bool) (on bool, err error) {
	within, cancel := context.WithTimeout(ctx, kafkaStall)
	defer cancel()
	got := client.PollFetches(within)
	if within.Err() != nil && got.NumRecords() == 0 {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return false, errors.New("the brokers give nothing more, and the topic has not ended")
	}
	if err := got.Err(); err != nil {
		return false, err
	}
	for r := range got.RecordsAll() {
		end, ok := left[r.Partition]
		if !ok {
			continue
		}
		if r.Value != nil && !r.Attrs.IsControl() && r.Offset < end && !take(r.Value) {
			return false, nil
		}
		if r.Offset >= end-1 {
			delete(left, r.Partition)
		}
	}
	return true, nil
}

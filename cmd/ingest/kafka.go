package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/kafka"
)

// connection returns how franz-go reaches the brokers. warn is told of files
// that cannot be read again.
func connection(ctx context.Context, s *config.Ingest, origins config.Origins, warn func(string, error)) ([]kgo.Opt, error) {
	return kafka.Connect(ctx, kafka.Connection{Brokers: s.Brokers, Kafka: &s.Kafka, Origins: origins, Agent: program + "/" + version, Warn: warn})
}

// membership returns what kind of member of its group this process is; nothing
// where it joins none. connect is how to reach the brokers.
func membership(s *config.Ingest, connect []kgo.Opt) []kgo.Opt {
	if len(s.Assign) > 0 {
		return nil
	}
	return kafka.Membership(&s.Kafka, s.Group, connect)
}

// warnOfWriters logs that everybody may order erasures, where brokers tell.
// Records that control-keys have to sign may come from anybody.
func warnOfWriters(ctx context.Context, log *zap.Logger, s *config.Ingest, opts []kgo.Opt) {
	if s.ControlTopic == "" || len(s.Keys.Control) > 0 {
		return
	}
	remarks, err := kafka.LookAtControlTopic(ctx, opts, s.ControlTopic, nil)
	if err != nil {
		return
	}
	for _, r := range remarks {
		if r.Name == kafka.RemarkWriters && r.Warn {
			log.Warn("control topic: "+r.Text, zap.String("topic", s.ControlTopic))
		}
	}
}

// warnings logs what is likely a mistake, and none that ingest stops for: a
// topic that is not there (it is read as soon as it is), and a secret that
// anybody on the way can read. It returns when the brokers have answered, or
// not within its time; that they do not answer is the pipeline's to say.
func warnings(ctx context.Context, log *zap.Logger, s *config.Ingest, opts []kgo.Opt) {
	for _, text := range kafka.InTheClear(&s.Kafka) {
		log.Warn(text)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return
	}
	defer client.Close()
	warnOfWriters(ctx, log, s, opts)
	names := named(s)
	if len(names) == 0 {
		return // all topics would be listed
	}
	topics, err := kadm.NewClient(client).ListTopics(ctx, names...)
	if err != nil {
		return
	}
	for _, t := range topics.Sorted() {
		if errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			log.Warn("topic does not exist; it is read as soon as it does", zap.String("topic", t.Topic))
		}
	}
}

// named returns the topics that the settings name, whole or by a partition.
func named(s *config.Ingest) []string {
	names := s.Topics
	for _, p := range s.Assign {
		names = append(names[:len(names):len(names)], p.Topic)
	}
	return names
}

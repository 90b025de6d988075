package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
)

// metadataMinAge is what franz-go waits at least between looks at the cluster.
const metadataMinAge = 5 * time.Second

// connection returns how franz-go reaches the brokers: where they are, over
// TLS or not, and as whom. warn is told of files that cannot be read again.
func connection(ctx context.Context, s *config.Ingest, origins config.Origins, warn func(string, error)) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(s.Brokers...), kgo.ClientID(s.Kafka.ClientID)}
	if age := s.Kafka.MetadataAge; age != 0 {
		opts = append(opts, kgo.MetadataMaxAge(age), kgo.MetadataMinAge(min(age, metadataMinAge)))
	}
	if s.Kafka.Rack != "" {
		opts = append(opts, kgo.Rack(s.Kafka.Rack))
	}
	if s.Kafka.TLS {
		d, err := newDialer(&s.Kafka, origins, warn)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.Dialer(d.dial))
	}
	m, err := mechanism(ctx, s)
	if err != nil {
		return nil, &config.Error{Name: "kafka.sasl.mechanism", Source: origins["kafka.sasl.mechanism"], Fault: err.Error()}
	}
	if m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

// heartbeat is how often a member of a group says that it lives.
const heartbeat = 3 * time.Second

// membership returns what kind of member of its group this process is; nothing
// where it joins none. kafka is how to connect.
func membership(s *config.Ingest, kafka []kgo.Opt) []kgo.Opt {
	if len(s.Assign) > 0 {
		return nil
	}
	k := &s.Kafka
	opts := []kgo.Opt{kgo.SessionTimeout(k.SessionTimeout), kgo.HeartbeatInterval(min(heartbeat, k.SessionTimeout/3))}
	if k.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(k.InstanceID))
	}
	if k.GroupProtocol == config.GroupConsumer {
		opts = append(opts, kgo.ServerSideBalancer())
		if k.InstanceID != "" {
			opts = append(opts, kgo.WithHooks(&staticLeave{s.Group, k.InstanceID, kafka}))
		}
	}
	return opts
}

// warnings logs what is likely a mistake, and none that ingest stops for: a
// topic that is not there (it is read as soon as it is), and a secret that
// anybody on the way can read. It returns when the brokers have answered, or
// not within its time; that they do not answer is the pipeline's to say.
func warnings(ctx context.Context, log *zap.Logger, s *config.Ingest, opts []kgo.Opt) {
	for _, text := range inTheClear(&s.Kafka) {
		log.Warn(text)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return
	}
	defer client.Close()
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

// inTheClear says which secrets anybody on the way can read.
func inTheClear(k *config.Kafka) (texts []string) {
	switch {
	case k.TLS:
	case k.SASL.Mechanism == config.SASLPlain:
		texts = append(texts, "the password for Kafka is sent in the clear: set kafka.tls, or use scram")
	case k.SASL.Mechanism == config.SASLOAuthBearer:
		texts = append(texts, "the token for Kafka is sent in the clear: set kafka.tls")
	}
	if strings.HasPrefix(k.SASL.OAuth.TokenURL, "http://") {
		texts = append(texts, "the secret for Kafka's tokens is sent in the clear: want https in kafka.sasl.oauth.token-url")
	}
	return texts
}

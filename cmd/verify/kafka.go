package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/ledgerlake/ledgerlake/config"
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
	opts, err := kafkaOptions(k)
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.ClientID(program))
	return func(ctx context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			if err := readTopic(ctx, opts, topic, func(value []byte) bool { return yield(value, nil) }); err != nil {
				yield(nil, err)
			}
		}
	}, nil
}

// kafkaOptions returns how the brokers are reached.
func kafkaOptions(k *config.Kafka) (opts []kgo.Opt, err error) {
	if k.TLS {
		t, err := kafkaTLS(k)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(t))
	}
	m, err := kafkaSASL(&k.SASL)
	if m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts, err
}

func kafkaTLS(k *config.Kafka) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.CAFile != "" {
		pem, err := os.ReadFile(k.CAFile)
		if err != nil {
			return nil, err
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in it", k.CAFile)
		}
	}
	if k.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(k.CertFile, k.KeyFile)
		if err != nil {
			return nil, err
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

func kafkaSASL(s *config.SASL) (sasl.Mechanism, error) {
	secret, err := s.Password.Renewed()
	if s.Mechanism == config.SASLOAuthBearer {
		secret, err = s.Token.Renewed()
	}
	switch auth := (scram.Auth{User: s.User, Pass: secret}); s.Mechanism {
	case "":
		return nil, nil
	case config.SASLPlain:
		return plain.Auth{User: s.User, Pass: secret}.AsMechanism(), err
	case config.SASLScram256:
		return auth.AsSha256Mechanism(), err
	case config.SASLScram512:
		return auth.AsSha512Mechanism(), err
	case config.SASLOAuthBearer:
		return oauth.Auth{Token: secret}.AsMechanism(), err
	}
	return nil, fmt.Errorf("kafka.sasl.mechanism %s is not known here: want plain, scram or oauthbearer, or copy the topic", s.Mechanism)
}

// kafkaHelp is the part of help that lists the settings of Kafka.
func kafkaHelp() string {
	var settings config.Ingest
	var b strings.Builder
	for _, section := range kafkaSections(settings.Sections()) {
		config.WriteHelp(&b, []config.Section{{Title: "Kafka (--expect-from kafka:// only)", Settings: section.Settings}})
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

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

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
)

// connection returns how franz-go reaches the brokers: where they are, over
// TLS or not, and as whom.
func connection(s *config.Ingest, origins config.Origins) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(s.Brokers...), kgo.ClientID(s.Kafka.ClientID)}
	if s.Kafka.TLS {
		t, err := tlsConfig(&s.Kafka, origins)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(t))
	}
	if m := mechanism(s.Kafka.SASL); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

func tlsConfig(k *config.Kafka, origins config.Origins) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	fault := func(name, text string) (*tls.Config, error) {
		return nil, &config.Error{Name: name, Source: origins[name], Fault: text}
	}
	if k.CAFile != "" {
		pem, err := os.ReadFile(k.CAFile)
		if err != nil {
			return fault("kafka.ca-file", err.Error())
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return fault("kafka.ca-file", "want certificates in PEM, found none")
		}
	}
	if k.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(k.CertFile, k.KeyFile)
		if err != nil {
			return fault("kafka.cert-file", err.Error())
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

func mechanism(s config.SASL) sasl.Mechanism {
	user, password := s.User, s.Password.Reveal()
	switch s.Mechanism {
	case config.SASLPlain:
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case config.SASLScram256:
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case config.SASLScram512:
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	return nil
}

// warnings logs what is likely a mistake, and none that ingest stops for: a
// topic that is not there (it is read as soon as it is), and a password that
// anybody on the way can read. It returns when the brokers have answered, or
// not within its time; that they do not answer is the pipeline's to say.
func warnings(ctx context.Context, log *zap.Logger, s *config.Ingest, opts []kgo.Opt) {
	if s.Kafka.SASL.Mechanism == config.SASLPlain && !s.Kafka.TLS {
		log.Warn("the password for Kafka is sent in the clear: set kafka.tls, or use scram")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return
	}
	defer client.Close()
	topics, err := kadm.NewClient(client).ListTopics(ctx, s.Topics...)
	if err != nil {
		return
	}
	for _, t := range topics.Sorted() {
		if errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			log.Warn("topic does not exist; it is read as soon as it does", zap.String("topic", t.Topic))
		}
	}
}

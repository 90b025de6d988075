package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

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

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/config"
)

// A broker that speaks TLS, asks for a client's certificate and wants a
// password lets in who has them all, and nobody else.
func TestConnection(t *testing.T) {
	ca, cert, key, server := certificates(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(server), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "plain", "secret"), kfake.Superuser("SCRAM-SHA-256", "s256", "secret"), kfake.Superuser("SCRAM-SHA-512", "s512", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	right := config.Kafka{ClientID: "test", TLS: true, CAFile: ca, CertFile: cert, KeyFile: key}
	for _, tt := range []struct {
		name                      string
		change                    func(*config.Kafka)
		mechanism, user, password string
		want                      bool
	}{
		{"wrong password", nil, config.SASLPlain, "plain", "guess", false},
		{"another mechanism", nil, config.SASLScram256, "plain", "secret", false},
		{"no password", nil, "", "", "", false},
		{"no TLS", func(k *config.Kafka) { k.TLS = false }, config.SASLPlain, "plain", "secret", false},
		{"the system's CAs", func(k *config.Kafka) { k.CAFile = "" }, config.SASLPlain, "plain", "secret", false},
		{"no certificate", func(k *config.Kafka) { k.CertFile, k.KeyFile = "", "" }, config.SASLPlain, "plain", "secret", false},
		{"plain", nil, config.SASLPlain, "plain", "secret", true},
		{"scram-sha-256", nil, config.SASLScram256, "s256", "secret", true},
		{"scram-sha-512", nil, config.SASLScram512, "s512", "secret", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := config.Ingest{Brokers: cluster.ListenAddrs(), Kafka: right}
			if tt.change != nil {
				tt.change(&s.Kafka)
			}
			s.Kafka.SASL = config.SASL{Mechanism: tt.mechanism, User: tt.user, Password: config.NewSecret(tt.password)}
			if got := ping(t, &s); got != tt.want {
				t.Errorf("let in is %v, want %v", got, tt.want)
			}
		})
	}
}

// A topic that is not there, and a password that is sent in the clear, are
// warned of; a topic that is there is not.
func TestWarnings(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "there"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "plain", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	s := config.Ingest{Brokers: cluster.ListenAddrs(), Topics: []string{"there", "not-there"}}
	s.Kafka = config.Kafka{ClientID: "test", SASL: config.SASL{Mechanism: config.SASLPlain, User: "plain", Password: config.NewSecret("secret")}}
	opts, err := connection(&s, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, log := reporting(false)
	warnings(t.Context(), newLogger(log, config.Log{Level: "info", Format: "json"}), &s, opts)
	got := lines(t, log)
	if len(got) != 2 || !strings.Contains(fmt.Sprint(got[0]["msg"]), "in the clear") || got[1]["topic"] != "not-there" {
		t.Errorf("warned of %v", got)
	}
}

// ping reports whether a client with these settings is let in.
func ping(t *testing.T, s *config.Ingest) bool {
	t.Helper()
	opts, err := connection(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(append(opts, kgo.RetryTimeout(2*time.Second), kgo.RequestRetries(0))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	return client.Ping(t.Context()) == nil
}

// certificates makes a CA, a client's certificate and key as files, and the
// settings of a server that asks for them.
func certificates(t *testing.T) (ca, cert, key string, server *tls.Config) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	ca, key = writePEM(t, "CERTIFICATE", der), writePEM(t, "PRIVATE KEY", pkcs8)
	pair, err := tls.LoadX509KeyPair(ca, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	return ca, ca, key, &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

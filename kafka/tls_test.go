package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/config"
)

// Brokers get new certificates, and want new ones of their clients. A client
// that goes on with the old files is kept out; once its files are replaced it
// is let in, without a new start. While they are being written it goes on with
// what they held before.
func TestCertificatesAreReadAgain(t *testing.T) {
	old, next := newIdentity(t), newIdentity(t)
	var now atomic.Pointer[tls.Config]
	now.Store(old.server())
	server := old.server()
	server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load(), nil }
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(server))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()

	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca"), filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	fill := func(path, from string) {
		body, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill(ca, old.cert)
	fill(cert, old.cert)
	fill(key, old.key)
	s := Connection{Brokers: cluster.ListenAddrs(), Kafka: &config.Kafka{ClientID: "test", TLS: true, CAFile: ca, CertFile: cert, KeyFile: key}}
	var warned []string
	s.Warn = func(what string, _ error) { warned = append(warned, what) }
	opts, err := Connect(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	in := func(want bool, when string) {
		t.Helper()
		if got := letIn(t, opts); got != want {
			t.Errorf("%s: let in is %v, want %v", when, got, want)
		}
	}
	in(true, "at first")
	now.Store(next.server())
	in(false, "with certificates that the brokers no longer know")
	now.Store(old.server())
	fill(cert, next.cert)
	in(true, "with half of the files written")
	if len(warned) == 0 || !strings.HasPrefix(warned[0], "kafka.cert-file cannot be used") {
		t.Errorf("warned of %q", warned)
	}
	now.Store(next.server())
	fill(key, next.key)
	fill(ca, next.cert)
	in(true, "with all of them written")
}

// letIn reports whether the brokers let a client with these options in.
func letIn(t *testing.T, opts []kgo.Opt) bool {
	t.Helper()
	client, err := kgo.NewClient(append(opts[:len(opts):len(opts)], kgo.RetryTimeout(2*time.Second), kgo.RequestRetries(0))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	return client.Ping(t.Context()) == nil
}

// An identity is a certificate that signs itself, and its key, as files.
type identity struct {
	cert, key string
	pair      tls.Certificate
}

func newIdentity(t *testing.T) identity {
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
	id := identity{cert: writePEM(t, "CERTIFICATE", der), key: writePEM(t, "PRIVATE KEY", pkcs8)}
	if id.pair, err = tls.LoadX509KeyPair(id.cert, id.key); err != nil {
		t.Fatal(err)
	}
	return id
}

// server returns the settings of a server of this identity that takes no client
// of another.
func (id identity) server() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(id.pair.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{id.pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

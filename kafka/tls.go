package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/config"
)

// dialTimeout bounds a connection's start, the handshake included.
const dialTimeout = 10 * time.Second

// A dialer connects to brokers over TLS. It reads the certificates' files for
// each connection, because they are replaced while a process runs. Where they
// cannot be used (somebody is just writing them), it goes on with those that
// it read last.
type dialer struct {
	kafka *config.Kafka
	warn  func(string, error)

	mu   sync.Mutex
	last *tls.Config
}

// newDialer reads the files once, so that a wrong setting ends the start.
func newDialer(k *config.Kafka, origins config.Origins, warn func(string, error)) (*dialer, error) {
	t, name, err := readTLS(k)
	if err != nil {
		return nil, &config.Error{Name: name, Source: origins[name], Fault: err.Error()}
	}
	return &dialer{kafka: k, warn: warn, last: t}, nil
}

// dial is what franz-go calls for each connection.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return (&tls.Dialer{Config: d.current()}).DialContext(ctx, network, address)
}

// current returns the settings as the files have them now.
func (d *dialer) current() *tls.Config {
	t, name, err := readTLS(d.kafka)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.warn(name+" cannot be used; what it held before is", err)
		return d.last
	}
	d.last = t
	return t
}

// readTLS reads the files, and returns with an error the name of the setting.
// The name of the server is left out; [tls.Dialer] takes that of the address.
func readTLS(k *config.Kafka) (t *tls.Config, name string, err error) {
	t = &tls.Config{MinVersion: tls.VersionTLS12}
	if k.CAFile != "" {
		pem, err := os.ReadFile(k.CAFile)
		if err != nil {
			return nil, "kafka.ca-file", err
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, "kafka.ca-file", errors.New("want certificates in PEM, found none")
		}
	}
	if k.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(k.CertFile, k.KeyFile)
		if err != nil {
			return nil, "kafka.cert-file", err
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, "", nil
}

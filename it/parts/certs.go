//go:build it

package parts

import (
	"crypto/x509"
	"os"
	"path/filepath"
)

// Certificates are files of a CA, and of what it signed for loopback, that hold
// for a day.
type Certificates struct {
	CA                    string // who signed
	Cert, Key             string // a server's
	ClientCert, ClientKey string
}

// MakeCertificates writes certificates into dir, which it creates.
func MakeCertificates(dir string) (*Certificates, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	ca, err := newCA()
	if err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	c := &Certificates{in("ca.pem"), in("server.pem"), in("server-key.pem"), in("client.pem"), in("client-key.pem")}
	files := map[string][]byte{c.CA: ca.pem()}
	if files[c.Cert], files[c.Key], err = ca.sign("server", x509.ExtKeyUsageServerAuth); err != nil {
		return nil, err
	}
	if files[c.ClientCert], files[c.ClientKey], err = ca.sign("client", x509.ExtKeyUsageClientAuth); err != nil {
		return nil, err
	}
	for path, text := range files {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
	}
	return c, nil
}

//go:build it

package parts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The one user that a [SecureKafka] knows.
const (
	KafkaUser     = "alice"
	KafkaPassword = "rabbit hole=42" // with what some texts of settings trip over
)

// A GuardedKafka is a Kafka that asks everybody who comes by its second listener
// for a password, and lets them do what ACLs say. By the first one comes who may
// do all.
type GuardedKafka struct {
	*Kafka
	Guarded string // SASL_PLAINTEXT: PLAIN, as the users, whose password is their name and "-secret"
}

const guardedProperties = `authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required%s;
`

// StartGuardedKafka is [StartKafka] for a broker with users and an authorizer.
func StartGuardedKafka(dir string, users ...string) (*GuardedKafka, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return nil, err
	}
	var logins strings.Builder
	for _, user := range users {
		fmt.Fprintf(&logins, ` user_%[1]s="%[1]s-secret"`, user)
	}
	k := &GuardedKafka{Guarded: addrs[0]}
	k.Kafka, err = StartKafkaWith(dir, KafkaOptions{
		Listeners: map[string]string{"SASL_PLAINTEXT": k.Guarded}, Properties: fmt.Sprintf(guardedProperties, logins.String()),
	})
	return k, err
}

// KafkaTool returns the command line of one of Kafka's own tools, by its class.
func KafkaTool(class string) []string {
	return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", kafkaJars(), class}
}

// A SecureKafka is a Kafka that is also reached as users reach theirs: over
// TLS, with a password or a certificate.
type SecureKafka struct {
	*Kafka
	SASLAddr string // SASL_SSL: SCRAM-SHA-512, SCRAM-SHA-256 and PLAIN, as [KafkaUser]
	TLSAddr  string // SSL: a client's certificate is required

	CAFile   string // signed the broker's certificate and the client's
	CertFile string // the client's
	KeyFile  string
}

// secureProperties are the broker's settings of its two other listeners: the
// file with its key and certificate, that of the CA, user and password.
const secureProperties = `ssl.keystore.type=PEM
ssl.keystore.location=%[1]s
ssl.truststore.type=PEM
ssl.truststore.location=%[2]s
listener.name.ssl.ssl.client.auth=required
sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256,PLAIN
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%[3]s="%[4]s";
`

// StartSecureKafka is [StartKafka] for a broker with listeners over TLS. The
// certificates are made for it, and lie in dir.
func StartSecureKafka(dir string) (*SecureKafka, error) {
	addrs, err := freeAddrs(2)
	if err != nil {
		return nil, err
	}
	k := &SecureKafka{
		SASLAddr: addrs[0], TLSAddr: addrs[1],
		CAFile: filepath.Join(dir, "ca.pem"), CertFile: filepath.Join(dir, "client.pem"), KeyFile: filepath.Join(dir, "client-key.pem"),
	}
	broker := filepath.Join(dir, "broker.pem")
	if err := k.certify(dir, broker); err != nil {
		return nil, err
	}
	o := KafkaOptions{
		Listeners:  map[string]string{"SASL_SSL": k.SASLAddr, "SSL": k.TLSAddr},
		Properties: fmt.Sprintf(secureProperties, broker, k.CAFile, KafkaUser, KafkaPassword),
	}
	for _, mechanism := range []string{"SCRAM-SHA-512", "SCRAM-SHA-256"} {
		o.Format = append(o.Format, "--add-scram", fmt.Sprintf(`%s=[name=%s,password="%s"]`, mechanism, KafkaUser, KafkaPassword))
	}
	k.Kafka, err = StartKafkaWith(dir, o)
	return k, err
}

// certify writes all certificates. Kafka wants the broker's key and
// certificate in one file.
func (k *SecureKafka) certify(dir, broker string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ca, err := newCA()
	if err != nil {
		return err
	}
	brokerCert, brokerKey, err := ca.sign("broker", x509.ExtKeyUsageServerAuth)
	if err != nil {
		return err
	}
	clientCert, clientKey, err := ca.sign("client", x509.ExtKeyUsageClientAuth)
	if err != nil {
		return err
	}
	for path, text := range map[string][]byte{
		k.CAFile: ca.pem(), broker: append(brokerKey, brokerCert...), k.CertFile: clientCert, k.KeyFile: clientKey,
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// A ca signs certificates for loopback that hold for a day.
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA() (*ca, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := newTemplate("ledgerlake it")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &ca{cert, key}, err
}

func newTemplate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}
}

// sign returns a certificate and its key in PKCS#8, both as PEM.
func (c *ca) sign(name string, usage x509.ExtKeyUsage) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := newTemplate(name)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{usage}
	template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, &private.PublicKey, c.key)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return encodePEM("CERTIFICATE", der), encodePEM("PRIVATE KEY", pkcs8), nil
}

func (c *ca) pem() []byte { return encodePEM("CERTIFICATE", c.cert.Raw) }

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ledgerlake/ledgerlake/config"
)

// A broker that speaks TLS, asks for a client's certificate and wants a
// password lets in who has them all, and nobody else.
func TestConnection(t *testing.T) {
	own := newIdentity(t)
	ca, cert, key, server := own.cert, own.cert, own.key, own.server()
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
			k := right
			s := Connection{Brokers: cluster.ListenAddrs(), Kafka: &k}
			if tt.change != nil {
				tt.change(&k)
			}
			k.SASL = config.SASL{Mechanism: tt.mechanism, User: tt.user, Password: config.NewSecret(tt.password)}
			if got := ping(t, &s); got != tt.want {
				t.Errorf("let in is %v, want %v", got, tt.want)
			}
		})
	}
}

// Of each secret that anybody on the way can read there is a word, and of none
// that is safe.
func TestInTheClear(t *testing.T) {
	for _, tt := range []struct {
		k    config.Kafka
		want int
	}{
		{config.Kafka{SASL: config.SASL{Mechanism: config.SASLPlain}}, 1},
		{config.Kafka{SASL: config.SASL{Mechanism: config.SASLOAuthBearer}}, 1},
		{config.Kafka{SASL: config.SASL{Mechanism: config.SASLOAuthBearer, OAuth: config.OAuth{TokenURL: "http://id.example"}}}, 2},
		{config.Kafka{TLS: true, SASL: config.SASL{Mechanism: config.SASLOAuthBearer, OAuth: config.OAuth{TokenURL: "http://id.example"}}}, 1},
		{config.Kafka{TLS: true, SASL: config.SASL{Mechanism: config.SASLOAuthBearer, OAuth: config.OAuth{TokenURL: "https://id.example"}}}, 0},
		{config.Kafka{TLS: true, SASL: config.SASL{Mechanism: config.SASLPlain}}, 0},
		{config.Kafka{SASL: config.SASL{Mechanism: config.SASLScram512}}, 0},
		{config.Kafka{}, 0},
	} {
		if got := InTheClear(&tt.k); len(got) != tt.want {
			t.Errorf("%+v: %q", tt.k, got)
		}
	}
}

// ping reports whether a client with these settings is let in.
func ping(t *testing.T, s *Connection) bool {
	t.Helper()
	opts, err := Connect(t.Context(), *s)
	if err != nil {
		t.Fatal(err)
	}
	return letIn(t, opts)
}

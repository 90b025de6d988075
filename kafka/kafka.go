// Package kafka is how the commands reach the brokers: where they are, over TLS
// or not, and as whom ([Connect]); and what kind of member of a group a process
// is ([Membership]). Passwords, tokens and certificates that stand in files are
// read again for each connection, so that who renews them only writes the file.
//
// It neither reads nor writes a topic.
package kafka

import (
	"context"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/config"
)

// A Connection says how brokers are reached.
type Connection struct {
	Brokers []string // host:port, asked first for the rest of the cluster
	Kafka   *config.Kafka
	Origins config.Origins
	Agent   string              // program "/" version, for Amazon MSK's log
	Warn    func(string, error) // told of files that cannot be read again
}

// metadataMinAge is what franz-go waits at least between looks at the cluster.
const metadataMinAge = 5 * time.Second

// Connect returns how franz-go reaches the brokers. What cannot be right is a
// [config.Error]; nothing is reached.
func Connect(ctx context.Context, c Connection) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(c.Brokers...), kgo.ClientID(c.Kafka.ClientID)}
	if age := c.Kafka.MetadataAge; age != 0 {
		opts = append(opts, kgo.MetadataMaxAge(age), kgo.MetadataMinAge(min(age, metadataMinAge)))
	}
	if c.Kafka.Rack != "" {
		opts = append(opts, kgo.Rack(c.Kafka.Rack))
	}
	if c.Kafka.TLS {
		d, err := newDialer(c.Kafka, c.Origins, c.Warn)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.Dialer(d.dial))
	}
	m, err := mechanism(ctx, &c)
	if err != nil {
		return nil, &config.Error{Name: "kafka.sasl.mechanism", Source: c.Origins["kafka.sasl.mechanism"], Fault: err.Error()}
	}
	if m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

// heartbeat is how often a member of a group says that it lives.
const heartbeat = 3 * time.Second

// Membership returns what kind of member of its group this process is. connect
// is how to reach the brokers.
func Membership(k *config.Kafka, group string, connect []kgo.Opt) []kgo.Opt {
	opts := []kgo.Opt{kgo.SessionTimeout(k.SessionTimeout), kgo.HeartbeatInterval(min(heartbeat, k.SessionTimeout/3))}
	if k.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(k.InstanceID))
	}
	if k.GroupProtocol == config.GroupConsumer {
		opts = append(opts, kgo.ServerSideBalancer())
		if k.InstanceID != "" {
			opts = append(opts, kgo.WithHooks(&staticLeave{group, k.InstanceID, connect}))
		}
	}
	return opts
}

// InTheClear says which secrets anybody on the way can read.
func InTheClear(k *config.Kafka) (texts []string) {
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

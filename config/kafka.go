package config

import (
	"net/url"
	"strings"
	"time"
)

// Kafka is how a client connects to the brokers, and how it is a member of its
// group.
type Kafka struct {
	ClientID string
	TLS      bool
	CAFile   string
	CertFile string
	KeyFile  string
	SASL     SASL

	MetadataAge    time.Duration
	InstanceID     string        // of a static member; "" is none
	Rack           string        // "" is none
	SessionTimeout time.Duration // of a classic group
	GroupProtocol  string        // GroupClassic or GroupConsumer
}

// SASL is how a client says who it is.
type SASL struct {
	Mechanism string // "" is none
	User      string
	Password  Secret
	Token     Secret // of OAUTHBEARER
	OAuth     OAuth
}

// OAuth is where the tokens of OAUTHBEARER come from: the client credentials
// flow of RFC 6749, section 4.4.
type OAuth struct {
	TokenURL     string // "" is nowhere
	ClientID     string
	ClientSecret Secret
	Scopes       []string
	Extensions   []string // NAME=VALUE, of RFC 7628
}

// The SASL mechanisms.
const (
	SASLPlain       = "plain"
	SASLScram256    = "scram-sha-256"
	SASLScram512    = "scram-sha-512"
	SASLOAuthBearer = "oauthbearer"
	SASLAWSMSKIAM   = "aws-msk-iam"
)

// The protocols by which a group shares partitions.
const (
	GroupClassic  = "classic"
	GroupConsumer = "consumer" // KIP-848
)

func (k *Kafka) settings() []Setting {
	return []Setting{
		{
			Name: "kafka.client-id", Default: "ledgerlake-ingest", Help: "The name that the brokers' logs and quotas know this client by.",
			Value: text(&k.ClientID, "NAME", "a name", notEmpty),
		},
		{
			Name: "kafka.rack", Help: "The rack or availability zone of this process, so that brokers that are set up for it have it read from a replica nearby.",
			Value: text(&k.Rack, "NAME", "a name", notEmpty),
		},
		{
			Name: "kafka.instance-id", Help: "The name by which the group knows this process again after a restart within the session timeout, so that its partitions wait for it. Each process needs one of its own that stays, such as the name of a pod of a StatefulSet.",
			Value: text(&k.InstanceID, "NAME", "a name of letters, digits, dots, dashes and underscores", isTopic),
		},
		{
			Name: "kafka.session-timeout", Default: "45s", Help: "How long the group waits for a sign of life before it gives a process's partitions to others. The brokers have limits of their own; in a group of protocol consumer they decide alone.",
			Value: duration(&k.SessionTimeout, 6*time.Second, 30*time.Minute),
		},
		{
			Name: "kafka.group-protocol", Default: GroupClassic, Help: "How the group shares partitions: its members among themselves, or by the brokers (KIP-848; Kafka 4.0 or later, 4.3 to be recommended). Where the brokers cannot, classic all the same.",
			Value: oneOf(&k.GroupProtocol, GroupClassic, GroupConsumer),
		},
		{
			Name: "kafka.metadata-age", Default: "1m", Help: "How long a topic that topic-pattern matches, or a new partition of a topic, may stay unseen.",
			Value: duration(&k.MetadataAge, time.Second, time.Hour),
		},
		{Name: "kafka.tls", Default: "false", Help: "Talk to the brokers over TLS. The files below are read again when they change, for connections made from then on.", Value: boolean(&k.TLS)},
		{
			Name: "kafka.ca-file", Help: "The certificates that sign the brokers' (PEM), instead of the system's.",
			Value: text(&k.CAFile, "FILE", "the path of a file", notEmpty),
		},
		{
			Name: "kafka.cert-file", Help: "This client's certificate (PEM), where the brokers ask for one.",
			Value: text(&k.CertFile, "FILE", "the path of a file", notEmpty),
		},
		{
			Name: "kafka.key-file", Help: "The private key of that certificate (PEM).",
			Value: text(&k.KeyFile, "FILE", "the path of a file", notEmpty),
		},
	}
}

func (s *SASL) settings() []Setting {
	o := &s.OAuth
	return []Setting{
		{
			Name: "kafka.sasl.mechanism", Default: None, Help: "How this client proves who it is. With aws-msk-iam by the credentials that the AWS SDK finds; the region is that of the brokers' names, or AWS_REGION.",
			Value: oneOfOrNone(&s.Mechanism, SASLPlain, SASLScram256, SASLScram512, SASLOAuthBearer, SASLAWSMSKIAM),
		},
		{Name: "kafka.sasl.user", Help: "Who it is, with plain and scram.", Value: text(&s.User, "NAME", "the name of a user", notEmpty)},
		{Name: "kafka.sasl.password", Help: "Its password. From a file it is read again for each connection.", Value: secret(&s.Password)},
		{Name: "kafka.sasl.token", Help: "The token of oauthbearer. From a file it is read again for each connection, so that whoever renews it only writes the file.", Value: secret(&s.Token)},
		{
			Name: "kafka.sasl.oauth.token-url", Help: "Where oauthbearer gets its tokens instead (OAuth 2.0, client credentials). Each is used until shortly before it expires.",
			Value: text(&o.TokenURL, "URL", "https://host/path", isURL),
		},
		{Name: "kafka.sasl.oauth.client-id", Help: "Who asks there.", Value: text(&o.ClientID, "ID", "the id of a client", notEmpty)},
		{Name: "kafka.sasl.oauth.client-secret", Help: "The client's secret. From a file it is read again for each token.", Value: secret(&o.ClientSecret)},
		{Name: "kafka.sasl.oauth.scopes", Help: "What is asked for.", Value: texts(&o.Scopes, "SCOPE", "a scope", notEmpty)},
		{
			Name: "kafka.sasl.oauth.extensions", Help: "What is sent beside the token, as some services want it (logicalCluster=lkc-1).",
			Value: texts(&o.Extensions, "NAME=VALUE", "letters, =, and a text", isExtension),
		},
	}
}

// isURL takes what a token may be asked from.
func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.Fragment == ""
}

// isExtension takes what RFC 7628, section 3.1, takes, but for "auth", which is
// the token.
func isExtension(s string) bool {
	name, value, ok := strings.Cut(s, "=")
	letters := strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
	printable := strings.IndexFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
	return ok && name != "" && letters && name != "auth" && value != "" && printable
}

package config

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/kafkasink"
	"github.com/ledgerlake/ledgerlake/export/sink/natssink"
	"github.com/ledgerlake/ledgerlake/export/sink/syslog"
)

// netTypes are the destinations that take events by a protocol of their own.
var netTypes = map[string]func() *sinkType{"syslog": syslogType, "kafka": kafkaType, "nats": natsType}

// A netTLS is the settings of TLS that syslog and NATS have.
type netTLS struct {
	plaintext     bool
	ca, cert, key Secret
}

func (t *netTLS) settings() []Setting {
	return []Setting{
		{Name: "allow-plaintext", Default: "false", Help: "Send without TLS. Whoever is on the way then reads events and changes them.", Value: boolean(&t.plaintext)},
		{Name: "tls.ca", Help: "Who may sign the receiver's certificate, PEM; default: who the system trusts.", Value: secret(&t.ca)},
		{Name: "tls.certificate", Help: "Our certificate for the receiver, and those that lead to its CA, PEM.", Value: secret(&t.cert)},
		{Name: "tls.key", Help: "The private key of the certificate, PEM.", Value: secret(&t.key)},
	}
}

func (t *netTLS) check() (name, fault string) {
	switch {
	case t.plaintext && (!t.ca.IsZero() || !t.cert.IsZero() || !t.key.IsZero()):
		return "allow-plaintext", "there is no TLS then: leave out what tls has"
	case t.cert.IsZero() != t.key.IsZero():
		return "tls.certificate", "goes with tls.key: want both or none"
	}
	return "", ""
}

func syslogType() *sinkType {
	var o syslog.Options
	var t netTLS
	var confirm string
	var bytes int64
	settings := slices.Concat([]Setting{
		{Name: "address", Required: true, Help: "The receiver; its port is 6514 where it goes by RFC 5425.", Value: text(&o.Address, "HOST:PORT", "host:port", isHostPort)},
	}, t.settings(), []Setting{
		{Name: "tls.server-name", Help: "The name in the receiver's certificate; default: the host of address.", Value: text(&o.ServerName, "NAME", "a name", notEmpty)},
		{Name: "message-bytes", Default: "8KiB", Help: "So long a message may be, its header included: what the receiver takes (rsyslog's maxMessageSize, 8k unless set, splits what is longer). A record that is longer is sent as its pointer.", Value: size(&bytes, 1<<10, 1<<20)},
		{Name: "facility", Default: "13", Help: "The facility of messages: 13 is log audit, 16 to 23 are local0 to local7.", Value: count(&o.Facility, 1, 23)},
		{Name: "hostname", Help: "The HOSTNAME of messages; default: that of this machine.", Value: text(&o.Hostname, "NAME", "a name", notEmpty)},
		{Name: "app-name", Default: "ledgerlake", Help: "The APP-NAME of messages.", Value: text(&o.AppName, "NAME", "a name", notEmpty)},
		{Name: "enterprise", Default: syslog.DefaultEnterprise, Help: "The private enterprise number behind the @ of the structured data's id; the default is the one that is kept for examples.", Value: text(&o.Enterprise, "NUMBER", "a number as IANA gives them, such as 32473", syslog.ValidEnterprise)},
		{Name: "bom", Default: "false", Help: "A byte order mark before the text, as RFC 5424 wants it and few receivers do.", Value: boolean(&o.BOM)},
		{Name: "confirm", Default: string(syslog.Close), Help: "How it is known that a batch arrived. close: its connection is ended, and the receiver ends it too once it has read all; open: the connection stays, and the last messages are sent again on the next one (docs/destinations.md).", Value: oneOf(&confirm, string(syslog.Close), string(syslog.Open))},
		{Name: "resend", Default: "1MiB", Help: "With confirm open: how much of what was sent last is sent again on a new connection.", Value: size(&o.Resend, 0, 1<<30)},
		{Name: "timeout", Default: FormatDuration(syslog.DefaultTimeout), Help: "How long a connection, the next 64 KiB, or the receiver's end of the connection may take.", Value: duration(&o.Timeout, time.Second, 5*time.Minute)},
	})
	return &sinkType{
		help: "a receiver of syslog: RFC 5424 over TLS (RFC 5425)", linger: time.Second,
		settings: settings, check: t.check,
		open: func(context.Context, *Destination) (sink.Sink, error) {
			o := o
			o.Plaintext, o.CA, o.Cert, o.Key = t.plaintext, t.ca.Reveal(), t.cert.Reveal(), t.key.Reveal()
			o.Confirm, o.MessageBytes = syslog.Confirm(confirm), int(bytes)
			if o.Resend == 0 {
				o.Resend = -1
			}
			if o.Hostname == "" {
				o.Hostname, _ = os.Hostname()
			}
			return opened(syslog.New(o))
		},
	}
}

func natsType() *sinkType {
	var o natssink.Options
	var t netTLS
	var creds, seed, token, password Secret
	urls := texts(&o.URLs, "URL", "a URL of a server, as nats://host:4222, without a user and a password", func(s string) bool {
		return !strings.Contains(s, "@") && (strings.HasPrefix(s, "nats://") || strings.HasPrefix(s, "tls://"))
	})
	urls.hidden = true // someone may have put a secret into it
	settings := slices.Concat([]Setting{
		{Name: "urls", Required: true, Help: "Servers of one cluster, any of which is asked.", Value: urls},
	}, t.settings(), []Setting{
		{Name: "prefix", Default: natssink.DefaultPrefix, Help: "What subjects begin with: PREFIX.TENANT.KIND.", Value: text(&o.Prefix, "PREFIX", "letters, digits, - and _, and dots in between", natssink.ValidPrefix)},
		{Name: "stream", Help: "The stream that takes the subjects; where it is another one, the destination is suspended.", Value: text(&o.Stream, "NAME", "the name of a stream", notEmpty)},
		{Name: "inbox-prefix", Help: "The subjects by which acknowledgements come begin with it; default: _INBOX.", Value: text(&o.InboxPrefix, "PREFIX", "letters, digits, - and _, and dots in between", natssink.ValidPrefix)},
		{Name: "creds", Help: "What a .creds file holds.", Value: secret(&creds)},
		{Name: "nkey", Help: "The seed of a user that is a key (SU…).", Value: secret(&seed)},
		{Name: "token", Help: "A token.", Value: secret(&token)},
		{Name: "user", Help: "A user with a password.", Value: text(&o.User, "NAME", "the name of a user", notEmpty)},
		{Name: "password", Help: "The user's password.", Value: secret(&password)},
		{Name: "timeout", Default: FormatDuration(natssink.DefaultTimeout), Help: "How long an attempt at a batch may take.", Value: duration(&o.Timeout, time.Second, 5*time.Minute)},
	})
	return &sinkType{
		help: "a stream of NATS JetStream", linger: 100 * time.Millisecond,
		settings: settings, check: t.check,
		open: func(context.Context, *Destination) (sink.Sink, error) {
			o := o
			o.Plaintext, o.CA, o.Cert, o.Key = t.plaintext, t.ca.Reveal(), t.cert.Reveal(), t.key.Reveal()
			o.Creds, o.NKey, o.Token, o.Password = creds.Reveal(), seed.Reveal(), token.Reveal(), password.Reveal()
			return opened(natssink.New(o))
		},
	}
}

func kafkaType() *sinkType {
	k := &Kafka{}
	var o kafkasink.Options
	var brokers []string
	var bytes int64
	var compression string
	settings := []Setting{
		{Name: "brokers", Required: true, Help: "The brokers that are asked first for the rest of the cluster.", Value: texts(&brokers, "HOST:PORT", "host:port", isHostPort)},
		{Name: "topic", Required: true, Help: "The topic; {tenant} and {kind} in it stand for those of an event, in which all but letters, digits and - is _ and two hex digits. Topics are not created.", Value: text(&o.Topic, "TOPIC", "letters, digits, ., _ and -, and {tenant} or {kind}", kafkasink.ValidTopic)},
		{Name: "message-bytes", Default: "1MB", Help: "What the topic takes (max.message.bytes). A record that is larger is sent as its pointer.", Value: size(&bytes, 8<<10, 1<<30)},
		{Name: "compression", Default: string(kafkasink.Zstd), Help: "How batches are compressed.", Value: oneOf(&compression, string(kafkasink.None), string(kafkasink.Gzip), string(kafkasink.Snappy), string(kafkasink.LZ4), string(kafkasink.Zstd))},
		{Name: "timeout", Default: FormatDuration(kafkasink.DefaultTimeout), Help: "How long an attempt at a batch may take.", Value: duration(&o.Timeout, time.Second, 5*time.Minute)},
	}
	return &sinkType{
		help: "topics of Apache Kafka", linger: 100 * time.Millisecond,
		settings: append(settings, producerSettings(k)...),
		check: func() (name, fault string) {
			for _, r := range slices.Concat(k.tlsRules(), k.saslRules()) {
				if r.broken {
					return strings.ReplaceAll(r.name, ofKafka, ""), strings.ReplaceAll(r.fault, ofKafka, "")
				}
			}
			return "", ""
		},
		open: func(ctx context.Context, d *Destination) (sink.Sink, error) {
			if d.Brokers == nil {
				return nil, errors.New("nobody said how brokers are reached")
			}
			o := o
			o.MessageBytes, o.Compression = int(bytes), kafkasink.Compression(compression)
			var err error
			if o.Connection, err = d.Brokers(ctx, brokers, k); err != nil {
				return nil, err
			}
			return opened(kafkasink.New(o))
		},
	}
}

// ofKafka is what names of settings begin with where they are a process's, and not
// a destination's.
const ofKafka = "kafka."

// producerSettings are those of the settings of Kafka that a client has that only
// writes.
func producerSettings(k *Kafka) []Setting {
	var settings []Setting
	for _, s := range slices.Concat(k.settings(), k.SASL.settings()) {
		switch s.Name = strings.TrimPrefix(s.Name, ofKafka); s.Name {
		case "rack", "instance-id", "session-timeout", "group-protocol", "metadata-age":
			continue
		case "client-id":
			s.Default = "ledgerlake-export"
		}
		s.Help = strings.ReplaceAll(s.Help, ofKafka, "")
		settings = append(settings, s)
	}
	return settings
}

package config

import (
	"slices"
	"strconv"
)

// A rule is a fault that lies between settings.
type rule struct {
	broken bool
	name   string // of the setting that is to be looked at
	fault  string
}

// Check finds the faults that lie between settings. origins names where the
// values came from.
func (s *Ingest) Check(origins Origins) error {
	for _, r := range slices.Concat(s.sourceRules(), s.groupRules(origins), s.Keys.rules(origins), s.Chain.rules(), s.Kafka.tlsRules(), s.Kafka.saslRules(), lockRules("anchor", s.Anchors.Lock)) {
		if r.broken {
			return &Error{Name: r.name, Source: origins[r.name], Fault: r.fault}
		}
	}
	return nil
}

func (s *Ingest) sourceRules() []rule {
	return []rule{
		{len(s.Topics) == 0 && s.TopicPattern == "" && len(s.Assign) == 0, "topics", "not set: give --topics (or LEDGERLAKE_TOPICS, or topics in the file), one or more of: the name of a Kafka topic; or --topic-pattern, or --assign"},
		{len(s.Assign) > 0 && len(s.Topics) > 0, "assign", "goes without topics: a process reads given partitions, or topics that a group shares"},
		{len(s.Assign) > 0 && s.TopicPattern != "", "assign", "goes without topic-pattern: a process reads given partitions, or topics that a group shares"},
		{slices.Contains(s.Topics, s.ControlTopic), "topics", "has the control topic " + strconv.Quote(s.ControlTopic) + ", which is read anyway: leave it out"},
		{s.reads(s.DLQTopic), "dlq-topic", "is one of the topics that are read: rejects would come back for ever"},
		{s.DLQTopic != "" && s.DLQTopic == s.ControlTopic, "dlq-topic", "is the control topic: want another"},
		{s.Batch.GrowRows < s.Batch.Rows, "batch.grow-rows", "is less than batch.rows: want at least " + strconv.Itoa(s.Batch.Rows)},
	}
}

// reads reports whether a topic is read by its name.
func (s *Ingest) reads(topic string) bool {
	return slices.Contains(s.Topics, topic) || slices.ContainsFunc(s.Assign, func(p Partition) bool { return p.Topic == topic })
}

func (s *Ingest) groupRules(origins Origins) []rule {
	const noGroup = "has no use with assign, which joins no group"
	k := &s.Kafka
	assigned, next := len(s.Assign) > 0, k.GroupProtocol == GroupConsumer
	_, timeout := origins["kafka.session-timeout"]
	return []rule{
		{assigned && k.InstanceID != "", "kafka.instance-id", noGroup},
		{assigned && timeout, "kafka.session-timeout", noGroup},
		{assigned && next, "kafka.group-protocol", noGroup},
		{next && timeout, "kafka.session-timeout", "has no use with kafka.group-protocol=consumer: the brokers' group.consumer.session.timeout.ms decides"},
	}
}

func (k *Kafka) tlsRules() []rule {
	return []rule{
		{!k.TLS && k.CAFile != "", "kafka.ca-file", "has no use without kafka.tls"},
		{!k.TLS && k.CertFile != "", "kafka.cert-file", "has no use without kafka.tls"},
		{(k.CertFile == "") != (k.KeyFile == ""), "kafka.cert-file", "goes with kafka.key-file: want both or none"},
	}
}

func (k *Kafka) saslRules() []rule {
	const mechanism = "kafka.sasl.mechanism"
	s, o := &k.SASL, &k.SASL.OAuth
	password := slices.Contains([]string{SASLPlain, SASLScram256, SASLScram512}, s.Mechanism)
	bearer, flow := s.Mechanism == SASLOAuthBearer, o.TokenURL != ""
	return []rule{
		{password && s.User == "", mechanism, "needs kafka.sasl.user"},
		{password && s.Password.IsZero(), mechanism, "needs kafka.sasl.password or kafka.sasl.password-file"},
		{s.Mechanism == "" && s.User != "", "kafka.sasl.user", "has no use without kafka.sasl.mechanism"},
		{!password && s.User != "", "kafka.sasl.user", "has no use with kafka.sasl.mechanism=" + s.Mechanism},
		{!password && s.Mechanism != "" && !s.Password.IsZero(), "kafka.sasl.password", "has no use with kafka.sasl.mechanism=" + s.Mechanism},
		{bearer && !flow && s.Token.IsZero(), mechanism, "needs kafka.sasl.token, kafka.sasl.token-file or kafka.sasl.oauth.token-url"},
		{bearer && flow && !s.Token.IsZero(), "kafka.sasl.token", "and kafka.sasl.oauth.token-url are two sources of a token: want one"},
		{!bearer && !s.Token.IsZero(), "kafka.sasl.token", "has no use without kafka.sasl.mechanism=oauthbearer"},
		{!bearer && flow, "kafka.sasl.oauth.token-url", "has no use without kafka.sasl.mechanism=oauthbearer"},
		{!bearer && len(o.Extensions) > 0, "kafka.sasl.oauth.extensions", "has no use without kafka.sasl.mechanism=oauthbearer"},
		{flow && o.ClientID == "", "kafka.sasl.oauth.token-url", "needs kafka.sasl.oauth.client-id"},
		{flow && o.ClientSecret.IsZero(), "kafka.sasl.oauth.token-url", "needs kafka.sasl.oauth.client-secret or kafka.sasl.oauth.client-secret-file"},
		{!flow && o.ClientID != "", "kafka.sasl.oauth.client-id", "has no use without kafka.sasl.oauth.token-url"},
		{!flow && !o.ClientSecret.IsZero(), "kafka.sasl.oauth.client-secret", "has no use without kafka.sasl.oauth.token-url"},
		{!flow && len(o.Scopes) > 0, "kafka.sasl.oauth.scopes", "has no use without kafka.sasl.oauth.token-url"},
		{s.Mechanism == SASLAWSMSKIAM && !k.TLS, mechanism, "needs kafka.tls: Amazon MSK takes IAM over TLS alone"},
	}
}

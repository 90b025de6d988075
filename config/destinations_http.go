package config

import (
	"context"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/httpsink"
)

// httpTypes are the destinations that take events by HTTP.
var httpTypes = map[string]func() *sinkType{
	"webhook":       webhookType,
	"splunk-hec":    splunkType,
	"elasticsearch": func() *sinkType { return elasticType("the _bulk interface of Elasticsearch") },
	"opensearch":    func() *sinkType { return elasticType("the _bulk interface of OpenSearch") },
	"otlp":          otlpType,
	"datadog":       datadogType,
}

// An httpSink is the settings that they all have.
type httpSink struct {
	url, proxy          string
	plaintext           bool
	ca, cert, key       Secret
	headers, proxyLogin Secret
	compression         string
	timeout             time.Duration
}

func httpURL(p *string) Value {
	v := text(p, "URL", "a URL that begins with https://, without a user and a password", func(s string) bool {
		return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
	})
	v.hidden = true // someone may have put a secret into it
	return v
}

// reach returns the settings of how the receiver is reached. url is what is said
// of its URL, and compressions are those that it takes.
func (h *httpSink) reach(url string, compressions ...string) []Setting {
	settings := []Setting{
		{Name: "url", Required: true, Help: url, Value: httpURL(&h.url)},
		{Name: "allow-plaintext", Default: "false", Help: "Let the URL begin with http://. Whoever is on the way then reads events and secrets.", Value: boolean(&h.plaintext)},
		{Name: "tls.ca", Help: "Who may sign the receiver's certificate, PEM; default: who the system trusts.", Value: secret(&h.ca)},
		{Name: "tls.certificate", Help: "Our certificate for the receiver, and those that lead to its CA, PEM.", Value: secret(&h.cert)},
		{Name: "tls.key", Help: "The private key of the certificate, PEM.", Value: secret(&h.key)},
		{Name: "proxy", Help: "The http:// or https:// URL of a proxy. The environment is not asked for one.", Value: httpURL(&h.proxy)},
		{Name: "proxy-login", Help: "USER:PASSWORD for the proxy.", Value: secret(&h.proxyLogin)},
		{Name: "headers", Help: "More headers of each request: \"Name: value\", one a line.", Value: secret(&h.headers)},
		{Name: "timeout", Default: "1m", Help: "How long a request may take, answer and all.", Value: duration(&h.timeout, time.Second, 5*time.Minute)},
	}
	if len(compressions) > 0 {
		settings = append(settings, Setting{
			Name: "compression", Default: compressions[0], Help: "How requests are compressed.", Value: oneOf(&h.compression, compressions...),
		})
	}
	return settings
}

func (h *httpSink) options(d *Destination) httpsink.HTTP {
	return httpsink.HTTP{
		URL: h.url, AllowPlaintext: h.plaintext, CA: h.ca.Reveal(), Certificate: h.cert.Reveal(), Key: h.key.Reveal(),
		Proxy: h.proxy, ProxyLogin: h.proxyLogin.Reveal(), Headers: h.headers.Reveal(),
		Compression: httpsink.Compression(h.compression), Timeout: h.timeout, Version: d.Version, Now: time.Now,
	}
}

// jsonFormats are those that are JSON.
var jsonFormats = []event.Format{event.JSON, event.OCSF18, event.OCSF13, event.ECS}

func webhookType() *sinkType {
	var h httpSink
	var o httpsink.WebhookOptions
	var path, signs, signed Secret
	var private bool
	var body string
	t := &sinkType{
		help: "a URL that batches are posted to, signed as Standard Webhooks 1.0 says", formats: jsonFormats,
		settings: append(h.reach("Where to. It stands in the bucket: what of it is secret goes into path."),
			Setting{Name: "path", Help: "What is appended to url, where it is a secret.", Value: secret(&path)},
			Setting{Name: "secret", Required: true, Help: "What signs: whsec_ and base64 of 24 to 64 bytes (HMAC-SHA256, v1), or whsk_ and base64 of an Ed25519 private key (v1a).", Value: secret(&signs)},
			Setting{Name: "old-secret", Help: "A second one that signs too, while receivers go from one to the other.", Value: secret(&signed)},
			Setting{Name: "body", Default: "array", Help: "A JSON array of events, or one event a line (application/x-ndjson).", Value: oneOf(&body, "array", "lines")},
			Setting{Name: "allow-private", Default: "false", Help: "Let the receiver be at an address that is not of the public internet.", Value: boolean(&private)},
		),
	}
	t.check, t.open = opener(func(d *Destination) (*httpsink.Webhook, error) {
		o := o
		o.HTTP, o.Path, o.Lines = h.options(d), path.Reveal(), body == "lines"
		o.OnlyPublic = !private
		o.Secrets = []string{signs.Reveal()}
		if !signed.IsZero() {
			o.Secrets = append(o.Secrets, signed.Reveal())
		}
		return httpsink.NewWebhook(o)
	})
	return t
}

// opener returns what opens a driver, and what finds its faults without reaching
// anything: that it cannot be made.
func opener[S sink.Sink](open func(*Destination) (S, error)) (check func() (name, fault string), _ func(context.Context, *Destination) (sink.Sink, error)) {
	check = func() (name, fault string) {
		s, err := open(&Destination{})
		if err != nil {
			name, fault, _ = strings.Cut(err.Error(), ": ")
			return name, fault
		}
		_ = s.Close(context.Background())
		return "", ""
	}
	return check, func(_ context.Context, d *Destination) (sink.Sink, error) { return opened(open(d)) }
}

// opened returns a driver as a sink: none where there is an error.
func opened[S sink.Sink](s S, err error) (sink.Sink, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func splunkType() *sinkType {
	var h httpSink
	var o httpsink.SplunkOptions
	var token Secret
	var request int64
	t := &sinkType{
		help: "Splunk's HTTP Event Collector",
		settings: append(h.reach("The collector, such as https://splunk.example:8088; /services/collector/event where it has no path.", "gzip", "none"),
			Setting{Name: "token", Required: true, Help: "The token of the collector.", Value: secret(&token)},
			Setting{Name: "index", Help: "The index of the events; default: the token's.", Value: text(&o.Index, "INDEX", "an index", notEmpty)},
			Setting{Name: "source", Default: "ledgerlake", Help: "The source of the events.", Value: text(&o.Source, "SOURCE", "a source", notEmpty)},
			Setting{Name: "sourcetype", Default: "ledgerlake:audit", Help: "The source type of the events. Set TRUNCATE = 0 for it: Splunk cuts events at 10,000 bytes.", Value: text(&o.Sourcetype, "TYPE", "a source type", notEmpty)},
			Setting{Name: "host", Help: "The host of the events; default: the collector's.", Value: text(&o.Host, "HOST", "a host", notEmpty)},
			Setting{Name: "ack", Default: "false", Help: "Whether the token has indexer acknowledgement: an event then counts once it is indexed.", Value: boolean(&o.Ack)},
			Setting{Name: "ack-within", Default: "5m", Help: "How long the indexers have before events are sent again.", Value: duration(&o.AckWithin, time.Second, 9*time.Minute)},
			Setting{Name: "request-bytes", Default: "1MB", Help: "How large a request gets, before it is compressed. Splunk Cloud takes 1 MB.", Value: size(&request, 64<<10, 512<<20)},
		),
	}
	t.check, t.open = opener(func(d *Destination) (*httpsink.Splunk, error) {
		o := o
		o.HTTP, o.Token, o.RequestBytes = h.options(d), token.Reveal(), int(request)
		return httpsink.NewSplunk(o)
	})
	return t
}

func elasticType(help string) *sinkType {
	var h httpSink
	var o httpsink.ElasticOptions
	var key, password Secret
	t := &sinkType{
		help: help, format: event.ECS, formats: jsonFormats,
		settings: append(h.reach("The cluster, such as https://elastic.example:9200.", "gzip", "none"),
			Setting{
				Name: "index", Default: "logs-ledgerlake.audit-default", Help: "The data stream or index of an event. {tenant}, {topic}, {event}, {year}, {month} and {day} stand for what the event has.",
				Value: text(&o.Index, "PATTERN", "lower-case letters, digits, dots, dashes and underscores, with {tenant}, {topic}, {event}, {year}, {month}, {day}", func(s string) bool {
					_, err := httpsink.ParseIndex(s)
					return err == nil
				}),
			},
			Setting{Name: "api-key", Help: "The API key, in base64, as Elasticsearch shows it (encoded).", Value: secret(&key)},
			Setting{Name: "user", Help: "The user, where there is no API key.", Value: text(&o.User, "USER", "a user", notEmpty)},
			Setting{Name: "password", Help: "The user's password.", Value: secret(&password)},
		),
	}
	t.check, t.open = opener(func(d *Destination) (*httpsink.Elastic, error) {
		o := o
		o.HTTP, o.APIKey, o.Password = h.options(d), key.Reveal(), password.Reveal()
		return httpsink.NewElastic(o)
	})
	return t
}

func otlpType() *sinkType {
	var h httpSink
	var o httpsink.OTLPOptions
	var body string
	var resource []string
	t := &sinkType{
		help: "OpenTelemetry logs: OTLP over HTTP, protobuf", formats: jsonFormats,
		settings: append(h.reach("The receiver, such as https://collector.example:4318; /v1/logs where it has no path.", "gzip", "zstd", "none"),
			Setting{Name: "service", Default: "ledgerlake", Help: "service.name of the resource.", Value: text(&o.Service, "NAME", "a name", notEmpty)},
			Setting{Name: "resource", Help: "More attributes of the resource.", Value: texts(&resource, "NAME=VALUE", "name=value", func(s string) bool {
				name, _, ok := strings.Cut(s, "=")
				return ok && name != ""
			})},
			Setting{Name: "body", Default: "event", Help: "The body of a log record: the event in its format, as a text, or a line for people. The attributes are the same.", Value: oneOf(&body, "event", "line")},
		),
	}
	t.check, t.open = opener(func(d *Destination) (*httpsink.OTLP, error) {
		o := o
		o.HTTP, o.ArchiveID, o.Line, o.Resource = h.options(d), d.ArchiveID, body == "line", map[string]string{}
		for _, s := range resource {
			name, value, _ := strings.Cut(s, "=")
			o.Resource[name] = value
		}
		return httpsink.NewOTLP(o)
	})
	return t
}

func datadogType() *sinkType {
	var h httpSink
	var o httpsink.DatadogOptions
	var key Secret
	settings := h.reach("The intake, where it is not that of site; /api/v2/logs where it has no path.", "gzip", "none")
	settings[0].Required = false
	t := &sinkType{
		help: "Datadog's log intake, v2", formats: jsonFormats,
		settings: append(settings,
			Setting{Name: "site", Help: "The site of Datadog, such as datadoghq.eu.", Value: text(&o.Site, "SITE", "a site of Datadog", notEmpty)},
			Setting{Name: "api-key", Required: true, Help: "The API key.", Value: secret(&key)},
			Setting{Name: "source", Default: "ledgerlake", Help: "ddsource of the logs.", Value: text(&o.Source, "SOURCE", "a source", notEmpty)},
			Setting{Name: "service", Default: "ledgerlake", Help: "service of the logs.", Value: text(&o.Service, "NAME", "a name", notEmpty)},
			Setting{Name: "hostname", Help: "hostname of the logs.", Value: text(&o.Host, "HOST", "a host", notEmpty)},
			Setting{Name: "tags", Help: "ddtags of the logs: name:value, with commas between.", Value: text(&o.Tags, "TAGS", "tags", notEmpty)},
		),
	}
	t.check, t.open = opener(func(d *Destination) (*httpsink.Datadog, error) {
		o := o
		o.HTTP, o.APIKey = h.options(d), key.Reveal()
		return httpsink.NewDatadog(o)
	})
	return t
}

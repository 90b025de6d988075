package telemetry

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings are what the environment says of the way out. The zero Settings are
// that there is none.
type Settings struct {
	Endpoint    string            // URL that spans are posted to; "": none are made
	Headers     map[string]string // of each request
	Timeout     time.Duration     // of all tries of a request
	Gzip        bool
	Certificate string // file of CAs, PEM; "": the system's
	ClientCert  string // file, PEM; "": none
	ClientKey   string // file, PEM
}

// On reports whether spans are made.
func (s *Settings) On() bool { return s.Endpoint != "" }

// An Error is a variable that cannot be used.
type Error struct{ Name, Fault string }

func (e *Error) Error() string { return e.Name + ": " + e.Fault }

// samplers are the values of OTEL_TRACES_SAMPLER that the SDK knows.
var samplers = []string{"", "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}

// Read reads the settings from an environment of NAME=VALUE, which the SDK also
// reads itself: its sampler (OTEL_TRACES_SAMPLER and its _ARG), the resource
// (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES), limits (OTEL_SPAN_…, OTEL_LINK_…)
// and batches (OTEL_BSP_…). An error is an [*Error].
//
// It departs from the specification in that no endpoint is that nothing is sent,
// and not that localhost is tried; gRPC is not spoken.
func Read(environ []string) (Settings, error) {
	e := variables{}
	for _, v := range environ {
		if name, value, ok := strings.Cut(v, "="); ok && strings.HasPrefix(name, "OTEL_") {
			e[name] = value
		}
	}
	if strings.EqualFold(e["OTEL_SDK_DISABLED"], "true") || e["OTEL_TRACES_EXPORTER"] == "none" {
		return Settings{}, nil
	}
	s := Settings{Certificate: e.otlp("CERTIFICATE"), ClientCert: e.otlp("CLIENT_CERTIFICATE"), ClientKey: e.otlp("CLIENT_KEY")}
	for _, read := range []func(*Settings) error{e.endpoint, e.words, e.headers, e.timeout} {
		if err := read(&s); err != nil || !s.On() {
			return Settings{}, err
		}
	}
	return s, nil
}

// variables are those of OpenTelemetry, by name.
type variables map[string]string

// otlp returns the variable of that name for traces, or for all of OTLP.
func (e variables) otlp(name string) string {
	return cmp.Or(e["OTEL_EXPORTER_OTLP_TRACES_"+name], e["OTEL_EXPORTER_OTLP_"+name])
}

// named returns the name of the variable that otlp takes.
func (e variables) named(name string) string {
	if e["OTEL_EXPORTER_OTLP_TRACES_"+name] != "" {
		return "OTEL_EXPORTER_OTLP_TRACES_" + name
	}
	return "OTEL_EXPORTER_OTLP_" + name
}

// endpoint reads where spans go: a URL as it is, or one to which /v1/traces is
// added.
func (e variables) endpoint(s *Settings) error {
	text := e.otlp("ENDPOINT")
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &Error{e.named("ENDPOINT"), "want a URL such as http://collector:4318"}
	}
	if e["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] == "" {
		u = u.JoinPath("v1/traces")
	}
	s.Endpoint = u.String()
	return nil
}

// words reads what is one of a few words.
func (e variables) words(s *Settings) error {
	for _, w := range []struct {
		name, value string
		want        []string
	}{
		{"OTEL_TRACES_EXPORTER", e["OTEL_TRACES_EXPORTER"], []string{"", "otlp"}},
		{e.named("PROTOCOL"), e.otlp("PROTOCOL"), []string{"", "http/protobuf"}},
		{e.named("COMPRESSION"), e.otlp("COMPRESSION"), []string{"", "none", "gzip"}},
		{"OTEL_TRACES_SAMPLER", e["OTEL_TRACES_SAMPLER"], samplers},
	} {
		if !slices.Contains(w.want, w.value) {
			return &Error{w.name, fmt.Sprintf("%q is not to be had: want one of %s", w.value, strings.Join(slices.DeleteFunc(slices.Clone(w.want), func(s string) bool { return s == "" }), ", "))}
		}
	}
	s.Gzip = e.otlp("COMPRESSION") == "gzip"
	return nil
}

// headers reads name=value,name=value, values being URL-encoded.
func (e variables) headers(s *Settings) error {
	s.Headers = map[string]string{}
	for part := range strings.SplitSeq(e.otlp("HEADERS"), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			return &Error{e.named("HEADERS"), "want name=value,name=value, values being URL-encoded"} // its value may be a secret
		}
		s.Headers[name] = value
	}
	return nil
}

// timeout reads milliseconds.
func (e variables) timeout(s *Settings) error {
	s.Timeout = 10 * time.Second
	text := e.otlp("TIMEOUT")
	if text == "" {
		return nil
	}
	ms, err := strconv.Atoi(text)
	if err != nil || ms < 1 {
		return &Error{e.named("TIMEOUT"), "want milliseconds, such as 10000"}
	}
	s.Timeout = time.Duration(ms) * time.Millisecond
	return nil
}

package config

import (
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/event"
)

const httpFile = `destinations:
  - name: hook
    type: webhook
    url: https://hooks.example/in
    secret-env: HOOK
    old-secret-env: OLD
  - name: splunk
    type: splunk-hec
    url: https://splunk.example:8088
    token-env: TOKEN
    ack: true
  - name: elastic
    type: elasticsearch
    url: https://elastic.example:9200
    api-key-env: TOKEN
    index: audit-{tenant}-{month}
  - name: search
    type: opensearch
    url: https://search.example:9200
    user: export
    password-env: TOKEN
  - name: otel
    type: otlp
    url: https://collector.example:4318
    compression: zstd
    resource: [deployment.environment.name=prod, region=eu]
    headers-env: HEADERS
  - name: dog
    type: datadog
    site: datadoghq.eu
    api-key-env: TOKEN
`

var httpEnviron = []string{
	"TOKEN=hush", "HEADERS=Authorization: Bearer hush",
	"HOOK=whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5", "OLD=whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY=",
}

// Destinations that take events by HTTP are read whole, and opened without that
// anything is reached.
func TestHTTPSettings(t *testing.T) {
	all, err := parseDestinations([]byte(httpFile), httpEnviron)
	if err != nil || len(all) != len(httpTypes) {
		t.Fatalf("%d destinations, %v", len(all), err)
	}
	for i := range all {
		d := &all[i]
		if (d.Format == event.ECS) != (d.Name == "elastic" || d.Name == "search") {
			t.Errorf("%s: %s", d.Name, d.Format)
		}
		s, err := d.Open(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if l := s.Limits(); l.Events == 0 || l.EventBytes == 0 || l.BatchBytes < l.EventBytes {
			t.Errorf("%s: limits %+v", d.Name, l)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if strings.Contains(d.Spec, "hush") || strings.Contains(d.Spec, "whsec") {
			t.Errorf("%s: the spec tells a secret: %s", d.Name, d.Spec)
		}
	}
}

// What cannot be is refused by the name of its setting, before anything starts,
// and nothing of a secret is shown.
func TestHTTPSettingsThatCannotBe(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"url: https://hooks.example/in", "url: https://user:hush@hooks.example/in", "url: no user and no password may stand in it"},
		{"url: https://hooks.example/in", "url: http://hooks.example/in", "url: http:// sends events and secrets in the clear"},
		{"url: https://hooks.example/in", "url: https://169.254.169.254/in", "url: its address 169.254.169.254 is not one of the public internet: set allow-private"},
		{"url: https://hooks.example/in", "url: https://[::ffff:10.0.0.1]/in", "set allow-private"},
		{"url: https://hooks.example/in", "url: ftp://hooks.example/in", "want a URL that begins with https://"},
		{"secret-env: HOOK", "secret-env: TOKEN", "secret: want whsec_"},
		{"old-secret-env: OLD", "old-secret-env: TOKEN", "old-secret: want whsec_"},
		{"    secret-env: HOOK\n", "", "no secret-file or secret-env"},
		{"    secret-env: HOOK\n", "    secret: hush\n", "a secret does not stand here"},
		{"    secret-env: HOOK\n", "    secret-env: HOOK\n    compression: gzip\n", "no such setting of this type"},
		{"    secret-env: HOOK\n", "    secret-env: HOOK\n    format: cef\n", "is not allowed: want one of json, ocsf-1.8, ocsf-1.3, ecs"},
		{"    secret-env: HOOK\n", "    secret-env: HOOK\n    tls: {ca-env: TOKEN}\n", "tls.ca: no certificate"},
		{"    secret-env: HOOK\n", "    secret-env: HOOK\n    tls: {key-env: TOKEN}\n", "tls.key: "},
		{"    secret-env: HOOK\n", "    secret-env: HOOK\n    proxy: socks5://p\n", "want a URL that begins with https://"},
		{"    secret-env: HOOK\n", "    secret-env: HOOK\n    proxy: http://p\n    proxy-login-env: TOKEN\n", "proxy-login: want USER:PASSWORD"},
		{"headers-env: HEADERS", "headers-env: TOKEN", "headers: want lines"},
		{"compression: zstd", "compression: br", "want one of gzip, zstd, none"},
		{"resource: [", "resource: [x, ", "want one or more of: name=value"},
		{"    user: export\n", "", "user: want user and password"},
		{"user: export\n", "user: export\n    api-key-env: TOKEN\n", "user: there is an API key too"},
		{"index: audit-{tenant}-{month}", "index: Audit-{tenant}", "is not allowed: want lower-case letters"},
		{"index: audit-{tenant}-{month}", "index: audit-{user}", "is not allowed: want lower-case letters"},
		{"    token-env: TOKEN\n", "", "no token-file or token-env"},
		{"site: datadoghq.eu", "site: https://evil.example", "site: want a site of Datadog"},
		{"site: datadoghq.eu", "site: datadoghq.eu\n    url: https://a.example", "site: there is a url too"},
		{"    site: datadoghq.eu\n", "", "site: want a site of Datadog"},
	} {
		text := strings.Replace(httpFile, c.from, c.to, 1)
		if text == httpFile {
			t.Fatalf("%q changes nothing", c.from)
		}
		_, err := parseDestinations([]byte(text), httpEnviron)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s gives %v, want %s", c.to, err, c.want)
		}
	}
}

package main

import (
	"encoding/hex"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/telemetry/telemetrytest"
)

// What was delivered is traced by batch, and says all of it.
func TestStreamTraces(t *testing.T) {
	s := newStage(t)
	collector := telemetrytest.New(t)
	s.environ = append(s.environ, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	s.streaming(s.delivered, "--stream.poll", "100ms")
	sent := int64(0)
	for _, b := range collector.Spans("export batch") {
		if name, _ := telemetrytest.Attribute(b, "ledgerlake.destination"); name != "files" {
			t.Errorf("a batch to %q", name)
		}
		if below := collector.Children(b); strings.Join(below, " ") != "deliver" {
			t.Errorf("below a batch there is %q", below)
		}
	}
	for _, d := range collector.Spans("deliver") {
		_, n := telemetrytest.Attribute(d, "ledgerlake.delivered")
		sent += n
	}
	if sent < 10 {
		t.Errorf("%d events delivered, want 10 rows or more", sent)
	}
}

// An answer goes on with the trace of who asked, if that one has a token; the path
// stands in it as a pattern.
func TestServeTraces(t *testing.T) {
	collector := telemetrytest.New(t)
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	acme := token(t, file, "acme-app", "acme")
	address, _, stop := servingIn(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}, "--tokens", file, onDisk(t))
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, secret := range []string{acme, "no token"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/v1/tenants/acme/recent", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("traceparent", "00-"+trace+"-"+span+"-01")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	if code, err := stop(); code != 0 || err != nil {
		t.Fatalf("it ends with %d, %v", code, err)
	}
	answers := collector.Spans("GET /v1/tenants/{tenant}/recent")
	if len(answers) != 2 {
		t.Fatalf("%d answers: %v", len(answers), collector.Got())
	}
	for _, a := range answers {
		_, status := telemetrytest.Attribute(a, "http.response.status_code")
		of, parent := hex.EncodeToString(a.TraceId), hex.EncodeToString(a.ParentSpanId)
		if follows := of == trace && parent == span; follows != (status == 200) {
			t.Errorf("status %d: trace %s, parent %s", status, of, parent)
		}
	}
	for _, r := range collector.Got() {
		if text := r.String(); strings.Contains(text, "acme") {
			t.Errorf("a tenant or a token stands in %s", text)
		}
	}
}

// How an attempt failed is said in a few words.
func TestFailedSpans(t *testing.T) {
	for want, a := range map[string]stream.Attempt{"": {Events: 2, Delivered: 2}, "not taken yet": {Events: 3, Delivered: 1, Retry: 1}, "refused": {Events: 3, Delivered: 2}} {
		if s := attemptSpan("siem", archive.Line{Topic: "t"}, &a); s.Children[0].Failed != want {
			t.Errorf("%+v: %q, want %q", a, s.Children[0].Failed, want)
		}
	}
	if s := answerSpan(&serve.Request{Status: 502}); s.Failed == "" || s.Name != "GET" {
		t.Errorf("502: %+v", s)
	}
	if s := answerSpan(&serve.Request{Status: 404}); s.Failed != "" {
		t.Errorf("404: %+v", s)
	}
}

package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A client posts spans. The exporter of OpenTelemetry for HTTP would do the same,
// and bring gRPC into every binary.
//
// Source: OpenTelemetry Protocol Specification 1.9, "OTLP/HTTP".
type client struct {
	s    Settings
	http *http.Client
	wait func(ctx context.Context, d time.Duration) error // between tries
}

var _ otlptrace.Client = (*client)(nil)

func newClient(s Settings) (*client, error) {
	conf, err := tlsConfig(&s)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = conf
	return &client{s: s, wait: wait, http: &http.Client{
		Transport: transport,
		// A redirect would take the headers, which may be secrets, elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// tlsConfig reads the files that the settings name.
func tlsConfig(s *Settings) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Certificate != "" {
		pem, err := os.ReadFile(s.Certificate)
		if err != nil {
			return nil, &Error{"OTEL_EXPORTER_OTLP_CERTIFICATE", err.Error()}
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &Error{"OTEL_EXPORTER_OTLP_CERTIFICATE", s.Certificate + " has no certificate in PEM"}
		}
	}
	if s.ClientCert != "" || s.ClientKey != "" {
		pair, err := tls.LoadX509KeyPair(s.ClientCert, s.ClientKey)
		if err != nil {
			return nil, &Error{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", err.Error()}
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// Start implements [otlptrace.Client].
func (c *client) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client].
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements [otlptrace.Client]. It tries again what may be tried
// again, for as long as the timeout lets it.
func (c *client) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	ctx, cancel := context.WithTimeout(ctx, c.s.Timeout)
	defer cancel()
	body, err := c.body(spans)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		again, after, err := c.post(ctx, body)
		if err == nil || !again {
			return err
		}
		if c.wait(ctx, max(after, min(500*time.Millisecond<<min(attempt, 4), 5*time.Second))) != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// body returns an ExportTraceServiceRequest: TracesData has the same one member,
// and its package does without gRPC.
func (c *client) body(spans []*otlp.ResourceSpans) ([]byte, error) {
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err != nil || !c.s.Gzip {
		return body, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// post makes one try. after is how long the collector wants to be left alone.
func (c *client) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.s.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	for name, value := range c.s.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if c.s.Gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return true, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection is used again
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return false, 0, nil // a partial success is not to be sent again
	case code == http.StatusTooManyRequests, code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		s, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return true, time.Duration(max(s, 0)) * time.Second, fmt.Errorf("the collector answers %d", code)
	}
	return false, 0, fmt.Errorf("the collector answers %d", resp.StatusCode)
}

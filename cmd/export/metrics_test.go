package main

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/internal/metricspage"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// everyStreamMetric returns metrics of which each has a series.
func everyStreamMetric() *streamMetrics {
	h := &health{}
	h.begin(stream.New(stream.Settings{}, []stream.Destination{{Name: "siem", Format: "json"}}))
	m := newStreamMetrics(h)
	m.Requested(s3sink.Request{Operation: "PutObject", Status: 200})
	ev := m.events()
	ev.Delivered("siem", archive.Line{}, stream.Delivery{Rows: 1})
	ev.Retry("siem", archive.Line{}, stream.Wait{})
	ev.Dead("siem", archive.Line{}, stream.Letter{})
	ev.Dropped("siem", archive.Line{}, "acme", 0, 1)
	return m
}

func everyServeMetric() *daemon.Metrics {
	r := newServeReport(zap.NewNop(), false)
	r.metrics.Requested(s3sink.Request{Operation: "GetObject", Status: 200})
	r.did(serve.Request{Route: "/v1/tenants/{tenant}/recent", Status: 200})
	return r.metrics
}

// docs/metrics.md has what the code has.
func TestMetricsAreDocumented(t *testing.T) {
	const page = "../../docs/metrics.md"
	metricspage.Check(t, page, "Metrics of ledgerlake-export stream", everyStreamMetric().Registry, "ledgerlake_export_", *update)
	metricspage.Check(t, page, "Metrics of ledgerlake-export serve", everyServeMetric().Registry, "ledgerlake_export_serve_", *update)
}

// Prometheus' own rules of names and help are kept.
func TestMetricsLint(t *testing.T) {
	for _, m := range []*daemon.Metrics{everyStreamMetric().Metrics, everyServeMetric()} {
		problems, err := testutil.GatherAndLint(m.Registry)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

package daemon

import (
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/ledgerlake/ledgerlake/s3sink"
)

// Seconds are the bounds of histograms of time, from 5 ms to a day.
var Seconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600}

// Metrics is what Prometheus is told by any process: what runs, what it takes of
// its machine, and what it asked of the store. A command adds its own.
type Metrics struct {
	*prometheus.Registry
	namespace string // begins the name of every metric of ours

	requests *prometheus.CounterVec
	took     prometheus.Histogram
}

// NewMetrics returns metrics under a namespace; version is that of the program.
func NewMetrics(namespace, version string) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(), namespace: namespace}
	m.requests = m.Counters("store_requests_total", "Requests to the store, by S3's name and the answer's status; none: no answer. 412 is usual.", "operation", "code")
	m.took = m.Histogram("store_request_seconds", "How long the store took to answer a request.", Seconds[:14])
	m.MustRegister(m.buildInfo(version), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Requested counts a request to the store.
func (m *Metrics) Requested(r s3sink.Request) {
	m.requests.WithLabelValues(r.Operation, codeOf(r.Status)).Inc()
	m.took.Observe(r.Took.Seconds())
}

// codeOf returns a status as a label; those that no store should give share
// one for their class.
func codeOf(status int) string {
	switch status {
	case 0:
		return "none"
	case 200, 204, 206, 400, 401, 403, 404, 409, 412, 429, 500, 502, 503, 504:
		return strconv.Itoa(status)
	}
	return strconv.Itoa(status/100%10) + "xx"
}

// Counter adds a counter.
func (m *Metrics) Counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: m.namespace, Name: name, Help: help})
	m.MustRegister(c)
	return c
}

// Counters adds counters that labels tell apart.
func (m *Metrics) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: m.namespace, Name: name, Help: help}, labels)
	m.MustRegister(c)
	return c
}

// Gauge adds a gauge that is read at each scrape.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: m.namespace, Name: name, Help: help}, read))
}

// Ready adds the gauge that says what /readyz does.
func (m *Metrics) Ready(ready func() bool) {
	m.Gauge("ready", "1 where /readyz says 200, 0 where it says 503: its body says why.", func() float64 {
		if ready() {
			return 1
		}
		return 0
	})
}

// Histogram adds a histogram.
func (m *Metrics) Histogram(name, help string, bounds []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: m.namespace, Name: name, Help: help, Buckets: bounds})
	m.MustRegister(h)
	return h
}

// buildInfo is 1, and says by labels what runs.
func (m *Metrics) buildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: m.namespace, Name: "build_info", Help: "1; the labels say which version runs, and what built it.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	}, func() float64 { return 1 })
}

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/export/stream"
)

// health answers whoever asks how this process is.
//
// Alive is one that answers. Ready is one of whose destinations none is suspended
// or invalid, no log waits for somebody, and no line cannot be read: a destination
// that is away is no reason to kill the process, and one to look.
type health struct {
	mu       sync.Mutex
	engine   *stream.Engine
	stopping bool
}

func (h *health) begin(e *stream.Engine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.engine = e
}

func (h *health) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = true
}

// standings returns how all destinations stand; nil before the engine is there.
func (h *health) standings() []stream.Standing {
	h.mu.Lock()
	e := h.engine
	h.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.Standings()
}

// A streamReadiness is what /readyz says.
type streamReadiness struct {
	Ready        bool                `json:"ready"`
	Why          string              `json:"why,omitempty"`
	Destinations []destinationHealth `json:"destinations"`
}

type destinationHealth struct {
	Name         string `json:"name"`
	State        string `json:"state"` // "" while another process has it
	Leads        bool   `json:"leads"`
	RowsToGo     int64  `json:"rowsToGo"` // in data files
	SegmentsToGo int64  `json:"segmentsToGo"`
}

func (h *health) ready() streamReadiness {
	r := streamReadiness{Destinations: []destinationHealth{}}
	var why []string
	all := h.standings()
	h.mu.Lock()
	stopping := h.stopping
	h.mu.Unlock()
	switch {
	case stopping:
		why = append(why, "stopping")
	case all == nil:
		why = append(why, "the archive is not open yet")
	}
	for _, s := range all {
		r.Destinations = append(r.Destinations, destinationHealth{s.Name, s.State, s.Leads, s.Rows, s.Segments})
		switch {
		case s.Fault != "":
			why = append(why, s.Name+": "+s.Fault)
		case s.State == stream.Suspended, s.State == stream.Invalid:
			why = append(why, s.Name+" is "+s.State)
		case s.Stopped > 0:
			why = append(why, fmt.Sprintf("%s: %d logs wait", s.Name, s.Stopped))
		case s.Failing > 0:
			why = append(why, fmt.Sprintf("%s: %d lines cannot be read", s.Name, s.Failing))
		}
	}
	r.Why = strings.Join(why, "; ")
	r.Ready = r.Why == ""
	return r
}

// ServeReady answers /readyz: 200 or 503, and why.
func (h *health) ServeReady(w http.ResponseWriter, _ *http.Request) {
	r := h.ready()
	daemon.Answer(w, r.Ready, r)
}

// ServeAlive answers /healthz.
func (h *health) ServeAlive(w http.ResponseWriter, _ *http.Request) {
	daemon.Answer(w, true, struct {
		Alive bool `json:"alive"`
	}{true})
}

// streamMetrics is what Prometheus is told. No tenant and no record stands in a
// label; destinations do.
type streamMetrics struct {
	*daemon.Metrics
	rows, events_, bytes, retries, dead, dropped *prometheus.CounterVec
}

func newStreamMetrics(h *health) *streamMetrics {
	m := &streamMetrics{Metrics: daemon.NewMetrics("ledgerlake_export", version)}
	m.rows = m.Counters("delivered_rows_total", "Rows that a destination acknowledged, repeats too.", "destination")
	m.events_ = m.Counters("delivered_events_total", "Events that a destination acknowledged: rows, heads, notices.", "destination")
	m.bytes = m.Counters("delivered_bytes_total", "Their bytes, in the destination's format.", "destination")
	m.retries = m.Counters("retries_total", "Attempts after which events have to be sent again.", "destination")
	m.dead = m.Counters("dead_letters_total", "Events that a destination refused for good.", "destination")
	m.dropped = m.Counters("dropped_rows_total", "Rows that retention dropped before they were delivered.", "destination")
	m.MustRegister(&standingMetrics{h})
	m.Ready(func() bool { return h.ready().Ready })
	return m
}

func (m *streamMetrics) events() stream.Events {
	return stream.Events{
		Delivered: func(d string, _ archive.Line, n stream.Delivery) {
			m.rows.WithLabelValues(d).Add(float64(n.Rows))
			m.events_.WithLabelValues(d).Add(float64(n.Events))
			m.bytes.WithLabelValues(d).Add(float64(n.Bytes))
		},
		Retry: func(d string, _ archive.Line, _ stream.Wait) { m.retries.WithLabelValues(d).Inc() },
		Dead:  func(d string, _ archive.Line, _ stream.Letter) { m.dead.WithLabelValues(d).Inc() },
		Dropped: func(d string, _ archive.Line, _ string, from, to int64) {
			m.dropped.WithLabelValues(d).Add(float64(to - from))
		},
	}
}

// standingMetrics are read at each scrape.
type standingMetrics struct{ health *health }

var (
	rowsDesc    = desc("lag_rows", "Rows in data files that are to be read for a destination, of lines in which it is that far behind; 0 while nothing is sent.", "destination")
	lagDesc     = desc("lag_segments", "Segments of which a destination has not got all yet; 0 while nothing is sent.", "destination")
	oldestDesc  = desc("oldest_undelivered_seconds", "How long the oldest row that is not delivered, as far as was read, has been archived; 0 where there is none, and while nothing is sent: paused, suspended or invalid.", "destination")
	stoppedDesc = desc("stopped_logs", "Logs that wait: their cursor does not match, a row does not check, or an event is refused for good. Any is an alarm.", "destination")
	failingDesc = desc("failing_lines", "Lines that cannot be read just now.", "destination")
	leadsDesc   = desc("leads", "1 where this process exports to the destination; the sum over all processes is 1.", "destination")
	stateDesc   = desc("state", "1 for the state that the destination is in, 0 for the others.", "destination", "state")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ledgerlake_export_"+name, help, labels, nil)
}

// Describe implements [prometheus.Collector].
func (*standingMetrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{rowsDesc, lagDesc, oldestDesc, stoppedDesc, failingDesc, leadsDesc, stateDesc} {
		c <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *standingMetrics) Collect(c chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, s := range m.health.standings() {
		oldest := 0.0
		if !s.Oldest.IsZero() {
			oldest = time.Since(s.Oldest).Seconds()
		}
		gauge(rowsDesc, float64(s.Rows), s.Name)
		gauge(lagDesc, float64(s.Segments), s.Name)
		gauge(oldestDesc, oldest, s.Name)
		gauge(stoppedDesc, float64(s.Stopped), s.Name)
		gauge(failingDesc, float64(s.Failing), s.Name)
		gauge(leadsDesc, one(s.Leads), s.Name)
		for _, state := range []string{stream.Active, stream.Paused, stream.Suspended, stream.Invalid} {
			gauge(stateDesc, one(s.State == state), s.Name, state)
		}
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

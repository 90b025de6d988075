package main

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/export/serve"
)

// A serveReport turns requests into lines of a log and into metrics. It never sees
// a token, a query, or what is answered; tenants it only names where it was told
// to.
type serveReport struct {
	log     *zap.Logger
	often   *zap.Logger // sampled
	tenants bool
	metrics *daemon.Metrics

	answered *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	seconds  prometheus.Histogram
	broken   atomic.Bool // the last look at the archive did not go well
}

func newServeReport(log *zap.Logger, tenants bool) *serveReport {
	m := daemon.NewMetrics("ledgerlake_export_serve", version)
	r := &serveReport{
		log: log, often: daemon.Sampled(log), tenants: tenants, metrics: m,
		answered: m.Counters("requests_total", "Requests that were answered, by route and status.", "route", "status"),
		bytes:    m.Counters("answered_bytes_total", "Bytes of answers before compression, by route.", "route"),
		seconds:  m.Histogram("request_seconds", "How long requests took, tails included.", daemon.Seconds),
	}
	m.Ready(func() bool { return !r.broken.Load() })
	return r
}

func (r *serveReport) events() serve.Events {
	return serve.Events{Answered: r.did, Failed: r.failed}
}

func (r *serveReport) did(q serve.Request) {
	r.answered.WithLabelValues(q.Route, strconv.Itoa(q.Status)).Inc()
	r.bytes.WithLabelValues(q.Route).Add(float64(q.Bytes))
	r.seconds.Observe(q.Duration.Seconds())
	if q.Status < 500 && q.Tenant != "" {
		r.broken.Store(false)
	}
	r.log.Debug("answered", append(r.fields(q), zap.Int64("bytes", q.Bytes), zap.Duration("took", q.Duration))...)
}

func (r *serveReport) failed(q serve.Request, err error) {
	if q.Status == http.StatusBadGateway {
		r.broken.Store(true)
	}
	r.often.Error("a request was not answered as it should have been", append(r.fields(q), zap.Error(err))...)
}

func (r *serveReport) fields(q serve.Request) []zap.Field {
	all := []zap.Field{zap.String("route", q.Route), zap.Int("status", q.Status), zap.String("token", q.Token)}
	if r.tenants {
		all = append(all, zap.String("tenant", q.Tenant))
	}
	return all
}

// ServeAlive says that the process lives.
func (r *serveReport) ServeAlive(w http.ResponseWriter, _ *http.Request) {
	daemon.Answer(w, true, map[string]bool{"alive": true})
}

// ServeReady says whether the archive could be read when it was looked at last.
func (r *serveReport) ServeReady(w http.ResponseWriter, _ *http.Request) {
	good := !r.broken.Load()
	daemon.Answer(w, good, map[string]bool{"ready": good})
}

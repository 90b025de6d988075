package main

import (
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
)

// listen opens the port that health and metrics are served at; nil where there
// is none. A port that somebody chose must be free. The default one may be
// taken by another ingest of the same machine: this one then does without.
func listen(log *zap.Logger, h config.HTTP, origins config.Origins) (net.Listener, error) {
	if h.Listen == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", h.Listen)
	source, chosen := origins["http.listen"]
	switch {
	case err == nil:
		log.Info("serving /healthz, /readyz and /metrics", zap.Stringer("address", l.Addr()))
		return l, nil
	case chosen:
		return nil, &config.Error{Name: "http.listen", Source: source, Fault: err.Error()}
	}
	log.Warn("health and metrics are not served: the default port is not to be had, set http.listen", zap.Error(err))
	return nil, nil
}

// serve serves health and metrics until the returned func is called.
func serve(l net.Listener, h *health, registry *prometheus.Registry) (stop func()) {
	if l == nil {
		return func() {}
	}
	server := &http.Server{Handler: handler(h, registry), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(l) }() // until Close
	return func() { _ = server.Close() }
}

// handler knows three paths.
func handler(h *health, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.serveAlive)
	mux.HandleFunc("GET /readyz", h.serveReady)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	return mux
}

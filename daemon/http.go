package daemon

import (
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
)

// Listen opens the port that health and metrics are served at; nil where there
// is none. A port that somebody chose must be free. The default one may be
// taken by another process of the same machine: this one then does without.
func Listen(log *zap.Logger, h config.HTTP, origins config.Origins) (net.Listener, error) {
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

// A Health answers whoever asks whether a process lives, and is ready.
type Health interface {
	ServeAlive(http.ResponseWriter, *http.Request)
	ServeReady(http.ResponseWriter, *http.Request)
}

// Serve serves health and metrics until the returned func is called. l may be nil.
func Serve(l net.Listener, h Health, registry *prometheus.Registry) (stop func()) {
	if l == nil {
		return func() {}
	}
	server := &http.Server{Handler: Handler(h, registry), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(l) }() // until Close
	return func() { _ = server.Close() }
}

// Handler knows three paths.
func Handler(h Health, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.ServeAlive)
	mux.HandleFunc("GET /readyz", h.ServeReady)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	return mux
}

// Answer writes a JSON document: 200, or 503 where what it says is not good.
func Answer(w http.ResponseWriter, good bool, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(body) // who asked is gone
}

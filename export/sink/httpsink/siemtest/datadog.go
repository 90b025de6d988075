package siemtest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// A Datadog is Datadog's log intake.
type Datadog struct {
	Store
	Key string // "" is any
	// Bad is what a log must not hold: 400 to all of its payload.
	Bad string
}

// ServeHTTP implements [http.Handler].
func (d *Datadog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.count()
	raw, err := body(r)
	var logs []json.RawMessage
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/api/v2/logs":
		http.NotFound(w, r)
		return
	case r.Header.Get("DD-API-KEY") == "":
		w.WriteHeader(http.StatusUnauthorized)
		return
	case d.Key != "" && r.Header.Get("DD-API-KEY") != d.Key:
		w.WriteHeader(http.StatusForbidden)
		return
	case len(raw) > 5_000_000:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	case err != nil || json.Unmarshal(raw, &logs) != nil || r.Header.Get("Content-Type") != "application/json":
		d.fault("no payload: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	case len(logs) > 1000:
		d.fault("%d logs", len(logs))
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	case d.Bad != "" && strings.Contains(string(raw), d.Bad):
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, l := range logs {
		d.log(l)
	}
	say(w, http.StatusAccepted, map[string]any{})
}

func (d *Datadog) log(raw []byte) {
	if len(raw) > 1_000_000 {
		d.fault("a log of %d bytes was cut", len(raw))
		raw = raw[:1_000_000]
	}
	all, err := members(raw, "timestamp", "message", "ddsource", "service", "hostname", "ddtags")
	if err != nil {
		d.fault("%v", err)
		return
	}
	var message string
	if err := json.Unmarshal(all["message"], &message); err != nil {
		d.fault("message: %v", err)
	}
	d.take(message)
}

package siemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A HEC is an HTTP Event Collector. The zero members are those of one that takes
// all and keeps it at once.
type HEC struct {
	Store
	Token string // "" is any

	Bad         string // an event that holds it is invalid: 400, code 6
	FromOne     bool   // it counts invalid events from 1
	Off         int    // by how much it is mistaken about which is invalid
	KeepsBefore bool   // it keeps those in front of an invalid one
	Anonymous   bool   // it does not say which is invalid
	MaxBytes    int    // of a request: 413 above
	BusyEvery   int    // every so many requests: 503, code 9,
	BusyAfter   int    // after it kept so many events
	LostEvery   int    // every so many requests: kept, and the connection is cut
	Code        int    // 400 with this code to all
	Ack         bool   // events are kept once they are acknowledged
	Polls       int    // questions until it acknowledges
	LoseAcks    bool   // it never does, and loses the events

	mu      sync.Mutex
	pending map[int][]string // by number
	asked   int
	next    int
}

var _ http.Handler = (*HEC)(nil)

// ServeHTTP implements [http.Handler].
func (h *HEC) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodPost:
		say(w, http.StatusMethodNotAllowed, nil)
	case h.Token != "" && r.Header.Get("Authorization") != "Splunk "+h.Token:
		say(w, http.StatusForbidden, code("Invalid token", 4))
	case r.URL.Path == "/services/collector/event":
		h.events(w, r)
	case r.URL.Path == "/services/collector/ack":
		h.acks(w, r)
	default:
		http.NotFound(w, r)
	}
}

func code(text string, n int) map[string]any { return map[string]any{"text": text, "code": n} }

func invalid(text string, n, event int) map[string]any {
	m := code(text, n)
	m["invalid-event-number"] = event
	return m
}

func (h *HEC) events(w http.ResponseWriter, r *http.Request) {
	n := h.count()
	b, err := body(r)
	switch {
	case err != nil:
		say(w, http.StatusBadRequest, code("Invalid data format", 6))
		return
	case h.MaxBytes > 0 && len(b) > h.MaxBytes:
		say(w, http.StatusRequestEntityTooLarge, code("Request entity too large", 27))
		return
	case h.Code != 0:
		say(w, http.StatusBadRequest, invalid("No", h.Code, 0))
		return
	case h.Ack && r.Header.Get("X-Splunk-Request-Channel") == "":
		say(w, http.StatusBadRequest, code("Data channel is missing", 10))
		return
	}
	events, at := h.parse(b)
	if at >= 0 {
		if h.KeepsBefore {
			h.take(events[:at]...)
		}
		h.refuse(w, at)
		return
	}
	h.keep(w, n, events)
}

func (h *HEC) refuse(w http.ResponseWriter, at int) {
	switch {
	case h.Anonymous:
		say(w, http.StatusBadRequest, code("Invalid data format", 6))
	case h.FromOne:
		say(w, http.StatusBadRequest, invalid("Invalid data format", 6, at+1+h.Off))
	default:
		say(w, http.StatusBadRequest, invalid("Invalid data format", 6, at+h.Off))
	}
}

func (h *HEC) keep(w http.ResponseWriter, n int, events []string) {
	switch {
	case h.BusyEvery > 0 && n%h.BusyEvery == 1%h.BusyEvery && len(events) > h.BusyAfter:
		if !h.Ack { // else nobody is told when they are kept, and they are not
			h.take(events[:h.BusyAfter]...)
		}
		say(w, http.StatusServiceUnavailable, invalid("Server is busy", 9, h.BusyAfter))
	case h.LostEvery > 0 && n%h.LostEvery == 1%h.LostEvery:
		h.take(events...)
		cut()
	case h.Ack:
		m := code("Success", 0)
		m["ackId"] = h.hold(events)
		say(w, http.StatusOK, m)
	default:
		h.take(events...)
		say(w, http.StatusOK, code("Success", 0))
	}
}

func (h *HEC) hold(events []string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending == nil {
		h.pending = map[int][]string{}
	}
	h.next++
	h.pending[h.next] = events
	return h.next
}

// parse returns the ids of the events of a request, and which of them is the first
// that is invalid, or -1.
func (h *HEC) parse(b []byte) (ids []string, at int) {
	d := json.NewDecoder(bytes.NewReader(b))
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return ids, len(ids)
		}
		id, err := hecEvent(raw)
		if err != nil {
			h.fault("event %d: %v", len(ids), err)
			return ids, len(ids)
		}
		if h.Bad != "" && bytes.Contains(raw, []byte(h.Bad)) {
			return ids, len(ids)
		}
		ids = append(ids, id)
	}
	return ids, -1
}

// hecEvent checks an event, and returns its stable id.
func hecEvent(raw []byte) (id string, err error) {
	all, err := members(raw, "time", "host", "source", "sourcetype", "index", "event", "fields")
	if err != nil {
		return "", err
	}
	if len(all["event"]) == 0 || string(all["event"]) == "null" || string(all["event"]) == `""` {
		return "", fmt.Errorf("no event")
	}
	if t, err := strconv.ParseFloat(string(all["time"]), 64); all["time"] != nil && (err != nil || t < 0) {
		return "", fmt.Errorf("time is %s", all["time"])
	}
	for _, name := range []string{"host", "source", "sourcetype", "index"} {
		var text string
		if v := all[name]; v != nil && (json.Unmarshal(v, &text) != nil || text == "") {
			return "", fmt.Errorf("%s is %s", name, v)
		}
	}
	var fields map[string]string // flat, and nothing but texts
	if err := json.Unmarshal(all["fields"], &fields); err != nil {
		return "", err
	}
	return fields["ledgerlake_id"], nil
}

func (h *HEC) acks(w http.ResponseWriter, r *http.Request) {
	if !h.Ack {
		say(w, http.StatusBadRequest, code("ACK is disabled", 14))
		return
	}
	if r.URL.Query().Get("channel") == "" {
		say(w, http.StatusBadRequest, code("Data channel is missing", 10))
		return
	}
	var asks struct{ Acks []int }
	b, err := body(r)
	if err != nil || json.Unmarshal(b, &asks) != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		say(w, http.StatusBadRequest, code("Invalid data format", 6))
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	answer := map[string]bool{}
	for _, id := range asks.Acks {
		events, ok := h.pending[id]
		done := ok && !h.LoseAcks && h.asked > h.Polls
		if done {
			h.take(events...)
			delete(h.pending, id)
		}
		answer[strconv.Itoa(id)] = done
	}
	say(w, http.StatusOK, map[string]any{"acks": answer})
}

// Package siemtest has receivers of events that are as strict as the real ones
// are said to be, and fail in the ways that those do.
//
//	HEC      Splunk's HTTP Event Collector
//	Bulk     the _bulk interface of Elasticsearch
//	OTLP     a receiver of OpenTelemetry logs
//	Datadog  Datadog's log intake
//
// Each keeps what it took, and a list of what no sender may do.
package siemtest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A Store is what a receiver took: texts, in their order.
type Store struct {
	mu       sync.Mutex
	taken    []string
	faults   []string
	requests int
}

// Taken returns all that was taken.
func (s *Store) Taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.taken...)
}

// Faults returns what no sender may do, and one did.
func (s *Store) Faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.faults...)
}

// Requests returns how many requests with events there were.
func (s *Store) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *Store) take(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, texts...)
}

func (s *Store) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// count returns the number of this request, from 1 on.
func (s *Store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return s.requests
}

// body returns the body of a request as it was before it was compressed.
func body(r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "":
		return raw, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return io.ReadAll(z)
	default:
		return nil, fmt.Errorf("no encoding %q", encoding)
	}
}

// say answers with JSON.
func say(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// cut ends the connection without an answer.
func cut() { panic(http.ErrAbortHandler) }

// members returns the members of an object, those that are allowed alone.
func members(raw []byte, allowed ...string) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	for name := range all {
		known := false
		for _, a := range allowed {
			known = known || a == name
		}
		if !known {
			return nil, fmt.Errorf("no member %q", name)
		}
	}
	return all, nil
}

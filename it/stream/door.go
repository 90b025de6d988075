//go:build it

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"
)

// A door is a proxy of HTTP before a receiver. It knows which events a request
// has, so that it can take a half of them and say so as the receiver would, and
// shows them to seen in the order in which the receiver took them.
type door struct {
	*weather
	server *httptest.Server
	behind string // http://host:port of the receiver
	// split returns the parts of a body that are one event each.
	split func(body []byte) [][]byte
	// halfTaken returns the receiver's answer where it took the first n of all events.
	halfTaken func(n, all int) (status int, body string)
	seen      func(events [][]byte)
}

func newDoor(rng *rand.Rand, behind string) *door {
	d := &door{weather: newWeather(rng), behind: behind}
	d.server = httptest.NewServer(d)
	return d
}

// close ends it.
func (d *door) close() {
	d.set(calm)
	d.server.CloseClientConnections()
	d.server.Close()
}

// ServeHTTP passes a request on, as the mood is.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		reset(w)
		return
	}
	m, changed := d.now()
	if m != calm {
		d.met(m)
	}
	switch m {
	case refuses:
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	case throttles:
		w.Header().Set("Retry-After", strconv.Itoa(1+int(time.Now().UnixNano()%2)))
		http.Error(w, "slower", http.StatusTooManyRequests)
		return
	case stalls:
		<-changed // and goes on, whether who sent it still waits or not
	}
	events := d.split(body)
	take := len(events)
	if m == halves {
		take /= 2
	}
	res := d.pass(r, bytes.Join(events[:take], nil), events[:take])
	switch {
	case res == nil || m == loses:
		reset(w)
	case m == halves && res.status < 300:
		status, text := d.halfTaken(take, len(events))
		w.WriteHeader(status)
		io.WriteString(w, text)
	default:
		w.WriteHeader(res.status)
		w.Write(res.body)
	}
}

type response struct {
	status int
	body   []byte
}

// pass has the receiver take events, and returns nil where it does not answer.
func (d *door) pass(r *http.Request, body []byte, events [][]byte) *response {
	if len(events) == 0 {
		return &response{status: http.StatusOK}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, d.behind+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Content-Encoding")
	req.Header.Del("Accept-Encoding") // the answer is read here
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil
	}
	if res.StatusCode < 300 {
		d.seen(events)
	}
	return &response{res.StatusCode, answer}
}

func readBody(r *http.Request) ([]byte, error) {
	in := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = z
	}
	return io.ReadAll(in)
}

// reset ends a connection without an answer.
func reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// splitBulk splits a body of _bulk: two lines an event.
func splitBulk(body []byte) (all [][]byte) {
	for len(body) > 0 {
		first := bytes.IndexByte(body, '\n') + 1
		end := first + bytes.IndexByte(body[first:], '\n') + 1
		all, body = append(all, body[:end]), body[end:]
	}
	return all
}

// halfBulk is the answer of a cluster whose queue is full after n events.
func halfBulk(n, all int) (status int, body string) {
	var b bytes.Buffer
	b.WriteString(`{"errors":true,"items":[`)
	for i := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		if i < n {
			b.WriteString(`{"create":{"status":201}}`)
		} else {
			b.WriteString(`{"create":{"status":429,"error":{"type":"es_rejected_execution_exception"}}}`)
		}
	}
	b.WriteString(`]}`)
	return http.StatusOK, b.String()
}

// splitHEC splits a body of Splunk's collector: values of JSON, one behind the other.
func splitHEC(body []byte) (all [][]byte) {
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		var one json.RawMessage
		if d.Decode(&one) != nil {
			return all
		}
		all = append(all, one)
	}
}

// halfHEC is the answer of a collector that is busy after n events.
func halfHEC(n, _ int) (status int, body string) {
	return http.StatusServiceUnavailable, fmt.Sprintf(`{"text":"Server is busy","code":9,"invalid-event-number":%d}`, n)
}

package httpsink

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/sink"
)

// A replay answers each request with the same.
type replay struct {
	status int
	header http.Header
	body   []byte
}

func (r replay) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	return &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(r.body)), Request: req}, nil
}

// clientOf returns the client of a driver.
func clientOf(s sink.Sink) *client {
	switch s := s.(type) {
	case *Webhook:
		return s.c
	case *Splunk:
		return s.c
	case *Elastic:
		return s.c
	case *OTLP:
		return s.c
	case *Datadog:
		return s.c
	}
	panic("a driver that is not known here")
}

// FuzzAnswers: whatever a receiver says, there is a verdict on each event, nothing
// is delivered without a 2xx but what Splunk says to have kept, and no reason shows
// what it said.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		"", "{}", `{"text":"Success","code":0}`, `{"code":0,"ackId":1}`, `{"code":6,"invalid-event-number":1}`, `{"code":9,"invalid-event-number":2}`, `{"code":9,"invalid-event-number":-1}`,
		`{"items":[{"create":{"status":201}},{"create":{"status":400,"error":{"type":"a_b"}}},{"create":{"status":429}}]}`, `{"acks":{"1":true}}`, "\x0a\x02\x08\x01", "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		for _, status := range []int{200, 202, 400, 413, 503} {
			f.Add(status, protobuf, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, status int, media string, body []byte) {
		if status < 100 || status > 999 {
			return
		}
		const mark = "ZqZqMark" // in the body, and in none of our words
		for i := range drivers {
			d := &drivers[i]
			s, err := d.open(at("http://siem.example"))
			if err != nil {
				t.Fatal(err)
			}
			clientOf(s).http.Transport = replay{status, http.Header{"Content-Type": {media}}, append(bytes.Clone(body), mark...)}
			check := func(r sink.Result) {
				if len(r.Verdicts) != 3 {
					t.Fatalf("%d verdicts", len(r.Verdicts))
				}
				for _, v := range r.Verdicts {
					if v.Outcome == sink.Delivered && status/100 != 2 && (d.name != "splunk-hec" || status != 503) {
						t.Errorf("%s: %d delivers", d.name, status)
					}
					if strings.Contains(v.Reason, mark) || len(v.Reason) > maxReason+4 {
						t.Errorf("%s: %q", d.name, v.Reason)
					}
				}
			}
			check(s.Deliver(t.Context(), messages(t, d.format, 3, plain)))
			clientOf(s).http.Transport = replay{status, http.Header{"Content-Type": {media}}, body}
			check(s.Deliver(t.Context(), messages(t, d.format, 3, plain)))
		}
	})
}

// A driver is used by several runners at once, and tells their batches apart.
func TestDeliveriesAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *driver) {
		s := d.at(t, at(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			d.fine(w, bytes.Count(b, []byte(`{"create":{`)))
		}))))
		var all sync.WaitGroup
		for n := range 8 {
			batch := messages(t, d.format, n+1, plain)
			all.Go(func() {
				for range 5 {
					r := s.Deliver(t.Context(), batch)
					if !r.Done() || len(r.Verdicts) != len(batch) {
						t.Errorf("%d: %+v", n, r)
					}
				}
			})
		}
		all.Wait()
	})
}

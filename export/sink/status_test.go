package sink

import (
	"net/http"
	"testing"
	"time"
)

// Every status has one outcome, and no status that is not 2xx is a delivery.
func TestClassifyKnowsEveryStatus(t *testing.T) {
	want := map[int]Outcome{
		408: Retry, 425: Retry, 429: Retry, 413: Split, 501: Suspend,
		401: Suspend, 403: Suspend, 404: Suspend, 410: Suspend,
		400: Poison, 405: Poison, 409: Poison, 422: Poison, 499: Poison,
		200: Delivered, 202: Delivered, 204: Delivered, 301: Suspend, 308: Suspend,
		500: Retry, 502: Retry, 503: Retry, 504: Retry, 507: Retry, 599: Retry,
		0: Poison, 100: Poison, 600: Poison, -1: Poison,
	}
	for status, outcome := range want {
		if got, _ := Classify(status, nil, time.Time{}); got != outcome {
			t.Errorf("%d is %v, want %v", status, got, outcome)
		}
	}
	for status := range 1000 {
		got, _ := Classify(status, nil, time.Time{})
		if (got == Delivered) != (status/100 == 2) {
			t.Errorf("%d is %v", status, got)
		}
	}
}

// A Retry-After is seconds or a date; nothing that a destination writes there
// is negative, without an end, or an error.
func TestClassifyReadsRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"7", "", 7 * time.Second},
		{" 7 ", "", 7 * time.Second},
		{"3600", "", time.Hour},
		{"3601", "", MaxAfter},
		{"9223372036854775807", "", MaxAfter},
		{"99999999999999999999", "", 0}, // no number of ours
		{"-7", "", 0},
		{"1.5", "", 0},
		{"soon", "", 0},
		{"Sun, 01 Mar 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Sunday, 01-Mar-26 12:00:30 GMT", "", 30 * time.Second}, // obsolete, to be read all the same
		{"Sun Mar  1 12:00:30 2026", "", 30 * time.Second},
		{"Sun, 01 Mar 2026 11:00:00 GMT", "", 0},
		{"Sun, 01 Mar 2076 12:00:00 GMT", "", MaxAfter},
		{"Sun, 01 Mar 2026 12:00:30 GMT", "Sun, 01 Mar 2026 12:00:10 GMT", 20 * time.Second}, // its own clock
		{"Sun, 01 Mar 2026 12:00:30 GMT", "no date", 30 * time.Second},
	} {
		header := http.Header{}
		header.Set("Retry-After", c.after)
		header.Set("Date", c.date)
		if _, got := Classify(429, header, now); got != c.want {
			t.Errorf("%q at %q: %v, want %v", c.after, c.date, got, c.want)
		}
	}
}

// What was said of no message is not delivered.
func TestZeroVerdictIsNoDelivery(t *testing.T) {
	if (Verdict{}).Outcome != Retry {
		t.Error("the zero outcome is not retry")
	}
	r := All(3, Verdict{Outcome: Delivered})
	if !r.Done() || len(r.Verdicts) != 3 {
		t.Errorf("%+v", r)
	}
	if r.Verdicts[1].Outcome = Poison; r.Done() {
		t.Error("done with a poisoned message")
	}
	for o, want := range map[Outcome]string{Retry: "retry", Delivered: "delivered", Split: "split", Suspend: "suspend", Poison: "poison"} {
		if o.String() != want {
			t.Errorf("%v, want %s", o, want)
		}
	}
}

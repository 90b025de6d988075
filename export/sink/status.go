package sink

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxAfter is the longest time that [Classify] lets a destination ask for.
const MaxAfter = time.Hour

// Classify returns the outcome that the status of an HTTP response means for
// all that was in its request, and what its Retry-After asks for (RFC 9110,
// section 10.2.3), at most [MaxAfter]; 0 where there is none or it is no time.
//
//	2xx                              delivered
//	408, 425, 429, 5xx but 501       retry
//	413                              split
//	401, 403, 404, 410, 3xx, 501     suspend
//	all else                         poison
//
// A redirect is never followed: where events go is for the configuration to
// say. A Retry-After that is a date counts from the response's own Date, so
// that no clock has to agree with another; from now where it has none.
func Classify(status int, header http.Header, now time.Time) (Outcome, time.Duration) {
	return classify(status), retryAfter(header, now)
}

func classify(status int) Outcome {
	switch {
	case status >= 200 && status <= 299:
		return Delivered
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return Retry
	case status == http.StatusRequestEntityTooLarge:
		return Split
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusGone,
		status >= 300 && status <= 399, status == http.StatusNotImplemented:
		return Suspend
	case status >= 500 && status <= 599:
		return Retry
	default:
		return Poison
	}
}

func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(MaxAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), MaxAfter)
}

// Package httpsink delivers events to destinations that take them by HTTP.
//
//	webhook        any URL, signed as Standard Webhooks 1.0 says
//	splunk-hec     Splunk's HTTP Event Collector, with indexer acknowledgement where it is on
//	elasticsearch  the _bulk interface of Elasticsearch and OpenSearch
//	otlp           OpenTelemetry logs, protobuf
//	datadog        Datadog's log intake, v2
//
// All of them share a client: no redirect is followed, at most 64 KiB of an
// answer are read (_bulk has an entry for each event, and gets more), and what a
// verdict says never holds a secret, nor what a receiver wrote, for it may be
// what it was sent. Only of a batch of nothing but tests (event.KindCheck) is the
// answer shown.
//
// # Whose fault it is
//
// A status that says that a request can never be taken says it of the request,
// not of each event in it. Where the answer does not name the events, a batch of
// several is to be split: so that one bad event is a dead letter, and the 999
// around it are delivered.
package httpsink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// maxReason is how long a reason gets, in bytes.
const maxReason = 400

// failed returns what became of n messages of a request without an answer.
func (c *client) failed(ctx context.Context, n int, err error) sink.Result {
	v := sink.Verdict{Outcome: sink.Retry, Reason: c.clean(cause(err).Error())}
	var private *PrivateError
	switch {
	case ctx.Err() != nil:
		v.Reason = "stopped before there was an answer"
	case errors.As(err, &private):
		v.Outcome = sink.Suspend
	case errors.Is(err, context.DeadlineExceeded):
		v.Reason = fmt.Sprintf("no answer within %v", c.o.Timeout)
	}
	return sink.All(n, v)
}

// judged returns what the status of an answer says of all messages of its
// request.
func (c *client) judged(batch []sink.Message, a *answer, says string) sink.Result {
	outcome, after := sink.Classify(a.status, a.header, c.o.Now())
	if outcome == sink.Poison && len(batch) > 1 {
		outcome = sink.Split
	}
	r := sink.All(len(batch), sink.Verdict{Outcome: outcome, Reason: c.reason(batch, a, says)})
	r.After = after
	if outcome == sink.Delivered {
		r = sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
	}
	return r
}

// unclear returns the result of an answer that says that all is well, and is not
// one of the protocol: something between us and the receiver gave it.
func (c *client) unclear(batch []sink.Message, a *answer, fault string) sink.Result {
	return sink.All(len(batch), sink.Verdict{Outcome: sink.Retry, Reason: c.reason(batch, a, fault)})
}

// reason returns a status in words, what is known of it, and of a batch of tests
// the beginning of the answer.
func (c *client) reason(batch []sink.Message, a *answer, says string) string {
	text := fmt.Sprint(a.status)
	if s := http.StatusText(a.status); s != "" {
		text += " " + s
	}
	if says != "" {
		text += ": " + says
	}
	if a.status >= 300 && a.status <= 399 {
		text += ": redirects are not followed: set the URL that takes events"
	}
	if onlyChecks(batch) && len(a.body) > 0 {
		text += ": it says: " + string(bytes.TrimSpace(a.body))
	}
	return c.clean(text)
}

func onlyChecks(batch []sink.Message) bool {
	for _, m := range batch {
		if m.Event.Kind != event.KindCheck {
			return false
		}
	}
	return true
}

// clean takes secrets, what does not print, and what is too much out of a text.
func (c *client) clean(text string) string {
	for _, s := range c.secrets {
		text = strings.ReplaceAll(text, s, "(secret)")
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) <= maxReason {
		return text
	}
	n := maxReason
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// isObject reports whether a body is a JSON object, and not a line of text.
func isObject(body []byte) bool { return len(body) > 0 && body[0] == '{' }

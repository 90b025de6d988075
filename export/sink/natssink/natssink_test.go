package natssink

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// Whatever a text is, it is one token of a subject, and no other text's.
func TestEscapeIsOneToken(t *testing.T) {
	seen := map[string]string{}
	for _, s := range append(eventtest.Hostile, "a", "a.b", "a*", ">", "%", "%25", "_", "a b", "é", "e\u0301") {
		token := Escape(s)
		if token == "" || strings.Trim(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_%") != "" {
			t.Errorf("%.50q is %.50q", s, token)
		}
		if before, ok := seen[token]; ok && before != s {
			t.Errorf("%.50q and %.50q are both %.50q", before, s, token)
		}
		seen[token] = s
	}
}

// What a server says has the outcome that it asks for, wrapped or not. What nobody
// said to be for ever is tried again.
func TestOutcomes(t *testing.T) {
	api := func(status int, code jetstream.ErrorCode) error {
		return &jetstream.APIError{Code: status, ErrorCode: code, Description: "x"}
	}
	for _, c := range []struct {
		err  error
		want sink.Outcome
	}{
		{nats.ErrMaxPayload, sink.Split},
		{nats.ErrAuthorization, sink.Suspend},
		{nats.ErrAuthExpired, sink.Suspend},
		{nats.ErrPermissionViolation, sink.Suspend},
		{nats.ErrSecureConnWanted, sink.Suspend},
		{nats.ErrNoServers, sink.Retry},
		{nats.ErrTimeout, sink.Retry},
		{errBroken, sink.Retry},
		{errors.New("something"), sink.Retry},
		{jetstream.ErrStreamMessageExceedsMaximum, sink.Split},
		{jetstream.ErrJetStreamNotEnabled, sink.Suspend},
		{jetstream.ErrStreamNotFound, sink.Suspend},
		{api(400, streamNotMatched), sink.Suspend},
		{api(400, streamSealed), sink.Suspend},
		{api(400, 10003), sink.Poison},
		{api(503, 10077), sink.Retry},
		{api(500, 10047), sink.Retry},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if got := outcome(err); got != c.want {
				t.Errorf("%v: %v, want %v", err, got, c.want)
			}
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	url := []string{"nats://localhost:4222"}
	for want, o := range map[string]Options{
		"no server":           {},
		"prefix":              {URLs: url, Prefix: "audit.>"},
		"want one of them":    {URLs: url, Token: "secret", NKey: "secret"},
		"no TLS":              {URLs: url, Plaintext: true, CA: "x"},
		"found none":          {URLs: url, CA: "x"},
		"certificate and key": {URLs: url, Cert: "x", Key: "secret"},
		"SU":                  {URLs: url, NKey: "secret"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

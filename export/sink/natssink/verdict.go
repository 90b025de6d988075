package natssink

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/ledgerlake/ledgerlake/export/sink"
)

// JetStream's error codes that the client has no name for.
const (
	streamSealed     = 10109
	streamNotMatched = 10060
)

// verdict says what an error of connecting or publishing means.
func (s *Sink) verdict(ctx context.Context, c *connection, subject string, err error) sink.Verdict {
	if err == nil {
		return sink.Verdict{Outcome: sink.Delivered}
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) && c != nil {
		return missing(ctx, c, subject)
	}
	return sink.Verdict{Outcome: outcome(err), Reason: err.Error()}
}

// missing says whether there is no stream of a subject, or only nobody who answers
// now.
func missing(ctx context.Context, c *connection, subject string) sink.Verdict {
	_, err := c.js.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return sink.Verdict{Outcome: sink.Suspend, Reason: fmt.Sprintf("no stream takes the subject %q: create one with subjects of this prefix", subject)}
	}
	return sink.Verdict{Outcome: sink.Retry, Reason: "the stream does not answer"}
}

func outcome(err error) sink.Outcome {
	var api jetstream.JetStreamError
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return sink.Split
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired),
		errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrNkeysNotSupported),
		sink.IsRefusal(err):
		return sink.Suspend
	case errors.As(err, &api) && api.APIError() != nil:
		return apiOutcome(api.APIError())
	}
	return sink.Retry
}

// apiOutcome is about what JetStream answered.
func apiOutcome(e *jetstream.APIError) sink.Outcome {
	switch e.ErrorCode {
	case jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return sink.Split
	case jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount, jetstream.JSErrCodeStreamNotFound, streamSealed, streamNotMatched:
		return sink.Suspend
	}
	if e.Code >= 400 && e.Code <= 499 {
		return sink.Poison
	}
	return sink.Retry // a stream that is full, a store that failed
}

// nkey proves who we are by a seed.
func nkey(seed string) ([]nats.Option, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, errors.New("the seed of the user's key: want one of NATS (SU…)") // never what it is
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, errors.New("the seed of the user's key has no public key")
	}
	return []nats.Option{nats.Nkey(public, pair.Sign)}, nil
}

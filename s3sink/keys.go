package s3sink

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"

	"github.com/ledgerlake/ledgerlake/archive"
)

// keysEvery is how often credentials are looked up again at most, while a store
// refuses them.
const keysEvery = 10 * time.Second

// keys are the credentials that requests are signed with. The SDK renews those
// of which it knows when they expire. It reads files once, and keeps what a
// role or a process gave it until the time that was promised; so after a
// refusal keys looks everywhere again.
type keys struct {
	look  func(context.Context) (aws.CredentialsProvider, error)
	every time.Duration

	mu      sync.Mutex
	found   aws.CredentialsProvider
	looked  time.Time
	refused bool
}

// Retrieve implements [aws.CredentialsProvider].
func (k *keys) Retrieve(ctx context.Context) (aws.Credentials, error) {
	return k.provider(ctx).Retrieve(ctx)
}

// provider returns what was found, after another look where one is due. What
// the look does not find is no reason to forget what it found before.
func (k *keys) provider(ctx context.Context) aws.CredentialsProvider {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.refused || time.Since(k.looked) < k.every {
		return k.found
	}
	k.refused, k.looked = false, time.Now()
	if found, err := k.look(ctx); err == nil {
		k.found = found
	}
	return k.found
}

func (k *keys) refuse() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = true
}

// ID implements the SDK's middleware.
func (*keys) ID() string { return "ledgerlake:Keys" }

// HandleInitialize implements the SDK's middleware. It stands outside of all
// that turns an answer into an error.
func (k *keys) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleInitialize(ctx, in)
	if err != nil && ctx.Err() == nil && errors.Is(failed("", "", err), archive.ErrDenied) {
		k.refuse()
	}
	return out, metadata, err
}

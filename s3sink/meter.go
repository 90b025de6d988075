package s3sink

import (
	"context"
	"maps"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A Request is one HTTP request to the store.
type Request struct {
	Operation string        // as S3 calls it: PutObject, GetObject, ListObjectsV2, …
	Status    int           // 0: no answer
	Took      time.Duration // until the answer's header
}

// Requests returns how many HTTP requests were made since Open, by the name
// that S3 has for them. Requests for credentials are not among them.
func (b *Bucket) Requests() map[string]int64 { return b.requests.snapshot() }

// requests counts by operation.
type requests struct {
	mu    sync.Mutex
	count map[string]int64
}

func (r *requests) add(operation string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[string]int64{}
	}
	r.count[operation]++
}

func (r *requests) snapshot() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.count)
}

// A meter stands next to the wire in the SDK's stack, where every attempt
// passes once.
type meter struct {
	requests *requests
	tell     func(Request)
}

// ID implements the SDK's middleware.
func (*meter) ID() string { return "ledgerlake:Meter" }

// HandleDeserialize implements the SDK's middleware.
func (m *meter) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	began := time.Now()
	out, metadata, err := next.HandleDeserialize(ctx, in)
	r := Request{Operation: awsmiddleware.GetOperationName(ctx), Took: time.Since(began)}
	if answer, ok := out.RawResponse.(*smithyhttp.Response); ok && answer.Response != nil {
		r.Status = answer.StatusCode
	}
	m.requests.add(r.Operation)
	if m.tell != nil {
		m.tell(r)
	}
	return out, metadata, err
}

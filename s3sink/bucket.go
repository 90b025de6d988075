// Package s3sink is an S3-compatible object store as an archive.Bucket, and a
// doctor that tells whether a store may be trusted with an archive.
//
//	Create   PutObject, If-None-Match: *   one request, never more
//	Get      GetObject                     checked by length and by the store's checksum
//	GetTail  GetObject, Range: bytes=-n    size from Content-Range
//	List     ListObjectsV2                 StartAfter, then continuation tokens
//	GetRange GetObject, Range: bytes=a-b   checked against Content-Range
//	Now      HeadObject                    the answer's Date
//	Versions ListObjectVersions            both markers; ListObjectsV2 where the store knows no versions
//	Delete   DeleteObjects, DeleteObject   by version id, 1,000 at a time, each answer read
//	Swap     PutObject, If-Match: tag      the tag is the ETag; GetTagged is Get
//	Uploads  ListMultipartUploads          and Abort: AbortMultipartUpload
//
// What follows from an answer:
//
//	200                        done; the time is the answer's Date
//	412                        archive.ErrExists; Date as above
//	409                        archive.ErrConflict
//	401, 403, expired tokens   archive.ErrDenied
//	404 NoSuchBucket           ErrNoBucket
//	404 NoSuchKey              archive.ErrNotFound; any other 404 is a plain error
//	408, 429, 5xx, no answer   a plain error: try again
//
// # Retries
//
// The SDK's own are off. A write is tried once, because the commit above tries
// again for ever with a back-off of its own and wants to know of every failure;
// a read is tried Options.Attempts times. An attempt in which nothing moves for
// Options.Timeout is given up, so that a hung connection cannot hang a commit.
//
// A write without an answer may have happened, or may have lost: a store may
// cut the connection of a loser that still sends. Create then looks whether
// the key is taken, and if so says ErrExists, which has the caller read it back.
//
// # What it does not do
//
// It does not buffer, cache or upload in parts, it does not log, and it keeps no state but counters. Reading
// the environment and the shared configuration files is the SDK's doing, in
// Open. It does not prove anything about an object: that is package proof's.
package s3sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/ledgerlake/ledgerlake/archive"
)

// The operations, as errors name them.
const (
	opCreate  = "create"
	opSwap    = "swap"
	opGet     = "get"
	opGetTail = "get tail of"
	opList    = "list"

	opGetRange = "get range of"
	opVersions = "list versions of"
	opDelete   = "delete"
	opUploads  = "list uploads of"
	opAbort    = "abort upload of"
	opNow      = "get time of"
)

// A Bucket is a bucket of an S3-compatible store, or the part of it below a
// prefix. Its methods may be called concurrently.
type Bucket struct {
	client   *s3.Client
	url      URL // with all options, defaults included
	checksum Checksum
	keys     *keys
	requests requests
	can      abilities
}

var _ archive.Store = (*Bucket)(nil)

// Open returns the bucket that a URL names, as [ParseURL] reads it. Where the
// URL and o both set an option, the URL's holds: it is about this bucket. Open
// makes no request.
func Open(ctx context.Context, bucketURL string, o Options) (*Bucket, error) {
	u, err := ParseURL(bucketURL)
	if err != nil {
		return nil, err
	}
	u.Options = o.over(u.Options)
	if err := u.Options.check(); err != nil {
		return nil, fmt.Errorf("settings of %s: %w", u.Bucket, err)
	}
	b := &Bucket{url: u}
	if err := b.connect(ctx); err != nil {
		return nil, fmt.Errorf("settings of %s: %w", u.Bucket, err)
	}
	return b, nil
}

// Holds reports whether all keys of another bucket are keys of this one, as far as
// their names say: a store may have several endpoints.
func (b *Bucket) Holds(o *Bucket) bool {
	at := func(b *Bucket) string { return strings.TrimRight(b.url.Options.Endpoint, "/") }
	return b.url.Bucket == o.url.Bucket && at(b) == at(o) && strings.HasPrefix(o.url.Prefix, b.url.Prefix)
}

// String returns the URL of the bucket, without secrets.
func (b *Bucket) String() string { return b.url.String() }

// Create implements [archive.Bucket].
func (b *Bucket) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	if err := checkKey(key); err != nil {
		return time.Time{}, &Error{Op: opCreate, Key: key, cause: err}
	}
	at, err := b.put(ctx, key, body, b.checksum)
	var e *Error
	if errors.As(err, &e) && e.Status == 0 && ctx.Err() == nil && b.taken(ctx, key) {
		e.kind = archive.ErrExists
	}
	return at, err
}

// put is one conditional PutObject, protected by c.
func (b *Bucket) put(ctx context.Context, key string, body []byte, c Checksum) (time.Time, error) {
	in := b.putInput(key, body)
	c.put(in, body)
	return b.send(ctx, key, in, body)
}

// send sends a PutObject, and returns the store's time also with an error.
func (b *Bucket) send(ctx context.Context, key string, in *s3.PutObjectInput, body []byte) (time.Time, error) {
	out, err := b.sendPut(ctx, opCreate, key, in, body)
	if err != nil {
		return err.Time, err
	}
	at, _ := awsmiddleware.GetServerTime(out.ResultMetadata)
	return at.UTC().Truncate(time.Second), nil
}

// sendPut sends a PutObject: one request.
func (b *Bucket) sendPut(ctx context.Context, op, key string, in *s3.PutObjectInput, body []byte) (*s3.PutObjectOutput, *Error) {
	attempt, w := b.watch(ctx)
	defer w.stop()
	in.Body = &watchedBody{body: bytes.NewReader(body), watch: w}
	out, err := b.client.PutObject(attempt, in)
	if err != nil {
		return nil, failed(op, key, w.explain(err))
	}
	return out, nil
}

func (b *Bucket) putInput(key string, body []byte) *s3.PutObjectInput {
	in := &s3.PutObjectInput{
		Bucket:               aws.String(b.url.Bucket),
		Key:                  b.fullKey(key),
		IfNoneMatch:          aws.String("*"),
		ContentLength:        aws.Int64(int64(len(body))),
		ContentType:          aws.String(contentType(key)),
		ServerSideEncryption: types.ServerSideEncryption(b.url.Options.SSE),
		StorageClass:         types.StorageClass(b.url.Options.StorageClass),
	}
	if kmsOf[b.url.Options.SSE] {
		// Without a bucket key every segment is a request to KMS.
		in.BucketKeyEnabled = aws.Bool(true)
	}
	if b.url.Options.KMSKey != "" {
		in.SSEKMSKeyId = aws.String(b.url.Options.KMSKey)
	}
	b.url.Options.lock(in, key)
	return in
}

// taken reports whether key is known to be taken.
func (b *Bucket) taken(ctx context.Context, key string) bool {
	attempt, w := b.watch(ctx)
	defer w.stop()
	_, err := b.client.HeadObject(attempt, &s3.HeadObjectInput{Bucket: aws.String(b.url.Bucket), Key: b.fullKey(key)})
	return err == nil
}

func (b *Bucket) fullKey(key string) *string { return aws.String(b.url.Prefix + key) }

// checkKey refuses keys that stores which keep files would read as others.
func checkKey(key string) error {
	for step := range strings.SplitSeq(key, "/") {
		if step == "" || step == "." || step == ".." {
			return fmt.Errorf("key has a step %q", step)
		}
	}
	return nil
}

// contentType is for people who open an object in a browser; nothing reads it.
func contentType(key string) string {
	switch {
	case strings.HasSuffix(key, ".parquet"):
		return "application/vnd.apache.parquet"
	case strings.HasSuffix(key, ".json"):
		return "application/json"
	case strings.HasSuffix(key, ".note"):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// A watch gives an attempt up when nothing moves for a while.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	after  time.Duration
}

func (b *Bucket) watch(ctx context.Context) (context.Context, *watch) {
	w := &watch{after: b.url.Options.Timeout}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(w.after, func() { w.cancel(errStalled) })
	return w.ctx, w
}

func (w *watch) moved() { w.timer.Reset(w.after) }

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// explain returns err, or that the watch caused it.
func (w *watch) explain(err error) error {
	if context.Cause(w.ctx) == errStalled {
		return fmt.Errorf("%w: nothing moved for %v", errStalled, w.after)
	}
	return err
}

// A watchedBody tells a watch that bytes leave. It hides all other methods of
// its reader, of which WriteTo would move them unseen.
type watchedBody struct {
	body  io.ReadSeeker
	watch *watch
}

func (r *watchedBody) Read(p []byte) (int, error) {
	r.watch.moved()
	return r.body.Read(p)
}

func (r *watchedBody) Seek(offset int64, whence int) (int64, error) {
	return r.body.Seek(offset, whence)
}

// watchedReader is the same for bytes that arrive.
type watchedReader struct {
	body  io.Reader
	watch *watch
}

func (r watchedReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.watch.moved()
	return n, err
}

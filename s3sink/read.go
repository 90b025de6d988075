package s3sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ledgerlake/ledgerlake/archive"
)

// backoff is the wait before the second attempt of a read; it doubles.
const backoff = 100 * time.Millisecond

// Get implements [archive.Source].
func (b *Bucket) Get(ctx context.Context, key string) ([]byte, error) {
	var body []byte
	err := b.retry(ctx, func() (err error) {
		body, err = b.getOnce(ctx, key)
		return err
	})
	return body, err
}

// GetTail implements [archive.Source].
func (b *Bucket) GetTail(ctx context.Context, key string, n int64) (tail []byte, size int64, err error) {
	if n < 0 {
		return nil, 0, &Error{Op: opGetTail, Key: key, cause: fmt.Errorf("%d bytes", n)}
	}
	err = b.retry(ctx, func() (err error) {
		tail, size, err = b.tailOnce(ctx, key, n)
		return err
	})
	return tail, size, err
}

// GetRange implements [archive.Ranger].
func (b *Bucket) GetRange(ctx context.Context, key string, offset, n int64) (body []byte, err error) {
	if offset < 0 || n < 0 {
		return nil, &Error{Op: opGetRange, Key: key, cause: fmt.Errorf("%d bytes from %d", n, offset)}
	}
	err = b.retry(ctx, func() (err error) {
		body, err = b.rangeOnce(ctx, key, offset, n)
		return err
	})
	return body, err
}

// Now implements [archive.Store]. It is the Date of the answer to whether there
// is a ledgerlake.json, whatever that answer is; one from a cache is late, which
// delays what goes by it and never hastens it.
func (b *Bucket) Now(ctx context.Context) (now time.Time, err error) {
	err = b.retry(ctx, func() error {
		now, err = b.nowOnce(ctx)
		return err
	})
	return now, err
}

var errNoDate = errors.New("the store's answers have no Date")

func (b *Bucket) nowOnce(ctx context.Context) (time.Time, error) {
	attempt, w := b.watch(ctx)
	defer w.stop()
	out, err := b.client.HeadObject(attempt, &s3.HeadObjectInput{Bucket: aws.String(b.url.Bucket), Key: b.fullKey(archive.RootKey)})
	var at time.Time
	if err != nil {
		e := failed(opNow, b.url.Bucket, w.explain(err))
		if e.Status != http.StatusNotFound {
			return at, e
		}
		at = e.Time
	} else {
		at, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
	}
	if at.IsZero() {
		return at, &Error{Op: opNow, Key: b.url.Bucket, cause: errNoDate}
	}
	return at.UTC().Truncate(time.Second), nil
}

// retry tries a read until it succeeds, cannot, or was tried often enough.
func (b *Bucket) retry(ctx context.Context, once func() error) error {
	wait := backoff
	for attempt := 1; ; attempt++ {
		err := once()
		if err == nil || attempt >= b.url.Options.Attempts || ctx.Err() != nil || !Transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		wait *= 2
	}
}

func (b *Bucket) getOnce(ctx context.Context, key string) ([]byte, error) {
	attempt, w := b.watch(ctx)
	defer w.stop()
	out, err := b.client.GetObject(attempt, &s3.GetObjectInput{Bucket: aws.String(b.url.Bucket), Key: b.fullKey(key)})
	if err != nil {
		return nil, failed(opGet, key, w.explain(err))
	}
	if err := archive.CheckSize(key, aws.ToInt64(out.ContentLength)); err != nil {
		out.Body.Close()
		return nil, &Error{Op: opGet, Key: key, kind: ErrDamaged, cause: err}
	}
	body, err := readBody(out, w)
	if err != nil {
		return nil, arrival(ctx, opGet, key, w.explain(err))
	}
	return body, nil
}

// tailOnce asks for one byte where none is wanted, because a range of none
// cannot be asked for.
func (b *Bucket) tailOnce(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	attempt, w := b.watch(ctx)
	defer w.stop()
	out, err := b.client.GetObject(attempt, &s3.GetObjectInput{
		Bucket: aws.String(b.url.Bucket),
		Key:    b.fullKey(key),
		Range:  aws.String(fmt.Sprintf("bytes=-%d", max(n, 1))),
	}, withoutChecksum)
	if err != nil {
		e := failed(opGetTail, key, w.explain(err))
		if e.Status == http.StatusRequestedRangeNotSatisfiable {
			return b.tailOfWhole(ctx, key, n)
		}
		return nil, 0, e
	}
	tail, size, err := readTail(out, w, n)
	if err != nil {
		return nil, 0, arrival(ctx, opGetTail, key, w.explain(err))
	}
	return tail, size, nil
}

// rangeOnce asks for one byte where none is wanted, as tailOnce does.
func (b *Bucket) rangeOnce(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	attempt, w := b.watch(ctx)
	defer w.stop()
	out, err := b.client.GetObject(attempt, &s3.GetObjectInput{
		Bucket: aws.String(b.url.Bucket),
		Key:    b.fullKey(key),
		Range:  aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+max(n, 1)-1)),
	}, withoutChecksum)
	if err != nil {
		e := failed(opGetRange, key, w.explain(err))
		if e.Status == http.StatusRequestedRangeNotSatisfiable {
			return []byte{}, nil // it ends before
		}
		return nil, e
	}
	body, err := readRange(out, w, offset, n)
	if err != nil {
		return nil, arrival(ctx, opGetRange, key, w.explain(err))
	}
	return body, nil
}

// readRange reads the answer to a range. A store may send the whole object
// instead, and then says no Content-Range.
func readRange(out *s3.GetObjectOutput, w *watch, offset, n int64) ([]byte, error) {
	body, err := readBody(out, w)
	if err != nil {
		return nil, err
	}
	got := int64(len(body))
	if out.ContentRange == nil {
		body = body[min(offset, got):]
		return body[:min(n, int64(len(body)))], nil
	}
	first, last, size, err := parseContentRange(*out.ContentRange)
	if err != nil {
		return nil, err
	}
	if want := min(offset+max(n, 1), size) - 1; first != offset || last != want || last-first+1 != got {
		return nil, fmt.Errorf("%w: %d bytes called %s, for %d from %d", errArrival, got, oneLine(*out.ContentRange), n, offset)
	}
	return body[:min(n, got)], nil
}

// withoutChecksum keeps the SDK from holding part of an object against the
// checksum of the whole, which some stores send with it.
func withoutChecksum(o *s3.Options) {
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
}

// tailOfWhole is for the answer 416: an empty object has no last byte, and
// some stores say the same of one that is shorter than the range.
func (b *Bucket) tailOfWhole(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	body, err := b.getOnce(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	size := int64(len(body))
	return body[size-min(n, size):], size, nil
}

// readTail reads the answer to a range of the last n bytes (one, for none).
// A store may send the whole object instead, and then says no Content-Range.
func readTail(out *s3.GetObjectOutput, w *watch, n int64) ([]byte, int64, error) {
	tail, err := readBody(out, w)
	if err != nil {
		return nil, 0, err
	}
	got := int64(len(tail))
	size := got
	if out.ContentRange != nil {
		var first, last int64
		first, last, size, err = parseContentRange(*out.ContentRange)
		if err != nil {
			return nil, 0, err
		}
		if want := size - min(max(n, 1), size); first != want || last != size-1 || last-first+1 != got {
			return nil, 0, fmt.Errorf("%w: %d bytes called %s, for the last %d", errArrival, got, oneLine(*out.ContentRange), n)
		}
	}
	return tail[got-min(n, got):], size, nil
}

// parseContentRange reads "bytes first-last/size".
func parseContentRange(s string) (first, last, size int64, err error) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	from, to, ok3 := strings.Cut(span, "-")
	if ok && ok2 && ok3 {
		var errs [3]error
		first, errs[0] = strconv.ParseInt(from, 10, 64)
		last, errs[1] = strconv.ParseInt(to, 10, 64)
		size, errs[2] = strconv.ParseInt(total, 10, 64)
		if errors.Join(errs[:]...) == nil && 0 <= first && first <= last && last < size {
			return first, last, size, nil
		}
	}
	return 0, 0, 0, fmt.Errorf("%w: Content-Range %q", errArrival, oneLine(s))
}

// errArrival marks what arrived whole and is wrong.
var errArrival = errors.New("not what was asked for")

// readBody reads a whole answer: to its end, because only there the SDK
// compares checksums, and exactly as long as was said before. It trusts what
// was said for no more than a first allocation.
func readBody(out *s3.GetObjectOutput, w *watch) ([]byte, error) {
	defer out.Body.Close()
	if out.ContentLength == nil {
		return nil, fmt.Errorf("%w: no Content-Length", errArrival)
	}
	var body bytes.Buffer
	body.Grow(int(min(max(*out.ContentLength, 0), 16<<20)) + bytes.MinRead)
	n, err := io.Copy(&body, io.LimitReader(watchedReader{out.Body, w}, *out.ContentLength+1))
	if err != nil {
		return nil, err
	}
	if n != *out.ContentLength {
		return nil, fmt.Errorf("%w: %d bytes, where %d were announced", errArrival, n, *out.ContentLength)
	}
	return body.Bytes(), nil
}

// arrival makes an Error of a body that did not arrive as it should. An SDK
// that finds another checksum says so in words alone.
func arrival(ctx context.Context, op, key string, err error) *Error {
	e := failed(op, key, err)
	if ctx.Err() == nil && (errors.Is(err, errArrival) || strings.Contains(err.Error(), "checksum did not match")) {
		e.kind = ErrDamaged
	}
	return e
}

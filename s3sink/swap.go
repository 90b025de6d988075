package s3sink

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ledgerlake/ledgerlake/archive"
)

var _ archive.Swapper = (*Bucket)(nil)

// GetTagged implements [archive.Swapper].
func (b *Bucket) GetTagged(ctx context.Context, key string) (body []byte, tag string, err error) {
	err = b.retry(ctx, func() (err error) {
		body, tag, err = b.taggedOnce(ctx, key)
		return err
	})
	return body, tag, err
}

var errNoTag = errors.New("the store's answer has no ETag")

func (b *Bucket) taggedOnce(ctx context.Context, key string) ([]byte, string, error) {
	attempt, w := b.watch(ctx)
	defer w.stop()
	out, err := b.client.GetObject(attempt, &s3.GetObjectInput{Bucket: aws.String(b.url.Bucket), Key: b.fullKey(key)})
	if err != nil {
		return nil, "", failed(opGet, key, w.explain(err))
	}
	body, err := readBody(out, w)
	if err != nil {
		return nil, "", arrival(ctx, opGet, key, w.explain(err))
	}
	tag := aws.ToString(out.ETag)
	if tag == "" {
		return nil, "", &Error{Op: opGet, Key: key, cause: errNoTag}
	}
	return body, tag, nil
}

// Swap implements [archive.Swapper]: PutObject with If-Match, or with
// If-None-Match where there is to be no object yet. It is one request, as
// Create is. What is swapped is never locked: it is no evidence.
func (b *Bucket) Swap(ctx context.Context, key string, body []byte, tag string) (newTag string, err error) {
	if err := checkKey(key); err != nil {
		return "", &Error{Op: opSwap, Key: key, cause: err}
	}
	in := b.putInput(key, body)
	if tag != "" {
		in.IfNoneMatch, in.IfMatch = nil, aws.String(tag)
	}
	b.checksum.put(in, body)
	out, fault := b.sendPut(ctx, opSwap, key, in, body)
	if fault != nil {
		return "", fault
	}
	if newTag = aws.ToString(out.ETag); newTag == "" {
		return "", &Error{Op: opSwap, Key: key, cause: errNoTag}
	}
	return newTag, nil
}

package s3sink

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/ledgerlake/ledgerlake/archive"
)

// Uploads implements [archive.Store]. Nothing of ours uploads in parts, but a
// copy made by hand may. A store that cannot list uploads gives none.
func (b *Bucket) Uploads(ctx context.Context, prefix string) iter.Seq2[archive.Upload, error] {
	return func(yield func(archive.Upload, error) bool) {
		p := uploadPages{b: b, prefix: prefix, more: !b.can.noUploads.Load()}
		for p.more {
			uploads, err := p.next(ctx)
			if unknown(err) {
				b.can.noUploads.Store(true)
				return
			}
			for _, u := range uploads {
				if !yield(u, nil) {
					return
				}
			}
			if err != nil {
				yield(archive.Upload{}, err)
				return
			}
		}
	}
}

// uploadPages walks the pages of a listing of uploads.
type uploadPages struct {
	b                   *Bucket
	prefix              string
	more                bool
	keyMarker, idMarker *string // of the next page; nil: not begun
	last                string  // full key
}

// next reads a page. With an error come the uploads before it.
func (p *uploadPages) next(ctx context.Context) ([]archive.Upload, error) {
	p.more = false
	var out *s3.ListMultipartUploadsOutput
	err := p.b.retry(ctx, func() (err error) {
		out, err = p.ask(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	uploads, err := p.read(out)
	if err == nil {
		err = p.turn(out)
	}
	if err != nil {
		return uploads, &Error{Op: opUploads, Key: p.prefix, cause: fmt.Errorf("the store lists wrongly: %w", err)}
	}
	return uploads, nil
}

func (p *uploadPages) ask(ctx context.Context) (*s3.ListMultipartUploadsOutput, error) {
	attempt, w := p.b.watch(ctx)
	defer w.stop()
	out, err := p.b.client.ListMultipartUploads(attempt, &s3.ListMultipartUploadsInput{
		Bucket: aws.String(p.b.url.Bucket), Prefix: p.b.fullKey(p.prefix),
		EncodingType: types.EncodingTypeUrl, KeyMarker: p.keyMarker, UploadIdMarker: p.idMarker,
	})
	if err != nil {
		return nil, failed(opUploads, p.prefix, w.explain(err))
	}
	return out, nil
}

func (p *uploadPages) read(out *s3.ListMultipartUploadsOutput) ([]archive.Upload, error) {
	var uploads []archive.Upload
	for _, u := range out.Uploads {
		key, err := decodeKey(aws.ToString(u.Key), out.EncodingType)
		switch {
		case err != nil:
			return uploads, err
		case !strings.HasPrefix(key, p.b.url.Prefix+p.prefix):
			return uploads, fmt.Errorf("key %q has another prefix", oneLine(key))
		case key < p.last:
			return uploads, fmt.Errorf("key %q comes after %q", oneLine(key), oneLine(p.last))
		}
		p.last = key
		uploads = append(uploads, archive.Upload{
			Key: key[len(p.b.url.Prefix):], ID: aws.ToString(u.UploadId), Begun: aws.ToTime(u.Initiated).UTC(),
		})
	}
	return uploads, nil
}

// turn goes on to the page after out. A listing of objects, which is what some
// stores answer whatever they are asked, has more and does not say where.
func (p *uploadPages) turn(out *s3.ListMultipartUploadsOutput) error {
	if !aws.ToBool(out.IsTruncated) || len(out.Uploads) == 0 && out.NextKeyMarker == nil {
		return nil
	}
	key, err := decodeKey(aws.ToString(out.NextKeyMarker), out.EncodingType)
	if err != nil {
		return err
	}
	id := aws.ToString(out.NextUploadIdMarker)
	if key == "" || key == aws.ToString(p.keyMarker) && id == aws.ToString(p.idMarker) {
		return errors.New("a page leads nowhere")
	}
	p.keyMarker, p.idMarker, p.more = &key, nil, true
	if id != "" {
		p.idMarker = &id
	}
	return nil
}

// Abort implements [archive.Store].
func (b *Bucket) Abort(ctx context.Context, u archive.Upload) error {
	err := b.retry(ctx, func() error {
		attempt, w := b.watch(ctx)
		defer w.stop()
		_, err := b.client.AbortMultipartUpload(attempt, &s3.AbortMultipartUploadInput{
			Bucket: aws.String(b.url.Bucket), Key: b.fullKey(u.Key), UploadId: aws.String(u.ID),
		})
		if err != nil {
			return failed(opAbort, u.Key, w.explain(err))
		}
		return nil
	})
	var e *Error
	if errors.As(err, &e) && e.Code == "NoSuchUpload" {
		return nil
	}
	return err
}

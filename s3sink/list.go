package s3sink

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/ledgerlake/ledgerlake/archive"
)

// List implements [archive.Source]. A store whose listing is not in the order
// of the keys' bytes, or does not end, gets an error instead of being believed.
// The key of the prefix itself, which consoles make to show a folder, is left
// out.
func (b *Bucket) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	return func(yield func(archive.Object, error) bool) {
		p := pages{b: b, prefix: prefix, after: after}
		for more := true; more; {
			objects, err := p.next(ctx)
			for _, o := range objects {
				if !yield(o, nil) {
					return
				}
			}
			if err != nil {
				yield(archive.Object{}, err)
				return
			}
			more = p.token != nil
		}
	}
}

// pages walks the pages of a listing.
type pages struct {
	b             *Bucket
	prefix, after string
	token         *string // of the next page; nil: none, or not begun
	last          string  // full key
}

// next reads a page. With an error come the objects before it.
func (p *pages) next(ctx context.Context) ([]archive.Object, error) {
	var out *s3.ListObjectsV2Output
	err := p.b.retry(ctx, func() (err error) {
		out, err = p.ask(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	var objects []archive.Object
	for _, c := range out.Contents {
		o, wanted, err := p.object(c, out.EncodingType)
		if err != nil {
			return objects, p.wrong(err)
		}
		if wanted {
			objects = append(objects, o)
		}
	}
	return objects, p.turn(out)
}

func (p *pages) ask(ctx context.Context) (*s3.ListObjectsV2Output, error) {
	attempt, w := p.b.watch(ctx)
	defer w.stop()
	in := &s3.ListObjectsV2Input{
		Bucket: aws.String(p.b.url.Bucket),
		Prefix: p.b.fullKey(p.prefix),
		// XML has no way to write some characters that keys may have, and one
		// such key by a stranger would make the whole listing unreadable.
		EncodingType:      types.EncodingTypeUrl,
		ContinuationToken: p.token,
	}
	if p.after != "" && p.token == nil {
		in.StartAfter = p.b.fullKey(p.after)
	}
	out, err := p.b.client.ListObjectsV2(attempt, in)
	if err != nil {
		return nil, failed(opList, p.prefix, w.explain(err))
	}
	return out, nil
}

// object reads an entry. Entries up to after are not wanted: a store may not
// know StartAfter.
func (p *pages) object(c types.Object, encoding types.EncodingType) (archive.Object, bool, error) {
	key := aws.ToString(c.Key)
	if encoding == types.EncodingTypeUrl {
		var err error
		if key, err = url.QueryUnescape(key); err != nil {
			return archive.Object{}, false, fmt.Errorf("key %q is not URL-encoded as announced", oneLine(key))
		}
	}
	if !strings.HasPrefix(key, p.b.url.Prefix+p.prefix) {
		return archive.Object{}, false, fmt.Errorf("key %q has another prefix", oneLine(key))
	}
	if key <= p.last {
		return archive.Object{}, false, fmt.Errorf("key %q comes after %q", oneLine(key), oneLine(p.last))
	}
	p.last = key
	key = key[len(p.b.url.Prefix):]
	return archive.Object{Key: key, Size: aws.ToInt64(c.Size), Modified: aws.ToTime(c.LastModified).UTC()}, key > p.after, nil
}

// turn goes on to the page after out.
func (p *pages) turn(out *s3.ListObjectsV2Output) error {
	next := out.NextContinuationToken
	if !aws.ToBool(out.IsTruncated) {
		next = nil
	} else if aws.ToString(next) == "" || p.token != nil && *next == *p.token {
		return p.wrong(errors.New("a page leads nowhere"))
	}
	p.token = next
	return nil
}

func (p *pages) wrong(err error) error {
	return &Error{Op: opList, Key: p.prefix, cause: fmt.Errorf("the store lists wrongly: %w", err)}
}

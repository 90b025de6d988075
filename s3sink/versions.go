package s3sink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/ledgerlake/ledgerlake/archive"
)

// abilities are what was learnt of a store that does not know all of S3.
type abilities struct {
	versions    atomic.Bool // it has listed some
	noVersions  atomic.Bool // it cannot list them
	noMultiples atomic.Bool // it deletes one at a time
	noUploads   atomic.Bool // it cannot list them
}

// Versions implements [archive.Store]. A store that does not know versions
// gives one for each object, with the ID "". One that answers with something
// else than a list of versions does so in words that parse as an empty one; so
// an empty answer is held against a listing, until the store has listed some.
func (b *Bucket) Versions(ctx context.Context, prefix string) iter.Seq2[archive.Version, error] {
	return func(yield func(archive.Version, error) bool) {
		if b.can.noVersions.Load() {
			b.asVersions(ctx, prefix, yield)
			return
		}
		p := versionPages{b: b, prefix: prefix}
		for more := true; more; {
			versions, err := p.next(ctx)
			if more = p.more; p.first && err == nil && len(versions) == 0 {
				err = b.knowsVersions(ctx, prefix)
			}
			if p.first && unknown(err) {
				b.can.noVersions.Store(true)
				b.asVersions(ctx, prefix, yield)
				return
			}
			p.first = false
			for _, v := range versions {
				if !yield(v, nil) {
					return
				}
			}
			if err != nil {
				yield(archive.Version{}, err)
				return
			}
		}
	}
}

// errNoVersions: the store lists objects, and no versions of them.
var errNoVersions = errors.New("the store does not list versions")

// unknown reports whether a store says that it does not know a request.
func unknown(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return errors.Is(err, errNoVersions)
	}
	return e.Status == http.StatusNotImplemented || e.Status == http.StatusMethodNotAllowed || e.Code == "NotImplemented"
}

// knowsVersions returns errNoVersions where there are objects, and still no
// versions.
func (b *Bucket) knowsVersions(ctx context.Context, prefix string) error {
	if b.can.versions.Load() {
		return nil
	}
	for _, err := range b.List(ctx, prefix, "") {
		if err != nil {
			return err
		}
		again := versionPages{b: b, prefix: prefix}
		versions, err := again.next(ctx) // it may have been created in between
		if err == nil && len(versions) == 0 {
			return errNoVersions
		}
		return err
	}
	return nil
}

// asVersions lists objects as the one version that each has.
func (b *Bucket) asVersions(ctx context.Context, prefix string, yield func(archive.Version, error) bool) {
	for o, err := range b.List(ctx, prefix, "") {
		v := archive.Version{Key: o.Key, Size: o.Size, Modified: o.Modified, Latest: true}
		if err != nil {
			v = archive.Version{}
		}
		if !yield(v, err) {
			return
		}
	}
}

// versionPages walks the pages of a listing of versions.
type versionPages struct {
	b           *Bucket
	prefix      string
	first, more bool
	keyMarker   *string // full key after which the next page begins; nil: not begun
	idMarker    *string
	last        string          // full key
	seen        map[string]bool // ids of last: some stores begin a page with the entry that ended the one before
}

// next reads a page. With an error come the versions before it.
func (p *versionPages) next(ctx context.Context) ([]archive.Version, error) {
	p.first, p.more = p.keyMarker == nil, false
	var out *s3.ListObjectVersionsOutput
	err := p.b.retry(ctx, func() (err error) {
		out, err = p.ask(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	versions, err := p.read(out)
	if len(versions) > 0 {
		p.b.can.versions.Store(true)
	}
	if err == nil {
		err = p.turn(out)
	}
	if err != nil {
		return versions, p.wrong(err)
	}
	return versions, nil
}

func (p *versionPages) ask(ctx context.Context) (*s3.ListObjectVersionsOutput, error) {
	attempt, w := p.b.watch(ctx)
	defer w.stop()
	out, err := p.b.client.ListObjectVersions(attempt, &s3.ListObjectVersionsInput{
		Bucket: aws.String(p.b.url.Bucket), Prefix: p.b.fullKey(p.prefix),
		EncodingType: types.EncodingTypeUrl, KeyMarker: p.keyMarker, VersionIdMarker: p.idMarker,
	})
	if err != nil {
		return nil, failed(opVersions, p.prefix, w.explain(err))
	}
	return out, nil
}

// read merges versions and markers of a page, which come apart, by key.
func (p *versionPages) read(out *s3.ListObjectVersionsOutput) ([]archive.Version, error) {
	var page []archive.Version
	for _, v := range out.Versions {
		page = append(page, archive.Version{
			Key: aws.ToString(v.Key), ID: aws.ToString(v.VersionId), Size: aws.ToInt64(v.Size),
			Modified: aws.ToTime(v.LastModified).UTC(), Latest: aws.ToBool(v.IsLatest),
		})
	}
	for _, m := range out.DeleteMarkers {
		page = append(page, archive.Version{
			Key: aws.ToString(m.Key), ID: aws.ToString(m.VersionId), Marker: true,
			Modified: aws.ToTime(m.LastModified).UTC(), Latest: aws.ToBool(m.IsLatest),
		})
	}
	for i := range page {
		key, err := decodeKey(page[i].Key, out.EncodingType)
		if err != nil {
			return nil, err
		}
		page[i].Key = key
	}
	slices.SortStableFunc(page, func(a, b archive.Version) int { return cmp.Compare(a.Key, b.Key) })
	return p.trim(page)
}

// trim checks full keys and cuts them, and leaves out what comes twice and what
// consoles make to show the prefix as a folder.
func (p *versionPages) trim(page []archive.Version) ([]archive.Version, error) {
	wanted := page[:0]
	for _, v := range page {
		if !strings.HasPrefix(v.Key, p.b.url.Prefix+p.prefix) {
			return wanted, fmt.Errorf("key %q has another prefix", oneLine(v.Key))
		}
		if v.Key < p.last {
			return wanted, fmt.Errorf("key %q comes after %q", oneLine(v.Key), oneLine(p.last))
		}
		if v.Key != p.last || p.seen == nil {
			p.last, p.seen = v.Key, map[string]bool{}
		}
		again := p.seen[v.ID]
		p.seen[v.ID] = true
		if v.Key = v.Key[len(p.b.url.Prefix):]; v.Key != "" && !again {
			wanted = append(wanted, v)
		}
	}
	return wanted, nil
}

// turn goes on to the page after out.
func (p *versionPages) turn(out *s3.ListObjectVersionsOutput) error {
	if !aws.ToBool(out.IsTruncated) {
		return nil
	}
	key, err := decodeKey(aws.ToString(out.NextKeyMarker), out.EncodingType)
	if err != nil {
		return err
	}
	id := aws.ToString(out.NextVersionIdMarker)
	if key == "" || key == aws.ToString(p.keyMarker) && id == aws.ToString(p.idMarker) {
		return errors.New("a page leads nowhere")
	}
	p.keyMarker, p.idMarker, p.more = &key, nil, true
	if id != "" {
		p.idMarker = &id
	}
	return nil
}

func (p *versionPages) wrong(err error) error {
	return &Error{Op: opVersions, Key: p.prefix, cause: fmt.Errorf("the store lists wrongly: %w", err)}
}

// decodeKey reads a key of a listing.
func decodeKey(key string, encoding types.EncodingType) (string, error) {
	if encoding != types.EncodingTypeUrl {
		return key, nil
	}
	plain, err := url.QueryUnescape(key)
	if err != nil {
		return "", fmt.Errorf("key %q is not URL-encoded as announced", oneLine(key))
	}
	return plain, nil
}

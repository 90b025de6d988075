package s3sink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/ledgerlake/ledgerlake/archive"
)

// This file holds what the doctor asks and nobody else does.

// errVersionsStay: an object was deleted, and versions of it are still there.
var errVersionsStay = errors.New("old versions stay")

// lock looks for a default lock. In COMPLIANCE mode nobody can shorten it, so
// that no erasure could be kept within its time.
func (d *doctor) lock(ctx context.Context) error {
	var out *s3.GetObjectLockConfigurationOutput
	err := d.ask(ctx, "get object lock of", func(ctx context.Context) (err error) {
		out, err = d.b.client.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: aws.String(d.b.url.Bucket)})
		return err
	})
	var e *Error
	switch {
	case err == nil:
		return d.lockIs(out.ObjectLockConfiguration)
	case errors.As(err, &e) && e.Code == "ObjectLockConfigurationNotFoundError":
		return d.lockIs(nil)
	case errors.Is(err, archive.ErrDenied):
		d.find(FindingLock, Warn, "cannot be seen (%v): allow s3:GetBucketObjectLockConfiguration, or make sure that no default retention is set", err)
	case isVerdict(err):
		d.find(FindingLock, OK, "the store does not have it")
		return d.noLock()
	default:
		return err
	}
	return nil
}

func (d *doctor) lockIs(c *types.ObjectLockConfiguration) error {
	if c == nil || c.Rule == nil || c.Rule.DefaultRetention == nil {
		d.find(FindingLock, OK, "no default retention")
		if c == nil || c.ObjectLockEnabled != types.ObjectLockEnabledEnabled {
			return d.noLock()
		}
		return nil
	}
	r := c.Rule.DefaultRetention
	period := fmt.Sprintf("%d days", aws.ToInt32(r.Days))
	if r.Years != nil {
		period = fmt.Sprintf("%d years", *r.Years)
	}
	if r.Mode != types.ObjectLockRetentionModeGovernance {
		return d.refuse(FindingLock, "new objects are locked for %s in %s mode, which forbids every erasure: remove the bucket's default retention, and lock an anchor bucket instead", period, oneLine(string(r.Mode)))
	}
	d.locked = true
	if d.compact {
		d.find(FindingLock, OK, "new objects are locked for %s in GOVERNANCE mode", period)
		return nil
	}
	d.find(FindingLock, Warn, "new objects are locked for %s in GOVERNANCE mode: compact needs s3:BypassGovernanceRetention to erase", period)
	return nil
}

// versioning reports whether deleting an object leaves versions behind.
func (d *doctor) versioning(ctx context.Context) error {
	var out *s3.GetBucketVersioningOutput
	err := d.ask(ctx, "get versioning of", func(ctx context.Context) (err error) {
		out, err = d.b.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: aws.String(d.b.url.Bucket)})
		return err
	})
	switch {
	case err == nil && out.Status == "":
		d.find(FindingVersioning, OK, "off")
	case err == nil:
		d.versioned = true
		d.find(FindingVersioning, OK, "%s: compact deletes old versions too, and needs s3:ListBucketVersions and s3:DeleteObjectVersion", oneLine(string(out.Status)))
	case errors.Is(err, archive.ErrDenied):
		d.find(FindingVersioning, Warn, "cannot be seen (%v): allow s3:GetBucketVersioning", err)
	case isVerdict(err):
		d.find(FindingVersioning, OK, "the store does not have it")
	default:
		return err
	}
	return d.versions(ctx)
}

// versions finds out whether versions may be listed, in the full form.
func (d *doctor) versions(ctx context.Context) error {
	if !d.full {
		return nil
	}
	_, err := d.b.listVersions(ctx, archive.RootKey)
	switch {
	case err == nil:
		d.find(FindingVersions, OK, "versions can be listed")
	case errors.Is(err, archive.ErrDenied):
		d.find(FindingVersions, OK, "denied: right for ingest and verify; compact needs s3:ListBucketVersions")
	case isVerdict(err):
		d.find(FindingVersions, Warn, "the store cannot list versions (%v): compact cannot make sure of an erasure if it keeps any", err)
	default:
		return err
	}
	return nil
}

// wrongChecksum sends a body with the checksum of another one.
func (d *doctor) wrongChecksum(ctx context.Context) error {
	if !d.full || d.b.checksum == NoChecksum {
		return nil
	}
	key := d.key
	if d.mayDelete {
		key = ProbePrefix + rand.Text()
		d.leftovers = append(d.leftovers, key)
	}
	in := d.b.putInput(key, d.body)
	d.b.checksum.put(in, append([]byte("other"), d.body...))
	_, err := d.b.send(ctx, key, in, d.body)
	switch {
	case err == nil:
		d.find(FindingChecksum, Warn, "an upload with a wrong checksum (%s) is accepted: damage on the way to the store shows only when ledgerlake reads it back", d.b.checksum)
	case errors.Is(err, archive.ErrExists):
		d.find(FindingChecksum, OK, "whether a wrong one is refused cannot be seen without leave to delete")
	case isVerdict(err):
		d.find(FindingChecksum, OK, "a wrong one (%s) is refused", d.b.checksum)
	default:
		return err
	}
	return nil
}

// wrongCredentials writes over what is there with our key and a secret that is
// not its own, and wants to hear that instead of 412.
func (d *doctor) wrongCredentials(ctx context.Context) error {
	if !d.full {
		return nil
	}
	ours, err := d.b.client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return failed("get credentials for", d.b.url.Bucket, err)
	}
	stranger := &Bucket{url: d.b.url}
	o := &stranger.url.Options
	o.AccessKey, o.SecretKey, o.SessionToken = ours.AccessKeyID, "not the secret", ours.SessionToken
	o.RoleARN, o.ExternalID = "", ""
	if err := stranger.connect(ctx); err != nil {
		return err
	}
	_, err = stranger.put(ctx, d.key, d.body, d.b.checksum)
	switch {
	case errors.Is(err, archive.ErrDenied):
		d.find(FindingErrors, OK, "wrong credentials are told 401 or 403")
	case err == nil || errors.Is(err, archive.ErrExists):
		d.find(FindingErrors, Warn, "wrong credentials are accepted: whoever reaches the store can write to it")
	case isVerdict(err):
		d.find(FindingErrors, Warn, "wrong credentials are answered with something else than 401 or 403, which ingest takes for a passing fault: %v", err)
	default:
		return err
	}
	return nil
}

// ask makes a request about the bucket.
func (d *doctor) ask(ctx context.Context, op string, request func(context.Context) error) error {
	return d.b.retry(ctx, func() error {
		attempt, w := d.b.watch(ctx)
		defer w.stop()
		if err := request(attempt); err != nil {
			return failed(op, d.b.url.Bucket, w.explain(err))
		}
		return nil
	})
}

// deleteAll deletes an object of the probes and all its versions. It returns
// an error matching errVersionsStay if only the former could be done.
func (d *doctor) deleteAll(ctx context.Context, key string) error {
	marker, err := d.b.deleteVersion(ctx, key, nil)
	if err != nil || marker == nil && !d.versioned {
		return err
	}
	versions, err := d.b.listVersions(ctx, key)
	if err != nil {
		return fmt.Errorf("%w: %w", errVersionsStay, err)
	}
	for _, id := range versions {
		if _, err := d.b.deleteVersion(ctx, key, aws.String(id)); err != nil {
			return fmt.Errorf("%w: %w", errVersionsStay, err)
		}
	}
	return nil
}

// deleteVersion deletes an object or a version of it. It returns the id of the
// delete marker that a versioned bucket makes instead.
func (b *Bucket) deleteVersion(ctx context.Context, key string, version *string) (*string, error) {
	attempt, w := b.watch(ctx)
	defer w.stop()
	out, err := b.client.DeleteObject(attempt, &s3.DeleteObjectInput{
		Bucket: aws.String(b.url.Bucket), Key: b.fullKey(key), VersionId: version,
	})
	if err != nil {
		return nil, failed("delete", key, w.explain(err))
	}
	if version == nil {
		return out.VersionId, nil
	}
	return nil, nil
}

// listVersions returns the ids of all versions and delete markers of a key of
// the probes, which has few.
func (b *Bucket) listVersions(ctx context.Context, key string) ([]string, error) {
	attempt, w := b.watch(ctx)
	defer w.stop()
	out, err := b.client.ListObjectVersions(attempt, &s3.ListObjectVersionsInput{Bucket: aws.String(b.url.Bucket), Prefix: b.fullKey(key)})
	if err != nil {
		return nil, failed("list versions of", key, w.explain(err))
	}
	var ids []string
	for _, v := range out.Versions {
		if aws.ToString(v.Key) == *b.fullKey(key) {
			ids = append(ids, aws.ToString(v.VersionId))
		}
	}
	for _, m := range out.DeleteMarkers {
		if aws.ToString(m.Key) == *b.fullKey(key) {
			ids = append(ids, aws.ToString(m.VersionId))
		}
	}
	return ids, nil
}

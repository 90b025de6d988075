package s3sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/ledgerlake/ledgerlake/archive"
)

// deleteBatch is how many versions one DeleteObjects takes.
const deleteBatch = 1000

// Delete implements [archive.Store]. It deletes 1,000 versions by a request,
// and reads what the answer says of each: a request that succeeds may hold
// failures. What may pass is tried again, Options.Attempts times; where a
// request fails as a whole, or the store does not know it, its versions are
// deleted one by one. What GOVERNANCE keeps is tried once more past it, which
// takes s3:BypassGovernanceRetention; but never anchors, keys and catalogs,
// which are locked on purpose.
func (b *Bucket) Delete(ctx context.Context, versions []archive.Version) []archive.Kept {
	d := deletion{b: b, versions: versions, errs: make([]error, len(versions))}
	places := make([]int, len(versions))
	for i := range places {
		places[i] = i
	}
	for batch := range slices.Chunk(places, deleteBatch) {
		d.batch(ctx, batch)
	}
	var kept []archive.Kept
	for i, err := range d.errs {
		if err != nil {
			kept = append(kept, archive.Kept{Version: versions[i], Err: err})
		}
	}
	return kept
}

// A deletion is one call of Delete. Places are indexes of versions.
type deletion struct {
	b        *Bucket
	versions []archive.Version
	errs     []error // by place; nil: gone
}

// batch deletes up to deleteBatch versions.
func (d *deletion) batch(ctx context.Context, places []int) {
	if len(places) == 1 || d.b.can.noMultiples.Load() {
		d.singly(ctx, places)
		return
	}
	wait := backoff
	for attempt := 1; len(places) > 0; attempt++ {
		again, apart := d.together(ctx, places)
		d.singly(ctx, apart)
		if attempt >= d.b.url.Options.Attempts || ctx.Err() != nil {
			return
		}
		if places = again; len(places) > 0 && !sleep(ctx, wait) {
			return
		}
		wait *= 2
	}
}

// sleep waits, and reports whether the context is still good.
func sleep(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// together deletes by one request. It returns the places to try again, whose
// errors are set, and those that want requests of their own.
func (d *deletion) together(ctx context.Context, places []int) (again, apart []int) {
	out, err := d.request(ctx, places)
	switch {
	case err != nil && Transient(err) && !unknown(err), ctx.Err() != nil:
		d.set(places, err)
		return places, nil
	case err != nil:
		d.b.can.noMultiples.Store(unknown(err))
		return nil, places
	}
	answers := readAnswers(out, d.b.url.Prefix)
	for _, i := range places {
		err, told := answers.of(d.versions[i])
		d.errs[i] = err
		switch {
		case told && err == nil:
		case told && Transient(err):
			again = append(again, i)
		default:
			apart = append(apart, i) // to be told, or told why
		}
	}
	return again, apart
}

func (d *deletion) set(places []int, err error) {
	for _, i := range places {
		d.errs[i] = err
	}
}

func (d *deletion) request(ctx context.Context, places []int) (*s3.DeleteObjectsOutput, error) {
	var objects []types.ObjectIdentifier
	for _, i := range places {
		objects = append(objects, types.ObjectIdentifier{Key: d.b.fullKey(d.versions[i].Key), VersionId: idOf(d.versions[i])})
	}
	attempt, w := d.b.watch(ctx)
	defer w.stop()
	out, err := d.b.client.DeleteObjects(attempt, &s3.DeleteObjectsInput{
		Bucket: aws.String(d.b.url.Bucket), Delete: &types.Delete{Objects: objects},
	})
	if err != nil {
		return nil, failed(opDelete, fmt.Sprintf("%d versions", len(places)), w.explain(err))
	}
	return out, nil
}

// idOf is a version's id as requests name it.
func idOf(v archive.Version) *string {
	if v.ID == "" {
		return nil
	}
	return aws.String(v.ID)
}

// answers are what a DeleteObjects said, by key and id. Some stores leave out
// the id: that is then said of all versions of the key, the bad before the good.
type answers struct {
	gone   map[[2]string]bool
	failed map[[2]string]error
	prefix string
}

func readAnswers(out *s3.DeleteObjectsOutput, prefix string) answers {
	a := answers{gone: map[[2]string]bool{}, failed: map[[2]string]error{}, prefix: prefix}
	for _, o := range out.Deleted {
		at := [2]string{aws.ToString(o.Key), aws.ToString(o.VersionId)}
		a.gone[at] = true
		if at[1] == "" && aws.ToBool(o.DeleteMarker) {
			a.failed[at] = markerInstead(strings.TrimPrefix(at[0], prefix))
		}
	}
	for _, e := range out.Errors {
		at := [2]string{aws.ToString(e.Key), aws.ToString(e.VersionId)}
		a.failed[at] = keyError(strings.TrimPrefix(at[0], prefix), aws.ToString(e.Code), aws.ToString(e.Message))
	}
	return a
}

// of returns what was said of a version, if anything was. That it is not there
// is as good as that it is gone.
func (a answers) of(v archive.Version) (err error, told bool) {
	for _, id := range []string{v.ID, ""} {
		at := [2]string{a.prefix + v.Key, id}
		if err := a.failed[at]; err != nil {
			return absentIsGone(err), true
		}
	}
	for _, id := range []string{v.ID, ""} {
		if a.gone[[2]string{a.prefix + v.Key, id}] {
			return nil, true
		}
	}
	return &Error{Op: opDelete, Key: v.Key, cause: errUntold}, false
}

var errUntold = errors.New("the store's answer does not say whether it is gone")

// markerInstead is for a store that does not list versions and keeps them.
func markerInstead(key string) error {
	return &Error{Op: opDelete, Key: key, cause: errors.New("the store put a delete marker above it: it keeps versions and does not list them")}
}

// keyError is what a request that succeeded says of one of its keys.
func keyError(key, code, message string) *Error {
	e := &Error{Op: opDelete, Key: key, Status: 200, Code: oneLine(code), Message: oneLine(message)}
	switch {
	case code == "AccessDenied" || slices.Contains(deniedCodes, code):
		e.kind = archive.ErrDenied
	case code == "NoSuchBucket":
		e.kind = ErrNoBucket
	}
	return e
}

// transientCodes are failures of one key that may pass.
var transientCodes = []string{
	"InternalError", "InternalServerError", "SlowDown", "ServiceUnavailable", "Busy", "RequestTimeout", "RequestTimeTooSkewed", "Throttling",
	"TooManyRequests", "OperationAborted", "ConditionalRequestConflict",
}

func absentIsGone(err error) error {
	var e *Error
	if errors.As(err, &e) && (e.Code == "NoSuchVersion" || e.Code == "NoSuchKey") {
		return nil
	}
	return err
}

// singly deletes one by one.
func (d *deletion) singly(ctx context.Context, places []int) {
	for _, i := range places {
		if err := ctx.Err(); err != nil {
			d.errs[i] = &Error{Op: opDelete, Key: d.versions[i].Key, cause: err}
			continue
		}
		d.errs[i] = d.b.deleteOne(ctx, d.versions[i])
	}
}

// deleteOne deletes a version, past GOVERNANCE where that is ours to do.
func (b *Bucket) deleteOne(ctx context.Context, v archive.Version) error {
	err := b.deleteRetrying(ctx, v, false)
	if !errors.Is(err, archive.ErrDenied) && !worm(err) {
		return err
	}
	if err = b.whyDenied(ctx, v, err); errors.Is(err, archive.ErrLocked) && !isLockable(v.Key) {
		if b.deleteRetrying(ctx, v, true) == nil {
			return nil
		}
	}
	return err
}

func (b *Bucket) deleteRetrying(ctx context.Context, v archive.Version, bypass bool) error {
	return absentIsGone(b.retry(ctx, func() error {
		attempt, w := b.watch(ctx)
		defer w.stop()
		in := &s3.DeleteObjectInput{Bucket: aws.String(b.url.Bucket), Key: b.fullKey(v.Key), VersionId: idOf(v)}
		if bypass {
			in.BypassGovernanceRetention = aws.Bool(true)
		}
		out, err := b.client.DeleteObject(attempt, in)
		if err != nil {
			return failed(opDelete, v.Key, w.explain(err))
		}
		if v.ID == "" && (aws.ToBool(out.DeleteMarker) || out.VersionId != nil && *out.VersionId != "null") {
			return markerInstead(v.Key)
		}
		return nil
	}))
}

// lockWords stand in what stores say of a version that a lock keeps. They have
// no code for it.
var lockWords = []string{"object lock", "worm", "legal hold", "legalhold", "retention", "retain", "mfa"}

func worm(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	said := strings.ToLower(e.Code + " " + e.Message)
	return e.Status >= 400 && e.Status < 500 && slices.ContainsFunc(lockWords, func(w string) bool { return strings.Contains(said, w) })
}

// whyDenied tells a lock from missing rights, by the store's words or else by
// what it says of the version.
func (b *Bucket) whyDenied(ctx context.Context, v archive.Version, denied error) error {
	var e *Error
	if !errors.As(denied, &e) {
		return denied
	}
	until, held := "", worm(denied)
	if !held {
		until, held = b.lockOn(ctx, v)
	}
	if !held {
		return denied
	}
	locked := *e
	locked.kind, locked.Message = archive.ErrLocked, strings.TrimSpace(e.Message+" "+until)
	return &locked
}

// lockOn asks what lock a version is under.
func (b *Bucket) lockOn(ctx context.Context, v archive.Version) (until string, locked bool) {
	attempt, w := b.watch(ctx)
	defer w.stop()
	out, err := b.client.HeadObject(attempt, &s3.HeadObjectInput{Bucket: aws.String(b.url.Bucket), Key: b.fullKey(v.Key), VersionId: idOf(v)})
	switch {
	case err != nil:
		return "", false
	case out.ObjectLockLegalHoldStatus == types.ObjectLockLegalHoldStatusOn:
		return "(under a legal hold of the store)", true
	case out.ObjectLockMode != "" && out.ObjectLockRetainUntilDate != nil:
		return fmt.Sprintf("(locked until %s in %s mode)", out.ObjectLockRetainUntilDate.UTC().Format(time.DateOnly), oneLine(string(out.ObjectLockMode))), true
	}
	return "", false
}

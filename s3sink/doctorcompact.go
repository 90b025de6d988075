package s3sink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
)

// DoctorCompact probes whether a store lets things go: what compact needs, and
// nobody else should have. It comes with what [Inspect] finds; an error is no
// verdict, as with [Doctor].
//
// The short form is for every start of compact and writes nothing. The full
// form creates one probe below [ProbePrefix], and requires that every version
// of it is seen, and that none is left.
func DoctorCompact(ctx context.Context, b *Bucket, full bool) ([]Finding, error) {
	d := &doctor{b: b, compact: true}
	steps := append(d.looks(), d.seesVersions, d.deletes, d.seesUploads, d.asksTime)
	if full {
		steps = append(steps, d.erases)
	}
	return d.examine(ctx, append(steps, d.locks))
}

// seesVersions finds out whether an erasure could leave something unseen.
func (d *doctor) seesVersions(ctx context.Context) error {
	var err error
	for _, err = range d.b.Versions(ctx, archive.RootKey) {
		break
	}
	switch {
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingVersions, "%v: allow s3:ListBucketVersions: an erasure has to find every version", err)
	case isVerdict(err):
		return d.refuse(FindingVersions, "%v: not an S3 store that can be used", err)
	case err != nil:
		return err
	case !d.b.can.noVersions.Load():
		d.find(FindingVersions, OK, "versions can be listed")
	case d.versioned:
		return d.refuse(FindingVersions, "the store keeps versions and does not list them: what is erased would stay; use another store, or a bucket without versions")
	default:
		d.find(FindingVersions, Warn, "the store does not list versions: make sure that it keeps none, or what is erased stays")
	}
	return nil
}

// deletes finds out by deleting what is not there, by version as compact does:
// that leaves no marker.
func (d *doctor) deletes(ctx context.Context) error {
	absent := []archive.Version{{Key: ProbePrefix + "absent-1", ID: nullVersion}, {Key: ProbePrefix + "absent-2", ID: nullVersion}}
	if d.b.can.noVersions.Load() {
		absent[0].ID, absent[1].ID = "", ""
	}
	kept := d.b.Delete(ctx, absent)
	if len(kept) == 0 {
		how := ""
		if d.b.can.noMultiples.Load() {
			how = ", one at a time: the store does not know DeleteObjects"
		}
		d.find(FindingDelete, OK, "allowed, also of versions%s", how)
		return d.bypasses(ctx)
	}
	switch err := kept[0].Err; {
	case errors.Is(err, archive.ErrLocked):
		return d.refuse(FindingDelete, "%v: nothing could be erased; a bucket with MFA delete cannot be used", err)
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingDelete, "%v: allow s3:DeleteObject and s3:DeleteObjectVersion", err)
	case isVerdict(err):
		return d.refuse(FindingDelete, "the store cannot delete: %v", err)
	default:
		return err
	}
}

// nullVersion is the id of what was written while versions were off.
const nullVersion = "null"

// bypasses finds out whether GOVERNANCE can be passed, where new objects are
// under it. AWS asks for the right to before it looks for the object.
func (d *doctor) bypasses(ctx context.Context) error {
	if !d.locked {
		return nil
	}
	err := d.b.deleteRetrying(ctx, archive.Version{Key: ProbePrefix + "absent-1", ID: nullVersion}, true)
	switch {
	case err == nil:
		d.find(FindingBypass, OK, "locks in GOVERNANCE mode can be passed, as far as can be seen without one")
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingBypass, "%v: new objects are locked in GOVERNANCE mode: allow s3:BypassGovernanceRetention, or remove the bucket's default retention", err)
	case isVerdict(err):
		return d.refuse(FindingBypass, "new objects are locked in GOVERNANCE mode, and the store knows no way past it (%v): remove the bucket's default retention", err)
	default:
		return err
	}
	return nil
}

func (d *doctor) seesUploads(ctx context.Context) error {
	var err error
	for _, err = range d.b.Uploads(ctx, ProbePrefix) {
		break
	}
	switch {
	case err == nil && d.b.can.noUploads.Load():
		d.find(FindingUploads, OK, "the store does not list unfinished uploads; nothing of ledgerlake uploads in parts")
	case err == nil:
		d.find(FindingUploads, OK, "unfinished uploads can be listed")
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingUploads, "%v: allow s3:ListBucketMultipartUploads and s3:AbortMultipartUpload: parts of a copy that was not finished hold what is to be erased", err)
	case isVerdict(err):
		d.find(FindingUploads, Warn, "unfinished uploads cannot be listed (%v): have a lifecycle rule abort them", err)
	default:
		return err
	}
	return nil
}

// asksTime holds the store's clock, by which things are deleted, against ours.
func (d *doctor) asksTime(ctx context.Context) error {
	r := racer{before: d.b.url.Options.Now()}
	r.at, r.err = d.b.Now(ctx)
	r.after = d.b.url.Options.Now()
	switch {
	case errors.Is(r.err, archive.ErrDenied):
		return d.refuse(FindingRead, "%v: allow s3:GetObject", r.err)
	case errors.Is(r.err, errNoDate):
		return d.refuse(FindingClock, "%v: nothing can be deleted after a grace that nobody can measure", r.err)
	case r.err != nil && !isVerdict(r.err):
		return r.err
	}
	d.readClock([]racer{r})
	return d.clock(ctx)
}

// erases creates a probe and has it go with all its versions.
func (d *doctor) erases(ctx context.Context) error {
	key := ProbePrefix + rand.Text()
	body := fmt.Appendf(nil, "%s\nThis object is a probe of ledgerlake and may be deleted.\n", key)
	_, err := d.b.Create(ctx, key, body)
	if errors.Is(err, archive.ErrDenied) {
		return d.refuse(FindingErase, "%v: allow s3:PutObject", err)
	}
	d.leftovers = append(d.leftovers, key) // also where nothing is known
	if err != nil {
		return err
	}
	seen, err := d.b.versionsOf(ctx, key)
	switch {
	case err != nil:
		return err
	case len(seen) == 0:
		return d.refuse(FindingErase, "%s, just written, has no version in the store's list: what is erased would stay; use another store", key)
	}
	if kept := d.b.Delete(ctx, seen); len(kept) > 0 {
		if err := kept[0].Err; !isVerdict(err) {
			return err
		}
		return d.refuse(FindingErase, "%s cannot be deleted: %v", key, kept[0].Err)
	}
	left, err := d.b.versionsOf(ctx, key)
	switch {
	case err != nil:
		return err
	case len(left) > 0:
		return d.refuse(FindingErase, "%s was deleted by version, and its version %s is left: what is erased would stay; use another store", key, left[0].ID)
	}
	d.leftovers = d.leftovers[:len(d.leftovers)-1]
	d.find(FindingErase, OK, "a probe went with all its versions")
	return nil
}

// versionsOf returns all versions and markers of one key.
func (b *Bucket) versionsOf(ctx context.Context, key string) ([]archive.Version, error) {
	var all []archive.Version
	for v, err := range b.Versions(ctx, key) {
		switch {
		case err != nil:
			return nil, err
		case v.Key != key:
			return all, nil // in order: the key itself comes first
		}
		all = append(all, v)
	}
	return all, nil
}

// locks finds out whether objects can be locked as the settings want it, by
// writing over ledgerlake.json: the store looks at the lock, and then says that
// the key is taken. Where there is no archive yet nothing can be tried.
func (d *doctor) locks(ctx context.Context) error {
	if !d.b.url.Options.locks() {
		return nil
	}
	body, err := d.b.Get(ctx, archive.RootKey)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		d.find(FindingLocks, OK, "not probed: there is no archive yet")
		return nil
	case err != nil:
		return err
	}
	set := d.b.url.Options.Locks
	for _, folder := range slices.Sorted(maps.Keys(set)) {
		if set[folder].Mode != NoLock {
			if err := d.locksAs(ctx, folder, body); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *doctor) locksAs(ctx context.Context, folder string, body []byte) error {
	in := d.b.putInput(archive.RootKey, body)
	d.b.url.Options.lock(in, folder+"/")
	d.b.checksum.put(in, body)
	_, err := d.b.send(ctx, archive.RootKey, in, body)
	l := d.b.url.Options.Locks[folder]
	switch {
	case errors.Is(err, archive.ErrExists):
		d.find(FindingLocks, OK, "objects of %s/ can be locked for %d days in %s mode", folder, l.Days, string(l.Mode))
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingLocks, "objects of %s/ cannot be locked: %v: allow s3:PutObjectRetention, or set the lock to none", folder, err)
	case err == nil:
		return d.refuse(FindingCreateOnly, "a write over an object with If-None-Match was accepted: writers would overwrite each other; use another store")
	case isVerdict(err):
		return d.refuse(FindingLocks, "objects of %s/ cannot be locked: %v: use a bucket that was made with Object Lock, or set the lock to none", folder, err)
	default:
		return err
	}
	return nil
}

// noLock is what a bucket without Object Lock means for the locks that are set.
func (d *doctor) noLock() error {
	if d.b.url.Options.locks() {
		return d.refuse(FindingLocks, "the bucket has no Object Lock: make one with it, or set %s to none", strings.Join(d.lockSettings(), " and "))
	}
	return nil
}

// lockSettings are the settings that ask for a lock.
func (d *doctor) lockSettings() (names []string) {
	for _, folder := range []string{"anchor", "catalog"} {
		if d.b.url.Options.Locks[folder].Mode != NoLock {
			names = append(names, folder+"-lock")
		}
	}
	if names == nil {
		names = []string{"the lock of key/"}
	}
	return names
}

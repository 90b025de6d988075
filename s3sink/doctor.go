package s3sink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A Level says what a finding means for an archive.
type Level string

// OK is nothing to do, Warn something to look at, Fail a reason not to use
// the store.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// A Finding is what one probe found. Detail is one line, and says what to do
// where there is something to do.
type Finding struct {
	Name   string
	Level  Level
	Detail string
}

// The names of findings, in the order in which they come.
const (
	FindingList       = "list"               // the credentials may list
	FindingLock       = "object-lock"        // no default lock forbids an erasure
	FindingVersioning = "versioning"         // whether old versions stay
	FindingVersions   = "list-versions"      // full, and compact: the credentials may list them
	FindingDelete     = "delete"             // full, and compact: the credentials may delete
	FindingBypass     = "bypass-governance"  // compact: a lock in GOVERNANCE mode is no obstacle
	FindingUploads    = "list-uploads"       // compact: the credentials may list unfinished uploads
	FindingErase      = "erase"              // compact, full: a probe goes with all its versions
	FindingChecksum   = "checksum"           // the store takes ours; full: and refuses a wrong one
	FindingCreateOnly = "create-only"        // one winner, and a taken key is kept
	FindingRead       = "read-after-write"   // full: what was written is read
	FindingListed     = "list-after-put"     // full: and listed
	FindingErrors     = "conditional-errors" // full: 412, 409 and 403 are told apart
	FindingClock      = "clock"              // the store says the time, and it is ours
	FindingLocks      = "locks"              // objects can be locked as the settings want it
	FindingSwap       = "compare-and-swap"   // export: cursors can be kept
	FindingCleanUp    = "clean-up"           // what the probes left behind
)

const (
	// ProbePrefix is the prefix of all keys that probes use. Probes are deleted
	// again: verify calls one that stayed a stray.
	ProbePrefix = "probe/"

	fullRacers  = 32
	shortRacers = 2
	// Beyond skewWarn times in rows mislead; beyond skewFail stores refuse
	// signatures.
	skewWarn = time.Minute
	skewFail = 15 * time.Minute
)

// ErrUnsafe: the store must not be used for an archive.
var ErrUnsafe = errors.New("unsafe store")

// Verdict returns an error matching [ErrUnsafe] with one line for all findings
// that failed, or nil.
func Verdict(findings []Finding) error {
	var lines []string
	for _, f := range findings {
		if f.Level == Fail {
			lines = append(lines, f.Name+": "+f.Detail)
		}
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrUnsafe, strings.Join(lines, "; "))
}

// Doctor probes a store. An error is no verdict: the store did not answer, or
// answered that it cannot just now; the findings so far come with it.
//
// The short form is for every start of ingest. In an archive it writes
// nothing: it tries to create ledgerlake.json again, with the bytes that it
// has, so that even a store that overwrites changes nothing. That takes seven
// requests. Where there is no archive yet it races two writers on a probe.
//
// The full form races 32 on a fresh key below [ProbePrefix], and deletes it
// with all its versions. Where that is denied, or a default lock forbids it, it
// uses ledgerlake.json as the short form does. Without an archive there is then
// nothing to race for: a finding says so, and the first start of ingest, which
// makes the archive, examines the store.
func Doctor(ctx context.Context, b *Bucket, full bool) ([]Finding, error) {
	d := &doctor{b: b, full: full, racers: shortRacers}
	if full {
		d.racers = fullRacers
	}
	return d.examine(ctx, append(d.looks(), d.choose, d.race, d.taken, d.clock, d.wrongChecksum, d.wrongCredentials, d.locks))
}

// Inspect is the part of [Doctor] that only looks: whether the bucket is there,
// and what its default lock and its versioning are.
func Inspect(ctx context.Context, b *Bucket) ([]Finding, error) {
	d := &doctor{b: b}
	return d.examine(ctx, d.looks())
}

func (d *doctor) looks() []func(context.Context) error {
	return []func(context.Context) error{d.list, d.lock, d.versioning}
}

// examine goes through the steps until one ends it.
func (d *doctor) examine(ctx context.Context, steps []func(context.Context) error) ([]Finding, error) {
	var err error
	for _, step := range steps {
		if err = step(ctx); err != nil {
			break
		}
	}
	if cleanErr := d.cleanUp(ctx); err == nil || errors.Is(err, errEnough) {
		err = cleanErr
	}
	return d.findings, err
}

// errEnough ends the probes: after what was found the others say nothing.
var errEnough = errors.New("enough was found")

// A doctor is one examination.
type doctor struct {
	b        *Bucket
	full     bool
	compact  bool
	racers   int
	findings []Finding

	versioned bool   // as far as the store says
	locked    bool   // new objects are, for a while
	mayDelete bool   // and it leaves nothing behind but versions
	fresh     bool   // whether key is expected to be free
	key       string // that racers want to create
	swapKey   string // of the object that is changed
	swapper   string // who changes it, in words
	body      []byte // of the object at key; once it is there
	storeTime time.Time
	skew      time.Duration
	leftovers []string // keys that were made
}

func (d *doctor) find(name string, level Level, format string, args ...any) {
	d.findings = append(d.findings, Finding{Name: name, Level: level, Detail: oneLine(fmt.Sprintf(format, args...))})
}

// refuse records a failure after which probes make no sense.
func (d *doctor) refuse(name, format string, args ...any) error {
	d.find(name, Fail, format, args...)
	return errEnough
}

// list finds out whether the bucket is there and may be listed.
func (d *doctor) list(ctx context.Context) error {
	for _, err := range d.b.List(ctx, "", "") {
		if err != nil {
			return d.listFailed(err)
		}
		break
	}
	d.find(FindingList, OK, "keys can be listed")
	return nil
}

func (d *doctor) listFailed(err error) error {
	switch {
	case errors.Is(err, ErrNoBucket):
		return d.refuse(FindingList, "%v: create it, or correct the bucket URL", err)
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingList, "%v: allow s3:ListBucket, or correct the credentials", err)
	case isVerdict(err):
		return d.refuse(FindingList, "%v: not an S3 store that can be used, or not its endpoint", err)
	}
	return err
}

// isVerdict reports whether an answer will be the same the next time.
func isVerdict(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	if e.Status == 0 {
		return strings.Contains(err.Error(), "the store lists wrongly")
	}
	return !Transient(err) || e.Status == http.StatusNotImplemented
}

// choose picks the key to race for: see Doctor.
func (d *doctor) choose(ctx context.Context) error {
	root, err := d.b.Get(ctx, archive.RootKey)
	inArchive := err == nil
	switch {
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingRead, "%v: allow s3:GetObject", err)
	case err != nil && !errors.Is(err, archive.ErrNotFound):
		return err
	case inArchive && !d.full:
		d.key, d.body = archive.RootKey, root
		return nil
	}
	if err := d.mayWeDelete(ctx); err != nil {
		return err
	}
	switch {
	case d.mayDelete:
		d.key, d.fresh = ProbePrefix+rand.Text(), true
	case inArchive:
		d.key, d.body = archive.RootKey, root
	default:
		d.find(FindingCreateOnly, Warn, "not probed: a probe could not be deleted again, and there is no archive yet; ingest probes it when it has made one")
		return errEnough
	}
	return nil
}

// mayWeDelete finds out by deleting what is not there. In a versioned bucket
// that makes a delete marker, which goes as well.
func (d *doctor) mayWeDelete(ctx context.Context) error {
	err := d.deleteAll(ctx, ProbePrefix+"absent")
	switch {
	case err == nil:
		d.mayDelete = !d.locked
		d.find(FindingDelete, OK, "allowed, also of versions")
	case errors.Is(err, errVersionsStay):
		d.mayDelete = !d.locked
		d.find(FindingDelete, Warn, "objects can be deleted, their old versions cannot (%v): compact needs s3:ListBucketVersions and s3:DeleteObjectVersion to erase", err)
	case errors.Is(err, archive.ErrDenied):
		d.find(FindingDelete, OK, "denied: right for ingest and verify; compact needs s3:DeleteObject and s3:DeleteObjectVersion")
	case isVerdict(err):
		d.find(FindingDelete, Warn, "the store cannot delete (%v): compact cannot be used", err)
	default:
		return err
	}
	return nil
}

// cleanUp deletes what the probes made, and says what it could not. It does so
// also for a caller that gave up.
func (d *doctor) cleanUp(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, key := range d.leftovers {
		err := d.deleteAll(ctx, key)
		switch {
		case err == nil:
		case errors.Is(err, errVersionsStay):
			d.find(FindingCleanUp, Warn, "%s is deleted, old versions of it stay: %v", key, err)
		case isVerdict(err):
			d.find(FindingCleanUp, Warn, "%s stays: %v; delete it", key, err)
		default:
			return fmt.Errorf("probe %s may have stayed: delete it: %w", key, err)
		}
	}
	return nil
}

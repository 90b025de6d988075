package s3sink

import (
	"bytes"
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
	FindingVersions   = "list-versions"      // full: the credentials may list them
	FindingDelete     = "delete"             // full: the credentials may delete
	FindingChecksum   = "checksum"           // the store takes ours; full: and refuses a wrong one
	FindingCreateOnly = "create-only"        // one winner, and a taken key is kept
	FindingRead       = "read-after-write"   // full: what was written is read
	FindingListed     = "list-after-put"     // full: and listed
	FindingErrors     = "conditional-errors" // full: 412, 409 and 403 are told apart
	FindingClock      = "clock"              // the store says the time, and it is ours
	FindingCleanUp    = "clean-up"           // what the probes left behind
)

const (
	// ProbePrefix is the prefix of all keys that probes use.
	ProbePrefix = "probe/"
	// ProbeKey is the one probe that may stay, where it may not be deleted. It
	// is no evidence, and no stray either.
	ProbeKey = ProbePrefix + "doctor"

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
// uses ledgerlake.json as the short form does, or [ProbeKey], which then stays.
func Doctor(ctx context.Context, b *Bucket, full bool) ([]Finding, error) {
	d := &doctor{b: b, full: full, racers: shortRacers}
	if full {
		d.racers = fullRacers
	}
	steps := []func(context.Context) error{
		d.list, d.lock, d.versioning, d.choose, d.race, d.taken, d.clock, d.wrongChecksum, d.wrongCredentials,
	}
	var err error
	for _, step := range steps {
		if err = step(ctx); err != nil {
			break
		}
	}
	if cleanErr := d.cleanUp(ctx); err == nil || errors.Is(err, errRefused) {
		err = cleanErr
	}
	return d.findings, err
}

// errRefused ends the probes: after what was found the others say nothing.
var errRefused = errors.New("refused")

// A doctor is one examination.
type doctor struct {
	b        *Bucket
	full     bool
	racers   int
	findings []Finding

	versioned bool   // as far as the store says
	locked    bool   // new objects are, for a while
	mayDelete bool   // and it leaves nothing behind but versions
	fresh     bool   // whether key is expected to be free
	key       string // that racers want to create
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
	return errRefused
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
	return !worthRetrying(err) || e.Status == http.StatusNotImplemented
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
		return d.chooseLasting(ctx)
	}
	return nil
}

// chooseLasting picks the probe that cannot be deleted. It may be there from
// an earlier examination.
func (d *doctor) chooseLasting(ctx context.Context) error {
	body, err := d.b.Get(ctx, ProbeKey)
	d.key, d.body, d.fresh = ProbeKey, body, errors.Is(err, archive.ErrNotFound)
	if d.fresh {
		return nil
	}
	return err
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

// race has all racers create the key at once. On a free one exactly one may
// win; on a taken one, where all bring the bytes that are there, nobody.
func (d *doctor) race(ctx context.Context) error {
	if d.fresh {
		d.leftovers = append(d.leftovers, d.key)
	}
	results := d.run(ctx)
	t := d.count(results)
	d.readClock(results)
	switch {
	case t.open != nil:
		return t.open
	case t.refused == len(results):
		return d.refused(ctx, results[0])
	case t.won > t.mayWin:
		return d.refuse(FindingCreateOnly, "%d of %d writers that created one key at once were told that they had (%d may): the store does not keep If-None-Match, and writers would overwrite each other; use another store", t.won, len(results), t.mayWin)
	case t.won < t.mayWin:
		return d.refuse(FindingCreateOnly, "none of %d writers that created one key at once was told that it had: %v", len(results), results[0].err)
	}
	d.find(FindingChecksum, OK, "%s is accepted", d.b.checksum)
	if t.refused > 0 {
		return d.refuse(FindingErrors, "%d of %d losers of a race were refused with something else than 412 or 409: %v", t.refused, len(results), t.refusal)
	}
	if d.full {
		d.find(FindingErrors, OK, "losers of the race were told 412 %d times, 409 %d times", t.lost, t.conflicts)
	}
	return d.winnersBytes(ctx, results)
}

// A racer is one writer of a race, and what it was told.
type racer struct {
	body          []byte
	before, after time.Time // by our clock
	at            time.Time // by the store's
	conflicts     int
	err           error
}

func (d *doctor) run(ctx context.Context) []racer {
	racers := make([]racer, d.racers)
	start, done := make(chan struct{}), make(chan struct{})
	for i := range racers {
		r := &racers[i]
		r.body = d.body
		if d.fresh {
			r.body = fmt.Appendf(nil, "%s\nThis object is a probe of ledgerlake and may be deleted. Writer %d.\n", d.key, i)
		}
		go func() {
			<-start
			d.create(ctx, r)
			done <- struct{}{}
		}()
	}
	close(start)
	for range racers {
		<-done
	}
	return racers
}

// create has a racer try until it is told more than that there is a race.
func (d *doctor) create(ctx context.Context, r *racer) {
	for r.conflicts < 5 {
		r.before = d.b.url.Options.Now()
		r.at, r.err = d.b.Create(ctx, d.key, r.body)
		r.after = d.b.url.Options.Now()
		if !errors.Is(r.err, archive.ErrConflict) {
			return
		}
		r.conflicts++
	}
}

// A tally is the outcome of a race.
type tally struct {
	won, mayWin, lost, conflicts, refused int
	refusal                               error // one of those that were refused
	open                                  error // why there is no verdict, or nil
}

func (d *doctor) count(racers []racer) tally {
	var t tally
	if d.fresh {
		t.mayWin = 1
	}
	for _, r := range racers {
		t.conflicts += r.conflicts
		switch {
		case r.err == nil:
			t.won++
		case errors.Is(r.err, archive.ErrExists):
			t.lost++
		case errors.Is(r.err, archive.ErrConflict):
		case isVerdict(r.err):
			t.refused++
			t.refusal = r.err
		default:
			t.open = r.err
		}
	}
	if t.won > t.mayWin {
		t.open = nil // bad enough, whatever the others would have been told
	}
	return t
}

// refused finds out why the store refuses every write, and which checksum
// setting it would take.
func (d *doctor) refused(ctx context.Context, r racer) error {
	switch {
	case errors.Is(r.err, archive.ErrDenied):
		return d.refuse(FindingCreateOnly, "%v: allow s3:PutObject, or correct the credentials", r.err)
	case errors.Is(r.err, ErrNoBucket):
		return d.refuse(FindingCreateOnly, "%v: create it, or correct the bucket URL", r.err)
	}
	for _, c := range checksums {
		if c == d.b.checksum {
			continue
		}
		if _, err := d.b.put(ctx, d.key, r.body, c); err == nil || errors.Is(err, archive.ErrExists) {
			return d.refuse(FindingChecksum, "the store refuses uploads with checksum=%s and takes them with %s: set checksum=%s (%v)", d.b.checksum, c, c, r.err)
		}
	}
	return d.refuse(FindingCreateOnly, "the store refuses conditional writes, whatever the checksum: %v", r.err)
}

// winnersBytes holds what the store has against what the winner wrote.
func (d *doctor) winnersBytes(ctx context.Context, racers []racer) error {
	got, err := d.b.Get(ctx, d.key)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return d.refuse(FindingRead, "an object that was just written is not found: %v", err)
	case errors.Is(err, ErrDamaged):
		return d.refuse(FindingRead, "%v", err)
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingRead, "%v: allow s3:GetObject", err)
	case err != nil:
		return err
	}
	want := d.body
	for _, r := range racers {
		if r.err == nil {
			want = r.body
		}
	}
	if !bytes.Equal(got, want) {
		return d.refuse(FindingCreateOnly, "the object does not hold the bytes of the one writer that was told that it had created it: the store does not keep If-None-Match; use another store")
	}
	d.body = got
	return d.seen(ctx)
}

// seen checks that the object is listed, in the full form.
func (d *doctor) seen(ctx context.Context) error {
	if !d.full {
		return nil
	}
	d.find(FindingRead, OK, "the winner's bytes are read back")
	for o, err := range d.b.List(ctx, d.key, "") {
		if err != nil {
			return d.listFailed(err)
		}
		if o.Key == d.key && o.Size == int64(len(d.body)) {
			d.find(FindingListed, OK, "a new object is listed at once")
			return nil
		}
	}
	return d.refuse(FindingListed, "an object that was just written is not listed: readers would miss segments; use another store")
}

// taken writes once more over what is there now, with the same bytes, and
// wants to be told 412 and nothing else. Where the key was taken before the
// race, the race has shown that.
func (d *doctor) taken(ctx context.Context) error {
	if !d.fresh {
		d.find(FindingCreateOnly, OK, "%d writers could not write over %s", d.racers, d.key)
		return nil
	}
	_, err := d.b.put(ctx, d.key, d.body, d.b.checksum)
	switch {
	case err == nil:
		return d.refuse(FindingCreateOnly, "a write over an object with If-None-Match was accepted: writers would overwrite each other; use another store")
	case errors.Is(err, archive.ErrExists):
	case isVerdict(err):
		return d.refuse(FindingErrors, "a write over an object with If-None-Match was answered with something else than 412: %v", err)
	default:
		return err
	}
	return d.unchanged(ctx)
}

func (d *doctor) unchanged(ctx context.Context) error {
	got, err := d.b.Get(ctx, d.key)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, d.body) {
		return d.refuse(FindingCreateOnly, "a write over an object was refused, and changed it: use another store")
	}
	d.find(FindingCreateOnly, OK, "of %d writers of one key one won, and nobody after it", d.racers)
	return nil
}

// readClock takes the store's time from the quickest answer that tells it.
func (d *doctor) readClock(racers []racer) {
	quickest := time.Duration(-1)
	for _, r := range racers {
		took := r.after.Sub(r.before)
		if r.at.IsZero() || quickest >= 0 && took >= quickest {
			continue
		}
		quickest = took
		d.storeTime, d.skew = r.at, skew(r.before, r.after, r.at)
	}
}

// skew is how far the store's clock is ahead of ours, or behind where it is
// negative. The store's time is cut to the second, and lies between ours
// before and after the request: what that explains is not skew.
func skew(before, after, store time.Time) time.Duration {
	switch {
	case store.IsZero():
		return 0
	case store.After(after):
		return store.Sub(after)
	case store.Add(time.Second).Before(before):
		return store.Add(time.Second).Sub(before)
	}
	return 0
}

func (d *doctor) clock(context.Context) error {
	off := d.skew.Abs().Round(time.Second)
	side := "behind"
	if d.skew < 0 {
		side = "ahead of"
	}
	switch {
	case d.storeTime.IsZero():
		d.find(FindingClock, Warn, "the store does not say the time (no Date): ingest cannot tell how long it was asleep")
	case off > skewFail:
		d.find(FindingClock, Fail, "our clock is %v %s the store's: set it (NTP); stores refuse requests that are signed so", off, side)
	case off > skewWarn:
		d.find(FindingClock, Warn, "our clock is %v %s the store's: set it (NTP); archived_at is wrong by as much", off, side)
	default:
		d.find(FindingClock, OK, "within %v of the store's", skewWarn)
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
		return failed(ctx, "get credentials for", d.b.url.Bucket, err)
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

// cleanUp deletes what the probes made, and says what it could not. It does so
// also for a caller that gave up.
func (d *doctor) cleanUp(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if !d.mayDelete && len(d.leftovers) > 0 {
		d.find(FindingCleanUp, Warn, "%s stays, for it may not be deleted; verify knows it", ProbeKey)
		return nil
	}
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

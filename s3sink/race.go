package s3sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// This file holds the doctor's race, and what is learnt from it.

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

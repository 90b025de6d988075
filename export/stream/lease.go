package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A lease says which process exports to a destination, and shows by its count
// that it lives. It keeps two from doing the same work; that they do not both move
// a cursor is the cursors' own doing.
type lease struct {
	d     *destination
	doc   document
	now   Lease
	first bool // this process never had it
}

// A Lease is the document of a lease.
type Lease struct {
	V     int          `json:"v"`
	By    string       `json:"by"` // "" where it was given back
	At    string       `json:"at"` // its instance
	Count int64        `json:"count"`
	Time  archive.Time `json:"time"`
}

// ReadLease reads who exports to a destination; nil where nobody ever did.
func ReadLease(ctx context.Context, src archive.Source, destination string) (*Lease, error) {
	key := leaseKey(destination)
	var body []byte
	err := whole(key, func() (err error) { body, err = src.Get(ctx, key); return err })
	if errors.Is(err, archive.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l := &Lease{}
	if err := json.Unmarshal(body, l); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
}

// acquire waits until nobody else has the lease: it was given back, or did not
// move for StandBy.
func (l *lease) acquire(ctx context.Context) error {
	seen, since := Lease{Count: -1}, l.d.e.s.Now()
	for attempt := 1; ; attempt++ {
		body, err := l.doc.read(ctx)
		if err == nil {
			at := Lease{}
			if body != nil {
				err = json.Unmarshal(body, &at)
			}
			if at.Count != seen.Count || at.By != seen.By {
				seen, since = at, l.d.e.s.Now()
			}
			restarted := l.first && at.At != "" && at.At == l.d.e.s.Instance
			if err != nil || at.By == "" || at.By == l.d.e.s.ID || restarted || l.d.e.s.Now().Sub(since) >= l.d.e.s.StandBy {
				l.now = at
				err = l.write(ctx, l.d.e.s.ID)
				if err == nil {
					return nil
				}
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err == nil:
			l.d.stand(func(s *Standing) { s.Fault = "" }) // another has it
		case !errors.Is(err, errLost):
			l.d.faulty("the lease cannot be taken; trying again", err)
		}
		if err := pause(ctx, l.d.e.s.StandBy/6); err != nil {
			return err
		}
	}
}

func (l *lease) write(ctx context.Context, by string) error {
	l.now = Lease{V: docVersion, By: by, At: l.d.e.s.Instance, Count: l.now.Count + 1, Time: archive.Time{Time: l.d.e.s.Now()}}
	body, err := json.Marshal(&l.now)
	if err != nil {
		return err
	}
	return l.doc.write(ctx, body)
}

// beat shows that this process lives, until ctx is done or the lease is lost.
func (l *lease) beat(ctx context.Context) error {
	for {
		if err := pause(ctx, l.d.e.s.StandBy/3); err != nil {
			return nil
		}
		if err := l.write(ctx, l.d.e.s.ID); err != nil {
			return stopping(ctx, err)
		}
	}
}

// release gives the lease back, where it is still ours.
func (l *lease) release(ctx context.Context, cause error) {
	if errors.Is(cause, errLost) {
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastStore)
	defer cancel()
	_ = l.write(last, "") // else another takes it after StandBy
}

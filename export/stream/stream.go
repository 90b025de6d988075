// Package stream delivers the rows of an archive to destinations, each row at
// least once, in the order of its log, for as long as it runs.
//
//	source        catalog and segments of the bucket, never Kafka
//	runner        one for each destination and line (partition)
//	lane          a destination and a log: it has a cursor, next seq and the row_hash before it
//	cursor        stored in the bucket by compare-and-swap, after what it passes was acknowledged
//
// A row leaves once its hash was checked, once it follows the row at the cursor,
// and as governance lets it be shown. What becomes of an event is one of
//
//	delivered     the cursor moves
//	retry         it waits with what was refused beside it, without an end; back-off with jitter
//	split         half as much at once; an event that is alone too large goes as its pointer
//	suspend       the destination stops, and destination.json says why
//	poison        a dead letter is recorded and the cursor moves; or the log waits, and others go on
//
// A crash repeats at most what was delivered since the cursors were stored: that
// is at most Settings.CursorEvery, and never anything that was waited for. Events
// carry seq, prev_hash and row_hash, so that a receiver drops repeats and proves
// that nothing is missing.
//
// # Objects
//
//	export/{destination}/destination.json                                   what it is, and its state
//	export/{destination}/lease.json                                         which process exports to it
//	export/{destination}/cursor/{topic}/{topicId}/{partition:05}.json       the cursors of a line
//	export/{destination}/dead/{topic}/{topicId}/{partition:05}/{id}.json    rows that were refused for good
//	export/{destination}/replayed/…                                         which of them were sent again
//	export/{destination}/backfill/{ulid}.json                               a backfill, and below {ulid}/ its cursors
//
// They hold coordinates, hashes and reasons, and nothing of a row's content: an
// erasure has nothing to do there. They are no evidence.
//
// # What it does not do
//
// It knows no destination: package sink is what one is to it. It reads no
// settings, and logs nothing.
package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// ErrCursor: a cursor is not one of this archive: the row that it stands behind
// is not there, or has another hash. The error names the place.
var ErrCursor = errors.New("the cursor does not match the archive")

// Settings are what an engine works with. Archive, Root, ID and Now are needed.
type Settings struct {
	Archive      archive.Swapper
	Root         archive.Root
	Keys         *sign.Ring // that anchors, catalogs and control records must be signed by; empty asks for none
	LogKeys      chain.Keys // of keyed logs
	ControlTopic string     // "" is the usual one
	Version      string     // of the product, for events

	// ID names this process: no other has it, nor will have.
	ID string
	// Instance is a name that stays when a process is started again in the place of
	// one that died: it then need not be waited for. "" is none. Of two that live,
	// the one that was started last goes on, and the other stands by.
	Instance string
	// Memory bounds what is read ahead, in bytes. Each destination has its share
	// of it, so that none holds up another; one object is read however large.
	Memory int64

	Poll        time.Duration // how often a line without news is looked at
	LinesEvery  time.Duration // how often new lines, backfills and states are looked for
	GovernEvery time.Duration // how old what is known of orders of erasure may be
	CursorEvery time.Duration // how often cursors are stored
	StandBy     time.Duration // after so long without a sign of it, another exporter is taken for dead

	Now func() time.Time
	// Jitter returns a number from 0 up to below n.
	Jitter func(n int64) int64
	Events Events
}

// withDefaults fills in what is not set.
func (s Settings) withDefaults() Settings {
	for _, d := range []struct {
		p    *time.Duration
		unit time.Duration
	}{
		{&s.Poll, time.Second},
		{&s.LinesEvery, 15 * time.Second},
		{&s.GovernEvery, 10 * time.Second},
		{&s.CursorEvery, time.Second},
		{&s.StandBy, 30 * time.Second},
	} {
		if *d.p <= 0 {
			*d.p = d.unit
		}
	}
	if s.Memory <= 0 {
		s.Memory = 512 << 20
	}
	if s.Jitter == nil {
		s.Jitter = func(n int64) int64 { return n / 2 }
	}
	return s
}

// Events are the funcs that an engine calls, from any goroutine; nil ones are
// not called. They must not block.
type Events struct {
	Changed   func(State)                                            // told again at each start for a day: by Name and Count it is the same change
	Attempted func(destination string, line archive.Line, a Attempt) // whatever came of it; before those below
	Delivered func(destination string, line archive.Line, d Delivery)
	Retry     func(destination string, line archive.Line, r Wait)
	Dead      func(destination string, line archive.Line, l Letter)
	Stopped   func(destination string, line archive.Line, tenant string, err error) // a log; others go on
	Dropped   func(destination string, line archive.Line, tenant string, from, to int64)
	Repeating func(destination string, line archive.Line, err error) // a cursor could not be moved: another exporter has
	Warn      func(destination string, what string, err error)
}

// An Attempt is one call of a destination's driver.
type Attempt struct {
	Opened                   time.Time // when the first event of what was gathered was read
	Began, Ended             time.Time
	Events, Delivered, Retry int   // Delivered and Retry are of Events
	Bytes                    int64 // of Events
	Backfill                 bool
}

// A Delivery is what one attempt delivered.
type Delivery struct {
	Events, Rows int
	Bytes        int64
	Took         time.Duration
	Backfill     bool
}

// A Wait is an attempt that is going to be made again.
type Wait struct {
	Attempt int // from 1
	Events  int
	Reason  string
	For     time.Duration
}

// A Destination is where rows go.
type Destination struct {
	Name   string
	Type   string
	Spec   string // its settings as text, without secrets: what changes it changes the destination
	Sink   sink.Sink
	Broken error // why there is no Sink
	Format event.Format
	// WithoutContent leaves out the record as it was sent.
	WithoutContent bool
	Filter         Filter
	// Limits tighten those of the Sink.
	Limits sink.Limits
	// Block has a log wait at an event that the destination never takes; else it
	// becomes a dead letter.
	Block bool
	// MaxDead suspends the destination once so many events in a row were refused
	// for good; 0 is no limit.
	MaxDead int
	Heads   bool
	// Unverified sends rows without a check of their hashes, and says so.
	Unverified bool
	// FromNow begins at the end of the archive where there is no cursor yet; else
	// at its beginning.
	FromNow bool
	// Linger is how long rows may wait for others to be sent with; 0 is not at all.
	Linger time.Duration
	// Stepwise stores the cursors before the next batch begins, for sinks that name
	// what they write by its first row.
	Stepwise bool
}

// A Filter says which rows a destination gets. Empty lists let all through. Rows
// that do not get through move the cursor too.
type Filter struct {
	Tenants, Kinds, Stages, Status []string
}

// HasTenant reports whether rows of a tenant may get through.
func (f *Filter) HasTenant(tenant string) bool { return oneOf(f.Tenants, tenant, true) }

// Has reports whether a row gets through.
func (f *Filter) Has(row *chain.Row) bool {
	return f.HasTenant(row.TenantID.S) && oneOf(f.Kinds, row.Kind.S, true) &&
		oneOf(f.Stages, row.StageID.S, row.StageID.Valid) && oneOf(f.Status, row.Status.S, row.Status.Valid)
}

func oneOf(list []string, s string, valid bool) bool {
	if len(list) == 0 {
		return true
	}
	for _, want := range list {
		if valid && want == s {
			return true
		}
	}
	return false
}

// An Engine delivers.
type Engine struct {
	s            Settings
	destinations []*destination
	watches      watches
	governor     governor
	cache        cache

	listing  sync.Mutex
	listed   []archive.Line
	listedAt time.Time
}

// New returns an engine. It does nothing before [Engine.Run].
func New(s Settings, destinations []Destination) *Engine {
	e := &Engine{s: s.withDefaults()}
	e.watches = watches{e: e, lines: map[archive.Line]*watch{}}
	e.governor = governor{e: e}
	e.cache = cache{most: e.s.Memory / 8, held: map[string]*cached{}}
	share := (e.s.Memory - e.cache.most) / int64(max(len(destinations), 1))
	for i := range destinations {
		e.destinations = append(e.destinations, newDestination(e, destinations[i], share))
	}
	return e
}

// Run delivers until ctx is done, and then stores all cursors and lets go of the
// destinations. Nothing that goes wrong on the way ends it: it is told by Events.
func (e *Engine) Run(ctx context.Context) error {
	done := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { e.governor.run(ctx) })
	beside.Go(func() { e.retire(ctx) })
	for _, d := range e.destinations {
		go func() {
			defer func() { done <- struct{}{} }()
			d.run(ctx)
		}()
	}
	for range e.destinations {
		<-done
	}
	beside.Wait()
	return context.Cause(ctx)
}

// lines returns the lines of the archive, as they were a third of LinesEvery ago at
// most: destinations ask one after the other.
func (e *Engine) lines(ctx context.Context) ([]archive.Line, error) {
	e.listing.Lock()
	defer e.listing.Unlock()
	if e.listed != nil && e.s.Now().Sub(e.listedAt) < e.s.LinesEvery/3 {
		return e.listed, nil
	}
	lines, err := archive.Lines(ctx, e.s.Archive)
	if lines == nil {
		return nil, err
	}
	if err != nil {
		e.warn("", "lines that cannot be named are not exported", err)
	}
	e.listed, e.listedAt = lines, e.s.Now()
	return lines, nil
}

func (e *Engine) warn(destination, what string, err error) {
	if e.s.Events.Warn != nil {
		e.s.Events.Warn(destination, what, err)
	}
}

// backOff returns how long to wait before the next attempt: half a second after
// the first that failed, five minutes in the end, each between a half and all of
// it.
func (e *Engine) backOff(attempt int) time.Duration {
	top := min(5*time.Minute, 500*time.Millisecond<<min(attempt-1, 12))
	return top/2 + time.Duration(e.s.Jitter(int64(top/2)+1))
}

// pause waits, and returns an error only where ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

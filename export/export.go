// Package export answers from an archive: a turn, a session, a record, a range of
// time, all of a person, a log from any row on.
//
//	Open ── catalogs and listings ──▶ a view: the data files and segments of each line
//	     ── control logs ───────────▶ what governs: the orders that hide something
//
//	Turn, Session, Record, At   point look-ups: catalog, bounds and bloom filters first, then parts of objects
//	Range, Subject, Rows        streams: objects one after the other, some ahead, in the order of each log
//
// Its sources are catalogs, data files and segments, never Kafka. What it returns
// is what may be shown: a row that an order of erasure reaches comes as if the
// order were carried out (package redact), and is looked for as such: what it no
// longer says, it is not found by. Each row is checked before it leaves, by the
// hash of its content ([chain.Hasher.Check]); a stream also holds it against the
// row before it. A row that does not check ends its log there with an error that
// matches [ErrTampered]; other logs go on. So does a log that ends in front of rows
// which the newest good anchor of its line states.
//
// A row may stand twice: the later one says so ([audit.Record.RepeatOf]), once
// compaction has met it. Both are shown.
//
// # What an answer does not prove
//
// Look-ups believe what the ends of objects say of the rest. Whoever owns the
// bucket can so hide a row from them, and can make all hashes anew: that a row is
// in the archive, and that a log has no more than what was shown, is for package
// proof to say. The package writes nothing.
package export

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// ErrTampered: what is stored does not fit together.
var ErrTampered = errors.New("tampered with or damaged")

// ErrPosition: a place that was asked for by its hash is none of the archive's chain.
// It comes with [ErrTampered].
var ErrPosition = errors.New("the position is not of this chain")

func tampered(format string, a ...any) error {
	return fmt.Errorf("%w: %w", ErrTampered, fmt.Errorf(format, a...))
}

// DefaultMemory is what objects that are read ahead may take together, in bytes.
const DefaultMemory = 256 << 20

// linesParallel is how many lines are looked at at once.
const linesParallel = 8

// Options say what an archive is read with. The zero Options ask for no signature.
type Options struct {
	Keys         *sign.Ring // keys that are good; with some, a catalog counts where one of them signed it. It is not changed
	LogKeys      chain.Keys // of keyed logs; without the key of one, its rows come with Checked false
	ControlTopic string     // "" is [audit.ControlTopic]
	// Memory bounds what is held of objects that are read whole or ahead, in bytes:
	// by all look-ups together, and by a stream: the second of two that are under way
	// holds half of that, the third a third, and so on. The rows of an answer come on
	// top, and one object is held however large it is. 0: [DefaultMemory].
	Memory   int64
	Progress func(string) // what is being read; nil tells nobody. It is called by one goroutine at a time
}

// An Archive answers from one archive. It may be used by several goroutines at
// once.
type Archive struct {
	src  *meter
	o    Options
	root archive.Root
	ring *sign.Ring // learns what the keys of the options certify

	refreshing sync.Mutex // guards control, the reader
	control    *control.Reader
	view       atomic.Pointer[view]
	progress   sync.Mutex
	held       *semaphore.Weighted // bytes of objects that look-ups hold
	streams    atomic.Int64        // that are under way
	known      segmentCache
	ends       endCache
	anchors    anchorWatches
}

// A view is the archive at one moment. What compaction takes of it meanwhile is
// found again line by line.
type view struct {
	lines   []*lineView
	fault   error // the lines whose names cannot be read
	governs *control.Governance
}

// Open opens an archive. The cost is a GET of ledgerlake.json, for each line what
// [archive.ReadSnapshot] and [archive.AnchorWatch.Look] cost, and what
// [control.Reader.Read] does.
//
// The error matches [archive.ErrNotFound] where there is no archive, and
// [ErrTampered] where it cannot be told what must be hidden. A line whose catalog
// is none to go by is an error of the queries that need it.
func Open(ctx context.Context, src archive.Ranger, o Options) (*Archive, error) {
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	a := &Archive{src: newMeter(src), o: o, ring: o.Keys.Clone(), held: semaphore.NewWeighted(o.Memory)}
	var err error
	if a.root, err = archive.OpenRoot(ctx, a.src); err != nil {
		return nil, err
	}
	a.control = control.NewReader(a.src, control.ReadOptions{Root: a.root, LogKeys: o.LogKeys, Topic: o.ControlTopic})
	if err := a.Refresh(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// Root returns the document that makes the bucket an archive.
func (a *Archive) Root() archive.Root { return a.root }

// Lines returns the lines of the archive as it was seen last.
func (a *Archive) Lines() []archive.Line {
	var all []archive.Line
	for _, l := range a.view.Load().lines {
		all = append(all, l.line)
	}
	return all
}

// Refresh looks at the archive anew: what was archived, compacted and ordered
// since. Queries that are under way keep what they began with. After an error all
// is as it was.
func (a *Archive) Refresh(ctx context.Context) error {
	a.refreshing.Lock()
	defer a.refreshing.Unlock()
	lines, fault := archive.Lines(ctx, a.src)
	if lines == nil && fault != nil {
		return fault
	}
	if fault != nil {
		fault = tampered("%w", fault)
	}
	v := &view{fault: fault, lines: make([]*lineView, len(lines))}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(linesParallel)
	for i, l := range lines {
		v.lines[i] = &lineView{a: a, line: l}
		g.Go(func() error { return v.lines[i].take(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// What governs comes last: an order that was archived with the newest rows
	// must not be missed.
	var err error
	if v.governs, err = a.control.Read(ctx); err != nil {
		return unreadable(err)
	}
	a.view.Store(v)
	a.src.keeper.Turn()
	a.ends.turn()
	return nil
}

// unreadable says of an error of what governs that nothing is shown, for what is
// to be hidden is not known.
func unreadable(err error) error {
	switch {
	case errors.Is(err, archive.ErrCatalog), errors.Is(err, archive.ErrBreaks), errors.Is(err, control.ErrAnchors), errors.Is(err, control.ErrObject), errors.Is(err, archive.ErrDamaged):
		return tampered("which erasures were ordered cannot be read, so that no row is shown: %w", err)
	}
	return fmt.Errorf("which erasures were ordered cannot be read: %w", err)
}

// Governance returns what governs the archive, as it was seen last.
func (a *Archive) Governance() *control.Governance { return a.view.Load().governs }

func (a *Archive) tell(format string, args ...any) {
	if a.o.Progress == nil {
		return
	}
	a.progress.Lock()
	defer a.progress.Unlock()
	a.o.Progress(fmt.Sprintf(format, args...))
}

// checkNote is how a catalog of a line counts: where a key signed it that is good,
// or that a good anchor introduces.
func (a *Archive) checkNote(l archive.Line) archive.CheckNote {
	if a.ring.Empty() {
		return nil
	}
	return archive.CatalogsIntroduced(archive.CatalogsSignedBy(a.src, a.ring, a.root.ArchiveID), func(ctx context.Context) error {
		_, err := a.newest(ctx, l)
		return err
	})
}

package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	compactor "github.com/ledgerlake/ledgerlake/compaction"
)

// A compaction is how an archive is compacted.
type compaction struct {
	compactors int // processes alive at once; 0: nobody compacts
	every      time.Duration
	segments   int64         // that are worth a pass
	age        time.Duration // after which fewer are
	files      int           // neighbours that become one
	target     int64         // bytes of a data file
	sweep      time.Duration
	memory     int64

	governs    bool // there is a control topic, and people order erasures there
	purgeAfter time.Duration
	lateWindow time.Duration
}

// compact makes the world one that is compacted. Its grace is short, so that
// much is deleted while it lasts.
func (p *plan) compact(d dice) {
	p.restores, p.forgesAnchors = false, false // what a backup lacks of these is for other worlds
	p.grace = one(d, 15*time.Second, 30*time.Second, grace)
	p.steps = max(p.steps, 24)
	p.versioning = one(d, archive.Unversioned, archive.Versioned, archive.Suspended)
	p.anchorEvery = one(d, time.Second, 2*time.Second, 10*time.Second)
	p.compaction = compaction{
		compactors: one(d, 1, 2, 2, 3),
		every:      one(d, 500*time.Millisecond, 3*time.Second, 10*time.Second),
		segments:   one(d, int64(1), 3, 10),
		age:        one(d, time.Second, 10*time.Second),
		files:      d.from(2, 4),
		target:     one(d, int64(8<<10), 128<<20),
		sweep:      one(d, time.Second, 10*time.Second, 30*time.Second),
		memory:     one(d, int64(256<<10), 512<<20),
		governs:    d.chance(0.7),
		purgeAfter: one(d, time.Second, 10*time.Second),
		lateWindow: one(d, 5*time.Second, 20*time.Second),
	}
}

// startCompactor starts a process that compacts.
func (w *world) startCompactor(mutate ...func(*compactor.Settings)) *process {
	n := w.started("c")
	p := w.newProcess(fmt.Sprintf("c%d", n), n)
	p.compacts = true
	s := compactor.Settings{
		Archive: &store{p}, Root: w.root, Events: p.compactorEvents(),
		Memory: w.plan.memory, TargetBytes: w.plan.target, MinSegments: w.plan.segments, MaxAge: w.plan.age, MergeFiles: w.plan.files,
		SweepEvery: w.plan.sweep, Now: time.Now, Rand: &salts{src: rand.NewChaCha8(w.seed.key(1000 + n))},
	}
	if w.plan.signed {
		s.Keys = w.keys.ring.Clone()
		s.Signers = func(time.Time) []note.Signer { return []note.Signer{w.keys.signer} }
	}
	if draw := w.seed.at(p.name, "clock", "", 0); chance(draw, 0.4) {
		skew := time.Duration(1-2*int64(scramble(draw)%2)) * between(scramble(draw+1), time.Second, 10*time.Minute)
		w.say(p.name, "its clock is wrong by %v", skew)
		w.count("clock-skewed")
		s.Now = func() time.Time { return time.Now().Add(skew) }
	}
	for _, m := range mutate {
		m(&s)
	}
	rules := compactor.Rules{
		Topic: audit.ControlTopic, PurgeAfter: w.plan.purgeAfter, LateWindow: w.plan.lateWindow, By: p.name,
		Send: p.sendControl,
	}
	if w.plan.signed {
		rules.Signer = w.keys.control
	}
	if !w.plan.governs {
		rules.Topic = ""
	}
	g := compactor.NewGovernor(compactor.New(s), rules)
	w.run(p, func(ctx context.Context) error { return p.compact(ctx, g) })
	return p
}

// compact compacts all lines, again and again, until it is told to stop.
func (p *process) compact(ctx context.Context, g *compactor.Governor) error {
	for {
		if err := p.round(ctx, g); err != nil {
			p.say("a round fails: %v", err)
			p.w.count("round-failed")
		}
		if p.await(ctx, point{"pause", ""}) != nil || sleep(ctx, p.w.plan.every) != nil {
			return nil
		}
	}
}

// round does what is to be done now.
func (p *process) round(ctx context.Context, g *compactor.Governor) error {
	p.mu.Lock()
	p.began = time.Now()
	p.mu.Unlock()
	lines, err := archive.Lines(ctx, &store{p})
	if err != nil {
		return err
	}
	lead := chance(p.w.seed.at(p.name, "lead", "", p.attempt(point{"round", ""})), 0.8)
	_, err = g.Cycle(ctx, lines, lead)
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// compactorEvents writes down what a compactor says.
func (p *process) compactorEvents() compactor.Events {
	w := p.w
	return compactor.Events{
		Passed: func(r *compactor.Result) {
			if r.Wrote || r.Deleted > 0 {
				p.say("%s passed: version %d, watermark %d, %d segments, %d rows, %d dropped, %d erased, %d rewritten, %d merged, %d doomed, %d strays, %d deleted, %d kept",
					w.name(r.Line), r.Catalog.Version, r.Catalog.Watermark, r.Segments, r.Rows, r.Dropped, r.Erased, r.Rewritten, r.Merged, r.Doomed, r.Strays, r.Deleted, len(r.Kept))
			}
			for kind, n := range map[string]int64{
				"rows-erased": r.Erased, "rows-dropped": r.Dropped, "files-merged": r.Merged, "files-rewritten": r.Rewritten, "strays-doomed": r.Strays,
				"objects-deleted": r.Deleted, "uploads-aborted": r.Aborted, "repeats-marked": r.Repeats, "held": int64(len(r.Held)),
			} {
				for range n {
					w.count(kind)
				}
			}
		},
		Halted: func(l archive.Line, err error) {
			w.count("line-halted")
			p.say("%s is halted: %v", w.name(l), err)
			if !p.dead.Load() && !errors.Is(err, archive.ErrDamaged) && !w.excused(l) {
				w.fail("%s halts %s: %v", p.name, w.name(l), err)
			}
		},
		Raced: func(l archive.Line, version int64) {
			w.count("compactors-race")
			p.say("%s: somebody else wrote version %d", w.name(l), version)
		},
		Deleted: func(l archive.Line, objects, bytes int64) { p.say("%s: %d objects deleted", w.name(l), objects) },
		Kept: func(l archive.Line, k archive.Kept) {
			w.count("delete-kept")
			p.say("%s: %s is kept: %v", w.name(l), short(k.Key), k.Err)
		},
		Warn: func(l archive.Line, text string, err error) { p.say("%s warns: %s: %v", w.name(l), text, err) },
	}
}

// excused reports whether a line may be halted: somebody has tampered with it.
func (w *world) excused(at archive.Line) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lineLocked(at.TopicID, at.Partition)
	return l == nil || l.forgedAnchor >= 0
}

func (w *world) compactorsAlive() []*process {
	return slices.DeleteFunc(w.alive(), func(p *process) bool { return !p.compacts || p.reads })
}

// operateCompactors keeps some of them alive.
func (w *world) operateCompactors() {
	if n := len(w.compactorsAlive()); n < w.plan.compactors && w.dice.chance(0.4) {
		w.startCompactor()
	}
}

// finishCompaction lets one healthy compactor do all that is left, while last
// archives what it says, and requires that nothing is left then.
func (w *world) finishCompaction(last *process) {
	if w.plan.compactors == 0 || w.failed() {
		return
	}
	if w.plan.governs && w.dice.chance(0.7) {
		w.releaseAll()
	}
	p := w.startCompactor(func(s *compactor.Settings) {
		s.Once, s.MinSegments, s.SweepEvery, s.Now = true, 1, time.Second, time.Now
	})
	var left error
	for range 4 * 900 {
		if left = w.unfinished(); left == nil || w.failed() {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	if left != nil {
		w.mu.Lock()
		for _, l := range w.lines {
			if c := l.newest(); c != nil {
				w.trace.say("", "%s: version %d, watermark %d, redactions %+v, doomed %v", w.name(l.Line), c.Version, c.Watermark, c.Redactions, c.Doomed)
			}
		}
		w.mu.Unlock()
		w.fail("a healthy compactor is not done in 15 minutes: %v", left)
	}
	p.stop()
	w.await(p)
	w.checkReached()
}

var errUnfinished = errors.New("unfinished")

// unfinished says what a compactor still has to do.
func (w *world) unfinished() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lines {
		c := l.newest()
		switch {
		case l.forgedAnchor >= 0 || len(l.anchors) == 0:
			continue
		case c == nil:
			return fmt.Errorf("%w: %s has no catalog", errUnfinished, w.name(l.Line))
		case c.Watermark != l.anchors[len(l.anchors)-1].Ordinal+1:
			return fmt.Errorf("%w: %s is compacted up to %d, and anchored up to %d", errUnfinished, w.name(l.Line), c.Watermark, l.anchors[len(l.anchors)-1].Ordinal)
		}
		for _, r := range c.Redactions {
			if !w.stays(r.Tenant, r.ID) {
				return fmt.Errorf("%w: %s has redaction %s of %s, %s", errUnfinished, w.name(l.Line), r.ID, r.Tenant, r.State)
			}
		}
	}
	if key := w.strayLocked(); key != "" {
		return fmt.Errorf("%w: %s is a stray", errUnfinished, key)
	}
	return w.openOrders()
}

// litter leaves something in the bucket that nobody asked for: an upload that is
// never finished, an object that is copied onto itself, versions that are
// suspended.
func (w *world) litter() {
	var keys []string
	for o, err := range w.memory.List(context.Background(), "", "") {
		if err == nil && o.Key != archive.RootKey {
			keys = append(keys, o.Key)
		}
	}
	if len(keys) == 0 {
		return
	}
	key := keys[w.dice.IntN(len(keys))]
	switch w.dice.IntN(5) {
	case 0:
		if w.plan.versioning == archive.Versioned {
			w.say("", "versions are suspended")
			w.count("versions-suspended")
			w.memory.SetVersioning(archive.Suspended)
		}
	case 1, 2:
		w.say("", "somebody begins an upload of %s", key)
		w.count("unfinished-upload")
		w.memory.Begin(key)
	default:
		body, err := w.memory.Get(context.Background(), key)
		if err == nil {
			w.say("", "somebody copies %s onto itself", key)
			w.count("copied-onto-itself")
			w.memory.Overwrite(key, body)
		}
	}
}

// noteSigner keeps a nil signer nil.
func noteSigner(s *sign.Signer) note.Signer {
	if s == nil {
		return nil
	}
	return s
}

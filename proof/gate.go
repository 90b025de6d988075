package proof

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A step is what happens at one ordinal of a line, in order.
type step struct {
	o       *object         // the segment, without its body; nil where there is none
	digest  future[*digest] // nil where the segment is not decoded
	first   int64           // the first ordinal that is missing before o or, without o, before the end
	faults  []Fault         // of the object as a whole
	voided  bool            // a chain reset declared it void: only hashed
	shallow bool            // only hashed, as an anchor states: its rows were not asked for
	reset   []archive.Voided
	cover   *anchor                // the anchor that covers the segment, nil if none does
	entry   *archive.AnchorSegment // what it says of the segment
	before  []*anchor              // anchors that cover nothing from here on
	after   []*anchor              // anchors that end with this segment
	held    func(*step, bool)      // settles what the next object has to say, nil if nothing
}

// A gate reads the segments of one line in order and decides which of them may
// be decoded. A segment is vouched for by the previousSha256 of the next one, or
// by an anchor. One that has another hash than those say is a fault and is not
// decoded; the newest of a line, which nothing vouches for yet, is.
type gate struct {
	v      *verifier
	l      *surveyLine
	voided map[int64]chain.Hash
	out    chan<- *step
	wg     *sync.WaitGroup
	window *window
	pull   func() (*anchor, error, bool)
	cur    *anchor    // the oldest one that is not passed
	held   *step      // waits for what is found of the segment after it
	from   *SavedLine // where an earlier verification ended; nil from the beginning
	below  bool       // no segment reached the seq yet from which rows were asked for
}

// A listedSegment is a segment as the listing shows it.
type listedSegment struct {
	archive.Object
	at place
}

// run sends the line's steps to out.
func (g *gate) run(ctx context.Context) error {
	next, stop := iter.Pull2(g.anchors(ctx))
	defer stop()
	g.pull = next
	if err := g.nextAnchor(); err != nil {
		return err
	}
	var before *object
	expected := g.from.next()
	for o, err := range g.objects(ctx) {
		if err != nil {
			return err
		}
		if err := g.decide(ctx, before, o, expected); err != nil {
			return err
		}
		if before == nil {
			g.follows(o)
		} else {
			expected = before.ordinal + 1
		}
		before = o
	}
	if err := g.decide(ctx, before, nil, expected); err != nil {
		return err
	}
	return g.rest(ctx)
}

// objects reads the segments, several at once.
func (g *gate) objects(ctx context.Context) iter.Seq2[*object, error] {
	list := func(yield func(listedSegment, error) bool) {
		for o, err := range g.v.src.List(ctx, g.l.prefix("log"), g.from.afterSegment(g.l)) {
			name, ok := archive.ParseSegmentKey(o.Key)
			if err == nil && !ok {
				continue // a stray, named by the survey
			}
			if !yield(listedSegment{o, place(name)}, err) {
				return
			}
		}
	}
	return ahead(ctx, list,
		func(ctx context.Context, s listedSegment) error { return g.window.acquire(ctx, s.Size) },
		func(ctx context.Context, s listedSegment) (*object, error) { return g.v.fetch(ctx, s.Object, s.at) })
}

// anchors reads the anchors that the survey saw. One that was written later may
// cover segments that the listing here does not show.
func (g *gate) anchors(ctx context.Context) iter.Seq2[*anchor, error] {
	type listed struct {
		archive.Object
		number int64
	}
	list := func(yield func(listed, error) bool) {
		if g.l.lastAnchor < 0 {
			return
		}
		for o, err := range g.v.src.List(ctx, g.l.prefix("anchor"), g.from.afterAnchor(g.l)) {
			_, number, ok := parseNoteKey(o.Key)
			if err == nil && (!ok || number > g.l.lastAnchor) {
				continue
			}
			if !yield(listed{o, number}, err) {
				return
			}
		}
	}
	w := newWindow(16<<20, 2, 16)
	return ahead(ctx, list,
		func(ctx context.Context, l listed) error { return w.acquire(ctx, l.Size) },
		func(ctx context.Context, l listed) (*anchor, error) {
			defer w.release(l.Size)
			return g.v.fetchAnchor(ctx, l.Object, l.number)
		})
}

func (g *gate) nextAnchor() error {
	a, err, ok := g.pull()
	if !ok {
		g.cur = nil
		return nil
	}
	g.cur = a
	return err
}

// decide makes the step of o, now that the object after it is known.
func (g *gate) decide(ctx context.Context, o, next *object, expected int64) error {
	if o == nil {
		return nil
	}
	st := &step{o: o, first: expected}
	if err := g.cover(st); err != nil {
		return err
	}
	if next != nil && next.ordinal != o.ordinal+1 {
		next = nil
	}
	good := g.judge(st, next)
	if held := g.held; held != nil {
		g.held = nil
		held.held(held, good)
		if err := g.send(ctx, held); err != nil {
			return err
		}
	}
	if good && !st.voided {
		st.reset = g.newlyVoided(o.meta)
		st.shallow = g.passes(st)
	}
	if good && !st.voided && !st.shallow {
		g.decode(ctx, st)
	} else {
		g.letGo(o)
	}
	if st.held != nil {
		g.held = st
		return nil
	}
	return g.send(ctx, st)
}

// cover finds the anchor that covers the segment of st, and those that end
// before or with it.
func (g *gate) cover(st *step) error {
	n := st.o.ordinal
	for g.cur != nil && (g.cur.wrong != nil || g.cur.Ordinal < n) {
		st.before = append(st.before, g.cur)
		if err := g.nextAnchor(); err != nil {
			return err
		}
	}
	if g.cur != nil {
		st.cover, st.entry = g.cur, g.cur.segment(n)
	}
	for g.cur != nil && g.cur.wrong == nil && g.cur.Ordinal == n {
		st.after = append(st.after, g.cur)
		if err := g.nextAnchor(); err != nil {
			return err
		}
	}
	return nil
}

// judge says whether the segment of st may be decoded, and adds what is wrong
// with it as a whole.
func (g *gate) judge(st *step, next *object) bool {
	o := st.o
	if o.wrong != nil && o.body == nil {
		st.fault(o.wrong.kind, o.wrong.text)
		return false
	}
	if sum, ok := g.voided[o.ordinal]; ok {
		st.voided = true
		return g.judgeVoided(st, sum)
	}
	if !g.vouched(st, next) {
		return false
	}
	if o.wrong != nil {
		st.fault(o.wrong.kind, o.wrong.text)
		return false
	}
	return true
}

// passes reports whether the rows of a segment were not asked for. Its hash is
// that of an anchor then, or it is read whole.
func (g *gate) passes(st *step) bool {
	o := &g.v.o
	if o.FromSeq > 0 && g.below {
		for i := range st.o.meta.Logs {
			if l := &st.o.meta.Logs[i]; l.Tenant == o.Tenant && l.Size > o.FromSeq {
				g.below = false
			}
		}
	}
	if st.entry == nil || st.entry.SHA256 != st.o.sum {
		return false
	}
	return o.FromSeq > 0 && g.below || !o.Since.IsZero() && st.cover.Time.Add(anchorDelay).Before(o.Since)
}

// vouched compares the hash of a segment with what the next one and the anchor
// say. One of the two is enough to decode it, for then the other one is wrong;
// so is it that neither says anything.
func (g *gate) vouched(st *step, next *object) bool {
	o, stated := st.o, next.previous()
	if next != nil {
		if _, void := g.voided[next.ordinal]; void {
			stated = nil // it may say anything
		}
	}
	byNext, byAnchor := stated != nil && *stated == o.sum, st.entry != nil && st.entry.SHA256 == o.sum
	switch {
	case stated != nil && st.entry != nil && byNext && !byAnchor:
		st.fault(FaultAnchor, fmt.Sprintf("its SHA-256 is %s; anchor %d states %s", short(o.sum), st.cover.number, short(st.entry.SHA256)))
	case stated != nil && st.entry != nil && byAnchor && !byNext:
		f := st.fault(FaultHash, fmt.Sprintf("its previousSha256 is %s; that segment's SHA-256 is %s, as anchor %d states", short(*stated), short(o.sum), st.cover.number))
		f.Key, f.Ordinal, f.Touches = next.key, next.ordinal, nil
	case !byNext && !byAnchor && (stated != nil || st.entry != nil):
		g.mismatch(st, next, stated)
		return false
	}
	return true
}

// mismatch adds the fault of a segment that has another hash than all that
// speak of it say. If only the next segment does, it may be the one that is
// damaged: what is found of that one is said too.
func (g *gate) mismatch(st *step, next *object, stated *chain.Hash) {
	o := st.o
	text := fmt.Sprintf("its SHA-256 is %s; ", short(o.sum))
	if st.entry != nil {
		text += fmt.Sprintf("anchor %d states %s", st.cover.number, short(st.entry.SHA256))
	} else {
		text += fmt.Sprintf("segment %d states %s", next.ordinal, short(*stated))
		st.held = func(st *step, nextGood bool) {
			if !nextGood {
				f := &st.faults[len(st.faults)-1]
				f.Text += fmt.Sprintf(" (but segment %d is damaged itself)", next.ordinal)
			}
		}
	}
	if o.wrong != nil {
		text += "; " + o.wrong.text
	}
	st.fault(FaultHash, text+"; it was changed, and is not decoded")
}

// judgeVoided checks the hash of a segment that a chain reset declared void.
// Nothing else of it counts.
func (g *gate) judgeVoided(st *step, sum chain.Hash) bool {
	switch {
	case st.entry != nil:
		st.fault(FaultReset, fmt.Sprintf("a chain reset declared it void, but anchor %d covers it", st.cover.number))
	case sum != st.o.sum:
		st.fault(FaultHash, fmt.Sprintf("its SHA-256 is %s; the chain reset that declared it void states %s", short(st.o.sum), short(sum)))
	default:
		return true
	}
	return false
}

// previous returns what an object says the hash of the one before it is, nil if
// nothing it says counts. It may be called on nil.
func (o *object) previous() *chain.Hash {
	if o == nil || o.wrong != nil {
		return nil
	}
	return o.meta.PreviousSHA256
}

// newlyVoided returns the voided segments of m if the gate did not know of them.
func (g *gate) newlyVoided(m *archive.Segment) []archive.Voided {
	if !voidsItsPast(m) {
		return nil // a fault that the digest names
	}
	for _, v := range m.Voided {
		if _, ok := g.voided[v.Ordinal]; !ok {
			return m.Voided
		}
	}
	return nil
}

// decode starts to check the rows of a segment, in parallel with others.
func (g *gate) decode(ctx context.Context, st *step) {
	f, o := make(future[*digest], 1), *st.o
	st.digest, st.o.body, st.o.text = f, nil, nil
	g.wg.Go(func() {
		defer g.window.release(o.listed)
		if err := g.v.permit(ctx); err != nil {
			f <- result[*digest]{err: err}
			return
		}
		defer g.v.done()
		d := g.v.digest(&o)
		g.v.progress(d.meta.Rows)
		f <- result[*digest]{value: d}
	})
}

// letGo forgets the body of an object that is not decoded.
func (g *gate) letGo(o *object) {
	o.body, o.text = nil, nil
	g.window.release(o.listed)
	g.v.progress(0)
}

func (g *gate) send(ctx context.Context, st *step) error {
	select {
	case g.out <- st:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rest sends what is left once there are no more segments.
func (g *gate) rest(ctx context.Context) error {
	if g.held != nil {
		if err := g.send(ctx, g.held); err != nil {
			return err
		}
	}
	st := &step{}
	for g.cur != nil {
		st.after = append(st.after, g.cur)
		if err := g.nextAnchor(); err != nil {
			return err
		}
	}
	if len(st.after) == 0 {
		return nil
	}
	return g.send(ctx, st)
}

// fault adds a fault of the object as a whole, and of the rows that it holds by
// its own metadata.
func (st *step) fault(kind FaultKind, text string) *Fault {
	f := Fault{Kind: kind, Key: st.o.key, Ordinal: st.o.ordinal, Text: text}
	if m := st.o.meta; m != nil && kind != FaultMisplaced {
		for _, l := range m.Logs {
			f.Touches = append(f.Touches, Touched{l.Tenant, l.FirstSeq, l.Rows})
		}
	}
	st.faults = append(st.faults, f)
	return &st.faults[len(st.faults)-1]
}

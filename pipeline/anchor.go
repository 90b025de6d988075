package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// errTailChanged: the newest segment is not in the bucket as this process wrote
// or read it. What is not there must not be signed.
var errTailChanged = errors.New("the bucket does not hold it as it was written or read")

// errNobodySigns: anchors are to be signed, and no key is good now. An unsigned one
// would stay in the line for good; one that comes later only comes later.
var errNobodySigns = errors.New("no key is good now that signs it")

// How often an anchor that nobody signs is tried again.
const signAgain = time.Minute

// How often a log gets a checkpoint, at most, but for a clean stop.
const checkpointEvery = time.Minute

// anchors is what a partition does about its anchors. All of it belongs to the
// goroutine of run; what is known of the line's anchors is in the state.
type anchors struct {
	atOnce  bool      // what is not anchored is to be so without waiting
	dirty   time.Time // since when something is in no anchor, also none that flies; zero: nothing is
	flying  *anchorJob
	landed  chan anchorLanding
	met     *anchorNote         // somebody else's, under the number that was to be ours
	again   bool                // the line is to be read from the bucket before the next one
	retried int64               // the number at which it was, -1
	held    time.Time           // until when the next one waits for somebody who signs it; zero: it does not
	unsaid  map[string]struct{} // logs that changed since they had a checkpoint
}

// An anchorJob is an anchor on its way to the bucket, or another's on its way to
// be believed.
type anchorJob struct {
	doc         *archive.Anchor
	since       time.Time  // since when what it covers waits
	tail        chain.Hash // of the newest segment; unless doc lists none
	earliest    time.Time  // it may not be of a time before
	checkpoints []archive.AnchorHead
	began       time.Time
}

// An anchorLanding is how that ended.
type anchorLanding struct {
	doc   *archive.Anchor
	body  []byte
	sum   chain.Hash  // of the text
	other *anchorNote // somebody else's, which has to be looked at
	agree bool        // doc is somebody else's, and says what is so
	err   error
}

// An anchorNote is an anchor as it lies in the bucket, or in Kafka.
type anchorNote struct {
	*archive.Anchor
	note *sign.Note
	body []byte
	sum  chain.Hash // of the text
}

// parseAnchor reads an anchor of the line, of that number. It does not look at
// its signatures.
func parseAnchor(body []byte, l archive.Line, number int64) (*anchorNote, error) {
	n, err := sign.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("anchor %d: %w: %w", number, archive.ErrOtherAnchor, err)
	}
	a, err := archive.DecodeAnchor(n.Text)
	if err == nil && (a.Line() != l || a.Number != number) {
		err = fmt.Errorf("it says that it is number %d of %v", a.Number, a.Line())
	}
	if err != nil {
		return nil, fmt.Errorf("anchor %d: %w: %w", number, archive.ErrOtherAnchor, err)
	}
	return &anchorNote{Anchor: a, note: n, body: body, sum: archive.TextHash(n.Text)}, nil
}

// unanchored reports whether an anchor has something to say that the newest one
// does not.
func (p *partition) unanchored() bool {
	t := &p.state.Tail
	return len(t.Segments) > 0 || t.Anchor != nil && !sameKeys(t.Anchor.Keys, p.shared.AnchorKeys)
}

func sameKeys(a, b archive.AnchorKeys) bool {
	return slices.Equal(a.Anchor, b.Anchor) && slices.Equal(a.Catalog, b.Catalog) && slices.Equal(a.Control, b.Control)
}

// anchorDue lets an anchor fly, if one is due and none flies. It returns when to
// look again.
func (p *partition) anchorDue(stopping bool) (wake time.Time, err error) {
	a := &p.anchors
	if p.shared.AnchorEvery < 0 || a.flying != nil || stopping && !p.flush.Load() {
		return time.Time{}, nil
	}
	if a.met != nil || a.again {
		return time.Time{}, p.lookAgain()
	}
	if !p.unanchored() {
		return time.Time{}, nil
	}
	last := stopping && p.flying == nil && p.open.empty()
	now := p.shared.Now()
	if now.Before(a.held) {
		return a.held, nil
	}
	if wake = a.dirty.Add(p.shared.AnchorEvery); !last && !a.atOnce && p.state.Tail.Rows < p.shared.AnchorRows && now.Before(wake) {
		return wake, nil
	}
	p.flyAnchor(now, last)
	return time.Time{}, nil
}

// anchored reports whether a partition that stops has nothing left to anchor.
func (p *partition) anchored() bool {
	a := &p.anchors
	return !p.flush.Load() || p.shared.AnchorEvery < 0 || a.flying == nil && a.met == nil && !a.again && (!p.unanchored() || !a.held.IsZero())
}

// changed notes that something happened that no anchor says yet.
func (p *partition) changed() {
	if p.anchors.dirty.IsZero() {
		p.anchors.dirty = p.shared.Now()
	}
	p.noteUnanchored()
}

// noteUnanchored notes since when something waits for an anchor.
func (p *partition) noteUnanchored() {
	since := p.anchors.dirty
	if f := p.anchors.flying; f != nil {
		since = f.since
	}
	if !p.unanchored() || p.shared.AnchorEvery < 0 {
		p.unanchoredSince.Store(nil)
		return
	}
	p.unanchoredSince.Store(&since)
}

// flyAnchor takes down what the next anchor says, and starts its way to the
// bucket. Segments go on meanwhile.
func (p *partition) flyAnchor(now time.Time, last bool) {
	a, st := &p.anchors, p.state
	j := &anchorJob{doc: st.NextAnchor(p.shared.Root.SHA256), since: a.dirty, began: now}
	j.doc.Keys = p.shared.AnchorKeys
	if st.PreviousSHA256 != nil {
		j.tail = *st.PreviousSHA256
	}
	// No row is more than this ahead of the first anchor that covers it.
	j.earliest = time.UnixMicro(st.ArchivedAt).Add(-clockSkew)
	if t := st.Tail.Anchor; t != nil && t.Time.After(j.earliest) {
		j.earliest = t.Time
	}
	if last || st.Tail.Anchor == nil || now.Sub(st.Tail.Anchor.Checkpoints) >= checkpointEvery {
		j.checkpoints = p.checkpointHeads()
	}
	a.flying, a.dirty, a.atOnce = j, time.Time{}, false
	p.noteUnanchored()
	go func() { a.landed <- p.writeAnchor(j) }()
}

// checkpointHeads returns the heads of the logs that changed since the newest
// checkpoints; none where nobody signs.
func (p *partition) checkpointHeads() []archive.AnchorHead {
	if p.shared.Signers == nil {
		return nil
	}
	heads := make([]archive.AnchorHead, 0, len(p.anchors.unsaid))
	for tenant := range p.state.Tail.Changed() {
		heads = append(heads, p.state.AnchorHead(tenant))
	}
	for tenant := range p.anchors.unsaid {
		if !p.state.Tail.HasChanged(tenant) {
			heads = append(heads, p.state.AnchorHead(tenant))
		}
	}
	return heads
}

// writeAnchor brings an anchor to the bucket, for as long as the partition
// lives. It reads nothing that run changes meanwhile.
//
// A crash before the write leaves what was not anchored to the next start, which
// anchors it at once. One after it leaves an anchor that the next start finds.
func (p *partition) writeAnchor(j *anchorJob) anchorLanding {
	if len(j.doc.Segments) > 0 {
		if err := p.checkTail(j.doc.Ordinal, j.tail); err != nil {
			return anchorLanding{err: err}
		}
	}
	body, sum, err := p.shared.anchorNote(j)
	if err != nil {
		return anchorLanding{err: fmt.Errorf("anchor %d: %w", j.doc.Number, err)}
	}
	other, err := p.createAnchor(j.doc.Number, body)
	return anchorLanding{doc: j.doc, body: body, sum: sum, other: other, err: err}
}

// checkTail reads the newest segment again and requires that it is the one that
// is to be signed.
func (p *partition) checkTail(ordinal int64, sum chain.Hash) error {
	return p.shared.insist(p.put, p.line, archive.SegmentKey(p.line, ordinal), func(ctx context.Context, key string) error {
		body, err := p.shared.Archive.Get(ctx, key)
		switch {
		case errors.Is(err, archive.ErrNotFound):
			return fmt.Errorf("segment %d is gone: %w", ordinal, errTailChanged)
		case err == nil && sha256.Sum256(body) != sum:
			return fmt.Errorf("segment %d: %w", ordinal, errTailChanged)
		}
		return err
	})
}

// insist calls f until its answer is nil or one about the line, which it must
// give twice, and for as long as ctx lives.
func (sh *shared) insist(ctx context.Context, l archive.Line, key string, f func(context.Context, string) error) error {
	for attempt := 1; ; attempt++ {
		err := f(ctx, key)
		if err == nil || attempt > 1 && (isVerdict(err) || errors.Is(err, errTailChanged) || errors.Is(err, archive.ErrOtherAnchor)) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if f := sh.events.Retrying; f != nil {
			f(l, key, attempt, err)
		}
		if err := sh.backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

// anchorNote completes an anchor and signs it.
func (sh *shared) anchorNote(j *anchorJob) (body []byte, sum chain.Hash, err error) {
	a, now := j.doc, sh.Now()
	if now.Before(j.earliest) {
		now = j.earliest
	}
	a.Time = archive.Time{Time: now.UTC().Truncate(time.Microsecond)}
	if a.Time.Before(j.earliest) {
		a.Time.Time = a.Time.Add(time.Microsecond)
	}
	a.Complete()
	var signers []note.Signer
	if sh.Signers != nil {
		if signers = sh.Signers(now); len(signers) == 0 {
			return nil, sum, errNobodySigns
		}
	}
	if len(signers) > 0 {
		if a.Checkpoints, err = sh.checkpoints(a.Line(), j.checkpoints, signers); err != nil {
			return nil, sum, err
		}
	}
	text, err := archive.EncodeAnchor(a)
	if err != nil {
		return nil, sum, err
	}
	body, err = sign.Sign(text, signers...)
	return body, archive.TextHash(text), err
}

// checkpoints signs the trees of logs, in the order of their tenants.
func (sh *shared) checkpoints(l archive.Line, heads []archive.AnchorHead, signers []note.Signer) ([]archive.AnchorCheckpoint, error) {
	slices.SortFunc(heads, func(a, b archive.AnchorHead) int { return cmp.Compare(a.Tenant, b.Tenant) })
	out := make([]archive.AnchorCheckpoint, len(heads))
	for i, h := range heads {
		log := chain.Log{ArchiveID: sh.Root.ArchiveID, Tenant: h.Tenant, Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition}
		tree := chain.Tree{Size: h.Size, Frontier: h.Frontier}
		body, err := sign.Sign(chain.CheckpointText(chain.CheckpointOrigin(log), h.Size, tree.Root()), signers...)
		if err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
		out[i] = archive.AnchorCheckpoint{Tenant: h.Tenant, Note: string(body)}
	}
	return out, nil
}

// createAnchor writes an anchor under its number. It returns somebody else's
// where that was faster.
func (p *partition) createAnchor(number int64, body []byte) (other *anchorNote, err error) {
	err = p.shared.insist(p.put, p.line, archive.AnchorKey(p.line, number), func(ctx context.Context, key string) error {
		_, err := p.shared.Archive.Create(ctx, key, body)
		if !errors.Is(err, archive.ErrExists) {
			return err
		}
		there, err := p.shared.Archive.Get(ctx, key)
		if err == nil && !bytes.Equal(there, body) {
			other, err = parseAnchor(there, p.line, number)
		}
		return err
	})
	return other, err
}

// landAnchor ends the way of an anchor: it is durable, or somebody else's has its
// number.
func (p *partition) landAnchor(l anchorLanding) error {
	a := &p.anchors
	j := a.flying
	a.flying = nil
	if a.dirty.IsZero() || !j.since.IsZero() && j.since.Before(a.dirty) {
		a.dirty = j.since // until it is known to be anchored
	}
	a.held = time.Time{}
	switch {
	case l.err == nil && l.other == nil:
		p.settleAnchor(j, l)
	case errors.Is(l.err, errNobodySigns):
		a.held = p.shared.Now().Add(signAgain)
		p.shared.warn(fmt.Sprintf("anchor %s/%d: it waits", p.line.Topic, p.line.Partition), l.err)
	case l.err == nil:
		a.met = l.other
	case errors.Is(l.err, archive.ErrOtherAnchor) && a.retried != p.nextAnchor():
		a.retried, a.again, a.atOnce = p.nextAnchor(), true, true
	default:
		return l.err
	}
	return nil
}

// nextAnchor returns the number of the next anchor.
func (p *partition) nextAnchor() int64 {
	if t := p.state.Tail.Anchor; t != nil {
		return t.Number + 1
	}
	return 0
}

// settleAnchor takes a durable anchor into the state.
func (p *partition) settleAnchor(j *anchorJob, l anchorLanding) {
	a := &p.anchors
	p.unsaid(l.doc)
	p.state.Anchored(l.doc, l.sum)
	if len(p.state.Tail.Segments) == 0 {
		a.dirty = time.Time{}
	} else {
		a.dirty = j.began
	}
	p.noteUnanchored()
	if p.shared.copy != nil {
		p.shared.copy(p.line, l.doc.Number, l.body)
	}
	if f := p.shared.events.Anchored; f != nil {
		f(Anchor{Line: p.line, Number: l.doc.Number, Ordinal: l.doc.Ordinal, Bytes: int64(len(l.body)), Took: p.shared.Now().Sub(j.began), Adopted: l.agree})
	}
}

// unsaid notes which logs an anchor changes without a checkpoint.
func (p *partition) unsaid(doc *archive.Anchor) {
	a := &p.anchors
	if p.shared.Signers == nil || len(doc.Checkpoints) > 0 {
		a.unsaid = nil
		return
	}
	if a.unsaid == nil {
		a.unsaid = map[string]struct{}{}
	}
	for tenant := range p.state.Tail.Changed() {
		a.unsaid[tenant] = struct{}{}
	}
}

// lookAgain goes on where another's anchor was met, or the line has to be read
// from the bucket. Both wait for the PUT in flight.
func (p *partition) lookAgain() error {
	a := &p.anchors
	if behind := a.met != nil && a.met.Ordinal >= p.state.Ordinal; behind || a.again {
		if p.flying != nil {
			return nil
		}
		if err := p.restart(); err != nil {
			return err
		}
		at := p.state.NextOffset
		p.give(p.open.dropBefore(at))
		p.next = max(p.next, at)
		a.again = false
	}
	if a.met == nil {
		return nil
	}
	other, st, began := a.met, p.state.Clone(), p.shared.Now()
	a.met = nil
	a.flying = &anchorJob{doc: other.Anchor, since: a.dirty, began: began}
	go func() {
		err := p.shared.insist(p.put, p.line, archive.AnchorKey(p.line, other.Number), func(ctx context.Context, _ string) error {
			if p.shared.Signers != nil && len(other.note.Signatures) == 0 {
				return unsigned(other)
			}
			return p.shared.agrees(ctx, st, other)
		})
		a.landed <- anchorLanding{doc: other.Anchor, body: other.body, sum: other.sum, agree: true, err: err}
	}()
	return nil
}

// unsigned is the error of an anchor without signatures where signed ones belong.
// To build on it would leave it in the archive for good, and a verifier would
// find less than was asked for.
func unsigned(n *anchorNote) error {
	return fmt.Errorf("anchor %d: %w: nobody has signed it, and the anchors of this archive are signed. Nothing signed follows it yet: delete the object %s, and start all processes with their keys", n.Number, archive.ErrOtherAnchor, archive.AnchorKey(n.Line(), n.Number))
}

// agrees returns nil if an anchor that this process did not write says what the
// line does, of which st knows at least as much; it may then follow the newest
// one that st knows. Else the error matches [archive.ErrOtherAnchor], or the
// store did not answer.
func (sh *shared) agrees(ctx context.Context, st *archive.State, n *anchorNote) error {
	if err := sh.mayAdopt(ctx, st, n); err != nil {
		return err
	}
	if n.Ordinal != st.Ordinal-1 {
		var err error
		if st, err = sh.rewind(ctx, st, n.Ordinal); err != nil {
			return err
		}
	}
	return st.Agrees(n.Anchor, sh.Root.SHA256)
}

// mayAdopt looks at what an anchor says of itself: its signatures and its time.
// One without signatures says nothing that is not compared.
func (sh *shared) mayAdopt(ctx context.Context, st *archive.State, n *anchorNote) error {
	v, err := sh.verdict(ctx, n)
	if err != nil {
		return err
	}
	switch {
	case v == sign.Bad || v == sign.Unknown && !sh.ring.Empty():
		return fmt.Errorf("anchor %d: %w: it is signed by %s, and by none of anchor-keys", n.Number, archive.ErrOtherAnchor, archive.Signers(n.note))
	case n.Time.After(sh.Now().Add(clockError)):
		return fmt.Errorf("anchor %d: %w: its time, %s, is to come", n.Number, archive.ErrOtherAnchor, n.Time.Format(time.RFC3339))
	case st.Tail.Anchor != nil && n.Time.Before(st.Tail.Anchor.Time):
		return fmt.Errorf("anchor %d: %w: its time is before that of the one before it", n.Number, archive.ErrOtherAnchor)
	}
	return nil
}

// rewind returns the state of the line behind a segment that no known anchor
// covers, from the heads at the newest known anchor and the segments since.
func (sh *shared) rewind(ctx context.Context, st *archive.State, ordinal int64) (*archive.State, error) {
	then := st.AtAnchor()
	for _, s := range st.Tail.Segments {
		if s.Ordinal > ordinal {
			break
		}
		body, err := sh.Archive.Get(ctx, archive.SegmentKey(st.Line, s.Ordinal))
		if errors.Is(err, archive.ErrNotFound) {
			return nil, fmt.Errorf("segment %d is gone: %w", s.Ordinal, errTailChanged)
		}
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w", s.Ordinal, err)
		}
		if sha256.Sum256(body) != s.SHA256 {
			return nil, fmt.Errorf("segment %d: %w", s.Ordinal, errTailChanged)
		}
		seg, err := archive.SegmentMetadata(body)
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w: %w", s.Ordinal, archive.ErrBreaks, err)
		}
		then.Advance(seg, s.SHA256, s.Bytes, 0)
	}
	if then.Ordinal != ordinal+1 {
		return nil, fmt.Errorf("anchor: %w: it ends at segment %d, the line stands behind %d", archive.ErrOtherAnchor, ordinal, st.Ordinal-1)
	}
	return then, nil
}

// verdict says whose an anchor is. Where that is not known, the bucket may hold a
// note by a known key on the key that signed.
func (sh *shared) verdict(ctx context.Context, n *anchorNote) (sign.State, error) {
	return archive.Verdict(ctx, sh.Archive, sh.ring, sh.Root.ArchiveID, n.note, sign.Anchor, n.Time.Time)
}

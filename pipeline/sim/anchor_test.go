package sim_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// anchorTopic is where Kafka keeps the newest anchors.
const anchorTopic = "ledgerlake.anchors"

// keys are those of the world: one that signs for all processes, and one that
// nobody knows.
type keys struct {
	signer, stranger *sign.Signer
	control          *sign.Signer // of control records
	ring             sign.Ring
}

func (w *world) makeKeys() {
	for _, to := range []**sign.Signer{&w.keys.signer, &w.keys.stranger, &w.keys.control} {
		skey, _, err := sign.Generate(rand.Reader, "sim.example/anchors")
		if err != nil {
			w.t.Fatal(err)
		}
		if *to, err = sign.NewSigner(skey); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := errors.Join(w.keys.ring.Add(w.keys.signer.VKey(), sign.AllRoles, "the world"), w.keys.ring.Add(w.keys.control.VKey(), sign.Control, "the world")); err != nil {
		w.t.Fatal(err)
	}
}

// anchoring are the settings of a process that anchors ask for.
func (w *world) anchoring(s *pipeline.Settings) {
	s.AnchorEvery, s.AnchorRows = w.plan.anchorEvery, w.plan.anchorRows
	if w.plan.copies {
		s.AnchorTopic = anchorTopic
	}
	if !w.plan.signed {
		return
	}
	s.Signers = func(time.Time) []note.Signer { return []note.Signer{w.keys.signer} }
	s.Keys = w.keys.ring.Clone()
	s.AnchorKeys = archive.AnchorKeys{Anchor: []string{w.keys.signer.VKey()}}
	if w.plan.governs {
		s.AnchorKeys.Catalog = s.AnchorKeys.Anchor
		s.AnchorKeys.Control = []string{w.keys.control.VKey()}
	}
}

// A moment is what the oracle knows of a line behind one segment.
type moment struct {
	entry archive.AnchorSegment
	heads map[string]archive.Head
}

// remember notes where the line stands behind a segment that was judged.
func (l *line) remember(o *archive.SegmentObject) {
	l.moments = append(l.moments, moment{
		entry: archive.AnchorSegment{Ordinal: o.Ordinal, Bytes: o.Bytes, SHA256: o.SHA256, AnchorCounts: archive.CountsOf(o.Segment)},
		heads: maps.Clone(l.state.Heads),
	})
}

// A seen is an anchor that is there.
type seen struct {
	*archive.Anchor
	text string
	body []byte
}

// anchored hands a new anchor to the oracle.
func (w *world) anchored(p *process, key string, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts["anchor"]++
	name, ok := archive.ParseAnchorKey(key)
	l := w.lineLocked(name.TopicID, name.Partition)
	if !ok || l == nil {
		w.failLocked("%s creates %s, which is of no line", p.name, key)
		return
	}
	if err := w.judgeAnchor(p, l, name.Number, body); err != nil {
		w.failLocked("%s creates %s: %v", p.name, short(key), err)
	}
}

// judgeAnchor holds an anchor against what is known of its line.
func (w *world) judgeAnchor(p *process, l *line, number int64, body []byte) error {
	n, err := sign.Parse(body)
	if err != nil {
		return err
	}
	a, err := archive.DecodeAnchor(n.Text)
	if err != nil {
		return err
	}
	want := sign.Unsigned
	if w.plan.signed {
		want = sign.Good
	}
	switch got := w.keys.ring.Check(n, sign.Anchor, a.Time.Time).State; {
	case got != want:
		return fmt.Errorf("its signatures are %v, not %v", got, want)
	case l.forgedAnchor >= 0:
		return fmt.Errorf("it builds on the forged anchor %d", l.forgedAnchor)
	case a.Number != number || number != int64(len(l.anchors)) || a.Line() != l.Line || a.ArchiveSHA256 != w.root.SHA256:
		return fmt.Errorf("number %d of %v, the next of %v is %d", a.Number, a.Line(), l.Line, len(l.anchors))
	case a.Ordinal >= int64(len(l.moments)):
		return fmt.Errorf("it covers segment %d, %d are there and good", a.Ordinal, len(l.moments))
	case len(a.Segments) > 0 && !p.hasRead(archive.SegmentKey(l.Line, a.Ordinal)):
		return fmt.Errorf("it covers segment %d, which was not read again", a.Ordinal)
	}
	before := seen{Anchor: &archive.Anchor{Ordinal: -1}}
	if number > 0 {
		before = l.anchors[number-1]
		if *a.Previous != archive.TextHash(before.text) || a.Time.Before(before.Time.Time) {
			return errors.New("it does not follow the one before it")
		}
	}
	if err := errors.Join(l.judgeSegments(a, before.Anchor), l.judgeHeads(a, before.Ordinal), w.judgeFork(l, a)); err != nil {
		return err
	}
	l.anchors = append(l.anchors, seen{a, n.Text, body})
	w.anchorGoverning(l, a.Ordinal)
	w.trace.say(p.name, "anchor %d of %s is there: up to segment %d", number, w.name(l.Line), a.Ordinal)
	return nil
}

// judgeSegments requires that exactly the segments since the anchor before are
// listed, as they are, and counted.
func (l *line) judgeSegments(a, before *archive.Anchor) error {
	totals := before.Totals
	at := before.Ordinal + 1
	if at == 0 && a.Ordinal >= 0 {
		totals.FirstOffset = l.moments[0].entry.FirstOffset
	}
	for _, s := range a.Segments {
		if s.Ordinal != at || s != l.moments[at].entry {
			return fmt.Errorf("it lists segment %d as %+v", s.Ordinal, s)
		}
		totals.Add(s.AnchorCounts)
		at++
	}
	if at != a.Ordinal+1 || totals != a.Totals && a.Ordinal >= 0 {
		return fmt.Errorf("it lists segments up to %d of %d; totals %+v, not %+v", at-1, a.Ordinal, a.Totals, totals)
	}
	return nil
}

// judgeHeads requires that exactly the heads that changed are listed, or all.
func (l *line) judgeHeads(a *archive.Anchor, before int64) error {
	heads, old := l.headsAt(a.Ordinal), l.headsAt(before)
	listed := 0
	for tenant, h := range heads {
		changed := a.Full || old[tenant].Tree.Size != h.Tree.Size
		i := slices.IndexFunc(a.Heads, func(x archive.AnchorHead) bool { return x.Tenant == tenant })
		if changed != (i >= 0) {
			return fmt.Errorf("head of %s: changed %t, listed %t", tenant, changed, i >= 0)
		}
		if i < 0 {
			continue
		}
		listed++
		if x := a.Heads[i]; x.Size != h.Tree.Size || x.Head != h.Hash || x.Root != h.Tree.Root() || x.Epoch != h.Epoch || x.Scheme != h.Scheme {
			return fmt.Errorf("head of %s: %+v, not %+v", tenant, x, h)
		}
	}
	if listed != len(a.Heads) {
		return fmt.Errorf("%d heads are of no log", len(a.Heads)-listed)
	}
	return nil
}

func (l *line) headsAt(ordinal int64) map[string]archive.Head {
	if ordinal < 0 {
		return nil
	}
	return l.moments[ordinal].heads
}

// judgeFork requires that no two heads of one log and one size were ever signed.
func (w *world) judgeFork(l *line, a *archive.Anchor) error {
	for _, h := range a.Heads {
		key := fmt.Sprintf("%v %s %d", l.Line, h.Tenant, h.Size)
		if old, ok := w.heads[key]; ok && old != h.Head {
			return fmt.Errorf("a second head of %s at size %d", h.Tenant, h.Size)
		}
		w.heads[key] = h.Head
	}
	return nil
}

// hasRead reports whether the process has read an object.
func (p *process) hasRead(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts["get "+key] > 0
}

// copied returns the anchors that Kafka has, by their keys there.
func (w *world) copied() map[string][][]byte {
	out := map[string][][]byte{}
	ends, err := kadm.NewClient(w.producer).ListEndOffsets(context.Background(), anchorTopic)
	if err != nil || ends.Error() != nil {
		return out // nobody has made the topic
	}
	left := int64(0)
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		from[o.Partition] = kgo.NewOffset().AtStart()
		left += o.Offset
	})
	c := w.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{anchorTopic: from}), kgo.FetchMaxWait(100*time.Millisecond))
	defer c.Close()
	for deadline := time.Now().Add(10 * time.Second); left > 0 && time.Now().Before(deadline); {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		c.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			out[string(r.Key)] = append(out[string(r.Key)], r.Value)
			if r.Offset+1 == ends[anchorTopic][r.Partition].Offset {
				left = 0
			}
		})
		cancel()
	}
	return out
}

func copyKey(l archive.Line) string { return fmt.Sprintf("%s/%s/%d", l.Topic, l.TopicID, l.Partition) }

// newestCopy returns the newest anchor of a line that Kafka has, -1 for none. It
// requires that each copy is of an anchor that is in the bucket.
func (w *world) newestCopy(l *line, copies map[string][][]byte) int64 {
	newest := int64(-1)
	for _, body := range copies[copyKey(l.Line)] {
		i := slices.IndexFunc(l.anchors, func(a seen) bool { return string(a.body) == string(body) })
		if i < 0 {
			w.fail("Kafka has an anchor of %s that the bucket never had", w.name(l.Line))
			return newest
		}
		newest = max(newest, int64(i))
	}
	return newest
}

// checkAnchors requires that after a clean stop all is anchored, and that Kafka
// has it too.
func (w *world) checkAnchors() {
	copies := map[string][][]byte{}
	if w.plan.copies {
		copies = w.copied()
	}
	for _, l := range w.lines {
		newest := w.newestCopy(l, copies)
		if l.gone || l.forged >= 0 || l.forgedAnchor >= 0 || l.state.Ordinal == 0 {
			continue
		}
		last := l.anchors[max(0, len(l.anchors)-1):]
		switch {
		case len(last) == 0 || last[0].Ordinal != l.state.Ordinal-1:
			w.fail("%s has %d segments after a clean stop, and its %d anchors do not cover them", w.name(l.Line), l.state.Ordinal, len(l.anchors))
		case w.plan.copies && newest != last[0].Number:
			w.fail("%s has anchor %d after a clean stop, the newest in Kafka is %d", w.name(l.Line), last[0].Number, newest)
		}
	}
}

// forgeAnchor puts an anchor where the next one of a line belongs. From then on
// no anchor may be built on it.
func (w *world) forgeAnchor(l *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.forged >= 0 || l.forgedAnchor >= 0 || len(l.anchors) == 0 || !w.plan.signed {
		return
	}
	last := l.anchors[len(l.anchors)-1]
	a := *last.Anchor
	previous := archive.TextHash(last.text)
	a.Number, a.Previous, a.Segments, a.Heads, a.Full = a.Number+1, &previous, nil, nil, (a.Number+1)%archive.FullEvery == 0
	kind := []string{"by-a-stranger", "unsigned-and-false", "garbage"}[w.seed%3] // each in a third of few worlds
	var signers []note.Signer
	switch kind {
	case "by-a-stranger":
		signers = append(signers, w.keys.stranger)
	case "unsigned-and-false":
		a.Totals.Rows++
	}
	text, err := archive.EncodeAnchor(&a)
	if err != nil || a.Full {
		return
	}
	body, err := sign.Sign(text, signers...)
	if err != nil {
		w.t.Fatal(err)
	}
	if kind == "garbage" {
		body = []byte("not a note")
	}
	key := archive.AnchorKey(l.Line, a.Number)
	if _, err := w.memory.Create(context.Background(), key, body); err != nil {
		return // one is on its way through the oracle
	}
	l.forgedAnchor = a.Number
	w.counts["forged-anchor:"+kind]++
	w.trace.say("", "somebody forges %s: %s", short(key), kind)
}

// restore is a bucket that is restored from a backup: all that is newer is gone.
// A process that starts then must end, say so, and write nothing of the line.
// Then the rest comes back.
func (w *world) restore() {
	if w.forged() || w.inTransaction != nil {
		return
	}
	for _, p := range w.alive() {
		p.kill("before the bucket is restored")
	}
	time.Sleep(3 * session)
	w.pending.Wait()
	w.bury(0)
	n := len(w.procs)
	group, _ := w.plan.member(n)
	if w.plan.group == "two-groups" {
		return // what one vouches for, the other may not know
	}
	l := w.anyLine()
	vouched, known := w.vouchedFor(group, l), int64(-1)
	if newest := w.newestCopy(l, w.copiesIfAny()); newest >= 0 && w.plan.signed {
		known = l.anchors[newest].Ordinal
	}
	if max(vouched, known) < 0 || w.failed() {
		return
	}
	if known >= 0 && w.dice.chance(0.5) {
		if _, err := kadm.NewClient(w.producer).DeleteGroup(context.Background(), group+".vouchers"); err == nil {
			vouched = -1
		}
	}
	w.hideFrom(l, w.dice.Int64N(max(vouched, known)+1))
	p := w.startProcess(func(s *pipeline.Settings) {
		if len(s.Assign) > 0 {
			s.Assign = w.share(0)
		}
	})
	w.await(p)
	if !w.failed() && !errors.Is(p.err, pipeline.ErrWentBack) {
		w.fail("%s ends with %v where the bucket went back in time", p.name, p.err)
	}
	w.count("bucket-restored")
	w.mu.Lock()
	w.hidden, w.calm = nil, false
	w.trace.say("", "the rest of the bucket is back")
	w.mu.Unlock()
}

func (w *world) copiesIfAny() map[string][][]byte {
	if !w.plan.copies {
		return nil
	}
	return w.copied()
}

// hideFrom takes the segments of a line from an ordinal on, and the anchors that
// cover them.
func (w *world) hideFrom(l *line, ordinal int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm, w.hidden = true, map[string]bool{}
	for n := ordinal; n < l.state.Ordinal; n++ {
		w.hidden[archive.SegmentKey(l.Line, n)] = true
	}
	for _, a := range l.anchors {
		if a.Ordinal >= ordinal {
			w.hidden[archive.AnchorKey(l.Line, a.Number)] = true
		}
	}
	w.trace.say("", "the bucket is restored from a backup: %s has %d of %d segments", w.name(l.Line), ordinal, l.state.Ordinal)
}

// isHidden reports whether an object went with a restored backup.
func (w *world) isHidden(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hidden[key]
}

// vouchedFor returns the newest segment of a line that a group vouches for, -1
// for none.
func (w *world) vouchedFor(group string, l *line) int64 {
	offsets, err := kadm.NewClient(w.producer).FetchOffsets(context.Background(), group+".vouchers")
	if err != nil {
		return -1
	}
	o, ok := offsets.Lookup(topic, l.Partition)
	if !ok || !strings.Contains(o.Metadata, l.TopicID) {
		return -1
	}
	var ordinal int64
	_, after, _ := strings.Cut(o.Metadata, `"ordinal":`)
	if _, err := fmt.Sscanf(after, "%d", &ordinal); err != nil {
		return -1
	}
	return ordinal
}

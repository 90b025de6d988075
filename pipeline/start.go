package pipeline

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// errBeyondLog: the archive has offsets that Kafka has not.
var errBeyondLog = errors.New("the archive is ahead of Kafka")

// A bounds is what a partition of Kafka holds for a reader of committed
// transactions.
type bounds struct {
	start, end int64 // offsets; end is exclusive
}

// start finds where a partition stands: from the bucket what was archived, from
// Kafka what there is and whether it is the same. It returns the partition,
// ready to run. vouched is the metadata of the voucher.
//
// The committed offset itself plays no part: a stale one, a reset one and none
// at all lead to the same place.
func (c *consumer) start(ctx context.Context, at place, vouched string) (*partition, error) {
	l, err := c.line(ctx, at.topic, at.number)
	if err != nil {
		return nil, err
	}
	c.warnOfOther(vouched, l)
	v := parseVoucher(vouched, c.Root.ArchiveID, l)
	known, err := c.copies.newest(ctx, l)
	if err != nil {
		return nil, err
	}
	r, v, err := c.stand(ctx, l, v, known)
	if err != nil {
		return nil, err
	}
	st, w := r.state, r.window
	b, err := c.bounds(ctx, at.topic, at.number)
	if err != nil {
		return nil, err
	}
	if st.NextOffset < 0 {
		st.NextOffset = b.start // a line begins at Kafka's log start, without a gap
	}
	if err := b.check(st.NextOffset); err != nil {
		return nil, err
	}
	c.copyAgain(l, r.newest, known)
	p := newPartition(c.life, c.shared, c, st, w, r.catalog)
	p.trusted, p.forgone = v.writer(), r.forgone
	p.endAtStart = b.end
	if b.start > st.NextOffset {
		p.mail.push(mail{lostTo: b.start})
		p.fetchFrom = b.start
	}
	if f := c.events.Assigned; f != nil {
		f(l, st.NextOffset, st.Ordinal)
	}
	return p, nil
}

// stand finds where a line stands behind all its segments. Where compaction has
// taken what was walked over meanwhile, it begins anew: what lay there may have
// been the stray of a process that slept.
func (c *consumer) stand(ctx context.Context, l archive.Line, v *voucher, known []*copied) (*resumed, *voucher, error) {
	for attempt := 1; ; attempt++ {
		r, vouched, err := c.standOnce(ctx, l, v, known)
		if r == nil || err == nil && r.state.Ordinal == r.base || err != nil && !isVerdict(err) && !errors.Is(err, ErrForged) {
			return r, vouched, err
		}
		passed := c.hasPassed(ctx, l, r)
		if passed == nil {
			return r, vouched, err
		}
		c.retrying(ctx, l, attempt, passed)
		if err := c.backOff(ctx, attempt); err != nil {
			return nil, nil, err
		}
	}
}

// standOnce is one attempt. It returns what it began with beside an error.
func (c *consumer) standOnce(ctx context.Context, l archive.Line, v *voucher, known []*copied) (*resumed, *voucher, error) {
	r, v, err := c.resumeOrForgo(ctx, l, v, known)
	if err == nil {
		err = c.walk(ctx, r.state, r.window, v.writer(), &r.ahead)
	}
	if errors.Is(err, errResetBelow) { // now it is known from where on to go another way
		if r, v, err = c.resumeOrForgo(ctx, l, v, known); err == nil {
			err = c.walk(ctx, r.state, r.window, v.writer(), &r.ahead)
		}
	}
	if err == nil && len(r.ahead) > 0 {
		err = fmt.Errorf("anchor %d: %w: it covers segment %d, and the line ends behind %d", r.ahead[0].Number, archive.ErrOtherAnchor, r.ahead[0].Ordinal, r.state.Ordinal-1)
	}
	return r, v, err
}

// hasPassed returns an error that matches errOvertaken where compaction has taken
// segments that a start walked over, and nil where not, or where no answer is to be
// had: then the next write asks.
func (c *consumer) hasPassed(ctx context.Context, l archive.Line, r *resumed) error {
	look := newLookout(c.shared, l, r.catalog)
	err := c.insist(ctx, l, archive.CatalogPrefix(l), func(ctx context.Context, _ string) error { return look.look(ctx) })
	if err != nil {
		return nil
	}
	return look.passed(r.base)
}

// copyAgain copies the newest anchor of a line: whoever wrote it may have died
// before it was.
func (c *consumer) copyAgain(l archive.Line, n *anchorNote, known []*copied) {
	if n == nil {
		return
	}
	if c.AnchorTopic != "" && !isKnown(known, n) {
		c.copies.send(l, n.Number, n.body)
	}
	if c.AnchorCopy != nil {
		c.mirror.send(l, n.Number, n.body)
	}
}

// catchUp takes into st and w the segments of the line from st on, as far as
// there are any, each after it was compared with Kafka. A segment that does not
// continue the line is read twice before that is believed. trusted is the writer
// who vouched last.
func (c *consumer) catchUp(ctx context.Context, st *archive.State, w *window, trusted archive.Writer) error {
	return c.walk(ctx, st, w, trusted, new([]*anchorNote))
}

// walk is catchUp, and passes the anchors that are ahead on its way.
func (c *consumer) walk(ctx context.Context, st *archive.State, w *window, trusted archive.Writer, ahead *[]*anchorNote) error {
	known := &bounds{end: -1}
	for attempt := 1; ; attempt++ {
		if err := c.pass(ctx, st, ahead); err != nil {
			return err
		}
		before := st.Ordinal
		err := c.inTurn(ctx, func() error { return c.catchUpOne(ctx, known, st, w, trusted) })
		switch {
		case err == nil && st.Ordinal == before:
			return nil
		case err == nil:
			attempt = 0
			continue
		case c.isFinal(err), isVerdict(err) && attempt > 1:
			if err := c.meetReset(ctx, st, err); err != nil {
				return err
			}
			attempt = 0
			continue
		}
		c.retrying(ctx, st.Line, attempt, err)
		if err := c.backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

// catchUpOne takes the segment behind st into st and w, if there is one.
func (c *consumer) catchUpOne(ctx context.Context, known *bounds, st *archive.State, w *window, trusted archive.Writer) error {
	reset := c.resetOf(st.Line)
	if reset.voidsFrom(st.Ordinal) {
		st.Void(reset.voided)
	}
	o, err := archive.GetNext(ctx, c.Archive, st)
	if errors.Is(err, archive.ErrNotFound) {
		if len(st.Voided) > 0 {
			return fmt.Errorf("segment %d: %w: it was a chain reset, and is gone", st.Ordinal, archive.ErrBreaks)
		}
		return nil
	}
	if err == nil && !reset.vouchesFor(o) {
		err = c.compareOnce(ctx, known, st, w, trusted, o)
	}
	if err == nil {
		c.take(st, w, o)
	}
	return err
}

// inTurn calls f when fewer than startParallel partitions read from the bucket
// to start.
func (c *consumer) inTurn(ctx context.Context, f func() error) error {
	select {
	case c.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turns }()
	return f()
}

// check refuses an archive that knows offsets which Kafka has not. Going on
// would skip what Kafka writes there next.
func (b bounds) check(next int64) error {
	if next > b.end {
		return fmt.Errorf("%w: archived up to offset %d, Kafka ends at %d: Kafka lost data, or this is another cluster's archive", errBeyondLog, next, b.end)
	}
	return nil
}

// A resumed is what the bucket says of a line, as far as that is believed.
type resumed struct {
	state  *archive.State
	window *window
	ahead  []*anchorNote // anchors behind the state, to be compared with what follows
	newest *anchorNote   // nil where the line has none
	base   int64         // the ordinal behind what anchors vouch for
	// catalog is the newest version, nil where the line was never compacted.
	catalog *archive.CatalogVersion
	// forgone are anchors that Kafka has and the bucket not, for good.
	forgone []chain.Hash
}

// resumeOrForgo is resume. Where the bucket went back in time and is trusted all
// the same, it resumes without the voucher, and forgoes the anchors that Kafka
// knows.
func (c *consumer) resumeOrForgo(ctx context.Context, l archive.Line, v *voucher, known []*copied) (*resumed, *voucher, error) {
	r, err := c.resume(ctx, l, v, known, v.forgone())
	if !c.TrustBucket || !errors.Is(err, ErrWentBack) {
		return r, v, err
	}
	c.warn(fmt.Sprintf("%s/%d: going on from what the bucket has, as trust-bucket says", l.Topic, l.Partition), err)
	var forgone []chain.Hash
	for _, k := range known {
		forgone = append(forgone, k.sum)
	}
	r, err = c.resume(ctx, l, nil, known, forgone)
	return r, nil, err
}

// resume reads from the bucket where a line stood behind the newest anchor that
// is believed, or behind the segment of a voucher (nil: at its beginning), and
// tries again until the answer is one about the line, not about the store.
func (c *consumer) resume(ctx context.Context, l archive.Line, v *voucher, known []*copied, forgone []chain.Hash) (r *resumed, err error) {
	for attempt := 1; ; attempt++ {
		err := c.inTurn(ctx, func() (err error) { r, err = c.resumeOnce(ctx, l, v, known, forgone); return err })
		if err == nil || (isVerdict(err) || c.isFinal(err)) && attempt > 1 {
			return r, err
		}
		if errors.Is(err, errResetBelow) {
			continue // it is known now
		}
		c.retrying(ctx, l, attempt, err)
		if err := c.backOff(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// resumeOnce reads a line's state and its window.
func (c *consumer) resumeOnce(ctx context.Context, l archive.Line, v *voucher, known []*copied, forgone []chain.Hash) (*resumed, error) {
	catalog, err := c.newestCatalog(ctx, l) // before the anchors: what it takes in was anchored before
	if err != nil {
		return nil, err
	}
	hint := int64(-1)
	if len(known) > 0 {
		hint = known[0].number
	}
	t, err := c.readTrail(ctx, l, hint)
	if err != nil {
		return nil, err
	}
	if err := c.checkCopies(ctx, t, known, forgone); err != nil {
		return nil, err
	}
	good, err := c.believed(ctx, t, v, catalog)
	if err != nil {
		return nil, err
	}
	if err := c.checkWatermark(ctx, catalog, t, good); err != nil {
		return nil, err
	}
	if good == 0 {
		if err := c.copies.checkOthers(ctx, l); err != nil {
			return nil, err
		}
	}
	base, ahead := t.split(good)
	if good > 0 && !c.ring.Empty() {
		for _, n := range ahead {
			if len(n.note.Signatures) == 0 {
				return nil, unsigned(n)
			}
		}
	}
	r := &resumed{ahead: ahead, forgone: forgone, catalog: catalog, base: base.next(good)}
	if len(t.notes) == 0 {
		return r, c.resumeUnanchored(ctx, l, v, r)
	}
	r.newest = t.notes[len(t.notes)-1]
	r.state, r.window = c.newState(l), newWindow()
	if good > 0 {
		if r.state, r.window, err = c.resumeAnchored(ctx, base, catalog, c.windowLimit()); err != nil {
			return nil, err
		}
	}
	if v != nil && v.Ordinal < r.state.Ordinal-1 {
		return r, v.checkListed(base)
	}
	return r, c.followTo(ctx, r, v)
}

// followTo walks on to the segment of a voucher. Each segment names the hash of
// the one before it, so the voucher vouches for all of them.
func (c *consumer) followTo(ctx context.Context, r *resumed, v *voucher) error {
	if v == nil {
		return nil
	}
	if k := c.resetOf(r.state.Line); k != nil && len(k.voided) > 0 && k.voided[0].Ordinal >= r.state.Ordinal {
		return nil // walk goes around what is void, and compares what lies in front of it
	}
	for {
		if err := c.pass(ctx, r.state, &r.ahead); err != nil {
			return err
		}
		if r.state.Ordinal > v.Ordinal {
			return v.check(r.state)
		}
		var o *archive.SegmentObject
		err := c.insist(ctx, r.state.Line, archive.SegmentKey(r.state.Line, r.state.Ordinal), func(ctx context.Context, _ string) (err error) {
			if o, err = archive.GetNext(ctx, c.Archive, r.state); errors.Is(err, archive.ErrNotFound) {
				return v.missing()
			}
			return err
		})
		if err != nil {
			return c.followReset(ctx, r.state, v, err)
		}
		c.take(r.state, r.window, o)
	}
}

// resumeUnanchored reads the state of a line without anchors.
func (c *consumer) resumeUnanchored(ctx context.Context, l archive.Line, v *voucher, into *resumed) error {
	n, err := archive.CountSegments(ctx, c.Archive, l)
	if err != nil {
		return err
	}
	var known int64
	if v != nil {
		known = v.Ordinal + 1
	}
	if known > n {
		return v.missing()
	}
	limit := c.windowLimit()
	read := archive.Resume
	if !c.ring.Empty() {
		read = archive.ResumeWhole // what is read here once will be signed
	}
	r, err := read(ctx, c.Archive, c.newState(l), known, int64(limit))
	if err != nil {
		return err
	}
	if v != nil {
		if err := v.check(r.State); err != nil {
			return err
		}
	}
	into.state = r.State
	into.window, err = c.readWindow(ctx, l, nil, r.Recent, limit)
	return err
}

// pass requires of each anchor that is ahead and that a state has reached that it
// says what the state does, and takes it in. Nobody's word is needed for it then.
func (c *consumer) pass(ctx context.Context, st *archive.State, ahead *[]*anchorNote) error {
	for len(*ahead) > 0 && (*ahead)[0].Ordinal < st.Ordinal {
		n := (*ahead)[0]
		err := c.insist(ctx, st.Line, archive.AnchorKey(st.Line, n.Number), func(ctx context.Context, _ string) error { return c.agrees(ctx, st, n) })
		if err != nil {
			return err
		}
		st.Anchored(n.Anchor, n.sum)
		*ahead = (*ahead)[1:]
	}
	return nil
}

// isVerdict reports whether an answer is about the line itself. An object that
// its store finds damaged is: to wait for it would hold up the partitions that
// start at the same time.
func isVerdict(err error) bool {
	return errors.Is(err, archive.ErrBreaks) || errors.Is(err, archive.ErrCatalog) || errors.Is(err, archive.ErrDataFile) || errors.Is(err, archive.ErrDamaged) || errors.Is(err, ErrWentBack) ||
		errors.Is(err, archive.ErrOtherAnchor) || errors.Is(err, errStrangers)
}

// line names a partition as the archive does, by the topic's id.
func (c *consumer) line(ctx context.Context, topic string, number int32) (archive.Line, error) {
	id, err := c.topicID(ctx, topic)
	if err == nil && id == encodeTopicID(kadm.TopicID{}) {
		err = errors.New("the brokers give topics no ids: Kafka 2.8 or later is needed, for a topic that is made again would be taken for the old one")
	}
	return archive.Line{Topic: topic, TopicID: id, Partition: number}, err
}

func (c *consumer) topicID(ctx context.Context, topic string) (string, error) {
	for attempt := 1; ; attempt++ {
		topics, err := c.admin.ListTopics(ctx, topic)
		if err == nil {
			if d, ok := topics[topic]; ok && d.Err == nil {
				return encodeTopicID(d.ID), nil
			}
			err = topics[topic].Err
		}
		if ctx.Err() == nil {
			c.warn("look up topic "+topic, err)
		}
		if err := c.backOff(ctx, attempt); err != nil {
			return "", err
		}
	}
}

// encodeTopicID returns a topic id in its usual form: base64url, 22 characters.
func encodeTopicID(id kadm.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

func decodeTopicID(text string) (id kadm.TopicID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && copy(id[:], b) != len(id) {
		err = fmt.Errorf("topic id %q has %d bytes", text, len(b))
	}
	return id, err
}

// bounds asks Kafka for the offsets that a partition holds.
func (c *consumer) bounds(ctx context.Context, topic string, number int32) (bounds, error) {
	for attempt := 1; ; attempt++ {
		b, err := c.tryBounds(ctx, topic, number)
		if err == nil {
			return b, nil
		}
		if ctx.Err() == nil {
			c.warn(fmt.Sprintf("list offsets of %s/%d", topic, number), err)
		}
		if err := c.backOff(ctx, attempt); err != nil {
			return bounds{}, err
		}
	}
}

func (c *consumer) tryBounds(ctx context.Context, topic string, number int32) (bounds, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	starts, err := c.admin.ListStartOffsets(ctx, topic)
	start, err := offsetOf(starts, err, topic, number)
	if err != nil {
		return bounds{}, err
	}
	ends, err := c.admin.ListCommittedOffsets(ctx, topic)
	end, err := offsetOf(ends, err, topic, number)
	return bounds{start: start, end: end}, err
}

// offsetOf returns the offset of one partition of an answer of many brokers,
// also where another broker did not answer.
func offsetOf(all kadm.ListedOffsets, err error, topic string, number int32) (int64, error) {
	o, ok := all.Lookup(topic, number)
	if !ok {
		return 0, cmp.Or(err, errors.New("no such partition"))
	}
	return o.Offset, o.Err
}

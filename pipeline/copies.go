package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// The largest copy of an anchor, in bytes, compressed.
const maxCopy = 64 << 20

// How long one copy may take.
const copyTimeout = 30 * time.Second

// copies are the anchors that Kafka keeps, out of reach of whoever can only
// write to the bucket: in a topic that is compacted, under the line, the newest
// anchor of each. It is written after the bucket.
type copies struct {
	outbox
	c     *consumer
	turn  chan struct{}              // holds a token while the topic is read, or what is known is
	mute  bool                       // the topic cannot be read, or there is none; guarded by turn
	read  map[int32]int64            // how far; guarded by turn
	known map[archive.Line][]*copied // the newest good ones: several where they have one number; guarded by turn
	// others are the lines that another archive has anchors of; guarded by turn.
	others map[archive.Line]otherArchive
}

// An otherArchive is one of which Kafka has an anchor, signed by a good key of
// this one.
type otherArchive struct {
	id     string
	number int64
}

// A copied is a validly signed anchor that Kafka has.
type copied struct {
	number int64
	sum    chain.Hash // of the text
}

func newCopies(c *consumer) *copies {
	return &copies{outbox: newOutbox(), c: c, turn: make(chan struct{}, 1), read: map[int32]int64{}, known: map[archive.Line][]*copied{}, others: map[archive.Line]otherArchive{}}
}

// newest returns the newest good anchors of a line that Kafka has: none, one, or
// several of one number. It first reads what has come to the topic since.
func (k *copies) newest(ctx context.Context, l archive.Line) ([]*copied, error) {
	if k.c.AnchorTopic == "" {
		return nil, nil
	}
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-k.turn }()
	for attempt := 1; !k.mute; attempt++ {
		err := k.catchUp(ctx)
		switch {
		case err == nil:
			return slices.Clone(k.known[l]), nil
		case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.InvalidTopicException):
			k.mute = true
			k.c.warn("read "+k.c.AnchorTopic+": a bucket that went back in time is not noticed by it", err)
			continue
		case errors.Is(err, errGone):
			k.read = map[int32]int64{} // it was compacted, or cut, meanwhile
		case ctx.Err() == nil:
			k.c.warn("read "+k.c.AnchorTopic, err)
		}
		if err := k.c.backOff(ctx, attempt); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// checkOthers refuses a line of which the bucket has no good anchor while Kafka
// has one of another archive: the bucket was emptied, or is the wrong one, and to
// go on would put the new archive's anchors in the place of the old one's.
func (k *copies) checkOthers(ctx context.Context, l archive.Line) error {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-k.turn }()
	o, ok := k.others[l]
	if !ok || k.c.TrustBucket {
		return nil
	}
	return fmt.Errorf("%s/%d: %w: Kafka has anchor %d of archive %s, and the bucket holds archive %s, without a signed anchor of this partition: it was emptied, or it is another bucket. "+
		"Restore it, ledgerlake.json too; or, where a new archive is meant, start once with trust-bucket (and give each archive an anchor-topic of its own)", l.Topic, l.Partition, ErrWentBack, o.number, o.id, k.c.Root.ArchiveID)
}

// catchUp reads the topic from where it was read last, and makes it where there
// is none.
func (k *copies) catchUp(ctx context.Context) error {
	topics, err := k.c.admin.ListTopics(ctx, k.c.AnchorTopic)
	if err != nil {
		return err
	}
	t := topics[k.c.AnchorTopic]
	if errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
		return k.create(ctx)
	}
	if t.Err != nil {
		return t.Err
	}
	for {
		keys, strange := len(k.c.ring.Keys()), 0
		for number := range t.Partitions {
			n, err := k.readPartition(ctx, t.ID, number)
			if err != nil {
				return err
			}
			strange += n
		}
		if strange > 0 {
			if err := archive.LearnKeys(ctx, k.c.Archive, k.c.ring, k.c.Root.ArchiveID); err != nil {
				return err
			}
		}
		if strange == 0 || len(k.c.ring.Keys()) == keys {
			k.tellStrange(strange)
			return nil
		}
		k.read = map[int32]int64{} // what nobody signed may be signed by a key that was introduced since
	}
}

// tellStrange tells of copies that count for nothing.
func (k *copies) tellStrange(n int) {
	if n > 0 && !k.c.ring.Empty() {
		k.c.warn(fmt.Sprintf("%d anchors in %s are ignored", n, k.c.AnchorTopic), errors.New("no good key has signed them"))
	}
}

// create makes the topic. Where that is not allowed, somebody has to.
func (k *copies) create(ctx context.Context) error {
	_, err := k.c.admin.CreateTopic(ctx, 1, -1, map[string]*string{
		"cleanup.policy": kadm.StringPtr("compact"), "max.message.bytes": kadm.StringPtr(fmt.Sprint(maxCopy)),
	}, k.c.AnchorTopic)
	switch {
	case err == nil, errors.Is(err, kerr.TopicAlreadyExists):
		return nil
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed), errors.Is(err, kerr.PolicyViolation):
		k.mute = true
		k.c.warn(fmt.Sprintf("make the topic %s (cleanup.policy=compact, max.message.bytes=%d): make it, and start again", k.c.AnchorTopic, maxCopy), err)
		return nil
	}
	return err
}

// readPartition reads one partition of the topic to its end, and returns how many
// of its anchors no good key has signed.
func (k *copies) readPartition(ctx context.Context, id kadm.TopicID, number int32) (strange int, err error) {
	b, err := k.c.tryBounds(ctx, k.c.AnchorTopic, number)
	if err != nil {
		return 0, err
	}
	from := max(b.start, k.read[number])
	at := archive.Line{Topic: k.c.AnchorTopic, TopicID: encodeTopicID(id), Partition: number}
	err = k.c.reread(ctx, at, from, b.end, func(r *kgo.Record) error {
		if !k.see(r.Value) {
			strange++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	k.read[number] = b.end
	return strange, nil
}

// see takes in one record of the topic. It reports false where it is an anchor of
// this archive, or nothing that can be read, and no good key has signed it.
func (k *copies) see(value []byte) bool {
	if value == nil {
		return true
	}
	n, err := sign.Parse(value)
	if err != nil {
		return false
	}
	a, err := archive.DecodeAnchor(n.Text)
	if err != nil {
		return false
	}
	if a.ArchiveID != k.c.Root.ArchiveID {
		if k.c.ring.Check(n, sign.Anchor, a.Time.Time).State == sign.Good {
			k.others[a.Line()] = otherArchive{a.ArchiveID, a.Number}
		}
		return true // it may keep its copies here too
	}
	note := &anchorNote{Anchor: a, note: n, sum: archive.TextHash(n.Text)}
	if k.c.ring.Check(n, sign.Anchor, a.Time.Time).State != sign.Good {
		return false
	}
	k.c.introduce(a.Keys)
	k.learn(note)
	return true
}

// learn keeps the newest by number, not by offset: an old one that somebody sends
// again is not the newest.
func (k *copies) learn(n *anchorNote) {
	l := n.Line()
	known := k.known[l]
	switch {
	case len(known) == 0 || known[0].number < n.Number:
		k.known[l] = []*copied{{n.Number, n.sum}}
	case known[0].number == n.Number && !slices.ContainsFunc(known, func(c *copied) bool { return c.sum == n.sum }):
		k.known[l] = append(known, &copied{n.Number, n.sum})
	}
}

// run sends copies until ctx is done. A Kafka that does not take them holds up
// nothing.
func (k *copies) run(ctx context.Context) {
	opts := slices.Concat(k.c.Client, []kgo.Opt{
		kgo.WithContext(ctx), kgo.ProducerBatchMaxBytes(maxCopy), kgo.DisableIdempotentWrite(), kgo.RecordDeliveryTimeout(copyTimeout), kgo.ProducerLinger(0),
	})
	client, err := kgo.NewClient(opts...)
	if err != nil {
		k.c.warn("copy anchors to Kafka", err)
		return
	}
	defer client.Close()
	k.drain(ctx, k.c.backOff, func() bool { return k.sendAll(ctx, client) })
}

// sendAll sends what waits, and reports whether nothing of it is to be tried
// again.
func (k *copies) sendAll(ctx context.Context, client *kgo.Client) bool {
	all := true
	waiting, _ := k.waiting()
	for l, one := range waiting {
		r := &kgo.Record{Topic: k.c.AnchorTopic, Key: fmt.Appendf(nil, "%s/%s/%d", l.Topic, l.TopicID, l.Partition), Value: one.body}
		err := produce(ctx, client, r)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			k.c.copyFailed(l, fmt.Sprintf("copy anchor %d of %s/%d to %s", one.number, l.Topic, l.Partition, k.c.AnchorTopic), err)
		}
		if err == nil || isRefused(err) {
			k.sent(l, one)
			continue
		}
		all = false
	}
	return all
}

// produce sends a record. It does not wait for one that is on its way when ctx is
// done, as the client would.
func produce(ctx context.Context, client *kgo.Client, r *kgo.Record) error {
	done := make(chan error, 1)
	client.Produce(ctx, r, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isRefused reports whether to send a copy again changes nothing.
func isRefused(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.RecordListTooLarge) ||
		errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.InvalidTopicException)
}

// copyFailed tells of a copy of an anchor that is not where it should be.
func (sh *shared) copyFailed(l archive.Line, what string, err error) {
	if f := sh.events.CopyFailed; f != nil {
		f(l, what, err)
	}
}

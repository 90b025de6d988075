package pipeline

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/ledgerlake/ledgerlake/archive"
)

// errBeyondLog: the archive has offsets that Kafka has not.
var errBeyondLog = errors.New("the archive is ahead of Kafka")

// A bounds is what a partition of Kafka holds.
type bounds struct {
	start, end int64 // offsets; end is exclusive
}

// start finds where a partition stands: from the bucket what was archived, from
// Kafka what there is. It returns the partition, ready to run.
//
// The group's committed offset plays no part: a stale one, a reset one and none
// at all lead to the same place.
func (c *consumer) start(ctx context.Context, topic string, number int32) (*partition, error) {
	l, err := c.line(ctx, topic, number)
	if err != nil {
		return nil, err
	}
	st, w, err := c.resumeLine(ctx, l)
	if err != nil {
		return nil, err
	}
	b, err := c.bounds(ctx, topic, number)
	if err != nil {
		return nil, err
	}
	if st.NextOffset < 0 {
		st.NextOffset = b.start // a line begins at Kafka's log start, without a gap
	}
	if err := b.check(st.NextOffset); err != nil {
		return nil, err
	}
	p := newPartition(c.life, c.shared, st, w)
	if b.start > st.NextOffset {
		p.mail.push(mail{lostTo: b.start})
		p.fetchFrom = b.start
	}
	if f := c.events.Assigned; f != nil {
		f(l, st.NextOffset, st.Ordinal)
	}
	return p, nil
}

// check refuses an archive that knows offsets which Kafka has not. Going on
// would skip what Kafka writes there next.
func (b bounds) check(next int64) error {
	if next > b.end {
		return fmt.Errorf("%w: archived up to offset %d, Kafka ends at %d: Kafka lost data, or this is another cluster's archive", errBeyondLog, next, b.end)
	}
	return nil
}

// resumeLine reads a line from the bucket, and tries again until the answer is
// one about the line, not about the store.
func (c *consumer) resumeLine(ctx context.Context, l archive.Line) (*archive.State, *window, error) {
	for attempt := 1; ; attempt++ {
		st, w, err := c.resume(ctx, l)
		if err == nil || isVerdict(err) {
			return st, w, err
		}
		if f := c.events.Retrying; f != nil && ctx.Err() == nil {
			f(l, archive.SegmentPrefix(l), attempt, err)
		}
		if err := BackOff(ctx, attempt); err != nil {
			return nil, nil, err
		}
	}
}

// isVerdict reports whether an answer is about the line itself. An object that
// its store finds damaged is: to wait for it would hold up the partitions that
// start at the same time.
func isVerdict(err error) bool {
	return errors.Is(err, archive.ErrBreaks) || errors.Is(err, archive.ErrCompacted) || errors.Is(err, archive.ErrDamaged)
}

// line names a partition as the archive does, by the topic's id.
func (c *consumer) line(ctx context.Context, topic string, number int32) (archive.Line, error) {
	id, err := c.topicID(ctx, topic)
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
		if err := BackOff(ctx, attempt); err != nil {
			return "", err
		}
	}
}

// encodeTopicID returns a topic id in its usual form: base64url, 22 characters.
func encodeTopicID(id kadm.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

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
		if err := BackOff(ctx, attempt); err != nil {
			return bounds{}, err
		}
	}
}

func (c *consumer) tryBounds(ctx context.Context, topic string, number int32) (bounds, error) {
	starts, err := c.admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return bounds{}, err
	}
	ends, err := c.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return bounds{}, err
	}
	s, ok := starts.Lookup(topic, number)
	e, ok2 := ends.Lookup(topic, number)
	if !ok || !ok2 {
		return bounds{}, errors.New("no such partition")
	}
	return bounds{start: s.Offset, end: e.Offset}, errors.Join(s.Err, e.Err)
}

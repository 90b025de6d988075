package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
)

// The bytes of one answer when a stretch of a partition is read again. A batch
// that is larger still comes whole.
const rereadBytes = 1 << 20

// What is asked for at least, and for each offset.
const (
	rereadLeast  = 16 << 10
	rereadOffset = 1 << 10
)

// errGone: Kafka no longer has the offsets that were asked for.
var errGone = errors.New("no longer in Kafka")

// How long Kafka may take for one answer.
const askTimeout = 15 * time.Second

// How often Kafka may answer with nothing before that is an error.
const rereadSilences = 20

// reread calls see with every data record of the offsets from ≤ offset < to, in
// their order, as a reader of committed transactions sees them. Offsets that it
// passes over hold no such record: a control record, an aborted one, or one
// that was compacted away.
//
// It reads beside the group's own fetches, and moves no position. An error that
// matches errGone or errBeyondLog says that Kafka does not reach so far, one of
// see is returned as it is, and after any other it may be asked again.
func (c *consumer) reread(ctx context.Context, l archive.Line, from, to int64, see func(*kgo.Record) error) error {
	at := place{l.Topic, l.Partition}
	id, err := decodeTopicID(l.TopicID)
	if err != nil {
		return err
	}
	for silences := 0; from < to; {
		next, err := c.rereadOnce(ctx, at, id, from, to, see)
		switch {
		case next > from:
			from, silences = next, 0
			continue
		case errors.Is(err, kgo.ErrMaxDecompress):
			return fmt.Errorf("the batch at offset %d inflates to more than the setting memory allows: %w", from, err)
		case err == nil || errors.Is(err, kerr.OffsetOutOfRange):
			// A silence is no answer: Kafka is asked where it begins and ends.
			if err := c.reaches(ctx, at, from, to); err != nil {
				return err
			}
		default:
			return err
		}
		if silences++; silences > rereadSilences {
			return fmt.Errorf("%s/%d: Kafka gives nothing from offset %d on, and says that it has it", at.topic, at.number, from)
		}
	}
	return nil
}

// reaches returns nil if Kafka holds the offsets from ≤ offset < to, committed.
func (c *consumer) reaches(ctx context.Context, at place, from, to int64) error {
	b, err := c.tryBounds(ctx, at.topic, at.number)
	switch {
	case err != nil:
		return err
	case from < b.start:
		return fmt.Errorf("offset %d: %w: it begins at %d", from, errGone, b.start)
	case to > b.end:
		return fmt.Errorf("offset %d: %w: Kafka ends at %d", b.end, errBeyondLog, b.end)
	}
	return nil
}

// rereadOnce makes one fetch and returns the offset after what it passed.
func (c *consumer) rereadOnce(ctx context.Context, at place, topicID kadm.TopicID, from, to int64, see func(*kgo.Record) error) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	leader, err := c.leader(ctx, at)
	if err != nil {
		return from, err
	}
	resp, err := c.client.Broker(int(leader)).RetriableRequest(ctx, rereadRequest(at, topicID, from, to))
	var p *kmsg.FetchResponseTopicPartition
	if err == nil {
		p, err = onlyPartition(resp.(*kmsg.FetchResponse))
	}
	if err != nil {
		c.leaders.Delete(at) // maybe another one leads by now
		return from, err
	}
	o := kgo.ProcessFetchPartitionOpts{Offset: from, IsolationLevel: kgo.ReadCommitted(), Topic: at.topic, Partition: at.number}
	fetched, next := kgo.ProcessFetchPartition(o, p, c.inflater.forOneAnswer(), nil)
	for _, r := range fetched.Records {
		if r.Offset >= to {
			break
		}
		if err := see(r); err != nil {
			return from, err
		}
	}
	if errors.Is(fetched.Err, errLater) {
		return next, nil // the rest comes with the next answer
	}
	return next, fetched.Err
}

func rereadRequest(at place, topicID kadm.TopicID, from, to int64) *kmsg.FetchRequest {
	most := int32(min(rereadBytes, rereadLeast+rereadOffset*min(to-from, rereadBytes))) // what lies behind to would be thrown away
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = int32(fetchWait.Milliseconds())
	req.MinBytes = 1
	req.MaxBytes = most
	req.IsolationLevel = 1 // committed
	req.SessionEpoch = -1  // no session
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = at.number, from, most
	p.CurrentLeaderEpoch, p.LastFetchedEpoch = -1, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = at.topic, topicID
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func onlyPartition(resp *kmsg.FetchResponse) (*kmsg.FetchResponseTopicPartition, error) {
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errors.New("a fetch of one partition was answered with none, or several")
	}
	p := &resp.Topics[0].Partitions[0]
	return p, kerr.ErrorForCode(p.ErrorCode)
}

// leader returns which broker leads a partition, as was last heard.
func (c *consumer) leader(ctx context.Context, at place) (int32, error) {
	if known, ok := c.leaders.Load(at); ok {
		return known.(int32), nil
	}
	topics, err := c.admin.ListTopics(ctx, at.topic)
	if err != nil {
		return 0, err
	}
	t := topics[at.topic]
	if t.Err != nil {
		return 0, t.Err
	}
	p, ok := t.Partitions[at.number]
	if !ok {
		return 0, kerr.UnknownTopicOrPartition
	}
	if p.Err == nil {
		c.leaders.Store(at, p.Leader)
	}
	return p.Leader, p.Err
}

// errMayNotAsk: whether a record that is not there was compacted away, or never
// was, cannot be told.
var errMayNotAsk = errors.New("no record in Kafka, and this process may not ask whether the topic is compacted (DescribeConfigs)")

// isCompacted reports whether a topic loses records that a later one of their
// key replaces.
func (c *consumer) isCompacted(ctx context.Context, topic string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	configs, err := c.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return false, err
	}
	config, err := configs.On(topic, nil)
	if err = cmp.Or(err, config.Err); errors.Is(err, kerr.TopicAuthorizationFailed) {
		return false, fmt.Errorf("%w: %w", errMayNotAsk, err)
	}
	return cleansByKey(config), err
}

func cleansByKey(config kadm.ResourceConfig) bool {
	for _, entry := range config.Configs {
		if entry.Key == "cleanup.policy" && entry.Value != nil {
			return strings.Contains(*entry.Value, "compact")
		}
	}
	return false
}

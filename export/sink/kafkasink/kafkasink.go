// Package kafkasink delivers events to topics of Apache Kafka: the tenant is the
// key, so that the rows of a tenant are in one partition, in the order of their
// log.
//
// Headers: tenant, event, kind, seq and row_hash of a row, id of all else. The
// producer is idempotent and waits for all in-sync replicas: delivered is what they
// have. What was sent before an attempt failed, or before a crash, may be there
// twice; row_hash tells.
//
// It creates no topic.
package kafkasink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// A Connection is how brokers are reached: options of franz-go's client.
type Connection = []kgo.Opt

// A Compression is how batches are compressed.
type Compression string

// The compressions.
const (
	None   Compression = "none"
	Gzip   Compression = "gzip"
	Snappy Compression = "snappy"
	LZ4    Compression = "lz4"
	Zstd   Compression = "zstd"
)

var codecs = map[Compression]kgo.CompressionCodec{
	None: kgo.NoCompression(), Gzip: kgo.GzipCompression(), Snappy: kgo.SnappyCompression(), LZ4: kgo.Lz4Compression(), Zstd: kgo.ZstdCompression(),
}

// What is usual.
const (
	DefaultMessageBytes = 1_000_000 // Kafka's default for topics is 1,048,588
	DefaultTimeout      = 30 * time.Second
)

// header is the room that a record needs beside key and body.
const header = 2048

// maxTopic is the longest name of a topic.
const maxTopic = 249

// Options say which topics they are.
type Options struct {
	Connection Connection
	// Topic is a topic's name. {tenant} and {kind} stand for what an event is of,
	// with every byte but letters, digits and - written as _ and two hex digits.
	Topic        string
	MessageBytes int // of the largest batch of records that the topics take; 0 is usual
	Compression  Compression
	Timeout      time.Duration // of one attempt; 0 is usual
}

// A Sink delivers to one cluster.
type Sink struct {
	o      Options
	client *kgo.Client
}

// New returns a Sink. Nothing is reached yet. The error says which option is wrong.
func New(o Options) (*Sink, error) {
	o.MessageBytes = cmp.Or(o.MessageBytes, DefaultMessageBytes)
	o.Compression = cmp.Or(o.Compression, Zstd)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	codec, ok := codecs[o.Compression]
	switch {
	case !ok:
		return nil, fmt.Errorf("kafka: compression %q: want none, gzip, snappy, lz4 or zstd", o.Compression)
	case !ValidTopic(o.Topic):
		return nil, fmt.Errorf("kafka: topic %q: want letters, digits, ., _ and -, and {tenant} or {kind}", o.Topic)
	case o.MessageBytes < 2*header:
		return nil, fmt.Errorf("kafka: messages of %d bytes: want %d at least", o.MessageBytes, 2*header)
	}
	opts := slices.Clone(o.Connection)
	opts = append(
		opts,
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(int32(o.MessageBytes)),
		kgo.RecordDeliveryTimeout(o.Timeout), kgo.ProduceRequestTimeout(min(o.Timeout, 10*time.Second)), kgo.AllowIdempotentProduceCancellation(), // an attempt ends; what it did is sent again
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.ProducerLinger(0),
	)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return &Sink{o: o, client: client}, nil
}

// ValidTopic reports whether s can be the name of topics.
func ValidTopic(s string) bool {
	s = strings.NewReplacer("{tenant}", "t", "{kind}", "k").Replace(s)
	if s == "" || len(s) > maxTopic || s == "." || s == ".." {
		return false
	}
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

// Limits implements [sink.Sink].
func (s *Sink) Limits() sink.Limits {
	return sink.Limits{Events: 2000, BatchBytes: 4 << 20, EventBytes: int64(s.o.MessageBytes - header)}
}

// Close implements [sink.Sink].
func (s *Sink) Close(context.Context) error {
	s.client.Close()
	return nil
}

// Deliver implements [sink.Sink].
func (s *Sink) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	result := sink.All(len(batch), sink.Verdict{})
	type done struct {
		at  int
		err error
	}
	all := make(chan done, len(batch))
	for i := range batch {
		record, err := s.record(&batch[i])
		if err != nil {
			result.Verdicts[i] = sink.Verdict{Outcome: sink.Poison, Reason: err.Error()}
			all <- done{-1, nil}
			continue
		}
		s.client.Produce(ctx, record, func(_ *kgo.Record, err error) { all <- done{i, err} })
	}
	for range batch {
		if d := <-all; d.at >= 0 {
			result.Verdicts[d.at] = Verdict(d.err)
		}
	}
	return result
}

// record returns the record of a message. It shares the message's body, which
// franz-go is done with once its promise is kept.
func (s *Sink) record(m *sink.Message) (*kgo.Record, error) {
	ev := m.Event
	kind := string(ev.Kind)
	if ev.IsRow() {
		kind = ev.Row.Kind.S
	}
	topic := strings.NewReplacer("{tenant}", Escape(ev.Tenant), "{kind}", Escape(kind)).Replace(s.o.Topic)
	if len(topic) > maxTopic {
		return nil, fmt.Errorf("topic %.40s…: a name of %d letters, at most %d can be", topic, len(topic), maxTopic)
	}
	r := &kgo.Record{Topic: topic, Value: m.Body, Headers: headers(ev, kind)}
	if ev.Tenant != "" {
		r.Key = []byte(ev.Tenant)
	}
	return r, nil
}

func headers(ev *event.Event, kind string) []kgo.RecordHeader {
	h := []kgo.RecordHeader{
		{Key: "tenant", Value: []byte(ev.Tenant)},
		{Key: "event", Value: []byte(ev.Kind)},
		{Key: "kind", Value: []byte(kind)},
	}
	if !ev.IsRow() {
		return append(h, kgo.RecordHeader{Key: "id", Value: []byte(ev.ID)})
	}
	return append(h,
		kgo.RecordHeader{Key: "seq", Value: strconv.AppendInt(nil, ev.Seq, 10)},
		kgo.RecordHeader{Key: "row_hash", Value: []byte(ev.ID)})
}

// Escape writes a text so that it can be a part of a topic's name between dots: all
// but letters, digits and - as _ and two hex digits. No two texts are written alike.
func Escape(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-':
			b.WriteByte(c)
		default:
			b.WriteByte('_')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// Verdict returns what an error of producing means for its record.
func Verdict(err error) sink.Verdict {
	if err == nil {
		return sink.Verdict{Outcome: sink.Delivered}
	}
	return sink.Verdict{Outcome: outcome(err), Reason: err.Error()}
}

func outcome(err error) sink.Outcome {
	is := func(some ...error) bool {
		for _, e := range some {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	switch {
	case is(kerr.MessageTooLarge, kerr.RecordListTooLarge):
		return sink.Split
	case is(kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.UnsupportedForMessageFormat):
		return sink.Poison
	case is(kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InvalidTopicException, kerr.PolicyViolation, kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed,
		kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState, kerr.InvalidRequiredAcks, kerr.UnsupportedCompressionType):
		return sink.Suspend
	}
	return sink.Retry
}

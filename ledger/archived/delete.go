package archived

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/ledger"
)

// SoftDelete orders that all slots of a record are erased, and returns once the
// order is acknowledged by Kafka. It is in force once ingest has archived it. A
// record of which something was erased before, or is ordered to be, keeps that
// sentinel. Two processes that order at the same moment both do; the row keeps
// the one that was archived first.
func (l *Ledger) SoftDelete(ctx context.Context, tenant, recordID string, r ledger.Request) (chain.Sentinel, error) {
	if l.o.Send == nil {
		return chain.Sentinel{}, fmt.Errorf("%w: archived.Options.Send is not set", ledger.ErrUnwired)
	}
	id, err := audit.ParseRecordID(recordID)
	if err != nil {
		return chain.Sentinel{}, fmt.Errorf("%w: %w", ledger.ErrUnknownRecord, err)
	}
	if err := audit.ValidTenant(tenant); err != nil {
		return chain.Sentinel{}, err
	}
	known, err := l.sentinel(ctx, tenant, id)
	if err != nil || known.ID != "" {
		return known, err
	}
	return l.order(ctx, deletion{tenant, id}, r)
}

// sentinel returns that of a record, zero if it has none.
func (l *Ledger) sentinel(ctx context.Context, tenant, id string) (s chain.Sentinel, err error) {
	if err := l.look(ctx, -1); err != nil {
		return s, err
	}
	rows, err := l.archive.Record(ctx, tenant, id)
	if err != nil {
		return s, err
	}
	found := false
	for _, row := range rows {
		if audit.IsControlKind(row.Kind.S) {
			continue // what governs is no call
		}
		found = true
		if row.Redaction.Valid {
			return chain.ParseSentinel(row.Redaction.S)
		}
	}
	if !found {
		return s, ledger.ErrUnknownRecord
	}
	return s, nil
}

// An ordering is an order that is being sent, or was. What it came to stands in err
// once done is closed.
type ordering struct {
	sentinel chain.Sentinel
	done     chan struct{}
	err      error
}

var errUnsent = errors.New("the order was not sent")

// order sends the order, unless it was sent from here and is not archived yet. Of
// several that want the same, one sends it, and the others wait for what comes of it.
func (l *Ledger) order(ctx context.Context, d deletion, r ledger.Request) (chain.Sentinel, error) {
	at := time.Now().UTC().Truncate(time.Millisecond)
	id, err := ulid.New(ulid.Timestamp(at), rand.Reader)
	if err != nil {
		return chain.Sentinel{}, err
	}
	document := control.Redaction{Target: control.Target{Record: &d.record}, Erasure: control.Erasure{All: true}, Reason: r.Reason, By: r.By}
	if r.RequestRef != "" {
		document.RequestRef = &r.RequestRef
	}
	own := &ordering{sentinel: document.Sentinel(id.String()), done: make(chan struct{}), err: errUnsent}
	for first := l.claim(d, own); first != own; first = l.claim(d, own) {
		select {
		case <-first.done:
		case <-ctx.Done():
			return chain.Sentinel{}, fmt.Errorf("an order of the same is not acknowledged yet: %w", ctx.Err())
		}
		if first.err == nil {
			return first.sentinel, nil
		}
	}
	defer l.end(d, own)
	own.err = l.send(ctx, d.tenant, &document, own.sentinel.ID, at)
	if own.err != nil {
		return chain.Sentinel{}, own.err
	}
	return own.sentinel, nil
}

// maxOrdered is how many orders are remembered. Long before, the archive has them.
const maxOrdered = 100_000

// claim notes an order, unless there is one, and returns what is noted. One that the
// archive has as cancelled is none.
func (l *Ledger) claim(d deletion, own *ordering) *ordering {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.ordered[d]; first != nil && !l.cancelled(d.tenant, first.sentinel.ID) {
		return first
	}
	if len(l.ordered) >= maxOrdered {
		clear(l.ordered)
	}
	l.ordered[d] = own
	return own
}

// cancelled reports whether the archive has an order as cancelled.
func (l *Ledger) cancelled(tenant, id string) bool {
	o := l.archive.Governance().Tenant(tenant).Order(id)
	return o != nil && o.Cancelled
}

// end tells who waits what came of an order; one that could not be sent is taken back.
func (l *Ledger) end(d deletion, own *ordering) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.err != nil && l.ordered[d] == own {
		delete(l.ordered, d)
	}
	close(own.done)
}

func (l *Ledger) send(ctx context.Context, tenant string, document *control.Redaction, id string, at time.Time) error {
	value, err := document.Value(tenant, id, at)
	if err != nil {
		return err
	}
	m, err := control.Record(l.archive.Root().ArchiveID, tenant, document.Kind(), id, value, l.o.Signer)
	if err != nil {
		return err
	}
	return l.o.Send(ctx, m)
}

// A Sender sends to the control topic: its Send is [Options.Send].
type Sender struct {
	client *kgo.Client
	topic  string
}

// sendTimeout is how long brokers may take to take an order.
const sendTimeout = 30 * time.Second

// NewSender returns a sender to a control topic, "" meaning [audit.ControlTopic];
// connect says how Kafka is reached. It is to be closed.
func NewSender(topic string, connect ...kgo.Opt) (*Sender, error) {
	if topic == "" {
		topic = audit.ControlTopic
	}
	client, err := kgo.NewClient(append(connect[:len(connect):len(connect)],
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordDeliveryTimeout(sendTimeout))...)
	if err != nil {
		return nil, err
	}
	return &Sender{client, topic}, nil
}

// Close closes the connections.
func (s *Sender) Close() { s.client.Close() }

// Send sends one record to the topic's only partition, and returns nil once it is
// acknowledged. It never makes the topic: who may write to it is for its operator
// to say.
func (s *Sender) Send(ctx context.Context, m audit.Message) error {
	if err := s.there(ctx); err != nil {
		return err
	}
	r := &kgo.Record{Topic: s.topic, Partition: 0, Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
	}
	if err := s.client.ProduceSync(ctx, r).FirstErr(); err != nil {
		return fmt.Errorf("control topic %s: %w", s.topic, err)
	}
	return nil
}

// there requires that the topic is there, with one partition: two would have no
// order among them.
func (s *Sender) there(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	topics, err := kadm.NewClient(s.client).ListTopics(ctx, s.topic)
	if err != nil {
		return fmt.Errorf("control topic %s: %w", s.topic, err)
	}
	found := topics[s.topic]
	switch {
	case errors.Is(found.Err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("control topic %s does not exist: make it with one partition, cleanup.policy=delete and retention.ms=-1 (docs/erasure.md)", s.topic)
	case found.Err != nil:
		return fmt.Errorf("control topic %s: %w", s.topic, found.Err)
	case len(found.Partitions) != 1:
		return fmt.Errorf("control topic %s has %d partitions: want one, for what governs a tenant has one order", s.topic, len(found.Partitions))
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
)

// sendTimeout is how long brokers may take to take records of the control topic.
const sendTimeout = 30 * time.Second

// A producer writes to the control topic.
type producer struct {
	client *kgo.Client
	topic  string
}

func (t *tool) newProducer() (*producer, error) {
	client, err := kgo.NewClient(append(t.kafka[:len(t.kafka):len(t.kafka)],
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordDeliveryTimeout(sendTimeout))...)
	if err != nil {
		return nil, err
	}
	return &producer{client, t.settings.ControlTopic}, nil
}

func (p *producer) close() { p.client.Close() }

// send produces records to the control topic's only partition. The topic is never
// made: who may write to it is for its operator to say.
func (t *tool) send(ctx context.Context, records []audit.Message) (err error) {
	if len(records) == 0 {
		return nil
	}
	if t.producer == nil {
		if t.producer, err = t.newProducer(); err != nil {
			return err
		}
	}
	return t.producer.send(ctx, records)
}

func (p *producer) send(ctx context.Context, records []audit.Message) error {
	if err := p.there(ctx); err != nil {
		return err
	}
	all := make([]*kgo.Record, len(records))
	for i := range records {
		m := &records[i]
		r := &kgo.Record{Topic: p.topic, Partition: 0, Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		all[i] = r
	}
	if err := p.client.ProduceSync(ctx, all...).FirstErr(); err != nil {
		return fmt.Errorf("control topic %s: %w", p.topic, err)
	}
	return nil
}

// there requires that the topic is there, with one partition: two would have no
// order among them.
func (p *producer) there(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	topics, err := kadm.NewClient(p.client).ListTopics(ctx, p.topic)
	if err != nil {
		return fmt.Errorf("control topic %s: %w", p.topic, err)
	}
	found := topics[p.topic]
	switch {
	case errors.Is(found.Err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("control topic %s does not exist: make it with one partition, cleanup.policy=delete and retention.ms=-1, and let nobody but operators and %s write to it (docs/erasure.md)", p.topic, program)
	case found.Err != nil:
		return fmt.Errorf("control topic %s: %w", p.topic, found.Err)
	case len(found.Partitions) != 1:
		return fmt.Errorf("control topic %s has %d partitions: want one, for what governs a tenant has one order", p.topic, len(found.Partitions))
	}
	return nil
}

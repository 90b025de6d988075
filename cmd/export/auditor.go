package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/kafka"
)

// An auditor records changes of destinations: a decision record for each, in a
// topic that ledgerlake-ingest archives. The same change is the same record, so
// that one that is sent again is dropped as a repeat.
type auditor struct {
	client        *kgo.Client
	topic, tenant string
	log           *zap.Logger
	queue         chan stream.State
}

// newAuditor returns the auditor of the settings; nil where none is set.
func (e *exporter) newAuditor(ctx context.Context) (*auditor, error) {
	c := &e.settings
	if c.AuditTopic == "" {
		return nil, nil
	}
	opts, err := kafka.Connect(ctx, kafka.Connection{
		Brokers: c.Brokers, Kafka: &c.Kafka, Origins: e.origins, Agent: program + "/" + version,
		Warn: func(what string, err error) { e.often.Warn(what, zap.Error(err)) },
	})
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts, kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordDeliveryTimeout(time.Minute))...)
	if err != nil {
		return nil, err
	}
	return &auditor{client: client, topic: c.AuditTopic, tenant: c.AuditTenant, log: e.log, queue: make(chan stream.State, 1024)}, nil
}

// record has a change recorded. It may be called on nil.
func (a *auditor) record(s stream.State) {
	if a == nil {
		return
	}
	select {
	case a.queue <- s:
	default:
		a.log.Error("a change of a destination is not recorded: too many wait", zap.String("destination", s.Name))
	}
}

// begin sends what is recorded, until the func that it returns is called, which
// waits for what is left. It may be called on nil.
func (a *auditor) begin(ctx context.Context) (end func()) {
	if a == nil {
		return func() {}
	}
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case s := <-a.queue:
				a.send(ctx, s)
				continue
			default:
			}
			select {
			case s := <-a.queue:
				a.send(ctx, s)
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		a.client.Close()
	}
}

// lastSend is how long a change may take to be sent once the process is to end. The
// next start sends it again.
const lastSend = 5 * time.Second

func (a *auditor) send(ctx context.Context, s stream.State) {
	value, err := a.decision(s)
	if err != nil {
		a.log.Error("a change of a destination is not recorded", zap.Error(err))
		return
	}
	for attempt := 1; ; attempt++ {
		within, cancel := ctx, context.CancelFunc(func() {})
		if ctx.Err() != nil {
			within, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastSend)
		}
		err := a.client.ProduceSync(within, &kgo.Record{
			Topic: a.topic, Key: []byte(a.tenant), Value: value,
			Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte(a.tenant)}, {Key: "ledgerlake-kind", Value: []byte("decision")}},
		}).FirstErr()
		cancel()
		if err == nil {
			return
		}
		a.log.Warn("a change of a destination cannot be recorded; trying again", zap.String("destination", s.Name), zap.Int("attempt", attempt), zap.Error(err))
		if ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(time.Duration(attempt)*time.Second, time.Minute)):
		}
	}
}

// decision is a decision record: docs/wire-columns.md.
func (a *auditor) decision(s stream.State) ([]byte, error) {
	return json.Marshal(map[string]any{
		"kind": "decision", "tenantId": a.tenant, "decisionId": fmt.Sprintf("export/%s/%s/%d", s.ArchiveID, s.Name, s.Count),
		"timestamp": s.Since.UTC().Format(archive.TimeLayout), "inputs": map[string]any{"intent": "export-destination"},
		"verdict": s.Change, "action": map[string]any{"destination": s.Name, "type": s.Type, "state": s.State, "fingerprint": s.Fingerprint},
		"outcome": s.State,
		"context": map[string]any{"reason": s.Reason, "by": s.By, "settings": s.Spec},
	})
}

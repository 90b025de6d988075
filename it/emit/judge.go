//go:build it

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/emit"
)

// A findings is what the topic has.
type findings struct {
	calls    map[string]int64 // by tenant
	told     map[string]int64 // the greatest count of its queue-dropped records
	notes    int              // queue-dropped records
	faults   []string         // the first few
	nFaults  int
	ids      map[string]bool
	places   map[audit.Fingerprint]bool
	tenantAt map[string]int32 // partition of each tenant
}

func (f *findings) fault(format string, args ...any) {
	if f.nFaults++; len(f.faults) < 10 {
		f.faults = append(f.faults, fmt.Sprintf(format, args...))
	}
}

// readBack reads the topic, all of it, not through the proxy.
func (t *trial) readBack(ctx context.Context) (*findings, error) {
	f := &findings{calls: map[string]int64{}, told: map[string]int64{}, ids: map[string]bool{}, places: map[audit.Fingerprint]bool{}, tenantAt: map[string]int32{}}
	client, err := kgo.NewClient(kgo.SeedBrokers(t.kafka.Addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	var left int64
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d records are left to read: %w", left, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			f.see(r)
		})
	}
	return f, nil
}

// see takes in one record.
func (f *findings) see(r *kgo.Record) {
	m := audit.Message{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, audit.MessageHeader{Name: h.Key, Value: h.Value})
	}
	var row audit.Record
	if reject := new(audit.Decoder).Decode(&row, &m); reject != nil {
		f.fault("an archive rejects %s: %s: %s", r.Value, reject.Reason, reject.Detail)
		return
	}
	tenant := row.TenantID.S
	if at, ok := row.Coordinates(); !ok || f.places[at] {
		f.fault("a place that another record has: %s", r.Value)
	} else {
		f.places[at] = true
	}
	if f.ids[row.RecordID.S] {
		f.fault("an id that another record has: %s", r.Value)
	}
	f.ids[row.RecordID.S] = true
	if at, known := f.tenantAt[tenant]; known && at != r.Partition {
		f.fault("tenant %s is in partitions %d and %d", tenant, at, r.Partition)
	}
	f.tenantAt[tenant] = r.Partition
	if row.Kind.S != audit.KindQueueDropped {
		f.calls[tenant]++
		return
	}
	f.notes++
	f.tell(tenant, &row)
}

// tell takes in a queue-dropped record.
func (f *findings) tell(tenant string, row *audit.Record) {
	var context struct {
		ResultDetail struct {
			Reason string
			Count  int64
		}
	}
	if err := json.Unmarshal(row.Slots[audit.SlotContext], &context); err != nil || context.ResultDetail.Reason != "queue-full" {
		f.fault("a queue-dropped record: %s: %v", row.Slots[audit.SlotContext], err)
	}
	f.told[tenant] = max(f.told[tenant], context.ResultDetail.Count)
}

// judge compares what was recorded with what was found, tenant by tenant, and with
// what the emitter counted.
func judge(out io.Writer, w *work, f *findings, s emit.Stats) error {
	var recorded, found, told int64
	for tenant, n := range w.recorded {
		recorded, found, told = recorded+n, found+f.calls[tenant], told+f.told[tenant]
		if f.calls[tenant]+f.told[tenant] != n {
			f.fault("tenant %s: %d recorded, %d found, %d told of", tenant, n, f.calls[tenant], f.told[tenant])
		}
	}
	if len(f.calls) > len(w.recorded) {
		f.fault("%d tenants, of %d", len(f.calls), len(w.recorded))
	}
	if want := (emit.Stats{Recorded: recorded, Acknowledged: found, Dropped: told}); s != want {
		f.fault("the emitter counted %+v, the topic says %+v", s, want)
	}
	fmt.Fprintf(out, "\n%-22s %9d\n%-22s %9d\n%-22s %9d  in %d queue-dropped records\n%-22s %9d\n%-22s %9d\n", "recorded", recorded,
		"found in the topic", found, "told of as dropped", told, f.notes, "lost", recorded-found-told, "twice", found+int64(f.notes)-int64(len(f.places)))
	if f.nFaults == 0 {
		fmt.Fprintln(out, "nothing lost but what is told of, nothing twice")
		return nil
	}
	slices.Sort(f.faults)
	for _, fault := range f.faults {
		fmt.Fprintln(out, "FAULT", fault)
	}
	return errors.New(fmt.Sprint(f.nFaults, " faults"))
}

package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// produce sends n records to a line, by a client, as far as the model goes with
// the given fate.
func (w *world) produce(c *kgo.Client, l *line, n int, f fate) []*record {
	now := time.Now().Truncate(time.Millisecond)
	var out []*record
	var send []*kgo.Record
	w.mu.Lock()
	for range n {
		kind, tenant, value := w.values.next(l.Partition, w.plan.tenants, now)
		key := []byte(tenant)
		if w.plan.compacted {
			key = fmt.Appendf(nil, "k%d", w.dice.IntN(12))
		}
		w.counts[kind]++
		out = append(out, l.add(f, key, value, now))
		send = append(send, &kgo.Record{Topic: topic, Partition: l.Partition, Key: key, Value: value, Timestamp: now})
	}
	w.trace.say("", "produce %d records to %s, offsets %d to %d (%v)", n, w.name(l.Line), out[0].offset, l.end(), f)
	w.mu.Unlock()
	for i, res := range c.ProduceSync(context.Background(), send...) {
		if res.Err != nil || res.Record.Offset != out[i].offset {
			w.t.Fatalf("seed %d: produce: %v, offset %d, want %d", w.seed, res.Err, res.Record.Offset, out[i].offset)
		}
	}
	return out
}

// begin starts the transaction, and sends its first records.
func (w *world) begin() {
	if w.transactional == nil {
		w.transactional = w.client(kgo.TransactionalID("t"), kgo.TransactionTimeout(15*time.Minute),
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(time.Millisecond))
	}
	if err := w.transactional.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	for _, l := range w.current() {
		if w.dice.chance(0.6) {
			w.inTransaction = append(w.inTransaction, w.produce(w.transactional, l, w.dice.from(1, 6), open)...)
		}
	}
	if len(w.inTransaction) == 0 {
		w.inTransaction = w.produce(w.transactional, w.current()[0], 1, open)
	}
}

// end ends the transaction that is open. Its marker takes an offset in each of
// its partitions.
func (w *world) end(commit bool) {
	if len(w.inTransaction) == 0 {
		return
	}
	kind, f, try := "abort", aborted, kgo.TryAbort
	if commit || w.plan.compacted { // this broker takes the marker of an abort, and goes on to list it
		kind, f, try = "commit", delivered, kgo.TryCommit
	}
	w.mu.Lock()
	w.counts[kind]++
	in := map[int32]bool{}
	for _, r := range w.inTransaction {
		r.fate = f
		in[r.message.Partition] = true
	}
	for _, l := range w.current() {
		if in[l.Partition] {
			l.add(control, nil, nil, time.Time{})
		}
	}
	w.inTransaction = nil
	w.trace.say("", "%s the transaction", kind)
	w.mu.Unlock()
	if err := w.transactional.EndTransaction(context.Background(), try); err != nil {
		w.t.Fatal(err)
	}
	for _, l := range w.current() {
		if end := w.kafka.PartitionInfo(topic, l.Partition).HighWatermark; end != l.end() {
			w.t.Fatalf("seed %d: Kafka ends at %d, the model at %d", w.seed, end, l.end())
		}
	}
}

// moveLeader lets another broker lead a partition, which takes a new epoch.
func (w *world) moveLeader(l *line) {
	info := w.kafka.PartitionInfo(topic, l.Partition)
	if err := w.kafka.MoveTopicPartition(topic, l.Partition, (info.Leader+1)%int32(w.plan.brokers)); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.epoch = w.kafka.PartitionInfo(topic, l.Partition).Epoch
	w.counts["leader-moved"]++
	w.trace.say("", "%s has another leader, epoch %d", w.name(l.Line), l.epoch)
}

// compact lets Kafka take the records that later ones of their key supersede.
// A transaction is ended first: this broker would take its records too, which
// Kafka never does.
func (w *world) compact() {
	w.end(w.dice.chance(0.5))
	w.mu.Lock()
	for _, l := range w.current() {
		later := map[string]bool{}
		for i := len(l.records) - 1; i >= 0; i-- {
			r := l.records[i]
			k := string(r.message.Key)
			switch {
			case r.fate == control:
				r.superseded = true
			case r.fate == delivered:
				r.superseded = r.superseded || later[k]
				later[k] = true
			}
		}
	}
	w.counts["kafka-compacts"]++
	w.trace.say("", "Kafka compacts")
	w.mu.Unlock()
	w.kafka.Compact()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.current() { // this broker's log begins at what is left
		l.start = max(l.start, w.kafka.PartitionInfo(topic, l.Partition).LogStartOffset)
	}
}

// deleteRecords moves the log start of a line, often past what is archived.
func (w *world) deleteRecords(l *line) {
	info := w.kafka.PartitionInfo(topic, l.Partition)
	start := max(info.LogStartOffset, l.start) // kfake's goes back when it compacts
	if info.LastStableOffset <= start {
		return
	}
	to := start + 1 + w.dice.Int64N(info.LastStableOffset-start)
	if w.dice.chance(0.5) {
		to = info.LastStableOffset
	}
	w.mu.Lock()
	l.start = to
	w.counts["kafka-deletes"]++
	w.trace.say("", "Kafka deletes %s below offset %d", w.name(l.Line), to)
	w.mu.Unlock()
	if err := w.kafka.DeleteRecords(topic, l.Partition, to); err != nil {
		w.t.Fatal(err)
	}
}

// deleteUnder lets Kafka delete what a process is just about to read.
func (w *world) deleteUnder(l *line) {
	w.end(true)
	w.withOne(func(p *process) { p.freeze(w.dice.between(time.Second, session/2), "while Kafka deletes") })
	for range 2 { // the first is sent to a fetch that waits
		w.produce(w.producer, l, w.dice.from(1, 5), delivered)
		time.Sleep(w.dice.between(10*time.Millisecond, 200*time.Millisecond))
	}
	w.deleteRecords(l)
}

// recreate deletes the topic and makes it again.
func (w *world) recreate() {
	w.end(true)
	w.mu.Lock()
	for _, l := range w.current() {
		l.gone = true
	}
	w.counts["topic-recreated"]++
	w.trace.say("", "the topic is deleted and created again")
	w.mu.Unlock()
	if err := w.kafka.DeleteTopic(topic); err != nil {
		w.t.Fatal(err)
	}
	w.makeTopic()
	for _, c := range []*kgo.Client{w.producer, w.transactional} {
		if c != nil {
			c.PurgeTopicsFromProducing(topic)
		}
	}
	time.Sleep(200 * time.Millisecond)
}

// meddle moves the group's offsets, or takes them away. Kafka allows it only
// while the group has no member.
func (w *world) meddle(group string) {
	admin := kadm.NewClient(w.producer)
	ctx := context.Background()
	w.mu.Lock()
	w.meddling = true
	w.mu.Unlock()
	kind := one(w.dice, "back", "ahead", "deleted")
	var err error
	switch kind {
	case "deleted":
		_, err = admin.DeleteGroup(ctx, group)
	default:
		var o kadm.Offsets
		w.mu.Lock()
		for _, l := range w.current() {
			at := l.end()
			if kind == "back" {
				at = w.dice.Int64N(max(1, l.state.NextOffset))
			}
			o.AddOffset(topic, l.Partition, at, -1)
		}
		w.mu.Unlock()
		err = admin.CommitAllOffsets(ctx, group, o)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meddling = false
	w.trace.say("", "the offsets of group %s are moved (%s): %v", group, kind, err)
	if err == nil {
		w.counts["group-offset-"+kind]++
	}
}

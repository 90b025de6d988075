//go:build it

package cases

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// countJoins counts requests to join the group from now on.
func (s *stage) countJoins() func() int64 {
	var n atomic.Int64
	s.kafka.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.kafka.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	return n.Load
}

// gaps returns all gaps of a topic that its segments state, in order.
func (s *stage) gaps(a oracle.Archive, topic string) []archive.Gap {
	s.Helper()
	segments, err := a.Segments()
	s.must(err)
	var gaps []archive.Gap
	for _, segment := range segments {
		if segment.Topic == topic {
			gaps = append(gaps, segment.Gaps...)
		}
	}
	return gaps
}

// Transactions leave offsets that are never delivered. They are gaps with a
// cause, not losses, and what was aborted is not archived.
func TestTransactions(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme", call("acme", 0), call("acme", 1))
	writer := s.newClient(kgo.TransactionalID("case"))
	for _, txn := range []struct {
		end    kgo.TransactionEndTry
		values []string
	}{
		{kgo.TryAbort, []string{call("acme", 2, "claude-x", secret), call("acme", 3, "claude-x", secret)}},
		{kgo.TryCommit, []string{call("acme", 4)}},
	} {
		s.must(writer.BeginTransaction())
		for _, v := range txn.values {
			s.must(writer.ProduceSync(t.Context(), record(topic, "acme", v)).FirstErr())
		}
		s.must(writer.EndTransaction(t.Context(), txn.end))
	}
	s.produce(topic, "acme", call("acme", 5))
	a := s.settle(oracle.Proved)
	s.wantRows(a, `select kafka_offset from {rows} order by 1`, []any{"0"}, []any{"1"}, []any{"5"}, []any{"7"})
	s.wantRows(a, `select count(*) from {rows} where model_id = '`+secret+`'`, []any{"0"})
	want := []archive.Gap{{From: 2, To: 4, Cause: archive.GapCompacted}, {From: 4, To: 5, Cause: archive.GapControl}, {From: 6, To: 7, Cause: archive.GapControl}}
	if got := s.gaps(a, topic); !slices.Equal(got, want) {
		t.Errorf("gaps %v, want %v", got, want)
	}
}

// A topic that ends in a transaction's marker, or in what was aborted, has no
// record behind it that could tell. The group gets to the end all the same, in
// the time that a batch without rows may wait.
func TestATopicThatEndsInMarkers(t *testing.T) {
	for name, end := range map[string]kgo.TransactionEndTry{"committed": kgo.TryCommit, "aborted": kgo.TryAbort} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, faults3.Options{}, topic)
			s.produce(topic, "acme", call("acme", 0))
			writer := s.newClient(kgo.TransactionalID("case"))
			s.must(writer.BeginTransaction())
			s.must(writer.ProduceSync(t.Context(), record(topic, "acme", call("acme", 1))).FirstErr())
			s.must(writer.EndTransaction(t.Context(), end))
			begin := time.Now()
			a := s.settle(oracle.Proved)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("the end was committed after %v", took)
			}
			rows := map[kgo.TransactionEndTry]string{kgo.TryCommit: "2", kgo.TryAbort: "1"}[end]
			s.wantRows(a, `select count(*) from {rows}`, []any{rows})
			if at, err := s.group.Committed(t.Context(), topic); err != nil || at[topic+"/0"] != 3 {
				t.Errorf("committed %v, %v; want 3", at, err)
			}
		})
	}
}

// A compacted topic skips offsets. Everything that is left becomes a row.
func TestCompactedTopic(t *testing.T) {
	s := newStage(t, faults3.Options{})
	s.topic(topic, map[string]string{
		"cleanup.policy": "compact", "min.compaction.lag.ms": "0", "delete.retention.ms": "0", "min.cleanable.dirty.ratio": "0",
	})
	for i, key := range []string{"a", "b", "b", "c", "b", "d", "e", "b"} { // each of its own batch
		r := record(topic, "acme", call("acme", i))
		r.Key = []byte(key)
		s.send(r)
	}
	s.kafka.Compact()
	left := s.delivered(topic)
	if len(left) == 8 {
		t.Fatal("nothing was compacted")
	}
	a := s.settle(oracle.Proved)
	var got []int64
	for _, row := range s.query(a, `select kafka_offset from {rows} order by 1`) {
		got = append(got, number(row[0]))
	}
	if !slices.Equal(got, left) {
		t.Errorf("rows at %v, want %v", got, left)
	}
	for _, gap := range s.gaps(a, topic) {
		if gap.Cause != archive.GapCompacted {
			t.Errorf("gap %v", gap)
		}
	}
}

// What compaction takes after it was archived stays in the archive, and is no
// forgery to a start that compares with Kafka because nobody vouches for it.
func TestCompactedSinceItWasArchived(t *testing.T) {
	s := newStage(t, faults3.Options{})
	s.topic(topic, map[string]string{
		"cleanup.policy": "compact", "min.compaction.lag.ms": "0", "delete.retention.ms": "0", "min.cleanable.dirty.ratio": "0",
	})
	send := func(from int, keys ...string) {
		for i, key := range keys {
			r := record(topic, "acme", call("acme", from+i))
			if r.Key = []byte(key); key == "gone" {
				r.Value = nil
			}
			s.send(r)
		}
	}
	send(0, "z", "b", "b", "gone", "a", "c") // the first stays: this broker begins its log where its first record is
	s.run("--batch.rows", "2", "--batch.strict")
	_, err := kadm.NewClient(s.client).DeleteGroup(t.Context(), group+".vouchers")
	s.must(err)
	for range 2 { // a tombstone goes after what it deletes
		s.kafka.Compact()
	}
	if left := s.delivered(topic); len(left) > 4 {
		t.Fatalf("Kafka still has %v", left)
	}
	send(6, "d", "a")
	a := s.settle(oracle.Proved)
	s.wantRows(a, `select count(*), count(*) filter (kind = 'rejected'), max(kafka_offset) from {rows}`, []any{"8", "1", "7"})
	if log := s.ingest.Output(); !strings.Contains(log, "compar") {
		t.Error("nothing was compared: the test shows nothing")
	}
}

// The group's offset is a hint. Set back, it brings no row twice; set forward,
// it loses none.
func TestCommittedOffsetIsAHint(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme", calls("acme", 0, 10)...)
	s.settle(oracle.Proved)
	const deleted = -1
	for i, hint := range []int64{2, 15, 1000, deleted} { // 1000 is beyond the end
		s.produce(topic, "acme", calls("acme", 100+10*i, 5)...)
		if hint == deleted {
			_, err := kadm.NewClient(s.client).DeleteGroup(t.Context(), group)
			s.must(err)
		} else {
			s.commit(hint)
		}
		s.start()
		s.until("all rows", func() bool { return s.stored(topic) == int64(s.end(topic)) })
		s.drain()
		s.stop()
	}
	a := s.check(oracle.Proved)
	s.wantRows(a, `select count(*), min(kafka_offset), max(kafka_offset) from {rows}`, []any{"30", "0", "29"})
}

// commit sets the group's offset of the topic, as another client would.
func (s *stage) commit(at int64) {
	s.Helper()
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, at, -1)
	s.must(kadm.NewClient(s.client).CommitAllOffsets(s.Context(), group, offsets))
}

// end returns the end of the topic's log.
func (s *stage) end(topic string) int64 {
	s.Helper()
	ends, err := kadm.NewClient(s.client).ListEndOffsets(s.Context(), topic)
	s.must(err)
	end, _ := ends.Lookup(topic, 0)
	return end.Offset
}

// stored returns the offset up to which the store's segments account for a
// topic that was never made again.
func (s *stage) stored(topic string) int64 {
	s.Helper()
	keys := s.store.Keys("log/" + topic + "/")
	if len(keys) == 0 {
		return 0
	}
	body, _ := s.store.Object(keys[len(keys)-1])
	text, _, err := parquet.TailMetadata(body, int64(len(body)))
	s.must(err)
	segment, err := archive.DecodeSegment(text)
	s.must(err)
	return segment.NextOffset
}

// Records that the broker has deleted before they were read are a gap that the
// archive states for ever, not a jump to the end of the log.
func TestRecordsThatKafkaLost(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme", calls("acme", 0, 10)...)
	s.settle(oracle.Proved)
	s.produce(topic, "acme", calls("acme", 10, 15)...)
	s.must(s.kafka.DeleteRecords(topic, 0, 20))
	a := s.settle(oracle.LookAt)
	s.wantRows(a, `select count(*), count(*) filter (kafka_offset < 10), min(kafka_offset) filter (kafka_offset >= 10)
		from {rows} where kind = 'call'`, []any{"15", "10", "20"})
	s.wantRows(a, `select tenant_id, context->>'from', context->>'to' from {rows} where kind = 'gap'`, []any{"_partition", "10", "20"})
	if got := s.gaps(a, topic); !slices.Equal(got, []archive.Gap{{From: 10, To: 20, Cause: archive.GapLost}}) {
		t.Errorf("gaps %v", got)
	}
	if log := s.ingest.Output(); !strings.Contains(log, `"level":"error"`) && !strings.Contains(log, `"level":"warn"`) {
		t.Error("no alarm was raised")
	}
}

// The same while ingest runs: the store is away, the budget is spent, and
// retention passes what was to be read next.
func TestRecordsThatKafkaLosesMeanwhile(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.start("--memory", "32MiB")
	s.produce(topic, "acme", calls("acme", 0, 10)...)
	s.drain()
	s.store.Add(faults3.Rule{Op: faults3.Put, Times: faults3.Always, Fault: faults3.SlowDown()})
	for i := range 80 { // 80 MiB
		s.produce(topic, "acme", call("acme", 10+i, `{"x":1}`, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`))
	}
	time.Sleep(2 * time.Second) // for ingest to read what it can
	s.must(s.kafka.DeleteRecords(topic, 0, 85))
	s.store.Clear()
	s.until("the end", func() bool { return s.stored(topic) == 90 })
	s.drain()
	s.stop()
	a := s.check(oracle.LookAt)
	gaps := s.gaps(a, topic)
	if len(gaps) != 1 || gaps[0].Cause != archive.GapLost || gaps[0].From < 11 || gaps[0].To != 85 {
		t.Fatalf("gaps %v, want one that was lost and ends at 85", gaps)
	}
	s.wantRows(a, `select count(*) from {rows} where kind = 'call'`, []any{fmt.Sprint(90 - (85 - gaps[0].From))})
	if log := s.ingest.Output(); !strings.Contains(log, `"level":"error"`) && !strings.Contains(log, `"level":"warn"`) {
		t.Error("no alarm was raised")
	}
}

// A topic that was deleted and made again is another one: nothing of the old
// is taken for the new.
func TestTopicMadeAgain(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme", calls("acme", 0, 10)...)
	s.settle(oracle.Proved)
	s.must(s.kafka.DeleteTopic(topic))
	s.topics = nil
	s.topic(topic, nil)
	s.client = s.newClient() // the old one knows the old topic
	s.group.Client = s.client
	s.produce(topic, "acme", calls("acme", 100, 5)...)
	s.start()
	s.until("the new topic's rows", func() bool {
		at, err := s.group.Committed(t.Context(), topic)
		return err == nil && at[topic+"/0"] == 5
	})
	s.stop()
	a := s.archive()
	s.verify(oracle.Proved)
	s.wantRows(a, `select count(*), min(kafka_offset), max(kafka_offset), min(seq) from {rows} group by topic_id order by 1`,
		[]any{"5", "0", "4", "0"}, []any{"10", "0", "9", "0"})
	if n := len(s.query(a, "select distinct topic_id from {rows} order by 1")); n != 2 {
		t.Errorf("%d topic ids", n)
	}
}

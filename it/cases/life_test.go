//go:build it

package cases

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// A clean stop makes durable what was read, although the store takes its time,
// and commits that. What was not read yet is left to the next process.
func TestStopOverASlowStore(t *testing.T) {
	for _, wait := range []time.Duration{10 * time.Millisecond, time.Second} {
		t.Run(wait.String(), func(t *testing.T) {
			s := newStage(t, faults3.Options{}, topic)
			s.start("--shutdown-timeout", "10s")
			s.produce(topic, "acme", call("acme", 0))
			s.drain()
			s.store.Add(faults3.Rule{Op: faults3.Put, Times: faults3.Always, Fault: faults3.Slow(2 * time.Second)})
			s.produce(topic, "acme", calls("acme", 1, 5)...)
			time.Sleep(wait)
			begin := time.Now()
			s.stop()
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("the stop took %v", took)
			}
			stored := s.stored(topic)
			if at, err := s.group.Committed(t.Context(), topic); err != nil || at[topic+"/0"] != stored {
				t.Errorf("committed %v, %v; stored %d", at, err, stored)
			}
			if stored != 6 && (wait > 100*time.Millisecond || stored != 1) {
				t.Errorf("%d of 6 records are stored", stored)
			}
			t.Logf("%d of 6 records are stored", stored)
			s.store.Clear()
			s.produce(topic, "acme", call("acme", 6))
			a := s.settle(oracle.Proved)
			s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"7", "7"})
		})
	}
}

// A topic that falls silent is stored to its last record by time alone.
func TestAQuietTopic(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.start()
	s.produce(topic, "acme", call("acme", 0))
	s.drain()
	var took []time.Duration
	for i := range 5 {
		begin := time.Now()
		s.produce(topic, "acme", calls("acme", 1+5*i, 5)...)
		want := int64(6 + 5*i)
		s.until("five rows", func() bool { return s.stored(topic) == want })
		took = append(took, time.Since(begin))
	}
	if best := min(took[0], took[1], took[2], took[3], took[4]); best > time.Second {
		t.Errorf("five rows were stored after %v at best, want 50 ms and a PUT", best)
	}
	t.Logf("stored after %v", took)
	s.stop()
	s.check(oracle.Proved)
}

// A process that is killed over a PUT loses nothing and repeats nothing,
// whether the PUT takes effect or not.
func TestKilledOverAPut(t *testing.T) {
	for name, fault := range map[string]faults3.Fault{
		"not sent":         faults3.Lost(),
		"on its way":       faults3.Slow(3 * time.Second),
		"done, reply lost": faults3.LostReply(),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, faults3.Options{}, topic)
			s.start()
			s.produce(topic, "acme", call("acme", 0))
			s.drain()
			s.store.Add(faults3.Rule{Op: faults3.Put, Times: faults3.Always, Fault: fault})
			s.produce(topic, "acme", calls("acme", 1, 5)...)
			time.Sleep(time.Second)
			s.ingest.Kill()
			s.store.Clear()
			s.must(s.group.Evict(t.Context()))
			s.produce(topic, "acme", call("acme", 6))
			a := s.settle(oracle.Proved)
			s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"7", "7"})
		})
	}
}

// What must suffice for a process, in bytes.
const memoryLimit = 512 << 20

// A backlog of many tenants over a slow store is worked off in bounded memory.
func TestABacklogOfManyTenants(t *testing.T) {
	tenants, each := 1000, 20
	if os.Getenv("IT_LONG") != "" {
		each = 200
	}
	s := newStage(t, faults3.Options{}, topic)
	for i := range each {
		records := make([]*kgo.Record, tenants)
		for n := range records {
			tenant := fmt.Sprint("t", n)
			records[n] = record(topic, tenant, call(tenant, i))
		}
		s.send(records...)
	}
	s.store.Add(faults3.Rule{Op: faults3.Put, Times: faults3.Always, Fault: faults3.Slow(200 * time.Millisecond)})
	a := s.settle(oracle.Proved)
	s.wantRows(a, `select count(*), count(distinct kafka_offset), count(distinct tenant_id) from {rows}`,
		[]any{fmt.Sprint(tenants * each), fmt.Sprint(tenants * each), fmt.Sprint(tenants)})
	s.wantMemory()
}

// wantMemory requires that the last process kept to the limit.
func (s *stage) wantMemory() {
	s.Helper()
	if s.peak > memoryLimit {
		s.Errorf("ingest took %d MiB", s.peak>>20)
	}
	s.Logf("ingest took %d MiB", s.peak>>20)
}

// residentPeak returns the largest resident size of a process that runs, in
// bytes; 0 where the system does not tell. What the system tells of one that
// has ended is no less than that of the process which started it.
func residentPeak(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}

// A batch that inflates to a gigabyte stops its partition, and says so; another
// topic goes on, and the process keeps to its memory.
func TestABatchThatInflates(t *testing.T) {
	const other = "audit.other"
	s := newStage(t, faults3.Options{}, topic, other)
	s.produce(topic, "acme", calls("acme", 0, 3)...)
	s.sendInflated(topic, 64, 16<<20)
	s.produce(topic, "acme", calls("acme", 3, 3)...)
	s.start()
	s.untilStopped()
	s.produce(other, "globex", calls("globex", 0, 10)...)
	for end := time.Now().Add(30 * time.Second); s.stored(other) < 10 || s.stored(topic) < 3; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d and %d are stored", s.stored(topic), s.stored(other))
		}
	}
	s.peak = residentPeak(s.ingest.Pid())
	if code, err := s.ingest.Stop(30 * time.Second); code != 1 || err != nil {
		t.Errorf("exit %d, %v; want 1: a partition had stopped", code, err)
	}
	s.wantMemory()
	a := s.archive()
	s.verify(oracle.Proved)
	s.wantRows(a, `select topic, count(*), max(kafka_offset) from {rows} group by 1 order by 1`, []any{topic, "3", "2"}, []any{other, "10", "9"})
}

// sendInflated sends one batch of n records of so many zero bytes each,
// compressed to less than a hundredth.
func (s *stage) sendInflated(topic string, n, size int) {
	s.Helper()
	var wire bytes.Buffer
	z, err := gzip.NewWriterLevel(&wire, gzip.BestSpeed)
	s.must(err)
	zeros := make([]byte, size)
	for i := range n {
		head := binary.AppendVarint([]byte{0, 0}, int64(i)) // attributes, timestamp, offset
		head = binary.AppendVarint(head, -1)                // no key
		head = binary.AppendVarint(head, int64(size))
		for _, part := range [][]byte{binary.AppendVarint(nil, int64(len(head)+size+1)), head, zeros, {0}} { // no headers
			_, err := z.Write(part)
			s.must(err)
		}
	}
	s.must(z.Close())
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: 1 /* gzip */, LastOffsetDelta: int32(n - 1), FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(n), Records: wire.Bytes(),
	}
	b.Length = int32(len(b.AppendTo(nil)) - 12)
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = b.AppendTo(nil)
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, s.kafka.TopicInfo(topic).TopicID
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := s.client.Request(s.Context(), req)
	s.must(err)
	s.must(kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode))
}

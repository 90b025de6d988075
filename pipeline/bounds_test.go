package pipeline_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/pipeline"
)

// long runs tests at the sizes that they are named for; make nightly sets it.
// Otherwise they are a part of that, and bounds are the same.
var long = os.Getenv("LEDGERLAKE_LONG") != ""

// A fetch is what Kafka may send at once, beside the budget: 8 MiB of records,
// and for each of them what it takes to hold it.
func fetch(records int) int64 { return 8<<20 + int64(records)*2048 }

// However many tenants and partitions there are, and however slow the store:
// what is held is at most the budget and one fetch, nothing is fetched while
// the budget is spent, and when the store is back, everything is archived.
func TestHeldStaysWithinTheBudget(t *testing.T) {
	const partitions, size = 64, 16_000
	tenants := 2_000
	if long {
		tenants = 10_000
	}
	const memory = 4 << 20
	inWorld(t, partitions, func(w *world) {
		w.produceAsIs(ofTenants(tenants, partitions, size)...)
		fetches := w.count(kmsg.Fetch)
		away := errors.New("503")
		w.bucket.set(func(op, key string) error {
			if op == "create" && strings.HasPrefix(key, "log/") {
				return away
			}
			return nil
		}, nil)
		r := w.tether().ingest(1, func(s *pipeline.Settings) { s.Memory = memory })
		most := r.watchHeld()
		waitFor(w.t, "a budget that is spent", func() bool { s := r.Status(); return s.Held >= s.Limit })
		time.Sleep(time.Second)
		before := fetches()
		time.Sleep(time.Minute)
		if n := fetches() - before; n > 0 {
			t.Errorf("%d fetches while the budget is spent", n)
		}
		w.bucket.set(nil, nil)
		waitFor(w.t, "all records", func() bool {
			rows := 0
			for _, p := range r.Status().Partitions {
				rows += int(p.NextOffset)
			}
			return rows == tenants
		})
		r.wantCleanStop()
		limit := r.Status().Limit
		if bound := limit + fetch(8<<20/size); most() > bound {
			t.Errorf("%d KiB were held, want at most %d (the budget of %d and a fetch)", most()>>10, bound>>10, limit>>10)
		} else {
			t.Logf("%d tenants in %d partitions, %d KiB: at most %d KiB were held, the budget is %d KiB", tenants, partitions, tenants*size>>10, most()>>10, limit>>10)
		}
		if held := r.Status().Held; held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
		for p := range int32(partitions) {
			l := w.ledger(p)
			wantKinds(w.t, l.kinds(), slices.Repeat([]string{"call"}, tenants/partitions+map[bool]int{true: 1}[int(p) < tenants%partitions])...)
		}
	})
}

// ofTenants returns one record of each tenant, round the partitions.
func ofTenants(tenants, partitions, size int) []*kgo.Record {
	records := make([]*kgo.Record, tenants)
	for i := range records {
		tenant := fmt.Sprint("t", i)
		r := large(int32(i%partitions), "s", 0, 1, size)[0]
		r.Key, r.Value = []byte(tenant), bytes.Replace(r.Value, []byte(`"acme"`), []byte(`"`+tenant+`"`), 1)
		r.Headers[0].Value = []byte(tenant)
		records[i] = r
	}
	return records
}

// count counts requests of a key from now on.
func (w *world) count(key kmsg.Key) func() int64 {
	var n atomic.Int64
	w.kafka.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	return n.Load
}

// watchHeld looks, every 50 ms of the bubble until the test ends, at
// what is held, and returns the most that it has seen.
func (r *run) watchHeld() (most func() int64) {
	var n atomic.Int64
	end := make(chan struct{})
	r.w.t.Cleanup(func() { close(end) })
	go func() {
		for tick := 50 * time.Millisecond; ; {
			select {
			case <-end:
				return
			case <-time.After(tick):
			}
			n.Store(max(n.Load(), r.Status().Held))
		}
	}()
	return n.Load
}

// A batch can inflate to a thousand times what it weighs on the wire, and comes
// into memory as a whole. One that inflates too far stops its partition, with
// an alarm that says where; it is never passed, and other partitions go on.
// What it costs to find out stays bounded.
func TestAnInflatedBatchStopsItsPartition(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.produce(0, calls("s", 0, 3)...)
		w.produceInflated(0, 16, 16<<20) // 256 MiB
		w.produce(0, calls("s", 3, 3)...)
		w.produce(1, calls("z", 0, 3)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := w.tether().ingest(1, func(s *pipeline.Settings) { s.Memory = 128 << 20 })
		w.waitCommitted(1, 3)
		time.Sleep(time.Minute)
		w.produce(1, calls("z", 3, 3)...)
		w.waitCommitted(1, 6)
		runtime.ReadMemStats(&after)
		if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 || !strings.Contains(r.stopped[0].Error(), "offset 3") {
			t.Errorf("stop: %v, alarms %v", err, r.stopped)
		}
		wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 3)...)
		wantKinds(w.t, w.check(1).kinds(), slices.Repeat([]string{"call"}, 6)...)
		// 64 MiB is the bound; the client tries twice, and its buffer doubles.
		if got := after.TotalAlloc - before.TotalAlloc; got > 10*64<<20 {
			t.Errorf("%d MiB were allocated to find out", got>>20)
		} else {
			t.Logf("%d MiB were allocated to find out", got>>20)
		}
	})
}

// produceInflated sends one batch of n records of so many zero bytes each,
// compressed: a thousandth of them on the wire.
func (w *world) produceInflated(partition int32, n, size int) {
	w.t.Helper()
	var wire bytes.Buffer
	z, _ := gzip.NewWriterLevel(&wire, gzip.BestSpeed)
	zeros := make([]byte, size)
	for i := range n {
		head := binary.AppendVarint([]byte{0, 0}, int64(i)) // attributes, timestamp, offset
		head = binary.AppendVarint(head, -1)                // no key
		head = binary.AppendVarint(head, int64(size))
		z.Write(binary.AppendVarint(nil, int64(len(head)+size+1)))
		z.Write(head)
		z.Write(zeros)
		z.Write([]byte{0}) // no headers
	}
	z.Close()
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: 1, LastOffsetDelta: int32(n - 1), FirstTimestamp: time.Now().UnixMilli(), MaxTimestamp: time.Now().UnixMilli(),
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(n), Records: wire.Bytes(),
	}
	raw := b.AppendTo(nil)
	b.Length = int32(len(raw) - 12)
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	w.produceRaw(partition, b.AppendTo(nil))
}

func (w *world) produceRaw(partition int32, batch []byte) {
	w.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, batch
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, w.kafka.TopicInfo(topic).TopicID
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := w.client.Request(context.Background(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode); err != nil {
		w.t.Fatal(err)
	}
}

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
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// long runs tests at the sizes that they are named for; make nightly sets it.
// Otherwise they are a part of that, and bounds are the same.
func long() bool { return os.Getenv("LEDGERLAKE_LONG") != "" }

// A fetch is what Kafka may send at once, beside the budget: 8 MiB of records,
// and for each of them what it takes to hold it.
func fetch(records int) int64 { return 8<<20 + int64(records)*2048 }

// However many tenants and partitions there are, and however slow the store:
// what is held is at most the budget and one fetch, nothing is fetched while
// the budget is spent, and when the store is back, everything is archived.
func TestHeldStaysWithinTheBudget(t *testing.T) {
	const partitions, size = 64, 16_000
	tenants := 2_000
	if long() {
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
			dealt := (tenants + partitions - 1 - int(p)) / partitions // in turn
			wantKinds(w.t, w.ledger(p).kinds(), slices.Repeat([]string{"call"}, dealt)...)
		}
	})
}

// A partition with a huge backlog does not starve a small one, and those whose
// segments the store refuses for good do not starve the others: a record of a
// healthy partition is durable within a second of the bubble, as ever.
func TestPartitionsAreServedFairly(t *testing.T) {
	for _, c := range []struct {
		name    string
		backlog int32 // partitions with a backlog, of 8
		refused bool  // their segments are refused
	}{
		{name: "one backlog", backlog: 1},
		{name: "seven backlogs", backlog: 7},
		{name: "one refused", backlog: 1, refused: true},
		{name: "seven refused", backlog: 7, refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, 8, func(w *world) {
				const memory = 16 << 20
				for p := range c.backlog {
					w.produceAsIs(large(p, fmt.Sprint("s", p), 0, 200, 50_000)...) // 10 MB
				}
				w.bucket.set(func(op, key string) error {
					if op != "create" || !strings.HasPrefix(key, "log/") {
						return nil
					}
					if c.refused && !strings.Contains(key, "/00007/") {
						return archive.ErrDenied
					}
					time.Sleep(200 * time.Millisecond)
					return nil
				}, nil)
				r := w.tether().ingest(1, func(s *pipeline.Settings) { s.Memory = memory })
				most := r.watchHeld()
				time.Sleep(3 * time.Second)
				for i := range 20 {
					w.produce(7, calls("z", i, 1)...)
					sent := time.Now()
					waitFor(w.t, "a record of the healthy partition", func() bool { return r.status(7).NextOffset == int64(i+1) })
					if took := time.Since(sent); took > time.Second {
						t.Errorf("record %d was durable after %v", i, took)
					}
				}
				if bound := r.Status().Limit + fetch(8<<20/50_000); most() > bound {
					t.Errorf("%d KiB were held, want at most %d", most()>>10, bound>>10)
				}
				w.bucket.set(nil, nil)
				for p := range c.backlog {
					w.waitCommitted(p, 200)
				}
				r.wantCleanStop()
				for p := range c.backlog {
					wantKinds(w.t, w.ledger(p).kinds(), slices.Repeat([]string{"call"}, 200)...)
				}
			})
		})
	}
}

// A partition of which Kafka says only that an offset is out of range, and not
// what would be in range, holds up no other, and is not asked for in a frenzy.
func TestAPartitionWithoutALeaderHoldsUpNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		away  *kerr.Error
		bound time.Duration
	}{
		"not the leader": {kerr.NotLeaderForPartition, 2 * time.Second},
		// A client that is owed an answer waits 10 s for it, and with it whatever
		// it asks on the same connection.
		"no answer at all": {nil, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				w.produce(0, calls("s", 0, 3)...)
				r := w.tether().ingest(1)
				w.waitCommitted(0, 3)
				w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Partitions: []int32{0}, Err: kerr.OffsetOutOfRange, Count: -1})
				if c.away != nil {
					w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: c.away, Count: -1})
				} else {
					w.kafka.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
						w.kafka.KeepControl()
						return nil, nil, true // and so it never comes
					})
				}
				asked := w.count(kmsg.Fetch)
				var worst time.Duration
				for i := range 60 {
					w.produce(1, calls("z", i, 1)...)
					sent := time.Now()
					waitFor(w.t, "the other partition", func() bool { return r.status(1).NextOffset == int64(i+1) })
					worst = max(worst, time.Since(sent))
					time.Sleep(time.Second)
				}
				if worst > c.bound {
					t.Errorf("a record of the other partition was durable after %v", worst)
				}
				if n := asked(); n > 60*40 { // an idle partition is asked for 20 times a second here
					t.Errorf("%d fetches in a minute", n)
				}
				t.Logf("at worst %v, %d fetches", worst, asked())
			})
		})
	}
}

// status returns how a partition stands, with NextOffset -1 while the process
// does not have it.
func (r *run) status(partition int32) pipeline.PartitionStatus {
	for _, p := range r.Status().Partitions {
		if p.Line.Partition == partition {
			return p
		}
	}
	return pipeline.PartitionStatus{NextOffset: -1}
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

// Records of the largest size, and many large ones in a row, are archived whole
// within the budget and one fetch, which never holds more than it must: one
// batch of Kafka. One byte more, and a record is rejected with its size.
func TestLargestRecords(t *testing.T) {
	const largest = 16 << 20
	inWorld(t, 1, func(w *world) {
		w.allowBatches(64 << 20)
		exactly := func(n, size int) *kgo.Record {
			r := large(0, "s", n, 1, 0)[0]
			return large(0, "s", n, 1, size-len(r.Value))[0]
		}
		records := []*kgo.Record{exactly(0, 500), exactly(1, largest), exactly(2, 500), exactly(3, largest+1)}
		for i := range 32 {
			records = append(records, exactly(4+i, 1<<20))
		}
		w.produceAsIs(append(records, exactly(36, 500))...)
		w.bucket.set(func(op, key string) error { time.Sleep(200 * time.Millisecond); return nil }, nil)
		r := w.tether().ingest(1, func(s *pipeline.Settings) { s.Memory = 32 << 20 })
		most := r.watchHeld()
		w.waitCommitted(0, 37)
		r.wantCleanStop()
		want := slices.Repeat([]string{"call"}, 37)
		want[3] = "rejected:too_large"
		wantKinds(w.t, w.check(0).kinds(), want...)
		if bound := r.Status().Limit + largest + 1<<20; most() > bound {
			t.Errorf("%d MiB were held, want at most %d", most()>>20, bound>>20)
		} else {
			t.Logf("at most %d MiB were held, the budget is %d MiB", most()>>20, r.Status().Limit>>20)
		}
	})
}

// allowBatches lets the topic take batches of so many bytes.
func (w *world) allowBatches(most int) {
	w.t.Helper()
	value := fmt.Sprint(most)
	set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &value}}
	if _, err := kadm.NewClient(w.client).AlterTopicConfigs(context.Background(), set, topic); err != nil {
		w.t.Fatal(err)
	}
}

// One bad record in five slows the good ones by the share of work that they
// are, and no more: as many segments, no more of memory, each bad record a
// rejected row of its own. Costs are counted, not timed.
func TestAPoisonFlood(t *testing.T) {
	n := 20_000
	if long() {
		n = 100_000
	}
	poison := []string{"", "{", `{"tenantId":1}`, strings.Replace(call("s", 0, ""), `"seqWithinTurn":0`, `"seqWithinTurn":-1`, 1), "null"}
	flood := func(i int) string {
		if i%5 == 4 {
			return poison[i/5%len(poison)]
		}
		return call("s", i, "")
	}
	clean := archiveAll(t, n, func(i int) string { return call("s", i, "") })
	bad := archiveAll(t, n, flood)
	if clean.rejects != 0 || bad.rejects != n/5 || bad.rows != n {
		t.Errorf("%d rows, %d rejected (%d among good ones); want %d and %d", bad.rows, bad.rejects, clean.rejects, n, n/5)
	}
	if bad.puts > clean.puts {
		t.Errorf("%d PUTs, %d without the bad records", bad.puts, clean.puts)
	}
	// To say what is wrong with a record takes some allocations, and less memory
	// than a good one does.
	if each := (float64(bad.allocs) - float64(clean.allocs)*4/5) / float64(n/5); each > 25 || bad.bytes > clean.bytes*5/4 {
		t.Errorf("%.1f allocations for each bad record; %d MiB in all, without bad records %d MiB", each, bad.bytes>>20, clean.bytes>>20)
	}
	t.Logf("%d records: %+v with one bad in five, %+v without", n, bad, clean)
}

// A bill is what it took to archive records.
type bill struct {
	rows, rejects, puts int
	allocs, bytes       uint64 // of memory
}

// archiveAll archives n records of one partition.
func archiveAll(t *testing.T, n int, value func(i int) string) (b bill) {
	t.Helper()
	inWorld(t, 1, func(w *world) {
		records := make([]*kgo.Record, n)
		for i := range records {
			records[i] = &kgo.Record{Key: []byte("acme"), Value: []byte(value(i)), Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte("acme")}}}
		}
		if err := w.client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
		w.bucket.set(func(op, key string) error { time.Sleep(200 * time.Millisecond); return nil }, nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := w.tether().ingest(1)
		w.waitCommitted(0, int64(n))
		runtime.ReadMemStats(&after)
		b.allocs, b.bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
		r.wantCleanStop()
		for _, rejects := range r.rejects {
			b.rejects += rejects
		}
		b.puts = w.creates("log/")
		for _, s := range w.check(0).segments {
			b.rows += len(s.Rows)
		}
	})
	return b
}

// A dead-letter topic that takes nothing holds up nobody: the rejects are rows
// of the archive, and of their copies only so many wait as memory allows.
func TestADeadLetterTopicThatTakesNothing(t *testing.T) {
	const n = 12_000 // more than a client buffers by itself
	inWorld(t, 1, func(w *world) {
		if err := w.kafka.CreateTopic("dead", 1, nil); err != nil {
			w.t.Fatal(err)
		}
		w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "dead", Err: kerr.NotLeaderForPartition, Count: -1})
		records := make([]*kgo.Record, n)
		for i := range records {
			records[i] = &kgo.Record{Value: []byte("{" + strings.Repeat("x", 1000))}
		}
		if err := w.client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
		waiting := &waiting{}
		r := w.tether().ingest(1, func(s *pipeline.Settings) {
			s.DLQTopic, s.Memory = "dead", 16<<20
			s.Client = append(s.Client, kgo.WithHooks(waiting))
		})
		w.waitCommitted(0, n)
		time.Sleep(time.Second) // for those that found no room to be told
		if held := waiting.bytes.Load(); held > 2<<20 {
			t.Errorf("%d KiB of copies wait, want at most an eighth of the memory", held>>10)
		}
		start := time.Now()
		r.wantCleanStop()
		if took := time.Since(start); took > 21*time.Second {
			t.Errorf("stop took %v", took)
		}
	})
}

// waiting hears what a client holds of records that it is to send.
type waiting struct{ bytes atomic.Int64 }

func (w *waiting) OnProduceRecordBuffered(r *kgo.Record) { w.bytes.Add(int64(len(r.Value))) }

func (w *waiting) OnProduceRecordUnbuffered(r *kgo.Record, _ error) {
	w.bytes.Add(-int64(len(r.Value)))
}

// Of a partition that goes, nothing is left: no goroutine, whatever its write
// was doing, no file and no connection; nor is there anything of a process that
// has ended.
func TestNothingIsLeftBehind(t *testing.T) {
	inWorld(t, 8, func(w *world) {
		w.produce(0, calls("warm", 0, 1)...) // the producer connects
		start, files := runtime.NumGoroutine(), openFiles()
		l := w.tether()
		a := l.ingest(1)
		w.waitCommitted(0, 1)
		wantRunning(w.t, 8)
		var hanging []func() bool
		for p := range int32(8) { // each has a write on its way when half of them go
			hanging = append(hanging, l.delay(bucketCall("create", fmt.Sprintf("/%05d/", p)), false, time.Hour))
			w.produce(p, calls(fmt.Sprint("s", p), 0, 3)...)
		}
		waitFor(w.t, "all writes", func() bool { return !slices.ContainsFunc(hanging, func(met func() bool) bool { return !met() }) })
		other := w.tether()
		b := other.ingest(2)
		waitFor(w.t, "a partition for the other", func() bool { return len(b.Status().Partitions) > 0 })
		time.Sleep(time.Minute) // longer than a hand-over may take
		wantRunning(w.t, 8)
		if n, held := goroutines("pipeline.(*partition).commit("), len(a.Status().Partitions); n != held {
			t.Errorf("%d writes are on their way, for %d partitions whose writes hang", n, held)
		}
		b.wantCleanStop()
		if n := other.connections(); n != 0 {
			t.Errorf("%d connections are left of the process that ended", n)
		}
		waitFor(w.t, "all partitions again", func() bool { return len(a.Status().Partitions) == 8 })
		wantRunning(w.t, 8)
		a.cancel() // the writes that hang are given up
		<-a.done
		if n := l.connections(); n != 0 {
			t.Errorf("%d connections are left of the process that ended", n)
		}
		time.Sleep(2 * time.Hour) // what was on its way has arrived
		wantRunning(w.t, 0)
		if n := runtime.NumGoroutine(); n > start {
			t.Errorf("%d goroutines, %d before: %s", n, start, stacks())
		}
		if n := openFiles(); n != files {
			t.Errorf("%d open files, %d before", n, files)
		}
	})
}

// wantRunning requires that so many partitions have a goroutine.
func wantRunning(t *testing.T, want int) {
	t.Helper()
	synctest.Wait()
	if n := goroutines("pipeline.(*partition).run("); n != want {
		t.Errorf("%d partitions run, want %d", n, want)
	}
}

// goroutines counts those that have a function on their stack.
func goroutines(function string) int {
	n := 0
	for g := range strings.SplitSeq(stacks(), "\n\n") {
		if strings.Contains(g, function) {
			n++
		}
	}
	return n
}

func stacks() string {
	b := make([]byte, 16<<20)
	return string(b[:runtime.Stack(b, true)])
}

// openFiles returns how many files the process has open, where that can be
// told.
func openFiles() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}

// What one answer of Kafka inflates to is bounded too, however many batches it
// has: the rest of it is fetched again. So is what the client keeps of records
// beside their bytes.
func TestAnAnswerInflatesSoFarOnly(t *testing.T) {
	const partitions = 8
	inWorld(t, partitions, func(w *world) {
		for p := range int32(partitions) {
			w.produceInflated(p, 1, 8<<20)
			w.produceInflated(p, 1000, 100)
		}
		buffered := &buffered{}
		r := w.tether().ingest(1, func(s *pipeline.Settings) { s.Client = append(s.Client, kgo.WithHooks(buffered)) })
		for p := range int32(partitions) {
			w.waitCommitted(p, 1001)
		}
		r.wantCleanStop()
		if most := buffered.most.Load(); most > 16<<20+8<<20+1<<20 {
			t.Errorf("the client held %d MiB of an answer, want at most 16 and one batch", most>>20)
		} else {
			t.Logf("the client held %d MiB of an answer, of %d MiB in all", most>>20, partitions*8)
		}
		w.check(0)
		for p := range int32(partitions) {
			wantKinds(w.t, w.ledger(p).kinds(), slices.Repeat([]string{"rejected:invalid_json"}, 1001)...)
		}
	})
	t.Run("records of nothing", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			w.produce(0, calls("s", 0, 3)...)
			w.allowBatches(64 << 20)
			w.produceInflated(0, 1_000_000, 0) // 10 MB of bytes, 256 MB to hold them
			r := w.tether().ingest(1, func(s *pipeline.Settings) { s.Memory = 128 << 20 })
			time.Sleep(time.Minute)
			if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 || !strings.Contains(r.stopped[0].Error(), "offset 3") {
				t.Errorf("stop: %v, alarms %v", err, r.stopped)
			}
			wantKinds(w.t, w.check(0).kinds(), "call", "call", "call")
		})
	})
}

// buffered hears what the client holds of records that were not polled yet.
type buffered struct{ now, most atomic.Int64 }

func (b *buffered) OnFetchRecordBuffered(r *kgo.Record) {
	n := b.now.Add(int64(len(r.Value)))
	b.most.Store(max(b.most.Load(), n))
}

func (b *buffered) OnFetchRecordUnbuffered(r *kgo.Record, _ bool) { b.now.Add(-int64(len(r.Value))) }

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

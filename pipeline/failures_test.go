package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// The tests of this file are failures that other archivers are known for, each
// under the name that people know it by.

// A task hangs for half an hour with a write that it has not sent, or that is
// on its way. Another has long taken over and gone on when the write comes. In
// other archives it overwrites what is there. Here it changes nothing, and the
// task that wakes up goes on behind what it finds.
func TestATaskThatWakesUpOverwritesNothing(t *testing.T) {
	second := bucketCall("create", "/00000000000000000001.parquet")
	for name, group := range map[string]string{
		"it has lost its partition":      "ledgerlake",
		"it believes that it still owns": "another", // nobody has told it: a group of its own
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.archived(calls("s", 0, 3))
				sleeper := w.tether()
				asleep := sleeper.delay(second, false, 30*time.Minute)
				a := sleeper.ingest(2, patient, func(s *pipeline.Settings) { s.Group = group })
				time.Sleep(time.Second)
				w.produce(0, calls("s", 3, 3)...)
				waitFor(w.t, "the write that hangs", asleep)
				if group == "ledgerlake" {
					w.evict()
				}
				b := w.tether().ingest(3, patient)
				w.waitSegments(2)
				for i := range 5 {
					w.produce(0, calls("s", 6+3*i, 3)...)
					w.waitSegments(3 + i)
				}
				before := w.objects()
				time.Sleep(31 * time.Minute) // the write comes
				w.produce(0, calls("s", 21, 3)...)
				w.waitSegments(8)
				time.Sleep(5 * time.Second)
				a.wantCleanStop()
				b.wantCleanStop()
				for key, body := range before {
					if w.objects()[key] != body {
						t.Errorf("%s was changed", key)
					}
				}
				w.wantLine(8)
				wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 24)...)
			})
		})
	}
}

// patient lets a process wait for records as long as its polls do: fetches that
// find nothing are what half an hour costs.
func patient(s *pipeline.Settings) { s.Client = append(s.Client, kgo.FetchMaxWait(time.Minute)) }

// objects returns the bucket's objects by key.
func (w *world) objects() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, key := range w.memoryKeys("") {
		body, err := w.memory.Get(context.Background(), key)
		if err != nil {
			w.t.Fatal(err)
		}
		all[key] = string(body)
	}
	return all
}

// evict makes all members leave the group, as the coordinator does with those
// that it has not heard of for longer than the session timeout.
func (w *world) evict() {
	w.t.Helper()
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = "ledgerlake"
	for _, m := range w.kafka.GroupInfo("ledgerlake").Members {
		who := kmsg.NewLeaveGroupRequestMember()
		who.MemberID = m.MemberID
		leave.Members = append(leave.Members, who)
	}
	if _, err := leave.RequestWith(context.Background(), w.client); err != nil {
		w.t.Fatal(err)
	}
}

// In a rebalance two tasks write the same key: the one that has the partition
// no more, whose write is still on its way, and the one that has it now.
// Whichever arrives first, the ordinal is written once, and the other's rows
// are in it or behind it.
func TestTwoTasksAtOneKeyInARebalance(t *testing.T) {
	second := bucketCall("create", "/00000000000000000001.parquet")
	for name, late := range map[string]struct {
		old, new time.Duration // how long their writes are on the way
		adopted  int
	}{
		"the old task is first": {old: 60 * time.Second, new: 120 * time.Second, adopted: 1},
		"the new task is first": {old: 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				for p := range int32(2) {
					w.produce(p, calls(fmt.Sprint("s", p), 0, 3)...)
				}
				old := w.tether()
				a := old.ingest(1)
				w.waitSegments(2)
				var hanging []func() bool
				for range 2 {
					hanging = append(hanging, old.delay(second, false, late.old))
				}
				for p := range int32(2) {
					w.produce(p, calls(fmt.Sprint("s", p), 3, 3)...)
				}
				waitFor(w.t, "both writes", func() bool { return hanging[0]() && hanging[1]() })
				fresh := w.tether()
				fresh.delay(second, false, late.new)
				b := fresh.ingest(2)
				time.Sleep(5 * time.Minute)
				for p := range int32(2) {
					w.produce(p, calls(fmt.Sprint("s", p), 6, 3)...)
				}
				w.waitSegments(6)
				time.Sleep(5 * time.Second)
				a.wantCleanStop()
				b.wantCleanStop()
				for p := range int32(2) {
					wantKinds(w.t, w.check(p).kinds(), slices.Repeat([]string{"call"}, 9)...)
				}
				if b.adopted != late.adopted {
					t.Errorf("the new task adopted %d segments, want %d", b.adopted, late.adopted)
				}
				if n := len(w.memoryKeys("log/")); n != 6 {
					t.Errorf("%d segments, want 3 of each partition", n)
				}
			})
		})
	}
}

// One commit of offsets spans two files, of which only the first is stored, and
// a crash loses the second. Here an offset is committed when what lies below it
// is durable, of each partition for itself.
func TestACommitNeverSpansAFileThatIsNotStored(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		l := w.tether()
		l.delay(bucketCall("create", "/00000/00000000000000000001.parquet"), false, time.Hour)
		r := l.ingest(1)
		time.Sleep(time.Second)
		w.produce(0, calls("s", 0, 3)...)
		w.waitSegments(1)
		w.produce(0, calls("s", 3, 3)...) // the second file, on its way
		w.produce(1, calls("z", 0, 5)...)
		time.Sleep(time.Second)
		w.produce(0, calls("s", 6, 40)...) // fetched, and waiting
		time.Sleep(time.Minute)
		if p0, p1 := w.committed("ledgerlake", 0), w.committed("ledgerlake", 1); p0 != 3 || p1 != 5 {
			t.Errorf("committed offsets %d and %d, want 3 (what is stored) and 5", p0, p1)
		}
		l.cut()
		r.cancel()
		<-r.done
		r = w.tether().ingest(2)
		w.waitCommitted(0, 46)
		r.wantCleanStop()
		time.Sleep(time.Hour) // what the dead process had sent arrives at last
		wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 46)...)
		wantKinds(w.t, w.check(1).kinds(), slices.Repeat([]string{"call"}, 5)...)
	})
}

// The acknowledgement of a write comes after the partition was revoked, and the
// task commits the offset of a partition that is not its own any more. Here it
// says nothing: the next owner has found the segment in the bucket.
func TestALateAcknowledgementAfterARevokeCommitsNothing(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		commits := w.watchCommits()
		old := w.tether()
		a := old.ingest(1)
		for range 2 {
			old.delay(bucketCall("create", "/00000000000000000001.parquet"), true, time.Minute)
		}
		for from := range 2 {
			for p := range int32(2) {
				w.produce(p, calls(fmt.Sprint("s", p), 3*from, 3)...)
				w.waitSegments(2*from + int(p) + 1)
				time.Sleep(2 * time.Second)
			}
		}
		b := w.tether().ingest(2)
		time.Sleep(25 * time.Second) // a partition has gone to b, and the answer has not come
		for p := range int32(2) {
			w.produce(p, calls(fmt.Sprint("s", p), 6, 3)...)
		}
		time.Sleep(5 * time.Minute)
		a.wantCleanStop()
		b.wantCleanStop()
		for p := range int32(2) {
			wantKinds(w.t, w.check(p).kinds(), slices.Repeat([]string{"call"}, 9)...)
			if got := w.committed("ledgerlake", p); got != 9 {
				t.Errorf("partition %d: committed offset %d, want 9", p, got)
			}
		}
		commits.wantOwnersInTurn(w.t)
	})
}

// commits are the offset commits that reached Kafka, in order.
type commits struct {
	mu   sync.Mutex
	seen map[int32][]commit
}

type commit struct {
	member string
	offset int64
}

// watchCommits notes all offset commits of the group from now on.
func (w *world) watchCommits() *commits {
	c := &commits{seen: map[int32][]commit{}}
	w.kafka.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		req := r.(*kmsg.OffsetCommitRequest)
		if req.Group != "ledgerlake" {
			return nil, nil, false // vouchers
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, t := range req.Topics {
			for _, p := range t.Partitions {
				c.seen[p.Partition] = append(c.seen[p.Partition], commit{req.MemberID, p.Offset})
			}
		}
		return nil, nil, false
	})
	return c
}

// wantOwnersInTurn requires that no partition's offset goes back, and that who
// has lost a partition never commits it again. One of them must have had two
// owners, or the test shows nothing.
func (c *commits) wantOwnersInTurn(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	moved := false
	for p, seen := range c.seen {
		var owners []string // in turn
		for _, s := range seen {
			if len(owners) > 0 && owners[len(owners)-1] == s.member {
				continue
			}
			if slices.Contains(owners, s.member) {
				t.Errorf("partition %d: %s commits again, after %q", p, s.member, owners)
			}
			owners = append(owners, s.member)
		}
		moved = moved || len(owners) > 1
		if !slices.IsSortedFunc(seen, func(a, b commit) int { return int(a.offset - b.offset) }) {
			t.Errorf("partition %d: the offset went back: %v", p, seen)
		}
	}
	if !moved {
		t.Errorf("no partition had two owners: %v", c.seen)
	}
}

// Offsets cannot be committed, for whatever reason and however long. The commit
// is a hint: the archive goes on, a stop is a clean one, and the next start
// finds its place in the bucket, after it has compared what nobody vouches for.
func TestOffsetsThatCannotBeCommitted(t *testing.T) {
	for _, refusal := range []*kerr.Error{kerr.GroupAuthorizationFailed, kerr.CoordinatorNotAvailable, kerr.OffsetMetadataTooLarge, kerr.UnknownServerError} {
		t.Run(refusal.Message, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: refusal, Count: -1})
				for life := range 3 {
					r := w.tether().ingest(byte(life))
					for i := range 5 {
						w.produce(0, calls("s", 15*life+3*i, 3)...)
						w.waitSegments(5*life + i + 1)
						time.Sleep(2 * time.Second)
					}
					r.wantCleanStop()
					if len(r.compared) != 5*life {
						t.Errorf("compared segments %v at start %d", r.compared, life)
					}
				}
				w.wantLine(15)
				wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 45)...)
			})
		})
	}
}

// A stale offset is committed, retention passes it, the client finds it out of
// range and resets to the latest: what lies between is skipped. Here the bucket
// says where to go on, what Kafka has deleted is a gap row and an alarm, and
// reading goes on at the first record that is left.
func TestAStaleOffsetIsNeverResetToLatest(t *testing.T) {
	want := slices.Concat(slices.Repeat([]string{"call"}, 10), slices.Repeat([]string{"lost"}, 10), slices.Repeat([]string{"call"}, 5))
	for name, committed := range map[string]int64{"stale": 2, "at the gap": 15, "beyond the end": 1000, "none": -1} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.archived(calls("s", 0, 10))
				w.produce(0, calls("s", 10, 15)...)
				w.deleteBefore(20)
				if committed < 0 {
					w.deleteGroup("ledgerlake")
				} else {
					w.setCommitted("ledgerlake", committed)
				}
				r := w.tether().ingest(2)
				w.waitCommitted(0, 25)
				r.wantCleanStop()
				if !slices.Equal(r.gaps, [][2]int64{{10, 20}}) {
					t.Errorf("alarms for gaps %v, want 10 to 20", r.gaps)
				}
				wantKinds(w.t, w.check(0).kinds(), want...)
			})
		})
	}
	// The same while it runs: it reads nothing for as long as the store is away,
	// and retention passes it meanwhile.
	t.Run("while the store is away", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			away := errors.New("503")
			l := w.tether()
			r := l.ingest(1, func(s *pipeline.Settings) { s.Memory = 64 << 10 })
			time.Sleep(time.Second)
			w.produce(0, calls("s", 0, 10)...)
			w.waitCommitted(0, 10)
			w.bucket.set(func(op, key string) error { return away }, nil)
			w.produceAsIs(large(0, "s", 10, 60, 100_000)...)
			time.Sleep(time.Minute)
			w.deleteBefore(65)
			w.bucket.set(nil, nil)
			w.waitCommitted(0, 70)
			r.wantCleanStop()
			if len(r.gaps) != 1 || r.gaps[0][0] < 11 || r.gaps[0][1] != 65 {
				w.t.Fatalf("alarms for gaps %v, want one that ends at 65", r.gaps)
			}
			lost := int(65 - r.gaps[0][0])
			wantKinds(w.t, w.check(0).kinds(), slices.Concat(slices.Repeat([]string{"call"}, 65-lost), slices.Repeat([]string{"lost"}, lost), slices.Repeat([]string{"call"}, 5))...)
		})
	})
}

// produceAsIs sends records without compression, each in a batch of its own.
func (w *world) produceAsIs(records ...*kgo.Record) {
	w.t.Helper()
	c := w.dial(
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(64<<20), kgo.BrokerMaxWriteBytes(128<<20),
	)
	defer c.Close()
	for _, r := range records {
		if err := c.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// large returns n good records of a partition, of some size bytes each.
func large(partition int32, session string, from, n, size int) []*kgo.Record {
	fill := `,"pluginPayloads":[{"pluginId":"p","subKind":"k","data":"` + strings.Repeat("x", size) + `"}]`
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{
			Partition: partition, Key: []byte("acme"), Value: []byte(call(session, from+i, fill)),
			Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte("acme")}},
		}
	}
	return records
}

// deleteBefore lets Kafka delete what lies below an offset of partition 0.
func (w *world) deleteBefore(offset int64) {
	w.t.Helper()
	if err := w.kafka.DeleteRecords(topic, 0, offset); err != nil {
		w.t.Fatal(err)
	}
}

// deleteGroup deletes a group with its offsets.
func (w *world) deleteGroup(group string) {
	w.t.Helper()
	if _, err := kadm.NewClient(w.client).DeleteGroup(context.Background(), group); err != nil {
		w.t.Fatal(err)
	}
}

// A topic is deleted and created again, and whoever goes on by offset alone
// skips the new records or takes them for repeats. Here it is another line: the
// archive of the old one stays, and nothing of the new one is skipped.
func TestARecreatedTopicIsANewLine(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.produce(0, calls("s", 0, 10)...)
		r := w.ingest()
		w.waitSegments(1)
		r.wantCleanStop()
		w.recreateTopic()
		w.produce(0, calls("n", 0, 3)...)
		r = w.ingest()
		time.Sleep(5 * time.Second)
		r.wantCleanStop()
		wantKinds(t, w.check(0).kinds(), "call", "call", "call")
		if keys := w.memoryKeys("log/"); len(keys) != 2 {
			t.Errorf("segments %q, want one of each topic", keys)
		}
	})
}

// The same while a task reads it: the partition stops with an alarm. What was
// read of the old topic, which nobody will ever read again, still becomes
// durable; the next start archives the new one from its first record.
func TestATopicRecreatedUnderARunningTask(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.produce(0, calls("s", 0, 10)...)
		r := w.tether().ingest(1)
		w.waitSegments(1)
		w.bucket.set(func(op, key string) error { time.Sleep(30 * time.Second); return nil }, nil)
		w.produce(0, calls("s", 10, 3)...) // on its way, or waiting, when the topic goes
		time.Sleep(200 * time.Millisecond)
		w.produce(0, calls("s", 13, 3)...)
		time.Sleep(200 * time.Millisecond)
		old := w.topicID()
		w.recreateTopic()
		w.produce(0, calls("n", 0, 20)...)
		time.Sleep(5 * time.Minute)
		w.bucket.set(nil, nil)
		if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 {
			w.t.Errorf("stop: %v, alarms %v", err, r.stopped)
		}
		r = w.tether().ingest(2)
		w.waitCommitted(0, 20)
		r.wantCleanStop()
		wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 20)...)
		wantKinds(w.t, w.ledgerOf(archive.Line{Topic: topic, TopicID: old}).kinds(), slices.Repeat([]string{"call"}, 16)...)
	})
}

func (w *world) recreateTopic() {
	w.t.Helper()
	admin, ctx, old := kadm.NewClient(w.client), context.Background(), w.topicID()
	if _, err := admin.DeleteTopics(ctx, topic); err != nil {
		w.t.Fatal(err)
	}
	if _, err := admin.CreateTopics(ctx, 1, 1, nil, topic); err != nil {
		w.t.Fatal(err)
	}
	w.client.PurgeTopicsFromProducing(topic)
	time.Sleep(time.Second)
	if w.topicID() == old {
		w.t.Fatal("the new topic has the old id")
	}
}

// The store refuses a batch, that counts as done, and a later batch carries the
// offset past it. Here no answer of a store is a verdict on the batch: whatever it says, and for
// however long, nothing is dropped, no offset passes the batch, and it is
// written in the end.
func TestARefusedBatchIsNeverPassed(t *testing.T) {
	for name, refusal := range map[string]error{
		"denied": archive.ErrDenied, "no bucket": archive.ErrNotFound, "conflict": archive.ErrConflict, "down": errors.New("503 SlowDown"),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				refuse := true
				w.bucket.set(func(op, key string) error {
					if refuse && op == "create" && strings.HasSuffix(key, "/00000/00000000000000000001.parquet") {
						return refusal
					}
					return nil
				}, nil)
				r := w.ingest(func(s *pipeline.Settings) { s.Batch.Strict = true })
				time.Sleep(time.Second)
				w.produce(0, calls("s", 0, 96)...)
				w.produce(1, calls("z", 0, 96)...)
				time.Sleep(10 * time.Minute)
				if got := w.committed("ledgerlake", 0); got != 32 {
					t.Errorf("committed offset %d while the second batch is refused, want 32", got)
				}
				if got := w.committed("ledgerlake", 1); got != 96 {
					t.Errorf("the other partition is at %d, want 96", got)
				}
				refuse = false
				time.Sleep(time.Minute)
				r.wantCleanStop()
				for p := range int32(2) {
					wantKinds(t, w.check(p).kinds(), slices.Repeat([]string{"call"}, 96)...)
				}
			})
		})
	}
}

// A reply is lost, the write is sent again, and the answer is that the key is
// taken: the task believes that somebody else has it, and stops, or writes the
// same rows under another name. Here the bytes there are known for our own.
func TestA412ThatIsOnesOwnLostReply(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		lost := 0
		w.bucket.set(nil, func(op, key string) error {
			if op == "create" && strings.HasPrefix(key, "log/") && lost < 2 {
				lost++
				return errors.New("connection reset")
			}
			return nil
		})
		w.produce(0, calls("s", 0, 40)...)
		r := w.ingest()
		time.Sleep(5 * time.Second)
		r.wantCleanStop()
		wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 40)...)
		if lost != 2 || r.adopted != 0 {
			t.Errorf("%d replies lost, %d segments adopted; want 2 and none", lost, r.adopted)
		}
	})
}

// Kafka comes back without the end of its log. To go on would skip what it
// writes there next. The partition stops with an alarm, whether Kafka says so
// at the start, when it is asked how far an epoch goes, or in the middle of
// fetching; other partitions go on. When Kafka has its log again, so do we.
func TestALogThatEndsBeforeUs(t *testing.T) {
	for name, c := range map[string]struct {
		key     kmsg.Key
		running bool
	}{
		"at the start":  {key: kmsg.ListOffsets},
		"by its epoch":  {key: kmsg.OffsetForLeaderEpoch},
		"while running": {key: kmsg.ListOffsets, running: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				w.archived(calls("s", 0, 6))
				var r *run
				if c.running {
					r = w.tether().ingest(2)
					time.Sleep(5 * time.Second)
				}
				honest := w.pretendEnd(c.key, 2)
				if c.running {
					w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Partitions: []int32{0}, Err: kerr.OffsetOutOfRange})
				} else {
					r = w.tether().ingest(2)
				}
				time.Sleep(5 * time.Second)
				w.produce(0, calls("t", 0, 4)...)
				w.produce(1, calls("z", 0, 4)...)
				w.waitCommitted(1, 4)
				if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 {
					t.Errorf("stop: %v, alarms %v", err, r.stopped)
				}
				wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 6)...)
				wantKinds(w.t, w.check(1).kinds(), slices.Repeat([]string{"call"}, 4)...)
				honest()
				r = w.tether().ingest(3)
				w.waitCommitted(0, 10)
				r.wantCleanStop()
				wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 10)...)
			})
		})
	}
}

// pretendEnd lets Kafka say, in answer to requests of a key, that partition 0
// ends at an offset, until honest is called.
func (w *world) pretendEnd(key kmsg.Key, end int64) (honest func()) {
	const others = 4 // as many as the tests produce there
	var stop atomic.Bool
	w.kafka.ControlKey(int16(key), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if stop.Load() {
			w.kafka.DropControl()
			return nil, nil, false
		}
		w.kafka.KeepControl()
		endOf := func(p int32) int64 {
			if p == 0 {
				return end
			}
			return others
		}
		switch req := r.(type) {
		case *kmsg.ListOffsetsRequest:
			return pretendOffsets(req, endOf), nil, true
		case *kmsg.OffsetForLeaderEpochRequest:
			return pretendEpochs(req, endOf), nil, true
		}
		return nil, nil, false
	})
	return func() { stop.Store(true) }
}

func pretendOffsets(req *kmsg.ListOffsetsRequest, endOf func(int32) int64) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range req.Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			a := kmsg.NewListOffsetsResponseTopicPartition()
			a.Partition, a.LeaderEpoch, a.Offset = p.Partition, 0, 0
			if p.Timestamp == -1 {
				a.Offset = endOf(p.Partition)
			}
			out.Partitions = append(out.Partitions, a)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func pretendEpochs(req *kmsg.OffsetForLeaderEpochRequest, endOf func(int32) int64) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range req.Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			a := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			a.Partition, a.LeaderEpoch, a.EndOffset = p.Partition, p.LeaderEpoch, endOf(p.Partition)
			out.Partitions = append(out.Partitions, a)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// Two tasks are started by hand for one partition, which no group has given to
// either. They make one line, each row once, also when one of them is killed
// and started again; and both go on.
func TestTwoTasksStartedByHandMakeOneLine(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		byHand := func(s *pipeline.Settings) {
			s.Topics, s.Assign = nil, []pipeline.Partition{{Topic: topic, Number: 0}}
		}
		a, first := w.tether().ingest(1, byHand), w.tether()
		b := first.ingest(2, byHand)
		time.Sleep(time.Second)
		for i := range 20 {
			w.produce(0, calls("s", 10*i, 10)...)
			time.Sleep(70 * time.Millisecond)
			if i == 10 {
				first.cut()
				b.cancel()
				<-b.done
				b = w.tether().ingest(3, byHand)
			}
		}
		w.waitCommitted(0, 200)
		time.Sleep(2 * time.Second)
		a.wantCleanStop()
		b.wantCleanStop()
		w.wantLine(len(w.ledger(0).segments))
		wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 200)...)
		if a.adopted+b.adopted == 0 {
			t.Error("neither adopted a segment of the other: the test shows nothing")
		}
	})
}

// A process that was asleep while another wrote a hundred segments reads them,
// and sends nothing of its own before it has come to their end.
func TestCatchingUpSendsNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		sleeper := w.tether()
		sleeper.delay(bucketCall("create", "/00000000000000000000.parquet"), false, 4*time.Minute)
		a := sleeper.ingest(1)
		w.produce(0, calls("s", 0, 3)...)
		b := w.tether().ingest(2, func(s *pipeline.Settings) { s.Group = "other" })
		for i := range 100 {
			w.produce(0, calls("s", 3+3*i, 3)...)
			w.waitSegments(i + 1)
		}
		b.wantCleanStop()
		before := w.creates("log/")
		waitFor(w.t, "the sleeper to wake up", func() bool { return w.creates("log/") > before })
		w.waitCommitted(0, 303)
		a.wantCleanStop()
		if got := w.creates("log/") - before; got > 2 {
			t.Errorf("%d creates by the one that woke up", got)
		}
		wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 303)...)
	})
}

// A group that archived to one bucket and finds another archive in its place
// says so, and begins anew: nobody can tell a wrong bucket from a new one.
func TestAnotherArchiveIsSaid(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.archived(calls("s", 0, 3))
		w.memory = archive.NewMemory()
		w.bucket.Bucket = w.memory
		w.produce(0, calls("s", 3, 3)...)
		r := w.tether().ingest(2)
		w.waitCommitted(0, 6)
		r.wantCleanStop()
		if !slices.ContainsFunc(r.warned, func(s string) bool { return strings.Contains(s, "archived elsewhere before") }) {
			t.Errorf("warned of %q", r.warned)
		}
		wantKinds(w.t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 6)...)
	})
}

// A partition is taken away while its PUT is in flight, and the PUT ends in a
// fault. When the partition comes back, mended, it is read on: a fault of then
// is none of now.
func TestAPartitionThatComesBackIsReadOn(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		a := w.tether().ingest(1)
		w.produce(0, calls("a", 0, 3)...)
		w.produce(1, calls("b", 0, 3)...)
		w.waitCommitted(0, 3)
		w.waitCommitted(1, 3)
		w.bucket.set(func(op, key string) error {
			if op == "create" && strings.HasSuffix(key, "/00000000000000000001.parquet") {
				time.Sleep(6 * time.Second)
				_, _ = w.memory.Create(context.Background(), key, []byte("not a segment"))
			}
			return nil
		}, nil)
		w.produce(0, calls("a", 3, 3)...)
		w.produce(1, calls("b", 3, 3)...)
		time.Sleep(time.Second)
		b := w.tether().ingest(2) // takes one of the two
		time.Sleep(time.Minute)
		w.bucket.set(nil, nil)
		for _, key := range w.memoryKeys("log/") {
			if strings.HasSuffix(key, "/00000000000000000001.parquet") {
				w.memory = without(t, w.memory, key)
			}
		}
		w.bucket.Bucket = w.memory
		if err := b.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) {
			t.Errorf("stop: %v", err)
		}
		time.Sleep(2 * time.Minute)
		w.produce(0, calls("a", 6, 3)...)
		w.produce(1, calls("b", 6, 3)...)
		time.Sleep(5 * time.Minute)
		for _, p := range a.Status().Partitions {
			if p.Stopped == nil && (p.NextOffset != 9 || p.End != 9) {
				t.Errorf("partition %d is at offset %d of %d, and nothing says why", p.Line.Partition, p.NextOffset, p.End)
			}
		}
		if err := a.stop(); len(a.stopped) == 0 && err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}

// After a new leader was elected, nothing but transaction markers came. A client
// that asked Kafka for the end of the epoch before would be told that records
// were lost; here no epoch is given where a gap lies in front of the next offset,
// and the next process reads on. So it is when segments are compared.
func TestMarkersOfANewLeaderAreNoLoss(t *testing.T) {
	for _, vouched := range []bool{true, false} {
		inWorld(t, 1, func(w *world) {
			w.archived(calls("s", 0, 3))
			if err := w.kafka.MoveTopicPartition(topic, 0, 0); err != nil {
				t.Fatal(err)
			}
			w.transaction(kgo.TryAbort, call("x", 1, ""), call("x", 2, ""))
			first := w.tether().ingest(2)
			w.waitCommitted(0, 6)
			first.wantCleanStop()
			if !vouched {
				w.deleteVouchers()
			}
			w.produce(0, calls("s", 3, 3)...)
			second := w.tether().ingest(3)
			w.waitCommitted(0, 9)
			second.wantCleanStop()
			wantKinds(t, w.check(0).kinds(), "call", "call", "call", "compacted", "compacted", "control", "call", "call", "call")
		})
	}
}

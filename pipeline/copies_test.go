package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// prefixes returns the bucket as it was after each of its writes, in their order.
func (w *world) prefixes(record func()) (all []*archive.Memory) {
	w.t.Helper()
	w.bucket.set(nil, func(op, _ string) error {
		if op == "create" {
			all = append(all, copyOf(w.t, w.memory))
		}
		return nil
	})
	record()
	w.bucket.set(nil, nil)
	return all
}

// A bucket that was restored from a backup ends the run, at whatever point the
// backup was made, as soon as an anchor is missing that Kafka has; and with
// trust-bucket one start makes a good archive of it, of all that Kafka has. The
// starts after that need no such word.
func TestABucketRestoredFromABackup(t *testing.T) {
	for _, vouchers := range []bool{true, false} {
		backups := 1
		for n := 0; n < backups; n++ {
			t.Run(fmt.Sprintf("backup %d, vouchers %t", n, vouchers), func(t *testing.T) {
				inWorld(t, 1, func(w *world) {
					key := newKey(t, "k")
					all := w.prefixes(func() {
						for i := range 2 {
							r := w.tether().ingest(byte(i+1), signedBy(t, key))
							for k := range 2 {
								w.produce(0, calls("s", 6*i+3*k, 3)...)
								w.waitSegments(2*i + k + 1)
							}
							r.wantCleanStop()
						}
					})
					w.wantProved(key)
					backups = len(all) - 1 // all but the last have lost something
					w.memory = all[n]
					w.bucket.Bucket = w.memory
					if !vouchers {
						w.deleteVouchers()
					}
					r := w.tether().ingest(3, signedBy(t, key))
					if err := <-r.done; !errors.Is(err, pipeline.ErrWentBack) || !strings.Contains(err.Error(), "audit.calls/0") || !strings.Contains(err.Error(), "trust-bucket") {
						t.Fatalf("end: %v", err)
					}
					if got := len(w.memoryKeys("")); got != len(copyKeys(t, all[n])) {
						t.Errorf("%d objects where there were %d", got, len(copyKeys(t, all[n])))
					}
					w.produce(0, calls("s", 12, 3)...)
					w.tether().ingest(4, signedBy(t, key), func(s *pipeline.Settings) { s.TrustBucket = true }).waitAndStop(15)
					w.produce(0, calls("s", 15, 3)...)
					w.tether().ingest(5, signedBy(t, key)).waitAndStop(18)
					w.tether().ingest(6, signedBy(t, key)).waitAndStop(18)
					w.wantProved(key)
					wantKinds(t, w.ledger(0).kinds(), slices.Repeat([]string{"call"}, 18)...)
				})
			})
		}
		if backups < 6 {
			t.Fatalf("%d backups", backups)
		}
	}
}

// A bucket that was emptied becomes another archive. Kafka knows, by the signed
// anchors of the one that is gone, and they are not written over.
func TestAnEmptiedBucket(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key := newKey(t, "k")
		w.produce(0, calls("s", 0, 3)...)
		w.tether().ingest(1, signedBy(t, key)).waitAndStop(3)
		w.memory = archive.NewMemory()
		w.bucket.Bucket = w.memory
		w.deleteVouchers()
		r := w.tether().ingest(2, signedBy(t, key))
		if err := <-r.done; !errors.Is(err, pipeline.ErrWentBack) || !strings.Contains(err.Error(), "another bucket") {
			t.Fatalf("end: %v", err)
		}
		if left := len(w.memoryKeys("log/")) + len(w.memoryKeys("anchor/")); left > 0 {
			t.Errorf("%d objects in a bucket that was emptied", left)
		}
		w.tether().ingest(3, signedBy(t, key), func(s *pipeline.Settings) { s.TrustBucket = true }).waitAndStop(3)
		w.produce(0, calls("s", 3, 3)...)
		w.tether().ingest(4, signedBy(t, key)).waitAndStop(6)
		w.wantProved(key)
	})
}

// waitAndStop stops a process cleanly once the group's offset has come so far.
func (r *run) waitAndStop(offset int64) {
	r.w.t.Helper()
	r.w.waitCommitted(0, offset)
	time.Sleep(3 * time.Second)
	r.wantCleanStop()
}

func copyKeys(t *testing.T, m *archive.Memory) (keys []string) {
	t.Helper()
	for o, err := range m.List(context.Background(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

// What no good key has signed says nothing, whatever number it has: a bucket that
// is whole is not stopped by what somebody sends to Kafka, and is warned of.
func TestForgedCopiesAreIgnored(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key, stranger := newKey(t, "k"), newKey(t, "x")
		w.archivedWith(signedBy(t, key), calls("s", 0, 3), calls("s", 3, 3))
		l, newest := w.lineOf(0), w.anchorsOf(0)[0]
		forged := *newest.Anchor
		forged.Number, forged.Previous, forged.Full = 7, &newest.sum, false
		other := forged
		other.ArchiveID = "01KBCDEFGHJKMNPQRSTVWXYZ09"
		bad, _ := strings.CutSuffix(string(w.signAnchor(&forged, key)), "=\n")
		for _, value := range [][]byte{
			w.signAnchor(&forged), w.signAnchor(&forged, stranger), w.signAnchor(&other, key), []byte("no note"), nil, []byte(bad),
			[]byte(strings.Replace(string(w.signAnchor(&forged, key)), `"number":7`, `"number":8`, 1)),
		} {
			w.send(l, value)
		}
		w.produce(0, calls("s", 6, 3)...)
		r := w.tether().ingest(2, signedBy(t, key))
		r.waitAndStop(9)
		w.wantProved(key)
		if !slices.ContainsFunc(r.warned, func(s string) bool { return strings.Contains(s, "are ignored") }) {
			t.Errorf("warned of %q", r.warned)
		}
	})
}

// An old anchor that is sent again does not hide that there were newer ones.
func TestAnOldCopyHidesNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key := newKey(t, "k")
		all := w.prefixes(func() {
			w.archivedWith(signedBy(t, key), calls("s", 0, 3))
			r := w.tether().ingest(2, signedBy(t, key))
			w.produce(0, calls("s", 3, 3)...)
			r.waitAndStop(6)
		})
		old := w.anchorsOf(0)[0]
		w.send(w.lineOf(0), w.signAnchor(old.Anchor, key))
		w.memory = all[2]
		w.bucket.Bucket = w.memory
		w.deleteVouchers()
		if err := <-w.tether().ingest(3, signedBy(t, key)).done; !errors.Is(err, pipeline.ErrWentBack) {
			t.Errorf("end: %v", err)
		}
	})
}

// A process can die between the bucket and Kafka: the next one sends the anchor,
// and what it meets of the bucket is not called lost.
func TestACopyThatWasNotSentIsSentByTheNext(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key := newKey(t, "k")
		w.archivedWith(func(s *pipeline.Settings) { signedBy(t, key)(s); s.AnchorTopic = "" }, calls("s", 0, 3))
		if got := w.copiesInKafka(); len(got) != 0 {
			t.Fatalf("Kafka has %v", got)
		}
		w.tether().ingest(2, signedBy(t, key)).waitAndStop(3)
		if got := w.copiesInKafka(); !slices.Equal(got[0], []int64{0}) {
			t.Errorf("Kafka has %v, want anchor 0", got)
		}
		w.tether().ingest(3, signedBy(t, key)).waitAndStop(3)
		if got := w.copiesInKafka(); !slices.Equal(got[0], []int64{0}) {
			t.Errorf("Kafka has %v, want anchor 0 once", got)
		}
		w.wantProved(key)
	})
}

// The topic of copies may be one that nobody may make, read or write: that is
// told, and holds up nothing.
func TestATopicOfAnchorsThatIsRefused(t *testing.T) {
	for _, refused := range []kmsg.Key{kmsg.CreateTopics, kmsg.Produce} {
		t.Run(refused.Name(), func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				key := newKey(t, "k")
				w.produce(0, calls("s", 0, 3)...)
				w.kafka.ControlKey(int16(refused), func(r kmsg.Request) (kmsg.Response, error, bool) {
					w.kafka.KeepControl()
					return refuse(r)
				})
				r := w.tether().ingest(1, signedBy(t, key))
				r.waitAndStop(3)
				w.wantProved(key)
				if len(r.warned)+len(r.notCopied) == 0 {
					t.Error("nothing was said")
				}
			})
		})
	}
}

// refuse answers that this may not be done.
func refuse(r kmsg.Request) (kmsg.Response, error, bool) {
	const topicAuthorizationFailed = 29
	switch r := r.(type) {
	case *kmsg.CreateTopicsRequest:
		resp := r.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, t := range r.Topics {
			one := kmsg.NewCreateTopicsResponseTopic()
			one.Topic, one.ErrorCode = t.Topic, topicAuthorizationFailed
			resp.Topics = append(resp.Topics, one)
		}
		return resp, nil, true
	case *kmsg.ProduceRequest:
		resp := r.ResponseKind().(*kmsg.ProduceResponse)
		for _, t := range r.Topics {
			one := kmsg.NewProduceResponseTopic()
			one.Topic, one.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				part := kmsg.NewProduceResponseTopicPartition()
				part.Partition, part.ErrorCode = p.Partition, topicAuthorizationFailed
				one.Partitions = append(one.Partitions, part)
			}
			resp.Topics = append(resp.Topics, one)
		}
		return resp, nil, true
	}
	return nil, nil, false
}

// The topic is made so that Kafka keeps of each line the newest anchor, however
// large.
func TestTheTopicOfAnchorsIsMade(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.archivedWith(signedBy(t, newKey(t, "k")), calls("s", 0, 3))
		configs, err := kadm.NewClient(w.client).DescribeTopicConfigs(context.Background(), anchorTopic)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, c := range configs[0].Configs {
			got[c.Key] = c.MaybeValue()
		}
		if got["cleanup.policy"] != "compact" || got["max.message.bytes"] != fmt.Sprint(64<<20) {
			t.Errorf("cleanup.policy %q, max.message.bytes %q", got["cleanup.policy"], got["max.message.bytes"])
		}
	})
}

// Keys go by what signed anchors introduce, not by clocks: old, then both, then
// the new one alone, each start knowing only what its settings say.
func TestKeysRotate(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		old, next := newKey(t, "old"), newKey(t, "next")
		by := func(known *sign.Ring, publish []string, keys ...note.Signer) func(*pipeline.Settings) {
			return func(s *pipeline.Settings) {
				s.Signers = func(time.Time) []note.Signer { return keys }
				s.Keys, s.AnchorTopic = known, anchorTopic
				s.AnchorKeys = archive.AnchorKeys{Anchor: publish}
			}
		}
		offset := int64(0)
		life := func(seed byte, mutate func(*pipeline.Settings)) *run {
			w.produce(0, calls("s", int(offset), 3)...)
			offset += 3
			r := w.tether().ingest(seed, mutate)
			r.waitAndStop(offset)
			return r
		}
		life(1, by(ringOf(t, old), []string{old.VKey()}, old))
		life(2, by(ringOf(t, old), []string{old.VKey(), next.VKey()}, old))
		life(3, by(ringOf(t, old), []string{old.VKey(), next.VKey()}, old, next))
		life(4, by(ringOf(t, old), []string{next.VKey()}, next))
		life(5, by(ringOf(t, next), []string{next.VKey()}, next))
		w.wantProved(old)
		w.wantProved(next)
		// Whoever knows neither builds on nothing of it.
		stranger := newKey(t, "x")
		r := w.tether().ingest(6, signedBy(t, stranger))
		time.Sleep(time.Minute)
		if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 || !strings.Contains(r.stopped[0].Error(), "next+") || !strings.Contains(r.stopped[0].Error(), "anchor-keys") {
			t.Errorf("stop: %v, alarms %v", err, r.stopped)
		}
	})
}

// A key that a note in the bucket certifies, by a key that is known, is as good as
// that one, for the bucket and for Kafka.
func TestACertifiedKey(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		long, short, next := newKey(t, "long"), newKey(t, "short"), newKey(t, "next")
		by := func(key *sign.Signer) func(*pipeline.Settings) {
			return func(s *pipeline.Settings) {
				signedBy(t, key)(s)
				s.Keys = ringOf(t, long)
			}
		}
		w.archivedWith(func(*pipeline.Settings) {})
		w.certify(long, short)
		w.certify(long, next)
		w.produce(0, calls("s", 0, 3)...)
		w.tether().ingest(2, by(short)).waitAndStop(3)
		w.produce(0, calls("s", 3, 3)...)
		r := w.tether().ingest(3, by(next))
		r.waitAndStop(6)
		if len(r.warned) > 0 {
			t.Errorf("warned of %q", r.warned)
		}
		w.wantProved(long)
	})
}

// An archive that began without keys is signed from the first start with one on,
// after its anchors were compared with the segments.
func TestAnArchiveThatBeganWithoutKeys(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key := newKey(t, "k")
		w.archived(calls("s", 0, 3), calls("s", 3, 3))
		w.produce(0, calls("s", 6, 3)...)
		w.tether().ingest(2, signedBy(t, key)).waitAndStop(9)
		w.check(0)
		all := w.anchorsOf(0)
		if n := len(all[len(all)-1].note.Signatures); n != 1 {
			t.Errorf("%d anchors, the newest with %d signatures", len(all), n)
		}
		// And once without, by mistake or by somebody else: nothing signed is built
		// on that, or a verifier would find less than was asked for, for good.
		w.produce(0, calls("s", 9, 3)...)
		w.tether().ingest(3).waitAndStop(12)
		w.produce(0, calls("s", 12, 3)...)
		r := w.tether().ingest(4, signedBy(t, key))
		time.Sleep(time.Minute)
		if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || !strings.Contains(fmt.Sprint(r.stopped), "delete the object") {
			t.Errorf("end: %v, alarms %v", err, r.stopped)
		}
		if n := len(w.anchorsOf(0)); n != len(all)+1 {
			t.Errorf("%d anchors, there were %d and one without a signature", n, len(all))
		}
	})
}

// An anchor that nobody signed says nothing to a process with keys: a false head
// in it, of a log that does not change, is not built on and not signed, be it
// behind signed ones or in an archive that began without keys; nor is what a
// segment says that is not the one that its successor names.
func TestWhatNobodySignedIsNotSigned(t *testing.T) {
	key := newKey(t, "k")
	lie := func(w *world) {
		w.t.Helper()
		all := w.anchorsOf(0)
		newest := all[len(all)-1]
		a := *newest.Anchor
		a.Number, a.Previous, a.Full, a.Segments = newest.Number+1, &newest.sum, false, nil
		a.Heads = slices.Clone(a.Heads)
		a.Heads[0].Head[0] ^= 1
		w.putAnchor(&a)
	}
	for name, c := range map[string]struct {
		first func(*pipeline.Settings)
		lie   func(w *world)
	}{
		"behind signed ones":   {signedBy(t, key), lie},
		"behind unsigned ones": {func(*pipeline.Settings) {}, lie},
		"an old segment": {func(*pipeline.Settings) {}, func(w *world) {
			body := w.otherSegment(0)
			w.memory = without(t, w.memory, archive.SegmentKey(w.lineOf(0), 0))
			w.bucket.Bucket = w.memory
			w.put(0, body)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.archivedWith(c.first, calls("s", 0, 3), calls("s", 3, 3))
				c.lie(w)
				before := w.memoryKeys("")
				w.produce(0, calls("s", 6, 3)...)
				r := w.tether().ingest(2, signedBy(t, key))
				time.Sleep(2 * time.Minute)
				if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 {
					t.Errorf("stop: %v, alarms %v", err, r.stopped)
				}
				if after := w.memoryKeys(""); !slices.Equal(after, before) {
					t.Errorf("it wrote: %q", after[len(before):])
				}
			})
		})
	}
}

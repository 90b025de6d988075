package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// The records that the segment in question is about, from offset 3 on, behind
// three good ones.
func suspects() []string {
	return []string{
		3: call("s", 3, ""),
		4: call("s", 4, ""),
		5: call("s", 1, ""),                                           // a repeat of seq 1
		6: strings.Replace(call("s", 2, ""), "model-a", "model-b", 1), // a conflict with seq 2
		7: "not JSON",
		8: call("s", 5, ""),
	}[3:]
}

// A forgery changes the honest segment. at is the offset that the alarm names.
type forgery struct {
	name  string
	at    string
	alter func(o *archive.SegmentObject)
}

var forgeries = []forgery{
	{"a changed column", "offset 3", func(o *archive.SegmentObject) { o.Rows[0].ModelID = audit.Str("model-z") }},
	{"a changed slot", "offset 4", func(o *archive.SegmentObject) { o.Rows[1].Slots[audit.SlotExt] = []byte(`{"x":1}`) }},
	{"another user", "offset 3", func(o *archive.SegmentObject) { o.Rows[0].UserID = audit.Str("u-2") }},
	{"a column that is derived", "offset 3", func(o *archive.SegmentObject) { o.Rows[0].RequestedModel = audit.Str("m") }},
	{"another timestamp", "offset 3", func(o *archive.SegmentObject) { o.Rows[0].KafkaTimestamp.N++ }},
	{"another tenant", "offset 8", func(o *archive.SegmentObject) { o.Rows[4].TenantID = audit.Str("globex") }},
	{"another topic", "offset 3", func(o *archive.SegmentObject) { o.Rows[0].Topic = audit.Str("other") }},
	{"rows in another order", "offset 3", func(o *archive.SegmentObject) {
		o.Rows[0], o.Rows[1] = o.Rows[1], o.Rows[0]
		o.Rows[0].KafkaOffset, o.Rows[1].KafkaOffset = o.Rows[1].KafkaOffset, o.Rows[0].KafkaOffset
	}},
	{"a gap where there is a record", "offset 3", func(o *archive.SegmentObject) {
		o.Rows, o.Gaps = o.Rows[1:], []archive.Gap{{From: 3, To: 4, Cause: archive.GapCompacted}}
	}},
	{"a marker where there is a record", "offset 4", func(o *archive.SegmentObject) {
		o.Rows, o.Gaps = slices.Delete(o.Rows, 1, 2), []archive.Gap{{From: 4, To: 5, Cause: archive.GapControl}}
	}},
	{"a loss that did not happen", "offset 3", func(o *archive.SegmentObject) {
		g := archive.Gap{From: 3, To: 4, Cause: archive.GapLost}
		made := o.Rows[0]
		audit.Gap(&made.Record, g.From, g.To, g.Cause)
		made.Topic, made.Partition, made.TopicID, made.Epoch, made.Seq, made.ArchivedAt = o.Rows[0].Topic, o.Rows[0].Partition, o.Rows[0].TopicID, o.Rows[0].Epoch, audit.I64(0), o.Rows[0].ArchivedAt
		o.Rows[0], o.Gaps, o.Made = made, []archive.Gap{g}, 1
	}},
	{"a repeat that is none", "offset 3", func(o *archive.SegmentObject) {
		o.Rows, o.Duplicates = o.Rows[1:], append([]archive.Duplicate{{Offset: 3, Tenant: "acme", Seq: 0}}, o.Duplicates...)
	}},
	{"a repeat of another row", "offset 5", func(o *archive.SegmentObject) { o.Duplicates[0].Seq = 0 }},
	{"a repeat of a row to come", "offset 5", func(o *archive.SegmentObject) { o.Duplicates[0].Seq = 99 }},
	{"a repeat in another log", "offset 5", func(o *archive.SegmentObject) { o.Duplicates[0].Tenant = "globex" }},
	{"a conflict that is called a repeat", "offset 6", func(o *archive.SegmentObject) {
		o.Rows, o.Duplicates = slices.Delete(o.Rows, 2, 3), append(o.Duplicates, archive.Duplicate{Offset: 6, Tenant: "acme", Seq: 2})
	}},
	{"a conflict with another row", "offset 6", func(o *archive.SegmentObject) {
		c := &o.Rows[2].Slots[audit.SlotContext]
		*c = []byte(strings.Replace(string(*c), "of seq 2", "of seq 1", 1))
	}},
	{"a reject without a reason", "offset 3", func(o *archive.SegmentObject) {
		offset, at := o.Rows[0].KafkaOffset, o.Rows[0].KafkaTimestamp
		o.Rows[0].Record = o.Rows[3].Record
		o.Rows[0].KafkaOffset, o.Rows[0].KafkaTimestamp = offset, at
	}},
	{"other bytes in a reject", "offset 7", func(o *archive.SegmentObject) { o.Rows[3].Slots[audit.SlotRaw] = []byte("never was") }},
	{"a row that no record made", "offset 9", func(o *archive.SegmentObject) {
		made := o.Rows[0]
		made.KafkaOffset = audit.I64(9)
		o.Rows, o.NextOffset = append(o.Rows, made), 10
	}},
	{"a gap beyond the log", "offset 9", func(o *archive.SegmentObject) {
		o.Gaps, o.NextOffset = []archive.Gap{{From: 9, To: 1 << 10, Cause: archive.GapCompacted}}, 1<<10
	}},
	{"a row that ingest made for no reason", "offset 3", func(o *archive.SegmentObject) {
		made := o.Rows[0]
		made.KafkaOffset, made.KafkaTimestamp = audit.Int{}, audit.Int{}
		o.Rows, o.Made = append([]chain.Row{made}, o.Rows...), 1
	}},
	{"an offset twice, another never", "offset 4", func(o *archive.SegmentObject) { o.Rows[1].KafkaOffset.N = 3 }},
	{"a column of data files", "offset 3", func(o *archive.SegmentObject) { o.Rows[0].RepeatOf = audit.I64(0) }},
	{"a clock of the next century", "offset 3", func(o *archive.SegmentObject) {
		for i := range o.Rows {
			o.Rows[i].ArchivedAt.N += int64(100 * 365 * 24 * time.Hour / time.Microsecond)
		}
	}},
	{"an epoch to come", "offset 8", func(o *archive.SegmentObject) { o.LeaderEpoch += 7 }},
	{"stamped before the row in front of it", "offset 3", func(o *archive.SegmentObject) { o.Rows[0].ArchivedAt.N -= 24 * 3600 * 1e6 }},
	{"a row in the next century, and the last in this", "offset 3", func(o *archive.SegmentObject) {
		o.Rows[1].ArchivedAt.N += int64(100 * 365 * 24 * time.Hour / time.Microsecond)
	}},
	{"of a version that nobody knows", "offset 3", func(o *archive.SegmentObject) {
		o.Writer.Version, o.Rows[0].ModelID = "invented", audit.Str("model-z")
	}},
	{"a conflict that a version that nobody knows calls a repeat", "offset 6", func(o *archive.SegmentObject) {
		o.Writer.Version = "invented"
		o.Rows, o.Duplicates = slices.Delete(o.Rows, 2, 3), append(o.Duplicates, archive.Duplicate{Offset: 6, Tenant: "acme", Seq: 2})
	}},
}

// These are refused of the version that was vouched for last too, which may have
// made other columns.
var versionForgeries = []forgery{
	{"for another tenant", "offset 3", func(o *archive.SegmentObject) {
		o.Rows[0].TenantID = audit.Str("globex")
	}},
	{"elsewhere in its turn", "offset 3", func(o *archive.SegmentObject) {
		o.Rows[0].SeqWithinTurn = audit.I64(77)
	}},
	{"rejected", "offset 3", func(o *archive.SegmentObject) {
		o.Rows[0].Kind = audit.Str(audit.KindRejected)
	}},
	{"with a gap", "offset 8", func(o *archive.SegmentObject) {
		o.Rows, o.Gaps = o.Rows[:4], []archive.Gap{{From: 8, To: 9, Cause: archive.GapCompacted}}
	}},
	{"another timestamp", "offset 3", func(o *archive.SegmentObject) { o.Rows[0].KafkaTimestamp.N++ }},
	{"another topic", "offset 3", func(o *archive.SegmentObject) { o.Rows[0].Topic = audit.Str("other") }},
	{"a repeat of another row", "offset 5", func(o *archive.SegmentObject) { o.Duplicates[0].Seq = 0 }},
}

// What somebody puts where the next segment belongs is never built on, whatever
// it lies about and however well its chain holds: neither by a process that
// finds it when it starts, nor by one that finds it when it wants to write
// there. The alarm names segment and offset, and other partitions go on.
func TestForgedSegmentsAreRefused(t *testing.T) {
	for before, list := range map[string][]forgery{"test": forgeries, "before": versionForgeries} {
		for _, f := range list {
			for when, put := range map[string]func(*world, []byte) *run{"at the start": (*world).putBefore, "while it runs": (*world).putUnder} {
				t.Run(before+"/"+f.name+"/"+when, func(t *testing.T) {
					inWorld(t, 2, func(w *world) { w.refuses(before, f, put) })
				})
			}
		}
	}
}

// refuses lets a process of a version archive three records and vouch for them,
// and another one meet a forgery that says to be of that version.
func (w *world) refuses(before string, f forgery, put func(*world, []byte) *run) {
	w.archivedBy(before)
	st, honest := w.honest()
	honest.Writer.Version = before
	f.alter(honest)
	body, err := archivetest.Forge(st, honest)
	if err != nil {
		w.t.Fatal(err)
	}
	r := put(w, body)
	waitFor(w.t, "the alarm", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.stopped) > 0
	})
	w.produce(0, calls("s", 20, 3)...)
	w.produce(1, calls("other", 0, 3)...)
	w.waitCommitted(1, 3)
	if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) {
		w.t.Errorf("stop: %v", err)
	}
	if why := r.stopped[0]; len(r.stopped) != 1 || !errors.Is(why, pipeline.ErrForged) || !strings.Contains(why.Error(), "segment 1: "+f.at+": ") {
		w.t.Errorf("alarms %v, want one for segment 1, %s", r.stopped, f.at)
	}
	if keys := w.memoryKeys(archive.SegmentPrefix(st.Line)); len(keys) != 2 {
		w.t.Errorf("the line went on: %q", keys)
	}
	if at := w.committed("ledgerlake", 0); at != 3 {
		w.t.Errorf("offset %d was committed, want 3", at)
	}
}

// archivedBy archives three records by a process of a version.
func (w *world) archivedBy(version string) {
	w.t.Helper()
	r := w.tether().ingest(1, func(s *pipeline.Settings) { s.Version = version })
	w.produce(0, calls("s", 0, 3)...)
	w.waitSegments(1)
	r.wantCleanStop()
}

// honest produces the suspects, and returns the state in front of the segment
// that an honest process makes of them, and that segment.
func (w *world) honest() (*archive.State, *archive.SegmentObject) {
	w.t.Helper()
	w.produce(0, suspects()...)
	before := w.ledger(0).state
	aside := copyOf(w.t, w.memory)
	r := w.ingest(func(s *pipeline.Settings) { s.Archive, s.Group, s.Rand = aside, "aside", newSeeded(9) })
	var body []byte
	waitFor(w.t, "the honest segment", func() (ok bool) {
		var err error
		body, err = aside.Get(context.Background(), archive.SegmentKey(before.Line, before.Ordinal))
		return err == nil
	})
	r.wantCleanStop()
	o, err := archive.ReadSegment(body, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(o.Rows) != 5 || len(o.Duplicates) != 1 || o.NextOffset != 9 {
		w.t.Fatalf("the honest segment has %d rows, repeats %v, and ends at %d", len(o.Rows), o.Duplicates, o.NextOffset)
	}
	return before, o
}

// putBefore puts a segment 1 into the bucket, and then starts a process.
func (w *world) putBefore(body []byte) *run {
	w.put(1, body)
	return w.tether().ingest(2)
}

// putUnder starts a process, and puts a segment 1 into the bucket at the moment
// when it creates its own.
func (w *world) putUnder(body []byte) *run {
	w.bucket.set(func(op, key string) error {
		if op == "create" && strings.HasSuffix(key, "/00000/00000000000000000001.parquet") {
			if _, err := w.memory.Create(context.Background(), key, body); err != nil && !errors.Is(err, archive.ErrExists) {
				return err
			}
		}
		return nil
	}, nil)
	return w.tether().ingest(2)
}

func (w *world) put(ordinal int64, body []byte) {
	w.t.Helper()
	key := archive.SegmentKey(archive.Line{Topic: topic, TopicID: w.topicID()}, ordinal)
	if _, err := w.memory.Create(context.Background(), key, body); err != nil {
		w.t.Fatal(err)
	}
}

// A segment that says what Kafka says is adopted, whoever wrote it: one of equal
// rows and other salts, and one of another version that made other columns of
// the same records, where that version is the one that was vouched for last.
func TestHonestSegmentsAreAdopted(t *testing.T) {
	for name, alter := range map[string]func(o *archive.SegmentObject){
		"of this version":                func(o *archive.SegmentObject) { o.Writer.Version = "test" },
		"of a version that nobody knows": func(o *archive.SegmentObject) { o.Writer.Version = "invented" },
		"of another version": func(o *archive.SegmentObject) {
			o.Rows[0].ModelID = audit.Str("normalised")
		},
		"that found a repeat and a conflict otherwise": func(o *archive.SegmentObject) {
			o.Duplicates = append(o.Duplicates, archive.Duplicate{Offset: 6, Tenant: "acme", Seq: 2})
			o.Rows = slices.Delete(o.Rows, 2, 3)
		},
		"with more slots": func(o *archive.SegmentObject) {
			o.Rows[0].Slots[audit.SlotPrompts] = []byte(`{"prompt":"x"}`)
		},
	} {
		for when, put := range map[string]func(*world, []byte) *run{"at the start": (*world).putBefore, "while it runs": (*world).putUnder} {
			t.Run(name+"/"+when, func(t *testing.T) {
				inWorld(t, 1, func(w *world) {
					w.archivedBy("before")
					st, honest := w.honest()
					honest.Writer.Version = "before"
					alter(honest)
					body, err := archivetest.Forge(st, honest)
					if err != nil {
						t.Fatal(err)
					}
					r := put(w, body)
					w.produce(0, calls("s", 20, 3)...)
					w.waitCommitted(0, 12)
					r.wantCleanStop()
					want := []string{"call", "call", "call", "call", "call", "duplicate", "rejected:conflict", "rejected:invalid_json", "call", "call", "call", "call"}
					if len(honest.Duplicates) == 2 {
						want[6] = "duplicate"
					}
					wantKinds(t, w.check(0).kinds(), want...)
				})
			})
		}
	}
}

// What is neither vouched for nor in Kafka any more cannot be compared. It is
// refused, unless the settings trust the tail.
func TestWhatKafkaNoLongerHas(t *testing.T) {
	for _, trust := range []bool{false, true} {
		inWorld(t, 1, func(w *world) {
			w.archived(calls("s", 0, 3), calls("s", 3, 3))
			w.deleteVouchers()
			w.produce(0, calls("s", 6, 3)...)
			w.deleteBefore(4)
			r := w.tether().ingest(2, func(s *pipeline.Settings) { s.TrustTail = trust })
			if trust {
				w.waitCommitted(0, 9)
				r.wantCleanStop()
				wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 9)...)
				return
			}
			time.Sleep(time.Minute)
			if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 || !strings.Contains(r.stopped[0].Error(), "segment 0: offset 0 cannot be compared") {
				t.Errorf("stop: %v, alarms %v", err, r.stopped)
			}
		})
	}
}

// What a process of the group has vouched for is not compared again: it may be
// gone from Kafka. Nothing else makes a segment one that is vouched for: not
// the group's own offset, and not another archive's voucher.
func TestVouchedSegmentsAreNotComparedAgain(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.archived(calls("s", 0, 3), calls("s", 3, 3))
		w.produce(0, calls("s", 6, 3)...)
		w.deleteBefore(6)
		w.deleteGroup("ledgerlake")
		r := w.tether().ingest(2)
		w.waitCommitted(0, 9)
		r.wantCleanStop()
		if len(r.compared) != 0 {
			t.Errorf("segments %v were compared", r.compared)
		}
		wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 9)...)
	})
}

// A bucket that no longer holds, or holds another segment in place of, what was
// vouched for went back in time: the partition stops, and says how to go on.
func TestABucketThatWentBackInTime(t *testing.T) {
	for name, restore := range map[string]func(w *world) []byte{
		"cut":      func(*world) []byte { return nil },
		"replaced": func(w *world) []byte { return w.otherSegment(1) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.archived(calls("s", 0, 3), calls("s", 3, 3))
				body := restore(w)
				key := archive.SegmentKey(w.ledger(0).state.Line, 1)
				w.memory = without(t, w.memory, key)
				for _, key := range w.memoryKeys("anchor/") {
					w.memory = without(t, w.memory, key)
				}
				w.bucket.Bucket = w.memory
				if body != nil {
					w.put(1, body)
				}
				r := w.tether().ingest(2)
				time.Sleep(time.Minute)
				if err := <-r.done; !errors.Is(err, pipeline.ErrWentBack) || len(r.stopped) != 1 || !strings.Contains(err.Error(), "audit.calls/0: segment 1: the bucket went back in time") {
					t.Errorf("end: %v, alarms %v", err, r.stopped)
				}
				w.produce(0, calls("s", 6, 3)...)
				again := w.tether().ingest(3, func(s *pipeline.Settings) { s.TrustBucket = true })
				w.waitCommitted(0, 9)
				again.wantCleanStop()
				wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 9)...)
			})
		})
	}
}

// otherSegment returns an honest segment in place of one that is there.
func (w *world) otherSegment(ordinal int64) []byte {
	w.t.Helper()
	o := w.ledger(0).segments[ordinal]
	st := archive.NewState(o.ArchiveID, o.Line())
	for _, s := range w.ledger(0).segments[:ordinal] {
		st.Take(s)
	}
	for i := range o.Rows {
		o.Rows[i].RowSalt.Hash[0] ^= 1
	}
	body, err := archivetest.Forge(st, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return body
}

// copyOf returns a bucket with the objects of another.
func copyOf(t *testing.T, from *archive.Memory) *archive.Memory { return without(t, from, "") }

// without returns a bucket with the objects of another but one.
func without(t *testing.T, from *archive.Memory, key string) *archive.Memory {
	t.Helper()
	to := archive.NewMemory()
	for o, err := range from.List(context.Background(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if o.Key == key {
			continue
		}
		body, err := from.Get(context.Background(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Create(context.Background(), o.Key, body); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// deleteVouchers lets Kafka forget what the group has vouched for.
func (w *world) deleteVouchers() { w.deleteGroup("ledgerlake.vouchers") }

// On a topic that is compacted, a row whose record a later one has replaced
// since counts as skipped; on any other, it is one that Kafka never said.
func TestRecordsThatWereCompactedAwaySince(t *testing.T) {
	for _, policy := range []string{"compact", "delete"} {
		t.Run(policy, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				for _, r := range []*kgo.Record{
					{Key: []byte("of its own"), Value: []byte(call("s", 0, ""))}, // stays, and with it the log start
					{Key: []byte("acme"), Value: []byte(call("s", 1, ""))},
					{Key: []byte("of its own, too"), Value: []byte(call("s", 1, ""))}, // a repeat that stays when its row goes
				} {
					if err := w.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
						t.Fatal(err)
					}
				}
				w.archived(nil, calls("s", 3, 3))
				w.setPolicy("compact")
				w.kafka.Compact()
				w.setPolicy(policy)
				w.deleteVouchers()
				w.produce(0, calls("s", 6, 3)...)
				r := w.tether().ingest(2)
				if policy == "compact" {
					w.waitCommitted(0, 9)
					r.wantCleanStop()
					wantKinds(t, w.check(0).kinds(), slices.Concat([]string{"call", "call", "duplicate"}, slices.Repeat([]string{"call"}, 6))...)
					return
				}
				time.Sleep(time.Minute)
				if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 || !strings.Contains(r.stopped[0].Error(), "segment 0: offset 1: not what Kafka says: Kafka has no record there") {
					t.Errorf("stop: %v, alarms %v", err, r.stopped)
				}
			})
		})
	}
}

func (w *world) setPolicy(policy string) {
	w.t.Helper()
	_, err := kadm.NewClient(w.client).AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &policy}}, topic)
	if err != nil {
		w.t.Fatal(err)
	}
}

// To compare repeats of old rows reads each segment that they are in once, and
// none where a window knows where the row is.
func TestComparingRepeatsReadsNothingTwice(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		const segments = 40
		first := w.tether().ingest(1)
		for i := range segments {
			w.produce(0, calls("s", i, 1)...)
			w.waitSegments(i + 1)
		}
		first.wantCleanStop()
		w.produce(0, calls("s", 0, segments)...)
		other := w.tether().ingest(2, func(s *pipeline.Settings) { s.Group = "other" })
		waitFor(t, "the repeats", func() bool { return other.status(0).NextOffset == 2*segments })
		other.wantCleanStop()
		for _, c := range []struct {
			window int
			most   int // reads of old segments
		}{
			{200_000, 3*segments + 4}, // metadata of all, coordinates of all, and their rows
			{1, 3*segments + 4},       // which walks back through the metadata once
		} {
			w.bucket.mu.Lock()
			w.bucket.calls = nil
			w.bucket.mu.Unlock()
			r := w.tether().ingest(3, func(s *pipeline.Settings) { s.Window = c.window })
			waitFor(t, "the start", func() bool { return r.status(0).NextOffset == 2*segments })
			w.bucket.mu.Lock()
			reads := 0
			for _, call := range w.bucket.calls {
				if strings.HasPrefix(call, "get log/") || strings.HasPrefix(call, "tail log/") {
					reads++
				}
			}
			w.bucket.mu.Unlock()
			if reads > c.most {
				t.Errorf("window of %d: %d reads, want at most %d", c.window, reads, c.most)
			}
			r.wantCleanStop()
			w.deleteVouchers()
			w.deleteGroup("ledgerlake")
		}
	})
}

// A segment of a peer whose clock is ten minutes ahead is no forgery: it is taken
// once the time has come at which a verifier bears it.
func TestAClockThatIsAheadIsWaitedFor(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ahead := w.tether().ingest(1, func(s *pipeline.Settings) {
			s.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
		})
		w.produce(0, calls("s", 0, 3)...)
		w.waitSegments(1)
		ahead.wantCleanStop()
		w.deleteVouchers()
		w.produce(0, calls("s", 3, 3)...)
		r := w.tether().ingest(2)
		time.Sleep(4 * time.Minute)
		if at := r.status(0); !at.Starting || at.Stopped != nil {
			t.Errorf("after four minutes: %+v", at)
		}
		time.Sleep(2 * time.Minute)
		w.waitCommitted(0, 6)
		r.wantCleanStop()
		wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 6)...)
	})
}

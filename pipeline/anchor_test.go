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
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/proof"
)

const anchorTopic = "ledgerlake.anchors"

// newKey returns a signing key of that name.
func newKey(t *testing.T, name string) *sign.Signer {
	t.Helper()
	skey, _, err := sign.Generate(newSeeded(name[0]), name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sign.NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ringOf returns a ring in which keys are good.
func ringOf(t *testing.T, keys ...*sign.Signer) *sign.Ring {
	t.Helper()
	r := &sign.Ring{}
	for _, k := range keys {
		if err := r.Add(k.VKey(), sign.AllRoles, "test"); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// signedBy has an ingest sign by keys and believe them.
func signedBy(t *testing.T, keys ...*sign.Signer) func(*pipeline.Settings) {
	return func(s *pipeline.Settings) {
		var signers []note.Signer
		for _, k := range keys {
			signers = append(signers, k)
		}
		s.Signers = func(time.Time) []note.Signer { return signers }
		s.Keys = ringOf(t, keys...)
		s.AnchorTopic = anchorTopic
	}
}

// A signedAnchor is an anchor of the bucket.
type signedAnchor struct {
	*archive.Anchor
	note *sign.Note
	sum  chain.Hash
}

// anchorsOf returns the anchors of a partition.
func (w *world) anchorsOf(partition int32) []signedAnchor {
	w.t.Helper()
	var all []signedAnchor
	for {
		body, err := w.memory.Get(context.Background(), archive.AnchorKey(w.lineOf(partition), int64(len(all))))
		if errors.Is(err, archive.ErrNotFound) {
			return all
		}
		if err != nil {
			w.t.Fatal(err)
		}
		n, err := sign.Parse(body)
		if err != nil {
			w.t.Fatal(err)
		}
		a, err := archive.DecodeAnchor(n.Text)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, signedAnchor{a, n, archive.TextHash(n.Text)})
	}
}

func (w *world) lineOf(partition int32) archive.Line {
	return archive.Line{Topic: topic, TopicID: w.topicID(), Partition: partition}
}

// wantProved lets verify look at the bucket with the key alone, and requires that
// every row is anchored and signed.
func (w *world) wantProved(keys ...*sign.Signer) {
	w.t.Helper()
	report, err := proof.Verify(context.Background(), w.memory, proof.Options{Keys: ringOf(w.t, keys...)})
	if err != nil {
		w.t.Fatal(err)
	}
	if code := report.ExitCode(); code != 0 {
		w.t.Fatalf("verify: exit %d: %v", code, report.Faults)
	}
	for i := range report.Lines {
		if l := report.Lines[i]; l.Anchored != int64(l.Segments)-1 {
			w.t.Errorf("%v is anchored up to %d of %d segments", l.Line, l.Anchored, l.Segments)
		}
	}
}

// copiesInKafka returns the numbers of the anchors that the topic has, by
// partition of the data topic.
func (w *world) copiesInKafka() map[int32][]int64 {
	w.t.Helper()
	out := map[int32][]int64{}
	for _, r := range w.topicRecords(anchorTopic) {
		n, err := sign.Parse(r.Value)
		if err != nil {
			continue
		}
		a, err := archive.DecodeAnchor(n.Text)
		if err != nil {
			w.t.Fatal(err)
		}
		if want := fmt.Sprintf("%s/%s/%d", a.Topic, a.TopicID, a.Partition); string(r.Key) != want {
			w.t.Errorf("copy under the key %q, want %q", r.Key, want)
		}
		out[a.Partition] = append(out[a.Partition], a.Number)
	}
	return out
}

// topicRecords reads all records of a topic of one partition.
func (w *world) topicRecords(name string) (all []*kgo.Record) {
	w.t.Helper()
	ctx := context.Background()
	ends, err := kadm.NewClient(w.client).ListEndOffsets(ctx, name)
	if err != nil {
		w.t.Fatal(err)
	}
	end, ok := ends.Lookup(name, 0)
	if !ok || end.Err != nil || end.Offset == 0 {
		return nil
	}
	c := w.dial(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: {0: kgo.NewOffset().AtStart()}}))
	defer c.Close()
	for {
		for _, r := range c.PollFetches(ctx).Records() {
			all = append(all, r)
			if r.Offset == end.Offset-1 {
				return all
			}
		}
	}
}

// send puts a record into the topic of anchors.
func (w *world) send(l archive.Line, value []byte) {
	w.t.Helper()
	r := &kgo.Record{Topic: anchorTopic, Key: fmt.Appendf(nil, "%s/%s/%d", l.Topic, l.TopicID, l.Partition), Value: value}
	if err := w.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// Every minute in which something changed has its anchor, signed and chained, and
// so has a clean stop; a minute in which nothing changed has none.
func TestAnchorsAreWritten(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		key := newKey(t, "k")
		r := w.ingest(signedBy(t, key))
		w.produce(0, calls("s", 0, 3)...)
		w.produce(1, calls("s", 0, 3)...)
		time.Sleep(90 * time.Second)
		if n := len(w.anchorsOf(0)); n != 1 {
			t.Fatalf("%d anchors after 90 s, want 1", n)
		}
		time.Sleep(10 * time.Minute)
		w.produce(0, calls("s", 3, 3)...)
		time.Sleep(2 * time.Minute)
		w.produce(0, calls("s", 6, 3)...)
		w.waitCommitted(0, 9)
		r.wantCleanStop()
		w.check(0)
		w.wantProved(key)
		all := w.anchorsOf(0)
		if len(all) != 3 || len(w.anchorsOf(1)) != 1 {
			t.Fatalf("%d and %d anchors, want 3 and 1", len(all), len(w.anchorsOf(1)))
		}
		for _, a := range all {
			if len(a.Checkpoints) != 1 || a.Checkpoints[0].Tenant != "acme" {
				t.Errorf("anchor %d has checkpoints %v", a.Number, a.Checkpoints)
			}
		}
		if got := w.copiesInKafka(); !slices.Equal(got[0], []int64{0, 1, 2}) || !slices.Equal(got[1], []int64{0}) {
			t.Errorf("Kafka has %v", got)
		}
		again := w.ingest(signedBy(t, key))
		time.Sleep(5 * time.Minute)
		again.wantCleanStop()
		if n := len(w.anchorsOf(0)); n != 3 {
			t.Errorf("%d anchors after a life in which nothing changed, want 3", n)
		}
	})
}

// So many rows do not wait for the minute, and a log has a checkpoint a minute at
// most, with what changed since.
func TestManyRowsAreAnchoredAtOnce(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key := newKey(t, "k")
		r := w.ingest(signedBy(t, key), func(s *pipeline.Settings) { s.AnchorRows = 4 })
		for i := range 5 {
			w.produce(0, calls("s", 4*i, 4)...)
			time.Sleep(time.Second)
		}
		if n := len(w.anchorsOf(0)); n != 5 {
			t.Errorf("%d anchors after 20 rows, want 5", n)
		}
		r.wantCleanStop()
		w.wantProved(key)
		var with []int64
		for _, a := range w.anchorsOf(0) {
			if len(a.Checkpoints) > 0 {
				with = append(with, a.Number)
			}
		}
		if !slices.Equal(with, []int64{0}) {
			t.Errorf("anchors %v have checkpoints", with)
		}
	})
}

// What was durable and not anchored when a process died is anchored at once by
// the next.
func TestAStartAnchorsWhatIsNot(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key := newKey(t, "k")
		first := w.tether()
		first.ingest(1, signedBy(t, key))
		w.produce(0, calls("s", 0, 3)...)
		w.waitCommitted(0, 3)
		first.cut()
		time.Sleep(time.Hour)
		r := w.tether().ingest(2, signedBy(t, key))
		time.Sleep(5 * time.Second)
		if n := len(w.anchorsOf(0)); n != 1 {
			t.Errorf("%d anchors, want 1", n)
		}
		r.wantCleanStop()
		w.wantProved(key)
	})
}

// A bucket whose newest segment is gone, or another, when it is to be anchored
// stops the partition: nothing of it is signed.
func TestATailThatChangedIsNotSigned(t *testing.T) {
	for name, instead := range map[string]func(w *world) []byte{
		"gone":    func(*world) []byte { return nil },
		"another": func(w *world) []byte { return w.otherSegment(1) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				r := w.tether().ingest(1, signedBy(t, newKey(t, "k")))
				w.produce(0, calls("s", 0, 3)...)
				w.waitSegments(1)
				w.produce(0, calls("s", 3, 3)...)
				w.waitSegments(2)
				body := instead(w)
				w.memory = without(t, w.memory, archive.SegmentKey(w.lineOf(0), 1))
				if body != nil {
					w.put(1, body)
				}
				w.bucket.Bucket = w.memory
				time.Sleep(2 * time.Minute)
				if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 || !strings.Contains(r.stopped[0].Error(), "segment 1") {
					t.Errorf("stop: %v, alarms %v", err, r.stopped)
				}
				if all := w.anchorsOf(0); len(all) > 0 {
					t.Errorf("%d anchors, want none", len(all))
				}
			})
		})
	}
}

// A 412 on an anchor is looked at: what says the same as the line is adopted,
// whether it covers as much, less or more than this process has seen; what does
// not stops the partition, and nothing follows it.
func TestAnotherAnchorUnderTheNumber(t *testing.T) {
	key, stranger := newKey(t, "k"), newKey(t, "x")
	for _, c := range []struct {
		name    string
		covers  int64 // segments
		change  func(a *archive.Anchor)
		by      []note.Signer
		adopted bool
	}{
		{"the same", 3, func(*archive.Anchor) {}, []note.Signer{key}, true},
		{"less", 2, func(*archive.Anchor) {}, []note.Signer{key}, true},
		{"less, unsigned", 2, func(*archive.Anchor) {}, nil, false},
		{"by a stranger", 2, func(*archive.Anchor) {}, []note.Signer{stranger}, false},
		{"another head", 2, func(a *archive.Anchor) { a.Heads[0].Head[0] ^= 1 }, []note.Signer{key}, false},
		{"another head, unsigned", 3, func(a *archive.Anchor) { a.Heads[0].Head[0] ^= 1 }, nil, false},
		{"another segment", 3, func(a *archive.Anchor) { a.Segments[1].SHA256[0] ^= 1 }, []note.Signer{key}, false},
		{"another count", 3, func(a *archive.Anchor) { a.Totals.Rows++ }, []note.Signer{key}, false},
		{"one head less", 3, func(a *archive.Anchor) { a.Heads = nil }, []note.Signer{key}, false},
		{"a segment that is not there", 3, func(a *archive.Anchor) { a.Ordinal++ }, []note.Signer{key}, false},
		{"another archive", 3, func(a *archive.Anchor) { a.ArchiveSHA256[0] ^= 1 }, []note.Signer{key}, false},
		{"a time to come", 3, func(a *archive.Anchor) { a.Time.Time = a.Time.Add(24 * time.Hour) }, []note.Signer{key}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				r := w.tether().ingest(1, signedBy(t, key))
				for i := range 3 {
					w.produce(0, calls("s", 3*i, 3)...)
					w.waitSegments(i + 1)
				}
				w.putAnchor(w.anchorAt(c.covers, c.change), c.by...)
				time.Sleep(3 * time.Minute)
				err := r.stop()
				switch {
				case c.adopted:
					if err != nil || len(w.anchorsOf(0)) < 1 {
						t.Errorf("stop: %v, alarms %v", err, r.stopped)
					}
					w.check(0)
					if all := w.anchorsOf(0); all[len(all)-1].Ordinal != 2 {
						t.Errorf("the newest of %d anchors ends at segment %d, want 2", len(all), all[len(all)-1].Ordinal)
					}
				case !errors.Is(err, pipeline.ErrPartitionStopped) || len(w.anchorsOf(0)) != 1:
					t.Errorf("stop: %v, alarms %v, %d anchors", err, r.stopped, len(w.anchorsOf(0)))
				}
			})
		})
	}
}

// anchorAt returns the line's first anchor, as it is behind so many segments.
func (w *world) anchorAt(segments int64, change func(*archive.Anchor)) *archive.Anchor {
	w.t.Helper()
	root, err := archive.OpenRoot(context.Background(), w.memory)
	if err != nil {
		w.t.Fatal(err)
	}
	st := archive.NewState(root.ArchiveID, w.lineOf(0))
	for _, o := range w.ledger(0).segments[:segments] {
		st.Take(o)
	}
	a := st.NextAnchor(root.SHA256)
	a.Time = archive.Time{Time: time.Now().UTC().Truncate(time.Microsecond)}
	a.Complete()
	change(a)
	return a
}

func (w *world) putAnchor(a *archive.Anchor, by ...note.Signer) {
	w.t.Helper()
	if _, err := w.memory.Create(context.Background(), archive.AnchorKey(a.Line(), a.Number), w.signAnchor(a, by...)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) signAnchor(a *archive.Anchor, by ...note.Signer) []byte {
	w.t.Helper()
	text, err := archive.EncodeAnchor(a)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := sign.Sign(text, by...)
	if err != nil {
		w.t.Fatal(err)
	}
	return body
}

// A start takes a few requests, however long the line is: it finds the newest
// anchor by doubling and halving, reads back to the last full one, and lists no
// segments. What Kafka knows makes it fewer still.
func TestAStartDoesNotReadTheWholeLine(t *testing.T) {
	for name, c := range map[string]struct {
		anchorTopic string
		most        int
	}{"without Kafka": {"", 150}, "with Kafka": {anchorTopic, 120}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				key := newKey(t, "k")
				w.archivedWith(signedBy(t, key), calls("s", 0, 3))
				w.lengthen(key, 20_000, 5_000)
				body, err := w.memory.Get(context.Background(), archive.AnchorKey(w.lineOf(0), 4999))
				if err != nil {
					t.Fatal(err)
				}
				w.send(w.lineOf(0), body)
				w.bucket.calls = nil
				r := w.tether().ingest(2, signedBy(t, key), func(s *pipeline.Settings) { s.Window, s.AnchorTopic = 12, c.anchorTopic })
				w.waitCommitted(0, 60_000)
				if got := r.status(0).NextOffset; got != 60_000 {
					t.Errorf("it goes on at offset %d", got)
				}
				r.wantCleanStop()
				var gets, lists int
				for _, call := range w.bucket.calls {
					switch op, key, _ := strings.Cut(call, " "); {
					case op == "get" || op == "tail":
						gets++
					case op == "list" && strings.HasPrefix(key, "log/"):
						lists++
					}
				}
				if gets > c.most || lists > 0 {
					t.Errorf("%d GETs and %d LISTs of segments", gets, lists)
				}
				t.Logf("%d GETs", gets)
			})
		})
	}
}

// lengthen makes a line of one segment, of three rows, one of so many segments and
// anchors. Of the segments only the last ten are there, and they are all that is
// to be read.
func (w *world) lengthen(key *sign.Signer, segments, anchors int64) {
	w.t.Helper()
	ctx := context.Background()
	root, err := archive.OpenRoot(ctx, w.memory)
	if err != nil {
		w.t.Fatal(err)
	}
	first, newest := w.ledger(0).segments[0], w.anchorsOf(0)[0]
	st := archive.NewState(root.ArchiveID, w.lineOf(0))
	st.Take(first)
	st.Anchored(newest.Anchor, newest.sum)
	for number := int64(1); number < anchors; number++ {
		for st.Ordinal < segments*(number+1)/anchors {
			if st.Ordinal >= segments-10 {
				w.forgeNext(st, first)
				continue
			}
			seg := &archive.Segment{Ordinal: st.Ordinal, FirstOffset: st.NextOffset, NextOffset: st.NextOffset + 3, Rows: 3}
			st.Advance(seg, chain.Hash{byte(st.Ordinal), byte(st.Ordinal >> 8)}, 1000, 0)
		}
		a := st.NextAnchor(root.SHA256)
		a.Time = archive.Time{Time: time.Now().UTC().Truncate(time.Microsecond)}
		a.Complete()
		w.putAnchor(a, key)
		text, err := archive.EncodeAnchor(a)
		if err != nil {
			w.t.Fatal(err)
		}
		st.Anchored(a, archive.TextHash(text))
	}
	w.produce(0, slices.Repeat([]string{"{}"}, int(st.NextOffset)-3)...)
}

// forgeNext writes a segment that continues st and has the rows of another.
func (w *world) forgeNext(st *archive.State, like *archive.SegmentObject) {
	w.t.Helper()
	o := *like
	meta := *like.Segment
	meta.FirstOffset, meta.NextOffset = st.NextOffset, st.NextOffset+3
	o.Segment, o.Rows = &meta, slices.Clone(like.Rows)
	for i := range o.Rows {
		o.Rows[i].KafkaOffset.N = st.NextOffset + int64(i)
	}
	body, err := archivetest.Forge(st, &o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(st.Ordinal, body)
	next, err := archive.ReadSegment(body, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	st.Take(next)
}

// Where nothing vouches for the anchors that are there, all of them are compared
// with the segments, in their order: the next one lists what changed since, and
// no more.
func TestAnchorsAreComparedFromTheFirst(t *testing.T) {
	for name, mutate := range map[string]func(*pipeline.Settings){"without keys": func(*pipeline.Settings) {}, "the first start with keys": signedBy(t, newKey(t, "k"))} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				offset := int64(0)
				life := func(seed byte, tenant string, mutate func(*pipeline.Settings)) {
					r := &kgo.Record{Key: []byte(tenant), Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte(tenant)}}, Value: []byte("{")}
					if err := w.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
						t.Fatal(err)
					}
					offset++
					w.tether().ingest(seed, mutate).waitAndStop(offset)
				}
				unsigned := func(*pipeline.Settings) {}
				life(1, "acme", unsigned)
				life(2, "globex", unsigned)
				life(3, "acme", unsigned)
				w.deleteVouchers()
				life(4, "globex", mutate)
				w.check(0)
				all := w.anchorsOf(0)
				if n := len(all); n != 4 || len(all[n-1].Heads) != 1 || all[n-1].Heads[0].Tenant != "globex" {
					t.Errorf("%d anchors, the newest lists %d heads", n, len(all[n-1].Heads))
				}
			})
		})
	}
}

// Two processes that were told by hand to read one partition, one of which is
// killed and comes back, make one line of anchors too.
func TestTwoByHandMakeOneLineOfAnchors(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key := newKey(t, "k")
		byHand := func(s *pipeline.Settings) {
			signedBy(t, key)(s)
			s.Topics, s.Assign = nil, []pipeline.Partition{{Topic: topic, Number: 0}}
			s.AnchorEvery, s.AnchorRows = 500*time.Millisecond, 25
		}
		a, first := w.tether().ingest(1, byHand), w.tether()
		b := first.ingest(2, byHand)
		time.Sleep(time.Second)
		for i := range 60 {
			w.produce(0, calls("s", 5*i, 5)...)
			time.Sleep(120 * time.Millisecond)
			if i == 30 {
				first.cut()
				b.cancel()
				<-b.done
				b = w.tether().ingest(3, byHand)
			}
		}
		w.waitCommitted(0, 300)
		time.Sleep(2 * time.Second)
		a.wantCleanStop()
		b.wantCleanStop()
		w.wantProved(key)
		wantKinds(t, w.ledger(0).kinds(), slices.Repeat([]string{"call"}, 300)...)
		if a.taken+b.taken == 0 || a.anchors == 0 || b.anchors == 0 {
			t.Errorf("%d and %d anchors written, %d and %d adopted: the test shows nothing", a.anchors, b.anchors, a.taken, b.taken)
		}
	})
}

package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/proof"
)

// unanchored lets a process write no anchors.
func unanchored(s *pipeline.Settings) { s.AnchorEvery = -1 }

// damage changes one byte of a segment of partition 0.
func (w *world) damage(ordinal int64) {
	w.t.Helper()
	w.damageSo(ordinal, false)
}

// damageSo flips a bit of a segment: one that its reader stumbles over, or one
// that only its hash shows.
func (w *world) damageSo(ordinal int64, quietly bool) {
	w.t.Helper()
	l := archive.Line{Topic: topic, TopicID: w.topicID()}
	w.replace(ordinal, func(body []byte) []byte {
		for i := len(body) / 3; i < len(body); i++ {
			body[i] ^= 0x40
			if _, err := archive.ReadForeignSegment(body, nil); (err == nil) == quietly {
				return body
			}
			body[i] ^= 0x40
		}
		w.t.Fatal("no such bit")
		return nil
	}, l)
}

func (w *world) replace(ordinal int64, change func([]byte) []byte, l archive.Line) {
	w.t.Helper()
	key := archive.SegmentKey(l, ordinal)
	body, err := w.memory.Get(context.Background(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	w.remove(key)
	if _, err := w.memory.Create(context.Background(), key, change(bytes.Clone(body))); err != nil {
		w.t.Fatal(err)
	}
}

// remove takes an object out of the bucket.
func (w *world) remove(key string) {
	w.t.Helper()
	w.memory = without(w.t, w.memory, key)
	w.bucket.mu.Lock()
	defer w.bucket.mu.Unlock()
	w.bucket.Bucket = w.memory
}

// waitOffset waits until all offsets below one are durable.
func (r *run) waitOffset(next int64) {
	r.w.t.Helper()
	waitFor(r.w.t, "all to be durable", func() bool {
		p := r.Status().Partitions
		return len(p) == 1 && p[0].NextOffset == next
	})
}

// planReset plans a chain reset of partition 0.
func (w *world) planReset(mutate ...func(*pipeline.Settings)) (*pipeline.Reset, error) {
	w.t.Helper()
	root, err := archive.OpenRoot(context.Background(), w.memory)
	if err != nil {
		w.t.Fatal(err)
	}
	s := pipeline.Settings{Archive: w.bucket, Root: root, Client: w.options(), Version: "test", Rand: newSeeded(77)}
	for _, m := range mutate {
		m(&s)
	}
	r, err := pipeline.PlanReset(context.Background(), s, pipeline.Partition{Topic: topic}, "the disk <ate> it", pipeline.Events{})
	if err == nil {
		w.t.Cleanup(r.Close)
	}
	return r, err
}

// reset plans a chain reset of partition 0 and carries it out.
func (w *world) reset(mutate ...func(*pipeline.Settings)) *pipeline.Reset {
	w.t.Helper()
	r, err := w.planReset(mutate...)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := r.Commit(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// wantExit requires an exit code of verify, which is the oracle after each step.
func (w *world) wantExit(want int, keys ...chain.Keys) *proof.Report {
	w.t.Helper()
	o := proof.Options{Unsigned: true}
	if len(keys) > 0 {
		o.LogKeys = keys[0]
	}
	r, err := proof.Verify(context.Background(), w.memory, o)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.ExitCode() != want {
		w.t.Fatalf("verify: exit %d, want %d: %v %q %q", r.ExitCode(), want, r.Faults, r.Less, r.Looks)
	}
	return r
}

// goodFates walks the line around void segments.
func (w *world) goodFates() *ledger {
	w.t.Helper()
	l := archive.Line{Topic: topic, TopicID: w.topicID()}
	out, void, all := &ledger{fates: map[int64]fate{}}, map[int64]bool{}, []*archive.SegmentObject{}
	for n := range int64(len(w.memoryKeys(archive.SegmentPrefix(l)))) {
		body, err := w.memory.Get(context.Background(), archive.SegmentKey(l, n))
		if err != nil {
			w.t.Fatal(err)
		}
		o, err := archive.ReadSegment(body, nil)
		if err != nil {
			void[n] = true
			continue
		}
		for _, v := range o.Voided {
			void[v.Ordinal] = true
		}
		all = append(all, o)
	}
	for _, o := range all {
		if !void[o.Ordinal] {
			out.segments = append(out.segments, o)
			out.add(w.t, o)
		}
	}
	return out
}

// corruptTail makes two segments that an anchor covers and two that none does,
// and damages the first of these.
func (w *world) corruptTail() {
	w.t.Helper()
	w.archived(calls("s", 0, 3), calls("s", 3, 2))
	r := w.tether().ingest(2, unanchored)
	w.produce(0, calls("s", 5, 2)...)
	w.waitSegments(3)
	w.produce(0, calls("s", 7, 2)...)
	w.waitSegments(4)
	r.wantCleanStop()
	w.wantExit(0)
	w.damage(2)
	w.wantExit(1)
}

// A tail that was damaged stops its partition, and nothing but an operator's
// order lets it go on: from Kafka again, in a new epoch, for ever to be seen.
func TestAChainResetAfterACorruptTail(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.corruptTail()
		w.ingest().wantStopped("segment 2: ", "reset-chain --topic audit.calls --partition 0")
		before := w.objects()

		r, err := w.planReset()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Ordinal, len(r.Voided), r.Voided[0].Ordinal, r.Unread, r.Offset, r.Start, r.End, r.Rows(), r.Gone(), r.Existing); got != "4 2 2 [] 5 0 9 4 0 false" {
			t.Errorf("the plan is %s: %+v", got, r.ResetPlan)
		}
		if len(r.Logs) != 1 || r.Logs[0] != (pipeline.ResetLog{Tenant: "acme", Size: 5, Epoch: 1, Lost: 4}) || !errors.Is(r.Why, archive.ErrBreaks) {
			t.Errorf("logs %+v, why %v", r.Logs, r.Why)
		}
		if !mapsEqual(before, w.objects()) {
			t.Error("a plan changes the bucket")
		}
		if err := r.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		w.wantExit(4)

		again := w.ingest()
		w.waitSegments(6)
		w.produce(0, calls("s", 5, 2)...) // repeats of rows that were void, and are there again
		w.produce(0, calls("s", 9, 1)...) // a new one
		w.produce(0, calls("s", 0, 1)...) // a repeat of a good one
		again.waitOffset(13)
		again.wantCleanStop()
		report := w.wantExit(4)
		if !strings.Contains(strings.Join(report.Looks, "\n"), "chain reset: 1 log begun anew by an operator's order, 2 segments void") {
			t.Errorf("looks %q", report.Looks)
		}
		got := w.goodFates()
		want := slices.Repeat([]string{"call"}, 9)
		wantKinds(t, got.kinds(), append(want, "duplicate", "duplicate", "call", "duplicate")...)
		if seq := got.fates[5].seq; seq != 6 {
			t.Errorf("offset 5 is seq %d: seq 5 is the chain-reset row", seq)
		}
		if !slices.Equal(got.made, []string{audit.KindChainReset}) {
			t.Errorf("made %q", got.made)
		}

		// The anchors that follow cover it, and a start builds on them.
		last := w.ingest()
		w.produce(0, calls("s", 10, 1)...)
		last.waitOffset(14)
		last.wantCleanStop()
		if len(last.stopped) > 0 || last.compared != nil {
			t.Errorf("stopped %v, compared %v", last.stopped, last.compared)
		}
		w.wantExit(4)
		if _, err := w.planReset(); !errors.Is(err, pipeline.ErrNothingToReset) {
			t.Errorf("a second reset: %v", err)
		}
	})
}

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// refuseVouchers lets Kafka refuse commits for the group of vouchers.
func (w *world) refuseVouchers() (allow func()) {
	refusing := true
	w.kafka.ControlKey(int16(kmsg.OffsetCommit), func(k kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		req := k.(*kmsg.OffsetCommitRequest)
		if !refusing || req.Group != "ledgerlake.vouchers" {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, t := range req.Topics {
			rt := kmsg.NewOffsetCommitResponseTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				rp := kmsg.NewOffsetCommitResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.GroupAuthorizationFailed.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
	return func() { refusing = false }
}

// A crash between the segment and its voucher leaves a reset that no start
// believes: whoever can write to the bucket could have put it there. The next run
// knows its own, and vouches for it.
func TestAResetThatNobodyVouchedForIsNotBelieved(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.corruptTail()
		allow := w.refuseVouchers()
		r, err := w.planReset()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(context.Background()); !errors.Is(err, kerr.GroupAuthorizationFailed) {
			t.Fatalf("%v", err)
		}
		w.wantExit(4)
		allow()
		before := w.objects()
		w.ingest().wantStopped("segment 2: ", "reset-chain")
		again, err := w.planReset()
		if err != nil {
			t.Fatal(err)
		}
		if !again.Existing || again.Ordinal != 4 || again.Reason != "the disk <ate> it" || len(again.Voided) != 2 {
			t.Fatalf("the plan is %+v", again.ResetPlan)
		}
		if err := again.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		for key, body := range before {
			if w.objects()[key] != body {
				t.Errorf("%s was changed", key)
			}
		}
		next := w.ingest()
		next.waitOffset(9)
		next.wantCleanStop()
		w.wantExit(4)
		wantKinds(t, w.goodFates().kinds(), slices.Repeat([]string{"call"}, 9)...)
	})
}

// Of two operators at once one writes the reset, and the other looks again.
func TestTwoOperatorsResetOnce(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.corruptTail()
		a, err := w.planReset()
		if err != nil {
			t.Fatal(err)
		}
		b, err := w.planReset(func(s *pipeline.Settings) { s.Rand = newSeeded(78) })
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(context.Background()); !errors.Is(err, pipeline.ErrResetLost) {
			t.Fatalf("the second: %v", err)
		}
		if _, err := w.planReset(); !errors.Is(err, pipeline.ErrNothingToReset) {
			t.Errorf("looking again: %v", err)
		}
		w.wantExit(4)
		next := w.ingest()
		next.waitOffset(9)
		next.wantCleanStop()
		w.wantExit(4)
	})
}

// What an anchor covers is never declared void, and nothing is where all is well.
func TestAResetTakesNoEvidenceBack(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.archived(calls("s", 0, 3), calls("s", 3, 2))
		if _, err := w.planReset(); !errors.Is(err, pipeline.ErrNothingToReset) {
			t.Errorf("a line that is whole: %v", err)
		}
		w.damage(1)
		if _, err := w.planReset(); !errors.Is(err, pipeline.ErrAnchored) {
			t.Errorf("an anchored segment: %v", err)
		}
	})
	inWorld(t, 1, func(w *world) {
		w.corruptTail()
		l := archive.Line{Topic: topic, TopicID: w.topicID()}
		w.remove(archive.SegmentKey(l, 2))
		if _, err := w.planReset(); err == nil || errors.Is(err, pipeline.ErrNothingToReset) {
			t.Errorf("a hole: %v", err)
		}
	})
}

// A segment that says what Kafka never said is as bad as one that is damaged,
// and what lies behind it goes with it.
func TestAResetOfAForgedSegment(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.archived(calls("s", 0, 3))
		w.produce(0, calls("s", 3, 2)...)
		aside := copyOf(t, w.memory)
		honest := w.ingest(func(s *pipeline.Settings) { s.Archive, s.Group, s.Rand = aside, "aside", newSeeded(9) })
		before := w.ledger(0).state
		var body []byte
		waitFor(t, "the honest segment", func() (ok bool) {
			var err error
			body, err = aside.Get(context.Background(), archive.SegmentKey(before.Line, before.Ordinal))
			return err == nil
		})
		honest.wantCleanStop()
		o, err := archive.ReadSegment(body, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Rows[0].Status = audit.Str("forged")
		forged, err := archivetest.Forge(before, o)
		if err != nil {
			t.Fatal(err)
		}
		w.put(1, forged)
		w.ingest().wantStopped("not what Kafka says", "reset-chain")
		r := w.reset()
		if !errors.Is(r.Why, pipeline.ErrForged) || len(r.Voided) != 1 {
			t.Errorf("%+v", r.ResetPlan)
		}
		next := w.ingest()
		next.waitOffset(5)
		next.wantCleanStop()
		w.wantExit(4)
		wantKinds(t, w.goodFates().kinds(), slices.Repeat([]string{"call"}, 5)...)
	})
}

// A process that runs while its line is reset goes on behind the reset; one that
// had built on what is void is to be started again.
func TestAResetUnderARunningProcess(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.archived(calls("s", 0, 3))
		running := w.ingest(unanchored)
		waitFor(t, "the start", func() bool { return running.Status().Joined })
		time.Sleep(time.Second)
		w.put(1, []byte("PAR1 not really PAR1"))
		r := w.reset()
		if len(r.Unread) != 1 || len(r.Logs) != 1 {
			t.Errorf("%+v", r.ResetPlan)
		}
		w.produce(0, calls("s", 3, 2)...)
		running.waitOffset(5)
		running.wantCleanStop()
		w.wantExit(4)
		wantKinds(t, w.goodFates().kinds(), slices.Repeat([]string{"call"}, 5)...)
	})
	inWorld(t, 1, func(w *world) {
		w.archived(calls("s", 0, 3))
		running := w.ingest(unanchored)
		w.produce(0, calls("s", 3, 2)...)
		w.waitSegments(2)
		waitFor(t, "the voucher", func() bool { return w.committed("ledgerlake.vouchers", 0) == 5 })
		w.damage(1)
		w.reset()
		w.produce(0, calls("s", 5, 1)...)
		running.wantStopped("start it again")
		next := w.ingest()
		next.waitOffset(6)
		next.wantCleanStop()
		w.wantExit(4)
	})
}

// An archive without any anchor is reset, and resumed by its metadata.
func TestAResetWithoutAnchors(t *testing.T) {
	for _, quietly := range []bool{false, true} {
		t.Run(fmt.Sprintf("quietly %v", quietly), func(t *testing.T) { resetWithoutAnchors(t, quietly) })
	}
}

func resetWithoutAnchors(t *testing.T, quietly bool) {
	inWorld(t, 1, func(w *world) {
		r := w.tether().ingest(2, unanchored)
		for i := range 3 {
			w.produce(0, calls("s", 2*i, 2)...)
			w.waitSegments(i + 1)
		}
		r.wantCleanStop()
		w.damageSo(2, quietly)
		if got := w.reset(); !got.Unsigned || got.Ordinal != 3 || got.Offset != 4 {
			t.Errorf("%+v", got.ResetPlan)
		}
		for range 2 { // the second resumes behind the reset
			next := w.ingest(unanchored)
			next.waitOffset(6)
			next.wantCleanStop()
		}
		w.wantExit(4)

		// A second one, before there is an anchor, takes back the first with it.
		w.damageSo(4, quietly)
		if got := w.reset(); got.Voided[0].Ordinal != 2 || got.Ordinal != 5 {
			t.Errorf("%+v", got.ResetPlan)
		}
		next := w.ingest()
		next.waitOffset(6)
		next.wantCleanStop()
		w.wantExit(4)
		wantKinds(t, w.goodFates().kinds(), slices.Repeat([]string{"call"}, 6)...)
	})
}

// Where there is no log at all, the order stands in that of the partition: a
// reset is never silent.
func TestAResetOfALineWithoutLogs(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		if _, err := archive.CreateRoot(context.Background(), w.memory, "01KBCDEFGHJKMNPQRSTVWXYZ00", time.Now()); err != nil {
			t.Fatal(err)
		}
		w.put(0, []byte("PAR1 garbage PAR1"))
		w.produce(0, calls("s", 0, 2)...)
		w.ingest().wantStopped("segment 0: ", "reset-chain")
		if r := w.reset(); len(r.Logs) != 1 || r.Logs[0].Tenant != audit.TenantPartition || r.Offset != 0 {
			t.Errorf("%+v", r.ResetPlan)
		}
		w.wantExit(4)
		next := w.ingest()
		next.waitOffset(2)
		next.wantCleanStop()
		w.wantExit(4)
		wantKinds(t, w.goodFates().kinds(), "call", "call")
	})
}

// What Kafka has deleted since goes for good: the plan says so, and the line goes
// on behind a gap.
func TestAResetOfWhatKafkaNoLongerHas(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.corruptTail()
		w.deleteBefore(8)
		r := w.reset()
		if r.Offset != 5 || r.Start != 8 || r.Gone() != 3 {
			t.Errorf("%+v", r.ResetPlan)
		}
		next := w.ingest()
		next.waitOffset(9)
		next.wantCleanStop()
		w.wantExit(4)
		wantKinds(t, w.goodFates().kinds(), "call", "call", "call", "call", "call", "lost", "lost", "lost", "call")
	})
}

// Signed anchors say where the good part ends, and go on behind the reset.
func TestAResetBehindSignedAnchors(t *testing.T) {
	signed := signedBy(t, newKey(t, "k"))
	inWorld(t, 1, func(w *world) {
		quiet := func(s *pipeline.Settings) { signed(s); s.AnchorEvery = -1 }
		w.archivedWith(signed, calls("s", 0, 3))
		r := w.tether().ingest(2, quiet)
		for i := range 2 {
			w.produce(0, calls("s", 3+i, 1)...)
			w.waitSegments(2 + i)
		}
		r.wantCleanStop()
		w.damage(1)
		got := w.reset(signed)
		if got.Unsigned || got.Ordinal != 3 || got.Offset != 3 || got.Voided[0].Ordinal != 1 {
			t.Errorf("%+v", got.ResetPlan)
		}
		next := w.ingest(signed)
		next.waitOffset(5)
		next.wantCleanStop()
		var s pipeline.Settings
		signed(&s)
		report, err := proof.Verify(context.Background(), w.memory, proof.Options{Keys: s.Keys})
		if err != nil || report.ExitCode() != 4 || report.Tier != proof.TierT1 {
			t.Errorf("verify: %v, exit %d, tier %v: %v %q", err, report.ExitCode(), report.Tier, report.Faults, report.Less)
		}
		wantKinds(t, w.goodFates().kinds(), slices.Repeat([]string{"call"}, 5)...)
	})
}

// A keyed log is begun anew under its key. A wrong key makes good rows look bad:
// it resets nothing.
func TestAResetOfAKeyedLog(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		master := func(s *pipeline.Settings) { keyedBy(someMaster)(s); s.AnchorEvery = -1 }
		r := w.tether().ingest(2, master)
		for i := range 3 {
			w.produce(0, calls("s", i, 1)...)
			w.waitSegments(i + 1)
		}
		r.wantCleanStop()
		w.damage(2)
		if _, err := w.planReset(); !errors.Is(err, chain.ErrNoKey) {
			t.Errorf("without the key: %v", err)
		}
		w.reset(master)
		keys := chain.MasterKeys(someMaster)
		w.wantExit(4, keys)
		next := w.ingest(master)
		next.waitOffset(3)
		next.wantCleanStop()
		w.wantExit(4, keys)
		w.wantExit(3)
	})
}

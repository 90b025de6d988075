package stream_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

const jobID = "01KBCDEFGHJKMNPQRSTV00000A"

// A backfill sends what it is told once more, beside what is live, wherever it
// lies, and is done then; a crash in between only repeats.
func TestBackfill(t *testing.T) {
	first := time.UnixMicro(prooftest.Start).UTC()
	for name, c := range map[string]struct {
		job  stream.Job
		want string
	}{
		"all":        {stream.Job{}, "acme 0 acme 1 acme 2 acme 3 umbrella 0 umbrella 1"},
		"one tenant": {stream.Job{Tenants: []string{"umbrella"}}, "umbrella 0 umbrella 1"},
		"from a seq": {stream.Job{FromSeq: ptr(int64(1))}, "acme 1 acme 2 acme 3 umbrella 1"},
		"from":       {stream.Job{From: &archive.Time{Time: first.Add(24 * time.Hour)}}, "acme 3"},
		"to":         {stream.Job{To: &archive.Time{Time: first.Add(24 * time.Hour)}}, "acme 0 acme 1 acme 2 umbrella 0 umbrella 1"},
		"nothing":    {stream.Job{Tenants: []string{"nobody"}}, ""},
	} {
		for _, compacted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.rows("acme", "umbrella", "acme")
				w.rows("acme", "umbrella")
				w.calls.Anchor()
				w.land()
				w.Advance(48 * time.Hour)
				w.rows("acme")
				w.calls.Anchor()
				w.land()
				if compacted {
					w.compact(w.calls.Line)
				}
				r := &receiver{}
				stop := w.start(w.settings(), r.destination(func(d *stream.Destination) { d.FromNow = true }))
				time.Sleep(time.Minute)
				c.job.Destination, c.job.ID = "siem", jobID
				if err := stream.Backfill(t.Context(), w.store, c.job); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Second)
				w.rows("hooli")
				time.Sleep(time.Minute)
				stop()
				got := r.places()
				slices.Sort(got)
				if want := strings.Fields(c.want + " hooli 0"); strings.Join(got, " ") != joinSorted(want) {
					t.Errorf("%s, compacted %v: delivered %q, want %s; stopped %v", name, compacted, got, joinSorted(want), w.stopped)
				}
				jobs, err := stream.Jobs(t.Context(), w.store, "siem")
				if err != nil || len(jobs) != 1 || jobs[0].Done == nil {
					t.Errorf("%s, compacted %v: it is not done: %+v, %v", name, compacted, jobs, err)
				}
			})
		}
	}
}

func ptr[T any](v T) *T { return &v }

// joinSorted joins pairs of words, in their order.
func joinSorted(words []string) string {
	var pairs []string
	for p := range slices.Chunk(words, 2) {
		pairs = append(pairs, strings.Join(p, " "))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}

// Dead letters are sent again, those alone, and are then known to have been.
func TestDeadLettersAreReplayed(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rows("acme", "umbrella", "acme", "acme", "umbrella")
			r := &receiver{}
			r.answer = verdicts(func(m sink.Message) *sink.Verdict {
				if isRow(m, "acme", 1) || isRow(m, "umbrella", 1) {
					return &sink.Verdict{Outcome: sink.Poison, Reason: "400 Bad Request"}
				}
				return nil
			})
			w.export(20*time.Second, r.destination())
			if compacted {
				w.calls.Anchor()
				w.land()
				w.compact(w.calls.Line)
			}
			j := stream.Job{Destination: "siem", ID: jobID}
			for l, err := range stream.DeadLetters(t.Context(), w.store, "siem") {
				if err != nil || l.Replayed {
					t.Fatalf("%+v, %v", l, err)
				}
				j.Dead = append(j.Dead, l.Key)
			}
			if err := stream.Backfill(t.Context(), w.store, j); err != nil {
				t.Fatal(err)
			}
			r.answer = nil
			w.export(time.Minute, r.destination())
			if got := fmt.Sprint(r.places()[3:]); got != "[acme 1 umbrella 1]" {
				t.Errorf("compacted %v: sent again %s", compacted, got)
			}
			for l, err := range stream.DeadLetters(t.Context(), w.store, "siem") {
				if err != nil || !l.Replayed {
					t.Errorf("compacted %v: %+v, %v; want it replayed", compacted, l, err)
				}
			}
			s, err := stream.ReadStatus(t.Context(), w.store, w.root, w.ring, "siem", time.Now)
			if err != nil || s.Delivered != 3 || s.Dead != 2 || s.Open != 0 || s.Rows != 0 || len(s.Backfills) != 1 || s.Backfills[0].Delivered != 2 {
				t.Errorf("compacted %v: status %+v, %v", compacted, s, err)
			}
		})
	}
}

// Status counts rows that are not delivered, and says since when.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := stream.ReadStatus(t.Context(), w.store, w.root, w.ring, "siem", time.Now); err == nil {
			t.Error("there is a status of what was never exported to")
		}
		w.rows("acme", "umbrella")
		r := &receiver{}
		w.export(20*time.Second, r.destination())
		w.calls.Anchor()
		w.land()
		w.compact(w.calls.Line)
		w.rows("acme", "hooli", "acme")
		at := time.Now()
		s, err := stream.ReadStatus(t.Context(), w.store, w.root, w.ring, "siem", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if s.Rows != 3 || s.Delivered != 2 || s.State != stream.Active || s.By != "" || s.Oldest == nil || !s.Oldest.Equal(at.Truncate(time.Second)) {
			t.Errorf("status %+v", s)
		}
		names, err := stream.Names(t.Context(), w.store)
		if err != nil || fmt.Sprint(names) != "[siem]" {
			t.Errorf("names %q, %v", names, err)
		}
	})
}

// A line of ten thousand logs costs as many PUTs as a line of one: the cursors of a
// line are one document, which is stored less often as it grows.
func TestTenThousandTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		tenants := make([]string, 10_000)
		for i := range tenants {
			tenants[i] = fmt.Sprintf("tenant-%05d", i)
		}
		for some := range slices.Chunk(tenants, 500) {
			w.rows(some...)
		}
		r := &receiver{}
		stop := w.start(w.settings(), r.destination())
		time.Sleep(20 * time.Second)
		before := w.store.counted("swap")
		for i := range 60 { // each second some of them have a row
			w.rows(tenants[100*i : 100*i+100]...)
			time.Sleep(time.Second)
		}
		puts := w.store.counted("swap") - before
		time.Sleep(20 * time.Second)
		stop()
		if n := w.check(r); n != 0 {
			t.Errorf("%d rows came twice", n)
		}
		if puts > 30 {
			t.Errorf("%d PUTs in a minute, of which 6 are signs of life", puts)
		}
		t.Logf("%d PUTs in a minute for 6,000 rows of 6,000 logs", puts)
	})
}

// Compaction takes all that a slow destination still has to read, again and again;
// it gets every row once, in order.
func TestACompactorBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := &receiver{limits: sink.Limits{Events: 3}}
		r.answer = func(batch []sink.Message) sink.Result {
			time.Sleep(5 * time.Second)
			return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
		}
		stop := w.start(w.settings(), r.destination())
		for i := range 60 {
			w.rows("acme", "umbrella", "acme")
			if i%3 == 2 {
				w.calls.Anchor()
				w.land()
			}
			if i%6 == 5 {
				w.compact(w.calls.Line)
				w.removeDoomed()
			}
			if i%20 == 19 {
				w.Advance(24 * time.Hour)
			}
			time.Sleep(2 * time.Second)
		}
		time.Sleep(20 * time.Minute)
		if n := w.check(r); n != 0 {
			t.Errorf("%d rows came twice", n)
		}
		if len(w.stopped) > 0 {
			t.Errorf("stopped: %v", w.stopped)
		}
		stop()
	})
}

// removeDoomed removes all objects that compaction has replaced, as it would once
// the grace is over.
func (w *world) removeDoomed() {
	w.t.Helper()
	c, err := archive.NewestCatalog(w.t.Context(), w.store.Memory, w.calls.Line, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range c.Doomed {
		w.store.Remove(d.Key)
	}
}

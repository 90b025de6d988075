package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/stream"
)

// verdicts answers each message by a func; nil: it is delivered.
func verdicts(say func(m sink.Message) *sink.Verdict) func([]sink.Message) sink.Result {
	return func(batch []sink.Message) sink.Result {
		r := sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
		for i, m := range batch {
			if v := say(m); v != nil {
				r.Verdicts[i] = *v
			}
		}
		return r
	}
}

func isRow(m sink.Message, tenant string, seq int64) bool {
	return m.Event.IsRow() && m.Event.Tenant == tenant && m.Event.Seq == seq
}

// What was delivered beside something that was not is not sent again, and no cursor
// passes what was not: whoever goes on after a crash has it.
func TestPartOfABatchIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme", "umbrella", "acme", "acme")
		r := &receiver{}
		r.answer = verdicts(func(m sink.Message) *sink.Verdict {
			if isRow(m, "acme", 1) {
				return &sink.Verdict{Outcome: sink.Retry, Reason: "busy"}
			}
			return nil
		})
		stop := w.start(w.settings(), r.destination())
		time.Sleep(5 * time.Minute)
		stop()
		if got := fmt.Sprint(r.places()); got != "[acme 0 umbrella 0 acme 2]" {
			t.Errorf("delivered %s", got)
		}
		c := w.cursors("siem", "")
		if acme, umbrella := c.Of("acme"), c.Of("umbrella"); acme.Next != 1 || umbrella.Next != 1 {
			t.Errorf("cursors %+v, %+v; want both in front of seq 1", acme, umbrella)
		}
		r.answer = nil
		w.export(10*time.Second, r.destination())
		if got := fmt.Sprint(r.places()[3:]); got != "[acme 1 acme 2]" {
			t.Errorf("then delivered %s", got)
		}
	})
}

// cursors reads the cursors of the line of calls.
func (w *world) cursors(destination, job string) *stream.Cursors {
	w.t.Helper()
	c, err := stream.ReadCursors(context.Background(), w.store.Memory, w.root.ArchiveID, destination, job, w.calls.Line)
	if err != nil || c == nil {
		w.t.Fatalf("cursors: %v, %v", c, err)
	}
	return c
}

// A destination that is busy is left alone for longer and longer, up to five
// minutes, never for less than it asks for, and without an end.
func TestBackOff(t *testing.T) {
	for _, after := range []time.Duration{0, time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rows("acme")
			r := &receiver{}
			var times []time.Time
			r.answer = func(batch []sink.Message) sink.Result {
				times = append(times, time.Now())
				res := sink.All(len(batch), sink.Verdict{Outcome: sink.Retry, Reason: "busy"})
				res.After = after
				return res
			}
			s := w.settings()
			s.Jitter = func(n int64) int64 { return n - 1 }
			stop := w.start(s, r.destination())
			time.Sleep(26 * time.Hour)
			stop()
			top := 500 * time.Millisecond
			for i := 1; i < len(times); i++ {
				got, want := times[i].Sub(times[i-1]), max(after, top)
				if got < want-2*time.Nanosecond || got > want+2*time.Second {
					t.Fatalf("attempt %d after %v, want %v", i+1, got, want)
				}
				top = min(2*top, 5*time.Minute)
			}
			if least := int(25 * time.Hour / max(after, 5*time.Minute)); len(times) < least {
				t.Errorf("%d attempts, want %d", len(times), least)
			}
		})
	}
}

// A batch that is too large is halved until it is not, and grows again; an event
// that is too large alone goes without its content, and is a dead letter where even
// that is too large.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 20 {
			w.rows("acme", "umbrella", "acme")
		}
		r := &receiver{}
		sizes := []int{}
		r.answer = func(batch []sink.Message) sink.Result {
			sizes = append(sizes, len(batch))
			tooLarge := len(batch) > 7
			for _, m := range batch {
				tooLarge = tooLarge || isRow(m, "acme", 3) && m.Event.Kind == event.KindRecord || isRow(m, "umbrella", 2)
			}
			if tooLarge {
				return sink.All(len(batch), sink.Verdict{Outcome: sink.Split, Reason: "too large"})
			}
			return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
		}
		w.export(10*time.Minute, r.destination(func(d *stream.Destination) { d.MaxDead = 2 }))
		if len(w.dead) != 1 || w.dead[0].Tenant != "umbrella" || w.dead[0].Seq != 2 || w.dead[0].Reason != "too large" {
			t.Errorf("dead letters %+v", w.dead)
		}
		pointers := r.events(event.KindPointer)
		if len(pointers) != 1 || pointers[0].Seq != 3 || pointers[0].Tenant != "acme" {
			t.Errorf("pointers %+v", pointers)
		}
		if got := len(r.places()); got != 59 || len(w.waits) != 0 {
			t.Errorf("%d rows arrived, %d waits; attempts of %v", got, len(w.waits), sizes)
		}
		if !slices.Contains(sizes[len(sizes)-10:], 7) && !slices.Contains(sizes, 4) {
			t.Errorf("attempts of %v: they never grow again", sizes)
		}
	})
}

// A row that is larger than an event may be goes as its pointer, and is not asked
// for again.
func TestOversizeRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme", "acme")
		r := &receiver{}
		w.export(10*time.Second, r.destination(func(d *stream.Destination) { d.Limits = sink.Limits{EventBytes: 1000} }))
		w.check(r)
		if n := len(r.events(event.KindPointer)); n != 2 {
			t.Errorf("%d pointers of 2 rows", n)
		}
		w.rows("acme")
		w.export(10*time.Second, r.destination(func(d *stream.Destination) { d.Spec, d.Limits = "other", sink.Limits{EventBytes: 100} }))
		if len(w.dead) != 1 || !strings.Contains(w.dead[0].Reason, "100 are allowed") {
			t.Errorf("dead letters %+v", w.dead)
		}
	})
}

// A destination that takes nothing is suspended; others go on. It is tried again
// once an hour, when somebody resumes it, and when its settings change.
func TestSuspend(t *testing.T) {
	for name, end := range map[string]func(*world, *stream.Destination){
		"hour": func(*world, *stream.Destination) { time.Sleep(time.Hour + time.Minute) },
		"resume": func(w *world, _ *stream.Destination) {
			if _, changed, err := stream.SetState(w.t.Context(), w.store, "siem", stream.Active, "", "somebody", time.Now()); err != nil || !changed {
				w.t.Error(err)
			}
			time.Sleep(time.Minute)
		},
		"settings": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rows("acme")
			r, other := &receiver{}, &receiver{}
			var refuses atomic.Bool
			refuses.Store(true)
			r.answer = func(batch []sink.Message) sink.Result {
				if refuses.Load() {
					return sink.All(len(batch), sink.Verdict{Outcome: sink.Suspend, Reason: "403 Forbidden"})
				}
				return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
			}
			d := r.destination()
			beside := other.destination(func(d *stream.Destination) { d.Name = "other" })
			stop := w.start(w.settings(), d, beside)
			time.Sleep(30 * time.Minute)
			w.rows("acme", "umbrella")
			time.Sleep(time.Minute)
			if n := r.tries(); n != 1 {
				t.Errorf("%s: %d attempts at a destination that is suspended", name, n)
			}
			if w.check(other) != 0 {
				t.Errorf("%s: rows came twice elsewhere", name)
			}
			s, err := stream.ReadState(t.Context(), w.store, "siem")
			if err != nil || s.State != stream.Suspended || s.Reason != "403 Forbidden" {
				t.Errorf("%s: state %+v, %v", name, s, err)
			}
			refuses.Store(false)
			if end != nil {
				end(w, &d)
			} else {
				stop()
				d.Spec += "\nurl: another"
				stop = w.start(w.settings(), d, beside)
				time.Sleep(time.Minute)
			}
			w.check(r)
			time.Sleep(time.Minute)
			if s, err = stream.ReadState(t.Context(), w.store, "siem"); err != nil || s.State != stream.Active {
				t.Errorf("%s: then %+v, %v", name, s, err)
			}
			stop()
			want := map[string]string{"hour": "active", "resume": "resumed", "settings": "changed"}[name]
			if got := w.changes[len(w.changes)-1]; !strings.HasSuffix(got, want) && !slices.ContainsFunc(w.changes, func(c string) bool { return strings.HasSuffix(c, want) }) {
				t.Errorf("%s: changes %q, want %s", name, w.changes, want)
			}
		})
	}
}

// A destination that is paused gets nothing until it is resumed, and then all.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme")
		r := &receiver{}
		stop := w.start(w.settings(), r.destination())
		time.Sleep(time.Minute)
		for _, state := range []string{stream.Paused, stream.Active} {
			if _, _, err := stream.SetState(t.Context(), w.store, "siem", state, "", "somebody", time.Now()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			w.rows("acme", "umbrella")
			time.Sleep(time.Minute)
			if state == stream.Paused && len(r.places()) != 1 {
				t.Errorf("a paused destination got %v", r.places())
			}
		}
		stop()
		if n := w.check(r); n != 0 {
			t.Errorf("%d rows came twice", n)
		}
		if got := fmt.Sprint(w.changes); got != "[siem 1 new siem 2 paused siem 3 resumed]" {
			t.Errorf("changes %s", got)
		}
		if _, _, err := stream.SetState(t.Context(), w.store, "nowhere", stream.Paused, "", "", time.Now()); !errors.Is(err, stream.ErrNoDestination) {
			t.Errorf("a destination that is not there: %v", err)
		}
	})
}

// With on-poison: block a log waits in front of what is refused for good, and
// others go on; once it is taken, the log goes on in order.
func TestBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme", "umbrella", "acme", "acme", "umbrella")
		r := &receiver{}
		var refuses atomic.Bool
		refuses.Store(true)
		r.answer = verdicts(func(m sink.Message) *sink.Verdict {
			if refuses.Load() && isRow(m, "acme", 1) {
				return &sink.Verdict{Outcome: sink.Poison, Reason: "400 Bad Request"}
			}
			return nil
		})
		block := func(d *stream.Destination) { d.Block = true }
		stop := w.start(w.settings(), r.destination(block))
		time.Sleep(time.Minute)
		w.rows("acme", "umbrella")
		w.calls.Anchor()
		w.land()
		w.compact(w.calls.Line)
		w.rows("umbrella")
		time.Sleep(10 * time.Minute)
		umbrella := 0
		for _, p := range r.places() {
			if strings.HasPrefix(p, "umbrella") {
				umbrella++
			}
		}
		if umbrella != 4 || len(w.dead) != 0 || !strings.Contains(fmt.Sprint(w.stopped["acme"]), "400 Bad Request") {
			t.Errorf("%d rows of the other log arrived; dead letters %v; stopped %v", umbrella, w.dead, w.stopped)
		}
		if at := w.cursors("siem", "").Of("acme").Next; at != 1 {
			t.Errorf("the blocked log's cursor stands at %d", at)
		}
		refuses.Store(false)
		time.Sleep(10 * time.Minute)
		stop()
		r.got = slices.DeleteFunc(r.got, func(ev *event.Event) bool { return ev.Tenant == "acme" && ev.Seq > 1 && ev != lastOf(r.got, ev.ID) })
		w.check(r)
	})
}

// lastOf returns the last event of an id: what comes behind a refused one in the
// same batch may have arrived before it.
func lastOf(all []*event.Event, id string) (last *event.Event) {
	for _, ev := range all {
		if ev.ID == id {
			last = ev
		}
	}
	return last
}

// A destination that refuses one event after the other for good is set up wrongly:
// it is suspended, and does not turn the whole archive into dead letters.
func TestADestinationThatRefusesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 30 {
			w.rows("acme", "umbrella")
		}
		r := &receiver{limits: sink.Limits{Events: 5}}
		r.answer = verdicts(func(sink.Message) *sink.Verdict { return &sink.Verdict{Outcome: sink.Poison, Reason: "400"} })
		w.export(30*time.Minute, r.destination(func(d *stream.Destination) { d.MaxDead = 20 }))
		if len(w.dead) != 20 || !slices.Contains(w.changes, "siem 2 suspended") {
			t.Errorf("%d dead letters, changes %q", len(w.dead), w.changes)
		}
	})
}

// A destination that hangs holds up no other one, and its cursors stay where they
// are.
func TestADestinationThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hangs := &hanging{}
		r := &receiver{}
		s := w.settings()
		s.Memory = 1 << 20
		stop := w.start(s, stream.Destination{Name: "hangs", Sink: hangs, Format: event.JSON}, r.destination())
		for i := range 30 {
			w.rows("acme", "umbrella")
			if i%10 == 9 {
				w.calls.Anchor()
				w.land()
				w.compact(w.calls.Line)
			}
			time.Sleep(20 * time.Second)
			w.check(r)
		}
		stop()
		if at := w.cursors("hangs", "").Of("acme"); at != nil && at.Next != 0 {
			t.Errorf("a destination that said nothing stands at %+v", at)
		}
	})
}

type hanging struct{}

func (*hanging) Limits() sink.Limits         { return sink.Limits{} }
func (*hanging) Close(context.Context) error { return nil }
func (*hanging) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	<-ctx.Done()
	return sink.All(len(batch), sink.Verdict{})
}

// While events flow without a pause cursors are stored once a second all the same:
// a crash repeats what came since.
func TestCursorsAreStoredUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 100 {
			w.rows("acme", "umbrella")
		}
		r := &receiver{limits: sink.Limits{Events: 1}}
		r.answer = func(batch []sink.Message) sink.Result {
			time.Sleep(100 * time.Millisecond)
			return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
		}
		ctx, kill := context.WithCancel(t.Context())
		c := &cut{n: -1, kill: kill}
		s := w.settings()
		s.Archive = &cutStore{store: w.store, cut: c}
		over := make(chan struct{})
		go func() {
			_ = stream.New(s, []stream.Destination{r.destination(func(d *stream.Destination) { d.Sink = &cutSink{r, c} })}).Run(ctx)
			close(over)
		}()
		time.Sleep(9500 * time.Millisecond)
		c.die()
		<-over
		w.export(2*time.Minute, r.destination())
		if n := w.check(r); n < 1 || n > 12 {
			t.Errorf("%d rows came twice; one in a tenth of a second came since the cursors were stored", n)
		}
	})
}

// A destination that no exporter is set to have any more is noted as removed, once,
// and not while another exporter has it; when it comes back it goes on where it
// stood.
func TestRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme")
		r, other, third := &receiver{}, &receiver{}, &receiver{}
		beside := other.destination(func(d *stream.Destination) { d.Name = "other" })
		stop := w.start(w.settings(), third.destination(func(d *stream.Destination) { d.Name = "third" }))
		w.export(time.Minute, r.destination(), beside)
		w.export(3*time.Minute, beside)
		w.export(3*time.Minute, beside)
		n := 0
		for _, c := range w.changes {
			if strings.HasSuffix(c, "removed") {
				n++
			}
		}
		if n != 1 || !slices.Contains(w.changes, "siem 2 removed") {
			t.Errorf("changes %q; want siem removed, once", w.changes)
		}
		w.rows("acme")
		w.export(time.Minute, r.destination(), beside)
		stop()
		if n := w.check(r) + w.check(third); n != 0 {
			t.Errorf("%d rows came twice", n)
		}
	})
}

// A backfill that nobody can read, or whose dead letters are gone, holds up no other.
func TestABrokenBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme")
		r := &receiver{}
		w.export(10*time.Second, r.destination())
		for _, j := range []stream.Job{{ID: "01"}, {ID: "02", Dead: []string{"export/siem/dead/none.json"}}, {ID: "03"}} {
			j.Destination = "siem"
			if err := stream.Backfill(t.Context(), w.store, j); err != nil {
				t.Fatal(err)
			}
		}
		w.store.Overwrite(w.keys("/backfill/01.json")[0], []byte("{"))
		w.export(time.Minute, r.destination())
		if got := fmt.Sprint(r.places()); got != "[acme 0 acme 0]" {
			t.Errorf("%s arrived", got)
		}
		jobs, err := stream.Jobs(t.Context(), w.store, "siem")
		if err == nil || !strings.Contains(err.Error(), "01.json") || len(jobs) != 2 || jobs[0].Done != nil || jobs[1].Done == nil {
			t.Errorf("%+v, %v", jobs, err)
		}
	})
}

// A state that nobody can read keeps its destination from beginning: that is seen,
// and it is begun once the state is mended.
func TestAStateThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"null", "{", `{"v":1,"state":"asleep"}`} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rows("acme")
			r := &receiver{}
			w.export(10*time.Second, r.destination())
			key := w.keys("/destination.json")[0]
			body, err := w.store.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			w.store.Overwrite(key, []byte(text))
			w.rows("acme")
			e := stream.New(w.settings(), []stream.Destination{r.destination()})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- e.Run(ctx) }()
			time.Sleep(time.Minute)
			if s := e.Standings()[0]; !strings.Contains(s.Fault, key) || len(r.places()) != 1 {
				t.Errorf("%s: fault %q, %v arrived", text, s.Fault, r.places())
			}
			w.store.Overwrite(key, body)
			time.Sleep(10 * time.Minute)
			if s := e.Standings()[0]; s.Fault != "" {
				t.Errorf("%s, mended: fault %q", text, s.Fault)
			}
			cancel()
			<-done
			if n := w.check(r); n != 0 {
				t.Errorf("%d rows came twice", n)
			}
		})
	}
}

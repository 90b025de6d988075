package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

var errCut = errors.New("the process is gone")

// A cut ends an exporter at its n-th step, before the step happens or after: a
// write to the store, or a delivery. From then on nothing of it gets anywhere.
type cut struct {
	n     int
	after bool
	kill  context.CancelFunc

	mu   sync.Mutex
	seen int
	dead bool
	what string
}

// die ends the process now.
func (c *cut) die() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
	c.kill()
}

func (c *cut) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// step does a step, or not. It reports whether the exporter hears that it was done.
func (c *cut) step(what string, do func()) (heard bool) {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return false
	}
	c.seen++
	last := c.seen == c.n
	if last {
		c.dead, c.what = true, what
	}
	c.mu.Unlock()
	if !last || c.after {
		do()
	}
	if last {
		c.kill()
	}
	return !last
}

// Every write and every delivery of an exporter can be the last thing that it
// does, before it happens or after. TestEveryCut tries all of them; another
// exporter then goes on, and every row has arrived, in the order of its log, no
// gap, and nothing more than once that was acknowledged longer ago than cursors
// wait to be stored.
func TestEveryCut(t *testing.T) {
	for _, poisoned := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for n := 1; ; n++ {
				done := false
				synctest.Test(t, func(t *testing.T) { done = cutAt(t, n, after, poisoned) })
				if t.Failed() {
					t.Fatalf("cut at step %d, after it %v, poisoned %v", n, after, poisoned)
				}
				if done {
					if n < 20 {
						t.Errorf("only %d steps were there to be cut", n)
					}
					break
				}
			}
		}
	}
}

// cutAt reports whether there was no n-th step.
func cutAt(t *testing.T, n int, after, poisoned bool) (done bool) {
	w := newWorld(t)
	w.rows("acme", "umbrella", "acme")
	w.rows("umbrella")
	w.calls.Anchor()
	w.land()
	w.compact(w.calls.Line)
	ctx, kill := context.WithCancel(t.Context())
	c := &cut{n: n, after: after, kill: kill}
	r := &receiver{limits: sink.Limits{Events: 2}}
	poison := func(batch []sink.Message) sink.Result {
		result := sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
		for i, m := range batch {
			if poisoned && m.Event.IsRow() && m.Event.Tenant == "acme" && m.Event.Seq == 1 {
				result.Verdicts[i] = sink.Verdict{Outcome: sink.Poison, Reason: "refused"}
			}
		}
		return result
	}
	r.answer = poison
	s := w.settings()
	s.Archive = &cutStore{store: w.store, cut: c}
	dying := r.destination(func(d *stream.Destination) { d.Sink = &cutSink{r, c}; d.Heads = true })
	over := make(chan struct{})
	go func() {
		_ = stream.New(s, []stream.Destination{dying}).Run(ctx)
		close(over)
	}()
	for i := 0; i < 4 && !c.isDead(); i++ {
		time.Sleep(2100 * time.Millisecond)
		w.rows("acme", "umbrella", "acme")
		w.calls.Anchor()
		w.land()
	}
	time.Sleep(time.Minute)
	kill()
	<-over
	w.export(3*time.Minute, r.destination(func(d *stream.Destination) { d.Heads = true }))
	var repeats int
	if poisoned {
		repeats = w.checkPoisoned(r)
	} else {
		repeats = w.check(r)
	}
	if len(w.stopped) > 0 {
		t.Errorf("stopped after %s: %v", c.what, w.stopped)
	}
	// Cursors are stored once a second, and no more than five rows come in one.
	if repeats > 5 {
		t.Errorf("%d rows came twice after %s", repeats, c.what)
	}
	if !c.dead && repeats > 0 {
		t.Errorf("%d rows came twice without a cut", repeats)
	}
	return !c.dead
}

// checkPoisoned requires that the refused row is a dead letter and all others
// arrived.
func (w *world) checkPoisoned(r *receiver) (repeats int) {
	w.t.Helper()
	seen := map[string]int{}
	for _, p := range r.places() {
		seen[p]++
	}
	for tenant, log := range w.calls.Logs {
		for seq := range log.Tree.Size {
			n := seen[fmt.Sprint(tenant, " ", seq)]
			refused := tenant == "acme" && seq == 1
			if refused != (n == 0) {
				w.t.Errorf("%s %d arrived %d times", tenant, seq, n)
			}
			repeats += max(n-1, 0)
		}
	}
	letters := 0
	for l, err := range stream.DeadLetters(context.Background(), w.store.Memory, "siem") {
		if err != nil {
			w.t.Fatal(err)
		}
		letters += len(l.Letters)
	}
	if letters != 1 {
		w.t.Errorf("%d dead letters, want 1", letters)
	}
	return repeats
}

// A cutStore is a store of a process that is cut off.
type cutStore struct {
	*store
	cut *cut
}

func (s *cutStore) Swap(ctx context.Context, key string, body []byte, tag string) (newTag string, err error) {
	if !s.cut.step("swap "+key, func() { newTag, err = s.store.Swap(ctx, key, body, tag) }) {
		return "", errCut
	}
	return newTag, err
}

func (s *cutStore) Create(ctx context.Context, key string, body []byte) (at time.Time, err error) {
	if !s.cut.step("create "+key, func() { at, err = s.store.Create(ctx, key, body) }) {
		return at, errCut
	}
	return at, err
}

// A cutSink is a destination of such a process.
type cutSink struct {
	*receiver
	cut *cut
}

func (s *cutSink) Deliver(ctx context.Context, batch []sink.Message) (r sink.Result) {
	if !s.cut.step("deliver", func() { r = s.receiver.Deliver(ctx, batch) }) {
		return sink.All(len(batch), sink.Verdict{Reason: "connection lost"})
	}
	return r
}

// A write that is refused now and then, and one of which no answer comes though it
// happened, delay delivery and repeat nothing.
func TestAStoreThatFailsNowAndThen(t *testing.T) {
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			n := 0
			fail := func(op, _ string) error {
				if op == "get" {
					return nil
				}
				if n++; n%3 != 0 {
					return errors.New("slow down")
				}
				return nil
			}
			if after {
				w.store.after = fail
			} else {
				w.store.before = fail
			}
			r := &receiver{}
			stop := w.start(w.settings(), r.destination())
			for range 10 {
				w.rows("acme", "umbrella")
				time.Sleep(20 * time.Second)
			}
			time.Sleep(time.Minute)
			if n := w.check(r); n != 0 {
				t.Errorf("%d rows came twice", n)
			}
			stop()
		})
	}
}

// A cursor that does not match is told before anything is sent, by its place, and
// stops its log alone.
func TestATamperedCursor(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"another hash": func(s string) string {
			return strings.Replace(s, `"tenant":"acme","first":0,"next":3,"rowHash":"`, `"tenant":"acme","first":0,"next":3,"rowHash":"0000`, 1)
		},
		"another place": func(s string) string {
			return strings.Replace(s, `"tenant":"acme","first":0,"next":3`, `"tenant":"acme","first":0,"next":2`, 1)
		},
		"beyond the end": func(s string) string {
			return strings.Replace(s, `"tenant":"acme","first":0,"next":3`, `"tenant":"acme","first":0,"next":7`, 1)
		},
		"another archive": func(s string) string { return strings.Replace(s, prooftest.ID, "01KBCDEFGHJKMNPQRSTVWXYZ09", 1) },
		"no document":     func(string) string { return "{" },
		"no hash": func(s string) string {
			return regexp.MustCompile(`("tenant":"acme","first":0,"next":)3,"rowHash":"[0-9a-f]*"`).ReplaceAllString(s, `${1}4,"rowHash":null`)
		},
		"another destination": func(s string) string { return strings.Replace(s, `"destination":"siem"`, `"destination":"lake"`, 1) },
		"another line":        func(s string) string { return strings.Replace(s, `"partition":0`, `"partition":1`, 1) },
		"a log twice": func(s string) string {
			log := regexp.MustCompile(`\{"tenant":"acme"[^}]*\},`).FindString(s)
			return strings.Replace(s, log, log+log, 1)
		},
	} {
		for _, compacted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.rows("acme", "umbrella", "acme", "acme")
				r := &receiver{}
				w.export(10*time.Second, r.destination())
				w.calls.Anchor()
				w.land()
				if compacted {
					w.compact(w.calls.Line)
				}
				key := w.keys("/cursor/audit.calls")[0]
				body, err := w.store.Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				changed := change(string(body))
				if name == "another hash" { // of the same length
					i := strings.Index(changed, `"0000`)
					changed = changed[:i+65] + changed[i+69:]
				}
				if changed == string(body) {
					t.Fatalf("%s: nothing was changed in %s", name, body)
				}
				w.store.Overwrite(key, []byte(changed))
				var faults []error
				e := stream.New(w.settings(), []stream.Destination{r.destination()})
				if err := e.CheckCursors(t.Context(), func(_ string, _ archive.Line, err error) { faults = append(faults, err) }); err != nil {
					t.Fatal(err)
				}
				if len(faults) != 1 || !errors.Is(faults[0], stream.ErrCursor) || !strings.Contains(faults[0].Error(), key) {
					t.Errorf("%s, compacted %v: %v; want one fault that names %s", name, compacted, faults, key)
				}
				// It goes on all the same, where nobody asked: the log is stopped, others
				// are not.
				w.rows("acme", "umbrella")
				before := len(r.places())
				w.export(10*time.Second, r.destination())
				for _, p := range r.places()[before:] {
					if strings.HasPrefix(p, "acme") {
						t.Errorf("%s, compacted %v: %s was delivered behind a cursor that does not match", name, compacted, p)
					}
				}
				one := name == "another hash" || name == "another place" || name == "beyond the end"
				if got := len(r.places()) - before; one && (got != 1 || !errors.Is(w.stopped["acme"], stream.ErrCursor)) {
					t.Errorf("%s, compacted %v: %d rows of the other log arrived; stopped %v", name, compacted, got, w.stopped)
				}
			})
		}
	}
}

// Two exporters never both move a cursor: one has the destination, the other takes
// over when the first one dies, or at once when it ends.
func TestTwoExporters(t *testing.T) {
	for _, dies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r := &receiver{}
			first := w.settings()
			ctx, kill := context.WithCancel(t.Context())
			c := &cut{n: -1, kill: kill}
			first.Archive = &cutStore{store: w.store, cut: c}
			over := make(chan struct{})
			go func() {
				_ = stream.New(first, []stream.Destination{r.destination(func(d *stream.Destination) { d.Sink = &cutSink{r, c} })}).Run(ctx)
				close(over)
			}()
			time.Sleep(time.Second)
			second := &receiver{}
			stop := w.start(w.settings(), second.destination())
			for range 20 {
				w.rows("acme", "umbrella")
				time.Sleep(2 * time.Second)
			}
			if len(second.places()) > 0 {
				t.Fatalf("both deliver: the second one %v", second.places())
			}
			w.check(r)
			if dies {
				c.die()
			}
			kill()
			<-over
			w.rows("acme", "umbrella")
			wait := 15 * time.Second
			if dies {
				time.Sleep(wait)
				if len(second.places()) > 0 {
					t.Errorf("the second one delivers before the first is known to be dead")
				}
				wait = time.Minute
			}
			time.Sleep(wait)
			stop()
			r.got = append(r.got, second.got...)
			repeats := w.check(r)
			if !dies && repeats > 0 || repeats > 2 {
				t.Errorf("%d rows came twice; the first one died: %v", repeats, dies)
			}
		})
	}
}

// One that slept and wakes up behind another one finds that the cursors have moved
// on, and stops; its last batch came twice at most.
func TestASleeperIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, second := &receiver{}, &receiver{}
		asleep := make(chan struct{})
		r.answer = func(batch []sink.Message) sink.Result {
			if batch[0].Event.Seq == 2 {
				<-asleep
			}
			return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
		}
		s := w.settings()
		slow := &sleepyStore{store: w.store, asleep: asleep}
		s.Archive = slow
		w.rows("acme", "acme")
		stop := w.start(s, r.destination())
		time.Sleep(5 * time.Second)
		slow.sleeps.Store(true)
		w.rows("acme")
		stop2 := w.start(w.settings(), second.destination())
		time.Sleep(2 * time.Minute)
		w.rows("acme")
		time.Sleep(10 * time.Second)
		slow.sleeps.Store(false)
		close(asleep)
		time.Sleep(10 * time.Second)
		w.rows("acme")
		time.Sleep(10 * time.Second)
		stop()
		time.Sleep(10 * time.Second)
		stop2()
		if got := fmt.Sprint(second.places()); got != "[acme 2 acme 3 acme 4]" {
			t.Errorf("the second one delivered %s", got)
		}
		if got := fmt.Sprint(r.places()); got != "[acme 0 acme 1 acme 2]" {
			t.Errorf("the sleeper delivered %s", got)
		}
	})
}

// A sleepyStore holds up all writes while it sleeps.
type sleepyStore struct {
	*store
	sleeps atomic.Bool
	asleep chan struct{}
}

func (s *sleepyStore) Swap(ctx context.Context, key string, body []byte, tag string) (string, error) {
	if s.sleeps.Load() {
		<-s.asleep
	}
	return s.store.Swap(ctx, key, body, tag)
}

// A cursor that says a later epoch than the log has would have all of its rows
// taken for rows that were declared void.
func TestACursorOfALaterEpoch(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rows("acme", "umbrella")
			r := &receiver{}
			w.export(10*time.Second, r.destination())
			w.rows("acme", "umbrella")
			if compacted {
				w.calls.Anchor()
				w.land()
				w.compact(w.calls.Line)
			}
			key := w.keys("/cursor/audit.calls")[0]
			body, err := w.store.Get(t.Context(), key)
			changed := strings.Replace(string(body), `"epoch":0`, `"epoch":7`, 1)
			if err != nil || changed == string(body) {
				t.Fatalf("%s, %v", body, err)
			}
			w.store.Overwrite(key, []byte(changed))
			w.export(20*time.Second, r.destination())
			if got := fmt.Sprint(r.places()); got != "[acme 0 umbrella 0 umbrella 1]" || !errors.Is(w.stopped["acme"], stream.ErrCursor) {
				t.Errorf("compacted %v: %s arrived, stopped %v", compacted, got, w.stopped)
			}
		})
	}
}

// At the beginning of a log no row says that an epoch is made up: it is not asked.
func TestACursorOfALaterEpochAtTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rows("acme")
		r := &receiver{}
		w.export(10*time.Second, r.destination())
		key := w.keys("/cursor/audit.calls")[0]
		body, err := w.store.Get(t.Context(), key)
		changed := regexp.MustCompile(`"next":1,"rowHash":"[0-9a-f]*","epoch":0`).ReplaceAllString(string(body), `"next":0,"rowHash":null,"epoch":7`)
		changed = strings.Replace(changed, `"ordinal":1`, `"ordinal":0`, 1)
		if err != nil || changed == string(body) {
			t.Fatalf("%s, %v", body, err)
		}
		w.store.Overwrite(key, []byte(changed))
		w.rows("acme")
		w.export(20*time.Second, r.destination())
		if got := fmt.Sprint(r.places()); got != "[acme 0 acme 0 acme 1]" {
			t.Errorf("%s arrived", got)
		}
	})
}

// A backfill in the place of another one could write anywhere below export/.
func TestAJobOfAnotherName(t *testing.T) {
	w := newWorld(t)
	w.rows("acme")
	j := stream.Job{ID: "../../lake", Destination: "siem"}
	if err := stream.Backfill(t.Context(), w.store, stream.Job{ID: "01", Destination: "siem"}); err != nil {
		t.Fatal(err)
	}
	key := w.keys("/backfill/")[0]
	for _, change := range []func(*stream.Job){
		func(*stream.Job) {},
		func(j *stream.Job) { j.ID, j.Destination = "01", "lake" },
	} {
		change(&j)
		j.V = 1
		body, err := json.Marshal(&j)
		if err != nil {
			t.Fatal(err)
		}
		w.store.Overwrite(key, body)
		if jobs, err := stream.Jobs(t.Context(), w.store, "siem"); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, %v", body, jobs, err)
		}
	}
}

// What a cursor's object says of where to read on is a hint: rows are found, and
// none is left out, whatever it says.
func TestHintsAreHints(t *testing.T) {
	for _, hint := range []string{`"ordinal":0`, `"ordinal":1`, `"ordinal":99`} {
		for _, compacted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.rows("acme", "umbrella")
				w.rows("acme")
				r := &receiver{}
				w.export(20*time.Second, r.destination())
				w.calls.Anchor()
				w.land()
				if compacted {
					w.compact(w.calls.Line)
				}
				w.rows("acme", "umbrella")
				key := w.keys("/cursor/audit.calls")[0]
				body, err := w.store.Get(t.Context(), key)
				if err != nil || !strings.Contains(string(body), `"ordinal":2,"day":""`) {
					t.Fatalf("%s, %v", body, err)
				}
				w.store.Overwrite(key, []byte(strings.Replace(string(body), `"ordinal":2`, hint, 1)))
				w.export(20*time.Second, r.destination())
				w.rows("umbrella", "hooli")
				w.export(20*time.Second, r.destination())
				if n := w.check(r); n != 0 || len(w.stopped) > 0 {
					t.Errorf("%s, compacted %v: %d rows came twice, stopped %v", hint, compacted, n, w.stopped)
				}
			})
		}
	}
}

package stream_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/stream"
)

// An exporter that reads data files, since compaction has passed its cursors,
// also looks at what is new meanwhile. Wherever it is cut off, the next one goes on
// with the files too, also where no log ever gets another row.
func TestEveryCutOfOneThatIsBehind(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			done := false
			synctest.Test(t, func(t *testing.T) { done = cutBehind(t, n, after) })
			if t.Failed() {
				t.Fatalf("cut at step %d, after it %v", n, after)
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

// cutBehind reports whether there was no n-th step.
func cutBehind(t *testing.T, n int, after bool) (done bool) {
	w := newWorld(t)
	w.rows("acme", "hooli", "umbrella")
	r := &receiver{limits: sink.Limits{Events: 1}}
	w.export(20*time.Second, r.destination())
	for range 3 {
		w.rows("acme", "hooli", "umbrella")
	}
	w.calls.Anchor()
	w.land()
	w.compact(w.calls.Line)
	w.rows("acme")
	ctx, kill := context.WithCancel(t.Context())
	c := &cut{n: n, after: after, kill: kill}
	r.answer = func(batch []sink.Message) sink.Result {
		time.Sleep(1500 * time.Millisecond)
		return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
	}
	s := w.settings()
	s.Archive = &cutStore{store: w.store, cut: c}
	over := make(chan struct{})
	go func() {
		_ = stream.New(s, []stream.Destination{r.destination(func(d *stream.Destination) { d.Sink = &cutSink{r, c} })}).Run(ctx)
		close(over)
	}()
	time.Sleep(2 * time.Minute)
	kill()
	<-over
	w.export(3*time.Minute, r.destination())
	w.check(r)
	return !c.dead
}

// How old the oldest row is that a destination has not got is known also where
// compaction has passed it: of one that takes nothing, and of one that is slow.
func TestAgeOfRowsInDataFiles(t *testing.T) {
	for name, verdict := range map[string]sink.Verdict{"takes nothing": {Outcome: sink.Retry}, "is slow": {Outcome: sink.Delivered}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for range 40 {
					w.rows("acme", "hooli")
				}
				w.calls.Anchor()
				w.land()
				w.compact(w.calls.Line)
				var takes atomic.Bool
				r := &receiver{limits: sink.Limits{Events: 1}, answer: func(batch []sink.Message) sink.Result {
					if takes.Load() {
						return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
					}
					time.Sleep(time.Minute)
					return sink.All(len(batch), verdict)
				}}
				e := stream.New(w.settings(), []stream.Destination{r.destination()})
				ctx, end := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() { _ = e.Run(ctx); close(over) }()
				time.Sleep(10*time.Minute + 30*time.Second)
				if s := e.Standings()[0]; s.Oldest.IsZero() {
					t.Errorf("nothing is said of how old it is: %+v", s)
				}
				takes.Store(true)
				time.Sleep(30 * time.Minute)
				if s := e.Standings()[0]; !s.Oldest.IsZero() {
					t.Errorf("all is delivered, and the oldest that is not is of %v", s.Oldest)
				}
				end()
				<-over
			})
		})
	}
}

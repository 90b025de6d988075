//go:build it

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/emit"
	"github.com/ledgerlake/ledgerlake/ledger"
)

// A work is what was recorded, and how long the calls took.
type work struct {
	recorded map[string]int64 // by tenant
	here     []time.Duration  // calls while the broker was there
	away     []time.Duration  // calls while it was away
	took     time.Duration
	resumed  time.Duration // from the broker's return to the next acknowledgement
}

// perTurn is how many calls a turn has.
const perTurn = 25

// emitAll records all calls from eight goroutines, evenly over the time that the
// run lasts, while the broker goes away in the middle of it.
func (t *trial) emitAll(ctx context.Context, e *emit.Emitter) (*work, error) {
	begin := time.Now()
	var gone, back time.Time
	var resumed time.Duration
	left := make(chan error, 1)
	go func() {
		time.Sleep((t.lasts - t.away) / 2)
		gone = time.Now()
		err := t.leave(ctx)
		back = time.Now()
		resumed = next(ctx, e)
		left <- err
	}()
	all := make([][]call, goroutines)
	var done sync.WaitGroup
	for g := range goroutines {
		done.Go(func() { all[g] = t.emitSome(ctx, e, g, begin) })
	}
	done.Wait()
	w := &work{recorded: map[string]int64{}, took: time.Since(begin)}
	if err := <-left; err != nil {
		return nil, err
	}
	w.resumed = resumed
	for _, calls := range all {
		for _, c := range calls {
			w.recorded[c.tenant]++
			if at := begin.Add(c.at); at.After(gone) && at.Before(back) {
				w.away = append(w.away, c.took)
			} else {
				w.here = append(w.here, c.took)
			}
		}
	}
	return w, ctx.Err()
}

// next waits for the next acknowledgement, and returns how long it took.
func next(ctx context.Context, e *emit.Emitter) time.Duration {
	begin, before := time.Now(), e.Stats().Acknowledged
	for ctx.Err() == nil && e.Stats().Acknowledged == before {
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(begin)
}

// A call is one call of the emitter.
type call struct {
	tenant   string
	at, took time.Duration // at counts from the beginning
}

// emitSome is one goroutine of them.
func (t *trial) emitSome(ctx context.Context, e *emit.Emitter, g int, begin time.Time) []call {
	share := t.emits / goroutines
	if g < t.emits%goroutines {
		share++
	}
	calls := make([]call, 0, share)
	for turn := 0; len(calls) < share && ctx.Err() == nil; turn++ {
		due := begin.Add(t.lasts * time.Duration(len(calls)) / time.Duration(share))
		time.Sleep(time.Until(due))
		tenant := fmt.Sprintf("tenant-%02d", (turn*goroutines+g)%t.tenants)
		key := e.NewTurn(emit.Turn{Session: fmt.Sprint("session-", turn), Principal: ledger.Principal{TenantID: tenant, UserID: "user-4711", ActorKind: "user", SessionAuthMethod: "clerk"}})
		for n := range min(perTurn, share-len(calls)) {
			at := time.Now()
			one(ctx, e, key, n)
			calls = append(calls, call{tenant, at.Sub(begin), time.Since(at)})
		}
		e.EndTurn(key)
	}
	return calls
}

// one records something, in turn by each way.
func one(ctx context.Context, e *emit.Emitter, key string, n int) {
	at := emit.Site{TurnKey: key, Provider: "anthropic", Model: "claude-opus-4-1", CallClass: "worker", Transport: "native"}
	switch n % 5 {
	case 0:
		e.RecordFamilyLockDecision(ctx, at, ledger.FamilyLock{ResolverPath: "session>tenant>matrix", EmitSite: "planner.resolve", RequestedFamily: "anthropic", FamilyMismatch: new(false)})
	case 1:
		e.RecordCacheHitDecision(ctx, at, ledger.CacheBreakpoint{CacheReadTokens: new(int64(812)), InputTokens: new(int64(1840)), HitPct: new(44.1)})
	case 2:
		e.RecordToolSelectionDecision(ctx, at, map[string]any{"chosen": "search", "candidates": []string{"search", "fetch"}})
	case 3:
		e.RecordTokenCostDecision(ctx, at, ledger.TokenCost{InputTokens: new(int64(1840)), OutputTokens: new(int64(96))})
	case 4:
		e.Record(ctx, key, &ledger.Call{
			Ran: ledger.Ran{Provider: "anthropic", Model: "claude-opus-4-1"}, Decision: &ledger.Decision{SelectedReason: "matrix-pick", RungOrdinal: new(int64(0))},
			Outcome: ledger.Outcome{Status: "ok", LatencyMS: new(812.5), HTTPStatus: new(int64(200))},
		})
	}
}

// print shows how long the calls took.
func (w *work) print(out io.Writer) {
	n := len(w.here) + len(w.away)
	fmt.Fprintf(out, "%d calls from %d goroutines in %v\n\n", n, goroutines, w.took.Round(time.Millisecond))
	fmt.Fprintf(out, "%-22s %9s %9s %9s %9s %9s %9s\n", "a call took", "calls", "p50", "p90", "p99", "p99.9", "max")
	for _, part := range []struct {
		name string
		of   []time.Duration
	}{{"broker there", w.here}, {"broker away", w.away}} {
		slices.Sort(part.of)
		fmt.Fprintf(out, "%-22s %9d", part.name, len(part.of))
		for _, p := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
			fmt.Fprintf(out, " %9v", at(part.of, p).Round(100*time.Nanosecond))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "\nacknowledged again %v after the broker was back\n", w.resumed.Round(time.Millisecond))
}

// at returns a quantile of sorted times.
func at(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

package emit

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/ledger"
)

// rows closes an emitter and returns the rows of what it sent.
func rows(t *testing.T, e *Emitter, k *truck) (all []*audit.Record) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range k.records() {
		all = append(all, decoded(t, r))
	}
	return all
}

// A process that dies in the middle of a turn, and the one that takes the turn up,
// never give the same coordinates: whatever was recorded before, whenever the
// second begins, and though neither knows of the other. What comes later has the
// greater number, if it begins in a later second.
func TestRestartInMidTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for trial := range 60 {
			seen := map[audit.Fingerprint]bool{}
			last := int64(-1)
			for life := range 4 {
				k := &truck{}
				e := startOn(Options{Topic: topic}, k)
				e.StartTurn("msg-1", Turn{Session: "s-1", Principal: acme().Principal})
				for range 1 + trial%100 {
					e.RecordTokenCostDecision(t.Context(), Site{TurnKey: "msg-1", Stage: "tool-loop"}, ledger.TokenCost{InputTokens: new(int64(life))})
				}
				for _, row := range rows(t, e, k) {
					at, ok := row.Coordinates()
					if !ok || seen[at] {
						t.Fatalf("trial %d, life %d: coordinates of seq %d are given twice", trial, life, row.SeqWithinTurn.N)
					}
					seen[at] = true
					if n := row.SeqWithinTurn.N; n <= last || n >= 1<<53 {
						t.Fatalf("seq %d after %d", n, last)
					}
					last = row.SeqWithinTurn.N
				}
				time.Sleep(time.Second + time.Duration(trial)*7*time.Millisecond)
			}
		}
	})
}

// Two that take up a turn in the same second meet as seldom as [Turn] says.
func TestTakenUpAtOnce(t *testing.T) {
	const each, trials = 100, 200_000
	at, met := time.Unix(1796055653, 0), 0
	for range trials {
		a, b := takenUp(at), takenUp(at)
		if a/1e6 != at.Unix() || a%1e6 >= 900_000 {
			t.Fatalf("taken up at %d", a)
		}
		if max(a-b, b-a) < each {
			met++
		}
	}
	if want := trials / 4500; met > 2*want {
		t.Errorf("%d of %d meet, want some %d", met, trials, want)
	}
}

// What is known says where numbers begin.
func TestWhereNumbersBegin(t *testing.T) {
	k := &truck{}
	e := startOn(Options{Topic: topic}, k)
	cost := func(key string) {
		e.RecordTokenCostDecision(t.Context(), Site{TurnKey: key}, ledger.TokenCost{})
	}
	plain := Turn{Session: "s-1", Principal: acme().Principal}
	at := func(first int64) Turn { turn := plain; turn.FirstSeq = new(first); return turn }

	made := e.NewTurn(plain)
	cost(made)
	cost(made)
	e.StartTurn("known", at(7))
	cost("known")
	e.StartTurn("known", at(7)) // of a retry in the process: it goes on
	cost("known")
	e.StartTurn("known", plain)
	cost("known")
	e.StartTurn("known", at(100))
	cost("known")
	e.EndTurn("known")
	cost("known") // a late one
	e.StartTurn("known", plain)
	cost("known")
	other := at(3)
	other.Session = "s-2" // another turn of that key
	e.StartTurn("known", other)
	cost("known")
	e.EndTurn("never started")
	e.StartTurn("bad", at(-5))
	cost("bad")
	var got []int64
	all := rows(t, e, k)
	for _, row := range all[:9] {
		got = append(got, row.SeqWithinTurn.N)
	}
	if want := []int64{0, 1, 7, 8, 9, 100, 101, 102, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := audit.ParseRecordID(made); err != nil || all[0].TurnID.S != made {
		t.Errorf("turn %q, %q", made, all[0].TurnID.S)
	}
	if n := all[9].SeqWithinTurn.N; n < 1e15 {
		t.Errorf("a first number below 0 begins at %d", n)
	}
}

// Turns are bounded, in number and in bytes; ended ones go first, then the oldest.
func TestTurnsAreBounded(t *testing.T) {
	turns := newTurns(3)
	keys := func() (all []string) {
		for key := range turns.byKey {
			all = append(all, key)
		}
		slices.Sort(all)
		return all
	}
	for i, want := range []string{"[0]", "[0 1]", "[0 1 2]", "[1 2 3]"} {
		turns.start(fmt.Sprint(i), Turn{}, 0)
		if got := fmt.Sprint(keys()); got != want {
			t.Errorf("after %d: %s, want %s", i, got, want)
		}
	}
	turns.end("3")
	turns.start("4", Turn{}, 0)
	if got := fmt.Sprint(keys()); got != "[1 2 4]" {
		t.Errorf("got %s: the ended one should have gone", got)
	}
	turns.start("large", Turn{Session: strings.Repeat("x", maxTurnBytes)}, 0)
	if got := fmt.Sprint(keys()); got != "[large]" || turns.live.Len() != 1 {
		t.Errorf("got %s", got)
	}
	turns.start("small", Turn{Session: "x"}, 0)
	if got := fmt.Sprint(keys()); got != "[small]" || turns.bytes != 6 {
		t.Errorf("got %s, %d bytes", got, turns.bytes)
	}
	turns = newTurns(5 * maxEnded)
	for i := range 2 * maxEnded {
		turns.start(fmt.Sprint(i), Turn{}, 0)
		turns.end(fmt.Sprint(i))
	}
	if len(turns.byKey) != maxEnded || turns.ended.Len() != maxEnded || turns.live.Len() != 0 {
		t.Errorf("%d ended turns are known", len(turns.byKey))
	}
}

// Ids rise, in all goroutines together and also where the clock goes back.
func TestIDsRise(t *testing.T) {
	ids := newIDs()
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for range 8 {
		all.Go(func() {
			last := ""
			for n := range 2000 {
				id := ids.next(time.UnixMilli(1796055653000 - int64(n)))
				if _, err := audit.ParseRecordID(id); err != nil || id <= last {
					t.Errorf("%s after %s: %v", id, last, err)
				}
				last = id
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(seen) != 16_000 {
		t.Errorf("%d ids of 16000", len(seen))
	}
}

// A call takes at most so many allocations: the id, the value, the slot and each
// optional number in it; and for a slot of the application's own form what
// encoding/json takes.
func TestAllocations(t *testing.T) {
	k := &truck{blocks: make(chan struct{})}
	e := startOn(Options{Topic: topic, Queue: 64}, k)
	defer close(k.blocks)
	e.StartTurn("msg-1", acme())
	at := Site{TurnKey: "msg-1", Provider: "anthropic", Model: "m-1", CallClass: "worker"}
	ctx := context.Background()
	free := json.RawMessage(`{"chosen":"search"}`)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would empty the pool of buffers
	for name, c := range map[string]struct {
		most float64
		call func()
	}{
		"a typed slot": {4, func() {
			e.RecordFamilyLockDecision(ctx, at, ledger.FamilyLock{ResolverPath: "session>matrix", ByokActive: new(true)})
		}},
		"a slot of the application's": {8, func() { e.RecordToolSelectionDecision(ctx, at, free) }},
		"a whole call": {4, func() {
			e.Record(ctx, "msg-1", &ledger.Call{ModelID: "m", TokenCost: &ledger.TokenCost{InputTokens: new(int64(1))}})
		}},
	} {
		for range 200 {
			c.call() // the queue is full, and its ring as large as it gets
		}
		if got := testing.AllocsPerRun(2000, c.call); got > c.most && !raced {
			t.Errorf("%s: %v allocations, want at most %v", name, got, c.most)
		}
	}
}

// Whatever an application says, an archive takes it for what it is: the slot that
// was given is the row's, and no text breaks the record.
func FuzzEmit(f *testing.F) {
	f.Add("s-1", "msg-1", "tool-loop", "anthropic", "search", []byte(`{"a":1}`), int64(7))
	f.Add("", "", "", "\xff", "\"\\\x00", []byte(`{"a":1,"a":2}`), int64(-1))
	f.Add("s\n", "t\u2028", "\xed\xa0\x80", "é", "x", []byte(`{`), int64(1<<62))
	f.Fuzz(func(t *testing.T, session, turn, stage, provider, tool string, free []byte, n int64) {
		k := &truck{}
		e := startOn(Options{Topic: topic}, k)
		e.StartTurn("k", Turn{Session: session, TurnID: turn, Stage: stage, Principal: acme().Principal, FirstSeq: &n})
		at := Site{TurnKey: "k", Provider: provider, ToolName: tool}
		e.RecordFamilyLockDecision(t.Context(), at, ledger.FamilyLock{ResolverPath: provider, EmitSite: tool})
		e.RecordInterruptDecisionDecision(t.Context(), at, map[string]string{tool: provider})
		at.Extra = ledger.Members{{Name: tool, Value: free}, {Name: "toolName", Value: free}, {Name: tool}}
		e.RecordPlanGenerationDecision(t.Context(), at, json.RawMessage(free))
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if session == "" || n > 1<<62 {
			return // an archive asks for a session, and numbers end somewhere
		}
		records := k.records()
		if len(records) != 3 {
			t.Fatalf("%d records", len(records))
		}
		for _, r := range records[:2] {
			row := decoded(t, r)
			if row.Kind.S != audit.KindCall || row.TenantID.S != "acme" || row.SessionID.S != strings.ToValidUTF8(session, "\uFFFD") {
				t.Errorf("%+v", row)
			}
		}
		if !json.Valid(records[2].Value) {
			t.Errorf("no JSON: %s", records[2].Value)
		}
	})
}

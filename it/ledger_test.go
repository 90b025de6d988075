//go:build it

package it

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/emit"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/ledger"
	"github.com/ledgerlake/ledgerlake/ledger/archived"
)

const (
	emitTurns   = 30
	emitPerTurn = 20 // by each of two processes
)

// What package emit sends is what package archived gives back, through Kafka, ingest
// and the bucket: every turn whole and in its order, though in the middle of each the
// process died and another took it up, and no record was rejected. A deletion that was
// ordered is in force for another reader, is carried out by compact, and is the same
// one whoever asks again.
func TestEmittedIsArchived(t *testing.T) {
	s := embedded(t).newStream(t, "emit")
	ingest := s.ingest(t, "--anchor-every", "1s")
	first := s.emitTurns(t, 0)
	time.Sleep(time.Second) // a process needs longer to start; numbers go by seconds
	second := s.emitTurns(t, 1)

	l := s.awaitLedger(t, emitTurns*emitPerTurn*2)
	var victim *ledger.Record
	for i := range emitTurns {
		records, err := l.Turn(t.Context(), tenantOf(i), "session", turnOf(i))
		if err != nil || len(records) != 2*emitPerTurn {
			t.Fatalf("turn %d: %d records, %v", i, len(records), err)
		}
		for n, r := range records {
			want := first
			if n >= emitPerTurn {
				want = second
			}
			if string(r.ToolSelection) != fmt.Sprintf(`{"life":%d,"n":%d}`, n/emitPerTurn, n%emitPerTurn) || r.CreatedAt.Before(want) || r.Principal.UserID != "user-4711" {
				t.Errorf("turn %d, record %d: %s", i, n, r.AppendJSON(nil))
			}
		}
		victim = records[7]
	}
	tenant := victim.Tenant()
	sentinel := s.deleteOne(t, l, tenant, victim)

	other := s.awaitSentinel(t, tenant, victim, true)
	s.await(t, func() error { // the order is due a second after it was archived, by the store's clock
		if out, err := s.run(t, "ledgerlake-compact", "once", "--brokers", s.brokers, "--bucket", s.url(), "--compact.assign", "all", "--purge-after", "1s"); err != nil {
			t.Fatalf("compact: %v\n%s", err, tail(out))
		}
		_, err := s.sentinel(t, tenant, victim, false)
		return err
	})
	done := s.awaitSentinel(t, tenant, victim, false)
	if other != sentinel || done != sentinel {
		t.Errorf("sentinel %s, then %s, then %s", sentinel, other, done)
	}
	s.requireUnbroken(t, tenant)
	s.finish(t, ingest)
}

func tenantOf(turn int) string { return fmt.Sprint("emit-", turn%3) }
func turnOf(turn int) string   { return fmt.Sprint("turn-", turn) }

// emitTurns is one life of a process: it records its part of every turn, and
// returns when it began.
func (s *stream) emitTurns(t *testing.T, life int) (began time.Time) {
	t.Helper()
	began = time.Now().Truncate(time.Millisecond)
	e, err := emit.New(emit.Options{Topic: s.topic, CloseTimeout: time.Minute, Kafka: []kgo.Opt{kgo.SeedBrokers(s.brokers)}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range emitTurns {
		e.StartTurn(turnOf(i), emit.Turn{Session: "session", Principal: ledger.Principal{TenantID: tenantOf(i), UserID: "user-4711", ActorKind: "user"}})
		for n := range emitPerTurn {
			e.RecordToolSelectionDecision(t.Context(), emit.Site{TurnKey: turnOf(i), Model: "m-1"}, map[string]int{"life": life, "n": n})
		}
		e.EndTurn(turnOf(i))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return began
}

// ledger returns the archive as it is now, as a ledger.
func (s *stream) ledger(t *testing.T, o archived.Options) (*archived.Ledger, error) {
	t.Helper()
	dir, err := archive.OpenDir(s.archive().Dir)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { dir.Close() })
	a, err := export.Open(t.Context(), dir, export.Options{})
	if err != nil {
		return nil, err
	}
	return archived.New(a, o), nil
}

// awaitLedger waits until the archive has so many calls, of three tenants.
func (s *stream) awaitLedger(t *testing.T, want int) (l *archived.Ledger) {
	t.Helper()
	sender, err := archived.NewSender("", kgo.SeedBrokers(s.brokers))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	s.await(t, func() (err error) {
		if l, err = s.ledger(t, archived.Options{MaxAge: -1, Send: sender.Send}); err != nil {
			return err
		}
		n := 0
		for i := range 3 {
			for chunk, err := range l.Range(t.Context(), tenantOf(i), ledger.Range{}) {
				if err != nil {
					return err
				}
				n += len(chunk)
			}
		}
		if n != want {
			return fmt.Errorf("%d calls are archived, of %d", n, want)
		}
		return nil
	})
	return l
}

// await calls try until it returns nil.
func (s *stream) await(t *testing.T, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// deleteOne orders a deletion, twice, and returns its id.
func (s *stream) deleteOne(t *testing.T, l *archived.Ledger, tenant string, victim *ledger.Record) string {
	t.Helper()
	first, err := l.SoftDelete(t.Context(), tenant, victim.RecordID, ledger.Request{Reason: "erasure request", RequestRef: "R-1", By: "dpo"})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.SoftDelete(t.Context(), tenant, victim.RecordID, ledger.Request{Reason: "again"}); err != nil || again != first {
		t.Errorf("%v, %v, want %v", again, err, first)
	}
	return first.ID
}

// awaitSentinel waits until sentinel has no error.
func (s *stream) awaitSentinel(t *testing.T, tenant string, victim *ledger.Record, gated bool) (id string) {
	t.Helper()
	s.await(t, func() (err error) {
		id, err = s.sentinel(t, tenant, victim, gated)
		return err
	})
	return id
}

// sentinel requires that a record is shown without its content, by an order that is
// not carried out yet (gated) or is, and returns the order's id.
func (s *stream) sentinel(t *testing.T, tenant string, victim *ledger.Record, gated bool) (id string, err error) {
	t.Helper()
	l, err := s.ledger(t, archived.Options{})
	if err != nil {
		return "", err
	}
	records, err := l.Turn(t.Context(), tenant, victim.SessionID, victim.TurnID)
	if err != nil {
		return "", err
	}
	for _, r := range records {
		sentinel, deleted := r.Redaction()
		switch {
		case r.RecordID != victim.RecordID && deleted:
			t.Fatalf("%s is deleted too", r.RecordID)
		case r.RecordID != victim.RecordID:
		case !deleted || (len(r.Gated) > 0) != gated:
			return "", fmt.Errorf("%s: deleted %t, gated by %v", r.RecordID, deleted, r.Gated)
		case r.ToolSelection != nil || r.Ran.Model != "m-1" || r.SeqWithinTurn != victim.SeqWithinTurn:
			t.Fatalf("what is left of it: %s", r.AppendJSON(nil))
		default:
			id = sentinel.ID
		}
	}
	return id, nil
}

// requireUnbroken requires that the logs of a tenant are linked, deletions or not,
// and that no record of theirs was rejected.
func (s *stream) requireUnbroken(t *testing.T, tenant string) {
	t.Helper()
	l, err := s.ledger(t, archived.Options{})
	if err != nil {
		t.Fatal(err)
	}
	logs, err := l.Logs(t.Context(), tenant)
	if err != nil || len(logs) != 2 { // its calls, and its orders
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for _, log := range logs {
		records, initial, err := l.Log(t.Context(), tenant, log.Line, 0, 10_000)
		evidence, err2 := l.Evidence(t.Context(), tenant, log.Line)
		if err != nil || err2 != nil || len(records) == 0 {
			t.Fatalf("%v, %v", err, err2)
		}
		if b := evidence.VerifySequence(records, initial); b != nil {
			t.Errorf("broken: %+v", b)
		}
		for _, r := range records {
			if r.Row.Kind.S == audit.KindRejected {
				t.Errorf("rejected: %s", r.AppendJSON(nil))
			}
		}
	}
}

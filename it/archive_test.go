//go:build it

package it

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// Everything that was sent is there, once, and says what was sent; and an
// auditor finds that without us.
func TestArchive(t *testing.T) {
	onBothPairs(t, func(t *testing.T, p *pair) {
		s := p.newStream(t, "archive")
		// However slow the machine is, no batch grows so large that a partition
		// has too few segments to tamper with.
		ingest := s.ingest(t, "--batch.grow-rows", "500")
		sent := s.send(t, records(), 0)()
		s.finish(t, ingest)
		s.requireAll(t, sent)
		s.requireReaders(t)
		readme(t, s.archive())
		tamper(t, s.archive())
	})
}

// finish waits until ingest has archived all, and ends it by SIGTERM.
func (s *stream) finish(t *testing.T, ingest *parts.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	alive := func() error {
		if !ingest.Running() {
			return fmt.Errorf("ingest ended by itself: %s", tail(ingest.Output()))
		}
		return nil
	}
	if err := s.group.WaitDrained(ctx, alive, s.topic); err != nil {
		t.Fatal(err)
	}
	code, err := ingest.Stop(30 * time.Second)
	if err != nil || code != 0 {
		t.Fatalf("ingest: exit %d after SIGTERM, %v", code, err)
	}
}

// requireAll requires that the archive verifies and holds what was sent.
func (s *stream) requireAll(t *testing.T, sent *truth) {
	t.Helper()
	s.requireProved(t, sent)
	got := s.tally(t)
	if got.sent != sent.sent || got.rows != sent.rows || got.rejects != sent.rejects || got.repeats != sent.repeats {
		t.Errorf("sent %d: %d rows + %d rejects + %d repeats; archived %d: %d rows + %d rejects + %d duplicates",
			sent.sent, sent.rows, sent.rejects, sent.repeats, got.sent, got.rows, got.rejects, got.repeats)
	}
	if !maps.Equal(got.reasons, sent.reasons) {
		t.Errorf("rejects %v, want %v", got.reasons, sent.reasons)
	}
	for tenant, want := range sent.tenants {
		if got.tenants[tenant] != want {
			t.Errorf("tenant %s: %+v, want %+v", tenant, got.tenants[tenant], want)
		}
	}
	if len(got.tenants) != len(sent.tenants) {
		t.Errorf("%d tenants, want %d", len(got.tenants), len(sent.tenants))
	}
}

// requireProved requires that verify is content, and counts what was sent.
func (s *stream) requireProved(t *testing.T, sent *truth) {
	t.Helper()
	v, err := oracle.Verify(s.url(), s.env, "--json")
	if err != nil {
		t.Fatal(err)
	}
	if v.Code != oracle.Proved {
		t.Errorf("verify: exit %d: %s%s", v.Code, v.Stdout, v.Stderr)
	}
	report, err := v.Report()
	if err != nil {
		t.Fatal(err)
	}
	got := report.Totals
	if got.Rows != sent.rows+sent.rejects || got.Duplicates != sent.repeats || got.Made != 0 || len(got.Gaps) != 0 {
		t.Errorf("verify counts %+v, sent %d rows, %d rejects, %d repeats", got, sent.rows, sent.rejects, sent.repeats)
	}
	if !maps.Equal(got.Rejects, sent.reasons) {
		t.Errorf("verify counts rejects %v, sent %v", got.Rejects, sent.reasons)
	}
}

// tally counts what the archive holds, in the same terms as what was sent. It
// fails the test if an offset is two rows.
func (s *stream) tally(t *testing.T) *truth {
	t.Helper()
	rows, err := s.archive().Query(`with r as materialized (
			select tenant_id, topic, topic_id, partition, kafka_offset, kind, input_tokens, output_tokens, context->>'reason' as reason from {rows})
		select 'row', tenant_id, count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) from r where kind <> 'rejected' group by tenant_id
		union all select 'reject', reason, count(*), 0, 0 from r where kind = 'rejected' group by reason
		union all select 'twice', min(topic), count(*), 0, 0 from r group by topic, topic_id, partition, kafka_offset having count(*) > 1
		order by all`)
	if err != nil {
		t.Fatal(err)
	}
	got := newTruth()
	for _, row := range rows {
		name, n := row[1].(string), number(row[2])
		switch row[0] {
		case "row":
			got.rows += n
			got.tenants[name] = sums{n, number(row[3]), number(row[4])}
		case "reject":
			got.rejects += n
			got.reasons[name] = n
		default:
			t.Errorf("an offset of %s is %d rows", name, n)
		}
	}
	segments, err := s.archive().Segments()
	if err != nil {
		t.Fatal(err)
	}
	for _, segment := range segments {
		got.repeats += int64(len(segment.Duplicates))
	}
	got.sent = got.rows + got.rejects + got.repeats
	return got
}

// requireReaders requires that others can read the whole archive, and find
// the same hashes.
func (s *stream) requireReaders(t *testing.T) {
	t.Helper()
	rows, files, err := s.archive().ReadWithPyArrow()
	if err != nil {
		t.Fatal(err)
	}
	hashed, err := s.archive().CheckChain()
	if err != nil {
		t.Error(err)
	}
	if hashed != rows || rows == 0 {
		t.Errorf("pyarrow reads %d rows, the hashes of %d are right", rows, hashed)
	}
	t.Logf("%d rows in %d segments", rows, files)
}

// A process can be killed between any two instructions. What is archived must
// be as if it had not been.
func TestKills(t *testing.T) {
	const kills = 20
	onBothPairs(t, func(t *testing.T, p *pair) {
		s := p.newStream(t, "kills")
		rng := seeded(t)
		sent := s.send(t, records(), records()/40)
		progress := 0
		for range kills {
			before := s.segments(t)
			ingest := s.ingest(t)
			time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second)))) // the moment is what is tested
			if err := ingest.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			ingest.Kill()
			if err := s.group.Evict(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.segments(t) > before {
				progress++
			}
		}
		if progress < kills/4 {
			t.Errorf("only %d of %d runs wrote anything: the kills came too early to matter", progress, kills)
		}
		ingest := s.ingest(t)
		want := sent()
		s.finish(t, ingest)
		s.requireAll(t, want)
	})
}

// segments returns how many segments lie on the disk.
func (s *stream) segments(t *testing.T) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.archive().Dir, "log", "*", "*", "*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// seeded returns a source of randomness whose seed is printed, and can be set
// by IT_SEED.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("IT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("IT_SEED: %v", err)
		}
	}
	t.Logf("IT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Brokers and stores are restarted in the middle of the work. Ingest waits,
// and goes on.
//
// The broker is restarted once all is acknowledged, and ingest is not done: a
// producer whose broker dies between a write and its reply may write again, and
// what it wrote twice is two records.
func TestRestarts(t *testing.T) {
	onBothPairs(t, func(t *testing.T, p *pair) {
		s := p.newStream(t, "restarts")
		ingest := s.ingest(t, "--batch.strict") // so slow that there is work left
		sent := s.send(t, records()/2, 0)
		time.Sleep(time.Second)
		if err := s.restartStore(); err != nil {
			t.Fatal(err)
		}
		want := sent()
		for _, again := range []func() error{s.restartBroker, s.restartStore} {
			if err := again(); err != nil {
				t.Fatal(err)
			}
		}
		s.finish(t, ingest)
		s.requireAll(t, want)
	})
}

func number(cell any) int64 {
	n, err := strconv.ParseInt(cell.(string), 10, 64)
	if err != nil {
		panic(err) // a column of integers
	}
	return n
}

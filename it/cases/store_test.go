//go:build it

package cases

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// watch compares the group's offset with what is stored, all the time until
// the returned func is called: no commit may pass the store.
func (s *stage) watch(topic string) (end func()) {
	s.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	polls := 0
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			at, err := s.group.Committed(s.Context(), topic)
			if err != nil {
				continue // the broker is busy
			}
			polls++
			if committed := at[topic+"/0"]; committed > s.stored(topic) {
				s.Errorf("the group has committed %d, and only %d is stored", committed, s.stored(topic))
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-done
		if polls == 0 {
			s.Error("the group's offset was never seen")
		}
	})
}

// An error of the store is no verdict on a record, whatever it is. While it
// refuses one topic's segment, nothing of that topic moves, and everything of
// another does.
func TestARefusedSegment(t *testing.T) {
	const other = "audit.other"
	for _, fault := range []faults3.Fault{
		faults3.Denied(), faults3.Expired(), faults3.Status(401, "Unauthorized"), faults3.Status(403, "InvalidAccessKeyId"),
		faults3.Status(404, "NoSuchBucket"), faults3.Status(409, "OperationAborted"), faults3.Status(400, "InvalidRequest"),
	} {
		t.Run(fault.Name, func(t *testing.T) {
			s := newStage(t, faults3.Options{}, topic, other)
			s.store.Add(faults3.Rule{Op: faults3.Put, Key: "log/" + topic + "/", Skip: 1, Times: faults3.Always, Fault: fault})
			s.start("--batch.rows", "32", "--batch.strict")
			end := s.watch(topic)
			s.produce(topic, "acme", calls("acme", 0, 96)...)
			s.until("five refusals", func() bool { return s.store.Fired() >= 5 })
			s.produce(other, "globex", calls("globex", 0, 10)...)
			s.drain(other)
			if stored := s.stored(topic); stored >= 96 {
				t.Errorf("%d rows are stored past a refusal", stored)
			}
			if log := s.ingest.Output(); !strings.Contains(log, `"level":"warn"`) && !strings.Contains(log, `"level":"error"`) {
				t.Error("no alarm was raised")
			}
			s.store.Clear()
			s.drain()
			end()
			s.stop()
			a := s.check(oracle.Proved)
			s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows} where topic = '`+topic+`'`, []any{"96", "96"})
			s.wantRows(a, `select count(*) from (select kafka_offset - lag(kafka_offset) over (order by seq) as step
				from {rows} where topic = '`+topic+`') where step <> 1`, []any{"0"})
		})
	}
}

// A PUT that took effect and whose reply was lost comes back as "exists". The
// writer must know its own bytes again.
func TestLostReplies(t *testing.T) {
	for name, rule := range map[string]faults3.Rule{
		"segments":    {Op: faults3.Put, Key: ".parquet", Times: 2, Fault: faults3.LostReply()},
		"the root":    {Op: faults3.Put, Key: "ledgerlake.json", Fault: faults3.LostReply()},
		"anything":    {Op: faults3.Put, Skip: 1, Times: 3, Fault: faults3.LostReply()},
		"requests":    {Op: faults3.Put, Key: ".parquet", Times: 3, Fault: faults3.Lost()},
		"reads too":   {Skip: 2, Times: 6, Fault: faults3.LostReply()},
		"the third":   {Op: faults3.Put, Key: ".parquet", Skip: 2, Fault: faults3.LostReply()},
		"every other": {Op: faults3.Put, Key: ".parquet", Every: 2, Times: faults3.Always, Fault: faults3.LostReply()},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, faults3.Options{}, topic)
			s.store.Add(rule)
			s.start("--batch.rows", "10", "--batch.strict")
			end := s.watch(topic)
			s.produce(topic, "acme", calls("acme", 0, 40)...)
			s.drain()
			end()
			s.stop()
			a := s.check(oracle.Proved)
			s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"40", "40"})
			if s.store.Fired() == 0 {
				t.Error("the fault never fired")
			}
			s.wantRows(a, `select count(*) from (select list(kafka_offset order by seq) as offsets from read_parquet('{glob}', filename=true)
				group by filename) group by offsets having count(*) > 1`)
		})
	}
}

// Stores do not agree on checksums. Each kind works with one setting; and with
// the wrong one ingest does not start, and says which would be right.
func TestChecksumSettings(t *testing.T) {
	for _, c := range []struct {
		name  string
		store faults3.Options
		wrong string // "" where every setting works
	}{
		{"welcome", faults3.Options{}, ""},
		{"required", faults3.Options{Checksums: faults3.Require}, "none"},
		{"refused", faults3.Options{Checksums: faults3.Refuse}, "sha256"},
		{"over TLS", faults3.Options{TLS: true}, ""},
		{"chunks refused over TLS", faults3.Options{TLS: true, RefuseChunked: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, c.store, topic)
			s.produce(topic, "acme", calls("acme", 0, 40)...)
			var args []string
			if c.wrong != "" {
				args = []string{"--s3.checksum", s.advice("checksum", "--s3.checksum", c.wrong)}
			}
			a := s.settle(oracle.Proved, args...)
			s.wantRows(a, `select count(*) from {rows}`, []any{"40"})
		})
	}
}

// advice requires that ingest ends by itself, not well, before it writes
// anything, and returns the value that it advises for a setting.
func (s *stage) advice(setting string, args ...string) string {
	s.Helper()
	s.start(args...)
	code, err := s.ingest.Wait(30 * time.Second)
	s.must(err)
	if n := len(s.store.Keys("log/")); code == 0 || n > 0 {
		s.Fatalf("ingest %v: exit %d, %d segments written", args, code, n)
	}
	found := regexp.MustCompile(setting+`=(\S+?)[\s,;]`).FindAllStringSubmatch(s.ingest.Output(), -1)
	if found == nil {
		s.Fatalf("ingest %v does not name %s: %s", args, setting, s.ingest.Output())
	}
	return found[len(found)-1][1]
}

// A bit that flips on the way from the store must show, whatever checksums the
// store keeps.
func TestBitsThatFlipOnTheWay(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme", calls("acme", 0, 40)...)
	s.settle(oracle.Proved, "--batch.rows", "10", "--batch.strict")
	for _, n := range []int{0, 60, 1000, 5000} {
		s.store.Add(faults3.Rule{Op: faults3.Get, Key: "00000000000000000001.parquet", Times: faults3.Always, Fault: faults3.Flip(n)})
		s.verify(oracle.Tampered)
		s.store.Clear()
	}
	for _, fault := range []faults3.Fault{faults3.Short(2000), faults3.Truncate(2000)} {
		s.store.Add(faults3.Rule{Op: faults3.Get, Key: "00000000000000000001.parquet", Times: faults3.Always, Fault: fault})
		v, err := oracle.Verify(s.bucket(), s.env)
		s.must(err)
		if v.Code == oracle.Proved {
			t.Errorf("verify is content with a %s", fault.Name)
		}
		s.store.Clear()
	}
	s.verify(oracle.Proved)
}

// A store that asks to be spared for longer than any budget of retries gets
// what it asks for, and loses nothing.
func TestSlowDown(t *testing.T) {
	last := 15 * time.Second
	if os.Getenv("IT_LONG") != "" {
		last = 90 * time.Second
	}
	s := newStage(t, faults3.Options{}, topic)
	s.start()
	s.produce(topic, "acme", calls("acme", 0, 10)...)
	s.drain()
	s.store.Add(faults3.Rule{Op: faults3.Put, Times: faults3.Always, Fault: faults3.SlowDown()})
	end := s.watch(topic)
	begin := time.Now()
	for i := range 39 { // records keep coming
		s.produce(topic, "acme", calls("acme", 10+10*i, 10)...)
		time.Sleep(time.Until(begin.Add(last * time.Duration(i+1) / 39)))
		s.must(s.alive())
	}
	if n, most := s.store.Fired(), int(5*time.Since(begin).Seconds()); n < 3 || n > most {
		t.Errorf("%d tries in %v, want 3 to %d", n, last, most)
	} else {
		t.Logf("%d tries in %v", n, last)
	}
	s.store.Clear()
	wellAgain := time.Now()
	s.drain()
	if took := time.Since(wellAgain); took > time.Minute {
		t.Errorf("took %v to go on", took)
	}
	end()
	s.stop()
	a := s.check(oracle.Proved)
	s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"400", "400"})
}

// So does one that fails in any other way, if for a shorter while.
func TestAStoreThatIsAwayForAWhile(t *testing.T) {
	for _, fault := range []faults3.Fault{
		faults3.Status(500, "InternalError"), faults3.Status(429, "TooManyRequests"), faults3.Status(400, "RequestTimeout"),
		faults3.Status(503, "ServiceUnavailable"), faults3.Full(), faults3.Lost(), faults3.Torn(), faults3.LostReply(),
	} {
		t.Run(fault.Name, func(t *testing.T) {
			s := newStage(t, faults3.Options{}, topic)
			s.start()
			s.produce(topic, "acme", calls("acme", 0, 10)...)
			s.drain()
			s.store.Add(faults3.Rule{Times: faults3.Always, Fault: fault}) // reads as well
			end := s.watch(topic)
			begin := time.Now()
			for i := range 20 {
				s.produce(topic, "acme", calls("acme", 10+10*i, 10)...)
				time.Sleep(time.Until(begin.Add(2 * time.Second * time.Duration(i+1) / 20)))
				s.must(s.alive())
			}
			if n := s.store.Fired(); n < 2 || n > 40 {
				t.Errorf("%d tries in 2 s, want 2 to 40", n)
			}
			s.store.Clear()
			s.drain()
			end()
			s.stop()
			a := s.check(oracle.Proved)
			s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"210", "210"})
		})
	}
}

// A bit that flips on the way to ingest, as it reads where a line stands, is
// seen too. Flipped once, it is read again. Flipped for ever, nothing is built
// on it: the partition stops with an alarm, and goes on when it is started over
// a store that is well.
func TestBitsThatFlipUnderIngest(t *testing.T) {
	for name, n := range map[string]int{"in the rows": 1000, "in the magic": 0} {
		for often, times := range map[string]int{"once": 1, "for ever": faults3.Always} {
			t.Run(name+", "+often, func(t *testing.T) {
				s := newStage(t, faults3.Options{}, topic)
				s.produce(topic, "acme", calls("acme", 0, 40)...)
				s.run("--batch.rows", "10", "--batch.strict")
				keys := s.store.Keys("log/")
				s.store.Add(faults3.Rule{Op: faults3.Get, Key: keys[len(keys)-1], Times: times, Fault: faults3.Flip(n)})
				s.produce(topic, "acme", calls("acme", 40, 10)...)
				s.start()
				if times == faults3.Always {
					s.untilStopped()
					if got := s.store.Keys("log/"); !slices.Equal(got, keys) {
						t.Errorf("segments %q were written on a segment that cannot be read", got[len(keys):])
					}
					if code, err := s.ingest.Stop(30 * time.Second); code != 1 || err != nil {
						t.Errorf("exit %d, %v; want 1: a partition had stopped", code, err)
					}
					s.store.Clear()
					s.start()
				}
				s.drain()
				s.stop()
				a := s.check(oracle.Proved)
				s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"50", "50"})
			})
		}
	}
}

// untilStopped waits until ingest has given up a partition, with an alarm.
func (s *stage) untilStopped() {
	s.Helper()
	for end := time.Now().Add(60 * time.Second); !strings.Contains(s.ingest.Output(), "partition stopped"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) || !s.ingest.Running() {
			s.Fatalf("no partition has stopped: %s", tail(s.ingest.Output()))
		}
	}
}

// A store that is away when ingest starts is no verdict either.
func TestAStoreThatIsAwayAtTheStart(t *testing.T) {
	for name, fault := range map[string]faults3.Fault{"slow down": faults3.SlowDown(), "no answer": faults3.Lost()} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, faults3.Options{}, topic)
			s.produce(topic, "acme", calls("acme", 0, 40)...)
			s.store.Add(faults3.Rule{Times: faults3.Always, Fault: fault})
			s.start()
			begin := time.Now()
			s.until("ten refusals", func() bool { return s.store.Fired() >= 10 })
			if rate := 10 / time.Since(begin).Seconds(); rate > 20 {
				t.Errorf("%.0f tries a second", rate)
			}
			s.store.Clear()
			s.drain()
			s.stop()
			a := s.check(oracle.Proved)
			s.wantRows(a, `select count(*) from {rows}`, []any{"40"})
		})
	}
}

// A listing comes in pages. Whoever reads one of them sees part of an archive.
func TestListingsOverPages(t *testing.T) {
	rows := map[int]int{1: 32, 2: 32, 26: 32} // a segment; 26 is a page of all but one
	if os.Getenv("IT_LONG") != "" {
		rows[1000] = 1 // what S3 gives
	}
	for page, rows := range rows {
		t.Run(fmt.Sprint(page), func(t *testing.T) {
			s := newStage(t, faults3.Options{PageSize: page}, topic)
			s.produce(topic, "acme", calls("acme", 0, 800)...)
			s.settle(oracle.Proved, "--batch.rows", fmt.Sprint(rows), "--batch.strict")
			s.produce(topic, "acme", calls("acme", 800, 400)...)
			a := s.settle(oracle.Proved, "--batch.rows", fmt.Sprint(rows), "--batch.strict")
			if n := len(s.store.Keys("log/")); n <= page {
				t.Fatalf("%d segments, too few for the test", n)
			}
			s.wantRows(a, `select count(*), count(distinct kafka_offset), max(seq) from {rows}`, []any{"1200", "1200", "1199"})
			if v := s.verify(oracle.Proved); !strings.Contains(v.Stdout, "1200") && !strings.Contains(v.Stdout, "1,200") {
				t.Errorf("verify does not say that it saw %d rows: %s", 1200, v.Stdout)
			}
		})
	}
}

package pipeline_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

func encodeID(id kadm.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

func wantKinds(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("fates of the offsets:\n got %q\nwant %q", got, want)
	}
}

// Every offset has one of three fates, whatever its record is. Each line below
// is one record and its fate.
func TestEveryOffsetHasOneFate(t *testing.T) {
	table := []struct{ value, fate string }{
		{call("s", 0, ""), "call"},
		{"", "rejected:empty_value"},
		{`{"tenantId":`, "rejected:invalid_json"},
		{call("s", 1, ""), "call"},
		{call("s", 0, ""), "duplicate"},
		{call("s", 1, `,"family":"other"`), "rejected:conflict"},
		{call("s", 1, `,"family":"other"`), "rejected:conflict"},
		{strings.Replace(call("s", 2, ""), `"sessionId":"s",`, "", 1), "rejected:missing_field"},
		{call("s", 2, ""), "call"},
	}
	inWorld(t, 1, func(w *world) {
		var want []string
		for _, row := range table {
			w.produce(0, row.value)
			want = append(want, row.fate)
		}
		r := w.ingest()
		time.Sleep(3 * time.Second)
		if got := w.committed("ledgerlake", 0); got != int64(len(table)) {
			t.Errorf("committed offset %d, want %d", got, len(table))
		}
		r.wantCleanStop()
		wantKinds(t, w.check(0).kinds(), want...)
	})
}

// A batch closes at 32 rows, 50 ms after its first row, or at the end of a
// turn; while a PUT is in flight the next one grows.
func TestBatchRule(t *testing.T) {
	endOfTurn := strings.Replace(call("s", 500, ""), "tool-loop", "post-turn", 1)
	t.Run("age", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			r := w.ingest()
			time.Sleep(time.Second)
			start := time.Now()
			w.produce(0, calls("s", 0, 3)...)
			w.waitSegments(1)
			if took := time.Since(start); took < 50*time.Millisecond || took > 150*time.Millisecond {
				t.Errorf("3 rows were durable after %v, want 50 ms and a fetch", took)
			}
			r.wantCleanStop()
		})
	})
	t.Run("end of turn", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			r := w.ingest(func(s *pipeline.Settings) { s.Batch.Age = time.Hour })
			time.Sleep(time.Second)
			w.produce(0, calls("s", 0, 2)...)
			time.Sleep(time.Minute)
			if n := len(w.ledger(0).segments); n != 0 {
				t.Fatalf("%d segments before the end of the turn", n)
			}
			w.produce(0, endOfTurn)
			w.waitSegments(1)
			r.wantCleanStop()
		})
	})
	t.Run("rows and growth", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			w.produce(0, calls("s", 0, 32+400)...)
			w.bucket.set(func(op, key string) error {
				if op == "create" {
					time.Sleep(time.Second) // so long is a PUT in flight
				}
				return nil
			}, nil)
			r := w.ingest()
			time.Sleep(5 * time.Second)
			r.wantCleanStop()
			var rows []int
			for _, s := range w.check(0).segments {
				rows = append(rows, len(s.Rows))
			}
			if len(rows) != 2 || rows[0] != 32 || rows[1] != 400 {
				t.Errorf("segments of %v rows, want 32 and then what came meanwhile", rows)
			}
		})
	})
	t.Run("strict", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			w.produce(0, calls("s", 0, 100)...)
			r := w.ingest(func(s *pipeline.Settings) { s.Batch.Strict = true })
			time.Sleep(5 * time.Second)
			r.wantCleanStop()
			for _, s := range w.check(0).segments {
				if len(s.Rows) > 32 {
					t.Errorf("segment %d has %d rows", s.Ordinal, len(s.Rows))
				}
			}
		})
	})
	t.Run("nothing but repeats", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			w.produce(0, calls("s", 0, 2)...)
			r := w.ingest()
			w.waitSegments(1)
			w.produce(0, calls("s", 0, 2)...)
			time.Sleep(9 * time.Second)
			if n := len(w.ledger(0).segments); n != 1 {
				t.Errorf("%d segments after 9 s, want 1: repeats need not hurry", n)
			}
			w.waitSegments(2)
			r.wantCleanStop()
			wantKinds(t, w.check(0).kinds(), "call", "call", "duplicate", "duplicate")
		})
	})
}

// waitSegments waits until a partition has so many segments.
func (w *world) waitSegments(n int) {
	w.t.Helper()
	for range 6000 {
		synctest.Wait()
		if objects := w.memoryKeys("log/"); len(objects) >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatalf("no %d segments after a minute", n)
}

func (w *world) memoryKeys(prefix string) []string {
	w.t.Helper()
	var keys []string
	for o, err := range w.memory.List(context.Background(), prefix, "") {
		if err != nil {
			w.t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

// What Kafka does not deliver is a gap with a cause: control records of a
// transaction, aborted records, and offsets that compaction took.
func TestOffsetsThatKafkaSkipsAreGaps(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.produce(0, calls("s", 0, 2)...)
		w.transaction(kgo.TryAbort, call("x", 90, ""), call("x", 91, ""))
		w.transaction(kgo.TryCommit, call("s", 2, ""))
		r := w.ingest()
		w.waitSegments(1)
		time.Sleep(15 * time.Second) // the last marker comes without a row
		if got := w.committed("ledgerlake", 0); got != 7 {
			t.Errorf("committed offset %d, want 7: behind the last marker", got)
		}
		r.wantCleanStop()
		wantKinds(t, w.check(0).kinds(), "call", "call", "compacted", "compacted", "control", "call", "control")
	})
}

func (w *world) transaction(end kgo.TransactionEndTry, values ...string) {
	w.t.Helper()
	c := w.dial(kgo.TransactionalID("t"), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer c.Close()
	if err := c.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	for _, v := range values {
		if err := c.ProduceSync(context.Background(), &kgo.Record{Value: []byte(v)}).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := c.EndTransaction(context.Background(), end); err != nil {
		w.t.Fatal(err)
	}
}

// The bucket says where a partition goes on, whatever the group says.
func TestGroupOffsetIsAHint(t *testing.T) {
	for _, stale := range []int64{0, 2, 10, 1000} {
		t.Run(fmt.Sprint(stale), func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.produce(0, calls("s", 0, 10)...)
				r := w.ingest()
				w.waitSegments(1)
				r.wantCleanStop()
				w.setCommitted("ledgerlake", stale)
				w.produce(0, calls("s", 10, 5)...)
				r = w.ingest()
				time.Sleep(5 * time.Second)
				r.wantCleanStop()
				if got := w.committed("ledgerlake", 0); got != 15 {
					t.Errorf("committed offset %d, want 15", got)
				}
				wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 15)...)
			})
		})
	}
}

func (w *world) setCommitted(group string, offset int64) {
	w.t.Helper()
	var o kadm.Offsets
	o.AddOffset(topic, 0, offset, -1)
	if err := kadm.NewClient(w.client).CommitAllOffsets(context.Background(), group, o); err != nil {
		w.t.Fatal(err)
	}
}

// What Kafka deleted before it was archived is a gap row and an alarm, found at
// a start and found while running; reading goes on at the log start.
func TestLostStretchIsAGapRow(t *testing.T) {
	deleteBefore := func(w *world, offset int64) {
		var o kadm.Offsets
		o.AddOffset(topic, 0, offset, -1)
		if _, err := kadm.NewClient(w.client).DeleteRecords(context.Background(), o); err != nil {
			w.t.Fatal(err)
		}
	}
	want := slices.Concat(slices.Repeat([]string{"call"}, 10), slices.Repeat([]string{"lost"}, 10), slices.Repeat([]string{"call"}, 5))
	t.Run("at a start", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			w.produce(0, calls("s", 0, 10)...)
			r := w.ingest()
			w.waitSegments(1)
			r.wantCleanStop()
			w.produce(0, calls("s", 10, 15)...)
			deleteBefore(w, 20)
			r = w.ingest()
			time.Sleep(5 * time.Second)
			r.wantCleanStop()
			if !slices.Equal(r.gaps, [][2]int64{{10, 20}}) {
				t.Errorf("alarms for gaps %v, want 10 to 20", r.gaps)
			}
			l := w.check(0)
			wantKinds(t, l.kinds(), want...)
			wantKinds(t, l.made, "gap")
		})
	})
	t.Run("at the first start of all", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			w.produce(0, calls("s", 0, 10)...)
			deleteBefore(w, 4)
			r := w.ingest()
			w.waitSegments(1)
			r.wantCleanStop()
			l := w.check(0)
			if len(l.made) != 0 || l.segments[0].FirstOffset != 4 {
				t.Errorf("made %v, first offset %d; want no gap row, a line that begins at 4", l.made, l.segments[0].FirstOffset)
			}
		})
	})
}

// Two processes in two groups read one partition: they make one line, each row
// once, and the slower adopts what the faster wrote.
func TestTwoWritersMakeOneLine(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		a := w.ingest(func(s *pipeline.Settings) { s.Group = "a" })
		b := w.ingest(func(s *pipeline.Settings) { s.Group, s.Rand = "b", newSeeded(2) })
		time.Sleep(time.Second)
		for i := range 20 {
			w.produce(0, calls("s", 10*i, 10)...)
			time.Sleep(70 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		a.wantCleanStop()
		b.wantCleanStop()
		wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 200)...)
		if a.adopted+b.adopted == 0 {
			t.Error("neither adopted a segment of the other: the test shows nothing")
		}
	})
}

// A repeat is known after a restart too: the window is rebuilt from the bucket.
func TestRepeatAfterRestart(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.produce(0, calls("s", 0, 3)...)
		r := w.ingest()
		w.waitSegments(1)
		r.wantCleanStop()
		w.produce(0, call("s", 1, ""), call("s", 2, `,"family":"other"`), call("s", 1, ""))
		r = w.ingest()
		time.Sleep(12 * time.Second)
		r.wantCleanStop()
		wantKinds(t, w.check(0).kinds(), "call", "call", "call", "duplicate", "rejected:conflict", "duplicate")
	})
}

// A clean stop makes durable what was read, although the store is slow, and
// commits it.
func TestCleanStopFlushes(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		r := w.ingest(func(s *pipeline.Settings) { s.Batch.Age = time.Hour })
		time.Sleep(time.Second)
		w.bucket.set(func(op, key string) error { time.Sleep(2 * time.Second); return nil }, nil)
		w.produce(0, calls("s", 0, 5)...)
		time.Sleep(200 * time.Millisecond)
		r.wantCleanStop()
		wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 5)...)
		if got := w.committed("ledgerlake", 0); got != 5 {
			t.Errorf("committed offset %d, want 5", got)
		}
	})
}

// A store that is away at a clean stop does not hold the process up, and loses
// nothing: the next one reads again.
func TestStopWithoutAStore(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		r := w.ingest()
		time.Sleep(time.Second)
		w.bucket.set(func(op, key string) error { return errors.New("503") }, nil)
		w.produce(0, calls("s", 0, 5)...)
		time.Sleep(time.Second)
		start := time.Now()
		r.wantCleanStop()
		if took := time.Since(start); took > 21*time.Second {
			t.Errorf("stop took %v, want at most the timeout of 20 s", took)
		}
		w.bucket.set(nil, nil)
		r = w.ingest()
		time.Sleep(5 * time.Second)
		r.wantCleanStop()
		wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 5)...)
	})
}

// In the steady state a segment is one PUT, and nothing else is asked of the
// store: but for a look at the catalog behind the first.
func TestOnePutASegment(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		r := w.ingest()
		time.Sleep(time.Second)
		w.bucket.mu.Lock()
		w.bucket.calls = nil
		w.bucket.mu.Unlock()
		for i := range 10 {
			w.produce(0, calls("s", 40*i, 40)...)
			time.Sleep(200 * time.Millisecond)
		}
		w.bucket.mu.Lock()
		got := slices.Clone(w.bucket.calls)
		w.bucket.mu.Unlock()
		segments := w.memoryKeys("log/")
		r.wantCleanStop()
		var want []string
		for _, k := range segments {
			want = append(want, "create "+k)
		}
		want = slices.Insert(want, 1, "list "+archive.CatalogPrefix(w.lineOf(0)))
		if !slices.Equal(got, want) {
			t.Errorf("calls of the store:\n got %q\nwant %q", got, want)
		}
	})
}

// A slow store stops the fetching: what is held stays within the budget and one
// fetch of each broker.
func TestFetchingWaitsForMemory(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		big := `,"pluginPayloads":[{"pluginId":"p","subKind":"k","data":"` + strings.Repeat("x", 100_000) + `"}]`
		for i := range 200 {
			w.produce(0, call("s", i, big))
		}
		block := true
		w.bucket.set(func(op, key string) error {
			for block && op == "create" && strings.HasPrefix(key, "log/") {
				time.Sleep(time.Second)
			}
			return nil
		}, nil)
		r := w.ingest(func(s *pipeline.Settings) { s.Memory = 2 << 20 })
		time.Sleep(time.Minute)
		block = false
		time.Sleep(time.Minute)
		r.wantCleanStop()
		l := w.check(0)
		wantKinds(t, l.kinds(), slices.Repeat([]string{"call"}, 200)...)
		for _, s := range l.segments {
			if len(s.Rows) > 2*(2<<20+8<<20)/100_000 {
				t.Errorf("segment %d has %d rows: more was held than the budget and a fetch", s.Ordinal, len(s.Rows))
			}
		}
	})
}

// A newest segment that cannot be read stops its own partition, with an alarm;
// the others start and go on. Once it is back, nothing is missing.
func TestADamagedLineStopsAlone(t *testing.T) {
	for name, damage := range map[string]error{"damaged": archive.ErrDamaged, "broken": archive.ErrBreaks} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				w.produce(0, calls("s", 0, 3)...)
				w.produce(1, calls("z", 0, 3)...)
				r := w.ingest()
				w.waitSegments(2)
				r.wantCleanStop()
				w.produce(0, calls("s", 3, 3)...)
				w.produce(1, calls("z", 3, 3)...)
				w.bucket.set(nil, func(op, key string) error {
					if op == "get" && strings.Contains(key, "/00001/") {
						return damage
					}
					return nil
				})
				r = w.ingest()
				time.Sleep(5 * time.Second)
				if err := r.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || len(r.stopped) != 1 || !errors.Is(r.stopped[0], damage) {
					t.Errorf("stop: %v, alarms %v", err, r.stopped)
				}
				wantKinds(t, w.check(0).kinds(), slices.Repeat([]string{"call"}, 6)...)
				wantKinds(t, w.check(1).kinds(), slices.Repeat([]string{"call"}, 3)...)
				w.bucket.set(nil, nil)
				r = w.ingest()
				time.Sleep(5 * time.Second)
				r.wantCleanStop()
				wantKinds(t, w.check(1).kinds(), slices.Repeat([]string{"call"}, 6)...)
			})
		})
	}
}

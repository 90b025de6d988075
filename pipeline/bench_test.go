package pipeline

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/redact"
)

// BenchmarkPartition is the way of a record from fetched to durable, without
// Kafka and with a store in memory: decode, dedupe, stamp, encode, commit. A
// row is one generated record of some 1.3 KB. It reports rows per CPU second of
// the process, garbage collection included.
func BenchmarkPartition(b *testing.B) {
	for _, rows := range []int{32, 5000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) { benchPartition(b, rows) })
	}
}

func benchPartition(b *testing.B, rows int, more ...func(*Settings)) {
	records := benchRecords(50_000)
	b.ReportAllocs()
	b.ResetTimer()
	start := cpu()
	var size int64
	for done := 0; done < b.N; {
		n := min(len(records), b.N-done)
		size += benchRun(b, records[:n], rows, more...)
		done += n
	}
	b.ReportMetric(float64(b.N)/(cpu()-start).Seconds(), "rows/cpu-s")
	b.ReportMetric(float64(size)/float64(b.N), "wireB/row")
}

// BenchmarkScrubbed is the same way with a usual policy of scrubbing, which finds
// nothing in most records, beside that without one.
func BenchmarkScrubbed(b *testing.B) {
	policy, err := redact.ParsePolicy([]byte("name: pii-us\nrules:\n- rule: ssn-us\n- rule: luhn\n- {rule: us-dl, states: [CA, NY, TX]}\n" +
		"- {rule: keyed-regex, name: email, key: '.*e-?mail', pattern: '[^@ ]+@[^@ ]+'}\n"))
	if err != nil {
		b.Fatal(err)
	}
	for name, p := range map[string]*redact.Policy{"with": policy, "without": nil} {
		b.Run(name, func(b *testing.B) {
			benchPartition(b, 5000, func(s *Settings) { s.Scrub = p })
		})
	}
}

// benchRun archives records as one partition, in segments of rows rows.
func benchRun(b testing.TB, records []*kgo.Record, rows int, more ...func(*Settings)) (size int64) {
	b.Helper()
	s := Settings{Archive: archive.NewMemory(), Root: archive.Root{ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ01"}, Batch: Batch{Rows: rows, Age: time.Hour, Strict: true}}.withDefaults()
	for _, m := range more {
		m(&s)
	}
	sh := newShared(s, Events{})
	st := archive.NewState(sh.Root.ArchiveID, archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A"})
	st.NextOffset = 0
	p := newPartition(context.Background(), sh, nil, st, newWindow(), nil)
	p.gate = gate{open: func() {}, close: func() {}}
	for _, r := range records {
		sh.budget.take(cost(r))
		p.mail.push(mail{record: r})
		size += int64(len(r.Value))
	}
	go func() { p.finish(context.Background(), true) }()
	if err := p.run(); err != nil {
		b.Fatal(err)
	}
	if got := p.state.NextOffset; got != int64(len(records)) {
		b.Fatalf("archived up to offset %d, want %d", got, len(records))
	}
	return size
}

// BenchmarkAnchors is the same way at full load with signed anchors, one for each
// 100,000 rows, of lines with few and with many tenants. What anchors cost of it
// says a profile: make bench-anchors.
func BenchmarkAnchors(b *testing.B) {
	for _, tenants := range []int{64, 1000} {
		b.Run(fmt.Sprint(tenants, " tenants"), func(b *testing.B) {
			records := recordsOf(200_000, tenants)
			key := benchKey(b)
			b.ResetTimer()
			start := cpu()
			for done := 0; done < b.N; {
				n := min(len(records), b.N-done)
				benchRun(b, records[:n], 5000, func(s *Settings) { s.Signers = func(time.Time) []note.Signer { return []note.Signer{key} } })
				done += n
			}
			b.ReportMetric(float64(b.N)/(cpu()-start).Seconds(), "rows/cpu-s")
		})
	}
}

func benchKey(b *testing.B) *sign.Signer {
	b.Helper()
	skey, _, err := sign.Generate(rand.Reader, "bench")
	if err != nil {
		b.Fatal(err)
	}
	key, err := sign.NewSigner(skey)
	if err != nil {
		b.Fatal(err)
	}
	return key
}

func benchRecords(n int) []*kgo.Record { return recordsOf(n, 50) }

func recordsOf(n, tenants int) []*kgo.Record {
	g := workload.New(1, tenants)
	records := make([]*kgo.Record, n)
	for i := range records {
		w := g.Next()
		for bytes.Contains(w.Value, []byte(`"post-turn"`)) { // it would close the batch
			w = g.Next()
		}
		r := &kgo.Record{Topic: "audit.calls", Offset: int64(i), Key: w.Key, Value: w.Value, Timestamp: w.Time}
		for _, h := range w.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		records[i] = r
	}
	return records
}

// cpu returns the CPU time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A row costs few allocations on its whole way, from fetched to the store: 3 in
// large segments, some 12 where 32 rows share those of a segment.
func TestAllocationsOfARow(t *testing.T) {
	records := benchRecords(4000)
	for rows, bound := range map[int]float64{32: 25, 2000: 10} {
		benchRun(t, records, rows) // pools fill
		perRow := testing.AllocsPerRun(2, func() { benchRun(t, records, rows) }) / float64(len(records))
		if perRow > bound {
			t.Errorf("%.1f allocations a row in segments of %d rows, want at most %.0f", perRow, rows, bound)
		}
		t.Logf("%.1f allocations a row in segments of %d rows", perRow, rows)
	}
}

package redact_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/workload"
)

// usual is a policy as most are.
const usual = `
name: pii-us
rules:
  - rule: ssn-us
  - rule: luhn
  - rule: us-dl
    states: [CA, NY, TX]
  - rule: keyed-regex
    name: email
    key: .*e-?mail
    pattern: '[^@\s]+@[^@\s]+'
`

// decoded returns records as a decoder gives them to be scrubbed, and the bytes of
// their slots.
func decoded(n int) (records []audit.Record, size int64) {
	g, d := workload.New(1, 50), audit.Decoder{RetainPrompts: func(string) bool { return true }}
	for len(records) < n {
		w := g.Next()
		m := &audit.Message{Topic: "t", Key: w.Key, Value: w.Value, Timestamp: w.Time}
		for _, h := range w.Headers {
			m.Headers = append(m.Headers, audit.MessageHeader{Name: h.Name, Value: h.Value})
		}
		var r audit.Record
		if d.Decode(&r, m) == nil {
			records = append(records, r)
			for _, s := range r.Slots {
				size += int64(len(s))
			}
		}
	}
	return records, size
}

// BenchmarkScrub is one generated record, in which nothing is found, under a usual
// policy.
func BenchmarkScrub(b *testing.B) {
	p := parse(b, usual)
	records, size := decoded(1000)
	b.SetBytes(size / int64(len(records)))
	b.ReportAllocs()
	b.ResetTimer()
	start := cpu()
	for i := range b.N {
		if err := p.Scrub(&records[i%len(records)]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkScrubFinds is a record with a number to find.
func BenchmarkScrubFinds(b *testing.B) {
	p := parse(b, usual)
	b.ReportAllocs()
	for b.Loop() {
		r := audit.Record{Kind: audit.Str(audit.KindCall), RedactionPolicy: audit.Str(audit.PolicyNone)}
		r.Slots[audit.SlotExt] = []byte(`{"note":"my number is 123-45-6789, please","email":"dana@example.com"}`)
		if err := p.Scrub(&r); err != nil {
			b.Fatal(err)
		}
	}
}

// A record in which nothing is found costs no allocation, with escapes, keys and
// characters beyond ASCII too.
func TestScrubDoesNotAllocate(t *testing.T) {
	p := parse(t, usual)
	records, _ := decoded(200)
	more := audit.Record{Kind: audit.Str(audit.KindCall), RedactionPolicy: audit.Str(audit.PolicyNone)}
	more.Slots[audit.SlotExt] = []byte(`{"note":"é\n １２３ 45 678 9012345678 licence","email":"none","x.e-mail":["\u0041"],"t":"[redacted:x] 123 456 789 012"}`)
	records = append(records, more)
	scrubAll := func() {
		for i := range records {
			if err := p.Scrub(&records[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	scrubAll() // pools fill
	if n := testing.AllocsPerRun(20, scrubAll) / float64(len(records)); n > 0.01 {
		t.Errorf("%.2f allocations a record", n)
	}
}

// cpu returns the CPU time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package pipeline_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/redact"
)

// Policies that find a social security number, a card, both, or nothing.
var (
	findsSSN  = "name: a\nrules: [{rule: ssn-us}]"
	findsCard = "name: b\nrules: [{rule: luhn}]"
	findsBoth = "name: c\nrules: [{rule: ssn-us}, {rule: luhn}]"
)

func scrubbedBy(t *testing.T, text string) func(*pipeline.Settings) {
	t.Helper()
	if text == "" {
		return func(*pipeline.Settings) {}
	}
	p, err := redact.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return func(s *pipeline.Settings) { s.Scrub = p }
}

const (
	ssn  = "123-45-6789"
	card = "4111111111111111"
	pii  = `,"note":"` + ssn + ` pays with ` + card + `"`
)

// holds reports whether a row has a text anywhere in its slots.
func holds(r *audit.Record, text string) bool {
	return slices.ContainsFunc(r.Slots[:], func(slot []byte) bool { return bytes.Contains(slot, []byte(text)) })
}

// What a policy finds is in no slot of any row: not of a good record, not in the
// bytes of a reject, not in its key and headers, not of a conflict. Each row of a
// good record states the policy, and the segment does. The dead-letter topic has
// the bytes as they came, and says so. Verify takes all of it.
func TestNothingUnscrubbedIsStored(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		if err := w.kafka.CreateTopic("dead", 1, nil); err != nil {
			t.Fatal(err)
		}
		policy := scrubbedBy(w.t, findsBoth)
		r := w.ingest(policy, func(s *pipeline.Settings) { s.DLQTopic = "dead" })
		w.produce(0, call("s", 0, pii), call("s", 0, pii+`,"family":"other"`), `{"broken":"`+ssn+`,`+card, call("s", 1, ""))
		w.produceAsIs(&kgo.Record{Topic: topic, Key: []byte("acme"), Value: []byte(`[]`), Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte("acme")}, {Key: "h", Value: []byte(card)}}})
		w.waitCommitted(0, 5)
		time.Sleep(time.Second)
		r.wantCleanStop()
		l := w.check(0)
		wantKinds(t, l.kinds(), "call", "rejected:conflict", "rejected:invalid_json", "call", "rejected:wrong_type")
		var s pipeline.Settings
		policy(&s)
		for _, o := range l.segments {
			if o.Writer.Policy != s.Scrub.ID() {
				t.Errorf("segment %d states policy %q", o.Ordinal, o.Writer.Policy)
			}
			for i := range o.Rows {
				r := &o.Rows[i].Record
				if holds(r, ssn) || holds(r, card) {
					t.Errorf("offset %d: unscrubbed", r.KafkaOffset.N)
				}
				if want := audit.Str(s.Scrub.ID()); r.Kind.S == audit.KindCall && r.RedactionPolicy != want {
					t.Errorf("offset %d: redaction_policy is %v", r.KafkaOffset.N, r.RedactionPolicy)
				}
			}
		}
		if first := &l.segments[0].Rows[0].Record; !holds(first, "[redacted:ssn-us] pays with [redacted:luhn]") {
			t.Errorf("ext is %s", first.Slots[audit.SlotExt])
		}
		dead := w.topicRecords("dead")
		if len(dead) != 3 || !bytes.Contains(dead[1].Value, []byte(ssn)) {
			w.t.Fatalf("%d dead letters", len(dead))
		}
		for _, d := range dead {
			if !slices.ContainsFunc(d.Headers, func(h kgo.RecordHeader) bool {
				return h.Key == "ledgerlake-unscrubbed" && string(h.Value) == s.Scrub.ID()
			}) {
				t.Error("a dead letter does not say that it is not scrubbed")
			}
		}
	})
}

// A repeat of a row that another policy scrubbed, more or less or otherwise, is a
// repeat: a difference that only the change of policy makes is no conflict. What
// differs beside that is one. The rows are looked at once, not for each repeat.
func TestAChangeOfPolicyMakesNoConflict(t *testing.T) {
	for _, c := range [][2]string{
		{"", findsBoth}, {findsBoth, ""}, {findsSSN, findsCard}, {findsCard, findsBoth}, {findsBoth, findsSSN}, {findsBoth, findsBoth}, {"", ""},
	} {
		inWorld(t, 1, func(w *world) {
			w.archivedWith(scrubbedBy(w.t, c[0]), []string{call("s", 0, pii), call("s", 1, pii), call("s", 2, "")})
			w.produce(0, call("s", 0, pii), call("s", 1, pii+`,"family":"other"`), call("s", 2, `,"note":"x"`), call("s", 0, pii), call("s", 3, pii))
			r := w.tether().ingest(2, scrubbedBy(w.t, c[1]))
			w.waitCommitted(0, 8)
			before := w.reads()
			w.produce(0, slices.Repeat([]string{call("s", 0, pii), call("s", 2, "")}, 20)...)
			w.waitCommitted(0, 48)
			if n := w.reads() - before; n > 0 {
				t.Errorf("%q: 40 repeats took %d reads", c, n)
			}
			r.wantCleanStop()
			want := []string{"call", "call", "call", "duplicate", "rejected:conflict", "rejected:conflict", "duplicate", "call"}
			wantKinds(t, w.check(0).kinds(), append(want, slices.Repeat([]string{"duplicate"}, 40)...)...)
		})
	}
}

// reads returns how often segments were read.
func (w *world) reads() (n int) {
	w.bucket.mu.Lock()
	defer w.bucket.mu.Unlock()
	for _, c := range w.bucket.calls {
		if strings.HasPrefix(c, "get log/") {
			n++
		}
	}
	return n
}

// Two writers of the new policy agree on what repeats rows of the old one: each
// compares what the other wrote with Kafka, by the same rule.
func TestWritersAgreeAfterAChangeOfPolicy(t *testing.T) {
	for _, c := range [][2]string{{findsBoth, findsSSN}, {"", findsBoth}, {findsBoth, ""}} {
		inWorld(t, 1, func(w *world) {
			key := newKey(w.t, "anchors")
			signed, changed := signedBy(w.t, key), scrubbedBy(w.t, c[1])
			old := scrubbedBy(w.t, c[0])
			var first, again []string
			for n := range 100 {
				first = append(first, call("s", n, pii))
			}
			w.archivedWith(func(s *pipeline.Settings) { signed(s); old(s) }, first)
			a := w.ingest(signed, changed, func(s *pipeline.Settings) { s.Group = "a" })
			b := w.ingest(signed, changed, func(s *pipeline.Settings) { s.Group, s.Rand = "b", newSeeded(2) })
			time.Sleep(time.Second)
			for n := range 20 {
				again = slices.Clone(first[5*n : 5*n+4])
				again = append(again, call("s", 5*n+4, pii+`,"family":"other"`), call("s", 100+n, pii))
				w.produce(0, again...)
				time.Sleep(70 * time.Millisecond)
			}
			time.Sleep(15 * time.Second)
			a.wantCleanStop()
			b.wantCleanStop()
			want := slices.Repeat([]string{"call"}, 100)
			for range 20 {
				want = append(want, "duplicate", "duplicate", "duplicate", "duplicate", "rejected:conflict", "call")
			}
			wantKinds(t, w.check(0).kinds(), want...)
			if a.adopted+b.adopted == 0 || len(a.stopped)+len(b.stopped) > 0 {
				t.Errorf("%q: %d adopted, alarms %v %v", c, a.adopted+b.adopted, a.stopped, b.stopped)
			}
		})
	}
}

// So it is where compaction has taken the row meanwhile: the data file is read,
// and once for a run of repeats.
func TestAChangeOfPolicyMakesNoConflictWithCompactedRows(t *testing.T) {
	for _, c := range [][2]string{{findsBoth, findsSSN}, {findsSSN, ""}, {"", findsBoth}} {
		inWorld(t, 1, func(w *world) {
			old := []string{call("s", 0, pii), call("s", 1, pii), call("s", 2, "")}
			w.archivedWith(scrubbedBy(w.t, c[0]), old)
			time.Sleep(2 * time.Minute)
			w.compact(compaction{watermark: 1})
			a := w.tether().ingest(2, scrubbedBy(w.t, c[1]))
			w.produce(0, append(old, call("s", 1, pii+`,"family":"other"`), call("s", 2, `,"note":"x"`), call("s", 0, pii))...)
			w.waitCommitted(0, 9)
			before := w.dataReads()
			w.produce(0, slices.Repeat(old, 10)...)
			w.waitCommitted(0, 39)
			if n := w.dataReads() - before; n > 1 {
				t.Errorf("%q: 30 repeats took %d reads", c, n)
			}
			a.wantCleanStop()
			if want, rows := []string{"call", "call", "call", "rejected:conflict", "rejected:conflict"}, w.snapshotKinds(); !slices.Equal(rows, want) {
				t.Errorf("%q: rows are %q, want %q", c, rows, want)
			}
		})
	}
}

// dataReads returns how often data files were read.
func (w *world) dataReads() (n int) {
	w.bucket.mu.Lock()
	defer w.bucket.mu.Unlock()
	for _, c := range w.bucket.calls {
		if strings.HasPrefix(c, "get data/") {
			n++
		}
	}
	return n
}

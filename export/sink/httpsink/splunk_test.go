package httpsink

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/httpsink/siemtest"
)

func splunkAt(t *testing.T, h *siemtest.HEC, change func(*SplunkOptions)) *Splunk {
	t.Helper()
	h.Token = aToken
	o := SplunkOptions{HTTP: at(serve(t, h)), Token: aToken, Index: "audit", Source: "s", Sourcetype: "ledgerlake:audit", AckEvery: time.Millisecond, AckWithin: 10 * time.Second}
	o.Compression = Gzip
	if change != nil {
		change(&o)
	}
	s, err := NewSplunk(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// badAt is content of 200 rows, some of which the collector refuses.
func badAt(at ...int) func(int) string {
	return func(i int) string {
		if slices.Contains(at, i) {
			return "HEC-BAD"
		}
		return plain(i)
	}
}

// However a collector fails in part, every event is there in the end, or the one
// that it refuses is a dead letter, and no other; case G04.
func TestSplunkPartialFailures(t *testing.T) {
	const n = 200
	for _, c := range []struct {
		name    string
		hec     *siemtest.HEC
		bad     []int
		repeats int // at most
		tries   int // at most; 0: as many as it takes
	}{
		{"takes all", &siemtest.HEC{}, nil, 0, 1},
		{"one is bad", &siemtest.HEC{Bad: "HEC-BAD"}, []int{75}, 0, 2},
		{"one is bad, those in front are kept", &siemtest.HEC{Bad: "HEC-BAD", KeepsBefore: true}, []int{75}, n, 2},
		{"one is bad, counted from 1", &siemtest.HEC{Bad: "HEC-BAD", FromOne: true}, []int{75}, 1, 2},
		{"the first is bad", &siemtest.HEC{Bad: "HEC-BAD"}, []int{0}, 0, 2},
		{"the first is bad, counted from 1", &siemtest.HEC{Bad: "HEC-BAD", FromOne: true}, []int{0}, 1, 2},
		{"the last is bad", &siemtest.HEC{Bad: "HEC-BAD"}, []int{n - 1}, 0, 2},
		{"the last is bad, counted from 1", &siemtest.HEC{Bad: "HEC-BAD", FromOne: true}, []int{n - 1}, 0, 2},
		{"some are bad, side by side", &siemtest.HEC{Bad: "HEC-BAD"}, []int{3, 4, 5, 120}, 0, 0},
		{"some are bad, side by side, counted from 1", &siemtest.HEC{Bad: "HEC-BAD", FromOne: true}, []int{3, 4, 5, 120}, n, 0},
		{"some are bad, and it does not say which", &siemtest.HEC{Bad: "HEC-BAD", Anonymous: true}, []int{3, 4, 120}, 0, 0},
		{"it is mistaken about which is bad", &siemtest.HEC{Bad: "HEC-BAD", Off: 20}, []int{3, 75}, 100 * n, 0},
		{"it is mistaken the other way", &siemtest.HEC{Bad: "HEC-BAD", Off: -20}, []int{75}, 100 * n, 0},
		{"it names one that is not there", &siemtest.HEC{Bad: "HEC-BAD", Off: 1 << 40}, []int{75}, 0, 0},
		{"it names one below all", &siemtest.HEC{Bad: "HEC-BAD", Off: -1 << 40}, []int{75}, 0, 0},
		{"too large", &siemtest.HEC{MaxBytes: 64 << 10}, nil, 0, 0},
		{"busy in between", &siemtest.HEC{BusyEvery: 3, BusyAfter: 10}, nil, n, 0},
		{"replies are lost", &siemtest.HEC{LostEvery: 3}, nil, n, 0},
		{"all of it", &siemtest.HEC{Bad: "HEC-BAD", MaxBytes: 64 << 10, BusyEvery: 4, BusyAfter: 3, LostEvery: 3, KeepsBefore: true}, []int{75, 76}, 100 * n, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch := messages(t, event.JSON, n, badAt(c.bad...))
			course := pump(t, splunkAt(t, c.hec, nil), batch)
			repeats := requireTaken(t, course, batch, c.hec.Taken())
			var want []string
			for _, i := range c.bad {
				want = append(want, batch[i].Event.ID)
			}
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(course.dead)); !slices.Equal(got, want) || course.end != nil {
				t.Errorf("dead: %q, want %q; %+v", got, want, course.end)
			}
			requireOrder(t, batch, c.hec.Taken())
			if repeats > c.repeats || len(c.hec.Faults()) > 0 {
				t.Errorf("%d repeats, want %d at most; %q", repeats, c.repeats, c.hec.Faults())
			}
			if c.tries > 0 && course.attempts > c.tries {
				t.Errorf("%d attempts, want %d", course.attempts, c.tries)
			}
			for id, why := range course.dead {
				if !strings.Contains(why, "code 6") {
					t.Errorf("%s: %s", id, why)
				}
			}
		})
	}
}

// requireOrder requires that events came in the order of the batch, repeats aside.
func requireOrder(t *testing.T, batch []sink.Message, taken []string) {
	t.Helper()
	seen := map[string]bool{}
	var first []string
	for _, id := range taken {
		if !seen[id] {
			first = append(first, id)
		}
		seen[id] = true
	}
	want := slices.DeleteFunc(ids(batch), func(id string) bool { return !seen[id] })
	if !slices.Equal(first, want) {
		t.Error("the order is not that of the batch")
	}
}

// With acknowledgement an event is delivered once the indexers have it, and not
// before; what they lose is sent again.
func TestSplunkAcknowledgement(t *testing.T) {
	batch := messages(t, event.JSON, 50, plain)
	small := func(o *SplunkOptions) { o.Ack, o.RequestBytes = true, 10_000 }
	h := &siemtest.HEC{Ack: true, Polls: 3}
	c := pump(t, splunkAt(t, h, small), batch)
	if repeats := requireTaken(t, c, batch, h.Taken()); repeats > 0 || c.attempts != 1 || h.Requests() < 3 {
		t.Errorf("%d repeats, %d attempts, %d requests", repeats, c.attempts, h.Requests())
	}
	h = &siemtest.HEC{Ack: true, Bad: "HEC-BAD", MaxBytes: 20_000, LostEvery: 5, BusyEvery: 4, BusyAfter: 3}
	some := messages(t, event.JSON, 50, badAt(0, 30, 49))
	c = pump(t, splunkAt(t, h, small), some)
	if requireTaken(t, c, some, h.Taken()); len(c.dead) != 3 {
		t.Errorf("dead: %v", c.dead)
	}
	// What a busy collector says to have kept has nothing to be acknowledged by.
	h = &siemtest.HEC{Ack: true, BusyEvery: 3, BusyAfter: 5}
	c = pump(t, splunkAt(t, h, small), batch)
	requireTaken(t, c, batch, h.Taken())
	h = &siemtest.HEC{Ack: true, LoseAcks: true}
	s := splunkAt(t, h, func(o *SplunkOptions) { small(o); o.AckWithin = 30 * time.Millisecond })
	for _, v := range s.Deliver(t.Context(), batch).Verdicts {
		if v.Outcome != sink.Retry || v.Reason != "not acknowledged by the indexers in time" {
			t.Fatalf("%+v", v)
		}
	}
	if len(h.Taken()) > 0 {
		t.Error("it has what it lost")
	}
}

// Where acknowledgement is on at one end and off at the other, nothing counts, and
// the destination stops.
func TestSplunkAckMismatch(t *testing.T) {
	batch := messages(t, event.JSON, 3, plain)
	for _, on := range []bool{true, false} {
		s := splunkAt(t, &siemtest.HEC{Ack: !on}, func(o *SplunkOptions) { o.Ack = on })
		for _, v := range s.Deliver(t.Context(), batch).Verdicts {
			if v.Outcome != sink.Suspend {
				t.Errorf("%v: %+v", on, v)
			}
		}
	}
}

// What a collector says of how it is set up stops the destination; no event is to
// blame.
func TestSplunkSettingsSuspend(t *testing.T) {
	batch := messages(t, event.JSON, 3, plain)
	for _, code := range []int{7, 10, 11, 14, 16} {
		s := splunkAt(t, &siemtest.HEC{Code: code}, nil)
		for _, v := range s.Deliver(t.Context(), batch).Verdicts {
			if v.Outcome != sink.Suspend || !strings.Contains(v.Reason, fmt.Sprintf("code %d", code)) {
				t.Errorf("%d: %+v", code, v)
			}
		}
	}
	h := &siemtest.HEC{}
	s := splunkAt(t, h, nil)
	h.Token = "another"
	if v := s.Deliver(t.Context(), batch).Verdicts[0]; v.Outcome != sink.Suspend || !strings.Contains(v.Reason, "invalid token") {
		t.Errorf("%+v", v)
	}
}

// Whatever is in an event, it stays one event of the protocol, in each format.
func TestSplunkTakesEveryEvent(t *testing.T) {
	for _, f := range event.Formats {
		h := &siemtest.HEC{}
		var events []*event.Event
		seen := map[string]bool{}
		for _, ev := range eventtest.Events(3, 300) {
			if !seen[ev.ID] {
				events = append(events, ev)
			}
			seen[ev.ID] = true
		}
		batch := encoded(t, f, events)
		c := pump(t, splunkAt(t, h, nil), batch)
		if repeats := requireTaken(t, c, batch, h.Taken()); repeats > 0 || len(c.dead) > 0 || len(h.Faults()) > 0 {
			t.Errorf("%s: %d repeats, %d dead, %q", f, repeats, len(c.dead), h.Faults())
		}
	}
}

// A path of one's own is kept, and the question for acknowledgements goes to the
// same host.
func TestSplunkPaths(t *testing.T) {
	var paths []string
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		if strings.HasSuffix(r.URL.Path, "/ack") {
			fmt.Fprint(w, `{"acks":{"0":true}}`)
			return
		}
		fmt.Fprint(w, `{"text":"Success","code":0,"ackId":0}`)
	}))
	for _, path := range []string{"", "/", "/services/collector/event/1.0"} {
		s, err := NewSplunk(SplunkOptions{HTTP: at(url + path), Token: aToken, Ack: true, AckEvery: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Deliver(t.Context(), messages(t, event.JSON, 1, plain)); !r.Done() {
			t.Errorf("%+v", r)
		}
	}
	const events, ack = "/services/collector/event", "/services/collector/ack"
	if want := []string{events, ack, events, ack, events + "/1.0", ack}; !slices.Equal(paths, want) {
		t.Errorf("%q", paths)
	}
}

// A collector that is busy and names an event that it was not sent has taken none
// that is known.
func TestSplunkBusyAndBeyond(t *testing.T) {
	for number, want := range map[string]int{"-9": 0, "0": 0, "1": 0, "3": 2, "5": 4, "6": 0, "999999": 0} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprintf(w, `{"text":"Server is busy","code":9,"invalid-event-number":%s}`, number)
		}))
		s, err := NewSplunk(SplunkOptions{HTTP: at(url), Token: aToken})
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, v := range s.Deliver(t.Context(), messages(t, event.JSON, 5, plain)).Verdicts {
			if v.Outcome == sink.Delivered {
				got++
			} else if v.Outcome != sink.Retry {
				t.Errorf("%s: %+v", number, v)
			}
		}
		if got != want {
			t.Errorf("%s: %d of 5 count as taken, want %d", number, got, want)
		}
	}
}

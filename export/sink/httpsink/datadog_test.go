package httpsink

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/httpsink/siemtest"
)

func datadogAt(t *testing.T, d *siemtest.Datadog) *Datadog {
	t.Helper()
	d.Key = aToken
	o := DatadogOptions{HTTP: at(serve(t, d)), APIKey: aToken, Tags: "env:test"}
	o.Compression = Gzip
	s, err := NewDatadog(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// No payload and no log is larger than the intake takes whole, whatever is in
// them: what escapes make too large is split, and in the end a pointer.
func TestDatadogLimits(t *testing.T) {
	d := &siemtest.Datadog{}
	s := datadogAt(t, d)
	l := s.Limits()
	if l.Events > 1000 || l.BatchBytes > 5_000_000 || l.EventBytes > 1_000_000 {
		t.Errorf("%+v", l)
	}
	quotes := func(n int) func(int) string {
		return func(int) string { return strings.Repeat(`"`, n) }
	}
	// 40 of 60 KB, twice as much once more escaped.
	batch := messages(t, event.JSON, 60, quotes(30_000))
	if v := s.Deliver(t.Context(), batch).Verdicts[0]; v.Outcome != sink.Split {
		t.Fatalf("%+v", v)
	}
	c := pump(t, s, batch)
	if len(c.delivered) != 60 || len(d.Taken()) != 60 || len(d.Faults()) > 0 {
		t.Errorf("%d delivered, %d taken; %q", len(c.delivered), len(d.Taken()), d.Faults())
	}
	large := messages(t, event.JSON, 1, quotes(260_000))
	if v := s.Deliver(t.Context(), large).Verdicts[0]; v.Outcome != sink.Split || !strings.Contains(v.Reason, "1000000") {
		t.Errorf("%d bytes: %+v", len(large[0].Body), v)
	}
	if len(d.Taken()) != 60 || len(d.Faults()) > 0 {
		t.Errorf("it was sent all the same: %q", d.Faults())
	}
}

// One bad log is a dead letter, and those around it are there.
func TestDatadogFindsTheBadOne(t *testing.T) {
	d := &siemtest.Datadog{Bad: "HEC-BAD"}
	batch := messages(t, event.JSON, 100, badAt(40))
	c := pump(t, datadogAt(t, d), batch)
	if _, dead := c.dead[batch[40].Event.ID]; !dead || len(c.dead) != 1 || len(d.Taken()) != 99 {
		t.Errorf("dead: %v; %d taken", c.dead, len(d.Taken()))
	}
	for i, m := range batch {
		if slices.Contains(d.Taken(), string(m.Body)) == (i == 40) {
			t.Errorf("event %d", i)
		}
	}
}

// All of an event is its message, and its time is the log's where the intake takes
// that.
func TestDatadogLogs(t *testing.T) {
	d := &siemtest.Datadog{}
	batch := encoded(t, event.JSON, eventtest.Events(13, 300))
	if c := pump(t, datadogAt(t, d), batch); len(c.dead) > 0 || len(d.Faults()) > 0 {
		t.Errorf("%v, %q", c.dead, d.Faults())
	}
	taken := d.Taken()
	for i, m := range batch {
		if taken[i] != string(m.Body) {
			t.Errorf("event %d: %s", i, taken[i])
		}
	}
	s := datadogAt(t, d)
	for ago, has := range map[time.Duration]bool{0: true, 16 * time.Hour: true, 18 * time.Hour: false, 24 * 365 * time.Hour: false, -time.Minute: true, -24 * time.Hour: false} {
		ev := *record("acme", 0, "x")
		ev.Time = now.Add(-ago)
		b := string(s.appendLog(nil, &sink.Message{Event: &ev, Body: []byte("{}")}, now))
		if strings.Contains(b, `"timestamp"`) != has || !strings.Contains(b, `"ddtags":"env:test"`) {
			t.Errorf("%v ago: %s", ago, b)
		}
	}
}

// The intake is that of the site.
func TestDatadogSite(t *testing.T) {
	s, err := NewDatadog(DatadogOptions{HTTP: HTTP{Now: time.Now}, APIKey: aToken, Site: "us5.datadoghq.com"})
	if err != nil || s.url != "https://http-intake.logs.us5.datadoghq.com/api/v2/logs" {
		t.Errorf("%v, %v", s, err)
	}
}

package syslog

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// messages returns events in a format, those that are too large as pointers.
func messages(f event.Format, n, most int) []sink.Message {
	e, err := event.NewEncoder(f, event.EncoderOptions{ArchiveID: eventtest.ArchiveID, Version: "1.2.3"})
	if err != nil {
		panic(err)
	}
	var all []sink.Message
	for _, ev := range eventtest.Events(7, n) {
		for _, part := range ev.Split(10) {
			body, err := e.Append(nil, part)
			if err == nil && len(body) > most {
				part = part.Pointer()
				body, err = e.Append(nil, part)
			}
			if err != nil {
				panic(err)
			}
			if len(body) > most { // the reference of a request, at its longest
				continue
			}
			all = append(all, sink.Message{Event: part, Body: body})
		}
	}
	return all
}

func newSink(t testing.TB, o Options) *Sink {
	t.Helper()
	if o.Address == "" {
		o.Address = "localhost:6514"
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	return s
}

var messageForm = regexp.MustCompile(`(?s)^<([0-9]{1,3})>1 (-|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}Z) ([!-~]{1,255}) ([!-~]{1,48}) - ([!-~]{1,32}) (\[ledgerlake@32473(?: [a-zA-Z]+="(?:[^"\\\]]|\\["\\\]])*")*\]) (.*)$`)

// Whatever stands in a row, a message is what RFC 5424 says, of one element that
// only we can have written, and its MSG is the event as it was encoded.
func TestMessagesAreOfRFC5424(t *testing.T) {
	s := newSink(t, Options{})
	kinds := map[string]int{}
	for _, f := range event.Formats {
		for _, m := range messages(f, 1500, int(s.Limits().EventBytes)) {
			text := s.message(nil, &m)
			if len(text) > DefaultMessageBytes || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 || bytes.IndexByte(text, '\n') >= 0 {
				t.Fatalf("%s: %d bytes: %.300q", f, len(text), text)
			}
			part := messageForm.FindSubmatch(text)
			if part == nil {
				t.Fatalf("%s: %.600q", f, text)
			}
			pri, _ := strconv.Atoi(string(part[1]))
			if pri/8 != DefaultFacility || pri%8 < 3 || pri%8 > 6 {
				t.Errorf("priority %d", pri)
			}
			if !bytes.Equal(part[7], m.Body) {
				t.Fatalf("%s: MSG %.200q, want %.200q", f, part[7], m.Body)
			}
			kinds[string(part[5])]++
			requirePlace(t, string(part[6]), m.Event)
		}
	}
	if len(kinds) < 15 {
		t.Errorf("messages of %v alone", kinds)
	}
}

func requirePlace(t *testing.T, element string, ev *event.Event) {
	t.Helper()
	want := fmt.Sprintf(` id="%s"]`, ev.ID)
	if ev.IsRow() {
		want = fmt.Sprintf(` rowHash="%s"]`, ev.ID)
		if !strings.Contains(element, fmt.Sprintf(` seq="%d"`, ev.Seq)) {
			t.Errorf("no seq %d in %s", ev.Seq, element)
		}
	}
	if !strings.HasSuffix(element, want) {
		t.Errorf("%s, want%s", element, want)
	}
}

// The names of tenants and topics cannot leave their quotes, and a message that
// is too long for its place in full has seq and row hash.
func TestPlacesDoNotBreakMessages(t *testing.T) {
	s := newSink(t, Options{})
	m := messages(event.CEF, 100, 7680)[0]
	ev := *m.Event
	for _, tenant := range append(eventtest.Hostile, `a" seq="9`, `x]`, `\`, strings.Repeat("t", 8000)) {
		ev.Tenant = tenant
		m.Event = &ev
		part := messageForm.FindStringSubmatch(string(s.message(nil, &m)))
		if part == nil {
			t.Fatalf("tenant %.100q", tenant)
		}
		requirePlace(t, part[6], &ev)
	}
}

// Times that RFC 5424 has no form for are left out.
func TestTimesBeyondTheCalendar(t *testing.T) {
	s := newSink(t, Options{Hostname: "a b\x00é", AppName: strings.Repeat("n", 60), Facility: 16})
	m := messages(event.JSON, 1, 7680)[0]
	ev := *m.Event
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.UnixMicro(0), "1970-01-01T00:00:00.000000Z"},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), "9999-12-31T23:59:59.999999Z"},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "-"},
		{time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), "-"},
	} {
		ev.Time = c.at
		got := strings.SplitN(string(s.message(nil, &sink.Message{Event: &ev})), " ", 5)
		if got[1] != c.want || got[2] != "a_b___" || got[3] != strings.Repeat("n", 48) {
			t.Errorf("%v: %q", c.at, got)
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for want, o := range map[string]Options{
		"HOST:PORT":           {Address: "receiver"},
		"1024":                {Address: "a:1", MessageBytes: 100},
		"1 to 23":             {Address: "a:1", Facility: 24},
		"want close or open":  {Address: "a:1", Confirm: "maybe"},
		"enterprise number":   {Address: "a:1", Enterprise: "x]"},
		"no TLS":              {Address: "a:1", Plaintext: true, CA: "x"},
		"want certificates":   {Address: "a:1", CA: "x"},
		"certificate and key": {Address: "a:1", Cert: "x", Key: "secret"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

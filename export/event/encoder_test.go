package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
)

func encoder(t testing.TB, f event.Format) *event.Encoder {
	t.Helper()
	e, err := event.NewEncoder(f, event.EncoderOptions{ArchiveID: eventtest.ArchiveID, Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Whatever a row has, in every format its event is one line of UTF-8 that no
// reader of lines ends early, JSON where it is to be JSON, small where it is a
// pointer or a line of text, and in no format longer than its row allows.
func TestEveryEventIsOneLineInEveryFormat(t *testing.T) {
	events := eventtest.Events(1, 1200)
	for _, f := range event.Formats {
		e := encoder(t, f)
		for _, ev := range events {
			body, err := e.Append([]byte("before"), ev)
			if err != nil || !bytes.HasPrefix(body, []byte("before")) {
				t.Fatalf("%s: %v", f, err)
			}
			body = body[len("before"):]
			if why := wrong(e, ev, body); why != "" {
				t.Fatalf("%s of a %s: %s:\n%.2000q", f, ev.Kind, why, body)
			}
			if most := 16<<10 + 32*size(ev); len(body) > most {
				t.Fatalf("%s of a %s of %d bytes has %d, more than %d", f, ev.Kind, size(ev), len(body), most)
			}
		}
	}
}

// size returns the bytes of what an event says.
func size(ev *event.Event) (n int) {
	switch {
	case ev.Row != nil:
		for i := range audit.Header {
			if c := audit.Header[i]; c.Text != nil {
				n += len(c.Text(&ev.Row.Record).S)
			}
		}
		for _, slot := range ev.Row.Slots {
			n += len(slot)
		}
		n += len(ev.Row.UserID.S) + len(ev.Row.RequestedModel.S) + len(ev.Row.SelectedReason.S) + len(strings.Join(ev.Row.FallbackChain, ""))
	case ev.Erasure != nil:
		n = len(ev.Erasure.RequestRef) + 40*len(ev.Erasure.Ranges)
	case ev.Check != nil:
		n = len(ev.Check.Destination)
	}
	return n
}

// wrong says what is wrong with the text of an event, whatever it says.
func wrong(e *event.Encoder, ev *event.Event, body []byte) string {
	switch {
	case !utf8.Valid(body):
		return "no UTF-8"
	case bytes.ContainsAny(body, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029\x00"):
		return "more than one line"
	case !e.IsText() && !json.Valid(body):
		return "no JSON"
	case !e.IsText() && twice(body) != "":
		return "a member twice: " + twice(body)
	case e.IsText() && len(body) > event.MaxLine:
		return fmt.Sprintf("%d bytes", len(body))
	case ev.Kind == event.KindErasure && len(ev.Erasure.Ranges) <= 1 && len(body) > event.MaxPointer:
		return fmt.Sprintf("a notice of %d bytes", len(body))
	case ev.Kind == event.KindPointer && len(body) > event.MaxPointer:
		return fmt.Sprintf("a pointer of %d bytes", len(body))
	}
	return ""
}

// twice returns the name of a member that an object has twice, at any depth
// but within the record, which is a producer's.
func twice(body []byte) string {
	d := json.NewDecoder(bytes.NewReader(body))
	var walk func() string
	walk = func() string {
		token, err := d.Token()
		if err != nil || token != json.Delim('{') && token != json.Delim('[') {
			return ""
		}
		seen := map[any]bool{}
		for d.More() {
			if token == json.Delim('{') {
				name, _ := d.Token()
				if seen[name] {
					return name.(string)
				}
				seen[name] = true
				if name == "record" {
					_ = d.Decode(new(json.RawMessage))
					continue
				}
			}
			if found := walk(); found != "" {
				return found
			}
		}
		_, _ = d.Token()
		return ""
	}
	return walk()
}

// The ID of a row is its row_hash and the pointer's is the same; what is no row
// has an ID of its own that is the same each time.
func TestIDs(t *testing.T) {
	a, b := eventtest.Events(2, 600), eventtest.Events(2, 600)
	seen := map[string]event.Kind{}
	for i, ev := range a {
		if ev.ID != b[i].ID || len(ev.ID) != 64 {
			t.Fatalf("%q, then %q", ev.ID, b[i].ID)
		}
		if ev.IsRow() && (ev.ID != ev.Row.RowHash.String() || ev.Pointer().ID != ev.ID) {
			t.Errorf("%s of a row has ID %s", ev.Kind, ev.ID)
		}
		if k, ok := seen[ev.ID]; ok && ev.Kind != event.KindPointer && k != event.KindPointer && k != ev.Kind {
			t.Errorf("%s and %s have one ID", k, ev.Kind)
		}
		seen[ev.ID] = ev.Kind
	}
}

// Split says the same in more notices, none with more than it may have.
func TestSplitKeepsEveryRange(t *testing.T) {
	for _, ev := range eventtest.Events(3, 800) {
		if ev.Erasure == nil {
			if parts := ev.Split(1); len(parts) != 1 || parts[0] != ev {
				t.Fatalf("a %s was split", ev.Kind)
			}
			continue
		}
		var all [][2]int64
		ids := map[string]bool{}
		for _, part := range ev.Split(7) {
			if len(part.Erasure.Ranges) > 7 || part.Erasure.What != ev.Erasure.What || ids[part.ID] {
				t.Fatalf("%+v of %+v", part.Erasure, ev.Erasure)
			}
			ids[part.ID] = true
			all = append(all, part.Erasure.Ranges...)
		}
		if fmt.Sprint(all) != fmt.Sprint(ev.Erasure.Ranges) {
			t.Errorf("%v, want %v", all, ev.Erasure.Ranges)
		}
	}
}

// A notice of one range is small in every format, and one that was split by
// MaxRanges is whole in CEF and LEEF. One that was not says that it is cut.
func TestNoticesFit(t *testing.T) {
	var notices []*event.Event
	for _, ev := range eventtest.Events(4, 2000) {
		if ev.Erasure != nil {
			notices = append(notices, ev)
		}
	}
	last := *notices[0].Erasure
	last.Ranges = nil
	for i := range int64(500) {
		last.Ranges = append(last.Ranges, [2]int64{1<<62 + 10*i, 1<<62 + 10*i + 5})
	}
	notices = append(notices, event.NewErasure(eventtest.Line, "acme", last))
	for _, f := range event.Formats {
		e := encoder(t, f)
		for _, ev := range notices {
			for _, part := range ev.Split(1) {
				if body, _ := e.Append(nil, part); len(body) > event.MaxPointer {
					t.Fatalf("%s: %d bytes", f, len(body))
				}
			}
			for _, part := range ev.Split(e.MaxRanges()) {
				body, _ := e.Append(nil, part)
				if r := part.Erasure.Ranges; e.IsText() && len(r) > 0 && !strings.Contains(string(body), fmt.Sprintf("%d-%d", r[len(r)-1][0], r[len(r)-1][1])) {
					t.Fatalf("%s: the last of %d ranges is not in\n%s", f, len(r), body)
				}
			}
		}
		if body, _ := e.Append(nil, notices[len(notices)-1]); e.IsText() && !strings.Contains(string(body), "LedgerlakeExportCut=") {
			t.Errorf("%s: nothing says that it is cut: %s", f, body)
		}
	}
}

// A format that is not there is refused by name; so is an event that says
// nothing.
func TestRefusals(t *testing.T) {
	_, err := event.NewEncoder("xml", event.EncoderOptions{})
	if !errors.Is(err, event.ErrFormat) || !strings.Contains(err.Error(), "ocsf-1.8") {
		t.Error(err)
	}
	e := encoder(t, event.JSON)
	if body, err := e.Append([]byte("x"), &event.Event{Kind: event.KindRecord}); err == nil || string(body) != "x" {
		t.Errorf("%s, %v", body, err)
	}
}

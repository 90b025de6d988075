package httpsink

import (
	"net/http"
	"strings"
	"testing"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/httpsink/siemtest"
)

func otlpAt(t *testing.T, o *siemtest.OTLP, c Compression) *OTLP {
	t.Helper()
	h := at(serve(t, o))
	h.Compression, h.Version = c, "1.2.3"
	s, err := NewOTLP(OTLPOptions{HTTP: h, ArchiveID: eventtest.ArchiveID, Resource: map[string]string{"b": "2", "a": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A part that was refused is final, and as nobody says which it was, all of the
// request are dead letters, with how many were refused; nothing is sent again.
func TestOTLPPartialSuccess(t *testing.T) {
	batch := messages(t, event.JSON, 10, plain)
	bad := func(r *logs.LogRecord) bool {
		body := r.GetBody().GetStringValue()
		return strings.Contains(body, `"seq":3,`) || strings.Contains(body, `"seq":7,`)
	}
	o := &siemtest.OTLP{Rejects: bad}
	s := otlpAt(t, o, None)
	for i, v := range s.Deliver(t.Context(), batch).Verdicts {
		if v.Outcome != sink.Poison || !strings.Contains(v.Reason, "rejected 2 of the 10 log records") {
			t.Errorf("event %d: %+v", i, v)
		}
	}
	if len(o.Taken()) != 8 || o.Requests() != 1 {
		t.Errorf("%d taken by %d requests", len(o.Taken()), o.Requests())
	}
	// One alone is known to be meant.
	if v := s.Deliver(t.Context(), batch[3:4]).Verdicts[0]; v.Outcome != sink.Poison || strings.Contains(v.Reason, "does not say which") {
		t.Errorf("%+v", v)
	}
	if r := s.Deliver(t.Context(), batch[4:7]); !r.Done() {
		t.Errorf("%+v", r)
	}
	if s.Limits().Events >= 1000 {
		t.Error("one refusal would be as many dead letters as suspend a destination")
	}
}

// Each event is one log record with its id and all of its text, whatever is in it.
func TestOTLPTakesEveryEvent(t *testing.T) {
	for _, c := range []Compression{None, Gzip, Zstd} {
		o := &siemtest.OTLP{}
		batch := encoded(t, event.JSON, eventtest.Events(11, 300))
		s := otlpAt(t, o, c)
		if r := s.Deliver(t.Context(), batch); !r.Done() {
			t.Fatalf("%+v", r.Verdicts[0])
		}
		got := o.Taken()
		for i, id := range ids(batch) {
			if i >= len(got) || got[i] != id {
				t.Fatalf("event %d is not there", i)
			}
		}
		if len(got) != len(batch) || len(o.Faults()) > 0 {
			t.Errorf("%d of %d; %q", len(got), len(batch), o.Faults())
		}
	}
}

// The resource and the scope say what sends, and the body is the event or a line.
func TestOTLPRequest(t *testing.T) {
	s := otlpAt(t, &siemtest.OTLP{}, None)
	batch := messages(t, event.JSON, 1, plain)
	for _, line := range []bool{false, true} {
		s.o.Line = line
		body, err := s.body(batch)
		if err != nil {
			t.Fatal(err)
		}
		var data logs.LogsData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Fatal(err)
		}
		r := data.GetResourceLogs()[0]
		var attributes []string
		for _, a := range r.GetResource().GetAttributes() {
			attributes = append(attributes, a.GetKey()+"="+a.GetValue().GetStringValue())
		}
		if got := strings.Join(attributes, " "); got != "service.name=ledgerlake service.version=1.2.3 ledgerlake.archive_id="+eventtest.ArchiveID+" a=1 b=2" {
			t.Error(got)
		}
		scope := r.GetScopeLogs()[0]
		if scope.GetScope().GetName() != Scope || scope.GetScope().GetVersion() != "1.2.3" || scope.GetSchemaUrl() != event.SemConvSchema {
			t.Errorf("%v", scope.GetScope())
		}
		record := scope.GetLogRecords()[0]
		if got := record.GetBody().GetStringValue(); (got == string(batch[0].Body)) == line {
			t.Error(got)
		}
		if record.GetTimeUnixNano() != uint64(now.UnixNano()) || record.GetObservedTimeUnixNano() != uint64(now.UnixNano()) || record.GetEventName() != "ledgerlake.call" {
			t.Errorf("%v", record)
		}
	}
}

// An answer of another media type is none of a receiver of logs, whatever it holds.
func TestOTLPMediaType(t *testing.T) {
	for media, want := range map[string]sink.Outcome{"application/x-protobuf": sink.Delivered, "text/html": sink.Retry, "": sink.Retry} {
		s, err := NewOTLP(OTLPOptions{HTTP: at(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			_, _ = w.Write([]byte("\x0a\x00"))
		})))})
		if err != nil {
			t.Fatal(err)
		}
		if v := s.Deliver(t.Context(), messages(t, event.JSON, 1, plain)).Verdicts[0]; v.Outcome != want {
			t.Errorf("%q: %+v", media, v)
		}
	}
}

// An answer that is no ExportLogsServiceResponse is no delivery.
func TestOTLPAnswers(t *testing.T) {
	for body, want := range map[string]sink.Outcome{
		"": sink.Delivered, "\x0a\x00": sink.Delivered, "\x0a\x02\x08\x00": sink.Delivered, "\x0a\x04\x12\x02ok": sink.Delivered,
		"\x0a\x02\x08\x01": sink.Poison, "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": sink.Delivered, // -1: no number of records
		"\x0a\x05\x08": sink.Retry, "\x0a\x01\x08": sink.Retry, "ok": sink.Retry, "{}": sink.Retry, "\xff": sink.Retry,
	} {
		s, err := NewOTLP(OTLPOptions{HTTP: at(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf; charset=binary")
			_, _ = w.Write([]byte(body))
		})))})
		if err != nil {
			t.Fatal(err)
		}
		if v := s.Deliver(t.Context(), messages(t, event.JSON, 1, plain)).Verdicts[0]; v.Outcome != want {
			t.Errorf("%q: %+v, want %v", body, v, want)
		}
	}
}

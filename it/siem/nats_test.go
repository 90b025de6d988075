//go:build it

package siem

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/natssink"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// inStream returns all that a stream has, in its order.
func inStream(t *testing.T, url, name string) (all []jetstream.Msg) {
	t.Helper()
	_, js := natsClient(t, url)
	c, err := js.OrderedConsumer(t.Context(), name, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for n := stream.CachedInfo().State.Msgs; n > 0; n-- {
		m, err := c.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func natsClient(t *testing.T, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// What a nats-server acknowledged is in its stream after it was killed and started
// again, in order; what is sent again within its window is there once.
func TestNATSHasAllOfItAfterAKill(t *testing.T) {
	n, err := parts.StartNATS(filepath.Join(t.TempDir(), "nats"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	_, js := natsClient(t, n.URL())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, Duplicates: time.Hour}); err != nil {
		t.Fatal(err)
	}
	open := func() *natssink.Sink {
		s, err := natssink.New(natssink.Options{URLs: []string{n.URL()}, Plaintext: true, Stream: "AUDIT"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	events := someEvents(2000)
	sent := deliverAll(t, open(), event.JSON, events[:1000])
	n.Kill()
	s := open()
	if v := s.Deliver(t.Context(), []sink.Message{{Event: events[0], Body: []byte("{}")}}).Verdicts[0]; v.Outcome != sink.Retry {
		t.Errorf("nobody there: %v", v)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	sent = append(sent[:800], deliverAll(t, s, event.JSON, events[800:])...)
	got := inStream(t, n.URL(), "AUDIT")
	if len(got) != len(sent) {
		t.Fatalf("sent %d, found %d", len(sent), len(got))
	}
	for i, m := range got {
		ev := sent[i].ev
		if string(m.Data()) != string(sent[i].body) || m.Subject() != natssink.Subject("audit", ev) || m.Headers().Get("Nats-Msg-Id") != ev.ID {
			t.Fatalf("message %d: subject %q, %.200q, want %.200q", i, m.Subject(), m.Data(), sent[i].body)
		}
	}
}

// What NATS refuses has the outcome that its reason asks for.
func TestNATSRefusals(t *testing.T) {
	n, err := parts.StartNATS(filepath.Join(t.TempDir(), "nats"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	_, js := natsClient(t, n.URL())
	for _, c := range []jetstream.StreamConfig{
		{Name: "SMALL", Subjects: []string{"small.>"}, MaxMsgSize: 2000},
		{Name: "FULL", Subjects: []string{"full.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew},
		{Name: "OTHER", Subjects: []string{"other.>"}},
	} {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		prefix, stream string
		size           int
		want           sink.Outcome
		reason         string
	}{
		{"small", "", 1000, sink.Delivered, ""},
		{"small", "", 3000, sink.Split, "exceeds"},
		{"small", "", 2 << 20, sink.Split, "maximum payload"},
		{"full", "", 10, sink.Delivered, ""},
		{"full", "", 11, sink.Retry, "maximum messages"},
		{"other", "AUDIT", 10, sink.Suspend, "expected stream"},
		{"none", "", 10, sink.Suspend, "no stream takes"},
	} {
		s, err := natssink.New(natssink.Options{URLs: []string{n.URL()}, Plaintext: true, Prefix: c.prefix, Stream: c.stream, Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		events := eventtest.Events(uint64(c.size), 1)
		v := s.Deliver(context.Background(), []sink.Message{{Event: events[0], Body: make([]byte, c.size)}}).Verdicts[0]
		if v.Outcome != c.want || !strings.Contains(v.Reason, c.reason) {
			t.Errorf("%s, %d bytes: %v", c.prefix, c.size, v)
		}
		_ = s.Close(t.Context())
	}
}

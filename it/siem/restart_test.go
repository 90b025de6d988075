//go:build it

package siem

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/kafkasink"
	"github.com/ledgerlake/ledgerlake/export/sink/syslog"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// rowsAsJSON returns the rows of plain events as messages.
func rowsAsJSON(t *testing.T, n int) (all []sink.Message) {
	t.Helper()
	e, err := event.NewEncoder(event.JSON, event.EncoderOptions{ArchiveID: eventtest.ArchiveID})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range plainEvents(n) {
		body, err := e.Append(nil, ev.Pointer())
		if err != nil {
			t.Fatal(err)
		}
		if ev.IsRow() {
			all = append(all, sink.Message{Event: ev.Pointer(), Body: body})
		}
	}
	return all
}

// deliverThrough delivers messages in batches, each until all of it is delivered as
// an engine does, and has disturb called in the middle of one in three.
func deliverThrough(t *testing.T, s sink.Sink, all []sink.Message, disturb func()) (retries int) {
	t.Helper()
	n := 0
	for batch := range slices.Chunk(all, 100) {
		done := make(chan struct{})
		if n++; n%3 == 0 {
			go func() { defer close(done); disturb() }()
		} else {
			close(done)
		}
		for deadline := time.Now().Add(2 * time.Minute); len(batch) > 0; {
			r := s.Deliver(t.Context(), batch)
			i := slices.IndexFunc(r.Verdicts, func(v sink.Verdict) bool { return v.Outcome != sink.Delivered })
			if i < 0 {
				break
			}
			if v := r.Verdicts[i]; v.Outcome != sink.Retry || time.Now().After(deadline) {
				t.Fatalf("%v", v)
			}
			retries++
			batch = batch[i:]
		}
		<-done
	}
	return retries
}

// requireArrived requires that each message is among what arrived, by its row hash,
// and that first arrivals of a tenant are in its order.
func requireArrived(t *testing.T, sent []sink.Message, arrived []string) {
	t.Helper()
	first := map[string]int{}
	for i, id := range arrived {
		if _, ok := first[id]; !ok {
			first[id] = i
		}
	}
	last := map[string]int{}
	missing := 0
	for _, m := range sent {
		at, ok := first[m.Event.ID]
		if !ok {
			missing++
			continue
		}
		if before, ok := last[m.Event.Tenant]; ok && at < before {
			t.Fatalf("tenant %s: seq %d came before one that is older", m.Event.Tenant, m.Event.Seq)
		}
		last[m.Event.Tenant] = at
	}
	if missing > 0 {
		t.Errorf("%d of %d did not arrive", missing, len(sent))
	}
}

var rowHash = regexp.MustCompile(` rowHash="([0-9a-f]{64})"\]`)

// An rsyslog that is stopped or killed and started again, over and over, while
// batches are on their way, has all of them in the end, in order: it ends a
// connection only after what it read there is written.
func TestRsyslogThatRestartsHasAllOfIt(t *testing.T) {
	c := certificates(t)
	r, err := parts.StartRsyslog(filepath.Join(t.TempDir(), "rsyslog"), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	s, err := syslog.New(syslog.Options{
		Address: r.Addr, CA: mustRead(t, c.CA), Cert: mustRead(t, c.ClientCert), Key: mustRead(t, c.ClientKey), Timeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	all := rowsAsJSON(t, 3000)
	stops := 0
	retries := deliverThrough(t, s, all, func() {
		if stops++; stops%2 == 0 {
			r.Kill()
		} else if _, err := r.Messages(); err != nil {
			t.Error(err)
		}
		if err := r.Start(); err != nil {
			t.Error(err)
		}
	})
	got, err := r.Messages()
	if err != nil {
		t.Fatal(err)
	}
	var arrived []string
	for _, line := range got {
		for _, m := range rowHash.FindAllStringSubmatch(line, -1) { // a line that a kill cut short has another behind it
			arrived = append(arrived, m[1])
		}
	}
	t.Logf("%d messages, %d lines, %d attempts failed", len(all), len(got), retries)
	requireArrived(t, all, arrived)
}

// A broker of Kafka that is killed while batches are on their way has all of them
// in the end, and each partition has first arrivals in their order.
func TestKafkaThatIsKilledHasAllOfIt(t *testing.T) {
	k, connection := startKafka(t, map[string]map[string]*string{"audit": nil})
	s, err := kafkasink.New(kafkasink.Options{Connection: connection, Topic: "audit", Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	kills := 0
	all := rowsAsJSON(t, 1500)
	retries := deliverThrough(t, s, all, func() {
		if kills++; kills > 2 {
			return
		}
		k.Kill()
		if err := k.Start(); err != nil {
			t.Error(err)
		}
	})
	var arrived []string
	for _, r := range kcat(t, k.Addr, "audit") {
		arrived = append(arrived, r.header("row_hash"))
	}
	t.Logf("%d records, %d in the topic, %d attempts failed", len(all), len(arrived), retries)
	requireArrived(t, all, arrived)
}

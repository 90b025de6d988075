package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

var someMaster = bytes.Repeat([]byte("k"), 32)

func keyedBy(master []byte) func(*pipeline.Settings) {
	return func(s *pipeline.Settings) { s.KeyedTopics, s.MasterKey = []string{topic}, master }
}

// produceFor sends a record of a tenant.
func (w *world) produceFor(tenant string, n int) {
	w.t.Helper()
	value := strings.Replace(call("s-"+tenant, n, ""), `"tenantId":"acme"`, fmt.Sprintf(`"tenantId":%q`, tenant), 1)
	r := &kgo.Record{Key: []byte(tenant), Value: []byte(value), Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte(tenant)}}}
	if err := w.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// segment reads a segment of partition 0 with keys.
func (w *world) segment(ordinal int64, keys chain.Keys) (*archive.SegmentObject, error) {
	w.t.Helper()
	body, err := w.memory.Get(context.Background(), archive.SegmentKey(archive.Line{Topic: topic, TopicID: w.topicID()}, ordinal))
	if err != nil {
		w.t.Fatal(err)
	}
	return archive.ReadForeignSegment(body, keys)
}

// wantStopped requires that a process stops its partition, and says why.
func (r *run) wantStopped(words ...string) {
	r.w.t.Helper()
	waitFor(r.w.t, "the partition to stop", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.stopped) > 0 })
	text := r.stopped[0].Error()
	for _, want := range words {
		if !strings.Contains(text, want) {
			r.w.t.Errorf("stopped: %s; want %q", text, want)
		}
	}
	_ = r.stop()
}

// Logs of a keyed topic begin keyed, and go on so whatever the settings say
// later; without the key, or with another one, nothing is added to them.
func TestKeyedLogs(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		first := w.ingest(keyedBy(someMaster))
		w.produceFor("acme", 0)
		w.waitSegments(1)
		first.wantCleanStop()
		o, err := w.segment(0, chain.MasterKeys(someMaster))
		if err != nil || o.Logs[0].Scheme != chain.SchemeHMACv1 {
			t.Fatalf("%v, %v", o, err)
		}
		if _, err := w.segment(0, nil); !errors.Is(err, chain.ErrNoKey) {
			t.Errorf("without the key: %v", err)
		}
		if _, err := w.segment(0, chain.MasterKeys(append([]byte("x"), someMaster...))); !errors.Is(err, archive.ErrKey) {
			t.Errorf("with another key: %v", err)
		}

		w.ingest().wantStopped("keyed", "there is no key")
		w.ingest(keyedBy(append([]byte("x"), someMaster...))).wantStopped("keyed", "not the one that it was written with")

		again := w.ingest(func(s *pipeline.Settings) { s.MasterKey = someMaster })
		w.produceFor("acme", 1)
		w.waitSegments(2)
		w.produceFor("globex", 0)
		w.waitSegments(3)
		again.wantCleanStop()
		for ordinal, want := range map[int64]string{1: chain.SchemeHMACv1, 2: chain.SchemeV1} {
			o, err := w.segment(ordinal, chain.MasterKeys(someMaster))
			if err != nil || o.Logs[0].Scheme != want {
				t.Errorf("segment %d: %v, want %s", ordinal, err, want)
			}
		}

		// The tail has no keyed row now. Another key is found out before a row of
		// the keyed log is made with it, however far back its rows lie.
		other := w.ingest(func(s *pipeline.Settings) { s.MasterKey = append([]byte("x"), someMaster...) })
		w.produceFor("globex", 1)
		w.waitSegments(4)
		w.produceFor("acme", 2)
		other.wantStopped("segment 1", "not the one that it was written with")
		keyless := w.ingest()
		keyless.wantStopped("there is no key", "chain.key-dir", "/00000/TENANT")
		last := w.ingest(func(s *pipeline.Settings) {
			s.LogKeys = func(l chain.Log) ([]byte, bool) { return chain.LogKey(someMaster, l), l.Tenant == "acme" }
		})
		w.waitSegments(5)
		last.wantCleanStop()
		if _, err := w.segment(4, chain.MasterKeys(someMaster)); err != nil {
			t.Error(err)
		}
	})
}

// To be told to key logs without a key is refused before anything is read.
func TestKeyedWithoutAKeyIsRefused(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for _, master := range [][]byte{nil, someMaster[:31]} {
			r := w.ingest(keyedBy(master))
			if err := <-r.done; err == nil || !strings.Contains(err.Error(), "key") {
				t.Errorf("%d bytes: %v", len(master), err)
			}
		}
		if len(w.objects()) > 0 {
			t.Error("an archive was made")
		}
	})
}

// A log that somebody else begins by another scheme than this process would is
// taken only from one whose settings the voucher knows.
func TestALogThatBeginsUnkeyedIsForged(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.archivedWith(keyedBy(someMaster), calls("s", 0, 1))
		w.produceFor("globex", 0)
		plain := w.tether().ingest(7, func(s *pipeline.Settings) { s.Group, s.MasterKey = "another", someMaster })
		w.waitSegments(2)
		plain.wantCleanStop()
		w.ingest(keyedBy(someMaster)).wantStopped("begins a log as ledgerlake-v1", "chain.keyed-topics")
		w.deleteVouchers()
	})
	inWorld(t, 1, func(w *world) {
		w.archived(calls("s", 0, 1)) // by the settings of before
		w.produceFor("globex", 0)
		plain := w.tether().ingest(7, func(s *pipeline.Settings) { s.Group = "another" })
		w.waitSegments(2)
		plain.wantCleanStop()
		now := w.ingest(keyedBy(someMaster))
		w.produceFor("initech", 0)
		w.waitSegments(3)
		time.Sleep(time.Second)
		now.wantCleanStop()
		if o, err := w.segment(2, chain.MasterKeys(someMaster)); err != nil || o.Logs[0].Scheme != chain.SchemeHMACv1 {
			t.Errorf("%v", err)
		}
	})
}

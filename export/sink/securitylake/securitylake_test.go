package securitylake_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/securitylake"
	"github.com/ledgerlake/ledgerlake/export/sink/securitylake/laketest"
)

func options(b securitylake.Bucket) securitylake.Options {
	return securitylake.Options{Bucket: b, Source: "ledgerlake", Region: "eu-central-1", Account: "external_plant-7", ArchiveID: eventtest.ArchiveID, Version: "1.0"}
}

func open(t *testing.T, b securitylake.Bucket) *securitylake.Sink {
	t.Helper()
	s, err := securitylake.New(options(b))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// messages returns events whose times spread over some days.
func messages(n int) []sink.Message {
	var batch []sink.Message
	for i, ev := range eventtest.Events(1, n) {
		moved := *ev
		moved.Time = moved.Time.Add(time.Duration(i%5) * 9 * time.Hour)
		batch = append(batch, sink.Message{Event: &moved})
	}
	return batch
}

// A batch becomes objects that keep every rule of the lake and hold each event
// once, in the partition of its day.
func TestDeliverKeepsTheRules(t *testing.T) {
	lake := &laketest.Bucket{}
	s, batch := open(t, lake), messages(1500)
	result := s.Deliver(context.Background(), batch)
	if !result.Done() || len(result.Verdicts) != len(batch) {
		t.Fatalf("%+v", result.Verdicts[slices.IndexFunc(result.Verdicts, func(v sink.Verdict) bool { return v.Outcome != sink.Delivered })])
	}
	seen := map[string]int{}
	for key, body := range lake.Objects() {
		for _, id := range ids(t, body) {
			seen[id+" "+key[strings.Index(key, "eventDay="):][9:17]]++
		}
	}
	for _, m := range batch {
		at := m.Event.ID + " " + securitylake.Day(m.Event)
		if seen[at]--; seen[at] < 0 {
			t.Fatalf("%s is missing", at)
		}
	}
	for at, n := range seen {
		if n != 0 {
			t.Errorf("%s is there %d times too often", at, n)
		}
	}
}

func ids(t *testing.T, body []byte) (ids []string) {
	t.Helper()
	type row struct {
		Metadata struct {
			UID string `parquet:"uid,optional"`
		} `parquet:"metadata"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		ids = append(ids, r.Metadata.UID)
	}
	return ids
}

// The same batch again writes nothing new, and is delivered.
func TestDeliverTwiceIsOnce(t *testing.T) {
	lake := &laketest.Bucket{}
	s, batch := open(t, lake), messages(300)
	for range 2 {
		if result := s.Deliver(context.Background(), batch); !result.Done() {
			t.Fatalf("%+v", result)
		}
	}
	total := 0
	for _, body := range lake.Objects() {
		total += len(ids(t, body))
	}
	if total != len(batch) {
		t.Errorf("%d rows of %d events", total, len(batch))
	}
}

// What the bucket answers is the verdict on the day that it is about and on
// those after it; days before it are delivered.
func TestDeliverStopsAtTheDayThatFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		want sink.Outcome
	}{
		{errors.New("connection reset"), sink.Retry},
		{fmt.Errorf("put: %w", archive.ErrDenied), sink.Suspend},
		{archive.ErrConflict, sink.Retry},
		{archive.ErrExists, sink.Delivered},
	} {
		batch := messages(300)
		days := []string{}
		for _, m := range batch {
			days = append(days, securitylake.Day(m.Event))
		}
		slices.Sort(days)
		days = slices.Compact(days)
		bad := days[len(days)/2]
		lake := &laketest.Bucket{Fail: func(key string) error {
			if strings.Contains(key, bad) {
				return c.err
			}
			return nil
		}}
		result := open(t, lake).Deliver(context.Background(), batch)
		for i, m := range batch {
			want := sink.Delivered
			if securitylake.Day(m.Event) >= bad {
				want = c.want
			}
			if got := result.Verdicts[i]; got.Outcome != want || want != sink.Delivered && got.Reason == "" {
				t.Fatalf("%v: %s of %d days, bad is %s: %+v", c.err, securitylake.Day(m.Event), len(days), bad, got)
			}
		}
	}
}

// Options that the lake would not take are refused before anything is sent.
func TestNewRefuses(t *testing.T) {
	for _, change := range []func(o *securitylake.Options){
		func(o *securitylake.Options) { o.Bucket = nil },
		func(o *securitylake.Options) { o.Source = "" },
		func(o *securitylake.Options) { o.Source = strings.Repeat("a", 21) },
		func(o *securitylake.Options) { o.Source = "a/../b" },
		func(o *securitylake.Options) { o.Region = "Frankfurt" },
		func(o *securitylake.Options) { o.Account = "12345" },
		func(o *securitylake.Options) { o.Account = "external_a/b" },
	} {
		o := options(&laketest.Bucket{})
		change(&o)
		if _, err := securitylake.New(o); err == nil {
			t.Errorf("%+v passes", o)
		}
	}
	o := options(&laketest.Bucket{})
	o.Source, o.Account = "ledgerlake/1.0", "123456789012"
	if _, err := securitylake.New(o); err != nil {
		t.Error(err)
	}
}

// The stand-in refuses what breaks a rule.
func TestLakeRefuses(t *testing.T) {
	batch := messages(200)
	lake := &laketest.Bucket{}
	if !new(sink.Result).Done() {
		t.Fatal("nothing is not done")
	}
	open(t, lake).Deliver(context.Background(), batch)
	for key, body := range lake.Objects() {
		day := key[strings.Index(key, "eventDay=")+9:][:8]
		for _, c := range []struct {
			key  string
			body []byte
		}{
			{strings.Replace(key, day, "19990101", 1), body},
			{strings.Replace(key, "/region=", "/zone=", 1), body},
			{strings.Replace(key, "ext/", "", 1), body},
			{key + ".json", body},
			{key, body[:len(body)-1]},
			{key, nil},
		} {
			if err := laketest.Check(c.key, c.body); err == nil {
				t.Errorf("%s of %d bytes passes", c.key, len(c.body))
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	var events []*event.Event
	for _, ev := range eventtest.Events(1, 4000) {
		if ev.Kind == event.KindRecord && !strings.HasPrefix(ev.Tenant, "hostile") {
			events = append(events, ev)
		}
	}
	n := 0
	for range b.N {
		body, err := securitylake.Encode(events, event.EncoderOptions{})
		if err != nil {
			b.Fatal(err)
		}
		n += len(body)
	}
	b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(n)/float64(b.N*len(events)), "B/row")
}

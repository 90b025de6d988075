package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

var orders = archive.Line{Topic: "audit.calls", TopicID: "kTqBbX2gT0uYv1sO4cW9Zg", Partition: 3}

// reporting returns a report that writes to a buffer.
func reporting(tenants bool) (*report, *bytes.Buffer) {
	log := new(bytes.Buffer)
	return newReport(daemon.NewLogger(log, config.Log{Level: "debug", Format: "json"}), tenants), log
}

// lines decodes a log.
func lines(t *testing.T, log *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(log.String()), "\n") {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, fields)
	}
	return all
}

// fire has each of the events happen once.
func fire(ev pipeline.Events) {
	ev.Assigned(orders, 812, 7)
	ev.Committed(pipeline.Commit{Line: orders, Ordinal: 7, Rows: 32, Rejects: map[audit.Reason]int64{audit.ReasonConflict: 2}, Duplicates: 1, Bytes: 47_000, NextOffset: 845})
	ev.Committed(pipeline.Commit{Line: orders, Ordinal: 8, Rows: 5, NextOffset: 850, Adopted: true})
	ev.Rejected(orders, 813, "acme", audit.Reject{Reason: audit.ReasonTooDeep, Detail: "more than 64 levels"})
	ev.Gap(orders, 850, 900)
	ev.Retrying(orders, "log/audit.calls/x/00003/8.parquet", 2, errors.New("503 SlowDown"))
	ev.Comparing(orders, 6)
	ev.Stopped(orders, errors.New("truncated"))
	ev.SecondLog("acme", orders)
	ev.Warn("commit of offsets failed", errors.New("not coordinator"))
	ev.Revoked(orders)
}

// Every event is a line with its place; tenants stand in it only where asked.
func TestEventsAreLogged(t *testing.T) {
	for _, tenants := range []bool{false, true} {
		r, log := reporting(tenants)
		fire(r.events())
		if got := strings.Contains(log.String(), "acme"); got != tenants {
			t.Errorf("log-tenants %v: tenant in the log is %v", tenants, got)
		}
		all := lines(t, log)
		if len(all) != 11 {
			t.Fatalf("%d lines, want 11", len(all))
		}
		for _, fields := range all {
			if fields["msg"] != "commit of offsets failed" && (fields["topic"] != "audit.calls" || fields["partition"] != 3.0) {
				t.Errorf("line without its place: %v", fields)
			}
		}
	}
}

// Sums count what this process did: a segment that another wrote is no row of
// ours. An interval begins where the one before ends; the total does not.
func TestSums(t *testing.T) {
	r, log := reporting(false)
	fire(r.events())
	log.Reset()
	for range 2 {
		r.log.Info("progress", r.take()...)
	}
	r.log.Info("total", r.total()...)
	want := []string{
		`"msg":"progress","rows":32,"rejects":2,"duplicates":1,"segments":1,"bytes":47000,"adopted":1,"reasons":{"conflict":2}}`,
		`"msg":"progress","rows":0,"rejects":0,"duplicates":0,"segments":0,"bytes":0}`,
		`"msg":"total","rows":32,"rejects":2,"duplicates":1,"segments":1,"bytes":47000,"adopted":1,"reasons":{"conflict":2}}`,
	}
	for i, line := range strings.Split(strings.TrimSpace(log.String()), "\n") {
		if !strings.HasSuffix(line, want[i]) {
			t.Errorf("line %d is %s, want it to end with %s", i, line, want[i])
		}
	}
}

// A flood of rejects is a few lines a second, and whole in the sums; what
// happens once is not lost in it.
func TestRejectsDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := reporting(false)
		ev := r.events()
		for range 3 {
			for i := range 10_000 {
				ev.Rejected(orders, int64(i), "acme", audit.Reject{Reason: audit.ReasonInvalidJSON})
			}
			time.Sleep(time.Second)
		}
		ev.Stopped(orders, errors.New("truncated"))
		if n := strings.Count(log.String(), "record rejected"); n != 3*daemon.PerSecond {
			t.Errorf("%d lines of rejects in 3 s, want %d", n, 3*daemon.PerSecond)
		}
		if !strings.Contains(log.String(), "partition stopped") {
			t.Error("the line that matters is missing")
		}
	})
}

// The progress line comes each interval until the end, and never where the
// interval is 0.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for every, want := range map[time.Duration]int{10 * time.Second: 6, 0: 0} {
			r, log := reporting(false)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Second)
			go r.progress(ctx, every)
			<-ctx.Done()
			synctest.Wait()
			cancel()
			if n := strings.Count(log.String(), `"msg":"progress"`); n != want {
				t.Errorf("%d lines in a minute at %v, want %d", n, every, want)
			}
		}
	})
}

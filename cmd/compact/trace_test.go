package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/telemetry/telemetrytest"
)

// A pass that did something is a trace: what it looked at, read, wrote and
// published. One that found nothing to do is none.
func TestTraces(t *testing.T) {
	s := newStage(t)
	collector := telemetrytest.New(t)
	s.traces = collector.URL
	s.archiving()
	for range 20 {
		s.produce("acme", "jane", "s", "t", "said", time.Now())
	}
	stop := s.compacting()
	s.until("there are data files", func() bool {
		for o, err := range s.bucket.List(t.Context(), archive.DataPrefix, "") {
			return err == nil && o.Key != ""
		}
		return false
	})
	s.ingest()
	stop()
	rows := int64(0)
	for _, pass := range collector.Spans("compact pass") {
		_, n := telemetrytest.Attribute(pass, "ledgerlake.rows")
		if rows += n; n == 0 {
			continue
		}
		below := collector.Children(pass)
		if !slices.Contains(below, "compact") || !slices.Contains(below, "publish") {
			t.Errorf("below a pass of %d rows there are %q", n, below)
		}
		if topic, _ := telemetrytest.Attribute(pass, "ledgerlake.topic"); topic != audited && topic != "ledgerlake.control" {
			t.Errorf("a pass of topic %q", topic)
		}
	}
	if rows < 20 {
		t.Errorf("passes have %d rows, want 20 or more", rows)
	}
	for _, phase := range collector.Spans("compact") {
		if below := collector.Children(phase); !slices.Equal(below, []string{"read"}) {
			t.Errorf("below compact there is %q", below)
		}
	}
}

// What becomes a trace, and how one says that it failed: in a word, for the text of
// an error may name a tenant.
func TestPassSpans(t *testing.T) {
	halt := fmt.Errorf("%w: tenant acme", compaction.ErrHalted)
	now := time.Unix(1_800_000_000, 0)
	phases := []compaction.Phase{{Name: "look", Began: now, Ended: now.Add(time.Second)}, {Name: "delete", Began: now, Ended: now}, {Name: "read", Began: now, Ended: now}}
	for _, tt := range []struct {
		name   string
		r      compaction.Result
		err    error
		did    bool
		failed string
	}{
		{"nothing", compaction.Result{}, nil, false, ""},
		{"wrote", compaction.Result{Wrote: true}, nil, true, ""},
		{"deleted", compaction.Result{Deleted: 1}, nil, true, ""},
		{"kept", compaction.Result{Kept: []archive.Kept{{}}}, nil, true, ""},
		{"stops", compaction.Result{}, context.Canceled, false, "failed"},
		{"halted", compaction.Result{}, halt, true, "halted"},
		{"raced", compaction.Result{}, compaction.ErrRaced, true, "raced"},
		{"failed", compaction.Result{}, errors.New("tenant acme"), true, "failed"},
	} {
		tt.r.Phases = phases
		s := passSpan(&tt.r, tt.err)
		if did(&tt.r, tt.err) != tt.did || s.Failed != tt.failed {
			t.Errorf("%s: a trace %v, failed %q", tt.name, did(&tt.r, tt.err), s.Failed)
		}
		if len(s.Children) == 0 || s.Children[0].Name != "look" || s.Children[0].Failed != "" {
			t.Errorf("%s: %+v", tt.name, s.Children)
		}
	}
}

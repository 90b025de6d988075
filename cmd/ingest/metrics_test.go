package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/internal/metricspage"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// idle is the status of an ingest that has nothing.
func idle() pipeline.Status { return pipeline.Status{} }

// scrape returns what /metrics says, without comments.
func scrape(t *testing.T, m *metrics) (series []string, size int) {
	t.Helper()
	w := httptest.NewRecorder()
	daemon.Handler(&health{}, m.Registry).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	for line := range strings.Lines(w.Body.String()) {
		if line[0] != '#' {
			series = append(series, strings.TrimSpace(line))
		}
	}
	return series, w.Body.Len()
}

// ours are the series of ours, and what they say.
func ours(series []string) map[string]string {
	said := map[string]string{}
	for _, s := range series {
		if i := strings.LastIndexByte(s, ' '); strings.HasPrefix(s, namespace) {
			said[strings.TrimPrefix(s[:i], namespace+"_")] = s[i+1:]
		}
	}
	return said
}

// Ten thousand tenants make no series, and a thousand topics of many partitions
// not more than a thousand: /metrics stays below 1 MiB. No tenant stands in it
// unless asked for, and then so many as were asked for.
func TestSeriesAreBounded(t *testing.T) {
	const tenants = 10_000
	wide := func() pipeline.Status {
		st := pipeline.Status{Joined: true}
		for topic := range 1000 {
			for n := range int32(10) {
				l := archive.Line{Topic: fmt.Sprintf("%0240d", topic), Partition: n}
				st.Partitions = append(st.Partitions, pipeline.PartitionStatus{Line: l, NextOffset: 1, End: 3})
			}
		}
		return st
	}
	for top, named := range map[int]int{0: 0, 20: 20} {
		m := newMetrics(wide, config.HTTP{LagBy: config.LagByPartition, TopTenants: top})
		ev := m.events()
		scrape(t, m)
		before, _ := scrape(t, m)
		for i := range tenants {
			tenant := fmt.Sprintf("tenant-%05d", i)
			ev.Committed(pipeline.Commit{Line: orders, Rows: 1, Bytes: 1, Timestamps: []int64{0}, Tenants: map[string]int64{tenant: 1}})
			ev.Rejected(orders, int64(i), tenant, audit.Reject{Reason: audit.ReasonConflict})
			ev.SecondLog(tenant, orders)
			ev.Retrying(orders, "log/"+tenant, i, fmt.Errorf("no answer for %s", tenant))
			ev.Warn("tenant "+tenant, errors.New(tenant))
		}
		after, size := scrape(t, m)
		if size > 1<<20 {
			t.Errorf("/metrics has %d bytes", size)
		}
		// The one new series is retries_total{operation="other",cause="other"}.
		if grown := len(after) - len(before); grown != 1+named {
			t.Errorf("top-tenants %d: %d series more than before, want %d", top, grown, 1+named)
		}
		found := map[string]bool{}
		for _, id := range regexp.MustCompile(`tenant-\d+`).FindAllString(strings.Join(after, "\n"), -1) {
			found[id] = true
		}
		if len(found) != named {
			t.Errorf("top-tenants %d: %d tenants are named", top, len(found))
		}
		if m.tenants != nil && len(m.tenants.watched) > watchedMin {
			t.Errorf("%d tenants are held", len(m.tenants.watched))
		}
		t.Logf("top-tenants %d, 10,000 tenants, 10,000 partitions of 1,000 topics: %d series, %d bytes", top, len(after), size)
	}
}

// Each event is counted where an operator looks for it; what another process
// wrote is no work of this one.
func TestEventsAreCounted(t *testing.T) {
	m := newMetrics(idle, config.HTTP{})
	fire(m.events())
	m.committed(pipeline.Commit{Rows: 2, Bytes: 5000, Took: 30 * time.Millisecond, Timestamps: []int64{time.Now().UnixMilli() - 700, time.Now().UnixMilli() + 60_000}})
	m.Requested(s3sink.Request{Operation: "PutObject", Status: 412, Took: time.Millisecond})
	m.Requested(s3sink.Request{Operation: "PutObject", Status: 418, Took: time.Second})
	m.Requested(s3sink.Request{Operation: "GetObject", Took: time.Second})
	hooks := clientHooks{m}
	hooks.OnBrokerConnect(kgo.BrokerMetadata{}, 0, nil, nil)
	hooks.OnBrokerConnect(kgo.BrokerMetadata{}, 0, nil, errors.New("refused"))
	hooks.OnBrokerE2E(kgo.BrokerMetadata{}, 1, kgo.BrokerE2E{BytesRead: 100})
	hooks.OnBrokerE2E(kgo.BrokerMetadata{}, 1, kgo.BrokerE2E{ReadErr: errors.New("reset")})
	hooks.OnGroupManageError(errors.New("no coordinator"))
	series, _ := scrape(t, m)
	said := ours(series)
	for name, want := range map[string]string{
		`kafka_connects_total{outcome="ok"}`: "1", `kafka_connects_total{outcome="failed"}`: "1", "kafka_read_bytes_total": "100",
		"kafka_request_errors_total": "1", "kafka_group_errors_total": "1",
		"rows_total": "34", "duplicates_total": "1", "segments_total": "2", "adopted_segments_total": "1", "compared_segments_total": "1",
		"lost_offsets_total": "50", "split_tenants_total": "1", "partition_stops_total": "1", "partitions_assigned_total": "1", "partitions_revoked_total": "1",
		`rejected_rows_total{reason="conflict"}`: "2", `rejected_rows_total{reason="too_deep"}`: "0",
		`retries_total{cause="other",operation="other"}`:                   "1",
		`segment_rows_bucket{le="4"}`:                                      "1",
		"segment_rows_sum":                                                 "34",
		"segment_bytes_sum":                                                "52000",
		`commit_seconds_bucket{le="0.05"}`:                                 "2",
		`record_delay_seconds_bucket{le="0.005"}`:                          "1", // ahead of our clock is no delay
		`record_delay_seconds_bucket{le="0.5"}`:                            "1",
		`record_delay_seconds_bucket{le="1"}`:                              "2",
		`store_requests_total{code="412",operation="PutObject"}`:           "1",
		`store_requests_total{code="4xx",operation="PutObject"}`:           "1",
		`store_requests_total{code="none",operation="GetObject"}`:          "1",
		"store_request_seconds_count":                                      "3",
		`build_info{go_version="` + runtime.Version() + `",version="dev"}`: "1",
	} {
		if said[name] != want {
			t.Errorf("%s is %q, want %s", name, said[name], want)
		}
	}
	if sum, err := strconv.ParseFloat(said["record_delay_seconds_sum"], 64); err != nil || sum < .7 || sum > 5 {
		t.Errorf("the sum of delays is %s, want little more than 0.7", said["record_delay_seconds_sum"])
	}
	if !slices.ContainsFunc(series, func(s string) bool { return strings.HasPrefix(s, "go_goroutines ") }) ||
		!slices.ContainsFunc(series, func(s string) bool { return strings.HasPrefix(s, "process_resident_memory_bytes ") }) {
		t.Error("nothing of Go or of the process")
	}
}

// Why a try failed is one of a few words, whoever failed.
func TestRetriesByCause(t *testing.T) {
	m := newMetrics(idle, config.HTTP{})
	retrying := m.events().Retrying
	for _, err := range []error{
		&s3sink.Error{Op: "create", Status: 503}, &s3sink.Error{Op: "get tail of", Status: 500}, &s3sink.Error{Op: "list", Status: 429},
		fmt.Errorf("resume: %w", fmt.Errorf("no key: %w", archive.ErrDenied)), archive.ErrConflict, archive.ErrDamaged, s3sink.ErrNoBucket, errors.New("x"),
	} {
		retrying(orders, "k", 1, err)
	}
	got := map[string]string{}
	series, _ := scrape(t, m)
	for name, n := range ours(series) {
		if strings.HasPrefix(name, "retries_total") && n != "0" {
			got[strings.TrimPrefix(name, "retries_total")] = n
		}
	}
	want := map[string]string{
		`{cause="server_error",operation="create"}`: "1", `{cause="server_error",operation="get"}`: "1", `{cause="other",operation="list"}`: "1",
		`{cause="denied",operation="other"}`: "1", `{cause="conflict",operation="other"}`: "1", `{cause="damaged",operation="other"}`: "1",
		`{cause="no_bucket",operation="other"}`: "1", `{cause="other",operation="other"}`: "1",
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted\n%v, want\n%v", got, want)
	}
}

// How an ingest stands is read at each scrape.
func TestStanding(t *testing.T) {
	l := func(n int32) archive.Line { return archive.Line{Topic: "audit.calls", Partition: n} }
	st := pipeline.Status{Held: 5, Limit: 10, Partitions: []pipeline.PartitionStatus{
		{Line: l(0), NextOffset: 10, End: 15},
		{Line: l(1), NextOffset: 10, End: 9}, // Kafka has gone on since
		{Line: l(2), NextOffset: 10, End: -1, Pending: time.Now().Add(-3 * time.Second)},
		{Line: l(3), NextOffset: -1, End: -1, Pending: time.Now().Add(-time.Hour), Stopped: errors.New("forged")},
		{Line: archive.Line{Topic: "other"}, NextOffset: 0, End: 2},
		{Line: l(4), NextOffset: -1, End: -1, Pending: time.Now(), Starting: true},
	}}
	status := func() pipeline.Status { return st }
	for by, want := range map[string]map[string]string{
		config.LagByPartition: {
			`lag_offsets{partition="0",topic="audit.calls"}`: "5", `lag_offsets{partition="1",topic="audit.calls"}`: "0", `lag_offsets{partition="0",topic="other"}`: "2",
			`partitions{state="running"}`: "4", `partitions{state="stopped"}`: "1", `partitions{state="starting"}`: "1", "held_bytes": "5", "held_bytes_limit": "10",
		},
		config.LagByTopic: {`lag_offsets{partition="",topic="audit.calls"}`: "5", `lag_offsets{partition="",topic="other"}`: "2"},
	} {
		series, _ := scrape(t, newMetrics(status, config.HTTP{LagBy: by}))
		said, lags := ours(series), 0
		for name := range said {
			if strings.HasPrefix(name, "lag_offsets") {
				lags++
			}
		}
		for name, n := range want {
			if said[name] != n {
				t.Errorf("by %s: %s is %q, want %s", by, name, said[name], n)
			}
		}
		if n := strings.Count(fmt.Sprint(slices.Collect(maps.Keys(want))), "lag_offsets"); lags != n {
			t.Errorf("by %s: %d series of lag, want %d", by, lags, n)
		}
		if pending := said["pending_seconds"]; !strings.HasPrefix(pending, "3.") {
			t.Errorf("pending for %s s, want 3", pending)
		}
	}
}

// Prometheus' own rules of names and help are kept.
func TestMetricsLint(t *testing.T) {
	m := newMetrics(func() pipeline.Status {
		return pipeline.Status{Partitions: []pipeline.PartitionStatus{{Line: orders, End: 1}}}
	}, config.HTTP{LagBy: config.LagByPartition, TopTenants: 1})
	fire(m.events())
	m.Requested(s3sink.Request{Operation: "PutObject", Status: 200})
	problems, err := testutil.GatherAndLint(m.Registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Who listens hears every event: an event that the pipeline gets is missed by
// nobody.
func TestMergeHasEveryEvent(t *testing.T) {
	r, log := reporting(false)
	m := newMetrics(idle, config.HTTP{})
	for name, ev := range map[string]pipeline.Events{"report": r.events(), "metrics": m.events(), "merge": merge(r.events(), m.events())} {
		v := reflect.ValueOf(ev)
		for i := range v.NumField() {
			if v.Field(i).IsNil() {
				t.Errorf("%s does not hear %s", name, v.Type().Field(i).Name)
			}
		}
	}
	// Both hear all of it, once.
	alone, first, second := newMetrics(idle, config.HTTP{}), newMetrics(idle, config.HTTP{}), newMetrics(idle, config.HTTP{})
	fire(alone.events())
	fire(merge(first.events(), second.events()))
	want, _ := scrape(t, alone)
	for i, m := range []*metrics{first, second} {
		if got, _ := scrape(t, m); !maps.Equal(ours(got), ours(want)) {
			t.Errorf("listener %d heard\n%v, want\n%v", i, ours(got), ours(want))
		}
	}
	fire(merge(r.events(), m.events()))
	if n := len(lines(t, log)); n != 11 {
		t.Errorf("%d lines, want 11", n)
	}
}

// docs/metrics.md has what the code has.
func TestMetricsAreDocumented(t *testing.T) {
	h := &health{readyAge: time.Minute}
	m := newMetrics(func() pipeline.Status {
		return pipeline.Status{Partitions: []pipeline.PartitionStatus{{Line: orders, End: 1}}}
	}, config.HTTP{LagBy: config.LagByPartition, TopTenants: 1})
	m.Ready(func() bool { return h.ready(time.Now()).Ready })
	m.Requested(s3sink.Request{Operation: "PutObject", Status: 200})
	metricspage.Check(t, "../../docs/metrics.md", "Metrics of ledgerlake-ingest", m.Registry, namespace, *update)
}

const operations = "../../docs/operations.md"

// The words by which docs/operations.md explains why a partition stops are
// those of the messages.
func TestStopsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| words | meaning | what you do |")
	table, _, _ = strings.Cut(table, "\n\n")
	words := regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(table, -1)
	if len(words) < 5 {
		t.Fatalf("found %d words; the pattern must be wrong", len(words))
	}
	var sources strings.Builder
	for _, pattern := range []string{"../../pipeline/*.go", "../../archive/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			body, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(body)
		}
	}
	for _, w := range words {
		if !strings.Contains(sources.String(), w[1]) {
			t.Errorf("no message says %q", w[1])
		}
	}
}

package main

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// namespace begins the name of every metric of ours.
const namespace = "ledgerlake_ingest"

// metrics is what Prometheus is told. The number of its series has a bound that
// no tenant, record or store can move; topics and partitions only move that of
// lag (see [lagSeries]). docs/metrics.md has the list.
type metrics struct {
	*daemon.Metrics

	rows, duplicates, gaps, segments      prometheus.Counter
	adopted, compared, anchors, notCopied prometheus.Counter
	assigned, revoked, stops, split       prometheus.Counter
	rejects, retries, connects            *prometheus.CounterVec
	kafkaRead, kafkaErrors, groupErrors   prometheus.Counter
	segmentRows, segmentBytes             prometheus.Histogram
	commitSeconds, delay                  prometheus.Histogram

	tenants *topTenants // nil: none is named
}

// newMetrics returns metrics of what status and the events of the pipeline say.
func newMetrics(status func() pipeline.Status, h config.HTTP) *metrics {
	m := &metrics{Metrics: daemon.NewMetrics(namespace, version)}
	m.rows = m.Counter("rows_total", "Rows that are durable, those of rejected records and of gaps too.")
	m.rejects = m.Counters("rejected_rows_total", "Rows that are rejected records, by reason.", "reason")
	m.duplicates = m.Counter("duplicates_total", "Records that repeat an archived row and became none.")
	m.gaps = m.Counter("lost_offsets_total", "Offsets that Kafka deleted before they were archived. Any is an alarm.")
	m.segments = m.Counter("segments_total", "Segments that this process wrote.")
	m.segmentRows = m.Histogram("segment_rows", "Rows of a segment.", prometheus.ExponentialBuckets(1, 4, 9))
	m.segmentBytes = m.Histogram("segment_bytes", "Size of a segment's object.", prometheus.ExponentialBuckets(4<<10, 4, 8))
	m.commitSeconds = m.Histogram("commit_seconds", "From the closing of a batch to the durable segment: stamp, encode and PUT, with all tries.", daemon.Seconds[:16])
	m.delay = m.Histogram("record_delay_seconds", "From a record's timestamp to its being durable, for each record.", daemon.Seconds)
	m.adopted = m.Counter("adopted_segments_total", "Segments that another process had written where this one was about to.")
	m.compared = m.Counter("compared_segments_total", "Archived segments that were compared with Kafka.")
	m.anchors = m.Counter("anchors_total", "Anchors that this process wrote.")
	m.notCopied = m.Counter("anchor_copy_failures_total", "Tries to copy anchors to Kafka or the second bucket that failed.")
	m.retries = m.Counters("retries_total", "Tries at the store that failed and are repeated, by what was asked and why it failed.", "operation", "cause")
	m.connects = m.Counters("kafka_connects_total", "Tries to connect to a broker, login included, by how they ended.", "outcome")
	m.kafkaRead = m.Counter("kafka_read_bytes_total", "Bytes of the brokers' answers, compressed as they came.")
	m.kafkaErrors = m.Counter("kafka_request_errors_total", "Requests to brokers that were not answered.")
	m.groupErrors = m.Counter("kafka_group_errors_total", "Errors that ended a session of the group; the client joins again.")
	m.assigned = m.Counter("partitions_assigned_total", "Partitions that this process was given, counted each time.")
	m.revoked = m.Counter("partitions_revoked_total", "Partitions that were taken away again, counted each time.")
	m.stops = m.Counter("partition_stops_total", "Partitions that stopped for a fault. Any is an alarm.")
	m.split = m.Counter("split_tenants_total", "Tenants that were found in more than one partition of a topic, and so have more than one log.")
	m.begin()
	if h.TopTenants > 0 {
		m.tenants = newTopTenants(h.TopTenants)
		m.MustRegister(m.tenants)
	}
	m.MustRegister(newStanding(status, h.LagBy))
	return m
}

// begin makes the series that are known from the start, so that a rate sees
// the first of a kind.
func (m *metrics) begin() {
	for _, reason := range audit.Reasons {
		m.rejects.WithLabelValues(string(reason))
	}
	for _, outcome := range []string{"ok", "failed"} {
		m.connects.WithLabelValues(outcome)
	}
	for _, operation := range []string{"create", "get", "list"} {
		for _, cause := range []string{"denied", "no_answer", "server_error"} {
			m.retries.WithLabelValues(operation, cause)
		}
	}
}

// events returns the funcs that the pipeline calls.
func (m *metrics) events() pipeline.Events {
	return pipeline.Events{
		Assigned:  func(archive.Line, int64, int64) { m.assigned.Inc() },
		Revoked:   func(archive.Line) { m.revoked.Inc() },
		Committed: m.committed,
		Rejected:  func(archive.Line, int64, string, audit.Reject) {}, // Committed has their number
		Gap:       func(_ archive.Line, from, to int64) { m.gaps.Add(float64(to - from)) },
		Retrying: func(_ archive.Line, _ string, _ int, err error) {
			m.retries.WithLabelValues(operationOf(err), causeOf(err)).Inc()
		},
		Comparing: func(archive.Line, int64) { m.compared.Inc() },
		Anchored: func(a pipeline.Anchor) {
			if !a.Adopted {
				m.anchors.Inc()
			}
		},
		CopyFailed: func(archive.Line, string, error) { m.notCopied.Inc() },
		Stopped:    func(archive.Line, error) { m.stops.Inc() },
		Offsets:    func(pipeline.OffsetCommit) {}, // for traces; what fails is a warning
		SecondLog:  func(string, archive.Line) { m.split.Inc() },
		Warn:       func(string, error) {},
	}
}

// committed counts a segment; of one that another process wrote, only that.
func (m *metrics) committed(c pipeline.Commit) {
	if c.Adopted {
		m.adopted.Inc()
		return
	}
	m.segments.Inc()
	m.rows.Add(float64(c.Rows))
	m.duplicates.Add(float64(c.Duplicates))
	for reason, n := range c.Rejects {
		m.rejects.WithLabelValues(string(reason)).Add(float64(n))
	}
	m.segmentRows.Observe(float64(c.Rows))
	m.segmentBytes.Observe(float64(c.Bytes))
	m.commitSeconds.Observe(c.Took.Seconds())
	now := time.Now()
	for _, ms := range c.Timestamps {
		m.delay.Observe(max(0, now.Sub(time.UnixMilli(ms)).Seconds())) // a producer's clock may be ahead
	}
	if m.tenants != nil {
		m.tenants.add(c.Tenants)
	}
}

// operationOf returns what was asked of the store.
func operationOf(err error) string {
	var e *s3sink.Error
	if !errors.As(err, &e) {
		return "other"
	}
	switch e.Op {
	case "create", "get", "list":
		return e.Op
	case "get tail of":
		return "get"
	}
	return "other"
}

// causeOf returns why the store did not do it.
func causeOf(err error) string {
	var e *s3sink.Error
	switch {
	case errors.Is(err, archive.ErrDenied):
		return "denied"
	case errors.Is(err, s3sink.ErrNoBucket):
		return "no_bucket"
	case errors.Is(err, archive.ErrConflict):
		return "conflict"
	case errors.Is(err, archive.ErrDamaged):
		return "damaged"
	case !errors.As(err, &e):
		return "other"
	case e.Status == 0:
		return "no_answer"
	case e.Status >= 500:
		return "server_error"
	}
	return "other"
}

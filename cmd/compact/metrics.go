package main

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/daemon"
)

// namespace begins the name of every metric of ours.
const namespace = "ledgerlake_compact"

// metrics is what Prometheus is told. No tenant, topic or record stands in a
// label. docs/metrics.md has the list.
type metrics struct {
	*daemon.Metrics
	health *health

	passes, races, halts, failures, cycles, sent prometheus.Counter
	segments, rows, segmentBytes                 prometheus.Counter
	files, fileBytes                             prometheus.Counter
	erased, dropped, repeats                     prometheus.Counter
	deleted, deletedBytes, strays, aborted       prometheus.Counter
	kept                                         *prometheus.CounterVec
}

func newMetrics(h *health) *metrics {
	m := &metrics{Metrics: daemon.NewMetrics(namespace, version), health: h}
	m.cycles = m.Counter("cycles_total", "Times that all lines of this process were looked at.")
	m.passes = m.Counter("passes_total", "Passes over a line that ended well.")
	m.races = m.Counter("races_total", "Passes that were thrown away because another compactor was faster. Usual.")
	m.halts = m.Counter("halts_total", "Passes that ended because a line is not as it must be. Any is an alarm.")
	m.failures = m.Counter("failures_total", "Lines and cycles that failed for another reason, and are tried again.")
	m.sent = m.Counter("control_records_total", "Receipts, cuts and expiries that were sent to the control topic.")
	m.segments = m.Counter("segments_total", "Segments that became data files.")
	m.rows = m.Counter("rows_total", "Rows of those segments.")
	m.segmentBytes = m.Counter("segment_bytes_total", "Bytes of those segments.")
	m.files = m.Counter("data_files_total", "Data files that were written.")
	m.fileBytes = m.Counter("data_file_bytes_total", "Their bytes.")
	m.erased = m.Counter("erased_rows_total", "Rows from which something was erased.")
	m.dropped = m.Counter("dropped_rows_total", "Rows that were dropped by cuts.")
	m.repeats = m.Counter("repeats_total", "Rows that were found to repeat an older one.")
	m.deleted = m.Counter("deleted_objects_total", "Objects that were deleted with all their versions.")
	m.deletedBytes = m.Counter("deleted_bytes_total", "The bytes of those versions.")
	m.strays = m.Counter("strays_total", "Objects that nothing named, and that were doomed.")
	m.aborted = m.Counter("aborted_uploads_total", "Unfinished uploads that were dropped.")
	m.kept = m.Counters("kept_versions_total", "Tries to delete a version that failed, by why: locked, denied, other.", "cause")
	for _, cause := range []string{"locked", "denied", "other"} {
		m.kept.WithLabelValues(cause)
	}
	m.gauges()
	m.Ready(func() bool { return h.ready(time.Now()).Ready })
	return m
}

// gauges are read at each scrape.
func (m *metrics) gauges() {
	read := func(of func(*standing) float64) func() float64 {
		return func() float64 { s := m.health.standing(); return of(&s) }
	}
	m.Gauge("oldest_request_seconds", "How long the oldest order of erasure has been archived that is not receipted and that nothing forbids; 0 where there is none, or this process does not lead.", read(func(s *standing) float64 { return s.oldest.Seconds() }))
	m.Gauge("overdue_requests", "Orders of erasure without a receipt for longer than erasure-within. Any is an alarm.", read(func(s *standing) float64 { return float64(s.overdue) }))
	m.Gauge("open_requests", "Orders of erasure of which something is still to be done.", read(func(s *standing) float64 { return float64(s.open) }))
	m.Gauge("halted_lines", "Lines of this process that are halted.", read(func(s *standing) float64 { return float64(s.halted) }))
	m.Gauge("lines", "Lines that this process compacts.", read(func(s *standing) float64 { return float64(s.lines) }))
	m.Gauge("leads", "1 where this process sends receipts and cuts; the sum over all processes is 1.", read(func(s *standing) float64 {
		if s.leads {
			return 1
		}
		return 0
	}))
	m.Gauge("watermark_lag_segments", "Anchored segments of this process's lines that are not compacted, as of their last passes.", read(func(s *standing) float64 { return float64(s.lag) }))
}

// events returns the funcs that an engine calls.
func (m *metrics) events() compaction.Events {
	return compaction.Events{
		Ended:  func(*compaction.Result, error) {}, // the others say it
		Passed: m.passed,
		Halted: func(archive.Line, error) { m.halts.Inc() },
		Raced:  func(archive.Line, int64) { m.races.Inc() },
		Deleted: func(_ archive.Line, objects, bytes int64) {
			m.deleted.Add(float64(objects))
			m.deletedBytes.Add(float64(bytes))
		},
		Kept: func(_ archive.Line, k archive.Kept) {
			cause := "other"
			switch {
			case errors.Is(k.Err, archive.ErrLocked):
				cause = "locked"
			case errors.Is(k.Err, archive.ErrDenied):
				cause = "denied"
			}
			m.kept.WithLabelValues(cause).Inc()
		},
		Warn: func(archive.Line, string, error) {},
	}
}

func (m *metrics) passed(r *compaction.Result) {
	m.passes.Inc()
	m.segments.Add(float64(r.Segments))
	m.rows.Add(float64(r.Rows))
	m.segmentBytes.Add(float64(r.SegmentBytes))
	m.files.Add(float64(r.Files))
	m.fileBytes.Add(float64(r.FileBytes))
	m.erased.Add(float64(r.Erased))
	m.dropped.Add(float64(r.Dropped))
	m.repeats.Add(float64(r.Repeats))
	m.strays.Add(float64(r.Strays))
	m.aborted.Add(float64(r.Aborted))
}

// took counts what a cycle did.
func (m *metrics) took(c *compaction.Cycle) {
	m.sent.Add(float64(c.Sent))
	for _, err := range c.Failed {
		if !halted(err) {
			m.failures.Inc()
		}
	}
}

// cycled counts a cycle.
func (m *metrics) cycled(err error) {
	m.cycles.Inc()
	if err != nil {
		m.failures.Inc()
	}
}

package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// standing is the metrics that say how an ingest stands, read at each scrape.
type standing struct {
	status func() pipeline.Status
	lagBy  string

	lag, held, limit, partitions, pending, unanchored *prometheus.Desc
}

func newStanding(status func() pipeline.Status, lagBy string) *standing {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &standing{
		status: status, lagBy: lagBy,
		lag:        desc("lag_offsets", "Offsets between what is durable and Kafka's end as of the last fetch; partition is empty where it is a topic's sum.", "topic", "partition"),
		held:       desc("held_bytes", "Bytes of records that were read and are not durable."),
		limit:      desc("held_bytes_limit", "At this many nothing more is fetched."),
		partitions: desc("partitions", "Partitions of this process, by whether they start, run or have stopped for a fault.", "state"),
		pending:    desc("pending_seconds", "How long what waits longest has been waiting to become durable; 0 where nothing does."),
		unanchored: desc("unanchored_seconds", "How long the oldest durable change that no anchor covers has been without one; 0 where there is none."),
	}
}

// Describe implements [prometheus.Collector].
func (s *standing) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.lag, s.held, s.limit, s.partitions, s.pending, s.unanchored} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (s *standing) Collect(out chan<- prometheus.Metric) {
	st, now := s.status(), time.Now()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(s.held, float64(st.Held))
	gauge(s.limit, float64(st.Limit))
	states, oldest, unanchored := map[string]int{}, now, now
	for i := range st.Partitions {
		p := &st.Partitions[i]
		states[stateOf(p)]++
		if p.Stopped == nil && !p.Pending.IsZero() && p.Pending.Before(oldest) {
			oldest = p.Pending
		}
		if !p.Unanchored.IsZero() && p.Unanchored.Before(unanchored) {
			unanchored = p.Unanchored
		}
	}
	for _, state := range []string{"starting", "running", "stopped"} {
		gauge(s.partitions, float64(states[state]), state)
	}
	gauge(s.pending, now.Sub(oldest).Seconds())
	gauge(s.unanchored, now.Sub(unanchored).Seconds())
	for at, n := range lagSeries(st.Partitions, s.lagBy == config.LagByPartition) {
		gauge(s.lag, float64(n), at.topic, at.partition)
	}
}

// stateOf returns what a partition does, as a label.
func stateOf(p *pipeline.PartitionStatus) string {
	switch {
	case p.Stopped != nil:
		return "stopped"
	case p.Starting:
		return "starting"
	}
	return "running"
}

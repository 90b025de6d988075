package pipeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A Status is how an ingest stands at one moment.
type Status struct {
	Joined      bool  // the group has assigned partitions, maybe none
	Held, Limit int64 // bytes of records that are not durable yet; above the limit nothing is fetched
	Partitions  []PartitionStatus
}

// A PartitionStatus is how one assigned partition stands.
type PartitionStatus struct {
	Line       archive.Line
	NextOffset int64     // the first offset that is not durable, -1 if unknown
	End        int64     // of Kafka as of the last fetch, -1 if unknown
	Pending    time.Time // since when something that was read is not durable; zero: there is nothing
	LastCommit time.Time // when a segment last became durable; zero: not yet
	Unanchored time.Time // since when something that is durable is in no anchor; zero: there is nothing
	Starting   bool      // it is still being found out where it goes on, since Pending
	Stopped    error     // why it has stopped; nil where it runs
}

// Status returns how the ingest stands. It may be called at any time.
func (in *Ingest) Status() Status {
	c := in.running.Load()
	if c == nil {
		return Status{Limit: in.settings.recordMemory()}
	}
	st := Status{Joined: c.joined.Load(), Held: c.budget.holds(), Limit: c.budget.limit}
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, r := range c.parts {
		s := r.status()
		s.Stopped = c.faults[at].err
		st.Partitions = append(st.Partitions, s)
	}
	for at, s := range c.starts {
		if c.parts[at] == nil {
			l := archive.Line{Topic: at.topic, Partition: at.number}
			st.Partitions = append(st.Partitions, PartitionStatus{Line: l, NextOffset: -1, End: -1, Pending: s.since, Starting: true})
		}
	}
	for at, f := range c.faults {
		if c.parts[at] == nil && c.starts[at] == nil {
			st.Partitions = append(st.Partitions, PartitionStatus{Line: f.line, NextOffset: -1, End: -1, Stopped: f.err})
		}
	}
	slices.SortFunc(st.Partitions, func(a, b PartitionStatus) int {
		return cmp.Or(cmp.Compare(a.Line.Topic, b.Line.Topic), cmp.Compare(a.Line.Partition, b.Line.Partition))
	})
	return st
}

func (r *running) status() PartitionStatus {
	s := PartitionStatus{Line: r.line, NextOffset: r.begins, End: r.end.Load()}
	if d := r.durable.Load(); d != nil {
		s.NextOffset = d.offset
	}
	if t := r.pending.Load(); t != nil {
		s.Pending = *t
	}
	if t := r.committedAt.Load(); t != nil {
		s.LastCommit = *t
	}
	if t := r.unanchoredSince.Load(); t != nil {
		s.Unanchored = *t
	}
	return s
}

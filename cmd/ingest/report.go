package main

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// A report turns what the pipeline does into lines of a log and into sums.
// It never sees payload; tenant ids it only shows where it was told to.
type report struct {
	log     *zap.Logger
	often   *zap.Logger // sampled
	tenants bool

	mu             sync.Mutex
	interval, life sums
}

// sums are what was done in some time.
type sums struct {
	rows, duplicates, segments, bytes, adopted, anchors int64
	rejects                                             map[audit.Reason]int64
}

func newReport(log *zap.Logger, tenants bool) *report {
	return &report{log: log, often: daemon.Sampled(log), tenants: tenants}
}

// events returns the funcs that the pipeline calls.
func (r *report) events() pipeline.Events {
	return pipeline.Events{
		Assigned: func(l archive.Line, offset, ordinal int64) {
			r.log.Info("partition assigned", append(line(l), zap.String("topicId", l.TopicID), zap.Int64("offset", offset), zap.Int64("ordinal", ordinal))...)
		},
		Revoked: func(l archive.Line) { r.log.Info("partition given up", line(l)...) },
		Committed: func(c pipeline.Commit) {
			r.add(c)
			r.log.Debug("segment", append(line(c.Line), zap.Int64("ordinal", c.Ordinal), zap.Int64("rows", c.Rows), zap.Int64("duplicates", c.Duplicates),
				zap.Int64("bytes", c.Bytes), zap.Duration("took", c.Took), zap.Bool("adopted", c.Adopted), zap.Int64("nextOffset", c.NextOffset))...)
		},
		Rejected: func(l archive.Line, offset int64, tenant string, reject audit.Reject) {
			r.often.Warn("record rejected", append(r.withTenant(l, tenant), zap.Int64("offset", offset),
				zap.String("reason", string(reject.Reason)), zap.String("detail", reject.Detail))...)
		},
		Gap: func(l archive.Line, from, to int64) {
			r.log.Error("offsets lost: Kafka no longer has them, and the archive never had", append(line(l), zap.Int64("from", from), zap.Int64("to", to))...)
		},
		Retrying: func(l archive.Line, key string, attempt int, err error) {
			r.often.Warn("store does not answer; trying again", append(line(l), zap.String("key", key), zap.Int("attempt", attempt), zap.Error(err))...)
		},
		Comparing: func(l archive.Line, ordinal int64) {
			r.log.Debug("segment compared with Kafka", append(line(l), zap.Int64("ordinal", ordinal))...)
		},
		Anchored: func(a pipeline.Anchor) {
			r.addAnchor(a)
			r.log.Debug("anchor", append(line(a.Line), zap.Int64("number", a.Number), zap.Int64("ordinal", a.Ordinal), zap.Int64("bytes", a.Bytes),
				zap.Duration("took", a.Took), zap.Bool("adopted", a.Adopted))...)
		},
		CopyFailed: func(_ archive.Line, what string, err error) {
			r.often.Warn("anchors are in the bucket alone: "+what, zap.Error(err))
		},
		Stopped: func(l archive.Line, err error) {
			r.log.Error("partition stopped; others go on", append(line(l), zap.Error(err))...)
		},
		Offsets: func(pipeline.OffsetCommit) {}, // for traces; what fails is a warning
		SecondLog: func(tenant string, l archive.Line) {
			r.often.Warn("a tenant has records in more than one partition of the topic, and so more than one log", r.withTenant(l, tenant)...)
		},
		Warn: func(what string, err error) { r.often.Warn(what, zap.Error(err)) },
	}
}

func line(l archive.Line) []zap.Field {
	return []zap.Field{zap.String("topic", l.Topic), zap.Int32("partition", l.Partition)}
}

func (r *report) withTenant(l archive.Line, tenant string) []zap.Field {
	if !r.tenants {
		return line(l)
	}
	return append(line(l), zap.String("tenant", tenant))
}

// add counts a segment.
func (r *report) add(c pipeline.Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interval.add(c)
	r.life.add(c)
}

// addAnchor counts an anchor; one that another process wrote is no work of ours.
func (r *report) addAnchor(a pipeline.Anchor) {
	if a.Adopted {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interval.anchors++
	r.life.anchors++
}

// add counts a segment; one that another process wrote is no work of ours.
func (s *sums) add(c pipeline.Commit) {
	if c.Adopted {
		s.adopted++
		return
	}
	s.segments++
	s.rows += c.Rows
	s.duplicates += c.Duplicates
	s.bytes += c.Bytes
	if s.rejects == nil {
		s.rejects = map[audit.Reason]int64{}
	}
	for reason, n := range c.Rejects {
		s.rejects[reason] += n
	}
}

// fields returns the sums for a line of the log. rejects are also rows.
func (s *sums) fields() []zap.Field {
	var rejects int64
	for n := range maps.Values(s.rejects) {
		rejects += n
	}
	fields := []zap.Field{
		zap.Int64("rows", s.rows), zap.Int64("rejects", rejects), zap.Int64("duplicates", s.duplicates),
		zap.Int64("segments", s.segments), zap.Int64("bytes", s.bytes),
	}
	if s.anchors > 0 {
		fields = append(fields, zap.Int64("anchors", s.anchors))
	}
	if s.adopted > 0 {
		fields = append(fields, zap.Int64("adopted", s.adopted))
	}
	if rejects > 0 {
		fields = append(fields, zap.Any("reasons", s.rejects))
	}
	return fields
}

// progress logs the sums of each interval until ctx is done.
func (r *report) progress(ctx context.Context, every time.Duration) {
	if every == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.log.Info("progress", r.take()...)
		}
	}
}

// take returns the sums of the interval and begins the next.
func (r *report) take() []zap.Field {
	r.mu.Lock()
	defer r.mu.Unlock()
	fields := r.interval.fields()
	r.interval = sums{}
	return fields
}

// total returns the sums since the start.
func (r *report) total() []zap.Field {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.life.fields()
}

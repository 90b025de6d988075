package main

import (
	"sync"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/export/stream"
)

// A streamReport turns what the engine does into lines of a log and into sums. It
// never sees payload; tenant ids it only shows where it was told to.
type streamReport struct {
	log     *zap.Logger
	often   *zap.Logger // sampled
	tenants bool

	mu            sync.Mutex
	interval, all streamSums
}

// streamSums are what was done in some time.
type streamSums struct{ rows, events, bytes, retries, dead int64 }

func newStreamReport(log *zap.Logger, tenants bool) *streamReport {
	return &streamReport{log: log, often: daemon.Sampled(log), tenants: tenants}
}

func (r *streamReport) add(n streamSums) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range []*streamSums{&r.interval, &r.all} {
		s.rows, s.events, s.bytes, s.retries, s.dead = s.rows+n.rows, s.events+n.events, s.bytes+n.bytes, s.retries+n.retries, s.dead+n.dead
	}
}

func (s *streamSums) fields() []zap.Field {
	return []zap.Field{zap.Int64("rows", s.rows), zap.Int64("events", s.events), zap.Int64("bytes", s.bytes), zap.Int64("retries", s.retries), zap.Int64("dead", s.dead)}
}

func (r *streamReport) life() []zap.Field {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.fields()
}

// progress logs what was done since the last time, and how each destination stands.
func (r *streamReport) progress(all []stream.Standing) {
	r.mu.Lock()
	fields := r.interval.fields()
	r.interval = streamSums{}
	r.mu.Unlock()
	r.log.Info("progress", fields...)
	for _, s := range all {
		f := []zap.Field{zap.String("destination", s.Name), zap.String("state", s.State), zap.Int64("rowsToGo", s.Rows), zap.Int64("segmentsToGo", s.Segments), zap.Int("stoppedLogs", s.Stopped)}
		if !s.Oldest.IsZero() {
			f = append(f, zap.Time("oldest", s.Oldest))
		}
		if s.LastError != "" {
			f = append(f, zap.String("lastError", s.LastError))
		}
		r.log.Info("destination", f...)
	}
}

func at(destination string, l archive.Line) []zap.Field {
	return []zap.Field{zap.String("destination", destination), zap.String("topic", l.Topic), zap.Int32("partition", l.Partition)}
}

func (r *streamReport) of(destination string, l archive.Line, tenant string) []zap.Field {
	f := at(destination, l)
	if r.tenants {
		f = append(f, zap.String("tenant", tenant))
	}
	return f
}

// events returns the funcs that the engine calls.
func (r *streamReport) events() stream.Events {
	return stream.Events{
		Changed: func(s stream.State) {
			f := []zap.Field{zap.String("destination", s.Name), zap.String("change", s.Change), zap.String("state", s.State), zap.String("by", s.By)}
			if s.Reason != "" {
				f = append(f, zap.String("reason", s.Reason))
			}
			if s.State == stream.Suspended || s.State == stream.Invalid {
				r.log.Error("destination", f...)
				return
			}
			r.log.Info("destination", f...)
		},
		Delivered: func(d string, l archive.Line, n stream.Delivery) {
			r.add(streamSums{rows: int64(n.Rows), events: int64(n.Events), bytes: n.Bytes})
			r.log.Debug("delivered", append(at(d, l), zap.Int("rows", n.Rows), zap.Int("events", n.Events), zap.Int64("bytes", n.Bytes), zap.Duration("took", n.Took))...)
		},
		Retry: func(d string, l archive.Line, w stream.Wait) {
			r.add(streamSums{retries: 1})
			r.often.Warn("not delivered; trying again", append(at(d, l), zap.Int("attempt", w.Attempt), zap.Int("events", w.Events), zap.String("reason", w.Reason), zap.Duration("in", w.For))...)
		},
		Dead: func(d string, l archive.Line, n stream.Letter) {
			r.add(streamSums{dead: 1})
			r.often.Error("dead letter", append(r.of(d, l, n.Tenant), zap.Int64("seq", n.Seq), zap.String("id", n.ID), zap.String("reason", n.Reason))...)
		},
		Stopped: func(d string, l archive.Line, tenant string, err error) {
			f := r.of(d, l, tenant)
			if r.tenants {
				f = append(f, zap.Error(err))
			}
			r.often.Error("a log waits; others go on: ledgerlake-export status, and log-tenants, say more", f...)
		},
		Dropped: func(d string, l archive.Line, tenant string, from, to int64) {
			r.often.Warn("rows were dropped by retention before they were delivered", append(r.of(d, l, tenant), zap.Int64("from", from), zap.Int64("to", to))...)
		},
		Repeating: func(d string, l archive.Line, err error) {
			r.log.Warn("another exporter has moved the cursors: what was delivered since is repeated", append(at(d, l), zap.Error(err))...)
		},
		Warn: func(d, what string, err error) { r.often.Warn(what, zap.String("destination", d), zap.Error(err)) },
	}
}

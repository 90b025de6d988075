package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
)

// A report turns what compaction does into lines of a log and into sums. It never
// sees payload; tenant ids it only shows where it was told to.
type report struct {
	log     *zap.Logger
	often   *zap.Logger // sampled
	tenants bool

	mu  sync.Mutex
	sum sums
}

// sums are what was done since the start.
type sums struct {
	passes, segments, rows, files, erased, dropped, deleted, deletedBytes, kept, aborted int64
}

func newReport(log *zap.Logger, tenants bool) *report {
	return &report{log: log, often: daemon.Sampled(log), tenants: tenants}
}

func lineFields(l archive.Line) []zap.Field {
	return []zap.Field{zap.String("topic", l.Topic), zap.String("topicId", l.TopicID), zap.Int32("partition", l.Partition)}
}

// events returns the funcs that an engine calls.
func (r *report) events() compaction.Events {
	return compaction.Events{
		Ended:  func(*compaction.Result, error) {}, // the others say it
		Passed: r.passed,
		Halted: func(l archive.Line, err error) {
			r.often.Error("line is halted; others go on", append(lineFields(l), zap.Error(err))...)
		},
		Raced: func(l archive.Line, version int64) {
			r.often.Info("another compactor was faster", append(lineFields(l), zap.Int64("version", version))...)
		},
		Deleted: func(l archive.Line, objects, bytes int64) {
			r.log.Debug("deleted", append(lineFields(l), zap.Int64("objects", objects), zap.Int64("bytes", bytes))...)
		},
		Kept: func(l archive.Line, k archive.Kept) {
			r.often.Warn("an object cannot be deleted; trying again", append(lineFields(l), zap.String("key", r.key(k.Key)), zap.String("version", k.ID), zap.Error(k.Err))...)
		},
		Warn: func(l archive.Line, text string, err error) {
			r.often.Warn(text, append(lineFields(l), zap.Error(err))...)
		},
	}
}

// key is that of an object, without the tenant where it is not to be shown.
func (r *report) key(key string) string {
	if rest, ok := strings.CutPrefix(key, archive.DataPrefix); ok && !r.tenants {
		_, rest, _ = strings.Cut(rest, "/")
		return archive.DataPrefix + "…/" + rest
	}
	return key
}

// passed counts a pass, and tells of one that did something.
func (r *report) passed(p *compaction.Result) {
	r.mu.Lock()
	s := &r.sum
	s.passes++
	s.segments += p.Segments
	s.rows += p.Rows
	s.files += p.Files
	s.erased += p.Erased
	s.dropped += p.Dropped
	s.deleted += p.Deleted
	s.deletedBytes += p.DeletedBytes
	s.aborted += p.Aborted
	s.kept += int64(len(p.Kept))
	r.mu.Unlock()
	for _, why := range p.Refused {
		r.often.Warn("a cut waits: "+why, lineFields(p.Line)...)
	}
	if !p.Wrote && p.Deleted == 0 {
		return
	}
	fields := lineFields(p.Line)
	if p.Catalog != nil {
		fields = append(fields, zap.Int64("version", p.Catalog.Version), zap.Int64("watermark", p.Catalog.Watermark))
	}
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"segments", p.Segments},
		{"rows", p.Rows},
		{"files", p.Files},
		{"bytes", p.FileBytes},
		{"merged", p.Merged},
		{"rewritten", p.Rewritten},
		{"erased", p.Erased},
		{"dropped", p.Dropped},
		{"doomed", p.Doomed},
		{"strays", p.Strays},
		{"deleted", p.Deleted},
		{"repeats", p.Repeats},
	} {
		if f.n > 0 {
			fields = append(fields, zap.Int64(f.name, f.n))
		}
	}
	if n := len(p.Keyless); n > 0 {
		fields = append(fields, zap.Int("keylessLogs", n))
	}
	r.log.Info("compacted", fields...)
}

// expires tells of what was ordered by policy.
func (r *report) expires(x *compaction.Expiry) {
	fields := lineFields(x.Line)
	if r.tenants {
		fields = append(fields, zap.String("tenant", x.Tenant))
	}
	if x.Cut != nil {
		r.log.Info("rows are to go by policy", append(fields[:len(fields):len(fields)], zap.String("id", x.CutID), zap.String("policy", x.Cut.Policy),
			zap.Int64("size", x.Cut.Size), zap.Int64("rows", x.Cutting.Rows), zap.Int64("bytes", x.Cutting.Bytes))...)
	}
	for _, p := range x.Payloads {
		r.log.Info("content is to go by policy", append(fields[:len(fields):len(fields)], zap.String("id", p.ID), zap.String("policy", p.Redaction.Reason),
			zap.Int64("below", *p.Redaction.Target.Before), zap.Int64("rows", p.Of.Rows), zap.Int64("bytes", p.Of.Bytes))...)
	}
}

func (r *report) total() []zap.Field {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.sum
	return []zap.Field{
		zap.Int64("passes", s.passes), zap.Int64("segments", s.segments), zap.Int64("rows", s.rows), zap.Int64("files", s.files),
		zap.Int64("erased", s.erased), zap.Int64("dropped", s.dropped), zap.Int64("deleted", s.deleted), zap.Int64("kept", s.kept),
	}
}

// words is what a single run says at its end.
func (r *report) words() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.sum
	text := fmt.Sprintf("%s: %s of %s compacted, %s written; %s erased, %s dropped; %s deleted (%s)",
		passes(s.passes), counted(s.rows, "row"), counted(s.segments, "segment"), counted(s.files, "file"),
		counted(s.erased, "row"), counted(s.dropped, "row"), counted(s.deleted, "object"), config.FormatBytes(s.deletedBytes))
	if s.kept > 0 {
		text += fmt.Sprintf("; %s could not be deleted", counted(s.kept, "version"))
	}
	return text
}

func passes(n int64) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}

func sortedLines(failed map[archive.Line]error) []archive.Line {
	return slices.SortedFunc(maps.Keys(failed), func(a, b archive.Line) int {
		return strings.Compare(fmt.Sprintf("%s/%s/%010d", a.Topic, a.TopicID, a.Partition), fmt.Sprintf("%s/%s/%010d", b.Topic, b.TopicID, b.Partition))
	})
}

// merge returns events that two hear, a first.
func merge(a, b compaction.Events) compaction.Events {
	return compaction.Events{
		Ended:   func(r *compaction.Result, err error) { a.Ended(r, err); b.Ended(r, err) },
		Passed:  func(r *compaction.Result) { a.Passed(r); b.Passed(r) },
		Halted:  func(l archive.Line, err error) { a.Halted(l, err); b.Halted(l, err) },
		Raced:   func(l archive.Line, v int64) { a.Raced(l, v); b.Raced(l, v) },
		Deleted: func(l archive.Line, objects, bytes int64) { a.Deleted(l, objects, bytes); b.Deleted(l, objects, bytes) },
		Kept:    func(l archive.Line, k archive.Kept) { a.Kept(l, k); b.Kept(l, k) },
		Warn:    func(l archive.Line, text string, err error) { a.Warn(l, text, err); b.Warn(l, text, err) },
	}
}

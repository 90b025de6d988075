package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/s3sink"
	"github.com/ledgerlake/ledgerlake/telemetry"
)

// A process is one run: what it works with, and what it tells.
type process struct {
	*tool
	health   *health
	metrics  *metrics
	report   *report
	group    *group // nil where none is joined
	governor *compaction.Governor
	waits    map[archive.Line]*wait
	lines    []archive.Line // that were this process's last
	engine   *compaction.Engine
	traces   *telemetry.Tracer // nil: nobody takes any
}

// A wait is how long a line that failed is left alone.
type wait struct {
	attempt int
	until   time.Time
}

// newProcess finds what is wrong with the settings without reaching anything.
func newProcess(ctx context.Context, in invocation, c *config.Compact, origins config.Origins) (*process, error) {
	if err := c.Check(origins); err != nil {
		return nil, err
	}
	if err := c.CheckSigning(origins); err != nil {
		return nil, err
	}
	p := &process{health: &health{every: c.Every}, waits: map[archive.Line]*wait{}}
	p.metrics = newMetrics(p.health)
	t, err := newTool(ctx, in, c, origins, p.metrics.Requested)
	if err != nil {
		return nil, err
	}
	p.tool, p.report = t, newReport(t.log, c.Log.Tenants)
	return p, nil
}

// begin opens the archive, and makes ready what signs.
func (p *process) begin(ctx context.Context, once bool) error {
	if err := p.tool.open(ctx); err != nil {
		return err
	}
	err := daemon.Consult(ctx, p.log, func() ([]s3sink.Finding, error) { return p.consult(ctx, false) })
	if err != nil {
		return err
	}
	if err := p.keys.Begin(ctx, p.root.ArchiveID, p.bucket, nil); err != nil {
		return err
	}
	daemon.BoundHeap(p.settings.Memory + p.settings.Memory/4 + 64<<20)
	p.engine = p.tool.engine(traced(p.traces, merge(p.report.events(), p.metrics.events())), once)
	sends := p.settings.Assign != config.AssignOffline
	p.governor = p.tool.governor(p.engine, sends)
	if !sends {
		return nil
	}
	err = daemon.UntilAnswered(ctx, p.log, func() error { return p.maySign(ctx, p.governor) })
	if fault := (*config.Error)(nil); errors.As(err, &fault) || ctx.Err() != nil {
		return err
	}
	p.vouched(ctx)
	return nil // what else is wrong with the archive, the first cycle says
}

// runLoop is the command run.
func runLoop(ctx context.Context, in invocation) error {
	var c config.Compact
	origins, done, err := load(in, &c, config.Section{}, anySetting, runHelp)
	if done || err != nil {
		return err
	}
	p, err := newProcess(ctx, in, &c, origins)
	if err != nil {
		return err
	}
	if p.traces, err = daemon.Traces(ctx, p.log, in.environ, program, version); err != nil {
		return err
	}
	return p.run(ctx)
}

// run works until ctx is done. Who asks is answered from the first moment on.
func (p *process) run(ctx context.Context) error {
	listener, err := daemon.Listen(p.log, p.settings.HTTP, p.origins)
	if err != nil {
		return err
	}
	defer daemon.Serve(listener, p.health, p.metrics.Registry)()
	defer context.AfterFunc(ctx, func() { p.health.stop() })()
	defer p.close()
	if err := p.begin(ctx, false); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if p.settings.Assign == config.AssignGroup {
		if p.group, err = p.join(); err != nil {
			return err
		}
		defer p.group.leave()
	}
	p.log.Info("compact starts", zap.String("version", version), zap.Stringer("bucket", p.bucket), zap.String("assign", p.settings.Assign), zap.Strings("topics", p.settings.Topics))
	err = daemon.Within(ctx, p.settings.ShutdownTimeout, func() error {
		defer p.traces.Close(p.settings.ShutdownTimeout / 10)
		return p.cycles(ctx)
	})
	p.log.Info("compact ends", append(p.report.total(), zap.Bool("clean", err == nil))...)
	return err
}

// cycles works through the lines, again and again: at once where it was given some.
func (p *process) cycles(ctx context.Context) error {
	for ctx.Err() == nil {
		more := p.cycle(ctx)
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-p.group.given():
		case <-time.After(p.settings.Every):
		}
	}
	return nil
}

// cycle works through the lines once. What fails is told, and tried again later.
func (p *process) cycle(ctx context.Context) (more bool) {
	lines, lead, err := p.mine(ctx)
	if err == nil && (len(lines) > 0 || lead) {
		var c *compaction.Cycle
		c, err = p.governor.Cycle(ctx, lines, lead)
		more = p.took(c)
	}
	if ctx.Err() != nil {
		return false
	}
	p.health.cycled(err)
	p.metrics.cycled(err)
	switch {
	case errors.Is(err, archive.ErrCatalog):
		p.often.Error("nothing is done while the control log cannot be read: what it orders and forbids is not known", zap.Error(err))
	case err != nil:
		p.often.Warn("not all is done; trying again", zap.Error(err))
	}
	return more && err == nil
}

// mine returns the lines that this process works on, without those that failed a
// moment ago.
func (p *process) mine(ctx context.Context) (lines []archive.Line, lead bool, err error) {
	all, err := p.governor.Lines(ctx)
	if err != nil {
		return nil, false, err
	}
	lead = true
	if p.group != nil {
		if !p.group.member() {
			return nil, false, nil
		}
		share, err := p.group.share(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("partitions of the group: %w", err)
		}
		lead = share.Leads()
		all = slices.DeleteFunc(slices.Clone(all), func(l archive.Line) bool { return !share.Has(l) })
	}
	for _, l := range p.lines {
		if !slices.Contains(all, l) {
			p.engine.Forget(l) // it is another's now
		}
	}
	p.lines = all
	p.health.share(all, lead)
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(all), func(l archive.Line) bool { w := p.waits[l]; return w != nil && now.Before(w.until) }), lead, nil
}

// took tells of what a cycle did.
func (p *process) took(c *compaction.Cycle) (more bool) {
	if c == nil {
		return false
	}
	for _, r := range c.Results {
		delete(p.waits, r.Line)
	}
	for l, err := range c.Failed {
		w := p.waits[l]
		if w == nil {
			w = &wait{}
			p.waits[l] = w
		}
		w.attempt++
		w.until = time.Now().Add(backOff(w.attempt, p.settings.Every))
		if !halted(err) {
			p.often.Warn("line failed; trying again", append(lineFields(l), zap.Error(err))...)
		}
	}
	p.health.took(c)
	p.metrics.took(c)
	if c.Sent > 0 {
		p.log.Info("control records sent", zap.Int("records", c.Sent))
	}
	for _, x := range c.Expiries {
		p.report.expires(x)
	}
	return c.More
}

// backOff returns how long a line that failed so often in a row is left alone.
func backOff(attempt int, every time.Duration) time.Duration {
	return min(every<<min(attempt-1, 6), 10*time.Minute)
}

// once is the command that does what is due now.
func once(ctx context.Context, in invocation) error {
	var c config.Compact
	origins, done, err := load(in, &c, config.Section{}, func(s config.Setting) bool {
		return !slices.Contains([]string{"topics", "topic-pattern", "compact.group", "compact.every", "http.listen", "progress", "shutdown-timeout", "compact.sweep-every", "compact.min-segments", "compact.max-age"}, s.Name)
	}, onceHelp)
	if done || err != nil {
		return err
	}
	if c.Assign == config.AssignGroup {
		c.Assign = config.AssignAll
	}
	p, err := newProcess(ctx, in, &c, origins)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.begin(ctx, true); err != nil {
		return err
	}
	return p.onceThrough(ctx, in)
}

// onceCycles bounds how often all lines are worked through: what is left then is
// told.
const onceCycles = 1000

func (p *process) onceThrough(ctx context.Context, in invocation) error {
	failed := map[archive.Line]error{}
	var last *compaction.Cycle
	for range onceCycles {
		lines, err := p.governor.Lines(ctx)
		if err != nil {
			return err
		}
		c, err := p.governor.Cycle(ctx, slices.DeleteFunc(slices.Clone(lines), func(l archive.Line) bool { return failed[l] != nil }), true)
		if c != nil {
			p.metrics.took(c)
			for _, x := range c.Expiries {
				p.report.expires(x)
			}
			for l, err := range c.Failed {
				failed[l] = err
			}
			last = c
		}
		if err != nil {
			return err
		}
		if !c.More {
			break
		}
	}
	if _, err := fmt.Fprintln(in.stdout, p.report.words()); err != nil {
		return err
	}
	return verdict(failed, last)
}

// verdict is the error of a single run.
func verdict(failed map[archive.Line]error, c *compaction.Cycle) error {
	var errs []error
	for _, l := range sortedLines(failed) {
		errs = append(errs, fmt.Errorf("%s/%d: %w", l.Topic, l.Partition, failed[l]))
	}
	if errs != nil {
		return errors.Join(errs...)
	}
	overdue := int64(0)
	for i := range c.Standing {
		if c.Standing[i].Overdue {
			overdue++
		}
	}
	if overdue > 0 {
		return fmt.Errorf("%w: %s without a receipt; ledgerlake-compact erasures says which", errOverdue, counted(overdue, "order"))
	}
	return nil
}

// patterns returns regular expressions of whole names.
func patterns(topics []string, pattern string) []string {
	all := []string{"^(?:" + pattern + ")$"}
	for _, t := range topics {
		all = append(all, "^"+regexp.QuoteMeta(t)+"$")
	}
	return all
}

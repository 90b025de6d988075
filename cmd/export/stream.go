package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/s3sink"
	"github.com/ledgerlake/ledgerlake/telemetry"
)

const streamHelp = `ledgerlake-export stream sends the rows of an archive to destinations, for as long as it runs.

  ledgerlake-export stream --config export.yaml --bucket s3://audit

The file lists destinations (docs/destination-settings.md):

  destinations:
    - name: siem
      type: s3
      url: s3://siem-in/audit
      format: ocsf-1.8

Each row arrives at least once, in the order of its log, checked by its hash, without what is ordered to be erased. How far
a destination is stands in the bucket (export/NAME/), and moves only by what was acknowledged: the process may be killed at
any time, and several may run, of which one has a destination at a time. A cursor that does not match the archive ends the
start with exit code 1 and names the place; later it stops that log alone.

/healthz, /readyz and /metrics are at --http.listen. docs/streams.md explains what is delivered when.
`

// streams is the command that delivers.
func streams(ctx context.Context, c call) (int, error) {
	health := &health{}
	m := newStreamMetrics(health)
	e, err := newExporter(ctx, c, config.Section{}, anySetting, streamHelp, m.Requested)
	if e == nil || err != nil {
		return failed(err), err
	}
	if len(e.destinations) == 0 {
		err := &config.Error{Name: config.DestinationsKey, Fault: "none are set: list them in the file that --config names (docs/destination-settings.md)"}
		return exitCannotRun, err
	}
	traces, err := daemon.Traces(ctx, e.log, c.environ, program, version)
	if err != nil {
		return failed(err), err
	}
	p := &streaming{traces: traces, exporter: e, health: health, metrics: m, report: newStreamReport(e.log, e.settings.Log.Tenants)}
	return p.run(ctx)
}

// A streaming is one run of the command.
type streaming struct {
	*exporter
	health  *health
	metrics *streamMetrics
	report  *streamReport
	auditor *auditor          // nil: changes are not recorded
	traces  *telemetry.Tracer // nil: nobody takes any
}

func (p *streaming) run(ctx context.Context) (int, error) {
	var err error
	if p.auditor, err = p.newAuditor(ctx); err != nil {
		return failed(err), err
	}
	if p.auditor == nil {
		p.log.Warn("changes of destinations are logged, and not recorded in the archive: set stream.audit-topic and stream.audit-tenant")
	}
	listener, err := daemon.Listen(p.log, p.settings.HTTP, p.origins)
	if err != nil {
		return failed(err), err
	}
	defer daemon.Serve(listener, p.health, p.metrics.Registry)()
	defer context.AfterFunc(ctx, p.health.stop)()
	err = p.deliver(ctx)
	if ctx.Err() != nil && !errors.Is(err, daemon.ErrNotStopped) && !errors.Is(err, stream.ErrCursor) && !errors.Is(err, stream.ErrDocument) {
		return exitDone, nil
	}
	if errors.Is(err, daemon.ErrNotStopped) {
		return exitTampered, err
	}
	return failed(err), err
}

func (p *streaming) deliver(ctx context.Context) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	if err := daemon.Consult(ctx, p.log, func() ([]s3sink.Finding, error) { return s3sink.DoctorExport(ctx, p.bucket) }); err != nil {
		return err
	}
	daemon.BoundHeap(p.settings.Memory + p.settings.Memory/2 + 64<<20)
	s, destinations := p.streamed(ctx)
	s.Events = tracedStream(p.traces, p.events())
	engine := stream.New(s, destinations)
	if err := p.checkCursors(ctx, engine); err != nil {
		return err
	}
	p.health.begin(engine)
	defer p.auditor.begin(ctx)()
	p.log.Info("export starts", zap.String("version", version), zap.Stringer("bucket", p.bucket), zap.Int("destinations", len(destinations)), zap.String("id", s.ID))
	defer p.sumUp(ctx)()
	err := daemon.Within(ctx, p.settings.ShutdownTimeout, func() error {
		defer p.traces.Close(p.settings.ShutdownTimeout / 10)
		return engine.Run(ctx)
	})
	p.log.Info("export ends", append(p.report.life(), zap.Bool("clean", !errors.Is(err, daemon.ErrNotStopped)))...)
	return err
}

// checkCursors ends the start where a cursor is not one of this archive.
func (p *streaming) checkCursors(ctx context.Context, engine *stream.Engine) error {
	var mu sync.Mutex
	var faults []error
	err := daemon.UntilAnswered(ctx, p.log, func() error {
		faults = nil
		return engine.CheckCursors(ctx, func(_ string, _ archive.Line, err error) {
			mu.Lock()
			defer mu.Unlock()
			faults = append(faults, err)
		})
	})
	if err != nil {
		p.log.Warn("cursors could not be held against the archive at the start; each log is held against it when it is read", zap.Error(err))
	}
	const most = 20
	for _, fault := range faults[:min(len(faults), most)] {
		p.log.Error("what a destination left does not fit", zap.Error(fault))
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s: %w; nothing was sent: restore what was changed, or remove the cursor, and its destination gets all of the line once more", proof.Count(int64(len(faults)), "fault"), faults[0])
	}
	return nil
}

// sumUp logs sums from time to time.
func (p *streaming) sumUp(ctx context.Context) (stop func()) {
	every := p.settings.Log.Progress
	if every <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				p.report.progress(p.health.standings())
			}
		}
	}()
	return cancel
}

// events returns the funcs that the engine calls.
func (p *streaming) events() stream.Events {
	log, counted := p.report.events(), p.metrics.events()
	return stream.Events{
		Changed: func(s stream.State) { log.Changed(s); p.auditor.record(s) },
		Delivered: func(d string, l archive.Line, n stream.Delivery) {
			log.Delivered(d, l, n)
			counted.Delivered(d, l, n)
		},
		Retry: func(d string, l archive.Line, w stream.Wait) { log.Retry(d, l, w); counted.Retry(d, l, w) },
		Dead:  func(d string, l archive.Line, n stream.Letter) { log.Dead(d, l, n); counted.Dead(d, l, n) },
		Dropped: func(d string, l archive.Line, tenant string, from, to int64) {
			log.Dropped(d, l, tenant, from, to)
			counted.Dropped(d, l, tenant, from, to)
		},
		Stopped: log.Stopped, Repeating: log.Repeating, Warn: log.Warn,
	}
}

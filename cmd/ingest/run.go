package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/redact"
	"github.com/ledgerlake/ledgerlake/s3sink"
	"github.com/ledgerlake/ledgerlake/signing"
	"github.com/ledgerlake/ledgerlake/telemetry"
)

// ingest is the command run: it archives until ctx is done.
func ingest(ctx context.Context, in invocation) error {
	var s config.Ingest
	all := s.Sections()
	origins, err := config.Load(all, all, config.Input{Args: in.args, Environ: in.environ})
	if errors.Is(err, config.ErrHelp) {
		return writeHelp(in.stdout, runHelp, all)
	}
	if err != nil {
		return err
	}
	p, err := newProcess(ctx, &s, origins, in.stderr)
	if err != nil {
		return err
	}
	if p.traces, err = daemon.Traces(ctx, p.log, in.environ, program, version); err != nil {
		return err
	}
	return p.run(ctx)
}

// A process is one run of ingest: what it was told, and what it tells.
type process struct {
	settings     *config.Ingest
	origins      config.Origins
	log          *zap.Logger
	often        *zap.Logger // sampled
	health       *health
	metrics      *metrics
	kafka        []kgo.Opt // how to connect
	bucket       *s3sink.Bucket
	anchorBucket *s3sink.Bucket // nil: there is none
	keys         *signing.Keys
	master       []byte            // of keyed logs
	logKeys      chain.Keys        // of those with keys of their own
	scrub        *redact.Policy    // nil: nothing is scrubbed
	traces       *telemetry.Tracer // nil: nobody takes any
}

// newProcess finds what is wrong with the settings without reaching anything.
func newProcess(ctx context.Context, s *config.Ingest, origins config.Origins, stderr io.Writer) (p *process, err error) {
	if err := check(s, origins); err != nil {
		return nil, err
	}
	log := daemon.NewLogger(stderr, s.Log)
	p = &process{settings: s, origins: origins, log: log, often: daemon.Sampled(log), health: &health{readyAge: s.HTTP.ReadyAge}}
	p.metrics = newMetrics(p.health.status, s.HTTP)
	p.metrics.Ready(func() bool { return p.health.ready(time.Now()).Ready })
	if p.keys, err = signing.New(log, signing.Anchors, s.Keys, origins); err != nil {
		return nil, err
	}
	p.kafka, err = connection(ctx, s, origins, func(what string, err error) { p.often.Warn(what, zap.Error(err)) })
	if err != nil {
		return nil, err
	}
	p.kafka = append(p.kafka, kgo.WithHooks(clientHooks{p.metrics}))
	if p.master, p.logKeys, err = s.Chain.Keys(origins); err != nil {
		return nil, err
	}
	if p.scrub, err = config.ReadScrubPolicy(s.ScrubPolicy, origins); err != nil {
		return nil, err
	}
	s.S3.OnRequest = p.metrics.Requested
	if p.bucket, err = openBucket(ctx, s); err != nil {
		return nil, err
	}
	p.anchorBucket, err = openSecond(ctx, &s.Anchors, origins)
	return p, err
}

// run archives until ctx is done. Who asks is answered from the first moment to
// the last: also while the bucket does not answer, and while it stops.
func (p *process) run(ctx context.Context) error {
	listener, err := daemon.Listen(p.log, p.settings.HTTP, p.origins)
	if err != nil {
		return err
	}
	defer daemon.Serve(listener, p.health, p.metrics.Registry)()
	defer context.AfterFunc(ctx, p.stopping)()
	s := p.pipelineSettings()
	if err := p.ready(ctx, &s); err != nil {
		if ctx.Err() != nil {
			p.log.Info("ingest ends before it has begun", zap.Error(err))
			return nil
		}
		return err
	}
	go warnings(ctx, p.log, p.settings, p.kafka)
	r := newReport(p.log, p.settings.Log.Tenants)
	engine := pipeline.New(s, traced(p.traces, merge(r.events(), p.metrics.events())))
	p.health.begin(engine.Status)
	return p.archive(ctx, r, engine)
}

// ready sees to it that the bucket may hold an archive, and that what signs may
// sign.
func (p *process) ready(ctx context.Context, s *pipeline.Settings) error {
	if err := examine(ctx, p.log, s, p.bucket); err != nil {
		return err
	}
	if err := p.keys.Begin(ctx, s.Root.ArchiveID, s.Archive, s.AnchorCopy); err != nil {
		return err
	}
	s.Keys, s.AnchorKeys, s.Signers = p.keys.Ring(), p.keys.Says(), p.keys.Signers()
	return nil
}

// stopping says that this process takes nothing new.
func (p *process) stopping() {
	p.health.stopping.Store(true)
	p.log.Info("stopping", zap.Duration("within", p.settings.ShutdownTimeout))
}

// check finds the faults that no setting shows alone.
func check(s *config.Ingest, origins config.Origins) error {
	if err := audit.CheckPromptPaths(s.PromptPaths); err != nil {
		return &config.Error{Name: "prompt-paths", Source: origins["prompt-paths"], Fault: err.Error()}
	}
	return s.Check(origins)
}

// openBucket opens the bucket.
func openBucket(ctx context.Context, s *config.Ingest) (*s3sink.Bucket, error) {
	return daemon.OpenBucket(ctx, s.Bucket, s.Store())
}

// openSecond opens the bucket that anchors are copied to, nil where there is none.
func openSecond(ctx context.Context, a *config.Anchors, origins config.Origins) (*s3sink.Bucket, error) {
	if a.Bucket == "" {
		return nil, nil
	}
	bucket, err := s3sink.Open(ctx, a.Bucket, a.S3)
	if err != nil {
		return nil, &config.Error{Name: "anchor-bucket", Source: origins["anchor-bucket"], Fault: err.Error()}
	}
	return bucket, nil
}

// second returns the second bucket as the pipeline wants it.
func (p *process) second() archive.Bucket {
	if p.anchorBucket == nil {
		return nil
	}
	return p.anchorBucket
}

func (p *process) pipelineSettings() pipeline.Settings {
	s := p.settings
	client := slices.Concat(p.kafka, membership(s, p.kafka), []kgo.Opt{kgo.WithLogger(daemon.ClientLog{To: p.often.Sugar()})})
	contexts := 0
	if p.traces != nil {
		contexts = mostLinks
	}
	return pipeline.Settings{
		TraceContexts:   contexts,
		Archive:         p.bucket,
		Client:          client,
		Topics:          s.Topics,
		TopicPattern:    s.TopicPattern,
		Assign:          assigned(s),
		TrustTail:       s.TrustTail,
		ControlTopic:    s.ControlTopic,
		Group:           s.Group,
		Batch:           pipeline.Batch(s.Batch),
		Memory:          s.Memory,
		Window:          s.Window,
		DLQTopic:        s.DLQTopic,
		KeyIsTenant:     s.KeyIsTenant,
		RetainPrompts:   s.RetainPrompts,
		PromptPaths:     s.PromptPaths,
		Scrub:           p.scrub,
		AnchorEvery:     s.Anchors.Every,
		AnchorRows:      int64(s.Anchors.Rows),
		AnchorTopic:     s.Anchors.Topic,
		AnchorCopy:      p.second(),
		TrustBucket:     s.Anchors.TrustBucket,
		KeyedTopics:     s.Chain.KeyedTopics,
		MasterKey:       p.master,
		LogKeys:         p.logKeys,
		ShutdownTimeout: s.ShutdownTimeout * 3 / 4, // the rest is for leaving Kafka
		Version:         version,
	}
}

func assigned(s *config.Ingest) []pipeline.Partition {
	var all []pipeline.Partition
	for _, p := range s.Assign {
		all = append(all, pipeline.Partition(p))
	}
	return all
}

// archive runs the pipeline and says how it begins, goes and ends.
func (p *process) archive(ctx context.Context, r *report, engine *pipeline.Ingest) error {
	s := p.settings
	p.log.Info("ingest starts", append([]zap.Field{
		zap.String("version", version), zap.String("bucket", p.bucket.String()), zap.Strings("brokers", s.Brokers), zap.String("group", s.Group), zap.String("scrubbing", p.scrub.ID()),
	}, sources(s)...)...)
	reporting, stop := context.WithCancel(context.Background())
	defer stop()
	go r.progress(reporting, s.Log.Progress)
	daemon.BoundHeap(s.Memory + s.Memory/4 + 64<<20)
	err := daemon.Within(ctx, s.ShutdownTimeout, func() error {
		defer p.traces.Close(s.ShutdownTimeout / 10)
		return engine.Run(ctx)
	})
	p.log.Info("ingest ends", append(r.total(), zap.Bool("clean", err == nil))...)
	return err
}

// sources says what is read.
func sources(s *config.Ingest) (fields []zap.Field) {
	if len(s.Topics) > 0 {
		fields = append(fields, zap.Strings("topics", s.Topics))
	}
	if s.TopicPattern != "" {
		fields = append(fields, zap.String("topicPattern", s.TopicPattern))
	}
	var partitions []string
	for _, a := range s.Assign {
		partitions = append(partitions, fmt.Sprint(a.Topic, "/", a.Number))
	}
	if partitions != nil {
		fields = append(fields, zap.Strings("partitions", partitions))
	}
	return fields
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/s3sink"
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
	if err := check(&s, origins); err != nil {
		return err
	}
	log := newLogger(in.stderr, s.Log)
	often := sampled(log)
	client, err := connection(ctx, &s, origins, func(what string, err error) { often.Warn(what, zap.Error(err)) })
	if err != nil {
		return err
	}
	h := &health{readyAge: s.HTTP.ReadyAge}
	m := newMetrics(h.status, s.HTTP)
	s.S3.OnRequest = m.requested
	bucket, err := openBucket(ctx, &s)
	if err != nil {
		return err
	}
	listener, err := listen(log, s.HTTP, origins)
	if err != nil {
		return err
	}
	defer serve(listener, h, m.registry)()
	defer context.AfterFunc(ctx, func() {
		h.stopping.Store(true)
		log.Info("stopping", zap.Duration("within", s.ShutdownTimeout))
	})()

	p := pipelineSettings(&s, bucket, slices.Concat(client, membership(&s), []kgo.Opt{kgo.WithLogger(clientLog{often.Sugar()})}))
	if err := examine(ctx, log, &p, bucket); err != nil {
		return err
	}
	go warnings(ctx, log, &s, client)
	r := newReport(log, s.Log.Tenants)
	engine := pipeline.New(p, merge(r.events(), m.events()))
	h.ingest.Store(engine)
	return archiveUntilDone(ctx, r, &s, bucket, engine)
}

// check finds the faults that no setting shows alone.
func check(s *config.Ingest, origins config.Origins) error {
	if err := audit.CheckPromptPaths(s.PromptPaths); err != nil {
		return &config.Error{Name: "prompt-paths", Source: origins["prompt-paths"], Fault: err.Error()}
	}
	return s.Check(origins)
}

// openBucket opens the bucket. All that can be wrong is a setting, because no
// request is made.
func openBucket(ctx context.Context, s *config.Ingest) (*s3sink.Bucket, error) {
	bucket, err := s3sink.Open(ctx, s.Bucket, s.S3)
	if err != nil {
		return nil, &config.Error{Name: "s3", Fault: err.Error()}
	}
	return bucket, nil
}

func pipelineSettings(s *config.Ingest, bucket *s3sink.Bucket, client []kgo.Opt) pipeline.Settings {
	return pipeline.Settings{
		Archive:         bucket,
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

// archiveUntilDone runs the pipeline and says how it begins, goes and ends.
func archiveUntilDone(ctx context.Context, r *report, s *config.Ingest, bucket *s3sink.Bucket, engine *pipeline.Ingest) error {
	r.log.Info("ingest starts", zap.String("version", version), zap.String("bucket", bucket.String()), zap.Strings("brokers", s.Brokers),
		zap.Strings("topics", s.Topics), zap.String("pattern", s.TopicPattern), zap.Any("assigned", s.Assign), zap.String("group", s.Group))
	reporting, stop := context.WithCancel(context.Background())
	defer stop()
	go r.progress(reporting, s.Log.Progress)
	boundHeap(2 * s.Memory)
	err := within(ctx, s.ShutdownTimeout, func() error { return engine.Run(ctx) })
	r.log.Info("ingest ends", append(r.total(), zap.Bool("clean", err == nil))...)
	return err
}

// errNotStopped: the clean stop took too long. Nothing is lost by it: the next
// owner of the partitions goes on where the bucket says that they end.
var errNotStopped = errors.New("not stopped in time; what is not durable is left to the next owner")

// within returns what run returns, or [errNotStopped] where it has not returned
// so long after ctx was done. run is then left behind, for the process to end.
func within(ctx context.Context, timeout time.Duration, run func() error) error {
	result := make(chan error, 1)
	go func() { result <- run() }()
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(timeout, func() { close(late) }) })()
	select {
	case err := <-result:
		return err
	case <-late:
		return fmt.Errorf("%w: shutdown-timeout is %v", errNotStopped, timeout)
	}
}

// boundHeap has the collector work harder before the heap passes limit, in
// bytes, unless GOMEMLIMIT says otherwise. Without it the heap grows to twice
// what is in use.
func boundHeap(limit int64) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(limit)
	}
}

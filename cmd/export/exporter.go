package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/kafka"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// An exporter is what the commands about destinations work with.
type exporter struct {
	settings     config.Stream
	origins      config.Origins
	log          *zap.Logger
	often        *zap.Logger // sampled
	bucket       *s3sink.Bucket
	root         archive.Root
	ring         *sign.Ring
	logKeys      chain.Keys
	destinations []config.Destination
}

// wanting keeps the settings that a command has a use for.
type wanting func(config.Setting) bool

func anySetting(config.Setting) bool { return true }

// looking keeps those of who only looks at what exporters left in the bucket.
func looking(s config.Setting) bool {
	return s.Name == "bucket" || strings.HasPrefix(s.Name, "s3.") || strings.HasPrefix(s.Name, "log-")
}

// newExporter reads the settings, and finds what is wrong with them without
// reaching anything. It is nil where help was asked for.
func newExporter(ctx context.Context, c call, own config.Section, keep wanting, help string, requests func(s3sink.Request)) (*exporter, error) {
	e := &exporter{}
	all := e.settings.Sections()
	offered := config.Select(all, keep)
	if own.Settings != nil {
		all, offered = append([]config.Section{own}, all...), append([]config.Section{own}, offered...)
	}
	in := config.Input{Args: c.args, Environ: c.environ}
	var err error
	if e.origins, err = config.Load(all, offered, in); errors.Is(err, config.ErrHelp) {
		return nil, writeHelp(c.stdout, help, offered)
	}
	if err != nil {
		return nil, err
	}
	if err := e.settings.Check(e.origins); err != nil {
		return nil, err
	}
	e.log = daemon.NewLogger(c.stderr, e.settings.Log)
	e.often = daemon.Sampled(e.log)
	if e.ring, err = e.good(); err != nil {
		return nil, err
	}
	master, logs, err := e.settings.Chain.Keys(e.origins)
	if err != nil {
		return nil, err
	}
	if e.logKeys = logs; master != nil {
		e.logKeys = logs.Or(chain.MasterKeys(master))
	}
	if path := config.FileOf(in); path != "" {
		if e.destinations, err = config.Destinations(path, c.environ); err != nil {
			return nil, err
		}
	}
	store := e.settings.S3
	store.OnRequest = requests
	e.bucket, err = daemon.OpenBucket(ctx, e.settings.Bucket, store)
	return e, err
}

// writeHelp writes a command's text and its flags.
func writeHelp(w io.Writer, text string, sections []config.Section) error {
	if _, err := io.WriteString(w, text+"\n"+codesInWords+"\nSettings:\n\n  --config FILE\n        A YAML file of settings, and of destinations. In the environment: LEDGERLAKE_CONFIG.\n\n"); err != nil {
		return err
	}
	config.WriteHelp(w, sections)
	return nil
}

// good returns the keys that are good by the settings.
func (e *exporter) good() (*sign.Ring, error) {
	ring := &sign.Ring{}
	s := &e.settings
	for _, k := range []struct {
		setting string
		vkeys   []string
		roles   sign.Role
	}{
		{"key", s.Good, sign.AllRoles},
		{"anchor-keys", s.Keys.Anchor, sign.Anchor},
		{"catalog-keys", s.Keys.Catalog, sign.Catalog},
		{"control-keys", s.Keys.Control, sign.Control},
	} {
		for _, vkey := range k.vkeys {
			if err := ring.Add(vkey, k.roles, "settings"); err != nil {
				return nil, &config.Error{Name: k.setting, Source: e.origins[k.setting], Fault: err.Error()}
			}
		}
	}
	return ring, nil
}

// open opens the archive. A store that does not answer is waited for.
func (e *exporter) open(ctx context.Context) error {
	err := daemon.UntilAnswered(ctx, e.log, func() (err error) { e.root, err = archive.OpenRoot(ctx, e.bucket); return err })
	if errors.Is(err, archive.ErrNotFound) {
		return fmt.Errorf("%s: no archive is there; the first start of ledgerlake-ingest makes it: %w", e.bucket, err)
	}
	if err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	return nil
}

// streamed returns the settings of an engine, and its destinations. A destination
// that cannot be opened is in it all the same, as one that is invalid.
func (e *exporter) streamed(ctx context.Context) (stream.Settings, []stream.Destination) {
	c := &e.settings
	s := stream.Settings{
		Archive: e.bucket, Root: e.root, Keys: e.ring, LogKeys: e.logKeys, ControlTopic: c.ControlTopic, Version: version,
		ID: rand.Text(), Memory: c.Memory, Poll: c.Poll, GovernEvery: c.GovernEvery, CursorEvery: c.CursorEvery, StandBy: c.StandBy,
		Now: time.Now, Jitter: jitter,
	}
	if s.Instance = c.Instance; s.Instance == "" {
		s.Instance, _ = os.Hostname()
	}
	var all []stream.Destination
	for i := range e.destinations {
		all = append(all, e.destination(ctx, &e.destinations[i]))
	}
	return s, all
}

func (e *exporter) destination(ctx context.Context, d *config.Destination) stream.Destination {
	to := stream.Destination{
		Name: d.Name, Type: d.Type, Spec: d.Spec, Format: d.Format, Limits: d.Limits, WithoutContent: !d.Content,
		Filter: stream.Filter{Tenants: d.Tenants, Kinds: d.Kinds, Stages: d.Stages, Status: d.Status},
		Block:  d.Block, MaxDead: d.MaxDead, Heads: d.Heads, Unverified: !d.Verify || e.settings.NoVerify, FromNow: d.FromNow,
		Linger: d.Linger, Stepwise: d.Stepwise,
	}
	d.Brokers, d.ArchiveID, d.Version, d.Archive = e.brokers, e.root.ArchiveID, version, e.bucket
	to.Sink, to.Broken = d.Open(ctx)
	return to
}

// brokers returns how a destination's brokers are reached.
func (e *exporter) brokers(ctx context.Context, brokers []string, k *config.Kafka) ([]kgo.Opt, error) {
	return kafka.Connect(ctx, kafka.Connection{
		Brokers: brokers, Kafka: k, Agent: program + "/" + version,
		Warn: func(what string, err error) { e.often.Warn(what, zap.Error(err)) },
	})
}

func jitter(n int64) int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return int64(binary.LittleEndian.Uint64(b[:]) % uint64(max(n, 1)))
}

// named takes the name of a destination off the arguments: the first one.
func (c call) named() (name string, rest call, err error) {
	if len(c.args) > 0 && !strings.HasPrefix(c.args[0], "-") {
		rest = c
		rest.args = c.args[1:]
		return c.args[0], rest, nil
	}
	if slices.Contains(c.args, "--help") || slices.Contains(c.args, "-h") {
		return "", c, nil
	}
	return "", c, fmt.Errorf("%w: want the name of a destination first; --help says more", errUsage)
}

// destinationNamed returns the destination of the settings that has a name.
func (e *exporter) destinationNamed(name string) (*config.Destination, error) {
	var names []string
	for i := range e.destinations {
		if e.destinations[i].Name == name {
			return &e.destinations[i], nil
		}
		names = append(names, e.destinations[i].Name)
	}
	return nil, fmt.Errorf("%w: no destination %q is set: there are %s (in the file that --config names)", errUsage, name, cmp.Or(strings.Join(names, ", "), "none"))
}

// person is who changes something by hand.
func (c call) person() string {
	for _, v := range c.environ {
		if name, ok := strings.CutPrefix(v, "USER="); ok && name != "" {
			return name
		}
	}
	return program
}

// failed returns the exit code of an error of the commands about destinations.
func failed(err error) int {
	var fault *config.Error
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &fault), errors.Is(err, errUsage):
		return exitCannotRun
	case errors.Is(err, stream.ErrCursor), errors.Is(err, stream.ErrDocument):
		return exitTampered
	}
	return exitCannotRun
}

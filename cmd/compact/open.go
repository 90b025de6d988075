package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/kafka"
	"github.com/ledgerlake/ledgerlake/retention"
	"github.com/ledgerlake/ledgerlake/s3sink"
	"github.com/ledgerlake/ledgerlake/signing"
)

// A tool is what every command works with: the archive, and the keys.
type tool struct {
	settings *config.Compact
	origins  config.Origins
	log      *zap.Logger
	often    *zap.Logger // sampled
	bucket   *s3sink.Bucket
	root     archive.Root
	keys     *signing.Keys
	ring     *sign.Ring
	control  *sign.Signer // of control records; nil signs none
	logKeys  chain.Keys
	policies *retention.Policies // nil: nothing expires
	kafka    []kgo.Opt
	producer *producer // once something was sent
}

// newTool finds what is wrong with the settings without reaching anything.
func newTool(ctx context.Context, in invocation, c *config.Compact, origins config.Origins, requests func(s3sink.Request)) (t *tool, err error) {
	log := daemon.NewLogger(in.stderr, c.Log)
	t = &tool{settings: c, origins: origins, log: log, often: daemon.Sampled(log)}
	if t.keys, err = signing.New(log, signing.Catalogs, c.Keys, origins); err != nil {
		return nil, err
	}
	if t.ring, err = t.good(); err != nil {
		return nil, err
	}
	if t.control, err = t.controlKey(); err != nil {
		return nil, err
	}
	if t.policies, err = t.readPolicies(); err != nil {
		return nil, err
	}
	master, logs, err := c.Chain.Keys(origins)
	if err != nil {
		return nil, err
	}
	if t.logKeys = logs; master != nil {
		t.logKeys = logs.Or(chain.MasterKeys(master))
	}
	t.kafka, err = kafka.Connect(ctx, kafka.Connection{
		Brokers: c.Brokers, Kafka: &c.Kafka, Origins: origins, Agent: program + "/" + version,
		Warn: func(what string, err error) { t.often.Warn(what, zap.Error(err)) },
	})
	if err != nil {
		return nil, err
	}
	store := c.Store()
	store.OnRequest = requests
	t.bucket, err = daemon.OpenBucket(ctx, c.Bucket, store)
	return t, err
}

// good returns the keys that are good by the settings.
func (t *tool) good() (*sign.Ring, error) {
	c := t.settings
	if len(c.Good)+len(c.Keys.Anchor)+len(c.Keys.Catalog)+len(c.Keys.Control) == 0 {
		return &sign.Ring{}, nil // an archive that nobody signs
	}
	ring := t.keys.Ring()
	for _, vkey := range c.Good {
		if err := ring.Add(vkey, sign.AllRoles, "settings"); err != nil {
			return nil, t.fault("key", err)
		}
	}
	return ring, nil
}

func (t *tool) fault(name string, err error) error {
	return &config.Error{Name: name, Source: t.origins[name], Fault: err.Error()}
}

func (t *tool) controlKey() (*sign.Signer, error) {
	path := t.settings.Control
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, t.fault("control-key", err)
	}
	s, err := sign.NewSigner(string(text))
	if err != nil {
		return nil, t.fault("control-key", fmt.Errorf("%s: %w", path, err))
	}
	return s, nil
}

func (t *tool) readPolicies() (*retention.Policies, error) {
	path := t.settings.RetentionFile
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, t.fault("retention-file", err)
	}
	p, err := retention.Parse(text)
	if err != nil {
		return nil, t.fault("retention-file", fmt.Errorf("%s: %w", path, err))
	}
	for _, n := range p.Notes() {
		t.log.Warn("retention-file: " + n)
	}
	return p, nil
}

// open opens the archive. A store that does not answer is waited for.
func (t *tool) open(ctx context.Context) error {
	err := daemon.UntilAnswered(ctx, t.log, func() (err error) { t.root, err = archive.OpenRoot(ctx, t.bucket); return err })
	if errors.Is(err, archive.ErrNotFound) {
		return fmt.Errorf("%s: no archive is there; the first start of ledgerlake-ingest makes it: %w", t.bucket, err)
	}
	if err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	return t.keyless(ctx)
}

// keyless refuses an archive whose anchors are signed where no key is given by
// which they could count.
func (t *tool) keyless(ctx context.Context) error {
	if !t.ring.Empty() {
		return nil
	}
	lines, err := archive.Lines(ctx, t.bucket)
	if lines == nil && err != nil {
		return fmt.Errorf("lines of the bucket: %w", err)
	}
	for _, l := range lines {
		signers, err := t.signersOf(ctx, l)
		if err != nil {
			return err
		}
		if signers != "" {
			return fmt.Errorf("%w: anchors are signed (by %s), and nothing counts without a key: give its vkey with --key", errNothing, signers)
		}
	}
	return nil
}

// signersOf says who signed the newest anchor of a line, "" where nobody did.
func (t *tool) signersOf(ctx context.Context, l archive.Line) (string, error) {
	newest, err := archive.NewestAnchor(ctx, t.bucket, l, -1)
	if err != nil || newest < 0 {
		return "", err
	}
	body, err := t.bucket.Get(ctx, archive.AnchorKey(l, newest))
	if err != nil {
		return "", err
	}
	n, err := sign.Parse(body)
	if err != nil || len(n.Signatures) == 0 {
		return "", nil
	}
	return archive.Signers(n), nil
}

// vouched warns where the newest anchor names no key that signs catalogs here: who
// has the key of anchors alone calls such a catalog forged. A key that KMS certifies
// has notes of its own, and what the store does not answer the first cycle says.
func (t *tool) vouched(ctx context.Context) {
	if t.keys.Signers() == nil || t.settings.Keys.KMS.Key != "" {
		return
	}
	lines, _ := archive.Lines(ctx, t.bucket)
	for _, l := range lines {
		named, there := t.named(ctx, l)
		if !there {
			continue
		}
		for _, s := range t.keys.Signers()(time.Now()) {
			if vkey := s.(*sign.Signer).VKey(); slices.Contains(named, vkey) {
				return
			}
		}
		t.log.Warn("the newest anchor names no key that signs catalogs here, so that ledgerlake-verify by the key of anchors alone calls them forged: put the vkey into catalog-keys of ledgerlake-ingest, and restart it",
			zap.String("topic", l.Topic), zap.Int32("partition", l.Partition))
		return
	}
}

// named returns the keys that the newest anchor of a line names, if it is there and
// signed.
func (t *tool) named(ctx context.Context, l archive.Line) (vkeys []string, there bool) {
	newest, err := archive.NewestAnchor(ctx, t.bucket, l, -1)
	if err != nil || newest < 0 {
		return nil, false
	}
	body, err := t.bucket.Get(ctx, archive.AnchorKey(l, newest))
	if err != nil {
		return nil, false
	}
	n, err := sign.Parse(body)
	if err != nil || len(n.Signatures) == 0 {
		return nil, false
	}
	a, err := archive.DecodeAnchor(n.Text)
	if err != nil {
		return nil, false
	}
	return slices.Concat(a.Keys.Catalog, a.Keys.Anchor), true
}

// signer returns what signs control records; nil where nothing does.
func (t *tool) signer() note.Signer {
	if t.control == nil {
		return nil
	}
	return t.control
}

// engine returns an engine for the settings.
func (t *tool) engine(events compaction.Events, once bool) *compaction.Engine {
	c := t.settings
	repeat := c.RepeatFiles
	if repeat == 0 {
		repeat = -1
	}
	return compaction.New(compaction.Settings{
		Archive: t.bucket, Root: t.root, Keys: t.ring, LogKeys: t.logKeys, Signers: t.keys.Signers(), Events: events,
		Memory: c.Memory, TargetBytes: c.TargetBytes, MinSegments: int64(c.MinSegments), MaxAge: c.MaxAge, MergeFiles: c.MergeFiles,
		PassBytes: c.PassBytes, SweepEvery: c.SweepEvery, RepeatFiles: repeat, Manifests: t.manifests(), Once: once, Now: time.Now, Rand: rand.Reader,
	})
}

// manifests returns where manifests are kept; nil where none are. The bucket was
// opened by the same URL, so that it can be read.
func (t *tool) manifests() *compaction.Manifests {
	u, err := s3sink.ParseURL(t.settings.Bucket)
	if !t.settings.Manifests || err != nil {
		return nil
	}
	return &compaction.Manifests{Base: "s3://" + u.Bucket + "/" + u.Prefix, Store: t.bucket}
}

// listCycles is in how many cycles the bucket is listed once for new lines.
const listCycles = 5

// governor returns a governor of an engine. Where send is false, nothing leaves it.
func (t *tool) governor(e *compaction.Engine, send bool) *compaction.Governor {
	c := t.settings
	r := compaction.Rules{
		Topic: c.ControlTopic, PurgeAfter: c.PurgeAfter, LateWindow: c.LateWindow, Within: c.ErasureWithin, Policies: t.policies,
		Signer: t.signer(), By: program, ListEvery: listCycles * c.Every, Warn: func(text string, err error) { t.often.Warn(text, zap.Error(err)) },
	}
	if send && c.ControlTopic != "" {
		r.Send = t.send
	}
	return compaction.NewGovernor(e, r)
}

// looker returns a governor that only looks.
func (t *tool) looker() *compaction.Governor {
	return t.governor(t.engine(compaction.Events{}, false), false)
}

// close lets go of Kafka.
func (t *tool) close() {
	if t.producer != nil {
		t.producer.close()
	}
}

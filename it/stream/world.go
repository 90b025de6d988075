//go:build it

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

const (
	bucket     = "archive"
	topic      = "audit.calls"
	group      = "stream"
	partitions = 4
	archiveID  = "01KBCDEFGHJKMNPQRSTVWXYZ03"
	grace      = 20 * time.Second
	patience   = 15 * time.Minute // until everything that was sent has arrived
)

// A trial is one run.
type trial struct {
	settings
	dir   string
	out   io.Writer
	outMu sync.Mutex
	begin time.Time

	kafka  *parts.Kafka
	s3     *parts.S3
	client *kgo.Client
	group  oracle.Group
	vkeys  map[string]string // by role

	workers   []*parts.Process // ingest and compact
	exporter  *parts.Process
	started   int // processes
	kills     []time.Time
	receivers []*receiver
	stop      []func() // what is started, in order
	truth     truth
}

func (t *trial) say(format string, args ...any) {
	t.outMu.Lock()
	defer t.outMu.Unlock()
	fmt.Fprintf(t.out, "%6.1f s  %s\n", time.Since(t.begin).Seconds(), fmt.Sprintf(format, args...))
}

func (t *trial) in(name string) string { return filepath.Join(t.dir, name) }

func (t *trial) url() string { return parts.BucketURL(t.s3.Endpoint, bucket) }

// rng returns the choices of one who makes some.
func (t *trial) rng(who uint64) *rand.Rand { return rand.New(rand.NewPCG(t.seed, who)) }

// setUp starts the servers and the receivers with a proxy before each, and makes
// keys, topics and the archive.
func (t *trial) setUp(ctx context.Context) (err error) {
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	front, err := newWire(t.rng(10))
	if err != nil {
		return err
	}
	t.stop = append(t.stop, front.close)
	if t.kafka, err = parts.StartKafkaWith(t.in("kafka"), parts.KafkaOptions{Front: front.addr}); err != nil {
		return err
	}
	t.stop = append(t.stop, t.kafka.Kill)
	front.pass(t.kafka.Behind)
	if t.client, err = kgo.NewClient(kgo.SeedBrokers(t.kafka.Addr), kgo.MetadataMinAge(100*time.Millisecond)); err != nil {
		return err
	}
	t.stop = append(t.stop, t.client.Close)
	t.group = oracle.Group{Client: t.client, Name: group}
	for _, name := range []string{topic, copyTopic} {
		if _, err := kadm.NewClient(t.client).CreateTopic(ctx, partitions, 1, nil, name); err != nil {
			return err
		}
	}
	if err := t.makeArchive(ctx); err != nil {
		return err
	}
	return t.startReceivers(ctx, front)
}

func (t *trial) makeArchive(ctx context.Context) (err error) {
	if t.s3, err = parts.StartS3(t.in("s3")); err != nil {
		return err
	}
	t.stop = append(t.stop, t.s3.Kill)
	t.vkeys = map[string]string{}
	for _, role := range []string{"anchors", "catalogs"} {
		if t.vkeys[role], err = parts.MakeKey(t.in(role+".key"), "stream.example/"+role); err != nil {
			return err
		}
	}
	if err := parts.MakeBucket(ctx, t.s3.Endpoint, bucket); err != nil {
		return err
	}
	return parts.MakeArchive(ctx, t.s3.Endpoint, bucket, "", archiveID, grace)
}

// startWorkers starts who writes the archive.
func (t *trial) startWorkers() error {
	both := []string{"run", "--brokers", t.kafka.Addr, "--bucket", t.url(), "--control-topic", "none", "--http.listen", "none", "--progress", "0s"}
	ingest := append([]string{}, append(both, "--topics", topic, "--group", group, "--catalog-keys", t.vkeys["catalogs"],
		"--anchor-key", t.in("anchors.key"), "--anchor-every", "2s", "--batch.empty-age", "1s")...)
	compact := append([]string{}, append(both, "--compact.assign", "all", "--key", t.vkeys["anchors"], "--catalog-key", t.in("catalogs.key"),
		"--compact.every", "1s", "--compact.max-age", "3s", "--compact.min-segments", "8", "--compact.sweep-every", "5s")...)
	for _, one := range []struct {
		binary string
		args   []string
	}{{"ledgerlake-ingest", ingest}, {"ledgerlake-ingest", ingest}, {"ledgerlake-compact", compact}} {
		p, err := t.start(one.binary, one.args...)
		if err != nil {
			return err
		}
		t.workers = append(t.workers, p)
	}
	return nil
}

// start starts a process of ours.
func (t *trial) start(binary string, args ...string) (*parts.Process, error) {
	t.started++
	return parts.Start(binary, t.in(fmt.Sprintf("%s-%03d.log", binary, t.started)), parts.Credentials(), parts.Binary(binary), args...)
}

// alive returns an error if one who writes the archive has ended.
func (t *trial) alive() error {
	for _, p := range t.workers {
		if !p.Running() {
			return fmt.Errorf("%s has ended by itself: %s", p.Log, lastLine(p.Output()))
		}
	}
	return nil
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// end stops what is left.
func (t *trial) end() {
	for _, p := range append(t.workers, t.exporter) {
		if p != nil {
			p.Kill()
		}
	}
	for i := len(t.stop) - 1; i >= 0; i-- {
		t.stop[i]()
	}
}

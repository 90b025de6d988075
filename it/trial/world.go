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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

const (
	bucket     = "archive"
	topic      = "audit.trial"
	group      = "trial"
	partitions = 4
	archiveID  = "01KBCDEFGHJKMNPQRSTVWXYZ02"
	patience   = 10 * time.Minute // until everything that was ordered is done
)

// roles are who signs what.
var roles = []string{"anchors", "catalogs", "control"}

// A trial is one run.
type trial struct {
	settings
	dir   string
	out   io.Writer
	outMu sync.Mutex
	begin time.Time
	rng   *rand.Rand

	kafka  *parts.Kafka
	s3     *parts.S3
	client *kgo.Client
	store  *s3sink.Bucket
	vkeys  map[string]string // by role
	group  oracle.Group

	ingests    []*parts.Process
	compacts   []*parts.Process
	started    int // processes
	deeds      *deeds
	orders     []*order
	evidence   *evidence
	offboards  []string  // tenants that leave
	offboarded time.Time // when
}

func (t *trial) say(format string, args ...any) {
	t.outMu.Lock()
	defer t.outMu.Unlock()
	fmt.Fprintf(t.out, "%6.1f s  %s\n", time.Since(t.begin).Seconds(), fmt.Sprintf(format, args...))
}

func (t *trial) key(role string) string { return filepath.Join(t.dir, role+".key") }

func (t *trial) url() string { return parts.BucketURL(t.s3.Endpoint, bucket) }

// setUp starts the servers, makes keys, topics, a bucket that keeps old versions,
// and an archive of a short grace.
func (t *trial) setUp(ctx context.Context) (err error) {
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	if t.kafka, err = parts.StartKafka(filepath.Join(t.dir, "kafka")); err != nil {
		return err
	}
	if t.s3, err = parts.StartS3(filepath.Join(t.dir, "s3")); err != nil {
		return err
	}
	if t.client, err = kgo.NewClient(kgo.SeedBrokers(t.kafka.Addr), kgo.MetadataMinAge(100*time.Millisecond)); err != nil {
		return err
	}
	t.group = oracle.Group{Client: t.client, Name: group}
	adm := kadm.NewClient(t.client)
	if _, err := adm.CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return err
	}
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, audit.ControlTopic); err != nil {
		return err
	}
	t.vkeys = map[string]string{}
	for _, role := range roles {
		if t.vkeys[role], err = parts.MakeKey(t.key(role), "trial.example/"+role); err != nil {
			return err
		}
	}
	return t.makeArchive(ctx)
}

func (t *trial) makeArchive(ctx context.Context) error {
	if err := parts.MakeBucket(ctx, t.s3.Endpoint, bucket); err != nil {
		return err
	}
	_, err := parts.S3Client(t.s3.Endpoint).PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: aws.String(bucket), VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		return err
	}
	for _, v := range parts.Credentials() {
		name, value, _ := strings.Cut(v, "=")
		os.Setenv(name, value)
	}
	if t.store, err = s3sink.Open(ctx, t.url(), s3sink.Options{}); err != nil {
		return err
	}
	return parts.MakeArchive(ctx, t.s3.Endpoint, bucket, "", archiveID, t.grace)
}

// startIngest starts one more ingest.
func (t *trial) startIngest() error {
	p, err := t.start("ledgerlake-ingest", "run", "--brokers", t.kafka.Addr, "--bucket", t.url(), "--topics", topic, "--group", group,
		"--control-topic", audit.ControlTopic, "--control-keys", t.vkeys["control"], "--catalog-keys", t.vkeys["catalogs"],
		"--anchor-key", t.key("anchors"), "--anchor-every", "2s", "--http.listen", "none", "--batch.empty-age", "1s", "--progress", "0s")
	if err == nil {
		t.ingests = append(t.ingests, p)
	}
	return err
}

// start starts a process of ours.
func (t *trial) start(binary string, args ...string) (*parts.Process, error) {
	t.started++
	log := filepath.Join(t.dir, fmt.Sprintf("%s-%03d.log", binary, t.started))
	return parts.Start(binary, log, parts.Credentials(), parts.Binary(binary), args...)
}

// end stops what is left.
func (t *trial) end() {
	for _, p := range append(t.ingests, t.compacts...) {
		p.Kill()
	}
	if t.client != nil {
		t.client.Close()
	}
	if t.s3 != nil {
		t.s3.Kill()
	}
	if t.kafka != nil {
		t.kafka.Kill()
	}
}

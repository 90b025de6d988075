//go:build it

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// The S3 servers that there are.
const (
	storeVersity = "versitygw"
	storeWeed    = "seaweedfs"
)

// bucket is the name of the bucket.
const bucket = "archive"

// sessionTimeout is how soon the group gives up on a process: the least that
// a broker accepts.
const sessionTimeout = 6 * time.Second

// brokerProperties let a broker come back soon after a kill, for which it has
// to wait until its old session is over (9 s otherwise), and give up soon on
// members of groups of protocol consumer, whose timeout is the broker's.
const brokerProperties = `broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
group.consumer.min.session.timeout.ms=6000
group.consumer.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=1000
group.consumer.heartbeat.interval.ms=1000
`

// A rig is what the rounds of a run share.
type rig struct {
	*printer
	dir    string // of logs and data
	short  bool
	rate   int
	kafka  *parts.Kafka
	store  parts.Store
	disk   *disk           // under the store; nil where none could be mounted
	front  *faults3.Server // before the store; ingest goes through it
	client *kgo.Client     // of an observer
}

// newRig starts all that lives longer than a round.
func newRig(ctx context.Context, s *settings, dir string, private bool, out *printer) (_ *rig, err error) {
	r := &rig{printer: out, dir: dir, short: s.short(), rate: s.rate}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err := os.MkdirAll(filepath.Join(dir, "store"), 0o755); err != nil {
		return nil, err
	}
	if r.kafka, err = parts.StartKafkaWith(filepath.Join(dir, "kafka"), parts.KafkaOptions{Properties: brokerProperties}); err != nil {
		return nil, err
	}
	if r.client, err = kgo.NewClient(kgo.SeedBrokers(r.kafka.Addr), kgo.MetadataMinAge(100*time.Millisecond)); err != nil {
		return nil, err
	}
	if private && s.store == storeVersity {
		if r.disk, err = mountDisk(filepath.Join(dir, "store")); err != nil {
			out.say("no disk of its own for the store: %v", err)
		}
	}
	if r.disk == nil {
		out.say("a full disk is played by the proxy")
	}
	if err := r.startStore(ctx, s.store); err != nil {
		return nil, err
	}
	r.front = faults3.Start(faults3.Options{Behind: r.store.URL()})
	return r, nil
}

func (r *rig) startStore(ctx context.Context, name string) error {
	dir := filepath.Join(r.dir, "store", name)
	var err error
	switch name {
	case storeVersity:
		r.store, err = parts.StartS3(dir)
	case storeWeed:
		r.store, err = parts.StartWeed(dir)
	default:
		return fmt.Errorf("no store %q: want %s or %s", name, storeVersity, storeWeed)
	}
	if err != nil {
		return err
	}
	return parts.MakeBucket(ctx, r.store.URL(), bucket)
}

// close ends everything, and copies the store's log to where it stays.
func (r *rig) close() {
	if r.front != nil {
		r.front.Close()
	}
	if r.client != nil {
		r.client.Close()
	}
	if r.store != nil {
		r.store.Kill()
		if err := copyFile(r.store.Log(), filepath.Join(r.dir, "store.log")); err != nil {
			r.say("the store's log: %v", err)
		}
	}
	if r.kafka != nil {
		r.kafka.Kill()
	}
	if r.disk != nil {
		if err := r.disk.unmount(); err != nil {
			r.say("the store's disk: %v", err)
		}
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// long returns how long a fault lasts: d, or a few seconds in the short form.
func (r *rig) long(d time.Duration) time.Duration {
	if r.short {
		return min(d, 3*time.Second)
	}
	return d
}

// actsPerRound bounds how large an archive grows: verify reads all of it after
// each act, and a start reads the metadata of each segment.
const actsPerRound = 5

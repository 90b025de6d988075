//go:build it

// Package it runs ledgerlake end to end: real producers, a broker and an
// object store as processes, the binaries as users run them, and readers that
// are not ours.
//
// Every test runs on two pairs, the embedded one (ledgerlake-devstack) and a
// real one (Apache Kafka and a separate S3 server), with the same code. The
// short form is the default; IT_LONG=1 sends 200,000 records instead of 40,000.
package it

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// A pair is a broker and a store that are up.
type pair struct {
	brokers   string
	bucket    string // URL
	bucketDir string // its objects as plain files
	env       []string

	restartBroker func() error // killed, and started again
	restartStore  func() error
}

// onBothPairs runs f on each pair.
func onBothPairs(t *testing.T, f func(t *testing.T, p *pair)) {
	t.Run("embedded", func(t *testing.T) { f(t, embedded(t)) })
	t.Run("real", func(t *testing.T) { f(t, real(t)) })
}

func embedded(t *testing.T) *pair {
	d, err := parts.StartDevstack(filepath.Join(t.TempDir(), "devstack"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Kill() })
	again := func() error { d.Kill(); return d.Start() }
	return &pair{d.Brokers, d.Bucket, d.BucketDir, d.Env, again, again}
}

// store returns a separate S3 server with an empty bucket called archive.
func store(t *testing.T) *parts.S3 {
	t.Helper()
	s, err := parts.StartS3(filepath.Join(t.TempDir(), "s3"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Kill() })
	if err := parts.MakeBucket(t.Context(), s.Endpoint, "archive"); err != nil {
		t.Fatal(err)
	}
	return s
}

func real(t *testing.T) *pair {
	k, err := parts.StartKafka(filepath.Join(t.TempDir(), "kafka"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Kill() })
	s := store(t)
	return &pair{
		k.Addr, parts.BucketURL(s.Endpoint, "archive"), s.Dir("archive"), parts.Credentials(),
		func() error { k.Kill(); return k.Start() },
		func() error { s.Kill(); return s.Start() },
	}
}

// A stream is a topic, and the archive that ingest makes of it: one test's
// part of a pair.
type stream struct {
	*pair
	topic  string
	group  oracle.Group
	client *kgo.Client
	logs   string // folder
	runs   int
}

// partitions is how many every topic here has.
const partitions = 8

// newStream creates a topic and starts an archive under a prefix of its own.
func (p *pair) newStream(t *testing.T, name string) *stream {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.brokers), kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := &stream{pair: p, topic: "audit." + name, client: client, logs: t.TempDir()}
	s.group = oracle.Group{Client: client, Name: "group-" + name}
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), partitions, 1, nil, s.topic); err != nil {
		t.Fatal(err)
	}
	return s
}

// url returns the URL of the stream's archive, a prefix of the pair's bucket.
func (s *stream) url() string {
	bucket, query, _ := strings.Cut(s.bucket, "?")
	return bucket + "/" + s.topic + "?" + query
}

// archive returns the stream's archive as it lies on the disk.
func (s *stream) archive() oracle.Archive {
	return oracle.Archive{Dir: filepath.Join(s.bucketDir, s.topic)}
}

// ingest starts ledgerlake-ingest. The caller, or the end of the test, stops it.
func (s *stream) ingest(t *testing.T, args ...string) *parts.Process {
	t.Helper()
	s.runs++
	log := filepath.Join(s.logs, fmt.Sprintf("ingest-%02d.log", s.runs))
	args = append([]string{"run", "--brokers", s.brokers, "--topics", s.topic, "--bucket", s.url(), "--group", s.group.Name}, args...)
	p, err := parts.Start("ingest", log, s.env, parts.Binary("ledgerlake-ingest"), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s:\n%s", log, tail(p.Output()))
		}
	})
	return p
}

// tail returns the end of a log.
func tail(text string) string { return text[max(0, len(text)-6000):] }

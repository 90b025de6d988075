//go:build it

package parts_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// A part that loses data by itself when it is killed would make every other
// test here lie. TestKafkaKeepsWhatItAcknowledged kills it and looks.
func TestKafkaKeepsWhatItAcknowledged(t *testing.T) {
	k, err := parts.StartKafka(filepath.Join(t.TempDir(), "kafka"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Kill() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.Addr), kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("kept"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "kept", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	k.Kill()
	if err := k.Start(); err != nil {
		t.Fatal(err)
	}
	fetches := cl.PollFetches(ctx)
	for fetches.NumRecords() == 0 && ctx.Err() == nil {
		fetches = cl.PollFetches(ctx)
	}
	if n := fetches.NumRecords(); n != 1 {
		t.Errorf("%d records after the kill, want 1", n)
	}
	if err := k.Stop(); err != nil {
		t.Error(err)
	}
}

func TestS3KeepsWhatItAcknowledged(t *testing.T) {
	s, err := parts.StartS3(filepath.Join(t.TempDir(), "s3"))
	if err != nil {
		t.Fatal(err)
	}
	requireKept(t, s)
}

func TestWeedKeepsWhatItAcknowledged(t *testing.T) {
	if _, err := os.Stat(filepath.Join(parts.Build(), "bin", "weed")); err != nil {
		t.Skip("it/setup.sh weed has not built it")
	}
	w, err := parts.StartWeed(filepath.Join(t.TempDir(), "weed"))
	if err != nil {
		t.Fatal(err)
	}
	requireKept(t, w)
}

// requireKept requires that a store that is killed has afterwards what it
// acknowledged before.
func requireKept(t *testing.T, s parts.Store) {
	t.Helper()
	t.Cleanup(func() { s.Kill() })
	if err := parts.MakeBucket(t.Context(), s.URL(), "archive"); err != nil {
		t.Fatal(err)
	}
	c := parts.S3Client(s.URL())
	put := s3.PutObjectInput{Bucket: aws.String("archive"), Key: aws.String("k"), Body: bytes.NewReader([]byte("x"))}
	if _, err := c.PutObject(t.Context(), &put); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: put.Bucket, Key: put.Key})
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
}

func TestDuckDBsAreTheVersionsThatTheySay(t *testing.T) {
	for _, d := range parts.DuckDBs() {
		rows, err := d.Query("set timezone='UTC'", "select version(), 9223372036854775807, null, encode('é')")
		if err != nil {
			t.Fatal(err)
		}
		if got := rows[0]; got[0] != "v"+d.Version || got[1] != "9223372036854775807" || got[2] != nil || got[3] != "c3a9" {
			t.Errorf("DuckDB %s answers %v", d.Version, got)
		}
		if _, err := d.Query("select nothing"); err == nil {
			t.Errorf("DuckDB %s: bad SQL is no error", d.Version)
		}
		if rows, err := d.Query("create table t as select 1", "select * from t"); err != nil || len(rows) != 1 {
			t.Errorf("DuckDB %s after bad SQL: %v, %v", d.Version, rows, err)
		}
	}
}

// A process must take its children with it, whatever they do with SIGTERM.
func TestKillTakesTheWholeGroup(t *testing.T) {
	p, err := parts.Start("sh", filepath.Join(t.TempDir(), "log"), nil, "sh", "-c", "trap '' TERM; sleep 100 & echo deaf; wait; wait")
	if err != nil {
		t.Fatal(err)
	}
	for p.Running() && p.Output() == "" {
		time.Sleep(time.Millisecond) // until the trap is set
	}
	if _, err := p.Stop(50 * time.Millisecond); err == nil {
		t.Error("a process that ignores SIGTERM stopped without an error")
	}
	gone := time.Now().Add(5 * time.Second)
	for syscall.Kill(-p.Pid(), 0) == nil { // orphans are reaped by init, not by us
		if time.Now().After(gone) {
			t.Fatal("a child is left")
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/proof"
)

// A stage is a Kafka and a store of S3 in this process, and ingests that run on
// them as main runs one.
type stage struct {
	t       *testing.T
	cluster *kfake.Cluster
	store   *store
	client  *kgo.Client
	sent    int
	environ []string // of ingests, besides
}

func newStage(t *testing.T, opts ...kfake.Opt) *stage {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &stage{t: t, cluster: cluster, store: newStore(t), client: client}
}

// produce sends n records, each another one, to a partition.
func (s *stage) produce(topic string, partition int32, n int) {
	s.t.Helper()
	for range n {
		s.sent++
		r := &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil,
			`{"recordId":"01KRNR3ZG0%016d","sessionId":"s","turnId":"t","stageId":"synthesize","seqWithinTurn":%d,"createdAt":"2026-05-15T12:00:00.000Z","tenantId":"acme"}`,
			s.sent, s.sent)}
		if err := s.client.ProduceSync(s.t.Context(), r).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// proved returns how many rows the archive has, and fails where it does not hold.
func (s *stage) proved() int {
	s.t.Helper()
	r, err := proof.Verify(s.t.Context(), s.store.Memory, proof.Options{Unsigned: true})
	if err != nil {
		s.t.Fatal(err)
	}
	if r.FaultCount != 0 || r.Totals.Duplicates != 0 || r.StrayCount != 0 {
		s.t.Errorf("verify: %+v, duplicates %d, strays %q", r.Faults, r.Totals.Duplicates, r.Strays)
	}
	return int(r.Totals.Rows)
}

// committed returns the group's offset of a partition, -1 where it has none.
func (s *stage) committed(topic string, partition int32) int64 {
	s.t.Helper()
	offsets, err := kadm.NewClient(s.client).FetchOffsets(s.t.Context(), "ledgerlake")
	if errors.Is(err, kerr.GroupIDNotFound) { // ingest has not joined yet
		return -1
	}
	if err != nil {
		s.t.Fatal(err)
	}
	o, ok := offsets.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return o.At
}

// until waits for something that is about to happen.
func (s *stage) until(what string, happened func() bool) {
	s.t.Helper()
	for range 3000 {
		if happened() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("30 s, and not yet: %s", what)
}

// An actor is one ingest that runs.
type actor struct {
	*stage
	log    *safeBuffer
	cancel context.CancelFunc
	ended  chan error
	url    string // of its HTTP listener
}

// start starts an ingest.
func (s *stage) start(args ...string) *actor {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a := &actor{stage: s, log: new(safeBuffer), cancel: cancel, ended: make(chan error, 1)}
	args = append([]string{
		"run", "--brokers", strings.Join(s.cluster.ListenAddrs(), ","), "--bucket", "s3://bucket?endpoint=" + s.store.url,
		"--http.listen", "127.0.0.1:0", "--log-level", "debug", "--control-topic", "none",
	}, args...)
	environ := append([]string{"LEDGERLAKE_S3_ACCESS_KEY=id", "LEDGERLAKE_S3_SECRET_KEY=secret"}, s.environ...)
	go func() { a.ended <- run(ctx, args, environ, new(bytes.Buffer), a.log) }()
	s.t.Cleanup(func() {
		cancel()
		if s.t.Failed() {
			s.t.Logf("log of %q:\n%s", args[len(args)-2:], a.log)
		}
	})
	address := regexp.MustCompile(`"address":"([^"]+)"`)
	s.until("the listener is there", func() bool { return address.MatchString(a.log.String()) })
	a.url = "http://" + address.FindStringSubmatch(a.log.String())[1]
	return a
}

// stop stops an ingest as SIGTERM does, and returns what run returned.
func (a *actor) stop() error {
	a.t.Helper()
	a.cancel()
	select {
	case err := <-a.ended:
		return err
	case <-time.After(time.Minute):
		a.t.Fatal("does not stop")
		return nil
	}
}

// ask returns the status and the body of an answer; 0 where there is none.
func (a *actor) ask(path string) (code int, body string) {
	a.t.Helper()
	response, err := http.Get(a.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		a.t.Fatal(err)
	}
	return response.StatusCode, text.String()
}

// ready returns what /readyz says.
func (a *actor) ready() readiness {
	a.t.Helper()
	_, body := a.ask("/readyz")
	var r readiness
	_ = json.Unmarshal([]byte(body), &r)
	return r
}

// holds reports whether the ingest has so many partitions, which all run, and is
// ready.
func (a *actor) holds(partitions int) func() bool {
	running := fmt.Sprintf("\n%s_partitions{state=\"running\"} %d\n", namespace, partitions)
	return func() bool {
		r := a.ready()
		return r.Ready && r.Partitions == partitions && strings.Contains(metricsOf(a), running)
	}
}

// A safeBuffer may be read while somebody writes.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

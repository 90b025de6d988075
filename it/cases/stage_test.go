//go:build it

// Package cases puts records and stores that broke other archives in front of
// ingest, and looks at what is left: the real binaries, a broker in this
// process that can do what no healthy broker does to order, and a store that
// misbehaves to order.
//
// Every case is held to the same rules, whatever else it claims. See
// [stage.settle].
package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

const (
	group = "ledgerlake"
	topic = "audit.calls" // of the cases that need only one
)

// secret stands in every record that a case expects to be refused. No log may
// show it.
const secret = "SECRET-4711"

// A stage is a broker, a store, and room for ingest between them.
type stage struct {
	*testing.T
	kafka  *kfake.Cluster
	addrs  []string // its brokers
	client *kgo.Client
	store  *faults3.Server
	group  oracle.Group
	topics []string
	dir    string
	env    []string // of our binaries
	ingest *parts.Process
	runs   int
	peak   int64 // bytes that the last process took at most, before it was stopped
}

// newStage starts a broker with the given topics, of one partition each, and a
// store. Everything ends with the test.
func newStage(t *testing.T, o faults3.Options, topics ...string) *stage {
	t.Helper()
	t.Parallel()
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	s := &stage{T: t, kafka: kafka, addrs: kafka.ListenAddrs(), store: faults3.Start(o), dir: t.TempDir(), env: parts.Credentials()}
	t.Cleanup(s.store.Close)
	if o.TLS {
		s.env = append(s.env, "AWS_CA_BUNDLE="+s.file("ca.pem", s.store.CA()))
	}
	s.client = s.newClient()
	s.group = oracle.Group{Client: s.client, Name: group}
	for _, topic := range topics {
		s.topic(topic, nil)
	}
	return s
}

func (s *stage) newClient(opts ...kgo.Opt) *kgo.Client {
	s.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(32 << 20), kgo.BrokerMaxWriteBytes(64 << 20), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	}, opts...)...)
	s.must(err)
	s.Cleanup(client.Close)
	return client
}

// topic creates a topic of one partition. Its records never expire, for many
// of them carry times of their own.
func (s *stage) topic(name string, configs map[string]string) {
	s.Helper()
	all := map[string]string{"retention.ms": "-1", "max.message.bytes": "33554432"}
	for k, v := range configs {
		all[k] = v
	}
	s.must(s.kafka.CreateTopic(name, 1, all))
	s.topics = append(s.topics, name)
}

// produce sends values to a topic, in order, with the tenant's header and key.
func (s *stage) produce(topic, tenant string, values ...string) {
	s.Helper()
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = record(topic, tenant, v)
	}
	s.send(records...)
}

func record(topic, tenant, value string) *kgo.Record {
	return &kgo.Record{
		Topic: topic, Key: []byte(tenant), Value: []byte(value),
		Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte(tenant)}},
	}
}

// send sends records in order.
func (s *stage) send(records ...*kgo.Record) {
	s.Helper()
	s.must(s.client.ProduceSync(s.Context(), records...).FirstErr())
}

// bucket returns the URL of the store.
func (s *stage) bucket() string { return parts.BucketURL(s.store.URL, faults3.Bucket) }

// start starts ingest on all topics.
func (s *stage) start(args ...string) {
	s.Helper()
	s.runs++
	log := filepath.Join(s.dir, fmt.Sprintf("ingest-%d.log", s.runs))
	args = append([]string{
		"run", "--brokers", strings.Join(s.addrs, ","), "--topics", strings.Join(s.topics, ","),
		"--bucket", s.bucket(), "--log-level", "debug",
	}, args...)
	var err error
	s.ingest, err = parts.Start("ingest", log, s.env, parts.Binary("ledgerlake-ingest"), args...)
	s.must(err)
	p := s.ingest
	s.Cleanup(func() {
		p.Kill()
		if s.Failed() {
			s.Logf("%s:\n%s", log, tail(p.Output()))
		}
	})
}

// drain waits until the group has committed all of the topics, or of those
// that are named.
func (s *stage) drain(topics ...string) {
	s.Helper()
	if len(topics) == 0 {
		topics = s.topics
	}
	ctx, cancel := context.WithTimeout(s.Context(), 90*time.Second)
	defer cancel()
	s.must(s.group.WaitDrained(ctx, s.alive, topics...))
}

var errEnded = errors.New("ingest ended by itself, or gave up a partition")

func (s *stage) alive() error {
	if !s.ingest.Running() || strings.Contains(s.ingest.Output(), "partition stopped") {
		return fmt.Errorf("%w: %s", errEnded, tail(s.ingest.Output()))
	}
	return nil
}

// stop ends ingest by SIGTERM, which must be a clean end.
func (s *stage) stop() {
	s.Helper()
	s.peak = residentPeak(s.ingest.Pid())
	code, err := s.ingest.Stop(30 * time.Second)
	s.must(err)
	if code != 0 {
		s.Fatalf("ingest: exit %d after SIGTERM", code)
	}
}

// run is a whole life of ingest: start, archive all that is there, stop.
func (s *stage) run(args ...string) {
	s.Helper()
	s.start(args...)
	s.drain()
	s.stop()
}

// settle runs ingest over all that was sent and then requires what every
// archive must be: verify says want, each offset that the broker delivers has
// exactly one fate, no offset is two rows, and no log shows a payload.
func (s *stage) settle(want int, args ...string) oracle.Archive {
	s.Helper()
	s.run(args...)
	return s.check(want)
}

// check holds what is in the store to the rules.
func (s *stage) check(want int) oracle.Archive {
	s.Helper()
	a := s.archive()
	s.verify(want)
	for _, topic := range s.topics {
		s.account(a, topic)
	}
	twice := s.query(a, "select topic, kafka_offset from {rows} where kafka_offset is not null group by all having count(*) > 1")
	if len(twice) > 0 {
		s.Errorf("offsets that are two rows: %v", twice)
	}
	for i := range s.runs {
		log, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("ingest-%d.log", i+1)))
		s.must(err)
		if strings.Contains(string(log), secret) {
			s.Errorf("a log shows a payload")
		}
	}
	return a
}

// archive writes the store's objects to a new folder.
func (s *stage) archive() oracle.Archive {
	s.Helper()
	dir, err := os.MkdirTemp(s.dir, "archive-")
	s.must(err)
	s.must(s.store.Dump(dir))
	return oracle.Archive{Dir: dir}
}

// verify runs ledgerlake-verify on the store, from another time zone and
// another language, which must not matter.
func (s *stage) verify(want int) oracle.Verdict {
	s.Helper()
	v, err := oracle.Verify(s.bucket(), append(s.env, "TZ=Asia/Tehran", "LC_ALL=tr_TR.UTF-8"))
	s.must(err)
	if v.Code != want {
		s.Errorf("verify: exit %d, want %d: %s%s", v.Code, want, v.Stdout, v.Stderr)
	}
	if strings.Contains(v.Stdout+v.Stderr, secret) {
		s.Errorf("verify shows a payload")
	}
	return v
}

// account requires that every record that the broker delivers of a topic is a
// row or a counted duplicate.
func (s *stage) account(a oracle.Archive, topic string) {
	s.Helper()
	accounted := map[int64]bool{}
	for _, row := range s.query(a, "select kafka_offset from {rows} where kafka_offset is not null and topic = '"+topic+"'") {
		accounted[number(row[0])] = true
	}
	segments, err := a.Segments()
	s.must(err)
	for _, segment := range segments {
		for _, d := range segment.Duplicates {
			if segment.Topic == topic {
				accounted[d.Offset] = true
			}
		}
	}
	delivered := s.delivered(topic)
	for _, offset := range delivered {
		if !accounted[offset] {
			s.Errorf("%s: offset %d has no fate", topic, offset)
		}
	}
}

// delivered returns the offsets that a reader of committed records gets.
func (s *stage) delivered(topic string) []int64 {
	s.Helper()
	ends, err := kadm.NewClient(s.client).ListEndOffsets(s.Context(), topic)
	s.must(err)
	end, _ := ends.Lookup(topic, 0)
	reader := s.newClient(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond),
	)
	defer reader.Close()
	var offsets []int64
	for next := int64(0); next < end.Offset; {
		ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
		fetches := reader.PollFetches(ctx)
		cancel()
		if fetches.NumRecords() == 0 {
			return offsets // what is left is aborted
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				offsets = append(offsets, r.Offset)
			}
			next = r.Offset + 1
		})
	}
	return offsets
}

// query answers from both DuckDBs.
func (s *stage) query(a oracle.Archive, statements ...string) [][]any {
	s.Helper()
	rows, err := a.Query(statements...)
	s.must(err)
	return rows
}

// wantRows requires an answer, cell by cell: nil, or text.
func (s *stage) wantRows(a oracle.Archive, sql string, want ...[]any) {
	s.Helper()
	got := s.query(a, sql)
	if !slices.EqualFunc(got, want, func(x, y []any) bool { return slices.Equal(x, y) }) {
		s.Errorf("%s\n\tgives %v\n\twant  %v", sql, got, want)
	}
}

// wantFates requires what became of each offset of a topic, in order: "row",
// or the reason of its reject.
func (s *stage) wantFates(a oracle.Archive, topic string, want ...string) {
	s.Helper()
	var got []string
	for _, row := range s.query(a, `select case kind when 'rejected' then context->>'reason' else 'row' end
		from {rows} where kafka_offset is not null and topic = '`+topic+`' order by kafka_offset`) {
		got = append(got, row[0].(string))
	}
	if !slices.Equal(got, want) {
		s.Errorf("%s: fates %q, want %q", topic, got, want)
	}
}

// until waits until ok.
func (s *stage) until(what string, ok func() bool) {
	s.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("%s: not within a minute", what)
		}
		s.must(s.alive())
	}
}

func (s *stage) file(name string, body []byte) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	s.must(os.WriteFile(path, body, 0o600))
	return path
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func number(cell any) int64 {
	n, err := strconv.ParseInt(cell.(string), 10, 64)
	if err != nil {
		panic(err) // a column of integers
	}
	return n
}

// tail returns the end of a log, for people.
func tail(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.Contains(l, `"level":"debug"`) })
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

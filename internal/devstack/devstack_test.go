package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/twmb/franz-go/pkg/kgo"
)

// bring brings a stack up for the length of a test.
func bring(t *testing.T, o Options) *Stack {
	t.Helper()
	s, err := Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func client(s *Stack) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.Endpoint()), Region: Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
	})
}

func put(t *testing.T, s *Stack, key, body string) error {
	t.Helper()
	_, err := client(s).PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(s.opts.Bucket), Key: &key, Body: strings.NewReader(body), IfNoneMatch: aws.String("*"),
	})
	return err
}

// produce sends n records with a timestamp, and returns once all are acknowledged.
func produce(t *testing.T, s *Stack, n int, at time.Time) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range n {
		c.Produce(t.Context(), &kgo.Record{Topic: "audit.calls", Partition: int32(i % 4), Timestamp: at, Value: fmt.Append(nil, i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// consume returns how many of n awaited records come, each value counted once.
func consume(t *testing.T, s *Stack, n int) int {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers()), kgo.ConsumeTopics("audit.calls"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	seen := map[string]bool{}
	for len(seen) < n && ctx.Err() == nil {
		c.PollFetches(ctx).EachRecord(func(r *kgo.Record) { seen[string(r.Value)] = true })
	}
	return len(seen)
}

// A stack that comes up again on a folder has the records, topics, objects and
// bucket of the one before: what was acknowledged survives.
func TestStackGoesOnWhereItEnded(t *testing.T) {
	dir := t.TempDir()
	first := bring(t, Options{Dir: dir})
	id := first.kafka.TopicInfo("audit.calls").TopicID
	produce(t, first, 1000, time.Now())
	if err := put(t, first, "log/a", "one"); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := bring(t, Options{Dir: dir})
	if got := second.kafka.TopicInfo("audit.calls").TopicID; got != id {
		t.Errorf("the topic's id became %x, was %x", got, id)
	}
	if got := consume(t, second, 1000); got != 1000 {
		t.Errorf("%d of 1000 acknowledged records came back", got)
	}
	if b, err := os.ReadFile(filepath.Join(second.BucketDir(), "log", "a")); string(b) != "one" {
		t.Errorf("the object as a file: %q, %v", b, err)
	}
	if err := put(t, second, "log/a", "two"); status(err) != http.StatusPreconditionFailed {
		t.Errorf("writing the key anew: %v, want 412", err)
	}
}

// Records of long ago, as a backfill sends them, outlive the broker's retention.
func TestOldRecordsAreKept(t *testing.T) {
	s := bring(t, Options{Dir: t.TempDir()})
	produce(t, s, 100, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	s.kafka.ApplyRetention()
	s.kafka.Compact()
	if got := consume(t, s, 100); got != 100 {
		t.Errorf("%d of 100 records are left", got)
	}
}

func status(err error) int {
	var r *awshttp.ResponseError
	if errors.As(err, &r) {
		return r.HTTPStatusCode()
	}
	return 0
}

// Of 32 writers that race to create a key exactly one wins, and the object is
// the winner's.
func TestConditionalWriteHasOneWinner(t *testing.T) {
	s := bring(t, Options{Dir: t.TempDir()})
	for round := range 5 {
		key := fmt.Sprintf("race/%d", round)
		var winners atomic.Int32
		var winner atomic.Value
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				body := fmt.Sprint("writer ", i)
				if err := put(t, s, key, body); err == nil {
					winners.Add(1)
					winner.Store(body)
				} else if c := status(err); c != http.StatusPreconditionFailed && c != http.StatusConflict {
					t.Errorf("a loser got %v, want 412 or 409", err)
				}
			})
		}
		all.Wait()
		if n := winners.Load(); n != 1 {
			t.Fatalf("%d winners", n)
		}
		if b, _ := os.ReadFile(filepath.Join(s.BucketDir(), key)); string(b) != winner.Load() {
			t.Errorf("the object is %q, the winner was %q", b, winner.Load())
		}
	}
}

// Up refuses what cannot work with an error that says what to do next, and
// leaves nothing behind: a stack comes up right after.
func TestUpRefuses(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	bring(t, Options{Dir: dir}).Close()

	for name, c := range map[string]struct {
		o    Options
		want error
	}{
		"Kafka's port is taken":    {Options{Dir: dir, KafkaPort: port}, ErrPortTaken},
		"S3's port is taken":       {Options{Dir: dir, S3Port: port}, ErrPortTaken},
		"other partitions on disk": {Options{Dir: dir, Topics: []Topic{{"audit.calls", 8}}}, ErrPartitions},
		"no folder":                {Options{}, nil},
		"a bucket of two letters":  {Options{Dir: dir, Bucket: "no"}, nil},
		"the folder is a file":     {Options{Dir: filepath.Join(dir, "devstack.lock")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Up(t.Context(), c.o)
			if err == nil {
				s.Close()
				t.Fatal("it came up")
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want one matching %v", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			bring(t, Options{Dir: dir}).Close()
		})
	}
}

// While a stack is up no second one comes up, in this process or on its folder.
func TestOneStackAtATime(t *testing.T) {
	s := bring(t, Options{Dir: t.TempDir()})
	if _, err := Up(t.Context(), Options{Dir: t.TempDir()}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second one in the process: %v", err)
	}
	if _, err := lock(s.path("devstack.lock")); !errors.Is(err, ErrInUse) {
		t.Errorf("the folder's lock is free: %v", err)
	}
}

// Close gives back what Up took: ports, goroutines, the working directory.
// Clients that keep connections, used or never used, do not hold it up.
func TestCloseGivesEverythingBack(t *testing.T) {
	bring(t, Options{Dir: t.TempDir()}).Close() // what the libraries keep for good is there now
	home, _ := os.Getwd()
	before := runtime.NumGoroutine()
	for range 3 {
		s := bring(t, Options{Dir: t.TempDir()})
		produce(t, s, 10, time.Now())
		if err := put(t, s, "k", "v"); err != nil {
			t.Fatal(err)
		}
		addresses := []string{s.Brokers(), strings.TrimPrefix(s.Endpoint(), "http://")}
		for _, a := range addresses {
			c, err := net.Dial("tcp", a)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("close took %v", took)
		}
		for _, a := range addresses {
			l, err := net.Listen("tcp", a)
			if err != nil {
				t.Errorf("the port is not free: %v", err)
				continue
			}
			l.Close()
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if now, _ := os.Getwd(); now != home {
		t.Errorf("the working directory is %s, was %s", now, home)
	}
	deadline := time.Now().Add(10 * time.Second)
	for range time.Tick(5 * time.Millisecond) {
		if runtime.NumGoroutine() <= before+3 || time.Now().After(deadline) {
			break
		}
	}
	if n := runtime.NumGoroutine(); n > before+3 {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}

// The observer is told of each request once, by method and key.
func TestRequestsAreTold(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	s := bring(t, Options{Dir: t.TempDir(), Request: func(c Call) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, c.Method+" "+c.Path)
	}})
	if err := put(t, s, "log/x y", "v"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(calls, ", "); got != "PUT /audit, PUT /audit/log/x%20y" {
		t.Errorf("told: %s", got)
	}
}

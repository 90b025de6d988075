package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ledgerlake/ledgerlake/internal/devstack"
)

const upHelp = `ledgerlake-devstack up: a Kafka and an S3 in one process, until Ctrl-C or SIGTERM.

It prints what a client needs, and commands to paste. Records and objects stay in --dir as plain files; the next
up on the same folder goes on with them. To start over, delete the folder. Not for data that matters.
`

// stackFlags are the flags of a command that brings a stack up for others.
type stackFlags struct {
	dir        string
	kafkaPort  int
	s3Port     int
	bucket     string
	topic      string
	partitions int
	json       bool
}

func (o *stackFlags) bind(f *flagSet) {
	f.StringVar(&o.dir, "dir", "data", "the folder for all data; made if it is not there")
	f.IntVar(&o.kafkaPort, "kafka-port", devstack.DefaultKafkaPort, "the broker's port on 127.0.0.1; 0 takes any free one")
	f.IntVar(&o.s3Port, "s3-port", devstack.DefaultS3Port, "the port of S3 on 127.0.0.1; 0 takes any free one")
	f.StringVar(&o.bucket, "bucket", devstack.DefaultBucket, "the bucket to create, 3 characters or more")
	f.StringVar(&o.topic, "topic", "audit.calls", "the data topic to create")
	f.IntVar(&o.partitions, "partitions", 4, "how many partitions the data topic has")
	f.BoolVar(&o.json, "json", false, "print the settings as one line of JSON, and at the end a second one with the counts of S3 requests")
}

func (o *stackFlags) options() devstack.Options {
	return devstack.Options{
		Dir: o.dir, KafkaPort: o.kafkaPort, S3Port: o.s3Port, Bucket: o.bucket,
		Topics: []devstack.Topic{{Name: o.topic, Partitions: o.partitions}, {Name: "ledgerlake.control", Partitions: 1}},
	}
}

func up(ctx context.Context, args []string, stdout io.Writer) error {
	var o stackFlags
	f := newFlags("up", upHelp)
	o.bind(f)
	if goOn, err := f.parse(args, stdout); !goOn {
		return err
	}
	if err := f.atLeast("partitions", o.partitions, 1); err != nil {
		return err
	}
	return stayUp(ctx, o, stdout)
}

// stayUp brings the stack up and takes it down when ctx is done.
func stayUp(ctx context.Context, o stackFlags, stdout io.Writer) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	var seen requests
	opts := o.options()
	opts.Request = seen.add
	stack, err := devstack.Up(ctx, opts)
	if err != nil {
		return advise(err)
	}
	defer stack.Close()
	seen.reset() // the bucket is made; from here on clients are counted
	if err := announce(stdout, stack, o, here); err != nil {
		return err
	}
	<-ctx.Done()
	if err := stack.Close(); err != nil {
		return err
	}
	return farewell(stdout, o, &seen)
}

// advise adds to an error of Up what the flags can do about it.
func advise(err error) error {
	return fmt.Errorf("%w (%s)", err, "--kafka-port and --s3-port choose ports, 0 for any; --dir chooses the folder")
}

// A settingsLine is what up --json prints when it is up.
type settingsLine struct {
	Brokers   string   `json:"brokers"`
	Bucket    string   `json:"bucket"`    // URL
	BucketDir string   `json:"bucketDir"` // absolute path
	Env       []string `json:"env"`       // NAME=value
}

// A requestsLine is what up --json prints when it is down.
type requestsLine struct {
	Requests map[string]int `json:"requests"` // by method
}

func announce(w io.Writer, s *devstack.Stack, o stackFlags, here string) error {
	if o.json {
		return json.NewEncoder(w).Encode(settingsLine{s.Brokers(), s.BucketURL(), s.BucketDir(), s.Env()})
	}
	_, err := fmt.Fprintf(w, `A Kafka and an S3 are up. Ctrl-C ends them; their data stays in %s.

  Kafka   %s   topics %s (%d partitions) and ledgerlake.control (1)
  S3      %s
  files   %s

To paste into another terminal:

  export %s
  %s produce --brokers %s --topic %s --tenants 5 --rows 10000
  %s run --brokers %s --topics %s --bucket '%s'
  %s '%s'
  %s

`, o.dir, s.Brokers(), o.topic, o.partitions, s.BucketURL(), relative(here, s.BucketDir()),
		strings.Join(s.Env(), " "),
		beside(here, program), s.Brokers(), o.topic,
		beside(here, "ledgerlake-ingest"), s.Brokers(), o.topic, s.BucketURL(),
		beside(here, "ledgerlake-verify"), s.BucketURL(),
		duckdb(relative(here, s.BucketDir())))
	return err
}

func farewell(w io.Writer, o stackFlags, seen *requests) error {
	if o.json {
		return json.NewEncoder(w).Encode(requestsLine{seen.byMethod()})
	}
	_, err := fmt.Fprintf(w, "Down. The data stays in %s.\n", o.dir)
	return err
}

// duckdb is a command that reads an archive's segments as they lie on disk.
func duckdb(bucketDir string) string {
	return fmt.Sprintf(`duckdb -c "SELECT tenant_id, kind, count(*) AS n FROM read_parquet('%s/log/**/*.parquet') GROUP BY ALL ORDER BY ALL"`, filepath.ToSlash(bucketDir))
}

// relative shortens a path for people in the folder here.
func relative(here, path string) string {
	if r, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(r, "..") {
		return r
	}
	return path
}

// requests counts S3 requests.
type requests struct {
	mu sync.Mutex
	n  map[string]int
}

func (r *requests) add(c devstack.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n = map[string]int{}
	}
	r.n[c.Method]++
}

func (r *requests) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n = nil
}

func (r *requests) byMethod() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

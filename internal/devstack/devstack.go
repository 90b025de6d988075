// Package devstack runs a Kafka and an S3 in this process, on loopback, for
// development, demonstrations and tests: real protocols, no servers to install.
//
//	Dir/kafka/          the broker's logs and groups (kfake, on disk)
//	Dir/s3/<bucket>/    the objects of the bucket, as plain files (versitygw's posix backend)
//	Dir/s3meta/         object attributes, where the file system cannot keep them with the files
//	Dir/devstack.lock   held while a stack runs on Dir
//
// A stack that is brought up again on the same Dir goes on where the last one
// ended, or was killed: topics keep their ids and records, groups their
// offsets, the bucket its objects.
//
// # What it does to the process
//
// The S3 backend makes Dir/s3 the working directory of the process, and only
// one of it can run at a time; so only one stack can be up, and relative paths
// must be resolved before [Up]. [Stack.Close] goes back to the old directory.
//
// # What it does not do
//
// It is no place for data that matters: nothing is synced to the disk, the
// credentials are printed in this file, and there is no TLS. A bucket cannot
// hold both the keys k and k/child.
package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
)

// The fixed credentials of the embedded S3.
const (
	AccessKey = "ledgerlake-dev"
	SecretKey = "ledgerlake-dev-secret"
	Region    = "us-east-1"
)

// The usual ports and bucket.
const (
	DefaultKafkaPort = 9092
	DefaultS3Port    = 9000
	DefaultBucket    = "audit"
)

// The errors of Up. Each is the caller's next move.
var (
	// ErrPortTaken: something listens there. Choose another port.
	ErrPortTaken = errors.New("port is taken")
	// ErrInUse: a stack is up on the folder, or in this process. End it first.
	ErrInUse = errors.New("a devstack is up already")
	// ErrPartitions: the folder has the topic with another number of
	// partitions. Choose another folder, or that number.
	ErrPartitions = errors.New("topic has another number of partitions")
)

// Options say what to bring up.
type Options struct {
	Dir       string     // where the data lies; made if it is not there. Required
	KafkaPort int        // 0: any free port
	S3Port    int        // 0: any free port
	Bucket    string     // 3 to 63 characters; "" is DefaultBucket
	Topics    []Topic    // nil is DefaultTopics()
	Request   func(Call) // if set, told of each S3 request as it arrives, concurrently
}

// A Topic is a Kafka topic to create where it does not exist.
type Topic struct {
	Name       string
	Partitions int
}

// A Call is one S3 request.
type Call struct {
	Method string // GET, PUT …
	Path   string // /bucket/key, percent-encoded as it came
	Query  string // as it came
}

// DefaultTopics returns the topics that a stack has unless told otherwise.
func DefaultTopics() []Topic {
	return []Topic{{Name: "audit.calls", Partitions: 4}, {Name: "ledgerlake.control", Partitions: 1}}
}

// A Stack is a Kafka and an S3 that are up.
type Stack struct {
	opts   Options
	before string // the working directory before Up
	unlock func() error
	kafka  *kfake.Cluster
	s3     *gateway
	close  sync.Once
	closed error
}

// up is held while a stack runs in this process.
var up sync.Mutex

// Up starts a stack, and returns when both of its halves answer. Its context
// bounds the start alone. Errors match [ErrPortTaken], [ErrInUse] or
// [ErrPartitions] where one of them is the cause; nothing is left running then.
func Up(ctx context.Context, o Options) (*Stack, error) {
	if !up.TryLock() {
		return nil, fmt.Errorf("devstack: %w in this process", ErrInUse)
	}
	s, err := start(ctx, o)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("devstack: %w", err)
	}
	return s, nil
}

// start returns the stack even where it fails, as far as it has come.
func start(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{opts: o}
	if err := s.settle(); err != nil {
		return s, err
	}
	var err error
	if s.unlock, err = lock(s.path("devstack.lock")); err != nil {
		return s, err
	}
	if s.kafka, err = startKafka(s.path("kafka"), s.opts.KafkaPort, s.opts.Topics); err != nil {
		return s, err
	}
	s.s3, err = startS3(ctx, s.opts.Dir, s.opts.S3Port, s.opts.Bucket, s.opts.Request)
	return s, err
}

// settle fills the options in and makes the folders.
func (s *Stack) settle() (err error) {
	if s.opts.Dir == "" {
		return errors.New("no folder given")
	}
	if s.opts.Bucket == "" {
		s.opts.Bucket = DefaultBucket
	}
	if s.opts.Topics == nil {
		s.opts.Topics = DefaultTopics()
	}
	if s.before, err = os.Getwd(); err != nil {
		return err
	}
	if s.opts.Dir, err = filepath.Abs(s.opts.Dir); err != nil {
		return err
	}
	if err = os.MkdirAll(s.path("kafka"), 0o755); err != nil {
		return err
	}
	return os.MkdirAll(s.path("s3"), 0o755)
}

func (s *Stack) path(name string) string { return filepath.Join(s.opts.Dir, name) }

// Close ends everything that Up has started, and waits for it. Records that
// were acknowledged are on disk then. Closing again does nothing.
func (s *Stack) Close() error {
	s.close.Do(func() {
		defer up.Unlock()
		if s.s3 != nil {
			s.closed = s.s3.stop()
		}
		if s.kafka != nil {
			s.kafka.Close()
		}
		if s.before != "" {
			s.closed = errors.Join(s.closed, os.Chdir(s.before))
		}
		if s.unlock != nil {
			s.closed = errors.Join(s.closed, s.unlock())
		}
	})
	return s.closed
}

// Brokers returns the broker's address, host:port.
func (s *Stack) Brokers() string { return s.kafka.ListenAddrs()[0] }

// Endpoint returns the URL of the S3 service.
func (s *Stack) Endpoint() string { return "http://" + loopback(s.s3.door.port()) }

// BucketURL returns the URL that s3sink and the binaries take, without
// credentials.
func (s *Stack) BucketURL() string { return "s3://" + s.opts.Bucket + "?endpoint=" + s.Endpoint() }

// BucketDir returns the absolute path of the folder that holds the objects.
func (s *Stack) BucketDir() string { return filepath.Join(s.opts.Dir, "s3", s.opts.Bucket) }

// Env returns the environment that gives an AWS client the credentials,
// NAME=value.
func (s *Stack) Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey, "AWS_REGION=" + Region}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

//go:build it

package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A Devstack is our own embedded pair as users run it: ledgerlake-devstack up.
type Devstack struct {
	Brokers   string   // host:port
	Bucket    string   // URL
	BucketDir string   // the bucket's objects as plain files
	Env       []string // credentials for the bucket

	dir, kafkaPort, s3Port string
	proc                   *Process
}

// StartDevstack starts a stack with its data in dir, which it creates.
func StartDevstack(dir string) (*Devstack, error) {
	addrs, err := freeAddrs(2)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	_, kafkaPort, _ := net.SplitHostPort(addrs[0])
	_, s3Port, _ := net.SplitHostPort(addrs[1])
	d := &Devstack{dir: dir, kafkaPort: kafkaPort, s3Port: s3Port}
	return d, d.Start()
}

// Start starts the stack again on its old data and ports, and waits until it
// says that it is up.
func (d *Devstack) Start() error {
	log := filepath.Join(d.dir, time.Now().Format("devstack-150405.000000.log"))
	var err error
	d.proc, err = Start("devstack", log, nil, Binary("ledgerlake-devstack"), "up", "--json",
		"--dir", filepath.Join(d.dir, "data"), "--kafka-port", d.kafkaPort, "--s3-port", d.s3Port, "--bucket", "archive")
	if err != nil {
		return err
	}
	if err := d.proc.until(30*time.Second, d.settings); err != nil {
		d.Kill()
		return err
	}
	return nil
}

var errNotUp = errors.New("no line of settings yet")

// settings reads the line that the stack prints when it is up.
func (d *Devstack) settings(context.Context) error {
	line, _, whole := bytes.Cut([]byte(d.proc.Output()), []byte("\n"))
	if !whole {
		return errNotUp
	}
	return json.Unmarshal(line, d)
}

// Stop stops the stack in good order.
func (d *Devstack) Stop() error {
	_, err := d.proc.Stop(30 * time.Second)
	return err
}

// Kill stops the stack at once.
func (d *Devstack) Kill() { d.proc.Kill() }

//go:build it

package parts

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A NATS is a nats-server with JetStream, which keeps streams in files.
type NATS struct {
	Addr string // host:port; stays over restarts

	dir  string
	proc *Process
}

// StartNATS starts a server with its files in dir, which it creates.
func StartNATS(dir string) (*NATS, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return nil, err
	}
	n := &NATS{Addr: addrs[0], dir: dir}
	// What is acknowledged is on the disk, so that a kill of the machine loses
	// nothing either.
	conf := fmt.Sprintf("host: %q\nport: %s\njetstream { store_dir: %q, sync_interval: always }\n", host, port, filepath.Join(dir, "data"))
	if err := os.WriteFile(filepath.Join(dir, "nats.conf"), []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return n, n.Start()
}

// Start starts the server again on its old files, and waits until it answers.
func (n *NATS) Start() error {
	var err error
	n.proc, err = Start("nats-server", n.Log(), nil, filepath.Join(Build(), "bin", "nats-server"), "-c", filepath.Join(n.dir, "nats.conf"))
	if err != nil {
		return err
	}
	err = n.proc.until(30*time.Second, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.Addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		n.proc.Kill()
	}
	return err
}

// URL returns the server's URL.
func (n *NATS) URL() string { return "nats://" + n.Addr }

// Log returns the file with what the server says.
func (n *NATS) Log() string { return filepath.Join(n.dir, "nats-server.log") }

// Kill stops the server at once.
func (n *NATS) Kill() { n.proc.Kill() }

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

// A Weed is a SeaweedFS with all of its parts in one process. Its objects are
// no plain files. it/setup.sh builds it only when it is asked for it.
type Weed struct {
	endpoint string
	dir      string
	args     []string
	sockets  []string // that it leaves in /tmp, wherever the data is
	proc     *Process
}

// StartWeed starts a server with its data in dir, which it creates.
func StartWeed(dir string) (*Weed, error) {
	services := []string{"s3", "filer", "master", "volume", "admin"}
	addrs, err := freeAddrs(2 * len(services))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		return nil, err
	}
	w := &Weed{endpoint: "http://" + addrs[0], dir: dir, args: []string{
		"-logtostderr", "mini", "-dir", filepath.Join(dir, "data"), "-ip", "127.0.0.1", "-ip.bind", "127.0.0.1",
		"-master.telemetry=false", "-webdav=false", "-admin.ui=false", "-admin.port.legacy=0", "-s3.port.iceberg=0", "-s3.port.lance=0",
		"-s3.localSocket", filepath.Join(dir, "s3.sock"), "-filer.localSocket", filepath.Join(dir, "filer.sock"),
	}}
	for i, name := range services {
		_, http, _ := net.SplitHostPort(addrs[2*i])
		_, grpc, _ := net.SplitHostPort(addrs[2*i+1])
		w.args = append(w.args, "-"+name+".port", http, "-"+name+".port.grpc", grpc)
		w.sockets = append(w.sockets, fmt.Sprintf("/tmp/seaweedfs-%s-grpc-%s.sock", name, grpc))
	}
	return w, w.Start()
}

// Start starts the server again on its old data and waits until it knows its
// user, for it answers before that.
func (w *Weed) Start() error {
	var err error
	env := []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey}
	w.proc, err = Start("weed", filepath.Join(w.dir, "weed.log"), env, filepath.Join(Build(), "bin", "weed"), w.args...)
	if err != nil {
		return err
	}
	ready := func(ctx context.Context) error {
		_, err := S3Client(w.endpoint).ListBuckets(ctx, nil)
		return err
	}
	if err := w.proc.until(60*time.Second, ready); err != nil {
		w.Kill()
		return err
	}
	return nil
}

// URL returns the server's endpoint.
func (w *Weed) URL() string { return w.endpoint }

// Log returns the file with what the server says.
func (w *Weed) Log() string { return w.proc.Log }

// Kill stops the server at once.
func (w *Weed) Kill() {
	w.proc.Kill()
	for _, socket := range w.sockets {
		os.Remove(socket) // which may not be there
	}
}

//go:build it

package parts

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// An Rsyslog is rsyslog, of the system, that takes syslog over TLS from who shows a
// certificate, and writes each message as it came into a file.
type Rsyslog struct {
	Addr string // host:port; stays over restarts
	File string // what it has

	dir  string
	proc *Process
}

// rsyslogConf is its configuration: folder, CA, certificate, key, port, file.
// Control characters are kept: LEEF has tabs. A direct queue is none: what is read
// is written before its connection is ended.
const rsyslogConf = `global(workDirectory="%[1]s" maxMessageSize="8k" parser.escapeControlCharactersOnReceive="off"
  defaultNetstreamDriver="ossl" defaultNetstreamDriverCAFile="%[2]s" defaultNetstreamDriverCertFile="%[3]s" defaultNetstreamDriverKeyFile="%[4]s")
main_queue(queue.type="Direct")
module(load="imtcp" streamDriver.name="ossl" streamDriver.mode="1" streamDriver.authMode="x509/certvalid")
template(name="raw" type="string" string="%%rawmsg%%\n")
ruleset(name="all") { action(type="omfile" file="%[6]s" template="raw") }
input(type="imtcp" address="127.0.0.1" port="%[5]s" ruleset="all")
`

// StartRsyslog starts one with its file in dir, which it creates.
func StartRsyslog(dir string, c *Certificates) (*Rsyslog, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &Rsyslog{Addr: addrs[0], File: filepath.Join(dir, "messages"), dir: dir}
	_, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return nil, err
	}
	conf := fmt.Sprintf(rsyslogConf, dir, c.CA, c.Cert, c.Key, port, r.File)
	if err := os.WriteFile(filepath.Join(dir, "rsyslog.conf"), []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return r, r.Start()
}

// Start starts it again, and waits until it listens.
func (r *Rsyslog) Start() error {
	path := "/usr/sbin/rsyslogd"
	var err error
	r.proc, err = Start("rsyslogd", r.Log(), nil, path, "-n", "-f", filepath.Join(r.dir, "rsyslog.conf"), "-i", filepath.Join(r.dir, "rsyslogd.pid"))
	if err != nil {
		return err
	}
	err = r.proc.until(30*time.Second, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		r.proc.Kill()
	}
	return err
}

// Log returns the file with what it says.
func (r *Rsyslog) Log() string { return filepath.Join(r.dir, "rsyslogd.log") }

// Kill stops it at once.
func (r *Rsyslog) Kill() { r.proc.Kill() }

// Stop stops it in good order, so that all that it took is in its file.
func (r *Rsyslog) Stop() error {
	_, err := r.proc.Stop(30 * time.Second)
	return err
}

// Messages stops it, so that all that it took is in its file, and returns that, a
// message a line.
func (r *Rsyslog) Messages() ([]string, error) {
	if err := r.Stop(); err != nil {
		return nil, err
	}
	body, err := os.ReadFile(r.File)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(body), "\n"), "\n"), nil
}

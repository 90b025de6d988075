//go:build it

// Package parts starts the real parts that integration tests run against, each
// as a process of its own on loopback, and our own binaries beside them.
//
//	Kafka, SecureKafka  Apache Kafka, one node   it/.build/kafka
//	S3                  versitygw on a folder    it/.build/bin/versitygw
//	Weed                SeaweedFS                it/.build/bin/weed
//	Victoria            VictoriaLogs             it/.build/bin/victoria-logs
//	Rsyslog             rsyslog                  the system's (rsyslog, rsyslog-openssl)
//	NATS                nats-server              it/.build/bin/nats-server
//	Devstack            our embedded pair        it/.build/bin/ledgerlake-devstack
//	DuckDB              1.5 and 2.0, by Python   it/.build/py15, it/.build/py20
//
// it/setup.sh makes what is in it/.build; it/run.sh builds our binaries there.
// Whoever starts a part stops it; a part that was not stopped dies with the
// test. Nothing here checks anything about the product: that is for the tests.
package parts

import (
	"os"
	"path/filepath"
	"sync"
)

// Root returns the folder of the repository: the nearest one above the working
// directory that holds it/setup.sh.
var Root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "it", "setup.sh")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	panic("parts: not inside the repository")
})

// Build returns the folder that setup.sh fills.
func Build() string { return filepath.Join(Root(), "it", ".build") }

// Binary returns the path of one of our binaries, as run.sh builds them.
func Binary(name string) string { return filepath.Join(Build(), "bin", name) }

// A Store is an S3 server that can be restarted.
type Store interface {
	URL() string // http://host:port; stays over restarts
	Log() string // the file with what it says
	Start() error
	Kill()
}

// FreeAddress returns a host:port on loopback that nobody listens at.
func FreeAddress() (string, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return "", err
	}
	return addrs[0], nil
}

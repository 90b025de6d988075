//go:build it

package quickstart

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// patience is how long a block that is repeated may take to print what it is
// to print.
const patience = 60 * time.Second

// A newcomer is somebody who follows the page.
type newcomer struct {
	t     *testing.T
	shell *shell
	ports *strings.Replacer
	kafka string // host:port
}

func TestQuickstart(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "quickstart.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := blocks(string(page))
	if err != nil || len(all) < 15 {
		t.Fatalf("%d blocks, %v", len(all), err)
	}
	n := start(t)
	for i, b := range all {
		if b.section == "11. Stop" {
			n.examples()
		}
		began := time.Now()
		n.follow(b)
		t.Logf("%6.1f s  %s: %s", time.Since(began).Seconds(), b.section, strings.SplitN(b.commands, "\n", 2)[0])
		if t.Failed() {
			t.Fatalf("block %d of %d, in %q", i+1, len(all), b.section)
		}
	}
	if _, err := net.DialTimeout("tcp", n.kafka, time.Second); err == nil {
		t.Error("Kafka is still up")
	}
}

// start opens a shell in an empty folder.
func start(t *testing.T) *newcomer {
	t.Helper()
	var addrs [3]string // Kafka, S3, serve
	for i := range addrs {
		var err error
		if addrs[i], err = parts.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := newShell(t.TempDir(), environ(addrs[0]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return &newcomer{t: t, shell: s, ports: otherPorts(addrs), kafka: addrs[0]}
}

// environ is what a newcomer has: git, which gets this repository where the
// page says GitHub, and DuckDB.
func environ(kafka string) []string {
	duckdb := filepath.Dir(parts.Python("LEDGERLAKE_IT_PYTHON15", "py15"))
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LEDGERLAKE_") && !strings.HasPrefix(v, "AWS_") && !strings.HasPrefix(v, "GOFLAGS=") {
			env = append(env, v)
		}
	}
	return append(env, "PATH="+duckdb+":"+os.Getenv("PATH"), "KAFKA_BROKERS="+kafka,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+parts.Root()+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/ledgerlake/ledgerlake")
}

// otherPorts puts free ports in the place of those of the page.
func otherPorts(addrs [3]string) *strings.Replacer {
	_, kafka, _ := net.SplitHostPort(addrs[0])
	_, s3, _ := net.SplitHostPort(addrs[1])
	return strings.NewReplacer(
		"127.0.0.1:9092", addrs[0], "127.0.0.1:9000", addrs[1], "127.0.0.1:8420", addrs[2],
		"ledgerlake-devstack up", "ledgerlake-devstack up --kafka-port "+kafka+" --s3-port "+s3,
		"ledgerlake-export serve", "ledgerlake-export serve --listen "+addrs[2],
	)
}

// follow pastes a block and holds what comes against what the page says.
func (n *newcomer) follow(b block) {
	n.t.Helper()
	commands := n.ports.Replace(b.commands)
	switch {
	case b.until != "":
		n.until(commands, b.until, b.exit)
	case b.exit != 0:
		said, code, err := n.shell.ask(commands)
		n.expect(b, said, code, err)
	default:
		said, code, err := n.shell.paste(commands)
		n.expect(b, said, code, err)
	}
}

func (n *newcomer) expect(b block, said string, code int, err error) {
	n.t.Helper()
	if err != nil || code != b.exit || !strings.Contains(said, b.shows) {
		n.t.Errorf("%s\nended with %d, want %d (%v), and to print %q. It printed:\n%s", b.commands, code, b.exit, err, b.shows, said)
	}
}

// until repeats commands that only read, until they print what is wanted and end
// as they should.
func (n *newcomer) until(commands, want string, exit int) {
	n.t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		said, code, err := n.shell.ask(commands)
		if err == nil && code == exit && strings.Contains(said, want) {
			return
		}
		if err != nil || time.Since(began) > patience {
			n.t.Fatalf("%s\ndoes not print %q and end with %d (%v). At last it ended with %d and printed:\n%s", commands, want, exit, err, code, said)
		}
	}
}

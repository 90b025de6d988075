//go:build it

package parts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Victoria is a VictoriaLogs: a store of logs that takes them by the protocols
// of others, and has a language to ask for them.
type Victoria struct {
	Endpoint string // http://host:port; stays over restarts

	dir   string
	flags []string
	proc  *Process
}

// StartVictoria starts a server with its data in dir, which it creates, and with
// more flags of its own. It keeps logs of any time from 1970 on.
func StartVictoria(dir string, flags ...string) (*Victoria, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	v := &Victoria{Endpoint: "http://" + addrs[0], dir: dir, flags: flags}
	return v, v.Start()
}

// Start starts the server again on its old data and waits until it answers.
func (v *Victoria) Start() error {
	args := append([]string{
		"-httpListenAddr=" + strings.TrimPrefix(v.Endpoint, "http://"), "-storageDataPath=" + filepath.Join(v.dir, "data"),
		"-retentionPeriod=100y", "-futureRetention=10y", "-insert.maxLineSizeBytes=2MiB", "-memory.allowedBytes=256MiB",
	}, v.flags...)
	var err error
	v.proc, err = Start("victoria-logs", filepath.Join(v.dir, "victoria-logs.log"), nil, filepath.Join(Build(), "bin", "victoria-logs"), args...)
	if err != nil {
		return err
	}
	err = v.proc.until(30*time.Second, func(ctx context.Context) error { return pingHTTP(ctx, v.Endpoint+"/health") })
	if err != nil {
		v.Kill()
	}
	return err
}

// URL returns the server's endpoint.
func (v *Victoria) URL() string { return v.Endpoint }

// Log returns the file with what the server says.
func (v *Victoria) Log() string { return v.proc.Log }

// Kill stops the server at once.
func (v *Victoria) Kill() { v.proc.Kill() }

// Query returns all that a query in LogsQL finds among what was written with the
// header AccountID: account. All that was taken before is there to be found.
func (v *Victoria) Query(ctx context.Context, account int, query string) ([]map[string]string, error) {
	if _, err := v.ask(ctx, account, "/internal/force_flush", nil); err != nil {
		return nil, err
	}
	body, err := v.ask(ctx, account, "/select/logsql/query", url.Values{"query": {query}, "timeout": {"2m"}})
	if err != nil {
		return nil, err
	}
	var found []map[string]string
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		one := map[string]string{}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("victoria-logs: %w", err)
		}
		found = append(found, one)
	}
	return found, lines.Err()
}

func (v *Victoria) ask(ctx context.Context, account int, path string, form url.Values) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.Endpoint+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("AccountID", strconv.Itoa(account))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("victoria-logs: %s: %s: %.200s", path, res.Status, b.Bytes())
	}
	return b.Bytes(), nil
}

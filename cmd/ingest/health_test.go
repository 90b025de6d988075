package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// A partition makes a process unready when it has stopped, or when what was
// read of it waits too long; not when it is idle, nor because it was.
func TestLate(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tt := range []struct {
		name string
		p    pipeline.PartitionStatus
		want string
	}{
		{"nothing yet", pipeline.PartitionStatus{}, ""},
		{"idle for an hour", pipeline.PartitionStatus{LastCommit: ago(time.Hour)}, ""},
		{"idle for an hour, and now a record", pipeline.PartitionStatus{LastCommit: ago(time.Hour), Pending: ago(time.Second)}, ""},
		{"busy", pipeline.PartitionStatus{LastCommit: ago(time.Second), Pending: ago(time.Hour)}, ""},
		{"just begun", pipeline.PartitionStatus{Pending: ago(time.Minute)}, ""},
		{"never durable", pipeline.PartitionStatus{Pending: ago(61 * time.Second)}, "nothing durable yet, and something has been waiting for 1m1s"},
		{"no longer durable", pipeline.PartitionStatus{LastCommit: ago(2 * time.Minute), Pending: ago(90 * time.Second)}, "nothing durable for 2m0s, and something is waiting"},
		{"starts", pipeline.PartitionStatus{Starting: true, Pending: ago(time.Minute)}, ""},
		{"does not start", pipeline.PartitionStatus{Starting: true, Pending: ago(90 * time.Second)}, "not started after 1m30s: the bucket or Kafka has not said where it goes on"},
		{"stopped", pipeline.PartitionStatus{LastCommit: ago(time.Second), Stopped: errors.New("segment 3: forged")}, "stopped: segment 3: forged"},
	} {
		h := health{readyAge: time.Minute}
		if got := h.late(&tt.p, now); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A process that starts or stops is alive and not ready, and says why.
func TestReadyAnswers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(*health)
		want    string
	}{
		{"starting", func(*health) {}, "the bucket has not answered yet"},
		{"joining", func(h *health) { h.begin(pipeline.New(pipeline.Settings{}, pipeline.Events{}).Status) }, "no partitions assigned yet"},
		{"stopping", func(h *health) { h.stopping.Store(true) }, "stopping"},
	} {
		h := &health{readyAge: time.Minute}
		tt.prepare(h)
		m := newMetrics(h.status, config.HTTP{})
		code, body := ask(t, h, m, "/readyz")
		if code != 503 || body["ready"] != false || body["why"] != tt.want {
			t.Errorf("%s: %d %v", tt.name, code, body)
		}
		if code, body := ask(t, h, m, "/healthz"); code != 200 || body["alive"] != true {
			t.Errorf("%s: %d %v", tt.name, code, body)
		}
	}
}

// One partition that has stopped makes the process unready, by name, and does
// not make it dead.
func TestStoppedPartition(t *testing.T) {
	h := &health{readyAge: time.Minute}
	h.begin(func() pipeline.Status {
		return pipeline.Status{Joined: true, Partitions: []pipeline.PartitionStatus{
			{Line: archive.Line{Topic: "audit.calls", Partition: 2}}, {Line: orders, Stopped: errors.New("forged")},
		}}
	})
	m := newMetrics(h.status, config.HTTP{})
	code, body := ask(t, h, m, "/readyz")
	if want := "map[notReady:[map[partition:3 topic:audit.calls why:stopped: forged]] partitions:2 ready:false]"; code != 503 || fmt.Sprint(body) != want {
		t.Errorf("%d %v, want %s", code, body, want)
	}
	if code, _ := ask(t, h, m, "/healthz"); code != 200 {
		t.Errorf("/healthz answers %d", code)
	}
}

// A process whose locks are held for ever is not alive, and says so in time.
func TestDeadlockIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &health{}
		forever := make(chan struct{})
		h.begin(func() pipeline.Status { <-forever; return pipeline.Status{} })
		began := time.Now()
		w := httptest.NewRecorder()
		h.ServeAlive(w, httptest.NewRequest("GET", "/healthz", nil))
		if took := time.Since(began); w.Code != 503 || took != aliveWithin {
			t.Errorf("%d after %v", w.Code, took)
		}
		close(forever)
	})
}

// ask returns what a path answers.
func ask(t *testing.T, h *health, m *metrics, path string) (code int, body map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	daemon.Handler(h, m.Registry).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v: %s", path, err, w.Body)
	}
	return w.Code, body
}

// The JSON of /readyz names each partition that is not ready, and is small where
// all are.
func TestReadinessJSON(t *testing.T) {
	for want, r := range map[string]readiness{
		`{"ready":true,"partitions":3}`: {Ready: true, Partitions: 3},
		`{"ready":false,"partitions":3,"notReady":[{"topic":"audit.calls","partition":3,"why":"stopped: <x>"}]}`: {Partitions: 3, NotReady: []notReady{{orders.Topic, orders.Partition, "stopped: <x>"}}},
	} {
		w := httptest.NewRecorder()
		daemon.Answer(w, r.Ready, r)
		if got := strings.TrimSpace(w.Body.String()); got != want || (w.Code == 200) != r.Ready {
			t.Errorf("%d %s, want %s", w.Code, got, want)
		}
	}
}

// Only those three paths are there, and they are only read.
func TestOtherRequests(t *testing.T) {
	h := &health{}
	m := newMetrics(h.status, config.HTTP{})
	for request, want := range map[string]int{"GET /": 404, "GET /debug/pprof/": 404, "POST /metrics": 405, "HEAD /healthz": 200, "GET /metrics": 200} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		daemon.Handler(h, m.Registry).ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", request, w.Code, want)
		}
	}
}

// A port that was asked for and is taken is bad configuration: exit code 2, and
// a line with the setting.
func TestListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	address := taken.Addr().String()
	_, stderr, code := call(t, nil, "run", "--topics", "t", "--bucket", "s3://bucket?region=x", "--http.listen", address)
	if want := fmt.Sprintf("%s: http.listen (flag --http.listen): listen tcp %s: bind: address already in use\n", program, address); code != exitBadUse || stderr != want {
		t.Errorf("exit %d\n got %swant %s", code, stderr, want)
	}
}

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/kafka"
)

// Five records, and SIGTERM before a store that takes two seconds has any of
// them: the process says at once that it is not ready, stops within its time
// with exit code 0, and all five rows are durable and committed.
func TestStopLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	a := s.start("--topics", "audit.calls", "--shutdown-timeout", "10s", "--batch.age", "1h")
	s.until("ready", a.holds(1))
	s.store.set(func() { s.store.slow = 2 * time.Second })
	s.produce("audit.calls", 0, 5)
	s.until("something waits", func() bool { return held(a) })
	began := time.Now()
	a.cancel()
	s.until("not ready", func() bool { r := a.ready(); return r.Why == "stopping" })
	if code, _ := a.ask("/readyz"); code != 503 {
		t.Errorf("/readyz answers %d while the process stops", code)
	}
	if code, _ := a.ask("/healthz"); code != 200 {
		t.Errorf("/healthz answers %d while the process stops", code)
	}
	if err := a.stop(); err != nil || exitCode(err) != exitClean {
		t.Errorf("exit %d, error %v", exitCode(err), err)
	}
	if took := time.Since(began); took < 2*time.Second || took > 9*time.Second {
		t.Errorf("stopped after %v", took)
	}
	if rows, at := s.proved(), s.committed("audit.calls", 0); rows < 1 || at != int64(rows) {
		t.Errorf("%d rows, offset %d committed", rows, at)
	}
	if code, _ := a.ask("/healthz"); code != 0 {
		t.Error("somebody still listens")
	}
}

// held reports whether records are held that are not durable.
func held(a *actor) bool {
	for line := range strings.Lines(metricsOf(a)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), namespace+"_held_bytes "); ok {
			return n != "0"
		}
	}
	return false
}

func metricsOf(a *actor) string {
	_, body := a.ask("/metrics")
	return body
}

// Five records and then silence: they become durable by time alone. The process
// is ready meanwhile, and after a long silence too.
func TestQuietTopicsFlush(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	a := s.start("--topics", "audit.calls", "--http.ready-age", "1s")
	s.until("ready", a.holds(1))
	s.produce("audit.calls", 0, 5)
	produced := time.Now()
	s.until("durable", func() bool { return s.proved() == 5 })
	if took := time.Since(produced); took > 10*time.Second {
		t.Errorf("durable after %v", took)
	}
	time.Sleep(1500 * time.Millisecond) // longer than ready-age
	if r := a.ready(); !r.Ready {
		t.Errorf("not ready after a silence: %+v", r)
	}
	said := ours(strings.Split(metricsOf(a), "\n"))
	for name, want := range map[string]string{
		"rows_total": "5", "record_delay_seconds_count": "5", "held_bytes": "0", "pending_seconds": "0", `partitions{state="running"}`: "1",
		`lag_offsets{partition="0",topic="audit.calls"}`: "0", "partitions_assigned_total": "1", `kafka_connects_total{outcome="failed"}`: "0",
	} {
		if said[name] != want {
			t.Errorf("%s is %q, want %s", name, said[name], want)
		}
	}
	if puts := said[`store_requests_total{code="200",operation="PutObject"}`]; puts == "" || said["segments_total"] == "0" {
		t.Errorf("%s PUTs, %s segments", puts, said["segments_total"])
	}
	if err := a.stop(); err != nil {
		t.Error(err)
	}
}

// Credentials that a store refuses for a while make a process that was ready
// unready, and name the partition; it stays alive, drops nothing, and goes on
// by itself. While a store refuses from the start, ingest does not start at all.
func TestDenialsDropNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(2, "audit.calls"))
	a := s.start("--topics", "audit.calls", "--http.ready-age", "1s")
	s.until("ready", a.holds(2))
	s.produce("audit.calls", 0, 3)
	s.until("durable", func() bool { return s.proved() == 3 })
	s.store.set(func() { s.store.denies = true })
	s.produce("audit.calls", 0, 4)
	s.until("it is not ready, because of one partition", func() bool {
		r := a.ready()
		return len(r.NotReady) == 1 && r.NotReady[0].Topic == "audit.calls" && r.NotReady[0].Partition == 0 && strings.Contains(r.NotReady[0].Why, "nothing durable")
	})
	if code, _ := a.ask("/healthz"); code != 200 {
		t.Errorf("/healthz answers %d because of the store", code)
	}
	if !strings.Contains(metricsOf(a), `_retries_total{cause="denied",operation="create"}`) || strings.Contains(metricsOf(a), `_retries_total{cause="denied",operation="create"} 0`) {
		t.Error("denials are not counted")
	}
	s.store.set(func() { s.store.denies = false })
	s.until("durable", func() bool { return s.proved() == 7 })
	s.until("ready", a.holds(2))
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if at := s.committed("audit.calls", 0); at != 7 {
		t.Errorf("offset %d committed, want 7", at)
	}
}

// A stop while the store refuses everything ends in time and with exit code 0:
// what is not durable is left to the next owner, who makes rows of it, each
// once.
func TestStopLeavesTheRestToTheNext(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	a := s.start("--topics", "audit.calls", "--shutdown-timeout", "4s")
	s.until("ready", a.holds(1))
	s.produce("audit.calls", 0, 3)
	s.until("committed", func() bool { return s.proved() == 3 && s.committed("audit.calls", 0) == 3 })
	s.store.set(func() { s.store.denies = true })
	s.produce("audit.calls", 0, 4)
	s.until("something waits", func() bool { return held(a) })
	began := time.Now()
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("stopped after %v", took)
	}
	s.store.set(func() { s.store.denies = false })
	if rows, at := s.proved(), s.committed("audit.calls", 0); rows != 3 || at != 3 {
		t.Errorf("%d rows, offset %d committed", rows, at)
	}
	b := s.start("--topics", "audit.calls")
	s.until("durable", func() bool { return s.proved() == 7 })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
}

// Who stops a process whose store has not answered yet gets a clean end:
// nothing was read.
func TestStopBeforeTheBucketAnswers(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	s.store.url = "http://127.0.0.1:1"
	a := s.start("--topics", "audit.calls")
	if r := a.ready(); r.Ready || r.Why != "the bucket has not answered yet" {
		t.Errorf("%+v", r)
	}
	if code, _ := a.ask("/healthz"); code != 200 {
		t.Errorf("/healthz answers %d", code)
	}
	if err := a.stop(); err != nil {
		t.Error(err)
	}
}

// Two members that stay: one is away for a moment, and nobody's partitions
// move, by either protocol. (A classic group of kfake makes a new generation
// all the same, because it compares what a member says it owns, which Kafka does
// not.)
func TestStaticMembersKeepTheirPartitions(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, kfake.SeedTopics(4, "audit.calls"))
			s.leaveByInstance()
			member := func(id string) *actor {
				return s.start("--topics", "audit.calls", "--kafka.instance-id", id, "--kafka.group-protocol", protocol)
			}
			one, two := member("one"), member("two")
			s.until("both have two", func() bool { return one.holds(2)() && two.holds(2)() })
			moves, epoch := two.moves(), s.cluster.GroupInfo("ledgerlake").Epoch
			if err := one.stop(); err != nil {
				t.Fatal(err)
			}
			for n := range int32(4) {
				s.produce("audit.calls", n, 1) // two of them while nobody reads
			}
			one = member("one")
			s.until("one is back", one.holds(2))
			s.until("all durable", func() bool { return s.proved() == 4 })
			if n := two.moves(); n != moves {
				t.Errorf("partitions of the other one moved %d times meanwhile", n-moves)
			}
			if now := s.cluster.GroupInfo("ledgerlake").Epoch; protocol == "consumer" && now != epoch {
				t.Errorf("the group is at epoch %d, was at %d", now, epoch)
			}
			for _, a := range []*actor{one, two} {
				if err := a.stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// leaveByInstance has the broker refuse as Kafka does who leaves as a static
// member and does not say which.
func (s *stage) leaveByInstance() {
	s.cluster.ControlKey(int16(kmsg.ConsumerGroupHeartbeat), func(r kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		request := r.(*kmsg.ConsumerGroupHeartbeatRequest)
		if request.MemberEpoch != kafka.StaticallyAway || request.InstanceID != nil {
			return nil, nil, false
		}
		response := r.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
		response.ErrorCode = kerr.InvalidRequest.Code
		return response, nil, true
	})
}

// moves returns how often a partition was given to an ingest or taken from it.
func (a *actor) moves() int {
	log := a.log.String()
	return strings.Count(log, "partition assigned") + strings.Count(log, "partition given up")
}

// A member that is one too many has nothing, and is ready.
func TestSpareMembersAreReady(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	one, two := s.start("--topics", "audit.calls"), s.start("--topics", "audit.calls")
	s.until("one has it, the other nothing", func() bool {
		a, b := one.ready(), two.ready()
		return a.Ready && b.Ready && a.Partitions+b.Partitions == 1
	})
	for _, a := range []*actor{one, two} {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}
}

// A pattern reads the topics that match whole, those that are made later and
// partitions that are added too; never the dead-letter topic, Kafka's own, or
// what matches in part.
func TestPatternFindsWhatIsMadeLater(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, kfake.SeedTopics(1, "audit.calls", "audit.dead", "other.audit.calls", "__audit.internal"))
			a := s.start("--topic-pattern", `(__)?audit\..*`, "--dlq-topic", "audit.dead", "--kafka.metadata-age", "1s", "--kafka.group-protocol", protocol)
			s.until("the first is read", a.holds(1))
			if err := s.cluster.CreateTopic("audit.traces", 2, nil); err != nil {
				t.Fatal(err)
			}
			s.until("the later one is read", a.holds(3))
			if _, err := kadm.NewClient(s.client).UpdatePartitions(t.Context(), 3, "audit.calls"); err != nil {
				t.Fatal(err)
			}
			s.until("the new partitions are read", a.holds(5))
			for n := range int32(3) {
				s.produce("audit.calls", n, 1)
			}
			s.produce("audit.traces", 1, 1)
			for _, not := range []string{"audit.dead", "other.audit.calls", "__audit.internal"} {
				s.produce(not, 0, 1)
			}
			s.until("all of it is durable", func() bool { return s.proved() >= 4 })
			if err := a.stop(); err != nil {
				t.Error(err)
			}
			if rows := s.proved(); rows != 4 {
				t.Errorf("%d rows, want 4", rows)
			}
		})
	}
}

// A partition that cannot begin, because the store does not say where it goes
// on, makes the process unready after a while, and ready again when it does.
func TestSlowStartIsNotReady(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	a := s.start("--topic-pattern", `audit\..*`, "--kafka.metadata-age", "1s", "--http.ready-age", "1s")
	s.until("ready", a.holds(1))
	s.store.set(func() { s.store.denies = true })
	if err := s.cluster.CreateTopic("audit.traces", 1, nil); err != nil {
		t.Fatal(err)
	}
	s.until("it is not ready, because of one partition", func() bool {
		r := a.ready()
		return !r.Ready && len(r.NotReady) == 1 && r.NotReady[0].Topic == "audit.traces" && strings.HasPrefix(r.NotReady[0].Why, "not started")
	})
	s.store.set(func() { s.store.denies = false })
	s.until("ready", a.holds(2))
	if err := a.stop(); err != nil {
		t.Error(err)
	}
}

// Two processes are told to read the same partition, without a group: both run,
// the archive is one line, and each record is one row.
func TestAssignedTwice(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(2, "audit.calls"))
	one, two := s.start("--assign", "audit.calls/1"), s.start("--assign", "audit.calls/1")
	s.until("both are ready", func() bool { return one.holds(1)() && two.holds(1)() })
	s.produce("audit.calls", 0, 1) // nobody reads it
	for range 20 {
		s.produce("audit.calls", 1, 10)
	}
	s.until("all of it is durable", func() bool { return s.proved() == 200 })
	for _, a := range []*actor{one, two} {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}
	if rows, at := s.proved(), s.committed("audit.calls", 1); rows != 200 || at != 200 {
		t.Errorf("%d rows, offset %d committed", rows, at)
	}
}

// A token service that is away, and one that refuses, keep the process out of
// Kafka and not from living: it says why, a few lines a second, without the
// secret, and goes on trying.
func TestNoTokens(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error": "invalid_client", "error_description": "no such secret: hunter2"}`)
	}))
	defer service.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for url, why := range map[string]string{service.URL: "401 Unauthorized invalid_client", "http://127.0.0.1:1/token": "connection refused"} {
		s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
		speakOAuth(s.cluster)
		a := s.start("--topics", "audit.calls", "--log-level", "info", "--kafka.sasl.mechanism", "oauthbearer",
			"--kafka.sasl.oauth.token-url", url, "--kafka.sasl.oauth.client-id", "ingest", "--kafka.sasl.oauth.client-secret-file", secret)
		s.until("says why", func() bool { return strings.Contains(a.log.String(), why) })
		time.Sleep(time.Second)
		if r := a.ready(); r.Ready || r.Why != "no partitions assigned yet" {
			t.Errorf("%+v", r)
		}
		if log := a.log.String(); strings.Contains(log, "hunter2") || strings.Count(log, "\n") > 40 {
			t.Errorf("log:\n%s", log)
		}
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}
}

// speakOAuth has brokers that would take everybody ask for tokens first.
func speakOAuth(cluster *kfake.Cluster) {
	cluster.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
		if r.(*kmsg.SASLHandshakeRequest).Mechanism != "OAUTHBEARER" {
			response.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		}
		return response, nil, true
	})
}

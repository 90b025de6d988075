//go:build it

package cases

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// Two processes that know nothing of each other (here by groups of different
// names) write one line all the same, and neither stops.
func TestTwoWriters(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.start("--batch.rows", "5", "--group", "another")
	first := s.ingest
	s.start("--batch.rows", "5")
	for i := range 40 {
		s.produce(topic, "acme", calls("acme", 10*i, 10)...)
		time.Sleep(10 * time.Millisecond) // so that segments are many
	}
	s.drain()
	s.stop()
	if code, err := first.Stop(30 * time.Second); code != 0 || err != nil {
		t.Errorf("the other writer: exit %d, %v", code, err)
	}
	a := s.check(oracle.Proved)
	s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"400", "400"})
}

// A process that sleeps while another takes over its partition wakes up with
// an old state, and old rows that it has not stored yet. It does no harm.
func TestAWriterThatWakesUp(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.start("--batch.rows", "5")
	sleeper := s.ingest
	s.produce(topic, "acme", calls("acme", 0, 50)...)
	s.drain()
	s.store.Add(faults3.Rule{Op: faults3.Put, Times: 3, Fault: faults3.Slow(300 * time.Millisecond)}) // it falls asleep over a PUT
	s.produce(topic, "acme", calls("acme", 50, 50)...)
	s.must(sleeper.Signal(syscall.SIGSTOP))
	s.must(s.group.Evict(t.Context()))
	s.start("--batch.rows", "7")
	s.produce(topic, "acme", calls("acme", 100, 100)...)
	s.drain()
	s.must(sleeper.Signal(syscall.SIGCONT))
	s.produce(topic, "acme", calls("acme", 200, 100)...)
	s.drain()
	s.stop()
	if code, err := sleeper.Stop(30 * time.Second); code != 0 || err != nil {
		t.Errorf("the writer that slept: exit %d, %v", code, err)
	}
	a := s.check(oracle.Proved)
	s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"300", "300"})
}

// Neither is a broker that is away when ingest starts a reason to end.
func TestABrokerThatIsAwayAtTheStart(t *testing.T) {
	s := newStage(t, faults3.Options{})
	_, text, err := net.SplitHostPort(s.addrs[0])
	s.must(err)
	port, err := strconv.Atoi(text)
	s.must(err)
	s.topics = []string{topic}
	s.kafka.Close()
	s.start()
	time.Sleep(2 * time.Second) // that it is away is what is tested
	s.must(s.alive())
	s.kafka, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port))
	s.must(err)
	t.Cleanup(s.kafka.Close)
	s.topics = nil
	s.topic(topic, nil)
	s.client = s.newClient()
	s.group.Client = s.client
	s.produce(topic, "acme", calls("acme", 0, 40)...)
	s.drain()
	s.stop()
	a := s.check(oracle.Proved)
	s.wantRows(a, `select count(*) from {rows}`, []any{"40"})
}

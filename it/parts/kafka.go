//go:build it

package parts

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A Kafka is a one-node Apache Kafka (KRaft) on loopback.
type Kafka struct {
	Addr   string // host:port of the plain listener; stays over restarts
	Behind string // host:port of the listener behind KafkaOptions.Front, "" without one

	dir    string
	format []string // more arguments of the tool that formats the folder
	proc   *Process
}

// KafkaOptions are what a broker has beyond the usual. The zero KafkaOptions
// are a plain broker.
type KafkaOptions struct {
	Properties string            // more lines of server.properties
	Listeners  map[string]string // more listeners: name, which is also the protocol -> host:port
	Format     []string          // more arguments of the tool that formats the folder
	// Front is the host:port of a proxy of the test: who comes by it is sent to it
	// again for each partition. It passes on to Kafka.Behind.
	Front string
}

// kafkaProperties are the broker's settings: directory, plain and controller
// address, more listeners by address, by protocol, and by what clients are told.
const kafkaProperties = `process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=%[3]s
listeners=PLAINTEXT://%[2]s,CONTROLLER://%[3]s%[4]s
advertised.listeners=PLAINTEXT://%[2]s%[6]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT%[5]s
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=%[1]s/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
`

// StartKafka formats a new broker in dir, which it creates, starts it and
// waits until it answers.
func StartKafka(dir string) (*Kafka, error) { return StartKafkaWith(dir, KafkaOptions{}) }

// StartKafkaWith is StartKafka for a broker that has more than the usual.
func StartKafkaWith(dir string, o KafkaOptions) (*Kafka, error) {
	addrs, err := freeAddrs(3)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	k := &Kafka{Addr: addrs[0], dir: dir, format: o.Format}
	var listeners, advertised, protocols string
	for name, addr := range o.Listeners {
		listeners += "," + name + "://" + addr
		protocols += "," + name + ":" + name
	}
	advertised = listeners
	if o.Front != "" {
		k.Behind = addrs[2]
		listeners += ",FRONT://" + k.Behind
		advertised += ",FRONT://" + o.Front
		protocols += ",FRONT:PLAINTEXT"
	}
	text := fmt.Sprintf(kafkaProperties, dir, addrs[0], addrs[1], listeners, protocols, advertised) + o.Properties
	if err := os.WriteFile(k.properties(), []byte(text), 0o644); err != nil {
		return nil, err
	}
	if err := k.formatDir(); err != nil {
		return nil, err
	}
	return k, k.Start()
}

// formatDir gives the broker's folder a cluster id. Kafka starts in no other.
func (k *Kafka) formatDir() error {
	var id [16]byte
	rand.Read(id[:])
	id[0] &= 0x7f // in base64 no leading "-", which would read as a flag
	cluster := base64.RawURLEncoding.EncodeToString(id[:])
	args := []string{
		"-XX:TieredStopAtLevel=1", "-cp", kafkaJars(), "kafka.tools.StorageTool",
		"format", "--standalone", "-t", cluster, "-c", k.properties(),
	}
	cmd := exec.Command("java", append(args, k.format...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("format kafka: %w: %s", err, out)
	}
	return nil
}

// Start starts the broker again on its old data and waits until it answers.
func (k *Kafka) Start() error {
	var err error
	k.proc, err = Start("kafka", filepath.Join(k.dir, "kafka.log"), nil,
		"java", "-Xmx512m", "-Dlog4j2.configurationFile="+filepath.Join(Root(), "it", "kafka", "log4j2.yaml"),
		"-cp", kafkaJars(), "kafka.Kafka", k.properties())
	if err != nil {
		return err
	}
	if err := k.proc.until(60*time.Second, func(ctx context.Context) error { return pingKafka(ctx, k.Addr) }); err != nil {
		k.Kill()
		return err
	}
	return nil
}

// Stop stops the broker in good order.
func (k *Kafka) Stop() error {
	_, err := k.proc.Stop(30 * time.Second)
	return err
}

// Kill stops the broker as a power cut would, but for what the kernel still holds.
func (k *Kafka) Kill() { k.proc.Kill() }

// Signal sends a signal to the broker's process.
func (k *Kafka) Signal(sig syscall.Signal) error { return k.proc.Signal(sig) }

func (k *Kafka) properties() string { return filepath.Join(k.dir, "server.properties") }

func kafkaJars() string { return filepath.Join(Build(), "kafka", "lib", "*") }

func pingKafka(ctx context.Context, addr string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	return cl.Ping(ctx)
}

// until calls ready until it returns nil, the process ends, or d has passed.
func (p *Process) until(d time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := ready(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it answered: %s", p.Name, p.Output())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer after %v: %w", p.Name, d, err)
		case <-tick.C:
		}
	}
}

// freeAddrs returns n loopback addresses that nobody listened on a moment ago.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all are held until all are found, so that they differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

//go:build it

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// copyTopic is the topic that rows are delivered to.
const copyTopic = "audit.copy"

// A receiver is where rows go, with the proxy before it.
type receiver struct {
	name    string
	kind    string // for people
	weather *weather
	// read reads all that the receiver has, in the order that it has it in.
	read func(ctx context.Context, each func(text []byte, at time.Time) error) error
	// arrived is filled as events arrive, where the receiver has no order of its own.
	arrived *record
	// gaps asks the receiver's own query on seq, and returns what is wrong.
	gaps func(ctx context.Context) ([]string, error)
	// once: the receiver drops repeats.
	once bool

	// What became of it.
	has     *record
	wrong   []string    // by its query on seq
	retries []time.Time // that exporters told of
}

// startReceivers starts all receivers, and writes the settings of the exporter.
func (t *trial) startReceivers(ctx context.Context, kafka *wire) error {
	var yaml strings.Builder
	yaml.WriteString("destinations:\n")
	for _, start := range []func(context.Context) (text string, err error){t.startVictoria, t.startRsyslog, t.startNATS} {
		text, err := start(ctx)
		if err != nil {
			return err
		}
		yaml.WriteString(text)
	}
	yaml.WriteString(t.kafkaReceiver(kafka))
	return os.WriteFile(t.in("export.yaml"), []byte(yaml.String()), 0o644)
}

// startVictoria starts VictoriaLogs, with two doors.
func (t *trial) startVictoria(context.Context) (yaml string, err error) {
	v, err := parts.StartVictoria(t.in("victoria"))
	if err != nil {
		return "", err
	}
	t.stop = append(t.stop, v.Kill)
	var text strings.Builder
	for i, p := range protocols {
		d := newDoor(t.rng(uint64(20+i)), v.URL())
		t.stop = append(t.stop, d.close)
		headers := t.in(p.name + ".headers")
		if err := os.WriteFile(headers, fmt.Appendf(nil, "AccountID: %d\nProjectID: 0", p.account), 0o600); err != nil {
			return "", err
		}
		token := t.in("token")
		if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
			return "", err
		}
		r := &receiver{name: p.name, kind: "VictoriaLogs, " + p.kind, weather: d.weather, arrived: newRecord()}
		d.split, d.halfTaken = p.split, p.halfTaken
		d.seen = func(events [][]byte) { r.arrived.seeAll(p.text, events, time.Now()) }
		r.read = func(ctx context.Context, each func([]byte, time.Time) error) error {
			return p.read(ctx, v, t.tenantsThere(), each)
		}
		r.gaps = func(ctx context.Context) ([]string, error) { return p.gaps(ctx, v) }
		fmt.Fprintf(&text, "  - name: %s\n    type: %s\n    format: json\n    url: %q\n    allow-plaintext: true\n    headers-file: %s\n    timeout: 4s\n", p.name, p.kind, d.server.URL+p.path, headers)
		if p.kind == "splunk-hec" {
			fmt.Fprintf(&text, "    token-file: %s\n", token)
		}
		t.receivers = append(t.receivers, r)
	}
	return text.String(), nil
}

// startRsyslog starts rsyslog.
func (t *trial) startRsyslog(context.Context) (yaml string, err error) {
	c, err := parts.MakeCertificates(t.in("certificates"))
	if err != nil {
		return "", err
	}
	s, err := parts.StartRsyslog(t.in("rsyslog"), c)
	if err != nil {
		return "", err
	}
	t.stop = append(t.stop, s.Kill)
	w, err := newWire(t.rng(30))
	if err != nil {
		return "", err
	}
	t.stop = append(t.stop, w.close)
	w.pass(s.Addr)
	r := &receiver{name: "rsyslog", kind: "rsyslog, TLS", weather: w.weather}
	r.read = func(_ context.Context, each func([]byte, time.Time) error) error {
		if err := s.Stop(); err != nil {
			return err
		}
		f, err := os.Open(s.File)
		if err != nil {
			return err
		}
		defer f.Close()
		return lines(f, func(line string) error {
			_, text, ok := strings.Cut(line, "] {")
			if !ok {
				return fmt.Errorf("%w: rsyslog has a line that is no message of ours: %.200q", errWrong, line)
			}
			return each([]byte("{"+text), time.Time{})
		})
	}
	r.gaps = t.gapsOf(r)
	t.receivers = append(t.receivers, r)
	return fmt.Sprintf("  - name: rsyslog\n    type: syslog\n    address: %s\n    timeout: 4s\n    tls: {ca-file: %s, certificate-file: %s, key-file: %s}\n",
		w.addr, c.CA, c.ClientCert, c.ClientKey), nil
}

// dedupe is how long the stream knows an id again: longer than a run.
const dedupe = 2 * time.Hour

// startNATS starts nats-server, with a stream.
func (t *trial) startNATS(ctx context.Context) (yaml string, err error) {
	n, err := parts.StartNATS(t.in("nats"))
	if err != nil {
		return "", err
	}
	t.stop = append(t.stop, n.Kill)
	conn, err := nats.Connect(n.URL())
	if err != nil {
		return "", err
	}
	t.stop = append(t.stop, conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		return "", err
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, Duplicates: dedupe})
	if err != nil {
		return "", err
	}
	w, err := newWire(t.rng(31))
	if err != nil {
		return "", err
	}
	t.stop = append(t.stop, w.close)
	w.pass(n.Addr)
	r := &receiver{name: "nats", kind: "NATS JetStream", weather: w.weather, once: true}
	r.read = func(ctx context.Context, each func([]byte, time.Time) error) error {
		return readStream(ctx, js, stream, each)
	}
	r.gaps = t.gapsOf(r)
	t.receivers = append(t.receivers, r)
	return fmt.Sprintf("  - name: nats\n    type: nats\n    urls: [\"nats://%s\"]\n    allow-plaintext: true\n    stream: AUDIT\n    timeout: 4s\n", w.addr), nil
}

func readStream(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream, each func([]byte, time.Time) error) error {
	info, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	c, err := js.OrderedConsumer(ctx, "AUDIT", jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := c.Messages(jetstream.PullMaxMessages(2000))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for range info.State.Msgs {
		m, err := messages.Next(jetstream.NextMaxWait(30 * time.Second))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if err := each(m.Data(), meta.Timestamp); err != nil {
			return err
		}
	}
	return nil
}

// kafkaReceiver is the topic that rows are delivered to, read by kcat.
func (t *trial) kafkaReceiver(w *wire) (yaml string) {
	r := &receiver{name: "kafka", kind: "Apache Kafka", weather: w.weather}
	r.read = func(ctx context.Context, each func([]byte, time.Time) error) (err error) {
		cmd := exec.CommandContext(ctx, "kcat", "-C", "-q", "-e", "-b", t.kafka.Addr, "-t", copyTopic, "-X", "fetch.message.max.bytes=10000000", "-f", "%T %s\n")
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cmd.Wait()) }()
		return lines(out, func(line string) error {
			ms, text, _ := strings.Cut(line, " ")
			at, err := strconv.ParseInt(ms, 10, 64)
			if err != nil {
				return fmt.Errorf("%w: kcat: %.200q", errWrong, line)
			}
			return each([]byte(text), time.UnixMilli(at))
		})
	}
	r.gaps = t.gapsOf(r)
	t.receivers = append(t.receivers, r)
	return fmt.Sprintf("  - name: kafka\n    type: kafka\n    brokers: [\"%s\"]\n    topic: %s\n    timeout: 4s\n", w.addr, copyTopic)
}

// lines calls each with every line.
func lines(in io.Reader, each func(string) error) error {
	b := bufio.NewScanner(in)
	b.Buffer(nil, 16<<20)
	for b.Scan() {
		if err := each(b.Text()); err != nil {
			return err
		}
	}
	return b.Err()
}

// copyOf is the file in which what a receiver has is laid out for DuckDB.
func (t *trial) copyOf(r *receiver) string { return filepath.Join(t.in("copies"), r.name, "all.jsonl") }

// gapsOf returns a func that asks the queries of docs/export-gaps.md of the copy of
// a receiver: what is missing between the first and the last row, and whether the
// newest head is reached.
func (t *trial) gapsOf(r *receiver) func(context.Context) ([]string, error) {
	return func(context.Context) (wrong []string, err error) {
		queries, err := parts.GapQueries(filepath.Dir(t.copyOf(r)))
		if err != nil {
			return nil, err
		}
		db := parts.DuckDBs()[1]
		holes, err := db.Query(queries[0])
		if err != nil {
			return nil, err
		}
		for _, h := range holes {
			wrong = append(wrong, fmt.Sprint(h...))
		}
		heads, err := db.Query(queries[1])
		if err != nil {
			return nil, err
		}
		if len(heads) == 0 {
			wrong = append(wrong, "no head came")
		}
		for _, h := range heads {
			if fmt.Sprint(h[4]) != "True" && fmt.Sprint(h[4]) != "true" {
				wrong = append(wrong, "a head that is not reached: "+fmt.Sprint(h...))
			}
		}
		return wrong, nil
	}
}

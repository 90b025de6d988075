package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/internal/devstack"
	"github.com/ledgerlake/ledgerlake/internal/workload"
)

// upFor runs the command up for the length of a test, and returns its settings
// and a func that ends it and returns its last line.
func upFor(t *testing.T, args ...string) (settingsLine, func() requestsLine) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"up", "--json", "--kafka-port", "0", "--s3-port", "0"}, args...), write)
		write.CloseWithError(err)
		ended <- err
	}()
	lines := json.NewDecoder(read)
	var settings settingsLine
	if err := lines.Decode(&settings); err != nil {
		t.Fatal(err)
	}
	end := func() (last requestsLine) {
		cancel()
		if err := lines.Decode(&last); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return last
	}
	return settings, end
}

// read returns all records of a topic that has n, by partition and offset.
func read(t *testing.T, brokers, topic string, n int) []*kgo.Record {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var rs []*kgo.Record
	for len(rs) < n && ctx.Err() == nil {
		rs = append(rs, c.PollFetches(ctx).Records()...)
	}
	slices.SortFunc(rs, func(a, b *kgo.Record) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	return rs
}

// What produce says it sent is what the topic has: so many records, each with
// its tenant as key and header, and, for the same seed and start, byte for byte
// those of the workload.
func TestProduceSendsWhatItSays(t *testing.T) {
	s, end := upFor(t, "--dir", t.TempDir())
	defer end()
	args := []string{
		"produce", "--json", "--brokers", s.Brokers, "--rows", "2000", "--tenants", "7", "--seed", "11", "--start", "2026-05-01T00:00:00Z",
		"--broken", "0.05", "--repeats", "0.05", "--conflicts", "0.05",
	}
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	var said sent
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatal(err)
	}

	g := workload.New(11, 7)
	g.Broken, g.Repeats, g.Conflicts = 0.05, 0.05, 0.05
	g.Start = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	want := map[string][]string{} // by key, in order
	count := map[workload.Class]int{}
	for range 2000 {
		r := g.Next()
		want[string(r.Key)] = append(want[string(r.Key)], string(r.Value))
		count[r.Class]++
	}
	if said.Records != 2000 || said.Good != count[workload.Good] || said.Repeats != count[workload.Repeat] ||
		said.Broken != count[workload.Broken] || said.Conflicts != count[workload.Conflict] {
		t.Errorf("it says %+v, the workload has %v", said, count)
	}
	got := map[string][]string{}
	partition := map[string]int32{}
	for _, r := range read(t, s.Brokers, "audit.calls", 2000) {
		key := string(r.Key)
		got[key] = append(got[key], string(r.Value))
		if p, seen := partition[key]; seen && p != r.Partition {
			t.Fatalf("tenant %s is in two partitions", key)
		}
		partition[key] = r.Partition
	}
	for key := range want {
		if !slices.Equal(got[key], want[key]) {
			t.Errorf("tenant %s: %d records, want %d, or others", key, len(got[key]), len(want[key]))
		}
	}
}

// A topic that does not exist is an error and not an empty success.
func TestProduceNeedsItsTopic(t *testing.T) {
	s, end := upFor(t, "--dir", t.TempDir())
	defer end()
	var out bytes.Buffer
	err := run(t.Context(), []string{"produce", "--brokers", s.Brokers, "--topic", "no.such.topic", "--rows", "10"}, &out)
	if exitCode(err) != exitBadUse || !strings.Contains(err.Error(), "no.such.topic") {
		t.Errorf("got %v and\n%s", err, &out)
	}
}

// A paced run takes its time, and ends at once and with a true summary when it
// is told to.
func TestProduceKeepsPaceAndStops(t *testing.T) {
	s, end := upFor(t, "--dir", t.TempDir())
	defer end()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	sent, err := produce(ctx, traffic{brokers: []string{s.Brokers}, topic: "audit.calls", tenants: 2, rows: 100_000, rate: 500, seed: 1})
	if err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("got %v", err)
	}
	if sent.Records == 0 || sent.Records > 200 {
		t.Errorf("%d records in 0.3 s at 500 a second", sent.Records)
	}
	if got := read(t, s.Brokers, "audit.calls", sent.Records); len(got) != sent.Records {
		t.Errorf("%d records are there, it said %d", len(got), sent.Records)
	}
}

// Up prints settings that work, counts what clients ask of S3, and frees the
// folder when it ends.
func TestUp(t *testing.T) {
	dir := t.TempDir()
	s, end := upFor(t, "--dir", dir, "--partitions", "3", "--topic", "audit.mine")
	if len(read(t, s.Brokers, "audit.mine", 0)) != 0 || !strings.HasPrefix(s.Bucket, "s3://audit?endpoint=http") {
		t.Errorf("settings %+v", s)
	}
	if last := end(); len(last.Requests) != 0 {
		t.Errorf("%v requests of nobody", last.Requests)
	}
	err := run(t.Context(), []string{"up", "--dir", dir, "--kafka-port", "0", "--s3-port", "0", "--partitions", "4", "--topic", "audit.mine"}, new(bytes.Buffer))
	if exitCode(err) != exitBadUse || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("other partitions than on disk: %v", err)
	}
}

// What up prints for people has a command to paste for each step, with the
// settings of this stack in it.
func TestUpTeaches(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	o := stackFlags{dir: "data", topic: "audit.calls", partitions: 4, bucket: "audit"}
	if err := stayUp(ctx, o, writerFunc(func(p []byte) (int, error) { cancel(); return out.Write(p) })); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"export AWS_ACCESS_KEY_ID=" + devstack.AccessKey, "ledgerlake-ingest run --brokers 127.0.0.1:", "ledgerlake-verify 's3://audit?endpoint=",
		"ledgerlake-devstack produce", "read_parquet('data/s3/audit/log/**/*.parquet')", "Down. The data stays in data.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// built are the programs that a demo runs, built once for all tests of a run.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // what is left lies in the folder for temporary files
	}
	os.Exit(code)
}

// build returns the folder of the programs.
func build(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "devstack-bin-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", built.dir, "./cmd/ingest", "./cmd/verify")
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
			return
		}
		for _, name := range []string{"ingest", "verify"} {
			if err := os.Rename(filepath.Join(built.dir, name), filepath.Join(built.dir, "ledgerlake-"+name)); err != nil {
				built.err = err
			}
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

// The demo comes out as it should with the real programs, twice in a row on
// the same folder, and it shows what a newcomer is to see.
func TestDemo(t *testing.T) {
	bin := build(t)
	t.Chdir(t.TempDir())
	for range 2 {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"demo", "--bin", bin, "--rows", "2000", "--rate", "2000"}, &out); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		for _, want := range []string{
			"2,000 offsets", "exit code 0", "exit code 1", "ledgerlake.json", ".parquet",
			"read_parquet('data/demo/s3/audit/log/**/*.parquet')", "All came out as it should",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, &out)
			}
		}
	}
}

// The demo does not call good what is not: a verify that always says yes, one
// that always says no, and an ingest that ends at once all make it fail.
func TestDemoFailsAloud(t *testing.T) {
	real := build(t)
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct{ program, script, want string }{
		"verify says yes to all": {"ledgerlake-verify", "exit 0", "flipped ended with 0, want 1"},
		"verify says no to all":  {"ledgerlake-verify", "exit 1", "audit ended with 1, want 0"},
		"ingest ends at once":    {"ledgerlake-ingest", "echo no such bucket; exit 1", "no such bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			for _, p := range []string{"ledgerlake-ingest", "ledgerlake-verify"} {
				if err := os.Symlink(filepath.Join(real, p), filepath.Join(bin, p)); err != nil {
					t.Fatal(err)
				}
			}
			fake := filepath.Join(bin, c.program)
			keygen := `test "$1" = keygen && exec ` + filepath.Join(real, c.program) + ` "$@"` + "\n" // which is not what is faked
			if err := os.Remove(fake); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(fake, []byte("#!/bin/sh\n"+keygen+c.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := run(t.Context(), []string{"demo", "--bin", bin, "--rows", "1500", "--rate", "0"}, &out)
			if exitCode(err) != exitWrong || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("got %v, want %q\n%s", err, c.want, &out)
			}
		})
	}
}

// A seed alone fixes every byte; without one the records are made just now, and
// none of them in the future.
func TestSeedFixesTheStart(t *testing.T) {
	now := time.Date(2026, 11, 30, 1, 2, 3, 456789, time.UTC)
	given := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		in        traffic
		wantStart time.Time
	}{
		"seed":           {traffic{rows: 1000, seed: 7}, workload.Epoch},
		"neither":        {traffic{rows: 1000}, now.Add(-time.Second).Truncate(time.Millisecond)},
		"start":          {traffic{rows: 1000, start: given}, given},
		"seed and start": {traffic{rows: 1000, seed: 7, start: given}, given},
	} {
		got := c.in
		got.settle(now)
		if !got.start.Equal(c.wantStart) || got.seed == 0 || c.in.seed != 0 && got.seed != c.in.seed {
			t.Errorf("%s: start %v and seed %d", name, got.start, got.seed)
		}
	}
}

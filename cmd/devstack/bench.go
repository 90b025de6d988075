package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ledgerlake/ledgerlake/internal/peak"
)

const benchHelp = `ledgerlake-devstack bench: what ledgerlake-ingest costs on this machine.

Kafka and S3 run in a process of their own, records wait in the topic, and ingest archives them three times: at its
default batches, which grow while there is a backlog; at large ones; and, a tenth of the records, at strict ones of 32 rows, which
never grow. CPU time and memory are those of the ingest process alone. All archives are counted and verified.
With --json it prints one line for each course instead of the table.
`

// A course is one way to run ingest.
type course struct {
	name  string
	part  int // of the records: 1 is all, 10 a tenth
	flags []string
}

var courses = []course{
	{"default", 1, nil},
	{"large", 1, []string{"--batch.rows", "20000", "--batch.age", "2s"}},
	{"strict", 10, []string{"--batch.rows", "32", "--batch.strict"}},
}

// A race is one run of the benchmark.
type race struct {
	traffic
	courses    []course
	partitions int
	json       bool
	bin        binaries
	here       string
	dir        string // of all data; removed at the end
	log        *os.File
}

// A result is what one course gave.
type result struct {
	course
	tally
	wire      int64 // bytes of the values that were sent
	wall, cpu time.Duration
	verified  time.Duration
	peak      int64 // bytes; 0 is unknown
	requests  map[string]int
}

func bench(ctx context.Context, args []string, stdout io.Writer) error {
	r, err := readRace(args, stdout)
	if r == nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	if err := r.run(ctx, stdout); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// readRace reads the flags; nil where nothing is left to do.
func readRace(args []string, stdout io.Writer) (*race, error) {
	r := &race{traffic: traffic{topic: demoTopic, seed: 1}}
	var bin, tmp string
	var names []string
	f := newFlags("bench", benchHelp)
	f.IntVar(&r.rows, "rows", 300_000, "how many records")
	f.IntVar(&r.partitions, "partitions", 8, "in how many partitions")
	f.IntVar(&r.tenants, "tenants", 64, "of how many tenants")
	f.Float64Var(&r.broken, "broken", 0.01, "share of records that are broken")
	f.Float64Var(&r.repeats, "repeats", 0.01, "share of records that repeat an earlier one")
	f.StringSliceVar(&names, "courses", []string{"default", "large", "strict"}, "which courses")
	f.BoolVar(&r.json, "json", false, "print a line of JSON for each course")
	f.StringVar(&bin, "bin", "", "the folder of ledgerlake-ingest and ledgerlake-verify; default: that of this program")
	f.StringVar(&tmp, "tmp", "", "where to put some gigabytes for a while; default: the system's folder for temporary files")
	if goOn, err := f.parse(args, stdout); !goOn {
		return nil, err
	}
	if err := cmp.Or(f.atLeast("rows", r.rows, 1), f.atLeast("partitions", r.partitions, 1), r.check(f)); err != nil {
		return nil, err
	}
	var err error
	if r.courses, err = findCourses(names); err != nil {
		return nil, err
	}
	if r.bin, err = findBinaries(bin); err != nil {
		return nil, err
	}
	if r.here, err = os.Getwd(); err != nil {
		return nil, err
	}
	r.dir, err = os.MkdirTemp(tmp, "ledgerlake-bench-")
	return r, err
}

func findCourses(names []string) (all []course, err error) {
	for _, name := range names {
		i := slices.IndexFunc(courses, func(c course) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("bench: %w: --courses: there is no course %q", errBadFlag, name)
		}
		all = append(all, courses[i])
	}
	return all, nil
}

func (r *race) run(ctx context.Context, stdout io.Writer) (err error) {
	if r.log, err = os.Create(filepath.Join(r.dir, "log")); err != nil {
		return err
	}
	defer r.log.Close()
	var results []*result
	for _, c := range r.courses {
		res, err := r.course(ctx, c)
		if err != nil {
			log, _ := os.ReadFile(r.log.Name()) // without it the error stands alone
			return fmt.Errorf("%s: %w\n%s", c.name, err, log[max(0, len(log)-2000):])
		}
		results = append(results, res)
	}
	if r.json {
		return printJSON(stdout, results)
	}
	return r.print(stdout, results)
}

// course runs one course on a stack of its own.
func (r *race) course(ctx context.Context, c course) (*result, error) {
	s, err := r.startStack(filepath.Join(r.dir, c.name))
	if err != nil {
		return nil, err
	}
	defer s.child.kill()
	load := r.traffic
	load.brokers, load.rows = []string{s.Brokers}, max(1, r.rows/c.part)
	sent, err := produce(ctx, load)
	if err != nil {
		return nil, err
	}
	res, err := r.ingest(ctx, s, c)
	if err != nil {
		return nil, err
	}
	res.wire = sent.Bytes
	if res.requests, err = s.stop(); err != nil {
		return nil, err
	}
	return res, r.audit(ctx, res, s.BucketDir, sent)
}

// ingest runs the archiver until it has accounted for everything.
func (r *race) ingest(ctx context.Context, s *stackProcess, c course) (res *result, err error) {
	args := append([]string{"run", "--brokers", s.Brokers, "--topics", r.topic, "--group", demoGroup, "--bucket", s.Bucket, "--log-level", "warn"}, c.flags...)
	began := time.Now()
	p, err := startChild(r.here, childEnv(s.Env), r.log, r.bin.ingest, args...)
	if err != nil {
		return nil, err
	}
	defer p.kill()
	watch := peak.Begin(p.cmd.Process.Pid)
	defer func() {
		if most := watch.End(); res != nil {
			res.peak = most
		}
	}()
	if err := waitForGroup(ctx, s.Brokers, demoGroup, r.topic, p.done); err != nil {
		return nil, err
	}
	wall := time.Since(began)
	if err := p.stop(time.Minute); err != nil {
		return nil, err
	}
	state := p.cmd.ProcessState
	return &result{course: c, wall: wall, cpu: state.UserTime() + state.SystemTime()}, nil
}

// audit counts and verifies what a course has made.
func (r *race) audit(ctx context.Context, res *result, folder string, sent *sent) (err error) {
	if res.tally, err = count(ctx, folder); err != nil {
		return err
	}
	if err := res.tally.check(sent); err != nil {
		return err
	}
	began := time.Now()
	said, code, err := runVerify(ctx, r.bin.verify, r.here, "--allow-unsigned", folder)
	res.verified = time.Since(began)
	if err == nil && code != 0 {
		err = fmt.Errorf("verify ended with %d: %s", code, said)
	}
	return err
}

func (r *race) print(w io.Writer, results []*result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(what string, of func(*result) string) {
		cells := []string{what}
		for _, res := range results {
			cells = append(cells, of(res))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	line("batches", func(r *result) string { return r.name })
	line("records", func(r *result) string { return thousands(r.Offsets) })
	line("rows", func(r *result) string { return thousands(r.Rows) })
	line("rows per CPU second", func(r *result) string { return thousands(int64(float64(r.Rows) / r.cpu.Seconds())) })
	line("CPU seconds", func(r *result) string { return fmt.Sprintf("%.2f", r.cpu.Seconds()) })
	line("seconds", func(r *result) string { return fmt.Sprintf("%.2f", r.wall.Seconds()) })
	line("segments", func(r *result) string { return thousands(r.Segments) })
	line("PUTs", func(r *result) string { return thousands(r.requests["PUT"]) })
	line("other S3 requests", func(r *result) string { return thousands(others(r.requests)) })
	line("bytes in S3", func(r *result) string { return size(r.Bytes) })
	line("bytes per row", func(r *result) string { return thousands(r.Bytes / r.Rows) })
	line("peak memory", func(r *result) string {
		if r.peak == 0 {
			return "unknown"
		}
		return size(r.peak)
	})
	line("verify, rows per second", func(r *result) string { return thousands(int64(float64(r.Rows) / r.verified.Seconds())) })
	return t.Flush()
}

// A courseLine is what bench --json prints of a course.
type courseLine struct {
	Course     string   `json:"course"`
	Flags      []string `json:"flags"` // of ingest
	Records    int64    `json:"records"`
	Rows       int64    `json:"rows"`
	Tenants    int      `json:"tenants"` // that have rows
	Segments   int      `json:"segments"`
	WireBytes  int64    `json:"wireBytes"` // of the records' values
	Bytes      int64    `json:"bytes"`     // of segments
	CPUSeconds float64  `json:"cpuSeconds"`
	Seconds    float64  `json:"seconds"`
	PeakBytes  int64    `json:"peakBytes"` // 0: unknown
	Puts       int      `json:"puts"`
	Others     int      `json:"otherRequests"`
}

func printJSON(w io.Writer, results []*result) error {
	for _, r := range results {
		err := json.NewEncoder(w).Encode(courseLine{
			r.name, r.flags, r.Offsets, r.Rows, len(r.Tenants), r.Segments, r.wire, r.Bytes, r.cpu.Seconds(), r.wall.Seconds(),
			r.peak, r.requests["PUT"], others(r.requests),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func others(byMethod map[string]int) (n int) {
	for method, k := range byMethod {
		if method != "PUT" {
			n += k
		}
	}
	return n
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/internal/devstack"
)

const demoHelp = `ledgerlake-devstack demo: the whole of ledgerlake in half a minute, on this machine, offline.

It starts a Kafka and an S3, makes a key, sends records of 5 tenants, archives them with the real ledgerlake-ingest,
which signs its anchors with the key, checks the archive with the real ledgerlake-verify and the public half of it, shows the files, and then changes one bit in a copy for verify to find.
It ends everything that it started and keeps the files. Each run begins anew: the folder of the last one is replaced.
It exits with 0 only if all came out as it should.
`

// demoTopic and demoGroup are the names that the demo uses.
const (
	demoTopic = "audit.calls"
	demoGroup = "ledgerlake"
)

// demoMark is the file by which a demo knows a folder as its own to replace.
const demoMark = ".ledgerlake-demo"

// A demonstration is one run of the demo.
type demonstration struct {
	out      io.Writer
	here     string // the folder that it was started in
	dir      string // of all its data, absolute
	binaries binaries
	rows     int
	rate     float64
	seed     uint64
	steps    int

	stack  *devstack.Stack
	ingest *child
	log    *os.File
	sent   *sent
}

func demo(ctx context.Context, args []string, stdout io.Writer) error {
	d, err := readDemo(args, stdout)
	if d == nil {
		return err
	}
	return d.run(ctx)
}

// readDemo reads the flags; nil where nothing is left to do.
func readDemo(args []string, stdout io.Writer) (*demonstration, error) {
	d := &demonstration{out: stdout}
	var bin string
	f := newFlags("demo", demoHelp)
	f.StringVar(&d.dir, "dir", filepath.Join("data", "demo"), "the folder for its data")
	f.StringVar(&bin, "bin", "", "the folder of ledgerlake-ingest and ledgerlake-verify; default: that of this program")
	f.IntVar(&d.rows, "rows", 6000, "how many records to send")
	f.Float64Var(&d.rate, "rate", 500, "records a second; 0 is as fast as it goes")
	f.Uint64Var(&d.seed, "seed", 1, "what the records grow from")
	if goOn, err := f.parse(args, stdout); !goOn {
		return nil, err
	}
	if err := f.atLeast("rows", d.rows, 1000); err != nil {
		return nil, err
	}
	if d.rate < 0 {
		return nil, fmt.Errorf("demo: %w: --rate is %v, want 0 or more", errBadFlag, d.rate)
	}
	var err error
	if d.binaries, err = findBinaries(bin); err != nil {
		return nil, err
	}
	return d, d.settle()
}

// settle makes paths absolute, because a stack changes the working directory,
// and an empty folder.
func (d *demonstration) settle() (err error) {
	if d.here, err = os.Getwd(); err != nil {
		return err
	}
	if d.dir, err = filepath.Abs(d.dir); err != nil {
		return err
	}
	return freshFolder(d.dir)
}

// freshFolder makes an empty folder in place of an earlier demo's. It never
// removes one that holds anything else.
func freshFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %v", errCannotRun, err)
	}
	if _, err := os.Stat(filepath.Join(dir, demoMark)); len(entries) > 0 && err != nil {
		return fmt.Errorf("%w: %s is not empty and not a demo's; choose another --dir", errCannotRun, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, demoMark), []byte("The next demo replaces this folder.\n"), 0o644)
}

// run walks through the demo and ends, however it comes out, all that it has
// started.
func (d *demonstration) run(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	err := d.walk(ctx)
	if err = errors.Join(err, d.end()); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	d.say("\nAll came out as it should, in %.0f s. The files stay in %s; the next demo replaces them.", time.Since(began).Seconds(), d.rel(d.dir))
	d.say("To go on by hand: %s up", beside(d.here, program))
	return nil
}

func (d *demonstration) walk(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		d.bringUp, d.makeKey, d.startIngest, d.produce, d.waitAndStop, d.verifyGood, d.show, d.verifyFlipped,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// end ends what still runs.
func (d *demonstration) end() error {
	if d.ingest != nil {
		d.ingest.kill()
	}
	if d.log != nil {
		d.log.Close()
	}
	if d.stack != nil {
		return d.stack.Close()
	}
	return nil
}

func (d *demonstration) bringUp(ctx context.Context) (err error) {
	d.step("A Kafka and an S3, both in this process, both speaking the real protocol on 127.0.0.1.")
	if d.stack, err = devstack.Up(ctx, devstack.Options{Dir: d.dir}); err != nil {
		return err
	}
	d.say("   Kafka at %s, topic %s of 4 partitions; bucket %s", d.stack.Brokers(), demoTopic, d.stack.BucketURL())
	return nil
}

// The key's halves: the private one is ingest's alone, the public one everybody's.
func (d *demonstration) privateKey() string { return filepath.Join(d.dir, "anchors.key") }
func (d *demonstration) publicKey() string  { return filepath.Join(d.dir, "anchors.vkey") }

func (d *demonstration) makeKey(ctx context.Context) error {
	d.step("A key. Who owns the bucket can make an archive anew; what is signed by this key he cannot.")
	args := []string{"keygen", "--name", "demo.example/anchors", "--out", d.rel(d.privateKey())}
	d.say("   %s %s > %s", d.rel(d.binaries.verify), strings.Join(args, " "), d.rel(d.publicKey()))
	vkey, code, err := runVerify(ctx, d.binaries.verify, d.here, args...)
	if err != nil || code != 0 {
		return errors.Join(fmt.Errorf("keygen ended with %d: %s", code, vkey), err)
	}
	d.quote(vkey)
	return os.WriteFile(d.publicKey(), []byte(vkey), 0o644)
}

func (d *demonstration) startIngest(context.Context) (err error) {
	args := []string{"run", "--brokers", d.stack.Brokers(), "--topics", demoTopic, "--group", demoGroup, "--bucket", d.stack.BucketURL(), "--anchor-key", d.rel(d.privateKey())}
	d.step("The archiver, beside it. It turns each partition into a line of Parquet segments, rows chained by SHA-256.")
	d.say("   %s %s", d.rel(d.binaries.ingest), strings.Join(quoted(args), " "))
	if d.log, err = os.Create(filepath.Join(d.dir, "ingest.log")); err != nil {
		return err
	}
	d.ingest, err = startChild(d.here, childEnv(d.stack.Env()), d.log, d.binaries.ingest, args...)
	return err
}

func (d *demonstration) produce(ctx context.Context) (err error) {
	d.step("Records of 5 tenants: turns of agents, some sent twice, some broken.")
	d.sent, err = produce(ctx, traffic{
		brokers: []string{d.stack.Brokers()}, topic: demoTopic, tenants: 5, rows: d.rows, rate: d.rate, seed: d.seed, broken: 0.02, repeats: 0.02,
		start: time.Now().UTC().Truncate(time.Second),
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := d.sent.print(&b); err != nil {
		return err
	}
	d.quote(b.String())
	return nil
}

func (d *demonstration) waitAndStop(ctx context.Context) error {
	d.step("Wait until ingest has committed each offset, which it does only once the segment is in the bucket; then SIGTERM.")
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := waitForGroup(ctx, d.stack.Brokers(), demoGroup, demoTopic, d.ingest.done); err != nil {
		return d.withLog(err)
	}
	if err := d.ingest.stop(30 * time.Second); err != nil {
		return d.withLog(fmt.Errorf("ingest did not stop cleanly: %w", err))
	}
	if err := d.stack.Close(); err != nil {
		return err
	}
	d.say("   Ingest has stopped cleanly, and Kafka and S3 are down. From here on there are only files.")
	return nil
}

func (d *demonstration) verifyGood(ctx context.Context) error {
	d.step("An auditor checks the files: every row, slot, link, offset, object and signature. No Kafka, no S3, no database.")
	t, err := count(ctx, d.bucketDir())
	if err != nil {
		return err
	}
	d.say("   %s offsets = %s rows (%s of them rejected records, kept with their bytes) + %s duplicates",
		thousands(t.Offsets), thousands(t.Rows), thousands(t.Rejected), thousands(t.Duplicates))
	if err := t.check(d.sent); err != nil {
		return err
	}
	return d.verify(ctx, d.bucketDir(), 0, "")
}

func (d *demonstration) show(context.Context) error {
	d.step("What lies there: one object per commit, and one document that makes the bucket an archive.")
	var b bytes.Buffer
	if err := drawTree(&b, d.rel(d.bucketDir()), d.bucketDir()); err != nil {
		return err
	}
	d.quote(b.String())
	d.say("   Any Parquet reader opens it. With DuckDB:")
	d.say("   %s", duckdb(d.rel(d.bucketDir())))
	return nil
}

func (d *demonstration) verifyFlipped(ctx context.Context) error {
	d.step("Somebody changes one bit, in a copy.")
	folder := filepath.Join(d.dir, "flipped")
	if err := copyFolder(d.bucketDir(), folder); err != nil {
		return err
	}
	f, err := flipBit(ctx, folder)
	if err != nil {
		return err
	}
	d.say("   byte %s of %s, where the column %s has its values", thousands(f.Offset), f.Key, f.Column)
	return d.verify(ctx, folder, 1, "Faults")
}

// verify runs ledgerlake-verify over a folder, shows what it says from a
// heading on, and wants the exit code.
func (d *demonstration) verify(ctx context.Context, folder string, want int, from string) error {
	d.say("   %s --key %s %s", d.rel(d.binaries.verify), d.rel(d.publicKey()), d.rel(folder))
	said, code, err := runVerify(ctx, d.binaries.verify, d.here, "--key", d.rel(d.publicKey()), d.rel(folder))
	d.quote(said[max(0, strings.Index(said, from)):])
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	d.say("   exit code %d", code)
	if code != want {
		return fmt.Errorf("verify of %s ended with %d, want %d", d.rel(folder), code, want)
	}
	return nil
}

func (d *demonstration) bucketDir() string { return d.stack.BucketDir() }

// rel is a path as a person in the folder of the start would write it.
func (d *demonstration) rel(path string) string { return relative(d.here, path) }

// withLog adds the end of ingest's log to an error.
func (d *demonstration) withLog(err error) error {
	b, _ := os.ReadFile(d.log.Name()) // without it the error stands alone
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return fmt.Errorf("%w; its log ends:\n%s", err, strings.Join(lines[max(0, len(lines)-10):], "\n"))
}

func (d *demonstration) step(what string) {
	d.steps++
	d.say("\n%d. %s", d.steps, what)
}

func (d *demonstration) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// quote shows what another program said, set in.
func (d *demonstration) quote(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		d.say("   | %s", strings.TrimRight(line, "\n"))
	}
}

// quoted puts what a shell would take apart between quotes.
func quoted(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		if strings.ContainsAny(a, "?&*") {
			out[i] = "'" + a + "'"
		}
	}
	return out
}

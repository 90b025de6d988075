package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
)

// An invocation is what the arguments and the environment ask for.
type invocation struct {
	target   string // bucket URL or folder
	tenant   string
	json     bool
	progress bool
	memory   int64 // bytes
	keys     sign.Ring
	logKeys  reach.LogKeys
	unsigned bool
	independence
	witnesses   []*sign.Witness
	topic       string
	partition   *int32
	fromSeq     int64
	since       time.Time
	state       string
	within      time.Duration // erasure-within
	metricsFile string
	profile     string
	flags       *reach.Flags
	print       string // help or version, and nothing else is to be done
}

// parse reads flags and the settings of the store.
func parse(args, environ []string) (*invocation, error) {
	in := &invocation{memory: proof.DefaultMemory, flags: reach.NewFlags(program).WithKafka()}
	in.define()
	rest, err := in.flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		in.print = help()
		return in, nil
	case err != nil:
		return nil, err
	case in.print != "":
		return in, nil
	case len(rest) != 1:
		return nil, fmt.Errorf("%w: want one bucket URL or folder, got %d; --help says more", errUsage, len(rest))
	}
	in.target = rest[0]
	if err := in.check(); err != nil {
		return nil, err
	}
	return in, in.flags.Load(environ)
}

// check refuses flags that do not go together.
func (in *invocation) check() error {
	part := in.tenant != "" || in.topic != "" || in.partition != nil || in.fromSeq > 0 || !in.since.IsZero()
	switch {
	case in.fromSeq > 0 && in.tenant == "":
		return fmt.Errorf("%w: --from-seq is a row of a tenant's log: give --tenant", errUsage)
	case part && in.state != "":
		return fmt.Errorf("%w: --state says where all rows end: not with --tenant, --topic, --partition, --from-seq or --since", errUsage)
	}
	return nil
}

func (in *invocation) setPartition(text string) error {
	n, err := parsePartition(text)
	in.partition = &n
	return err
}

func (in *invocation) setFromSeq(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return errors.New("want the seq of a row, which is 0 or more")
	}
	in.fromSeq = n
	return nil
}

func (in *invocation) setSince(text string) (err error) {
	in.since, err = reach.ParseTime(text)
	return err
}

// setErasureWithin reads a duration, which may be days: 30d.
func (in *invocation) setErasureWithin(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			in.within = time.Duration(n) * 24 * time.Hour
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("want a time such as 30d or 36h")
	}
	in.within = d
	return nil
}

// define defines the flags.
func (in *invocation) define() {
	f := in.flags
	f.Func("key", "", func(v string) error { return reach.AddKey(&in.keys, v) })
	f.BoolVar(&in.unsigned, "allow-unsigned", false, "")
	f.Func("expect", "", in.expect)
	f.Func("expect-from", "", func(v string) error { in.from = append(in.from, v); return nil })
	f.Func("witness", "", func(v string) error { return addWitness(&in.witnesses, v) })
	f.StringVar(&in.topic, "topic", "", "")
	f.Func("partition", "", in.setPartition)
	f.Func("from-seq", "", in.setFromSeq)
	f.Func("since", "", in.setSince)
	f.StringVar(&in.state, "state", "", "")
	f.Func("erasure-within", "", in.setErasureWithin)
	in.logKeys.Define(f)
	f.StringVar(&in.tenant, "tenant", "", "")
	f.BoolVar(&in.json, "json", false, "")
	f.BoolVar(&in.progress, "progress", false, "")
	f.StringVar(&in.metricsFile, "metrics-file", "", "")
	f.Func("memory", "", in.setMemory)
	f.StringVar(&in.profile, "cpuprofile", "", "")
	f.BoolFunc("version", "", func(string) error { in.print = fmt.Sprintln(program, version); return nil })
}

func (in *invocation) setMemory(text string) error {
	n, ok := config.ParseBytes(text)
	if !ok || n < 1<<20 {
		return errors.New("want a size of 1MiB or more, such as 256MiB")
	}
	in.memory = n
	return nil
}

// verify runs the verification.
func (in *invocation) verify(ctx context.Context, stderr io.Writer) (*proof.Report, error) {
	logKeys, err := in.logKeys.Keys()
	if err != nil {
		return nil, err
	}
	src, closeSource, err := in.flags.Open(ctx, in.target)
	if err != nil {
		return nil, err
	}
	defer closeSource()
	saved, err := loadState(in.state)
	if err != nil {
		return nil, err
	}
	defer in.independence.close()
	if err := in.independence.open(ctx, in.target, in.flags); err != nil {
		return nil, err
	}
	stop, err := startProfile(in.profile)
	if err != nil {
		return nil, err
	}
	defer stop()
	p := newProgress(stderr, in.progress)
	defer p.end()
	r, err := proof.Verify(ctx, src, proof.Options{
		Keys: &in.keys, Unsigned: in.unsigned, LogKeys: logKeys, Witnesses: in.witnesses, Expect: in.heads, ExpectFrom: in.places, Saved: saved,
		Tenant: in.tenant, Topic: in.topic, Partition: in.partition, FromSeq: in.fromSeq, Since: in.since, ErasureWithin: in.within, Memory: in.memory, Progress: p.update,
	})
	if err != nil || in.state == "" {
		return r, err
	}
	return r, saveState(in.state, r, time.Now())
}

// startProfile writes a CPU profile to a file until stop is called.
func startProfile(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}

// write prints the report.
func (in *invocation) write(w io.Writer, r *proof.Report) error {
	if !in.json {
		return writeReport(w, r)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

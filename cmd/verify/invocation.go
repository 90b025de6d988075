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

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/config"
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
	logKeys  logKeys
	unsigned bool
	profile  string
	flags    *flags
	print    string // help or version, and nothing else is to be done
}

// parse reads flags and the settings of the store.
func parse(args, environ []string) (*invocation, error) {
	in := &invocation{memory: proof.DefaultMemory, flags: newFlags(program)}
	in.define()
	rest, err := in.flags.parse(args)
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
	return in, in.flags.load(environ)
}

// define defines the flags.
func (in *invocation) define() {
	f := in.flags
	f.Func("key", "", func(v string) error { return addKey(&in.keys, v) })
	f.BoolVar(&in.unsigned, "allow-unsigned", false, "")
	in.logKeys.define(f)
	f.StringVar(&in.tenant, "tenant", "", "")
	f.BoolVar(&in.json, "json", false, "")
	f.BoolVar(&in.progress, "progress", false, "")
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
	logKeys, err := in.logKeys.keys()
	if err != nil {
		return nil, err
	}
	src, closeSource, err := in.flags.open(ctx, in.target)
	if err != nil {
		return nil, err
	}
	defer closeSource()
	stop, err := startProfile(in.profile)
	if err != nil {
		return nil, err
	}
	defer stop()
	p := newProgress(stderr, in.progress)
	defer p.end()
	return proof.Verify(ctx, src, proof.Options{Keys: &in.keys, Unsigned: in.unsigned, LogKeys: logKeys, Tenant: in.tenant, Memory: in.memory, Progress: p.update})
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

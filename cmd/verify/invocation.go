package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// program is what the binary is called.
const program = "ledgerlake-verify"

// exitCannotRun: there is no verdict. The other codes are those of
// [proof.Report.ExitCode].
const exitCannotRun = 2

// errUsage: the arguments are not understood.
var errUsage = errors.New("not understood")

// An invocation is what the arguments and the environment ask for.
type invocation struct {
	target   string // bucket URL or folder
	tenant   string
	json     bool
	progress bool
	memory   int64 // bytes
	s3       s3sink.Options
	print    string // help or version, and nothing else is to be done
}

// parse reads flags, which may stand before and behind the target, and the
// settings of the store, which may also come from a file and the environment.
func parse(args, environ []string) (*invocation, error) {
	in := &invocation{memory: proof.DefaultMemory}
	store, rest, err := in.flags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		in.print = help()
		return in, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w; --help says more", errUsage, err)
	case in.print != "":
		return in, nil
	case len(rest) != 1:
		return nil, fmt.Errorf("%w: want one bucket URL or folder, got %d; --help says more", errUsage, len(rest))
	}
	in.target = rest[0]
	var settings config.Ingest
	all := settings.Sections()
	if _, err := config.Load(all, storeSections(all), config.Input{Args: store, Environ: environ}); err != nil {
		return nil, err
	}
	in.s3 = settings.S3
	return in, nil
}

// storeSections are the settings that are shared with ledgerlake-ingest.
func storeSections(all []config.Section) []config.Section {
	return config.Select(all, func(s config.Setting) bool { return strings.HasPrefix(s.Name, "s3.") })
}

// flags parses the arguments. It returns those of the store, for package
// config, and what is no flag.
func (in *invocation) flags(args []string) (store, rest []string, err error) {
	f := flag.NewFlagSet(program, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&in.tenant, "tenant", "", "")
	f.BoolVar(&in.json, "json", false, "")
	f.BoolVar(&in.progress, "progress", false, "")
	f.Func("memory", "", in.setMemory)
	f.BoolFunc("version", "", func(string) error { in.print = fmt.Sprintln(program, version); return nil })
	pass := func(name string) func(string) error {
		return func(value string) error { store = append(store, "--"+name+"="+value); return nil }
	}
	f.Func(config.FileFlag, "", pass(config.FileFlag))
	var settings config.Ingest
	for _, section := range storeSections(settings.Sections()) {
		for _, s := range config.WithSecretFiles(section.Settings) {
			f.Func(s.Name, "", pass(s.Name))
		}
	}
	for {
		if err := f.Parse(args); err != nil {
			return nil, nil, err
		}
		if f.NArg() == 0 {
			return store, rest, nil
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
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
	src, closeSource, err := in.open(ctx)
	if err != nil {
		return nil, err
	}
	defer closeSource()
	p := newProgress(stderr, in.progress)
	defer p.end()
	return proof.Verify(ctx, src, proof.Options{Tenant: in.tenant, Memory: in.memory, Progress: p.update})
}

// open opens what is to be verified.
func (in *invocation) open(ctx context.Context) (src archive.Source, closeSource func(), err error) {
	if strings.HasPrefix(in.target, "s3://") {
		b, err := s3sink.Open(ctx, in.target, in.s3)
		return b, func() {}, err
	}
	path, err := folder(in.target)
	if err != nil {
		return nil, nil, err
	}
	d, err := archive.OpenDir(path)
	if err != nil {
		return nil, nil, err
	}
	return d, func() { _ = d.Close() }, nil
}

// folder returns the path that a file URL or a plain path names.
func folder(target string) (string, error) {
	if !strings.Contains(target, "://") {
		return target, nil
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", fmt.Errorf("%w: want s3://BUCKET, file:///FOLDER or a folder", errUsage)
	}
	return u.Path, nil
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

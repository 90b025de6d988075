package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// program is what the binary is called.
const program = "ledgerlake-verify"

// exitCannotRun: there is no verdict.
const exitCannotRun = 2

// errUsage: the arguments are not understood.
var errUsage = errors.New("not understood")

// A call is what a command is run with.
type call struct {
	args           []string // behind the command's name
	environ        []string
	stdout, stderr io.Writer
}

// A command is what the first argument can be. run returns the exit code; an
// error means that there is no verdict.
type command struct {
	name  string
	args  string // as help shows them
	short string // one line
	run   func(context.Context, call) (int, error)
}

// commands lists the commands in the order of help. A first argument that is
// none of them is the archive that is to be verified: a folder that is called
// like a command is reached as ./NAME, or by the command archive.
func commands() []command {
	return []command{
		{"archive", "TARGET", "check a whole archive; this is what runs without a command too", verifyArchive},
		{"prove", "RECORD-ID TARGET -o FILE", "write the proof of one row as a file that checks without the archive", prove},
		{"row", "RECORD-ID TARGET", "print a row for a person, and check its proof", row},
		{"pack", "TARGET -o FILE.zip", "write a case as one zip that explains and proves itself", pack},
		{"proof", "FILE", "check a proof or a pack, without the archive", checkProof},
		{"consistency", "OLD NEW", "show that one tree of a log continues another", consistency},
		{"tiles", "TARGET DIR", "write a log's tree as C2SP tlog-tiles, and extend it", tiles},
		{"keys", "TARGET", "print which keys signed what, and how they were introduced", keyUses},
		{"jsonl", "FILE...", "check chained JSONL files, each alone and all as a set", jsonl},
		{"keygen", "--name NAME --out FILE", "make a key that signs, and print its public half", keygen},
	}
}

// commandOf parts the command from its arguments.
func commandOf(args []string) (command, []string) {
	all := commands()
	if len(args) > 0 {
		if i := slices.IndexFunc(all, func(c command) bool { return c.name == args[0] }); i >= 0 {
			return all[i], args[1:]
		}
	}
	return all[0], args
}

// commandList is the part of the help that names the commands.
func commandList() string {
	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-11s %s\n", c.name, c.short)
	}
	return b.String()
}

// Flags are the flags of one command, which may stand before and behind its
// other arguments, and the settings of the store, which may also come from a
// file and the environment.
type flags struct {
	*flag.FlagSet
	store []string
	s3    s3sink.Options
	kafka config.Kafka // where withKafka was called
	more  bool
}

func newFlags(name string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	f.Func(config.FileFlag, "", f.pass(config.FileFlag))
	var settings config.Ingest
	f.settings(storeSections(settings.Sections()))
	return f
}

// withKafka adds the settings of how Kafka is reached.
func (f *flags) withKafka() *flags {
	f.more = true
	var settings config.Ingest
	f.settings(kafkaSections(settings.Sections()))
	return f
}

func (f *flags) settings(sections []config.Section) {
	for _, section := range sections {
		for _, s := range config.WithSecretFiles(section.Settings) {
			if s.Value.Type == "" {
				f.BoolFunc(s.Name, "", f.pass(s.Name))
			} else {
				f.Func(s.Name, "", f.pass(s.Name))
			}
		}
	}
}

// pass keeps the value of a setting for package config.
func (f *flags) pass(name string) func(string) error {
	return func(value string) error { f.store = append(f.store, "--"+name+"="+value); return nil }
}

// storeSections are the settings that are shared with ledgerlake-ingest.
func storeSections(all []config.Section) []config.Section {
	return config.Select(all, func(s config.Setting) bool { return strings.HasPrefix(s.Name, "s3.") })
}

// kafkaSections are those that a reader of one topic needs.
func kafkaSections(all []config.Section) []config.Section {
	names := []string{
		"kafka.tls", "kafka.ca-file", "kafka.cert-file", "kafka.key-file",
		"kafka.sasl.mechanism", "kafka.sasl.user", "kafka.sasl.password", "kafka.sasl.token",
	}
	return config.Select(all, func(s config.Setting) bool { return slices.Contains(names, s.Name) })
}

// parse returns what is no flag. The error matches [flag.ErrHelp] where help is
// asked for, and else [errUsage].
func (f *flags) parse(args []string) (rest []string, err error) {
	for {
		switch err := f.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %w; --help says more", errUsage, err)
		case f.NArg() == 0:
			return rest, nil
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
}

// load reads the settings of the store.
func (f *flags) load(environ []string) error {
	var settings config.Ingest
	all := settings.Sections()
	mine := storeSections(all)
	if f.more {
		mine = append(mine, kafkaSections(all)...)
	}
	if _, err := config.Load(all, mine, config.Input{Args: f.store, Environ: environ}); err != nil {
		return err
	}
	f.s3, f.kafka = settings.S3, settings.Kafka
	return nil
}

// open opens an archive.
func (f *flags) open(ctx context.Context, target string) (src archive.Source, closeSource func(), err error) {
	return openTarget(ctx, target, f.s3)
}

func openTarget(ctx context.Context, target string, o s3sink.Options) (src archive.Source, closeSource func(), err error) {
	if strings.HasPrefix(target, "s3://") {
		b, err := s3sink.Open(ctx, target, o)
		return b, func() {}, err
	}
	path, err := folder(target)
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

// storeHelp is the part of a command's help that lists the settings of the
// store.
func storeHelp() string {
	var settings config.Ingest
	var b strings.Builder
	for _, section := range storeSections(settings.Sections()) {
		config.WriteHelp(&b, []config.Section{{Title: "The store (s3:// only)", Settings: section.Settings}})
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

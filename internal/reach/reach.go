// Package reach is how commands that read an archive are told which one, and by
// which keys: their flags, the settings of the store, and what opens it.
//
//	f := reach.NewFlags("turn")
//	rest, err := f.Parse(args)       // flags may stand before and behind the others
//	err = f.Load(environ)            // settings of the store: flags, LEDGERLAKE_ variables, --config FILE
//	src, done, err := f.Open(ctx, rest[0])
//
// A target is s3://BUCKET/PREFIX, a folder with a copy of a bucket, or a file URL
// of one. The package reads nothing of an archive, and writes none.
package reach

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

// ErrUsage: the arguments are not understood.
var ErrUsage = errors.New("not understood")

// Flags are the flags of one command, and the settings of the store, which may
// also come from a file and the environment.
type Flags struct {
	*flag.FlagSet
	S3     s3sink.Options // once Load was called
	Kafka  config.Kafka   // where WithKafka was called
	Bucket string         // of the settings; "" where none is set

	store []string
	more  func(config.Setting) bool // settings beside those of the store
}

// NewFlags returns the flags of a command, with --config and the settings of the
// store.
func NewFlags(name string) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), more: func(config.Setting) bool { return false }}
	f.SetOutput(io.Discard)
	f.Func(config.FileFlag, "", f.pass(config.FileFlag))
	var settings config.Ingest
	f.settings(storeSections(settings.Sections()))
	return f
}

// WithKafka adds the settings of how Kafka is reached.
func (f *Flags) WithKafka() *Flags { return f.with(ofKafka) }

// WithBucket adds the setting bucket.
func (f *Flags) WithBucket() *Flags {
	return f.with(func(s config.Setting) bool { return s.Name == "bucket" })
}

func (f *Flags) with(more func(config.Setting) bool) *Flags {
	before := f.more
	f.more = func(s config.Setting) bool { return before(s) || more(s) }
	var settings config.Ingest
	f.settings(config.Select(settings.Sections(), more))
	return f
}

func (f *Flags) settings(sections []config.Section) {
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
func (f *Flags) pass(name string) func(string) error {
	return func(value string) error { f.store = append(f.store, "--"+name+"="+value); return nil }
}

// storeSections are the settings that are shared with ledgerlake-ingest.
func storeSections(all []config.Section) []config.Section {
	return config.Select(all, func(s config.Setting) bool { return strings.HasPrefix(s.Name, "s3.") })
}

// ofKafka picks those that a reader of one topic needs.
func ofKafka(s config.Setting) bool {
	return slices.Contains([]string{
		"kafka.tls", "kafka.ca-file", "kafka.cert-file", "kafka.key-file",
		"kafka.sasl.mechanism", "kafka.sasl.user", "kafka.sasl.password", "kafka.sasl.token",
	}, s.Name)
}

// Parse returns what is no flag. The error matches [flag.ErrHelp] where help is
// asked for, and else [ErrUsage].
func (f *Flags) Parse(args []string) (rest []string, err error) {
	for {
		switch err := f.FlagSet.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %w; --help says more", ErrUsage, err)
		case f.NArg() == 0:
			return rest, nil
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
}

// Load reads the settings of the store.
func (f *Flags) Load(environ []string) error {
	var settings config.Ingest
	all := settings.Sections()
	for _, section := range all {
		for i := range section.Settings {
			section.Settings[i].Required = false // the archive may be an argument
		}
	}
	mine := append(storeSections(all), config.Select(all, f.more)...)
	if _, err := config.Load(all, mine, config.Input{Args: f.store, Environ: environ}); err != nil {
		return err
	}
	f.S3, f.Kafka, f.Bucket = settings.S3, settings.Kafka, settings.Bucket
	return nil
}

// Open opens the archive that a target names, by the settings of the store.
func (f *Flags) Open(ctx context.Context, target string) (src archive.Ranger, closeSource func(), err error) {
	return Open(ctx, target, f.S3)
}

// Open opens the archive that a target names.
func Open(ctx context.Context, target string, o s3sink.Options) (src archive.Ranger, closeSource func(), err error) {
	if strings.HasPrefix(target, "s3://") {
		b, err := s3sink.Open(ctx, target, o)
		return b, func() {}, err
	}
	path, err := Folder(target)
	if err != nil {
		return nil, nil, err
	}
	d, err := archive.OpenDir(path)
	if err != nil {
		return nil, nil, err
	}
	return d, func() { _ = d.Close() }, nil
}

// Folder returns the path that a file URL or a plain path names.
func Folder(target string) (string, error) {
	if !strings.Contains(target, "://") {
		return target, nil
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", fmt.Errorf("%w: want s3://BUCKET, file:///FOLDER or a folder", ErrUsage)
	}
	return u.Path, nil
}

// StoreHelp is the part of a command's help that lists the settings of the store.
func StoreHelp() string {
	var settings config.Ingest
	return sectionHelp("The store (s3:// only)", storeSections(settings.Sections()))
}

// KafkaHelp is the part of a command's help that lists the settings of Kafka,
// under a title.
func KafkaHelp(title string) string {
	var settings config.Ingest
	return sectionHelp(title, config.Select(settings.Sections(), ofKafka))
}

func sectionHelp(title string, sections []config.Section) string {
	var b strings.Builder
	for _, section := range sections {
		config.WriteHelp(&b, []config.Section{{Title: title, Settings: section.Settings}})
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

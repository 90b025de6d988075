package config

import (
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// flagText is the value of a flag as it was given. The flag of a list may be
// given several times, which adds to it; of others the last one counts.
type flagText struct {
	texts []string
	kind  string
	split func(string) []string // nil where the setting is no list
}

// Set takes the text of one flag. It is checked later, with those of the other
// layers.
func (f *flagText) Set(text string) error {
	if f.split == nil {
		f.texts = []string{text}
		return nil
	}
	f.texts = append(f.texts, f.split(text)...)
	return nil
}

// String returns what was given.
func (f *flagText) String() string { return strings.Join(f.texts, ",") }

// Type returns the word that help shows behind the flag.
func (f *flagText) Type() string { return f.kind }

// flagSet has a flag for each setting that may have one, and for --config.
func (l *loader) flagSet(offered []Setting) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Usage = func() {} // pflag would write one of its own to stderr
	flags.String(FileFlag, "", "")
	for _, s := range WithSecretFiles(offered) {
		if s.Value.secret {
			continue
		}
		value := &flagText{kind: s.Value.Type}
		if s.Value.list {
			value.split = func(text string) []string { return l.split(s, text) }
		}
		flag := flags.VarPF(value, s.Name, "", s.Help)
		if s.Value.Type == "" {
			flag.NoOptDefVal = "true"
		}
	}
	return flags
}

// parse reads the arguments, all of which must be flags.
func (l *loader) parse(flags *pflag.FlagSet, args []string) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return ErrHelp
	case err != nil:
		return l.flagError(flags, err)
	case flags.NArg() > 0:
		return &Error{Source: "argument " + quoteShort(flags.Arg(0)), Fault: "not understood: all arguments are flags, --name value or --name=value (a switch: --name or --name=false)"}
	}
	return nil
}

// flagError says what pflag found in our words.
func (l *loader) flagError(flags *pflag.FlagSet, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return &Error{Fault: err.Error()}
	}
	name := missing.GetSpecifiedName()
	if s, ok := l.find(name); ok && s.Value.secret {
		return &Error{
			Name: name, Source: "flag " + s.Flag(),
			Fault: "a command line is no place for a secret: use " + s.Env() + ", the file, or " + fileOf(s).Flag() + " FILE",
		}
	}
	if s, ok := l.find(name); ok {
		return &Error{Name: name, Source: "flag " + s.Flag(), Fault: "this command has no use for it; --help lists its flags"}
	}
	if missing.GetSpecifiedShortnames() != "" {
		return &Error{Source: "flag -" + missing.GetSpecifiedShortnames(), Fault: "no such flag; flags have two dashes and a whole name"}
	}
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return &Error{Source: "flag --" + name, Fault: unknown(name, names, "--")}
}

// isServiceLink reports whether an environment variable is one of those that
// Kubernetes sets in every pod of a namespace for a service whose name begins
// with "ledgerlake": they look like ours and are nobody's mistake.
func isServiceLink(name string) bool { return serviceLink.MatchString(name) }

var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// ErrHelp is the error of arguments that ask for help.
var ErrHelp = errors.New("help asked for")

// FileFlag is the flag that names the YAML file; its environment variable is
// LEDGERLAKE_CONFIG. It is no setting: the file cannot name another file.
const FileFlag = "config"

// Input is where settings come from.
type Input struct {
	Args    []string // what follows the command's name
	Environ []string // "NAME=value", as os.Environ returns it
}

// Origins says where the values of settings came from: "flag --batch.rows",
// "environment LEDGERLAKE_BATCH_ROWS", "file FILE line 7". Settings that have
// their default are not in it.
type Origins map[string]string

// given is a value as it was given, and where.
type given struct {
	Texts  []string // as written; more than one from a list in a file
	Source string
	Path   string // of the file that a secret has for itself, "" if it has none
}

// Load fills in the values of the settings in all sections. Flags are there
// for those of the offered sections, and only they must have what is required;
// the environment and the file may set all, those of other commands too, because
// they share them: what stands there is checked, and has no use here. It returns [ErrHelp], or an [*Error] for the first fault that it meets.
func Load(all, offered []Section, in Input) (Origins, error) {
	known := withOthers(flatten(all))
	l := loader{merged: koanf.New("."), settings: WithSecretFiles(known)}
	flags := l.flagSet(flatten(offered))
	if err := l.parse(flags, in.Args); err != nil {
		return nil, err
	}
	if err := l.loadFile(flags, in.Environ); err != nil {
		return nil, err
	}
	if err := l.loadEnvironment(in.Environ); err != nil {
		return nil, err
	}
	if err := l.loadFlags(flags); err != nil {
		return nil, err
	}
	return l.apply(known, flatten(offered))
}

// A loader merges the layers: file, environment, flags, each over the one
// before. The leaves of merged are of type given.
type loader struct {
	merged   *koanf.Koanf
	settings []Setting // with those that name the files of secrets
}

// fileOf returns the setting that names the file of a secret.
func fileOf(s Setting) Setting {
	return Setting{
		Name:  s.Name + "-file",
		Help:  "A file that holds " + s.Name + ", and nothing else.",
		Value: text(new(string), "FILE", "the path of a file", notEmpty),
	}
}

// WithSecretFiles adds behind each secret the setting that names its file.
func WithSecretFiles(settings []Setting) []Setting {
	var all []Setting
	for _, s := range settings {
		all = append(all, s)
		if s.Value.secret {
			all = append(all, fileOf(s))
		}
	}
	return all
}

// find returns the setting of a name.
func (l *loader) find(name string) (Setting, bool) {
	i := slices.IndexFunc(l.settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return l.settings[i], true
}

// FileOf returns the path of the YAML file that arguments or the environment name;
// "" where they name none.
func FileOf(in Input) string {
	for i, arg := range in.Args {
		if path, ok := strings.CutPrefix(arg, "--"+FileFlag+"="); ok {
			return path
		}
		if arg == "--"+FileFlag && i+1 < len(in.Args) {
			return in.Args[i+1]
		}
	}
	return lookup(in.Environ, EnvPrefix+"CONFIG")
}

// loadFile reads the YAML file, if there is one.
func (l *loader) loadFile(flags *pflag.FlagSet, environ []string) error {
	path, source := flags.Lookup(FileFlag).Value.String(), "flag --"+FileFlag
	if path == "" {
		path, source = lookup(environ, EnvPrefix+"CONFIG"), "environment "+EnvPrefix+"CONFIG"
	}
	if path == "" {
		return nil
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return &Error{Name: FileFlag, Source: source, Fault: err.Error()}
	}
	return l.merged.Load(&file{path: path, body: body, loader: l}, nil)
}

// loadEnvironment takes our variables from the environment. An empty one is as
// good as none: many tools can only set a variable to nothing, not unset it.
func (l *loader) loadEnvironment(environ []string) error {
	var fault error
	err := l.merged.Load(env.Provider(".", env.Opt{
		Prefix:      EnvPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			if value == "" || name == EnvPrefix+"CONFIG" || isServiceLink(name) {
				return "", nil
			}
			i := slices.IndexFunc(l.settings, func(s Setting) bool { return s.Env() == name })
			if i < 0 {
				if fault == nil {
					fault = l.unknownVariable(name)
				}
				return "", nil
			}
			return l.settings[i].Name, given{Texts: l.split(l.settings[i], value), Source: "environment " + name}
		},
	}), nil)
	return errors.Join(fault, err)
}

// split cuts the text of a list at its commas.
func (l *loader) split(s Setting, text string) []string {
	if !s.Value.list {
		return []string{text}
	}
	items := strings.Split(text, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

func (l *loader) unknownVariable(name string) error {
	names := []string{"CONFIG"}
	for _, s := range l.settings {
		names = append(names, strings.TrimPrefix(s.Env(), EnvPrefix))
	}
	return &Error{Source: "environment " + name, Fault: unknown(strings.TrimPrefix(name, EnvPrefix), names, EnvPrefix)}
}

// unknown says that a name is no setting, and which one may be meant. prefix
// stands before the names.
func unknown(name string, names []string, prefix string) string {
	if meant, ok := nearest(name, names); ok {
		return "no such setting; did you mean " + prefix + meant + "?"
	}
	return "no such setting; --help lists them"
}

// apply sets the settings to what the layers say, or to their defaults.
func (l *loader) apply(all, offered []Setting) (Origins, error) {
	origins := Origins{}
	for _, s := range all {
		g, ok, err := l.given(s)
		if err != nil {
			return nil, err
		}
		switch {
		case ok:
			origins[s.Name] = g.Source
		case s.Default != "":
			g = given{Texts: l.split(s, s.Default), Source: "default"}
		default:
			if s.Required && slices.ContainsFunc(offered, func(o Setting) bool { return o.Name == s.Name }) {
				return nil, &Error{Name: s.Name, Fault: fmt.Sprintf("not set: give %s (or %s, or %s in the file), %s", s.Flag(), s.Env(), s.Name, s.Value.Allowed)}
			}
			continue
		}
		if err := s.Value.set(g.Texts); err != nil {
			return nil, notAllowed(s, g, err)
		}
		if g.Path != "" && s.Value.from != nil {
			s.Value.from(g.Path)
		}
	}
	return origins, nil
}

// given returns what the layers say of a setting; for a secret, also what the
// file of its own says.
func (l *loader) given(s Setting) (given, bool, error) {
	g, ok := l.merged.Get(s.Name).(given)
	if !s.Value.secret {
		return g, ok, nil
	}
	path, fromFile := l.merged.Get(fileOf(s).Name).(given)
	switch {
	case !fromFile:
		return g, ok, nil
	case ok:
		return given{}, false, &Error{Name: s.Name, Source: g.Source, Fault: fileOf(s).Name + " is set as well (" + path.Source + "): want one of the two"}
	}
	text, err := readSecretFile(path.Texts[0])
	if err != nil {
		return given{}, false, &Error{Name: fileOf(s).Name, Source: path.Source, Fault: err.Error()}
	}
	return given{[]string{text}, path.Source, path.Texts[0]}, true, nil
}

// lookup returns the value of an environment variable, or "".
func lookup(environ []string, name string) string {
	value := ""
	for _, variable := range environ {
		if v, ok := strings.CutPrefix(variable, name+"="); ok {
			value = v
		}
	}
	return value
}

// loadFlags takes the flags that the arguments have.
func (l *loader) loadFlags(flags *pflag.FlagSet) error {
	return l.merged.Load(posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
		s, ok := l.find(f.Name)
		if !ok {
			return "", nil // --config
		}
		return s.Name, given{Texts: f.Value.(*flagText).texts, Source: "flag " + s.Flag()}
	}), nil)
}

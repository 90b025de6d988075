// Package config turns flags, the environment and a YAML file into settings.
//
// A setting has one name. The rows of a batch, for one, are
//
//	flag         --batch.rows 64
//	environment  LEDGERLAKE_BATCH_ROWS=64
//	file         batch: {rows: 64}          in the file that --config names
//	default      32
//
// and the first of these that is there wins. A table of [Setting] says all of
// it: the name, the type and what is allowed, the default, a line of help.
// Help, docs/configuration.md and every check are made from that table.
//
// What cannot be right is an [Error] of one line, which names the setting,
// where its value came from, and what is allowed. A flag, a key of the file or
// a LEDGERLAKE_ variable that is no setting is such an error too.
//
// A [Secret] comes from the environment, the file, or a file of its own whose
// path is the setting with "-file" behind its name. It has no flag, because
// every process of a machine can read the command lines of all others, and it
// never prints.
//
// The package reads files, and nothing else: arguments and environment come in
// as values. It knows no engine; who wires one copies the settings over. It
// does not watch the file: a process is started again to change its settings.
package config

import (
	"strings"
)

// EnvPrefix begins the name of every environment variable of ours.
const EnvPrefix = "LEDGERLAKE_"

// A Setting is one thing that can be set.
type Setting struct {
	Name     string // kebab-case words joined by dots: batch.grow-rows
	Default  string // as a user would write it; "" is none
	Help     string // one sentence
	Required bool   // there is no default, and the commands that offer it need it
	Value    Value
}

// Env returns the name of the setting's environment variable.
func (s Setting) Env() string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.Name))
}

// Flag returns the setting's flag, with its dashes.
func (s Setting) Flag() string { return "--" + s.Name }

// A Section is some settings that belong together, under one title.
type Section struct {
	Title    string
	Settings []Setting
}

// Select returns the sections without the settings that keep is false for, and
// without the sections that are then empty.
func Select(sections []Section, keep func(Setting) bool) []Section {
	var kept []Section
	for _, section := range sections {
		some := Section{Title: section.Title}
		for _, s := range section.Settings {
			if keep(s) {
				some.Settings = append(some.Settings, s)
			}
		}
		if some.Settings != nil {
			kept = append(kept, some)
		}
	}
	return kept
}

// flatten returns the settings of all sections.
func flatten(sections []Section) []Setting {
	var all []Setting
	for _, section := range sections {
		all = append(all, section.Settings...)
	}
	return all
}

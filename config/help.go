package config

import (
	"fmt"
	"io"
)

// WriteHelp writes the flags of all settings, section by section, in the form
// that --help shows.
func WriteHelp(w io.Writer, sections []Section) {
	for _, section := range sections {
		_, _ = fmt.Fprintf(w, "%s:\n", section.Title)
		for _, s := range WithSecretFiles(section.Settings) {
			_, _ = fmt.Fprintf(w, "  %s\n        %s\n", helpHead(s), helpText(s))
		}
		_, _ = fmt.Fprintln(w)
	}
}

// helpHead is the flag, or for a secret the variable, and what stands behind.
func helpHead(s Setting) string {
	switch {
	case s.Value.secret:
		return s.Env()
	case s.Value.Type == "":
		return s.Flag()
	}
	return s.Flag() + " " + s.Value.Type
}

func helpText(s Setting) string {
	switch {
	case s.Required:
		return s.Help + " Required."
	case s.Value.Type == "" && s.Default == "false", s.Default == "":
		return s.Help
	}
	return s.Help + " Default: " + s.Default + "."
}

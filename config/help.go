package config

import (
	"fmt"
	"io"
	"strings"
)

// WriteHelp writes the flags of all settings, section by section, in the form
// that --help shows.
func WriteHelp(w io.Writer, sections []Section) {
	for _, section := range sections {
		_, _ = fmt.Fprintf(w, "%s:\n", section.Title)
		for _, s := range WithSecretFiles(section.Settings) {
			_, _ = fmt.Fprintf(w, "  %s\n", helpHead(s))
			for _, line := range wrap(helpText(s), helpWidth) {
				_, _ = fmt.Fprintf(w, "        %s\n", line)
			}
		}
		_, _ = fmt.Fprintln(w)
	}
}

// helpHead is the flag, or for a secret the variable, and what stands behind.
func helpHead(s Setting) string {
	switch {
	case s.Value.secret:
		return s.Env() + "  (no flag)"
	case s.Value.Type == "":
		return s.Flag()
	}
	return s.Flag() + " " + s.Value.Type
}

// helpWidth is how many bytes a line of help has at most, indent aside.
const helpWidth = 96

// wrap breaks a text into lines of at most width bytes, between words.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
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

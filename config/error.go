package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An Error says in one line why the settings cannot be used. It never holds
// the text of a secret.
type Error struct {
	Name   string // of the setting; "" where the fault is not one setting's
	Source string // where the value came from: "flag --batch.rows"
	Fault  string // what is wrong with it, and what is allowed
}

// Error returns the one line: "batch.rows (flag --batch.rows): …".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Name)
	switch {
	case e.Name == "":
		b.WriteString(e.Source)
	case e.Source != "":
		fmt.Fprintf(&b, " (%s)", e.Source)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Fault)
	return strings.Join(strings.Fields(b.String()), " ")
}

// notAllowed is the error of a value that its setting does not take.
func notAllowed(s Setting, g given, err error) *Error {
	want := "want " + s.Value.Allowed
	if !errors.Is(err, errNotAllowed) {
		want = err.Error()
	}
	if s.Value.secret || s.Value.hidden {
		return &Error{Name: s.Name, Source: g.Source, Fault: want}
	}
	return &Error{Name: s.Name, Source: g.Source, Fault: quoteShort(strings.Join(g.Texts, ",")) + " is not allowed: " + want}
}

// quoteShort quotes a text, or its beginning if it is long.
func quoteShort(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "..."
	}
	return strconv.Quote(text)
}

// maxShown is how many bytes of a bad value an error repeats.
const maxShown = 120

package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Value is where a setting's value goes, and what may go there.
type Value struct {
	Type    string // for help: what stands behind the flag, "SIZE"; "" for a switch
	Allowed string // completes "want …"

	list   bool // one text or several
	secret bool // may not be shown, and has no flag
	hidden bool // may not be shown
	set    func(texts []string) error
	from   func(path string) // told after set where a secret came from a file of its own; nil: need not know
}

// errNotAllowed: a text is not what Value.Allowed says.
var errNotAllowed = errors.New("not allowed")

// single is a Value of one text. An error of set other than errNotAllowed says
// itself what is allowed.
func single(kind, allowed string, set func(string) error) Value {
	return Value{Type: kind, Allowed: allowed, set: func(texts []string) error {
		if len(texts) != 1 {
			return errNotAllowed
		}
		return set(texts[0])
	}}
}

// parsed is a Value of one text that parse understands.
func parsed[T any](p *T, kind, allowed string, parse func(string) (T, bool)) Value {
	return single(kind, allowed, func(text string) error {
		v, ok := parse(text)
		if !ok {
			return errNotAllowed
		}
		*p = v
		return nil
	})
}

// text is any text that ok takes.
func text(p *string, kind, allowed string, ok func(string) bool) Value {
	return parsed(p, kind, allowed, func(s string) (string, bool) { return s, ok(s) })
}

// textOrNone is a text, or the word none for "".
func textOrNone(p *string, kind, allowed string, ok func(string) bool) Value {
	return parsed(p, kind, allowed+", or none", func(s string) (string, bool) {
		if s == None {
			return "", true
		}
		return s, ok(s)
	})
}

// None is the word that switches off a setting that has a name as its value.
const None = "none"

// texts is a list of one or more texts that ok takes, none of them twice.
func texts(p *[]string, kind, allowed string, ok func(string) bool) Value {
	return Value{Type: kind + ",...", Allowed: "one or more of: " + allowed, list: true, set: func(texts []string) error {
		for i, s := range texts {
			if !ok(s) || slices.Contains(texts[:i], s) {
				return errNotAllowed
			}
		}
		*p = texts
		return nil
	}}
}

// oneOf is one of some words.
func oneOf(p *string, words ...string) Value {
	return text(p, strings.Join(words, "|"), "one of "+strings.Join(words, ", "),
		func(s string) bool { return slices.Contains(words, s) })
}

// oneOfOrNone is one of some words, or the word none for "".
func oneOfOrNone(p *string, words ...string) Value {
	words = append([]string{None}, words...)
	v := textOrNone(p, "", "", func(s string) bool { return slices.Contains(words, s) })
	v.Type, v.Allowed = strings.Join(words, "|"), "one of "+strings.Join(words, ", ")
	return v
}

// boolean is true or false. Its flag may stand alone.
func boolean(p *bool) Value {
	return parsed(p, "", "true or false", func(s string) (bool, bool) { return s == "true", s == "true" || s == "false" })
}

// count is a whole number.
func count(p *int, least, most int) Value {
	allowed := "a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	return parsed(p, "COUNT", allowed, func(s string) (int, bool) {
		n, ok := parseDecimal(s)
		return int(n), ok && n >= int64(least) && n <= int64(most)
	})
}

// size is a number of bytes.
func size(p *int64, least, most int64) Value {
	allowed := "a size from " + FormatBytes(least) + " to " + FormatBytes(most) + ", in B, kB, MB, GB, TB, KiB, MiB, GiB or TiB"
	return parsed(p, "SIZE", allowed, func(s string) (int64, bool) {
		n, ok := ParseBytes(s)
		return n, ok && n >= least && n <= most
	})
}

// duration is a length of time.
func duration(p *time.Duration, least, most time.Duration) Value {
	allowed := "a duration from " + FormatDuration(least) + " to " + FormatDuration(most) + ", in ms, s, m or h"
	return parsed(p, "DURATION", allowed, func(s string) (time.Duration, bool) {
		d, ok := ParseDuration(s)
		return d, ok && d >= least && d <= most
	})
}

// period is a length of time that may be days.
func period(p *time.Duration, least time.Duration) Value {
	allowed := "a duration of " + FormatPeriod(least) + " or more, in s, m, h or d, such as 30d"
	return parsed(p, "PERIOD", allowed, func(s string) (time.Duration, bool) {
		d, ok := ParsePeriod(s)
		return d, ok && d >= least
	})
}

// secret is a text that is not shown.
func secret(p *Secret) Value {
	v := parsed(p, "SECRET", "a secret that is not empty", func(s string) (Secret, bool) { return NewSecret(s), s != "" })
	v.secret = true
	v.from = func(path string) { p.path = path }
	return v
}

// notEmpty takes every text but "".
func notEmpty(s string) bool { return s != "" }

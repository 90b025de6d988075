package httpsink

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/export/event"
)

// An Index says in which index an event goes, by what never changes of it: the
// same event always goes into the same.
type Index struct{ parts []indexPart }

type indexPart struct {
	text  string
	value func(*event.Event) string
}

var indexValues = map[string]func(*event.Event) string{
	"tenant": func(ev *event.Event) string { return ev.Tenant },
	"topic":  func(ev *event.Event) string { return ev.Line.Topic },
	"event":  eventKind,
	"year":   func(ev *event.Event) string { return ev.Time.UTC().Format("2006") },
	"month":  func(ev *event.Event) string { return ev.Time.UTC().Format("2006.01") },
	"day":    func(ev *event.Event) string { return ev.Time.UTC().Format("2006.01.02") },
}

// eventKind is the kind, and that of a pointer is a record: both are the same
// document.
func eventKind(ev *event.Event) string {
	if ev.IsRow() {
		return string(event.KindRecord)
	}
	return string(ev.Kind)
}

// maxIndex is how long the name of an index may be, in bytes.
const maxIndex = 255

// ParseIndex reads the pattern of names: lower-case letters, digits, dots, dashes
// and underscores, beginning with a letter or a digit, with {tenant}, {topic},
// {event}, {year}, {month} or {day} in it, the last three being those of when it
// happened (UTC). What is not a lower-case letter, a digit, a dash or a dot in a
// tenant or topic stands there as an underscore and two hex digits a byte, so that
// no two have the same name; names that get too long end in a hash.
func ParseIndex(pattern string) (*Index, error) {
	fault := fmt.Errorf("index %q: want lower-case letters, digits, dots, dashes and underscores, beginning with a letter or a digit, and of {tenant}, {topic}, {event}, {year}, {month}, {day} what is needed", pattern)
	if pattern == "" || !strings.ContainsRune(lower, rune(pattern[0])) {
		return nil, fault
	}
	if len(pattern) > 128 {
		return nil, errors.New("index: more than 128 characters")
	}
	x := &Index{}
	for rest := pattern; rest != ""; {
		text, after, found := strings.Cut(rest, "{")
		if strings.Trim(text, lower+".-_") != "" {
			return nil, fault
		}
		x.parts = append(x.parts, indexPart{text: text})
		if rest = after; !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		value := indexValues[name]
		if !closed || value == nil {
			return nil, fault
		}
		x.parts = append(x.parts, indexPart{value: value})
		rest = after
	}
	return x, nil
}

const lower = "abcdefghijklmnopqrstuvwxyz0123456789"

// Of returns the name of the index of an event.
func (x *Index) Of(ev *event.Event) string {
	var b strings.Builder
	for _, p := range x.parts {
		b.WriteString(p.text)
		if p.value != nil {
			escapeIndex(&b, p.value(ev))
		}
	}
	name := b.String()
	if len(name) <= maxIndex {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := "_" + hex.EncodeToString(sum[:16])
	return name[:maxIndex-len(end)] + end
}

func escapeIndex(b *strings.Builder, text string) {
	for i := range len(text) {
		if c := text[i]; c < 0x80 && strings.ContainsRune(lower+".-", rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(b, "_%02x", c)
		}
	}
}

package event

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A value is what a field of a format gets. The zero value is none: the field
// is left out.
type value struct {
	typ valueType
	s   string // of a text
	n   int64  // of a number; 1 for true
	raw []byte // of JSON: one line
	l   []string
	// part is true of a text that is not all there is.
	part bool
}

type valueType uint8

const (
	none valueType = iota
	textValue
	numberValue
	truthValue
	jsonValue
	listValue
)

func textOf(s string) value  { return value{typ: textValue, s: s} }
func numberOf(n int64) value { return value{typ: numberValue, n: n} }
func listOf(l ...string) value {
	return value{typ: listValue, l: l}
}

func truthOf(b bool) value {
	v := value{typ: truthValue}
	if b {
		v.n = 1
	}
	return v
}

// text returns a nullable text as a value.
func text(t audit.Text) value {
	if !t.Valid {
		return value{}
	}
	return textOf(t.S)
}

// number returns a nullable number as a value.
func number(n audit.Int) value {
	if !n.Valid {
		return value{}
	}
	return numberOf(n.N)
}

// filled returns a text as a value, and none for an empty one.
func filled(s string) value {
	if s == "" {
		return value{}
	}
	return textOf(s)
}

// moment returns a time as RFC 3339 has it, to the microsecond.
func moment(t time.Time) value { return textOf(string(appendTime(nil, t))) }

// appendJSON appends a value as JSON.
func (v *value) appendJSON(dst []byte) []byte {
	switch v.typ {
	case textValue:
		return appendString(dst, v.s)
	case numberValue:
		return strconv.AppendInt(dst, v.n, 10)
	case truthValue:
		return strconv.AppendBool(dst, v.n != 0)
	case jsonValue:
		return append(dst, v.raw...)
	case listValue:
		dst = append(dst, '[')
		for i, s := range v.l {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, s)
		}
		return append(dst, ']')
	default:
		panic("event: no value")
	}
}

// plain returns a value as text, as formats without types have it.
func (v *value) plain() string {
	if v.typ == textValue {
		return v.s
	}
	return string(v.appendJSON(nil))
}

// cut returns s, or as much of its beginning as n bytes hold: whole characters,
// and a mark that it was longer.
func cut(s string, n int) (string, bool) {
	const mark = "…"
	if len(s) <= n {
		return s, false
	}
	for n -= len(mark); n > 0 && !utf8.RuneStart(s[n]); n-- {
	}
	return s[:max(n, 0)] + mark, true
}

package event

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// What CEF and LEEF say of us in their headers.
const (
	vendor  = "Ledgerlake"
	product = "Export"
)

// MaxLine is the length of the longest event in CEF or LEEF, in bytes, whatever
// a row has: with the header of syslog before it, it fits the 8,192 bytes that
// receivers of syslog take.
const MaxLine = 7680

// appendCEF appends a version 0 event of ArcSight's Common Event Format:
//
//	CEF:0|vendor|product|version|kind|title|severity|key=value key=value …
//
// In the header \ and | are escaped, in values \ and = and line breaks (\n, \r);
// no other character could end a value. Source: Implementing ArcSight Common
// Event Format, version 25.
func appendCEF(dst []byte, v *view) []byte {
	dst = append(dst, "CEF:0|"+vendor+"|"+product+"|"...)
	for _, s := range []string{productVersion(v), v.kind, v.mapped.title} {
		s, _ = cut(s, 256)
		dst = append(appendHeader(dst, s), '|')
	}
	dst = strconv.AppendInt(dst, severities[v.severity].ten, 10)
	dst = append(dst, '|')
	return appendFields(dst, cef, v, ' ', appendCEFValue)
}

// appendLEEF appends an event of QRadar's Log Event Extended Format 2.0, with a tab
// between its attributes:
//
//	LEEF:2.0|vendor|product|version|kind|x09|key=value<tab>key=value …
//
// A key ends at the first =, a value at the tab; LEEF has no escapes, so that
// what is no printable character is written as in JSON (\t, \n, \u0085), and \
// as \\. Source: IBM's QRadar LEEF guide, version 2.
func appendLEEF(dst []byte, v *view) []byte {
	dst = append(dst, "LEEF:2.0|"+vendor+"|"+product+"|"...)
	for _, s := range []string{productVersion(v), v.kind} {
		s, _ = cut(strings.ReplaceAll(s, "|", "/"), 256)
		dst = append(appendLEEFValue(dst, s), '|')
	}
	dst = append(dst, "x09|"...)
	return appendFields(dst, leef, v, '\t', appendLEEFValue)
}

func productVersion(v *view) string {
	if v.o.Version == "" {
		return "0"
	}
	return v.o.Version
}

// appendFields appends the fields of an event that it has, with between in
// between, and the labels of custom ones. A value that is longer than its
// field is cut, before it is escaped and then again.
func appendFields(dst []byte, fields []field, v *view, between byte, escaped func(dst []byte, s string) []byte) []byte {
	first := true
	pair := func(key, s string, limit int) {
		if !first {
			dst = append(dst, between)
		}
		first = false
		s, was := fit(s, limit, escaped)
		if was {
			v.cut = append(v.cut, key)
		}
		dst = escaped(append(append(dst, key...), '='), s)
	}
	for i := range fields {
		f := &fields[i]
		if x := f.get(v); x.typ != none {
			if s := x.plain(); s != "" {
				pair(f.path, s, f.limit)
				if f.label != "" {
					pair(f.path+"Label", f.label, f.limit)
				}
			}
		}
	}
	if len(v.cut) > 0 {
		pair(lineCut.path, strings.Join(v.cut, ","), lineCut.limit)
	}
	return dst
}

// lineCut is the last field of CEF and LEEF.
var lineCut = field{path: "LedgerlakeExportCut", source: source{"keys of the fields that were too long and are there in part", nil}, limit: 512}

// fit returns as much of the beginning of s as has limit bytes once it is
// escaped, and whether it had to be cut.
func fit(s string, limit int, escaped func(dst []byte, s string) []byte) (string, bool) {
	s, was := cut(s, limit)
	room := limit
	for {
		over := len(escaped(nil, s)) - limit
		if over <= 0 {
			return s, was
		}
		was = true
		// No character takes more than 6 bytes for each of its own.
		room = min(room, len(s)) - max(over/6, 1)
		s, _ = cut(s, max(room, len("…")))
	}
}

// appendHeader appends a field of CEF's header.
func appendHeader(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '\\' || r == '|':
			dst = append(dst, '\\', byte(r))
		case isControl(r) || breaksLine(r):
			dst = append(dst, ' ')
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// appendCEFValue appends the value of an extension. What could end a line and
// has no escape of its own becomes \n, other control characters a space.
func appendCEFValue(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '\\' || r == '=':
			dst = append(dst, '\\', byte(r))
		case r == '\r':
			dst = append(dst, `\r`...)
		case breaksLine(r):
			dst = append(dst, `\n`...)
		case isControl(r):
			dst = append(dst, ' ')
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// appendLEEFValue appends the value of an attribute.
func appendLEEFValue(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '\\' || isControl(r) || breaksLine(r):
			dst = appendEscape(dst, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// ranges is the rows of an erasure, as 0-4,7-9, and as much of them as fits.
var ranges = ofErasure("the rows: first-last,first-last…", func(e *Erasure) value {
	var b []byte
	for i, r := range e.Ranges {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRange(b, r, '-')
	}
	return textOf(string(b))
})

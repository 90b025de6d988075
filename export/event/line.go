package event

import "strings"

// What CEF and LEEF say of us in their headers.
const (
	vendor  = "Ledgerlake"
	product = "Export"
)

// MaxLine is the length of the longest event in CEF or LEEF, in bytes, whatever
// a row has: with the header of syslog before it, it fits the 8,192 bytes that
// receivers of syslog take.
const MaxLine = 7680

func productVersion(v *view) string {
	if v.o.Version == "" {
		return "0"
	}
	return v.o.Version
}

// appendFields appends the fields of an event that it has, with between in
// between, and the labels of custom ones. A value that is longer than its
// field is cut.
func appendFields(dst []byte, fields []field, v *view, between byte, escaped func(dst []byte, s string) []byte) []byte {
	begin := len(dst)
	pair := func(key, s string, limit int) {
		if len(dst) > begin {
			dst = append(dst, between)
		}
		dst = append(append(dst, key...), '=')
		at := len(dst)
		if len(s) <= limit {
			dst = escaped(dst, s)
		}
		if len(s) > limit || len(dst)-at > limit {
			s, _ = fit(s, limit, escaped)
			dst = escaped(dst[:at], s)
			v.cut = append(v.cut, key)
		}
	}
	for i := range fields {
		f := &fields[i]
		x := f.get(v)
		if x.typ == none {
			continue
		}
		s := x.plain()
		if s == "" {
			continue
		}
		if x.part {
			v.cut = append(v.cut, f.path)
		}
		pair(f.path, s, f.limit)
		if f.label != "" {
			pair(f.path+"Label", f.label, f.limit)
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

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// lineRanges is the number of ranges that one notice has in CEF and LEEF.
const lineRanges = 100

// ranges is the rows of an erasure, as 0-4,7-9; of more than lineRanges the
// first ones.
var ranges = ofErasure("the rows: first-last,first-last…", func(e *Erasure) value {
	var b []byte
	for i, r := range e.Ranges[:min(len(e.Ranges), lineRanges)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRange(b, r, '-')
	}
	x := textOf(string(b))
	x.part = len(e.Ranges) > lineRanges
	return x
})

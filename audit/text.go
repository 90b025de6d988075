package audit

import (
	"encoding/base64"
	"iter"
	"slices"
	"unicode/utf8"
	"unsafe"
)

// share returns b as a string without a copy. Nobody may write to b any more:
// messages and slots are never changed in place.
func share(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// The functions below walk JSON text, or parts of it, that a scanner has found
// valid. They must not be given any other.

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string whose opening quote is at i.
func skipString(b []byte, i int) int {
	for i++; ; i++ {
		i = skipPlain(b, i)
		switch {
		case i >= len(b):
			return len(b)
		case b[i] == '"':
			return i + 1
		case b[i] == '\\':
			i++
		}
	}
}

// skipValue returns the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
			continue
		default:
			i = skipWord(b, i)
		}
		if depth <= 0 {
			return min(i, len(b))
		}
	}
	return len(b)
}

// skipWord returns the index after the number or literal that begins at i.
func skipWord(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ',', ':', ']', '}', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

// elementsOf yields where the elements of an array stand in its text.
func elementsOf(array []byte) iter.Seq2[int, span] {
	return func(yield func(int, span) bool) {
		i := skipSpace(array, 1)
		for n := 0; i < len(array) && array[i] != ']'; n++ {
			end := skipValue(array, i)
			if !yield(n, span{uint32(i), uint32(end)}) {
				return
			}
			i = skipComma(array, end)
		}
	}
}

// membersOf yields where the members of an object stand in its text: the name
// between its quotes, and the value.
func membersOf(object []byte) iter.Seq2[span, span] {
	return func(yield func(name, value span) bool) {
		i := skipSpace(object, 1)
		for i < len(object) && object[i] != '}' {
			end := skipString(object, i)
			from := skipSpace(object, skipSpace(object, end)+1)
			to := skipValue(object, from)
			if from >= to || !yield(span{uint32(i + 1), uint32(end - 1)}, span{uint32(from), uint32(to)}) {
				return
			}
			i = skipComma(object, to)
		}
	}
}

// skipComma returns the index of what follows a value that ends at i: the
// closing bracket, or the beginning of what comes after a comma.
func skipComma(b []byte, i int) int {
	i = skipSpace(b, i)
	if i < len(b) && b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	return i
}

// unescaped returns the text of a string without its escapes, given what
// stands between its quotes. It shares memory where there are none.
func unescaped(in []byte) string {
	if slices.Contains(in, '\\') {
		return string(appendUnescaped(nil, in))
	}
	return share(in)
}

// appendUnescaped appends what stands between the quotes of a valid string,
// with escapes resolved.
func appendUnescaped(dst, in []byte) []byte {
	for i := 0; i < len(in); {
		if in[i] != '\\' || i+1 == len(in) {
			dst = append(dst, in[i])
			i++
			continue
		}
		if in[i+1] != 'u' {
			dst = append(dst, escapeOf(in[i+1]))
			i += 2
			continue
		}
		r, n := runeOf(in[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst
}

// escapeOf returns the byte that an escape of one letter stands for.
func escapeOf(letter byte) byte {
	switch letter {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return letter
}

// runeOf returns the rune that b, which begins with \u, stands for, and the
// length of the escape or pair of escapes.
func runeOf(b []byte) (rune, int) {
	r, _ := unit(b)
	if isHigh(r) && len(b) >= 12 {
		low, _ := unit(b[6:])
		return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), 12
	}
	return r, min(6, len(b))
}

// appendQuoted appends s as a JSON string. s must be UTF-8.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s)
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends what stands between the quotes of s as a JSON string.
func appendEscaped(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// appendBytes appends bytes from outside: a string, null, or {"base64": …}
// where they are not UTF-8.
func appendBytes(dst, b []byte) []byte {
	switch {
	case b == nil:
		return append(dst, "null"...)
	case utf8.Valid(b):
		return appendQuoted(dst, share(b))
	}
	dst = append(dst, `{"base64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, `"}`...)
}

// An objectText writes the text of one JSON object, member by member.
type objectText struct{ b []byte }

func (o *objectText) reset() { o.b = o.b[:0] }

// open begins a member: its name, as it stands between quotes, is appended to
// o.b next, and then close.
func (o *objectText) open() {
	if len(o.b) == 0 {
		o.b = append(o.b, '{', '"')
	} else {
		o.b = append(o.b, ',', '"')
	}
}

// close ends the name of a member; its value is appended to o.b next.
func (o *objectText) close() { o.b = append(o.b, '"', ':') }

// name writes the whole name of a member.
func (o *objectText) name(quoted string) {
	o.open()
	o.b = append(o.b, quoted...)
	o.close()
}

// member writes a member whose value is JSON text.
func (o *objectText) member(quoted string, value []byte) {
	o.name(quoted)
	o.b = append(o.b, value...)
}

// take returns a copy of the object, nil if it has no members.
func (o *objectText) take() []byte {
	if len(o.b) == 0 {
		return nil
	}
	text := make([]byte, len(o.b)+1)
	copy(text, o.b)
	text[len(o.b)] = '}'
	return text
}

// appendPathName appends a member name as it stands in a path: with ".", "~"
// and a leading "$" escaped, and then as part of a JSON string.
func appendPathName(dst []byte, name string) []byte {
	from := 0
	for i := 0; i < len(name); i++ {
		if c := name[i]; c == '.' || c == '~' || c == '$' && i == 0 {
			dst = appendEscaped(dst, name[from:i])
			dst = append(dst, '~', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
			from = i + 1
		}
	}
	return appendEscaped(dst, name[from:])
}

// Members yields the members of an object, names without escapes and values as
// they are written. object must be valid JSON.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(name string, value []byte) bool) {
		for n, v := range membersOf(object[skipSpace(object, 0):]) {
			at := object[skipSpace(object, 0):]
			if !yield(unescaped(at[n.from:n.to]), at[v.from:v.to]) {
				return
			}
		}
	}
}

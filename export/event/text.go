package event

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. What a reader of lines could take
// for the end of one (U+0085, U+2028 and U+2029 too) is escaped; what is no
// UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	return append(appendInside(append(dst, '"'), s), '"')
}

// appendInside appends what stands between the quotes of a JSON string.
func appendInside(dst []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			dst = appendEscape(append(dst, s[from:i]...), rune(c))
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || breaksLine(r) {
			dst = appendEscape(append(dst, s[from:i]...), r)
			from = i + n
		}
		i += n
	}
	return append(dst, s[from:]...)
}

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// breaksLine reports whether some reader of lines ends one at r.
func breaksLine(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

// appendRaw appends a producer's JSON on one line, value for value. What is no
// JSON becomes a string.
func appendRaw(dst, text []byte) []byte {
	if !json.Valid(text) {
		return appendString(dst, string(text))
	}
	return appendLine(dst, text)
}

// isLine reports whether JSON without space around its tokens is one line of
// UTF-8 to every reader of lines.
func isLine(text []byte) bool {
	return utf8.Valid(text) && !bytes.Contains(text, []byte("\u0085")) && !bytes.Contains(text, []byte("\u2028")) && !bytes.Contains(text, []byte("\u2029"))
}

// appendLine appends JSON without the space around its tokens, and what is no
// UTF-8 or could end a line as escapes.
func appendLine(dst, text []byte) []byte {
	inside := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inside = !inside
			dst = append(dst, c)
		case inside && c == '\\':
			dst = append(dst, c, text[i+1])
			i++
		case inside && c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(text[i:])
			if breaksLine(r) || r == utf8.RuneError && n == 1 {
				dst = appendEscape(dst, r)
			} else {
				dst = append(dst, text[i:i+n]...)
			}
			i += n - 1
		case !inside && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

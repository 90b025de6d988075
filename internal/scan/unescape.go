package scan

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// simple are the escapes of one letter.
var simple = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape returns b with the escapes of JSON strings replaced by what they stand
// for, wherever there are some: b need not be JSON.
func unescape(b []byte) (plain []byte, changed bool) {
	if bytes.IndexByte(b, '\\') < 0 {
		return b, false
	}
	plain = make([]byte, 0, len(b))
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return append(plain, b...), changed
		}
		plain, b = append(plain, b[:i]...), b[i:]
		var n int
		if plain, n = appendEscape(plain, b); n > 1 {
			changed = true
		}
		b = b[n:]
	}
	return plain, changed
}

// appendEscape appends what the escape that b begins with stands for, and returns
// its length: 1 where it is none.
func appendEscape(plain, b []byte) (_ []byte, n int) {
	if len(b) > 1 {
		if c, ok := simple[b[1]]; ok {
			return append(plain, c), 2
		}
	}
	r, ok := unit(b)
	if !ok {
		return append(plain, b[0]), 1
	}
	if low, ok := unit(b[6:]); ok && utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return utf8.AppendRune(plain, pair), 12
		}
	}
	return utf8.AppendRune(plain, r), 6
}

// unit reads \uXXXX.
func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

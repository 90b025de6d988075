package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// The longest escaped name that is used as it is, and what is left of a longer
// one before its hash.
const (
	escapedMax  = 120 // bytes
	escapedHead = 80  // bytes
)

// Escape returns name as a part of a key or of a checkpoint's origin. Every
// byte outside A-Z a-z 0-9 - _ . and a leading "." becomes "~" and two
// upper-case hex digits. What is then longer than 120 bytes becomes its first 80
// bytes (fewer where that would cut an escape), "~~", and the first 32 hex
// digits of name's SHA-256. Different names have different escapes.
func Escape(name string) string {
	if isPlain(name) && len(name) <= escapedMax {
		return name
	}
	escaped, cut := escapeBytes(name)
	if len(escaped) <= escapedMax {
		return escaped
	}
	sum := sha256.Sum256([]byte(name))
	return escaped[:cut] + "~~" + hex.EncodeToString(sum[:16])
}

// escapeBytes escapes name, however long that gets. cut is the last place at
// or before escapedHead that is not inside an escape.
func escapeBytes(name string) (escaped string, cut int) {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; isPlainByte(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'~', digits[c>>4], digits[c&15]})
		}
		if b.Len() <= escapedHead {
			cut = b.Len()
		}
	}
	return b.String(), cut
}

// Unescape is the inverse of [Escape]. It reports false where escaped is not
// what Escape makes of any name, and where the name was too long to be read
// back.
func Unescape(escaped string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		if escaped[i] != '~' {
			b.WriteByte(escaped[i])
			continue
		}
		if len(escaped) < i+3 {
			return "", false
		}
		c, err := hex.DecodeString(escaped[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b.WriteByte(c[0])
		i += 2
	}
	name = b.String()
	if Escape(name) != escaped {
		return "", false
	}
	return name, true
}

func isPlain(name string) bool {
	for i := range len(name) {
		if !isPlainByte(name[i]) {
			return false
		}
	}
	return name == "" || name[0] != '.'
}

func isPlainByte(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

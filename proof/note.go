package proof

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"
)

// maxSignatures bounds the signature lines of a note.
const maxSignatures = 100

var errNote = errors.New("not a note: a text, an empty line, and signature lines")

// splitNote takes a note apart into its text and its signatures, which are
// counted and not checked: that takes a key. It refuses every form but the one
// that writing the note again would give.
func splitNote(body []byte) (text string, signatures int, err error) {
	if !utf8.Valid(body) {
		return "", 0, errNote
	}
	text, lines, ok := cutLast(string(body), "\n\n")
	if !ok {
		return "", 0, errNote
	}
	for lines != "" {
		line, rest, ok := strings.Cut(lines, "\n")
		if !ok || !isSignature(line) || signatures == maxSignatures {
			return "", 0, errNote
		}
		lines = rest
		signatures++
	}
	return text, signatures, nil
}

// cutLast cuts behind the first newline of the last sep.
func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", "", false
	}
	return s[:i+1], s[i+len(sep):], true
}

// isSignature reports whether line is a C2SP signed-note signature line: a dash,
// the key's name, and strict base64 of at least a key hash and one byte more.
func isSignature(line string) bool {
	rest, ok := strings.CutPrefix(line, "— ")
	if !ok {
		return false
	}
	name, text, ok := strings.Cut(rest, " ")
	if !ok || !isKeyName(name) {
		return false
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(text)
	return err == nil && len(sig) > 4 && base64.StdEncoding.EncodeToString(sig) == text
}

func isKeyName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r == '+' || r <= ' ' || r == 0x7f })
}

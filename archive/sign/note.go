package sign

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrNote: bytes are not a note.
var ErrNote = errors.New("not a note: a text, an empty line, and signature lines")

// maxSignatures bounds the signature lines of a note, and so what checking it
// costs.
const maxSignatures = 100

// A Note is a note as it was read. Nothing about it is proved.
type Note struct {
	Text       string // with its final newline: exactly what is signed
	Signatures []Signature
}

// A Signature is one signature line.
type Signature struct {
	Name  string
	Hash  uint32 // of the key
	Bytes []byte // at least one; without the hash
}

// Parse takes a note apart. It refuses every form but the one that writing the
// note again gives, a line that stands twice, and more than 100 signatures; an
// error matches [ErrNote]. A note without signature lines is one.
func Parse(body []byte) (*Note, error) {
	text, lines, ok := cutLast(string(body), "\n\n")
	if !ok || !isText(body) {
		return nil, ErrNote
	}
	n := &Note{Text: text}
	seen := make(map[string]bool)
	for lines != "" {
		line, rest, ok := strings.Cut(lines, "\n")
		if !ok || len(n.Signatures) == maxSignatures {
			return nil, ErrNote
		}
		s, ok := parseSignature(line)
		if !ok || seen[line] {
			return nil, ErrNote
		}
		seen[line] = true
		n.Signatures = append(n.Signatures, s)
		lines = rest
	}
	if !bytes.Equal(n.encode(), body) {
		return nil, ErrNote
	}
	return n, nil
}

// isText reports whether a note may have these bytes: UTF-8 without control
// characters but newlines.
func isText(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return r < 0x20 && r != '\n' })
}

// cutLast cuts behind the first newline of the last sep.
func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", "", false
	}
	return s[:i+1], s[i+len(sep):], true
}

// parseSignature parses a dash, the key's name, and base64 of the key's hash and
// the signature.
func parseSignature(line string) (s Signature, ok bool) {
	rest, isLine := strings.CutPrefix(line, "— ")
	name, text, found := strings.Cut(rest, " ")
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if !isLine || !found || err != nil || len(data) <= 4 || !isName(name) {
		return s, false
	}
	return Signature{name, binary.BigEndian.Uint32(data), data[4:]}, true
}

func (n *Note) encode() []byte {
	var b bytes.Buffer
	b.WriteString(n.Text + "\n")
	for _, s := range n.Signatures {
		data := append(binary.BigEndian.AppendUint32(nil, s.Hash), s.Bytes...)
		fmt.Fprintf(&b, "— %s %s\n", s.Name, base64.StdEncoding.EncodeToString(data))
	}
	return b.Bytes()
}

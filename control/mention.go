package control

import (
	"bytes"
	"encoding/base64"
	"slices"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// shortID is the length in bytes below which an id is found only where it does
// not continue on either side: 42 is not in 1420. A longer one is found wherever
// it stands.
const shortID = 6

// maxUnescapes bounds how many escapings within each other are undone: JSON that
// stands as a string in JSON, and so on.
const maxUnescapes = 8

// Mentions reports whether bytes hold a text: as it is, or escaped as JSON
// escapes (\u0041 in either case of its digits, surrogate pairs, \n, \/ and so
// on, in any mixture), also where JSON stands as a string in JSON. The bytes
// need not be JSON, nor UTF-8. The empty text is in nothing.
func Mentions(b []byte, text string) bool { return anyHolds(forms(nil, b), text) }

// forms appends to all the bytes as they are, and as they are with one escaping
// more undone each.
func forms(all [][]byte, b []byte) [][]byte {
	all = append(all, b)
	for range maxUnescapes {
		if bytes.IndexByte(b, '\\') < 0 {
			break
		}
		b = unescape(b)
		all = append(all, b)
	}
	return all
}

func anyHolds(forms [][]byte, text string) bool {
	return text != "" && slices.ContainsFunc(forms, func(b []byte) bool { return holds(b, text) })
}

// A rejectedRow is asked for the users that its bytes mention. It works out the
// forms of its bytes once, for any number of questions.
type rejectedRow struct {
	row   *chain.Row
	forms [][]byte // nil: not yet
}

// mentions reports whether raw, key or headers hold a text.
func (r *rejectedRow) mentions(text string) bool {
	if r.forms == nil {
		r.forms = keyAndHeaders(forms([][]byte{}, r.row.Slots[audit.SlotRaw]), r.row.Slots[audit.SlotContext])
	}
	return anyHolds(r.forms, text)
}

// holds reports whether b has text in it, by the rule of shortID.
func holds(b []byte, text string) bool {
	for from := 0; ; {
		at := bytes.Index(b[from:], []byte(text))
		if at < 0 {
			return false
		}
		at += from
		if len(text) >= shortID || !joins(b, at) && !joins(b, at+len(text)) {
			return true
		}
		from = at + 1
	}
}

// joins reports whether the bytes on both sides of an index belong to one word.
func joins(b []byte, at int) bool {
	return at > 0 && at < len(b) && isWord(b[at-1]) && isWord(b[at])
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}

// unescape undoes the escapes of JSON, wherever they stand. What is none stays.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		at := bytes.IndexByte(b, '\\')
		if at < 0 || at+1 == len(b) {
			return append(out, b...)
		}
		out = append(out, b[:at]...)
		r, n := audit.Unescape(b[at:])
		out, b = utf8.AppendRune(out, r), b[at+n:]
	}
	return out
}

// keyAndHeaders appends the forms of key and headers, as the context of a rejected row
// keeps them; of a context that cannot be read, those of all of it.
func keyAndHeaders(all [][]byte, context []byte) [][]byte {
	found := all
	look := func(d *jsondoc.Document) { found = forms(found, readBytes(d)) }
	err := jsondoc.Read(context,
		jsondoc.Field{Name: "key", Optional: true, Read: look},
		jsondoc.Field{Name: "headers", Optional: true, Read: func(d *jsondoc.Document) {
			d.Array(func(d *jsondoc.Document) { d.Tuple(look, look) })
		}})
	if err != nil {
		return forms(found, context)
	}
	return found
}

// readBytes reads bytes as contexts write them: null, a string, or {"base64"}.
func readBytes(d *jsondoc.Document) (b []byte) {
	switch {
	case d.Null():
	case d.IsObject():
		d.Object(jsondoc.Field{Name: "base64", Read: func(d *jsondoc.Document) {
			var err error
			if b, err = base64.StdEncoding.DecodeString(d.Str()); err != nil {
				d.Fail("no base64")
			}
		}})
	default:
		b = []byte(d.Str())
	}
	return b
}

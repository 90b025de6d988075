package proof

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"unicode/utf8"
)

// The kinds of lines that a chained JSONL file has for itself. Source:
// docs/jsonl.md.
const (
	jsonlReset  = "ChainReset"
	jsonlMarker = "RotationMarker"
	jsonlAnchor = "RotationAnchor"
)

// A jsonlLine is what the check of a chain needs of one line. Text and hash lie
// in the line.
type jsonlLine struct {
	text         []byte // without its end of line
	hash         []byte // between the quotes
	before, rest []byte // of the line: what the hash stands between, quotes included
	prev, kind   string
	seq          int64
	hasSeq       bool
}

// parseJSONL reads one line. Other programs wrote it, so anything that is a JSON
// object will do, of any depth and with any numbers; the member names of the
// object itself must be unlike each other, or two readers could see two hashes.
func parseJSONL(text []byte) (l jsonlLine, err error) {
	l.text = text
	switch {
	case len(text) == 0:
		return l, errors.New("the line is empty")
	case !utf8.Valid(text):
		return l, errors.New("the line is not valid UTF-8")
	case !json.Valid(text):
		return l, errors.New("the line is not JSON")
	}
	seen := map[string]bool{}
	err = members(text, func(name string, from, to int) error {
		if seen[name] {
			return fmt.Errorf("member %.40q stands twice", name)
		}
		seen[name] = true
		return l.take(name, from, to)
	})
	switch {
	case err != nil:
		return l, err
	case !seen["hash"]:
		return l, errors.New(`member "hash" is missing`)
	case !seen["prevHash"]:
		return l, errors.New(`member "prevHash" is missing`)
	}
	return l, nil
}

// take takes a member, whose value is text[from:to].
func (l *jsonlLine) take(name string, from, to int) error {
	value := l.text[from:to]
	switch name {
	case "hash":
		if value[0] != '"' {
			return errors.New("hash is not a string")
		}
		l.hash, l.before, l.rest = value[1:len(value)-1], l.text[:from+1], l.text[to-1:]
	case "prevHash":
		if json.Unmarshal(value, &l.prev) != nil || value[0] != '"' {
			return errors.New("prevHash is not a string")
		}
	case "kind":
		_ = json.Unmarshal(value, &l.kind) // a kind that is no string is none of ours
	case "seq":
		n, err := strconv.ParseInt(string(value), 10, 64)
		l.seq, l.hasSeq = n, err == nil
	}
	return nil
}

// sum writes what the line's hash must be into out, in hex.
//
//	hex(SHA-256(prevHash line)), or hex(HMAC-SHA256(key, prevHash line)),
//	the line with the value of its hash member set to ""
func (l *jsonlLine) sum(h hash.Hash, out []byte) []byte {
	h.Reset()
	h.Write([]byte(l.prev))
	h.Write(l.before)
	h.Write(l.rest)
	return hex.AppendEncode(out[:0], h.Sum(nil))
}

// jsonlHash returns the hash function of a chain. Without a key it is SHA-256.
func jsonlHash(key []byte) hash.Hash {
	if key == nil {
		return sha256.New()
	}
	return hmac.New(sha256.New, key)
}

// SealJSONL returns a line of a chained JSONL file with its hash. The line is
// one JSON object without an end of line, whose prevHash is the hash of the line
// before and whose hash is "". A nil key makes an unkeyed chain.
func SealJSONL(line, key []byte) ([]byte, error) {
	l, err := parseJSONL(line)
	if err != nil {
		return nil, err
	}
	if len(l.hash) > 0 || bytes.ContainsAny(line, "\r\n") {
		return nil, errors.New(`want one line, with "hash":""`)
	}
	return bytes.Join([][]byte{l.before, l.sum(jsonlHash(key), nil), l.rest}, nil), nil
}

// members calls f with each member of the object that text is: its name, and
// where its value stands. text must be valid JSON.
func members(text []byte, f func(name string, from, to int) error) error {
	i := jsonSpace(text, 0)
	if text[i] != '{' {
		return errors.New("the line is not a JSON object")
	}
	for i = jsonSpace(text, i+1); text[i] != '}'; {
		end := jsonString(text, i)
		var name string
		if err := json.Unmarshal(text[i:end], &name); err != nil {
			return err
		}
		from := jsonSpace(text, jsonSpace(text, end)+1) // behind the colon
		to := jsonValue(text, from)
		if err := f(name, from, to); err != nil {
			return err
		}
		if i = jsonSpace(text, to); text[i] == ',' {
			i = jsonSpace(text, i+1)
		}
	}
	return nil
}

// jsonSpace returns the index of the first byte from i on that is no white space.
func jsonSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// jsonString returns the index behind the string that begins at i.
func jsonString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// jsonValue returns the index behind the value that begins at i.
func jsonValue(text []byte, i int) int {
	depth := 0
	for {
		switch text[i] {
		case '"':
			i = jsonString(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\r', '\n', ',', ':': // within a list
			i++
			continue
		default:
			i = jsonWord(text, i)
		}
		if depth == 0 {
			return i
		}
	}
}

// jsonWord returns the index behind the number, true, false or null at i.
func jsonWord(text []byte, i int) int {
	for i < len(text) && bytes.IndexByte([]byte(" \t\r\n,]}"), text[i]) < 0 {
		i++
	}
	return i
}

package scan

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// window is how many bytes of a form are looked up first. Shorter forms would be
// met by chance.
const window = 8

// Needles are values to look for.
type Needles struct {
	marks [1 << 16]uint64 // a bit for each hash that some form begins with
	forms map[uint64][]form
}

type form struct {
	value int
	bytes []byte
}

// NewNeedles returns Needles for values of at least 8 bytes each.
func NewNeedles(values []string) (*Needles, error) {
	n := &Needles{forms: map[uint64][]form{}}
	for i, v := range values {
		if len(v) < window {
			return nil, fmt.Errorf("value %d has %d bytes: below %d, chance finds it", i, len(v), window)
		}
		n.add(i, v)
		n.add(i, hex.EncodeToString([]byte(v)))
		n.add(i, strings.ToUpper(hex.EncodeToString([]byte(v))))
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for shift := range 3 {
				n.add(i, stable(e, v, shift))
			}
		}
	}
	return n, nil
}

// stable returns the letters of v in base64 that are the same whatever stands
// around it, where shift bytes of a group of three are before it.
func stable(e *base64.Encoding, v string, shift int) string {
	text := e.EncodeToString([]byte("\x00\x00"[:shift] + v))
	return text[(8*shift+5)/6 : 8*(shift+len(v))/6]
}

func (n *Needles) add(value int, text string) {
	if len(text) < window {
		return
	}
	x := binary.LittleEndian.Uint64([]byte(text))
	for _, f := range n.forms[x] {
		if f.value == value && string(f.bytes) == text {
			return
		}
	}
	h := mix(x)
	n.marks[h>>6] |= 1 << (h & 63)
	n.forms[x] = append(n.forms[x], form{value: value, bytes: []byte(text)})
}

// mix makes 22 bits of 64.
func mix(x uint64) uint64 { return x * 0x9E3779B97F4A7C15 >> 42 }

// A Hit is a value that was found.
type Hit struct {
	Value int    // index into the values
	Where string // in which text
	At    int    // byte of the text
}

func (h Hit) String() string { return fmt.Sprintf("value %d in %s, byte %d", h.Value, h.Where, h.At) }

// Find returns where values stand in an object, each once for a text. The error
// says what could not be looked into: see [Texts].
func (n *Needles) Find(object []byte) (hits []Hit, err error) {
	for text, err := range Texts(object) {
		if err != nil {
			return hits, err
		}
		found := map[int]bool{}
		n.each(text.Bytes, func(value, at int) {
			if !found[value] {
				found[value] = true
				hits = append(hits, Hit{Value: value, Where: text.Where, At: at})
			}
		})
	}
	return hits, nil
}

func (n *Needles) each(b []byte, hit func(value, at int)) {
	for i := 0; i+window <= len(b); i++ {
		x := binary.LittleEndian.Uint64(b[i:])
		if h := mix(x); n.marks[h>>6]>>(h&63)&1 == 0 {
			continue
		}
		for _, f := range n.forms[x] {
			if bytes.HasPrefix(b[i:], f.bytes) {
				hit(f.value, i)
			}
		}
	}
}

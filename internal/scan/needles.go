package scan

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// window is how many bytes of a form are looked up first. Shorter forms would be
// met by chance.
const window = 8

// Needles are values to look for.
type Needles struct {
	marks [1 << 16]uint64 // a bit for each hash of a window that is looked for
	forms map[uint64][]form
}

// A form is a way in which a value may stand in a text. It is looked for by the
// window at a place of it that few others have: values are often alike at their
// beginnings.
type form struct {
	value int
	bytes string
	at    int
}

// places is how many places of a form a window is chosen from.
const places = 16

// NewNeedles returns Needles for values of at least 8 bytes each.
func NewNeedles(values []string) (*Needles, error) {
	var all []form
	for i, v := range values {
		if len(v) < window {
			return nil, fmt.Errorf("value %d has %d bytes: below %d, chance finds it", i, len(v), window)
		}
		for _, text := range forms(v) {
			all = append(all, form{value: i, bytes: text})
		}
	}
	counts := map[uint64]int{}
	for i := range all {
		all[i].windows(func(_ int, x uint64) { counts[x]++ })
	}
	n := &Needles{forms: map[uint64][]form{}}
	for _, f := range all {
		n.add(f, counts)
	}
	return n, nil
}

// forms returns the ways in which a value may stand in a text, each once.
func forms(v string) []string {
	lower := hex.EncodeToString([]byte(v))
	all := []string{v, lower, strings.ToUpper(lower)}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			if text := stable(e, v, shift); len(text) >= window {
				all = append(all, text)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// windows calls do with some windows of the form, the first and the last too.
func (f *form) windows(do func(at int, x uint64)) {
	last := len(f.bytes) - window
	for i := range places {
		at := last * i / (places - 1)
		do(at, binary.LittleEndian.Uint64([]byte(f.bytes[at:at+window])))
	}
}

func (n *Needles) add(f form, counts map[uint64]int) {
	var best uint64
	f.windows(func(at int, x uint64) {
		if best == 0 || counts[x] < counts[best] {
			best, f.at = x, at
		}
	})
	h := mix(best)
	n.marks[h>>6] |= 1 << (h & 63)
	n.forms[best] = append(n.forms[best], f)
}

// stable returns the letters of v in base64 that are the same whatever stands
// around it, where shift bytes of a group of three are before it.
func stable(e *base64.Encoding, v string, shift int) string {
	text := e.EncodeToString([]byte("\x00\x00"[:shift] + v))
	return text[(8*shift+5)/6 : 8*(shift+len(v))/6]
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
			if from := i - f.at; from >= 0 && len(b)-from >= len(f.bytes) && string(b[from:from+len(f.bytes)]) == f.bytes {
				hit(f.value, from)
			}
		}
	}
}

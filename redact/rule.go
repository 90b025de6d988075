package redact

import (
	"bytes"
	"regexp"
)

// A rule finds what is to go from a text.
type rule interface {
	// find adds to a subject's matches. It takes time in proportion to the text.
	find(s *subject, number int)
}

// A subject is a text that rules look at.
type subject struct {
	folded
	key     []byte // the name of the member that the text is the value of, folded; nil where it is none
	keyed   uint64 // the keyed rules that are for that name, by number
	budget  *int64 // bytes that keyed rules may still look at, over all texts of a record
	matches []match
}

// A match is a stretch of a folded text that a rule found.
type match struct {
	from, to int
	rule     int
}

func (s *subject) add(from, to, rule int) { s.matches = append(s.matches, match{from, to, rule}) }

// How far around a number a word may stand that says what it is, in bytes of the
// folded text.
const (
	wordBefore = 40
	wordAfter  = 24
)

// near reports whether a word stands near a stretch of the text, or in the name
// of its member.
func (s *subject) near(w *word, from, to int) bool {
	return w.in(s.b[max(0, from-wordBefore):from]) || w.in(s.b[to:min(len(s.b), to+wordAfter)]) || w.in(s.key)
}

// A word is what says of a number what it is.
type word struct {
	hint string // pairs of small letters, one of which stands in each word, in either case
	re   *regexp.Regexp
}

// in reports whether a word stands in a text.
func (w *word) in(b []byte) bool { return w.hinted(b) && w.re.Match(b) }

// hinted is a look at what most texts fail at, for little.
func (w *word) hinted(b []byte) bool {
	for i := 1; i < len(b); i++ {
		for h := 0; h < len(w.hint); h += 2 {
			if b[i-1]|0x20 == w.hint[h] && b[i]|0x20 == w.hint[h+1] {
				return true
			}
		}
	}
	return false
}

const digits = "0123456789"

// digitsAt returns the index after the digits that begin at i.
func digitsAt(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

// nextDigit returns the index of the first digit from i on that follows none, or
// len(b).
func nextDigit(b []byte, i int) int {
	for ; i < len(b); i++ {
		if isDigit(b[i]) && (i == 0 || !isDigit(b[i-1])) {
			return i
		}
	}
	return i
}

// joinedBefore reports whether the number that begins at i begins before it,
// beyond a sign, as in 1.5 or 1-2.
func joinedBefore(b []byte, i int) bool {
	return i > 1 && bytes.IndexByte([]byte(".-/_"), b[i-1]) >= 0 && isDigit(b[i-2])
}

// joinedAfter reports whether the number that ends before i goes on beyond a sign.
func joinedAfter(b []byte, i int) bool {
	return i+1 < len(b) && bytes.IndexByte([]byte(".-/_"), b[i]) >= 0 && isDigit(b[i+1])
}

// alone reports whether a stretch is a word of its own, and no part of a larger
// number.
func alone(b []byte, from, to int) bool {
	switch {
	case from > 0 && isAlnum(b[from-1]), to < len(b) && isAlnum(b[to]):
		return false
	}
	return !joinedBefore(b, from) && !joinedAfter(b, to)
}

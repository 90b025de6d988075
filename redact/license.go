package redact

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// license finds the numbers of driver's licences of the states that a policy
// names: words of the length and form that one of them gives out, dashes left
// aside, where a word near them, or the name of the member, says so. The forms
// are too common (nine digits, for one) to look for any without that.
type license struct{ shapes []shape }

var licenseWord = &word{"lidl", regexp.MustCompile(`(?i)\b(?:driver'?s?|driving|operator'?s?)[ _-]{0,2}licen[cs]e|\bdln?\b|\bdl ?(?:#|no\b|num)|\blic(?:en[cs]e)?[ ._-]{0,2}(?:#|no\b|num|id\b)|drivers?_?licen[cs]e|licen[cs]e_?(?:no|num)`)}

// Licences of fewer characters are not looked for, and none has more.
const (
	minLicense = 6
	maxLicense = 19
)

func (l *license) find(s *subject, number int) {
	b := s.b
	for i := 0; i < len(b); {
		if !isAlnum(b[i]) {
			i++
			continue
		}
		end := wordAt(b, i)
		var word [maxLicense]byte
		if w, ok := bare(word[:0], b[i:end]); ok && bytes.ContainsAny(w, digits) && l.fits(w) && s.near(licenseWord, i, end) {
			s.add(i, end, number)
		}
		i = end
	}
}

// wordAt returns the index after the word that begins at i: letters and digits,
// with single dashes within.
func wordAt(b []byte, i int) int {
	for ; i < len(b); i++ {
		if !isAlnum(b[i]) && (b[i] != '-' || i+1 == len(b) || !isAlnum(b[i+1])) {
			return i
		}
	}
	return i
}

// bare appends a word without its dashes; it reports false where no licence has
// as many characters.
func bare(dst, word []byte) ([]byte, bool) {
	for _, c := range word {
		switch {
		case c == '-':
		case len(dst) == maxLicense:
			return dst, false
		default:
			dst = append(dst, c)
		}
	}
	return dst, len(dst) >= minLicense
}

func (l *license) fits(word []byte) bool {
	return slices.ContainsFunc(l.shapes, func(sh shape) bool { return sh.fits(word) })
}

// A shape is the form of a licence: stretches of letters (A), digits (N), or both
// (X), each of so many.
type shape []stretch

type stretch struct {
	of       byte
	min, max int
}

func (sh shape) fits(word []byte) bool {
	i := 0
	for _, st := range sh {
		n := 0
		for i < len(word) && n < st.max && st.has(word[i]) {
			i, n = i+1, n+1
		}
		if n < st.min {
			return false
		}
	}
	return i == len(word)
}

func (st *stretch) has(c byte) bool {
	return isDigit(c) && st.of != 'A' || isLetter(c) && st.of != 'N'
}

// licenseForms are the forms of each state: A1N7 is a letter and seven digits,
// N7-9 seven to nine digits. Forms of fewer than six characters are left out.
// Source: the states' published formats, as AAMVA's members state them.
var licenseForms = map[string]string{
	"AL": "N6-8", "AK": "N6-7", "AZ": "A1N8 A2N4-5 N9", "AR": "N6-9", "CA": "A1N7", "CO": "N9 A1N5-6 A2N4-5", "CT": "N9", "DE": "N6-7",
	"DC": "N7 N9", "FL": "A1N12", "GA": "N7-9", "HI": "A1N8 N9", "ID": "A2N6A1 N9", "IL": "A1N11-12", "IN": "A1N9 N9-10", "IA": "N9 N3A2N4",
	"KS": "A1N1A1N1A1N1 A1N8 N9", "KY": "A1N8-9 N9", "LA": "N6-9", "ME": "N7-8 N7A1", "MD": "A1N12", "MA": "A1N8 A2N7 N9", "MI": "A1N10 A1N12",
	"MN": "A1N12", "MS": "N9", "MO": "A1N5-9 A1N6A1 N8A2 N9A1 N9", "MT": "A1N8 N9 N13 N14", "NE": "A1N6-8", "NV": "N9-10 N12 A1N8",
	"NH": "N2A3N5 A3N8", "NJ": "A1N14", "NM": "N8-9", "NY": "A1N7 A1N18 N8-9 N16", "NC": "N6-12", "ND": "A3N6 N9", "OH": "A1N5-8 A2N4-7 N8",
	"OK": "A1N9 N9", "OR": "N6-9 A1N6 A2N5", "PA": "N8", "RI": "N7-8 A1N6", "SC": "N6-11", "SD": "N6-10 N12", "TN": "N7-9", "TX": "N7-8",
	"UT": "N6-10", "VT": "N8 N7A1", "VA": "A1N8-11 N9", "WA": "A3X9 A1X11", "WV": "N7 A1N6 A2N5-6", "WI": "A1N13", "WY": "N9-10",
}

// States lists the states whose licences can be looked for.
func States() []string { return slices.Sorted(maps.Keys(licenseForms)) }

// newLicense returns the rule for some states, each of which must be one of
// [States].
func newLicense(states []string) *license {
	l := &license{}
	for _, state := range states {
		for form := range strings.FieldsSeq(licenseForms[state]) {
			l.shapes = append(l.shapes, parseShape(form))
		}
	}
	return l
}

// parseShape reads a form of licenseForms.
func parseShape(form string) (sh shape) {
	for i := 0; i < len(form); {
		st := stretch{of: form[i]}
		st.min, i = numberIn(form, i+1)
		st.max = st.min
		if i < len(form) && form[i] == '-' {
			st.max, i = numberIn(form, i+1)
		}
		sh = append(sh, st)
	}
	return sh
}

func numberIn(s string, i int) (n, end int) {
	for ; i < len(s) && isDigit(s[i]); i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n, i
}

// digits returns how many digits the form with the fewest has, and 1 at least.
func (l *license) digits() int {
	fewest := maxLicense
	for _, sh := range l.shapes {
		n := 0
		for _, st := range sh {
			if st.of == 'N' {
				n += st.min
			}
		}
		fewest = min(fewest, n)
	}
	return max(1, fewest)
}

package redact

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A folded is a text as rules look at it: without JSON's escapes, and with what
// only looks different made equal.
//
//	digits of every script, full-width, superscript, circled   0 to 9
//	full-width and other forms of ASCII characters             those
//	dashes of all kinds, the minus sign                        -
//	spaces of all kinds, tab                                   a space
//	line separators                                            a line feed
//	zero-width and other invisible characters                  nothing
//
// All else stays as it is: letters keep their accents and their scripts.
type folded struct {
	b []byte
	// at has, of each byte of b, where in the text the character begins that it
	// stands for, and the length of the text at the end. Nil: b is the text.
	at []int32
}

// place returns the stretch of the text that a stretch of b stands for, which is
// not empty: whole characters, also where one stands for more than the stretch.
func (f *folded) place(from, to int) (int, int) {
	if f.at == nil {
		return from, to
	}
	for f.at[to] == f.at[to-1] {
		to++
	}
	return int(f.at[from]), int(f.at[to])
}

// fold folds a text, which is what stands between the quotes of a JSON string,
// or any bytes: what is no escape is then a backslash, and what is no UTF-8
// stays. It uses the memory of f.
func (f *folded) fold(in []byte) {
	f.b, f.at = f.b[:0], f.at[:0]
	for i := 0; i < len(in); {
		r, n := runeAt(in[i:])
		from := len(f.b)
		switch {
		case r == utf8.RuneError && n == 1:
			f.b = append(f.b, in[i])
		default:
			f.b = appendFolded(f.b, r)
		}
		for range len(f.b) - from {
			f.at = append(f.at, int32(i))
		}
		i += n
	}
	f.at = append(f.at, int32(len(in)))
}

// runeAt returns the character that b begins with, its escape resolved, and how
// many bytes it takes.
func runeAt(b []byte) (rune, int) {
	if b[0] != '\\' || len(b) == 1 {
		return utf8.DecodeRune(b)
	}
	return audit.Unescape(b)
}

// invisible are characters that leave no trace where they stand.
var invisible = []*unicode.RangeTable{unicode.Cf, unicode.Variation_Selector, unicode.Me}

const graphemeJoiner = '\u034F'

// appendFolded appends what a character is for the rules.
func appendFolded(dst []byte, r rune) []byte {
	switch {
	case r == '\t':
		return append(dst, ' ')
	case r < utf8.RuneSelf:
		return append(dst, byte(r))
	case r == graphemeJoiner, unicode.IsOneOf(invisible, r):
		return dst
	case unicode.Is(unicode.Pd, r), r == '\u2212', r == '\u2043', r == '\u02D7':
		return append(dst, '-')
	case unicode.Is(unicode.Zs, r):
		return append(dst, ' ')
	case r == '\u2028', r == '\u2029', r == '\u0085':
		return append(dst, '\n')
	case unicode.Is(unicode.Nd, r):
		return append(dst, '0'+digitOf(r))
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	if d := norm.NFKD.Properties(buf[:n]).Decomposition(); isASCII(d) {
		return append(dst, d...)
	}
	return append(dst, buf[:n]...)
}

// digitOf returns the value of a decimal digit of any script: those of a script
// stand together, from 0 on.
func digitOf(r rune) byte {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return byte((r - rune(t.Lo)) % 10)
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return byte((r - rune(t.Lo)) % 10)
		}
	}
	return 0
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return len(b) > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isAlnum(c byte) bool { return isDigit(c) || isLetter(c) }

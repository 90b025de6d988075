package redact

import (
	"bytes"
	"strconv"
)

// A mark stands in place of what a rule found: [redacted:NAME], NAME being the
// rule's. Of member names that become equal in one object, all but the first have
// a number too: [redacted:NAME~2]. A mark has no character that JSON escapes, and
// no rule looks into one, so that to scrub twice is to scrub once.
const (
	markOpen  = "[redacted:"
	markClose = ']'
	maxName   = 32
)

func appendMark(dst []byte, name string) []byte {
	dst = append(dst, markOpen...)
	dst = append(dst, name...)
	return append(dst, markClose)
}

// appendNumbered appends a mark with a number.
func appendNumbered(dst, mark []byte, n int) []byte {
	dst = append(dst, mark[:len(mark)-1]...)
	dst = append(dst, '~')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, markClose)
}

// nextMark returns where the first mark of b from i on stands; from is len(b)
// where there is none.
func nextMark(b []byte, i int) (from, to int) {
	for i < len(b) {
		at := bytes.Index(b[i:], []byte(markOpen))
		if at < 0 {
			break
		}
		from = i + at
		if to = markEnd(b, from+len(markOpen)); to > 0 {
			return from, to
		}
		i = from + 1
	}
	return len(b), len(b)
}

// markEnd returns the index after the mark whose name begins at i; 0 where it is
// none.
func markEnd(b []byte, i int) int {
	end := i
	for end < len(b) && isNameByte(b[end]) {
		end++
	}
	if end == i || end-i > maxName {
		return 0
	}
	if end < len(b) && b[end] == '~' {
		number := digitsAt(b, end+1)
		if number == end+1 || number-end > 8 {
			return 0
		}
		end = number
	}
	if end == len(b) || b[end] != markClose {
		return 0
	}
	return end + 1
}

func isNameByte(c byte) bool { return 'a' <= c && c <= 'z' || isDigit(c) || c == '-' }

// mask is what rules see where a mark stands: no digit, no letter, no space.
const mask = 0

// maskMarks masks the marks in a text.
func maskMarks(b []byte) {
	for from, to := nextMark(b, 0); from < len(b); from, to = nextMark(b, to) {
		clear(b[from:to])
	}
}

func isMasked(b []byte) bool {
	for _, c := range b {
		if c != mask {
			return false
		}
	}
	return true
}

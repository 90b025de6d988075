package redact

import "regexp"

// ssn finds social security numbers of the United States: nine digits as 3-2-4
// with a dash or a space between them, or in one piece where a word near them, or
// the name of the member, says what they are. Numbers that were never given out
// (area 000, 666 or 900 to 999, group 00, serial 0000) are none.
type ssn struct{}

// ssnWord is what makes nine digits a social security number.
var ssnWord = &word{"ssso", regexp.MustCompile(`(?i)ssn|social[ _-]{0,2}security|\bsoc\.? ?sec|\bss ?(?:#|no\b|num)`)}

const ssnDigits = 9

func (ssn) find(s *subject, number int) {
	b := s.b
	for i := nextDigit(b, 0); i < len(b); {
		end := digitsAt(b, i)
		switch end - i {
		case 3:
			if to, ok := ssnAt(b, i); ok {
				s.add(i, to, number)
				end = to
			}
		case ssnDigits:
			if wasGiven(b[i:i+3], b[i+3:i+5], b[i+5:end]) && alone(b, i, end) && s.near(ssnWord, i, end) {
				s.add(i, end, number)
			}
		}
		i = nextDigit(b, end)
	}
}

// ssnAt returns the end of the number in three groups that begins at i.
func ssnAt(b []byte, i int) (to int, ok bool) {
	first, dash := separatorAt(b, i+3)
	group := digitsAt(b, first)
	second, dash2 := separatorAt(b, group)
	to = digitsAt(b, second)
	if first == i+3 || group-first != 2 || second == group || to-second != 4 || dash != dash2 {
		return 0, false
	}
	return to, wasGiven(b[i:i+3], b[first:group], b[second:to]) && standsFree(b, i, to, dash)
}

// standsFree reports whether what stands around a number in groups is no part of
// it. Letters may touch one with dashes, for nothing else looks like that.
func standsFree(b []byte, from, to int, dash bool) bool {
	if dash {
		return (to == len(b) || !isDigit(b[to])) && !joinedBefore(b, from) && !joinedAfter(b, to)
	}
	spaced := from > 1 && b[from-1] == ' ' && isDigit(b[from-2]) || to+1 < len(b) && b[to] == ' ' && isDigit(b[to+1])
	return !spaced && alone(b, from, to)
}

// separatorAt returns the index after the separator at i: a dash, with or without
// a space on either side, or a space.
func separatorAt(b []byte, i int) (end int, dash bool) {
	if i < len(b) && b[i] == ' ' {
		i++
	}
	if i < len(b) && b[i] == '-' {
		dash = true
		i++
		if i < len(b) && b[i] == ' ' {
			i++
		}
	}
	return i, dash
}

func wasGiven(area, group, serial []byte) bool {
	a := string(area)
	return a != "000" && a != "666" && a[0] != '9' && string(group) != "00" && string(serial) != "0000"
}

package audit

// Unescape returns the character that the escape of JSON at the start of text
// stands for, and how many bytes it takes: \n, \u00e9, or a pair of surrogates. A
// backslash that begins no escape is itself, 1 byte long; half a pair is the
// surrogate. Text begins with a backslash.
func Unescape(text []byte) (r rune, n int) {
	if len(text) == 1 {
		return '\\', 1
	}
	switch c := text[1]; c {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case '"', '\\', '/':
		return rune(c), 2
	}
	r, ok := unit(text)
	if !ok {
		return '\\', 1
	}
	if low, ok := unit(text[6:]); ok && isHigh(r) && isLow(low) {
		return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), 12
	}
	return r, 6
}

// unit returns the UTF-16 code unit of the escape \uXXXX that b begins with.
func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

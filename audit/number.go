package audit

import "math"

// A decimal is the text of a JSON number, taken apart: the digits before the
// point and after it, and the exponent.
type decimal struct {
	negative    bool
	whole, frac []byte
	exponent    int64 // no further from 0 than farExponent
}

// farExponent is further than any text of a number is long, so that an
// exponent beyond it moves all digits out of sight, whatever it is.
const farExponent = 1 << 40

func parseDecimal(text []byte) decimal {
	var d decimal
	if text[0] == '-' {
		d.negative, text = true, text[1:]
	}
	d.whole, text = leadingDigits(text)
	if len(text) > 0 && text[0] == '.' {
		d.frac, text = leadingDigits(text[1:])
	}
	if len(text) > 0 {
		d.exponent = parseExponent(text[1:])
	}
	return d
}

func leadingDigits(b []byte) (digits, rest []byte) {
	i := 0
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return b[:i], b[i:]
}

func parseExponent(text []byte) int64 {
	sign := int64(1)
	switch text[0] {
	case '-':
		sign, text = -1, text[1:]
	case '+':
		text = text[1:]
	}
	var e int64
	for _, c := range text {
		e = min(e*10+int64(c-'0'), farExponent)
	}
	return sign * e
}

// digit returns the i-th digit, counted from the left over the point.
func (d *decimal) digit(i int) uint64 {
	if i < len(d.whole) {
		return uint64(d.whole[i] - '0')
	}
	return uint64(d.frac[i-len(d.whole)] - '0')
}

// scaled returns the number times 10^shift as an integer, rounded toward zero.
// exact says that nothing was cut off, fits that it is within int64. It works
// on the digits, so that no exponent costs more than the text is long.
func (d *decimal) scaled(shift int64) (n int64, exact, fits bool) {
	count := len(d.whole) + len(d.frac)
	first := 0
	for first < count && d.digit(first) == 0 {
		first++
	}
	if first == count {
		return 0, true, true
	}
	// The digits before end are the integer; zeros follow if end > count.
	end := int64(len(d.whole)) + d.exponent + shift
	exact = true
	for i := max(int64(first), end); i < int64(count) && exact; i++ {
		exact = d.digit(int(i)) == 0
	}
	switch {
	case end <= int64(first):
		return 0, exact, true
	case end-int64(first) > 19:
		return 0, exact, false
	}
	var sum uint64 // at most 19 digits fit
	for i := int64(first); i < end; i++ {
		sum *= 10
		if i < int64(count) {
			sum += d.digit(int(i))
		}
	}
	n, fits = signed(sum, d.negative)
	return n, exact, fits
}

func signed(magnitude uint64, negative bool) (int64, bool) {
	switch {
	case !negative:
		return int64(magnitude), magnitude <= math.MaxInt64
	case magnitude == 1<<63:
		return math.MinInt64, true
	}
	return -int64(magnitude), magnitude < 1<<63
}

// exactInt returns the integer that the text of a JSON number is: 100 for 1e2,
// 812 for 812.0. It returns wrong_type for a number that is not integral,
// out_of_range for one outside int64, else "".
func exactInt(text []byte) (int64, Reason) {
	if n, ok := shortInt(text); ok {
		return n, ""
	}
	d := parseDecimal(text)
	n, exact, fits := d.scaled(0)
	switch {
	case !exact:
		return 0, ReasonWrongType
	case !fits:
		return 0, ReasonOutOfRange
	}
	return n, ""
}

// shortInt returns the integer of a few digits that text is, and false if it is
// something else.
func shortInt(text []byte) (int64, bool) {
	if len(text) > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range text {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

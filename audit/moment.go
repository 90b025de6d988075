package audit

import (
	"strings"
	"time"
)

// The instants that a column of times can hold, in microseconds since
// 1970-01-01 UTC: the years 0001 to 9999.
const (
	minMicros = -62135596800_000000
	maxMicros = 253402300799_999999
)

// ParseTime reads the text of an instant as producers write it: RFC 3339, with
// any offset and any number of decimals, and also with the signed years of six
// digits that JavaScript prints. It returns microseconds since 1970-01-01 UTC;
// decimals beyond the sixth are cut off. plain says that text is exactly
// YYYY-MM-DDTHH:MM:SS.mmmZ, and so can be had back from the microseconds. The
// reason is bad_timestamp for text that is no instant, out_of_range for one
// outside the years 0001 to 9999, else "".
//
// A local time, without an offset, is no instant, nor is a date alone. A leap
// second is bad_timestamp: no column can tell it from the second after.
func ParseTime(text string) (micros int64, plain bool, reason Reason) {
	c := clock{rest: text}
	year := c.year()
	c.eat("-")
	month := c.number(2, 1, 12)
	c.eat("-")
	day := c.number(2, 1, 31)
	c.eat("Tt ")
	hour := c.number(2, 0, 23)
	c.eat(":")
	minute := c.number(2, 0, 59)
	c.eat(":")
	second := c.number(2, 0, 59)
	fraction := c.fraction()
	offset := c.offset()
	date := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if c.bad || c.rest != "" || date.Day() != day {
		return 0, false, ReasonBadTimestamp
	}
	micros = (date.Unix()-offset)*1e6 + fraction
	if year < 1 || micros < minMicros || micros > maxMicros {
		return 0, false, ReasonOutOfRange
	}
	return micros, len(text) == len(plainTime) && text[10] == 'T' && text[19] == '.' && text[23] == 'Z', ""
}

// plainTime is the layout of a time that its column says wholly.
const plainTime = "2006-01-02T15:04:05.000Z"

// A clock reads the parts of a time off the front of rest. What does not fit
// makes it bad.
type clock struct {
	rest string
	bad  bool
}

// eat takes one byte, any of those in chars, and returns it.
func (c *clock) eat(chars string) byte {
	if c.rest == "" || strings.IndexByte(chars, c.rest[0]) < 0 {
		c.bad = true
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

// number takes a number of exactly width digits, from low to high.
func (c *clock) number(width, low, high int) int {
	if len(c.rest) < width {
		c.bad = true
		return low
	}
	n := 0
	for i := range width {
		c.bad = c.bad || !isDigit(c.rest[i])
		n = n*10 + int(c.rest[i]) - '0'
	}
	c.rest = c.rest[width:]
	c.bad = c.bad || n < low || n > high
	return n
}

// year takes four digits, or a sign and six.
func (c *clock) year() int {
	if c.rest == "" || c.rest[0] != '+' && c.rest[0] != '-' {
		return c.number(4, 0, 9999)
	}
	sign := c.eat("+-")
	n := c.number(6, 0, 999999)
	if sign == '-' {
		return -n
	}
	return n
}

// fraction takes the decimals of a second, if there are any, and returns
// microseconds.
func (c *clock) fraction() int64 {
	if c.rest == "" || c.rest[0] != '.' {
		return 0
	}
	c.rest = c.rest[1:]
	micros, unit := int64(0), int64(1e5)
	n := 0
	for n < len(c.rest) && isDigit(c.rest[n]) {
		micros += int64(c.rest[n]-'0') * unit
		unit /= 10
		n++
	}
	c.rest = c.rest[n:]
	c.bad = c.bad || n == 0
	return micros
}

// offset takes Z or ±hh:mm, and returns seconds east of UTC.
func (c *clock) offset() int64 {
	sign := c.eat("Zz+-")
	if sign != '+' && sign != '-' {
		return 0
	}
	hours := c.number(2, 0, 23)
	c.eat(":")
	seconds := int64(hours*3600 + c.number(2, 0, 59)*60)
	if sign == '-' {
		return -seconds
	}
	return seconds
}

// isFar says whether an instant, in milliseconds since 1970, is outside the
// years 0001 to 9999.
func isFar(millis int64) bool { return millis < minMicros/1000 || millis > maxMicros/1000 }

// nearMicros returns an instant in microseconds; of one that is far, the
// nearest that is not.
func nearMicros(millis int64) int64 {
	return min(max(millis, minMicros/1000), maxMicros/1000) * 1000
}

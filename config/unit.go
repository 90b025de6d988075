package config

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// A byteUnit is a unit of sizes. kB and its like are powers of 1,000, KiB and
// its like of 1,024.
type byteUnit struct {
	name  string
	bytes int64
}

// byteUnits are in the order in which FormatBytes tries them.
var byteUnits = []byteUnit{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"kB", 1e3},
	{"B", 1},
}

// ParseBytes returns the number of bytes that a text such as 256MiB, 8MB or
// 512B says: a whole number and a unit, with nothing between them. A number
// without a unit is refused, as nobody can know what its writer had in mind,
// and so is what int64 does not hold.
func ParseBytes(text string) (int64, bool) {
	for _, u := range byteUnits {
		// "B" is last, so that it does not see the end of the others.
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			n, ok := parseDecimal(digits)
			high, low := bits.Mul64(uint64(n), uint64(u.bytes))
			return int64(low), ok && high == 0 && low <= math.MaxInt64
		}
	}
	return 0, false
}

// FormatBytes returns the shortest text that [ParseBytes] reads as n, which
// must not be negative.
func FormatBytes(n int64) string {
	shortest := strconv.FormatInt(n, 10) + "B"
	for _, u := range byteUnits {
		if n%u.bytes != 0 {
			continue
		}
		if s := strconv.FormatInt(n/u.bytes, 10) + u.name; len(s) < len(shortest) {
			shortest = s
		}
	}
	return shortest
}

// ParseDuration returns the duration that a text such as 50ms, 1m30s or 1.5h
// says. It is what [time.ParseDuration] takes, but for signs; only 0 may stand
// without a unit.
func ParseDuration(text string) (time.Duration, bool) {
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// FormatDuration returns a text that [ParseDuration] reads as d, without the
// zero minutes and seconds that [time.Duration.String] has: 1h, not 1h0m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// parseDecimal reads a whole number that is not negative, has no sign and no
// leading zeros: 010 is eight to some and ten to others.
func parseDecimal(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text && n >= 0
}

// day is what d stands for in periods.
const day = 24 * time.Hour

// ParsePeriod returns the length that a text such as 7d, 36h or 90s says: whole
// days, or what [ParseDuration] reads.
func ParsePeriod(text string) (time.Duration, bool) {
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		n, ok := parseDecimal(digits)
		return time.Duration(n) * day, ok && n <= 100_000
	}
	return ParseDuration(text)
}

// FormatPeriod returns the shortest text that [ParsePeriod] reads as d.
func FormatPeriod(d time.Duration) string {
	if d%day == 0 && d != 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return FormatDuration(d)
}

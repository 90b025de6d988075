package audit

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A number is taken for an integer when it is one, in whatever form, and only
// then: nothing is rounded.
func TestExactInt(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   int64
		reason Reason
	}{
		{"0", 0, ""},
		{"-0", 0, ""},
		{"0e99999999999999999999", 0, ""},
		{"0.000e-5", 0, ""},
		{"812.0", 812, ""},
		{"812.000e0", 812, ""},
		{"8.120e2", 812, ""},
		{"1e2", 100, ""},
		{"1E+2", 100, ""},
		{"1200e-2", 12, ""},
		{"9007199254740993", 9007199254740993, ""},
		{"-9007199254740993", -9007199254740993, ""},
		{"9223372036854775807", 9223372036854775807, ""},
		{"-9223372036854775808", -9223372036854775808, ""},
		{"9223372036854775.807e3", 9223372036854775807, ""},
		{"0." + strings.Repeat("0", 400) + "1e401", 1, ""},
		{"1" + strings.Repeat("0", 400) + "e-400", 1, ""},
		{"0.5", 0, ReasonWrongType},
		{"-1.5", 0, ReasonWrongType},
		{"12e-1", 0, ReasonWrongType},
		{"1e-400", 0, ReasonWrongType},
		{"9007199254740993.5", 0, ReasonWrongType},
		{"100000000000000000000.5", 0, ReasonWrongType},
		{"9223372036854775808", 0, ReasonOutOfRange},
		{"-9223372036854775809", 0, ReasonOutOfRange},
		{"18446744073709551615", 0, ReasonOutOfRange},
		{"18446744073709551616", 0, ReasonOutOfRange},
		{"99999999999999999999", 0, ReasonOutOfRange},
		{"1e19", 0, ReasonOutOfRange},
		{"1e400", 0, ReasonOutOfRange},
		{"-1e9223372036854775808", 0, ReasonOutOfRange},
		{"1e99999999999999999999", 0, ReasonOutOfRange},
	} {
		if got, reason := exactInt([]byte(c.text)); got != c.want || reason != c.reason {
			t.Errorf("%.60s: %d, %q; want %d, %q", c.text, got, reason, c.want, c.reason)
		}
	}
}

// Milliseconds become microseconds, rounded toward zero, and it is known when
// something was cut off.
func TestScaled(t *testing.T) {
	for _, c := range []struct {
		text        string
		want        int64
		exact, fits bool
	}{
		{"812", 812000, true, true},
		{"812.345", 812345, true, true},
		{"0.001", 1, true, true},
		{"1e-3", 1, true, true},
		{"812.3456", 812345, false, true},
		{"-812.3456", -812345, false, true},
		{"0.0009999", 0, false, true},
		{"-0.0009", 0, false, true},
		{"1e-400", 0, false, true},
		{"9223372036854775.807", 9223372036854775807, true, true},
		{"9223372036854775.8079", 9223372036854775807, false, true},
		{"9223372036854775.808", 0, true, false},
		{"1e400", 0, true, false},
	} {
		d := parseDecimal([]byte(c.text))
		got, exact, fits := d.scaled(3)
		if exact != c.exact || fits != c.fits || fits && got != c.want {
			t.Errorf("%s: %d, exact %v, fits %v; want %d, %v, %v", c.text, got, exact, fits, c.want, c.exact, c.fits)
		}
	}
}

// An exponent costs no time: a text of a few bytes is judged in no time,
// whatever number it stands for.
func TestHugeExponentIsCheap(t *testing.T) {
	begin := time.Now()
	for range 1000 {
		exactInt([]byte("1e999999999999"))
		exactInt([]byte("1e-999999999999"))
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("2,000 numbers took %v", took)
	}
}

// FuzzScaled holds the arithmetic on digits against that of math/big.
func FuzzScaled(f *testing.F) {
	for _, text := range []string{"0", "-12.50e3", "9223372036854775.807", "1e18", "123e-5", "-0.0001"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) == 0 || text[0] != '-' && !isDigit(text[0]) || !json.Valid([]byte(text)) || strings.TrimSpace(text) != text {
			return
		}
		if _, e, found := strings.Cut(strings.ToLower(text), "e"); found {
			if n, err := strconv.Atoi(e); err != nil || n > 500 || n < -500 {
				return
			}
		}
		value, _ := new(big.Rat).SetString(text)
		value.Mul(value, big.NewRat(1000, 1))
		want := new(big.Int).Quo(value.Num(), value.Denom())
		d := parseDecimal([]byte(text))
		got, exact, fits := d.scaled(3)
		if exact != value.IsInt() || fits != want.IsInt64() || fits && got != want.Int64() {
			t.Fatalf("%s: %d, exact %v, fits %v; want %v, %v", text, got, exact, fits, want, value.IsInt())
		}
		if n, reason := exactInt([]byte(text)); reason == "" {
			if back, _ := new(big.Rat).SetString(text); back.Cmp(new(big.Rat).SetInt64(n)) != 0 {
				t.Fatalf("%s became %d", text, n)
			}
		}
	})
}

// normal returns the text of a number in one form, so that two texts of one
// number are equal: an integer that does not end with 0, and an exponent.
func normal(text string) string {
	d := parseDecimal([]byte(text))
	digits := strings.TrimLeft(string(d.whole)+string(d.frac), "0")
	exponent := d.exponent - int64(len(d.frac))
	bare := strings.TrimRight(digits, "0")
	if bare == "" {
		return "0"
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	return fmt.Sprintf("%s%se%d", sign, bare, exponent+int64(len(digits)-len(bare)))
}

package config_test

import (
	"math"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/config"
)

func TestParseBytes(t *testing.T) {
	for _, text := range []string{
		"", "B", "1", "256", "-1B", "+1B", "1.5MiB", "1 MiB", " 1MiB", "1MiB ", "1mib", "1Mi", "1M", "1KB", "0x10B", "1_000B", "010B",
		"9223372036854775808B", "8388608TiB", "99999999999999999999TiB", "18014398509481984KiB",
	} {
		if n, ok := config.ParseBytes(text); ok {
			t.Errorf("ParseBytes(%q) = %d, want it refused", text, n)
		}
	}
	for text, want := range map[string]int64{
		"0B": 0, "512B": 512, "1kB": 1000, "1KiB": 1024, "8MB": 8_000_000, "256MiB": 256 << 20, "3GB": 3e9, "2GiB": 2 << 30,
		"1TB": 1e12, "1TiB": 1 << 40, "9223372036854775807B": math.MaxInt64, "8388607TiB": 8388607 << 40,
	} {
		if n, ok := config.ParseBytes(text); !ok || n != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, n, ok, want)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1: "1B", 1000: "1kB", 1024: "1KiB", 1 << 20: "1MiB", 50e6: "50MB", 1001: "1001B", math.MaxInt64: "9223372036854775807B"} {
		if got := config.FormatBytes(n); got != want {
			t.Errorf("FormatBytes(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for _, text := range []string{"", "1", "50", "-1s", "+1s", "1 s", "1d", "s", "1s ", "9999999h"} {
		if d, ok := config.ParseDuration(text); ok {
			t.Errorf("ParseDuration(%q) = %v, want it refused", text, d)
		}
	}
	for text, want := range map[string]time.Duration{"0": 0, "0s": 0, "50ms": 50 * time.Millisecond, "1m30s": 90 * time.Second, "1.5h": 90 * time.Minute} {
		if d, ok := config.ParseDuration(text); !ok || d != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, d, ok, want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", time.Hour: "1h", 90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 10 * time.Second: "10s"} {
		if got := config.FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d) = %s, want %s", d, got, want)
		}
	}
}

// What ParseBytes takes is not negative, and FormatBytes gives a text of the
// same size that is no longer.
func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"256MiB", "1", "B", "9223372036854775807B", "18014398509481984KiB", "-1kB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := config.ParseBytes(text)
		if !ok {
			return
		}
		short := config.FormatBytes(n)
		again, ok := config.ParseBytes(short)
		if n < 0 || !ok || again != n || len(short) > len(text) {
			t.Errorf("%q is %d, which is written %q and read as %d, %v", text, n, short, again, ok)
		}
	})
}

// What ParseDuration takes is not negative, and FormatDuration gives it back.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"50ms", "1h0m1s", "1.5h", "-1s", "1", "9999999h", "1µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := config.ParseDuration(text)
		if !ok {
			return
		}
		again, ok := config.ParseDuration(config.FormatDuration(d))
		if d < 0 || !ok || again != d {
			t.Errorf("%q is %d, which is written %q and read as %d, %v", text, d, config.FormatDuration(d), again, ok)
		}
	})
}

// A period is days, or a duration; nothing else stands for days.
func TestParsePeriod(t *testing.T) {
	for text, want := range map[string]time.Duration{"7d": 168 * time.Hour, "36h": 36 * time.Hour, "2s": 2 * time.Second, "1d": 24 * time.Hour} {
		if got, ok := config.ParsePeriod(text); !ok || got != want {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
		if got, _ := config.ParsePeriod(config.FormatPeriod(want)); got != want {
			t.Errorf("%v is written %s", want, config.FormatPeriod(want))
		}
	}
	for _, text := range []string{"", "d", "7", "-7d", "+7d", "07d", "1.5d", "7d12h", "7 d", "999999999d", "7D"} {
		if got, ok := config.ParsePeriod(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

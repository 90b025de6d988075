package audit

import (
	"testing"
	"time"
)

// A time is read whatever its offset and its decimals are, and plain is only
// the form that the column says wholly.
func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  int64
		plain bool
	}{
		{"2026-05-15T12:00:00.000Z", 1778846400_000000, true},
		{"2026-05-15T12:00:00.123Z", 1778846400_123000, true},
		{"1970-01-01T00:00:00.000Z", 0, true},
		{"0001-01-01T00:00:00.000Z", minMicros, true},
		{"9999-12-31T23:59:59.999Z", maxMicros - 999, true},
		{"0001-01-01T00:00:00Z", minMicros, false},
		{"1600-01-01T00:00:00Z", -11676096000_000000, false},
		{"2300-01-01T00:00:00Z", 10413792000_000000, false},
		{"9999-12-31T23:59:59.999999999Z", maxMicros, false},
		{"2026-05-15T12:00:00Z", 1778846400_000000, false},
		{"2026-05-15T12:00:00.1Z", 1778846400_100000, false},
		{"2026-05-15T12:00:00.123456Z", 1778846400_123456, false},
		{"2026-05-15T12:00:00.123456789Z", 1778846400_123456, false},
		{"2026-05-15T12:00:00.123456789123Z", 1778846400_123456, false},
		{"1969-12-31T23:59:59.9999999Z", -1, false},
		{"2026-05-15T14:00:00.000+02:00", 1778846400_000000, false},
		{"2026-05-15T06:30:00.000-05:30", 1778846400_000000, false},
		{"2026-05-15T12:00:00.000+00:00", 1778846400_000000, false},
		{"2026-05-15T12:00:00.000-00:00", 1778846400_000000, false},
		{"2026-05-15t12:00:00.000z", 1778846400_000000, false},
		{"2026-05-15 12:00:00.000Z", 1778846400_000000, false},
		{"+002026-05-15T12:00:00.000Z", 1778846400_000000, false},
		{"2024-02-29T00:00:00.000Z", 1709164800_000000, true},
		{"0001-01-01T01:00:00.000+01:00", minMicros, false},
	} {
		got, plain, reason := ParseTime(c.text)
		if got != c.want || plain != c.plain || reason != "" {
			t.Errorf("%s: %d, %v, %q; want %d, %v", c.text, got, plain, reason, c.want, c.plain)
		}
	}
}

// What names no instant is bad_timestamp, what names one that no reader could
// print is out_of_range: never is it another century.
func TestParseTimeRefuses(t *testing.T) {
	for text, want := range map[string]Reason{
		"":                               ReasonBadTimestamp,
		"now":                            ReasonBadTimestamp,
		"1778846400000":                  ReasonBadTimestamp,
		"2026-05-15":                     ReasonBadTimestamp,
		"2026-05-15T12:00:00":            ReasonBadTimestamp,
		"2026-05-15T12:00:00.000":        ReasonBadTimestamp,
		"2026-05-15T12:00Z":              ReasonBadTimestamp,
		"2026-05-15T12:00:00.Z":          ReasonBadTimestamp,
		"2026-05-15T12:00:00,5Z":         ReasonBadTimestamp,
		"2026-05-15T12:00:00.000ZZ":      ReasonBadTimestamp,
		"2026-05-15T12:00:00.000Z ":      ReasonBadTimestamp,
		" 2026-05-15T12:00:00.000Z":      ReasonBadTimestamp,
		"2026-05-15T12:00:00.000+0200":   ReasonBadTimestamp,
		"2026-05-15T12:00:00.000+24:00":  ReasonBadTimestamp,
		"2026-05-15T12:00:00.000+02:60":  ReasonBadTimestamp,
		"2026-13-15T12:00:00.000Z":       ReasonBadTimestamp,
		"2026-00-15T12:00:00.000Z":       ReasonBadTimestamp,
		"2026-02-30T12:00:00.000Z":       ReasonBadTimestamp,
		"2025-02-29T12:00:00.000Z":       ReasonBadTimestamp,
		"2026-05-00T12:00:00.000Z":       ReasonBadTimestamp,
		"2026-05-15T24:00:00.000Z":       ReasonBadTimestamp,
		"2026-05-15T12:60:00.000Z":       ReasonBadTimestamp,
		"2016-12-31T23:59:60.000Z":       ReasonBadTimestamp,
		"2026-5-15T12:00:00.000Z":        ReasonBadTimestamp,
		"20260515T120000Z":               ReasonBadTimestamp,
		"10000-01-01T00:00:00.000Z":      ReasonBadTimestamp,
		"２026-05-15T12:00:00.000Z":       ReasonBadTimestamp,
		"0000-01-01T00:00:00.000Z":       ReasonOutOfRange,
		"0000-12-31T23:59:59.999-01:00":  ReasonOutOfRange,
		"0001-01-01T00:00:00.000+00:01":  ReasonOutOfRange,
		"9999-12-31T23:59:59.999-00:01":  ReasonOutOfRange,
		"+010000-01-01T00:00:00.000Z":    ReasonOutOfRange,
		"+275760-09-13T00:00:00.000Z":    ReasonOutOfRange,
		"-000001-01-01T00:00:00.000Z":    ReasonOutOfRange,
		"-271821-04-20T00:00:00.000Z":    ReasonOutOfRange,
		"2026-05-15T12:00:00.000Z[Asia]": ReasonBadTimestamp,
	} {
		if got, plain, reason := ParseTime(text); reason != want || got != 0 || plain {
			t.Errorf("%q: %d, %v, %q; want %q", text, got, plain, reason, want)
		}
	}
}

// FuzzParseTime holds ParseTime against package time: what that reads as RFC
// 3339 within the years is read alike, and a plain text is had back from the
// microseconds.
func FuzzParseTime(f *testing.F) {
	f.Add("2026-05-15T12:00:00.123Z")
	f.Add("2026-05-15T14:00:00.123456789+02:00")
	f.Add("+002026-05-15T12:00:00Z")
	f.Fuzz(func(t *testing.T, text string) {
		got, plain, reason := ParseTime(text)
		if reason == "" && (got < minMicros || got > maxMicros) {
			t.Fatalf("%q: %d is out of range", text, got)
		}
		if plain && time.UnixMicro(got).UTC().Format(plainTime) != text {
			t.Fatalf("%q is not plain: %d", text, got)
		}
		theirs, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || isLaxForUs(text) {
			return
		}
		switch want := theirs.UnixMicro(); {
		case want < minMicros || want > maxMicros || theirs.Year() < 1:
			if reason != ReasonOutOfRange {
				t.Fatalf("%q: %d, %q, want out_of_range", text, got, reason)
			}
		case reason != "" || got != want:
			t.Fatalf("%q: %d, %q, want %d", text, got, reason, want)
		}
	})
}

// isLaxForUs says whether package time may read text although it is no RFC
// 3339: it takes a comma for the point, and an hour of one digit.
func isLaxForUs(text string) bool {
	return len(text) < len("2006-01-02T15:04:05Z") || text[13] != ':' || text[19] == ',' || text[len(text)-1] != 'Z' && text[len(text)-6] != '+' && text[len(text)-6] != '-' ||
		offsetIsFar(text)
}

// offsetIsFar says whether an offset is one that RFC 3339 does not have.
func offsetIsFar(text string) bool {
	if text[len(text)-1] == 'Z' {
		return false
	}
	offset := text[len(text)-6:]
	return offset[1:3] > "23" || offset[4:6] > "59"
}

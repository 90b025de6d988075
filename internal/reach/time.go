package reach

import (
	"errors"
	"time"
)

// ParseTime reads a time of RFC 3339, or a day, which begins in UTC.
func ParseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, errors.New("want a time such as 2026-05-28T12:00:00Z, or a day (UTC)")
}

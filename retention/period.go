package retention

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxPeriod is the longest number that a period may have, in its unit.
const maxPeriod = 100_000

// forever is how a file says that a default does not hold.
const forever = "forever"

// A Period is how long something is kept. The zero Period is for ever.
type Period struct {
	Years, Days int // calendar years, and days of 24 hours in UTC; one of them is 0
}

// parsePeriod reads "400d" or "6y".
func parsePeriod(text string) (Period, error) {
	if text == forever {
		return Period{}, nil
	}
	digits := strings.TrimRight(text, "dy")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > maxPeriod || digits[0] < '1' || len(text) != len(digits)+1 {
		return Period{}, fmt.Errorf("%q is not allowed: want days or years like 400d or 6y, from 1 on, or %s", text, forever)
	}
	if strings.HasSuffix(text, "y") {
		return Period{Years: n}, nil
	}
	return Period{Days: n}, nil
}

// Forever reports whether nothing ever goes.
func (p Period) Forever() bool { return p == Period{} }

// String returns the period as a file has it.
func (p Period) String() string {
	switch {
	case p.Forever():
		return forever
	case p.Years > 0:
		return fmt.Sprintf("%dy", p.Years)
	}
	return fmt.Sprintf("%dd", p.Days)
}

// before returns the instant in front of which all is older than the period.
func (p Period) before(now time.Time) time.Time {
	return now.UTC().AddDate(-p.Years, 0, -p.Days)
}

// longer reports whether p is longer than q, a year being 365.2425 days.
func (p Period) longer(q Period) bool {
	if p.Forever() || q.Forever() {
		return p.Forever() && !q.Forever()
	}
	return p.length() > q.length()
}

func (p Period) length() int { return p.Years*3_652_425 + p.Days*10_000 }

package pipeline

import (
	"errors"
	"testing"
)

// An archive that knows offsets which Kafka has not must not go on: the offsets
// that Kafka hands out next would be taken for known ones.
func TestBoundsRefuseAnArchiveAhead(t *testing.T) {
	for _, c := range []struct {
		b    bounds
		next int64
		bad  bool
	}{
		{bounds{0, 10}, 0, false},
		{bounds{0, 10}, 10, false},
		{bounds{0, 10}, 11, true},
		{bounds{20, 25}, 10, false}, // a gap, not this fault
		{bounds{0, 0}, 1, true},
	} {
		if err := c.b.check(c.next); errors.Is(err, errBeyondLog) != c.bad {
			t.Errorf("archive at %d, Kafka holds %v: %v", c.next, c.b, err)
		}
	}
}

package audit

import (
	"errors"
	"strings"
)

// ErrRecordID says that a text is no ULID.
var ErrRecordID = errors.New("not a ULID: 26 characters of Crockford's base 32, the first at most 7")

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// ParseRecordID returns a record id in its canonical form, in upper case: its
// order is the order of time. Lower case is the same id. It returns
// [ErrRecordID] for all else, also for the letters I, L, O and U and for what
// would be more than 128 bits. Source: https://github.com/ulid/spec.
func ParseRecordID(text string) (string, error) {
	if len(text) != 26 || text[0] > '7' {
		return "", ErrRecordID
	}
	id := text
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
			id = ""
		}
		if strings.IndexByte(crockford, c) < 0 {
			return "", ErrRecordID
		}
	}
	if id == "" {
		id = strings.ToUpper(text)
	}
	return id, nil
}

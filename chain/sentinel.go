package chain

import (
	"errors"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A SlotSet is a set of slots. The zero SlotSet is empty.
type SlotSet uint32

// SlotSetOf returns the set of slots.
func SlotSetOf(slots ...audit.Slot) SlotSet {
	var set SlotSet
	for _, s := range slots {
		set |= 1 << s
	}
	return set
}

// AllSlots is the set of all slots. A sentinel tells it from "*": only that
// makes a row erased.
const AllSlots SlotSet = 1<<audit.NumSlots - 1

// Has reports whether s is in the set.
func (set SlotSet) Has(s audit.Slot) bool { return set&(1<<s) != 0 }

// A Sentinel is what stands in the column redaction of a row that is not live:
// what went, and by which order. Source: docs/format.md, section 3.1.
type Sentinel struct {
	ID    string  // record_id of the control row that first ordered it: a ULID
	All   bool    // "*": every slot, and every salt with them
	Slots SlotSet // what went where not All, also slots that were null; empty where All
	User  bool    // user_id went
	Hard  bool    // header columns 10 to 31 went; then All and User hold too
}

// ErrSentinel: a text is not the one that [Sentinel.String] gives.
var ErrSentinel = errors.New("no sentinel")

// String returns the sentinel's one text, slots in hashed order:
//
//	{"redacted":true,"id":"…","slots":"*"|[names][,"user":true][,"hard":true]}
//
// It panics where s is not [Sentinel.Valid].
func (s Sentinel) String() string {
	if !s.Valid() {
		panic("chain: " + ErrSentinel.Error())
	}
	var b strings.Builder
	b.WriteString(`{"redacted":true,"id":"` + s.ID + `","slots":`)
	if s.All {
		b.WriteString(`"*"`)
	} else {
		s.Slots.writeNames(&b)
	}
	if s.User {
		b.WriteString(`,"user":true`)
	}
	if s.Hard {
		b.WriteString(`,"hard":true`)
	}
	b.WriteByte('}')
	return b.String()
}

// Union returns the sentinel of a row that a further erasure reaches: the id
// stays, what went adds up.
func (s Sentinel) Union(further Sentinel) Sentinel {
	s.All = s.All || further.All
	s.User = s.User || further.User
	s.Hard = s.Hard || further.Hard
	s.Slots |= further.Slots
	if s.All {
		s.Slots = 0
	}
	return s
}

// ParseSentinel is the inverse of [Sentinel.String]. It accepts nothing else:
// an error is [ErrSentinel].
func ParseSentinel(text string) (Sentinel, error) {
	var s Sentinel
	rest, ok := strings.CutPrefix(text, `{"redacted":true,"id":"`)
	if !ok || len(rest) < ulidLen {
		return Sentinel{}, ErrSentinel
	}
	s.ID, rest = rest[:ulidLen], rest[ulidLen:]
	if rest, ok = strings.CutPrefix(rest, `","slots":`); !ok {
		return Sentinel{}, ErrSentinel
	}
	if rest, s.All = strings.CutPrefix(rest, `"*"`); !s.All {
		if s.Slots, rest, ok = cutNames(rest); !ok {
			return Sentinel{}, ErrSentinel
		}
	}
	rest, s.User = strings.CutPrefix(rest, `,"user":true`)
	rest, s.Hard = strings.CutPrefix(rest, `,"hard":true`)
	if rest != "}" || !s.Valid() {
		return Sentinel{}, ErrSentinel
	}
	return s, nil
}

// Valid reports whether a row can have the sentinel: its id is a ULID, something
// went, All names no Slots, and Hard comes with All and User.
func (s *Sentinel) Valid() bool {
	switch {
	case !isULID(s.ID), s.Slots&^AllSlots != 0:
		return false
	case s.All:
		return s.Slots == 0 && (!s.Hard || s.User)
	default:
		return !s.Hard && (s.Slots != 0 || s.User)
	}
}

// writeNames writes the names as a JSON array, in hashed order.
func (set SlotSet) writeNames(b *strings.Builder) {
	sep := "["
	for s := range audit.NumSlots {
		if set.Has(s) {
			b.WriteString(sep + slotPrefixes[s].quoted)
			sep = ","
		}
	}
	if set == 0 {
		b.WriteString(sep)
	}
	b.WriteByte(']')
}

// cutNames cuts a JSON array of slot names off the front of text. It accepts
// what writeNames writes, and nothing else: each name at most once, in order.
func cutNames(text string) (set SlotSet, rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, "[")
	for s := range audit.NumSlots {
		next, isNext := rest, true
		if set != 0 {
			next, isNext = strings.CutPrefix(rest, ",")
		}
		if next, isName := strings.CutPrefix(next, slotPrefixes[s].quoted); isNext && isName {
			set, rest = set|SlotSetOf(s), next
		}
	}
	rest, end := strings.CutPrefix(rest, "]")
	return set, rest, ok && end
}

const ulidLen = 26

// isULID reports whether id is a strict ULID: 26 digits of Crockford's base 32
// that fit 128 bits. Producers may write letters in either case.
func isULID(id string) bool {
	if len(id) != ulidLen || id[0] > '7' {
		return false
	}
	for i := range len(id) {
		if !strings.ContainsRune("0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz", rune(id[i])) {
			return false
		}
	}
	return true
}

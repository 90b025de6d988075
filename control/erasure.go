package control

import (
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// An Erasure is what goes from a row. The zero Erasure takes nothing.
type Erasure struct {
	All   bool // "*": every slot, and every salt with them
	Slots chain.SlotSet
	User  bool // user_id goes too
	Hard  bool // header columns 10 to 31 go, and with them "*" and user_id
}

// IsZero reports whether nothing goes.
func (e Erasure) IsZero() bool { return !e.All && e.Slots == 0 && !e.User && !e.Hard }

// Union returns what goes by either.
func (e Erasure) Union(o Erasure) Erasure {
	return Erasure{e.All || o.All, e.Slots | o.Slots, e.User || o.User || e.Hard || o.Hard, e.Hard || o.Hard}
}

// Covers reports whether all goes that a sentinel says went.
func (e Erasure) Covers(s *chain.Sentinel) bool {
	return (e.All || e.Hard || !s.All && s.Slots&^e.Slots == 0) && (e.User || !s.User) && (e.Hard || !s.Hard)
}

// Left names something that the erasure takes and the row, which is in a state,
// still has; "" where all of it went.
func (e Erasure) Left(row *chain.Row, state chain.State) string {
	all := e.All || e.Hard
	if all && (state == chain.Live || state == chain.PartlyErased) {
		return "what salts are made of"
	}
	for s := range audit.NumSlots {
		if row.Slots[s] != nil && (all || e.Slots.Has(s)) {
			return s.String()
		}
	}
	switch {
	case (e.User || e.Hard) && row.UserID.Valid:
		return "user_id"
	case e.Hard && state != chain.HardErased:
		return "its header"
	}
	return ""
}

// Sentinel returns the sentinel of a live row that the erasure reaches by the
// order of id. It is none where nothing goes.
func (e Erasure) Sentinel(id string) chain.Sentinel {
	s := chain.Sentinel{ID: id, All: e.All || e.Hard, Slots: e.Slots, User: e.User || e.Hard, Hard: e.Hard}
	if s.All {
		s.Slots = 0
	}
	return s
}

package redact_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/redact"
)

const (
	firstID = "01KBCDEFGHJKMNPQRSTVWXYZ30"
	otherID = "01KBCDEFGHJKMNPQRSTVWXYZ31"
)

// someRow returns a live row of which some columns are null.
func someRow(rng *rand.Rand) *chain.Row {
	row := &chain.Row{}
	for i := range audit.Header {
		c := &audit.Header[i]
		switch {
		case !c.Required && rng.IntN(3) == 0:
		case c.Text != nil:
			*c.Text(&row.Record) = audit.Str(c.Name + strings.Repeat("x", rng.IntN(5)))
		default:
			*c.Int(&row.Record) = audit.I64(rng.Int64N(1 << 30))
		}
	}
	if rng.IntN(3) > 0 {
		row.UserID = audit.Str("dana")
	}
	for s := range audit.NumSlots {
		if rng.IntN(2) == 0 {
			row.Slots[s] = []byte(`{"requestedModel":"` + s.String() + `"}`)
		}
	}
	if rng.IntN(8) == 0 {
		row.Slots[audit.SlotRaw] = []byte{} // which is not null
	}
	row.Derived = audit.Derive(row.Slots[audit.SlotDecision])
	row.RepeatOf = audit.I64(1)
	var prev, salt chain.Hash
	for i := range prev {
		prev[i], salt[i] = byte(rng.Uint32()), byte(rng.Uint32())
	}
	chain.NewHasher(nil).Stamp(row, prev, salt)
	return row
}

// someErasure returns a sentinel that a row can have.
func someErasure(rng *rand.Rand, id string) chain.Sentinel {
	s := chain.Sentinel{ID: id, User: rng.IntN(3) == 0}
	switch rng.IntN(8) {
	case 0:
		s.All, s.User, s.Hard = true, true, true
	case 1:
		s.All = true
	case 2:
		s.Slots = chain.AllSlots
	default:
		s.Slots = chain.SlotSet(rng.Uint32()&rng.Uint32()) & chain.AllSlots
	}
	if !s.Valid() {
		s.Slots = chain.SlotSetOf(audit.SlotContext)
	}
	return s
}

// Whatever is taken from a row, in however many steps and in whatever order: no
// hash moves, the row checks, what went is gone, all else is as it was, and the
// row is the one that it would be if all of it had gone at once.
func TestErasuresAddUp(t *testing.T) {
	rng, h := rand.New(rand.NewPCG(6, 1)), chain.NewHasher(nil)
	states := map[chain.State]int{}
	for range 4000 {
		stamped := someRow(rng)
		row, sum := *stamped, chain.Sentinel{}
		steps := []chain.Sentinel{}
		for range 1 + rng.IntN(4) {
			s := someErasure(rng, otherID)
			if len(steps) == 0 {
				s.ID, sum = firstID, s
				sum.ID = firstID
			}
			steps, sum = append(steps, s), sum.Union(s)
			erase(t, h, &row, s)
			requireErased(t, h, stamped, &row, &sum)
			again := row
			if changed, err := redact.Erase(h, &again, s); changed || err != nil || !reflect.DeepEqual(again, row) {
				t.Fatalf("%s once more: changed %v, %v", s, changed, err)
			}
		}
		state, _ := chain.StateOf(&row)
		states[state]++
		atOnce, shuffled := *stamped, *stamped
		erase(t, h, &atOnce, sum)
		rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, s := range steps {
			s.ID = firstID
			erase(t, h, &shuffled, s)
		}
		if !reflect.DeepEqual(row, atOnce) || !reflect.DeepEqual(row, shuffled) {
			t.Fatalf("%v\nin steps   %+v\nat once    %+v\nshuffled   %+v", steps, row, atOnce, shuffled)
		}
	}
	for _, s := range []chain.State{chain.PartlyErased, chain.Erased, chain.HardErased} {
		if states[s] < 200 {
			t.Errorf("%d rows are %s", states[s], s)
		}
	}
}

func erase(t *testing.T, h *chain.Hasher, row *chain.Row, s chain.Sentinel) {
	t.Helper()
	if _, err := redact.Erase(h, row, s); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
}

// requireErased requires that row is what stamped becomes by s.
func requireErased(t *testing.T, h *chain.Hasher, stamped, row *chain.Row, s *chain.Sentinel) {
	t.Helper()
	if err := h.Check(row); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	if row.Redaction.S != s.String() || row.RedactionID.S != s.ID {
		t.Fatalf("the sentinel is %s, want %s", row.Redaction.S, s)
	}
	if row.PrevHash != stamped.PrevHash || row.RowHash != stamped.RowHash || row.PayloadCommit != stamped.PayloadCommit || row.UserCommit != stamped.UserCommit {
		t.Fatalf("%s: a hash moved", s)
	}
	want := stamped.Record
	for slot := range audit.NumSlots {
		if s.All || s.Slots.Has(slot) {
			want.Slots[slot] = nil
		}
	}
	want.Derived = audit.Derive(want.Slots[audit.SlotDecision])
	if s.User {
		want.UserID = audit.Text{}
	}
	if s.Hard {
		for _, c := range audit.Header[9:] {
			if c.Text != nil {
				*c.Text(&want) = audit.Text{}
			} else {
				*c.Int(&want) = audit.Int{}
			}
		}
	}
	if difference := audit.FirstDifference(&want, &row.Record); difference != "" {
		t.Fatalf("%s: %s is not what it should be", s, difference)
	}
}

// Neither row_salt nor a salt of what went can be computed from what is left.
func TestNoSaltOfWhatWentIsLeft(t *testing.T) {
	rng, h := rand.New(rand.NewPCG(6, 2)), chain.NewHasher(nil)
	for range 300 {
		stamped, s := someRow(rng), someErasure(rng, firstID)
		row := *stamped
		erase(t, h, &row, s)
		if row.RowSalt.Valid {
			t.Fatalf("%s: row_salt is there", s)
		}
		for slot := range audit.NumSlots {
			salt := chain.SlotSalt(stamped.RowSalt.Hash, slot.String())
			if (s.All || s.Slots.Has(slot)) && strings.Contains(row.Residual.S, salt.String()) {
				t.Fatalf("%s: the salt of %s is there", s, slot)
			}
		}
		if salt := chain.SlotSalt(stamped.RowSalt.Hash, "user_id"); s.User && row.UserSalt.Valid || row.UserSalt.Valid && row.UserSalt.Hash != salt {
			t.Fatalf("%s: user_salt is %v", s, row.UserSalt)
		}
	}
}

// The order of the columns is what says which ones a hard erasure takes.
func TestHardErasureBeginsAtRecordID(t *testing.T) {
	if name := audit.Header[9].Name; name != "record_id" {
		t.Errorf("header column 10 is %s", name)
	}
}

// What is no order, or meets what is no row, changes nothing.
func TestEraseRefuses(t *testing.T) {
	rng, h := rand.New(rand.NewPCG(6, 3)), chain.NewHasher(nil)
	slot := chain.SlotSetOf(audit.SlotContext)
	for name, s := range map[string]chain.Sentinel{
		"no id":             {All: true},
		"an id of no ULID":  {ID: "order", All: true},
		"nothing":           {ID: firstID},
		"* and names":       {ID: firstID, All: true, Slots: slot},
		"no such slot":      {ID: firstID, Slots: 1 << audit.NumSlots},
		"hard without user": {ID: firstID, All: true, Hard: true},
		"hard without *":    {ID: firstID, Slots: slot, User: true, Hard: true},
	} {
		row := someRow(rng)
		before := *row
		if changed, err := redact.Erase(h, row, s); changed || !errors.Is(err, redact.ErrOrder) || !reflect.DeepEqual(*row, before) {
			t.Errorf("%s: changed %v, %v", name, changed, err)
		}
	}
	row := someRow(rng)
	row.RowSalt = chain.NullHash{}
	before := *row
	var fault *chain.Fault
	if changed, err := redact.Erase(h, row, chain.Sentinel{ID: firstID, All: true}); changed || !errors.As(err, &fault) || !reflect.DeepEqual(*row, before) {
		t.Errorf("a row in no state: changed %v, %v", changed, err)
	}
}

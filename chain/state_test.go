package chain

import (
	"errors"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

func keptUserSalt() NullHash {
	return NullHash{Hash: SlotSalt(someSalt, "user_id"), Valid: true}
}

// partlyErasedRow has lost decision and (never there) raw; user_id is kept.
func partlyErasedRow() *Row {
	row, gone := liveRow(), SlotSetOf(audit.SlotDecision, audit.SlotRaw)
	residual, err := NewHasher(nil).Residual(row, gone)
	if err != nil {
		panic(err)
	}
	eraseSlots(row, residual, Sentinel{ID: someULID, Slots: gone})
	return row
}

// erasedRow has lost every slot; user_id is kept.
func erasedRow() *Row {
	row := liveRow()
	row.RowSalt, row.UserSalt = NullHash{}, keptUserSalt()
	row.Slots = [audit.NumSlots][]byte{}
	setSentinel(row, Sentinel{ID: someULID, All: true})
	return row
}

func hardErasedRow() *Row {
	row := erasedRow()
	row.UserID, row.UserSalt = audit.Text{}, NullHash{}
	for _, c := range audit.Header[hardColumns:] {
		if c.Text != nil {
			*c.Text(&row.Record) = audit.Text{}
		} else {
			*c.Int(&row.Record) = audit.Int{}
		}
	}
	setSentinel(row, Sentinel{ID: someULID, All: true, User: true, Hard: true})
	return row
}

func setSentinel(row *Row, s Sentinel) {
	row.Redaction, row.RedactionID = audit.Str(s.String()), audit.Str(s.ID)
}

func withoutUser(row *Row) *Row {
	row.UserID, row.UserSalt = audit.Text{}, NullHash{}
	s, err := ParseSentinel(row.Redaction.S)
	if err != nil {
		panic(err)
	}
	s.User = true
	setSentinel(row, s)
	return row
}

// anonymousRow never had a user_id.
func anonymousRow(s Sentinel) *Row {
	row := &Row{Record: callRecord()}
	row.UserID = audit.Text{}
	NewHasher(nil).Stamp(row, somePrev, someSalt)
	if s.All {
		row.RowSalt, row.Slots = NullHash{}, [audit.NumSlots][]byte{}
		setSentinel(row, s)
	}
	return row
}

// onlyUserErasedRow has all of its slots.
func onlyUserErasedRow() *Row {
	row := liveRow()
	residual, err := NewHasher(nil).Residual(row, 0)
	if err != nil {
		panic(err)
	}
	row.UserID = audit.Text{}
	eraseSlots(row, residual, Sentinel{ID: someULID, User: true})
	return row
}

// emptiedRow has lost every slot by name, which does not make it erased:
// residual stays.
func emptiedRow() *Row {
	row := liveRow()
	residual, err := NewHasher(nil).Residual(row, AllSlots)
	if err != nil {
		panic(err)
	}
	eraseSlots(row, residual, Sentinel{ID: someULID, Slots: AllSlots})
	return row
}

// Each row below is in the state that is said, and checks.
func TestStates(t *testing.T) {
	all := Sentinel{ID: someULID, All: true}
	h := NewHasher(nil)
	for _, c := range []struct {
		name string
		row  *Row
		want State
	}{
		{"live", liveRow(), Live},
		{"live, no user", anonymousRow(Sentinel{}), Live},
		{"partly", partlyErasedRow(), PartlyErased},
		{"partly, user too", withoutUser(partlyErasedRow()), PartlyErased},
		{"user alone", onlyUserErasedRow(), PartlyErased},
		{"all slots by name", emptiedRow(), PartlyErased},
		{"erased", erasedRow(), Erased},
		{"erased, user too", withoutUser(erasedRow()), Erased},
		{"erased, no user", anonymousRow(all), Erased},
		{"erased, user ordered where none was", anonymousRow(Sentinel{ID: someULID, All: true, User: true}), Erased},
		{"hard", hardErasedRow(), HardErased},
	} {
		state, err := StateOf(c.row)
		if err != nil || state != c.want {
			t.Errorf("%s: %s, %v", c.name, state, err)
		}
		if err := h.Check(c.row); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		user, payload, err := h.Commits(c.row)
		if err != nil || user != c.row.UserCommit || payload != c.row.PayloadCommit {
			t.Errorf("%s: commits %v, %s, %v", c.name, user, payload, err)
		}
	}
}

// The columns that make a state, each as it is, null, or set. What is left of
// all combinations once the right ones are taken out must be refused.
func TestEveryOtherCombinationIsAFault(t *testing.T) {
	good := map[string]int{"live": 0, "partly erased": 0, "erased": 0, "hard erased": 0}
	for _, base := range []*Row{liveRow(), partlyErasedRow(), erasedRow(), withoutUser(erasedRow()), hardErasedRow(), anonymousRow(Sentinel{})} {
		for bits := range 1 << 8 {
			row := *base
			flipColumns(&row, bits)
			want, listed := tableState(&row)
			got, err := StateOf(&row)
			if listed != (err == nil) || listed && got != want {
				t.Errorf("%s\nis %s, %v; the table says %s, %v", describe(&row), got, err, want, listed)
			}
			if listed {
				good[want.String()]++
			}
		}
	}
	for state, n := range good {
		if n == 0 {
			t.Errorf("no combination is %s", state)
		}
	}
}

// flipColumns makes what is null set and what is set null, for each column
// whose bit is 1.
func flipColumns(row *Row, bits int) {
	partly := partlyErasedRow()
	residual, live := partly.Residual.S, liveRow()
	flipHash := func(h *NullHash, to Hash) { *h = NullHash{Hash: to, Valid: !h.Valid} }
	flipText := func(t *audit.Text, to string) { *t = audit.Text{S: to, Valid: !t.Valid} }
	sentinel := row.Redaction.S
	if sentinel == "" {
		sentinel = partly.Redaction.S
	}
	for i, flip := range []func(){
		func() { flipHash(&row.RowSalt, someSalt) },
		func() { flipText(&row.Residual, residual) },
		func() { flipHash(&row.UserSalt, keptUserSalt().Hash) },
		func() { flipText(&row.Redaction, sentinel) },
		func() { flipText(&row.RedactionID, someULID) },
		func() { flipText(&row.UserID, live.UserID.S) },
		func() { flipHash(&row.UserCommit, live.UserCommit.Hash) },
		func() {
			row.Slots[audit.SlotExt] = map[bool][]byte{true: []byte("{}")}[row.Slots[audit.SlotExt] == nil]
		},
	} {
		if bits>>i&1 == 1 {
			flip()
		}
	}
}

// tableState is the table of the format, read line by line, for rows that
// flipColumns makes.
func tableState(r *Row) (State, bool) {
	user := r.UserID.Valid
	if r.RowSalt.Valid {
		return Live, !r.Residual.Valid && !r.UserSalt.Valid && !r.Redaction.Valid && !r.RedactionID.Valid && user == r.UserCommit.Valid
	}
	s, err := ParseSentinel(r.Redaction.S)
	if !r.Redaction.Valid || err != nil || !r.RedactionID.Valid || r.UserSalt.Valid != user {
		return 0, false
	}
	if user && (s.User || !r.UserCommit.Valid) || !user && r.UserCommit.Valid && !s.User {
		return 0, false
	}
	empty := true
	for _, content := range r.Slots {
		empty = empty && content == nil
	}
	switch {
	case s.Hard:
		return HardErased, !r.Residual.Valid && empty && !r.RecordID.Valid
	case s.All:
		return Erased, !r.Residual.Valid && empty
	}
	residual, err := ParseResidual(r.Residual.S)
	fits := r.Residual.Valid && err == nil
	for slot := range audit.NumSlots {
		fits = fits && residual.Salts[slot].Valid == (r.Slots[slot] != nil)
	}
	return PartlyErased, fits
}

func describe(r *Row) string {
	s := "redaction " + r.Redaction.S
	for name, set := range map[string]bool{
		"row_salt": r.RowSalt.Valid, "residual": r.Residual.Valid, "user_salt": r.UserSalt.Valid, "redaction": r.Redaction.Valid,
		"redaction_id": r.RedactionID.Valid, "user_id": r.UserID.Valid, "user_commit": r.UserCommit.Valid, "ext": r.Slots[audit.SlotExt] != nil,
	} {
		if set {
			s += " +" + name
		}
	}
	return s
}

// A fault names the column that does not fit.
func TestFaultsNameTheColumn(t *testing.T) {
	editResidual := func(r *Row, edit func(*Residual)) {
		residual, err := ParseResidual(r.Residual.S)
		if err != nil {
			panic(err)
		}
		edit(&residual)
		r.Residual = audit.Str(residual.String())
	}
	some := NullHash{Hash: otherSum, Valid: true}
	for _, c := range []struct {
		name   string
		row    *Row
		change func(*Row)
		fault  string
	}{
		{"zero", &Row{}, func(*Row) {}, "redaction"},
		{"no sentinel", erasedRow(), func(r *Row) { r.Redaction.S += " " }, "redaction"},
		{"another id", erasedRow(), func(r *Row) { r.RedactionID.S = "01KBCDEFGHJKMNPQRSTVWXYZ02" }, "redaction_id"},
		{"id in another case", erasedRow(), func(r *Row) { r.RedactionID.S = "01kbcdefghjkmnpqrstvwxyz01" }, "redaction_id"},
		{"live with a residual", liveRow(), func(r *Row) { r.Residual = partlyErasedRow().Residual }, "residual"},
		{"live, user_id gone", liveRow(), func(r *Row) { r.UserID = audit.Text{} }, "user_commit"},
		{"user_salt gone", erasedRow(), func(r *Row) { r.UserSalt = NullHash{} }, "user_salt"},
		{"user_id gone", erasedRow(), func(r *Row) { r.UserID = audit.Text{} }, "user_salt"},
		{"both gone, not said", erasedRow(), func(r *Row) { r.UserID, r.UserSalt = audit.Text{}, NullHash{} }, "user_id"},
		{"user_salt left", withoutUser(erasedRow()), func(r *Row) { r.UserSalt = keptUserSalt() }, "user_salt"},
		{"user_id left", withoutUser(erasedRow()), func(r *Row) { r.UserID = audit.Str("u") }, "user_id"},
		{"user_commit gone", erasedRow(), func(r *Row) { r.UserCommit = NullHash{} }, "user_commit"},
		{"another user_salt", erasedRow(), func(r *Row) { r.UserSalt.Hash[0] ^= 1 }, "user_commit"},
		{"another user_id", partlyErasedRow(), func(r *Row) { r.UserID.S += "x" }, "user_commit"},
		{"slot left", erasedRow(), func(r *Row) { r.Slots[audit.SlotExt] = []byte{} }, "ext"},
		{"slot left, hard", hardErasedRow(), func(r *Row) { r.Slots[audit.SlotRaw] = []byte{} }, "raw"},
		{"residual, erased", erasedRow(), func(r *Row) { r.Residual = partlyErasedRow().Residual }, "residual"},
		{"header, erased", erasedRow(), func(r *Row) { r.Status.S += "x" }, "row_hash"},
		{"payload_commit, erased", erasedRow(), func(r *Row) { r.PayloadCommit[0] ^= 1 }, "row_hash"},
		{"no residual", partlyErasedRow(), func(r *Row) { r.Residual = audit.Text{} }, "residual"},
		{"residual malformed", partlyErasedRow(), func(r *Row) { r.Residual.S += "x" }, "residual"},
		{"slot named and there", partlyErasedRow(), func(r *Row) { r.Slots[audit.SlotRaw] = []byte{} }, "raw"},
		{"slot gone, not named", partlyErasedRow(), func(r *Row) { r.Slots[audit.SlotTokenCost] = nil }, "residual"},
		{"slot there, no salt", partlyErasedRow(), func(r *Row) { r.Slots[audit.SlotExt] = []byte("{}") }, "residual"},
		{"slot changed", partlyErasedRow(), func(r *Row) { r.Slots[audit.SlotTokenCost] = []byte("{}") }, "payload_commit"},
		{"star salt changed", partlyErasedRow(), func(r *Row) { editResidual(r, func(x *Residual) { x.Star[0] ^= 1 }) }, "payload_commit"},
		{"salt changed", partlyErasedRow(), func(r *Row) { editResidual(r, func(x *Residual) { x.Salts[audit.SlotTokenCost].Hash[0] ^= 1 }) }, "payload_commit"},
		{"commitment changed", partlyErasedRow(), func(r *Row) { editResidual(r, func(x *Residual) { x.Commits[audit.SlotDecision].Hash[0] ^= 1 }) }, "payload_commit"},
		{"commitment gone", partlyErasedRow(), func(r *Row) { editResidual(r, func(x *Residual) { x.Commits[audit.SlotDecision] = NullHash{} }) }, "payload_commit"},
		{"commitment of a null slot", partlyErasedRow(), func(r *Row) { editResidual(r, func(x *Residual) { x.Commits[audit.SlotRaw] = some }) }, "payload_commit"},
		{"commitment not named", partlyErasedRow(), func(r *Row) { editResidual(r, func(x *Residual) { x.Commits[audit.SlotExt] = some }) }, "residual"},
	} {
		c.change(c.row)
		var fault *Fault
		if err := NewHasher(nil).Check(c.row); !errors.As(err, &fault) || fault.Column != c.fault {
			t.Errorf("%s: %v, want a fault in %s", c.name, err, c.fault)
		}
	}
}

// A hard erasure takes header columns 10 to 31, each of them, and no other.
func TestHardErasureTakesColumns10To31(t *testing.T) {
	for i, c := range audit.Header {
		row := hardErasedRow()
		changeColumn(c, &row.Record)
		var fault *Fault
		err := NewHasher(nil).Check(row)
		switch number := i + 1; {
		case number < 10 && err != nil:
			t.Errorf("column %d, %s: %v", number, c.Name, err)
		case number >= 10 && (!errors.As(err, &fault) || fault.Column != c.Name):
			t.Errorf("column %d, %s: %v", number, c.Name, err)
		}
	}
}

package chain

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A Residual is what is left of the salts of a partly erased row: enough to
// recompute payload_commit, and not enough to test a guess at what went.
//
// A slot that still has content has its salt, an erased one its commitment, one
// that was null neither. Source: docs/format.md, section 3.1.
type Residual struct {
	Star    Hash                     // slot_salt("*")
	Salts   [audit.NumSlots]NullHash // slot_salt of slots with content
	Commits [audit.NumSlots]NullHash // slot_commit of erased slots
}

// The errors of residuals.
var (
	// ErrResidual: a text is not the JSON of a residual.
	ErrResidual = errors.New("is malformed")
	// ErrErased: nothing is left in a row that a further erasure could take.
	ErrErased = errors.New("row is erased already")
)

// Residual returns the residual of row once the slots of erased are gone from
// it too. The row is live or partly erased, and is not changed; its slots must
// still be there. Slots of erased that are null or gone already do not matter,
// so that a set may hold what an order names and a row does not have.
//
// It returns an error matching [ErrErased] for an erased row, and a [*Fault]
// where the row is in no state. It does not check commitments: see
// [Hasher.Check].
func (h *Hasher) Residual(row *Row, erased SlotSet) (Residual, error) {
	var r Residual
	state, err := stateOf(row, &r)
	switch {
	case err != nil:
		return Residual{}, err
	case state == Live:
		r = h.salts(row)
	case state != PartlyErased:
		return Residual{}, ErrErased
	}
	for s := range audit.NumSlots {
		if erased.Has(s) && r.Salts[s].Valid {
			r.Commits[s] = NullHash{Hash: h.slotCommit(s, &r.Salts[s].Hash, row.Slots[s]), Valid: true}
			r.Salts[s] = NullHash{}
		}
	}
	return r, nil
}

// salts returns the residual of a live row of which nothing is erased.
func (h *Hasher) salts(row *Row) Residual {
	h.setSalt(&row.RowSalt.Hash)
	r := Residual{Star: h.salt(starPrefix)}
	for s := range audit.NumSlots {
		if row.Slots[s] != nil {
			r.Salts[s] = NullHash{Hash: h.salt(slotPrefixes[s].salt), Valid: true}
		}
	}
	return r
}

// String returns the residual as JSON without spaces, slots in hashed order:
//
//	{"salts":{"*":hex,name:hex…},"commits":{name:hex…}}
func (r *Residual) String() string {
	b := []byte(`{"salts":{"*":"`)
	b = appendHex(b, &r.Star)
	b = append(b, '"')
	for s := range audit.NumSlots {
		b = appendMember(b, ',', s, &r.Salts[s])
	}
	b = append(b, `},"commits":{`...)
	sep := byte(0)
	for s := range audit.NumSlots {
		b = appendMember(b, sep, s, &r.Commits[s])
		if r.Commits[s].Valid {
			sep = ','
		}
	}
	return string(append(b, "}}"...))
}

// appendMember appends sep, unless that is 0, and "name":"hex"; nothing where h
// is null.
func appendMember(b []byte, sep byte, s audit.Slot, h *NullHash) []byte {
	if !h.Valid {
		return b
	}
	if sep != 0 {
		b = append(b, sep)
	}
	b = append(b, slotPrefixes[s].quoted...)
	b = append(b, ':', '"')
	b = appendHex(b, &h.Hash)
	return append(b, '"')
}

// ParseResidual reads the JSON of a residual. White space and the order of
// members do not matter, for other writers have their own; all else does:
// members that are unknown, missing or there twice, a slot with both a salt and
// a commitment, hex that is not 64 lower-case digits, and anything after the
// end are errors matching [ErrResidual].
func ParseResidual(text string) (Residual, error) {
	var r Residual
	p := memberScanner{rest: text}
	var star, salts, commits bool
	for more := p.open(); more; more = p.next() {
		switch name := p.name(); {
		case name == "salts" && !salts:
			star, salts = p.hashes(&r.Star, &r.Salts), true
		case name == "commits" && !commits:
			p.hashes(nil, &r.Commits)
			commits = true
		default:
			p.fail("member " + quoteShort(name))
		}
	}
	switch {
	case !p.end():
		return Residual{}, fmt.Errorf("%w: %s", ErrResidual, p.problem)
	case !salts || !commits || !star:
		return Residual{}, fmt.Errorf("%w: salts, commits or the salt of * is missing", ErrResidual)
	}
	for s := range audit.NumSlots {
		if r.Salts[s].Valid && r.Commits[s].Valid {
			return Residual{}, fmt.Errorf("%w: %s has a salt and a commitment", ErrResidual, s)
		}
	}
	return r, nil
}

// A memberScanner reads JSON of objects and strings without escapes, which is
// all that a residual has. After the first problem it yields nothing more.
type memberScanner struct {
	rest    string
	problem string
}

// open reads "{". It reports whether a member follows; else "}" is read too.
func (p *memberScanner) open() bool {
	if !p.take('{') {
		p.fail("an object is missing")
		return false
	}
	return !p.take('}')
}

// next reads "," and reports true, or "}" and reports false.
func (p *memberScanner) next() bool {
	switch {
	case p.problem != "" || p.take('}'):
		return false
	case p.take(','):
		return true
	}
	p.fail("an object does not end")
	return false
}

// name reads a string and ":".
func (p *memberScanner) name() string {
	s := p.text()
	if !p.take(':') {
		p.fail("a member has no value")
	}
	return s
}

// text reads a string without an escape. One that has an escape comes out as
// it is written, and so is no name of a slot and no hash.
func (p *memberScanner) text() string {
	if !p.take('"') {
		p.fail("a string is missing")
		return ""
	}
	s, rest, ok := strings.Cut(p.rest, `"`)
	if !ok {
		p.fail("a string does not end")
		return ""
	}
	p.rest = rest
	return s
}

// hashes reads an object of slot names and hashes. It reports whether "*" was
// there, which is unknown where star is nil.
func (p *memberScanner) hashes(star *Hash, slots *[audit.NumSlots]NullHash) (hasStar bool) {
	for more := p.open(); more; more = p.next() {
		name := p.name()
		value, err := ParseHash(p.text())
		slot, isSlot := audit.ParseSlot(name)
		switch {
		case err != nil:
			p.fail("a value is no hash")
		case name == nameStar && star != nil && !hasStar:
			*star, hasStar = value, true
		case isSlot && !slots[slot].Valid:
			slots[slot] = NullHash{Hash: value, Valid: true}
		default:
			p.fail("member " + quoteShort(name))
		}
	}
	return hasStar
}

// end reports whether the text is read to its end without a problem.
func (p *memberScanner) end() bool {
	p.space()
	if p.rest != "" {
		p.fail("text after the end")
	}
	return p.problem == ""
}

// take skips white space and reads c. It reports whether c was there.
func (p *memberScanner) take(c byte) bool {
	p.space()
	if p.problem != "" || p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *memberScanner) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// fail keeps the first problem.
func (p *memberScanner) fail(problem string) {
	if p.problem == "" {
		p.problem = problem
	}
}

// quoteShort quotes a name from outside, without letting it fill a log.
func quoteShort(name string) string {
	if len(name) > 40 {
		name = name[:40]
	}
	return fmt.Sprintf("%q is unknown or there twice", name)
}

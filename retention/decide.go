package retention

import (
	"fmt"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// NoHold is the seq of the first held row where no row is held.
const NoHold int64 = -1

// An Input is what is known of one log. Its rows below Begin are cut.
type Input struct {
	Now    time.Time // the store's
	Policy Policy
	Begin  int64 // seq of the first row that is there
	// Days are those of the rows from Begin on, in order, without holes in seq. A
	// day may be there several times; rows that are not there are not decided on.
	Days []Day
	// FirstHeld is the seq of the first row at or above Begin that a legal hold
	// keeps; [NoHold] where none does. Who has not looked at all rows decides
	// once without holds, looks at what would go, and decides again.
	FirstHeld int64
	// Ordered are the expiries of the log that are ordered and not cancelled.
	Ordered []Expiry
	// Offboard asks for all of the log, whatever the periods are.
	Offboard bool
}

// A Day is a stretch of a log's rows that were archived on one day.
type Day struct {
	Day time.Time // its beginning, UTC
	End int64     // seq behind its last row
}

// A Decision is what of one log goes.
type Decision struct {
	Cut      int64    // rows below go; Begin where none does
	Policy   string   // by which the cut goes, for the retention-cut; "" where none does
	Expiries []Expiry // that are still to be ordered, each of rows at or above Cut
	Kept     []string // what kept rows that were due
}

// An Expiry is an erasure by policy: a redaction with seqBefore as its target.
// All takes the place of Slots. Rows that a legal hold keeps are not touched by
// it as long as they are held.
type Expiry struct {
	All       bool
	Slots     chain.SlotSet
	User      bool
	Hard      bool
	SeqBefore int64
	Policy    string // by which; of no weight where expiries are compared
}

// Decide says what of one log goes. Package doc has the precedence.
func Decide(in Input) Decision {
	d := decider{Input: &in}
	d.cut()
	d.payload()
	d.slot(audit.SlotPrompts, "prompts", in.Policy.Prompts)
	d.slot(audit.SlotRaw, "rejects", in.Policy.Rejects)
	return d.out
}

type decider struct {
	*Input
	due  int64 // rows below are due to go, whatever keeps them
	gone int64 // payload below expires
	out  Decision
}

// below returns the seq up to which the log's days ended before a period.
func (d *decider) below(p Period) int64 {
	at := d.Begin
	if p.Forever() {
		return at
	}
	for _, day := range d.Days {
		if day.Day.AddDate(0, 0, 1).After(p.before(d.Now)) {
			break
		}
		at = max(at, day.End)
	}
	return at
}

// end returns the seq behind the last row that is known.
func (d *decider) end() int64 {
	at := d.Begin
	for _, day := range d.Days {
		at = max(at, day.End)
	}
	return at
}

// free returns up to where no floor keeps rows.
func (d *decider) free() (at int64, why string) {
	at = d.end()
	if of, floor, any := d.Policy.floor(); any {
		at, why = d.below(floor), fmt.Sprintf("%s keeps rows for %v", of, floor)
	}
	if expired := d.below(d.Policy.Rows); d.Policy.worm() && expired < at {
		at, why = expired, fmt.Sprintf("%s keeps rows until they expire (rows: %v)", SEC17a4, d.Policy.Rows)
	}
	return at, why
}

// cut decides how far the log is cut.
func (d *decider) cut() {
	d.due = d.below(d.Policy.Rows)
	policy := "rows " + d.Policy.Rows.String()
	if d.Offboard {
		d.due, policy = d.end(), "offboarding"
	}
	at := d.due
	if free, why := d.free(); free < at {
		at = free
		d.out.Kept = append(d.out.Kept, why)
	}
	if d.FirstHeld != NoHold && d.FirstHeld < at {
		at = max(d.FirstHeld, d.Begin)
		d.out.Kept = append(d.out.Kept, fmt.Sprintf("a legal hold keeps row %d", d.FirstHeld))
	}
	if d.out.Cut = at; at > d.Begin {
		d.out.Policy = policy
	}
}

// payload decides up to where all slots expire: by the period of payload, and
// what is due as rows but stays.
func (d *decider) payload() {
	policy := "payload " + d.Policy.Payload.String()
	d.gone = min(d.below(d.Policy.Payload), d.keptWhole())
	if d.due > d.out.Cut && d.due >= d.gone {
		d.gone, policy = d.due, "rows "+d.Policy.Rows.String()+", which stay"
		if d.Offboard {
			policy = "offboarding, rows stay"
		}
	}
	d.gone = min(d.gone, d.keptWhole())
	all := Expiry{All: true, User: d.Policy.User, SeqBefore: d.gone, Policy: policy}
	if d.Offboard {
		all.User = true
	}
	if d.Policy.Hard {
		free, _ := d.free()
		hard := all
		hard.Hard, hard.User, hard.SeqBefore = true, true, min(d.gone, free)
		d.order(hard)
	}
	d.order(all)
}

// slot decides up to where one slot expires before all of them do.
func (d *decider) slot(s audit.Slot, name string, p Period) {
	if at := min(d.below(p), d.keptWhole()); at > d.gone {
		d.order(Expiry{Slots: chain.SlotSetOf(s), SeqBefore: at, Policy: name + " " + p.String()})
	}
}

// keptWhole returns the seq from which on sec17a4 keeps payload.
func (d *decider) keptWhole() int64 {
	if d.Policy.worm() {
		return d.below(d.Policy.Rows)
	}
	return d.end()
}

// order asks for an expiry unless nothing is left for it to take.
func (d *decider) order(e Expiry) {
	if e.SeqBefore <= d.out.Cut {
		return
	}
	for _, o := range slices.Concat(d.Ordered, d.out.Expiries) {
		if o.covers(&e) {
			return
		}
	}
	d.out.Expiries = append(d.out.Expiries, e)
}

// covers reports whether all that e takes goes by o.
func (o *Expiry) covers(e *Expiry) bool {
	return o.SeqBefore >= e.SeqBefore && (o.All || !e.All && e.Slots&^o.Slots == 0) && (o.User || !e.User) && (o.Hard || !e.Hard)
}
